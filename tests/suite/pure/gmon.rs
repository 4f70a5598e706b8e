//! gmon.out: what GNU gprof 2.40 printed for the same files, byte for byte, and what becomes of
//! files that are broken.

use std::path::Path;

use proftool::analysis::gprof::Figures;
use proftool::export::gprof;
use proftool::input::{self, folded::Weights};
use proftool::profile::{EventId, Filter, Profile};
use proftool::symbolize::StaticCalls;

use crate::support::cases;
use crate::support::gmon::{options, read};

fn graph(figures: &Figures, zeros: bool) -> String {
    let mut text = Vec::new();
    let options = gprof::Options { zeros };
    gprof::write_graph(&mut text, figures, &options).unwrap();
    String::from_utf8(text).unwrap()
}

/// Compares with a file of the case, if it has it.
fn same(case: &Path, file: &str, text: &str) {
    let path = case.join(file);
    if let Ok(golden) = std::fs::read_to_string(&path) {
        assert!(text == golden, "not {}:\n{text}", path.display());
    }
}

#[test]
fn the_classic_texts_are_those_of_gprof() {
    for case in cases("gmon.out") {
        let figures = read(&case, StaticCalls::Off);
        same(&case, "gprof.txt", &graph(&figures, false));
        let mut flat = Vec::new();
        let options = gprof::Options::default();
        gprof::write_flat(&mut flat, &figures, &options).unwrap();
        same(&case, "flat.txt", &String::from_utf8(flat).unwrap());
    }
}

/// gprof misses calls to functions that stand before the caller. Here the calls that count are
/// none of these, or were made, which makes them known anyway; `p08` has one that was not.
#[test]
fn with_the_calls_of_the_code_they_are_those_of_gprof_c() {
    for case in cases("gmon.out") {
        if case.ends_with("p08_fnptr_unused") {
            continue;
        }
        let figures = read(&case, StaticCalls::All);
        same(&case, "gprof_c.txt", &graph(&figures, false));
    }
}

/// Nothing of the start-up code ran; gprof finds none of the calls in it, and we do. The lines of
/// these callers are the only difference.
#[test]
fn with_zeros_only_calls_that_gprof_misses_are_different() {
    for case in cases("gmon.out") {
        let Ok(golden) = std::fs::read_to_string(case.join("gprof_c_z.txt")) else {
            continue;
        };
        let text = graph(&read(&case, StaticCalls::All), true);
        let kept = |text: &str| -> Vec<String> {
            let lines = text.lines();
            let lines = lines.filter(|line| !line.contains("       0/0 "));
            let lines = lines.filter(|line| !line.contains("<spontaneous>"));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(kept(&text), kept(&golden), "{}", case.display());
    }
}

#[test]
fn a_sum_of_two_files_is_twice_one() {
    for case in cases("gmon.out") {
        let mut options = options(&case.join("prog"), StaticCalls::Off);
        let gmon = case.join("gmon.out");
        let read = |options: &input::Options| {
            input::open_as_gprof(&gmon, options)
                .unwrap()
                .unwrap()
                .profile
        };
        let once = read(&options);
        options.sum.push(gmon.clone());
        let twice = read(&options);
        let total = |profile: &Profile| profile.samples.iter().map(|s| s.weight).sum::<u64>();
        assert_eq!(total(&twice), 2 * total(&once));
        let calls = |profile: &Profile| -> Vec<u64> {
            let counts = profile.counts.iter().flat_map(|counts| counts.calls());
            counts.map(|count| count.calls).collect()
        };
        let doubled: Vec<u64> = calls(&once).iter().map(|calls| calls * 2).collect();
        assert_eq!(calls(&twice), doubled);
    }
}

/// Every cut, and bytes changed at many places: an answer or an error, and no more weight than
/// the whole file had buckets for.
#[test]
fn broken_files_are_read_as_far_as_they_go() {
    let Some(case) = cases("gmon.out").into_iter().next() else {
        return;
    };
    let whole = std::fs::read(case.join("gmon.out")).unwrap();
    let options = options(&case.join("prog"), StaticCalls::Off);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken.gmon");
    let read = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        drop(input::read(bytes.to_vec(), &options));
        let read = input::open_as_gprof(&file, &options).ok().flatten();
        read.map(|read| read.profile)
    };
    for length in (0..whole.len()).step_by(7) {
        if let Some(profile) = read(&whole[..length]) {
            let said = profile.caveats.iter().any(|c| c.kind.name() == "truncated");
            let arcs = profile.counts.map_or(0, |counts| counts.calls().len());
            let boundary = (whole.len() - length) % 21 == 0 || length == 20;
            assert!(
                said || boundary || arcs == 0,
                "{length} of {} bytes",
                whole.len()
            );
        }
    }
    for place in (0..whole.len()).step_by(3) {
        for byte in [0, 0xff, whole[place] ^ 0x80] {
            let mut broken = whole.clone();
            broken[place] = byte;
            drop(read(&broken));
        }
    }
}

#[test]
fn a_gmon_out_without_its_program_gets_advice() {
    for case in cases("gmon.out").iter().take(1) {
        let gmon = case.join("gmon.out");
        let error = input::open(&gmon).unwrap_err();
        assert!(error.to_string().contains("gmon.out"));
        assert!(matches!(error.reason, input::Reason::NoProgram), "{error}");
        // A library is no program that was profiled; it has no such functions.
        let options = options(&gmon, StaticCalls::Off);
        let error = input::open_with(&gmon, &options, &mut |_, _| ()).unwrap_err();
        assert_eq!(error.path, gmon);
        assert_eq!(error.reason.to_string(), "not an ELF file");
    }
}

#[test]
fn an_inventory_needs_no_program() {
    for case in cases("gmon.out") {
        let contents =
            input::contents(&case.join("gmon.out"), Weights::Unstated, &mut |_, _| ()).unwrap();
        assert_eq!(contents.form, "gmon.out, 64-bit, little-endian");
        let options = options(&case.join("prog"), StaticCalls::Off);
        let read = input::open_as_gprof(&case.join("gmon.out"), &options);
        let profile = read.unwrap().unwrap().profile;
        let selection = profile.select(EventId::new(0), &Filter::default());
        assert_eq!(contents.samples, selection.samples(), "{}", case.display());
        assert_eq!(contents.events[0].total, selection.total());
        let arcs = contents.records.iter().find(|(name, _)| name == "arc");
        let pairs = profile.counts.map_or(0, |counts| counts.calls().len());
        assert!(arcs.unwrap().1 >= pairs as u64);
    }
}
