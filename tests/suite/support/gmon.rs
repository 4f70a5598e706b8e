//! Profiles of gmon.out, and figures of their functions.

use std::path::Path;

use proftool::analysis::{self, gprof::Figures};
use proftool::input::{self, AsGprof};
use proftool::profile::{EventId, Filter};
use proftool::symbolize::StaticCalls;

/// How a gmon.out of the program is read for gprof's own text.
pub fn options(program: &Path, calls: StaticCalls) -> input::Options {
    input::Options {
        program: Some(program.to_owned()),
        calls,
        ..input::Options::default()
    }
}

/// The figures of gprof's own text.
pub fn figures(file: &Path, program: &Path, calls: StaticCalls) -> Figures {
    let read = input::open_as_gprof(file, &options(program, calls));
    let AsGprof { profile, histogram } = read.unwrap().unwrap();
    let selection = profile.select(EventId::new(0), &Filter::default());
    analysis::gprof::figures(&profile, &selection, &histogram)
}

pub fn read(case: &Path, calls: StaticCalls) -> Figures {
    figures(&case.join("gmon.out"), &case.join("prog"), calls)
}
