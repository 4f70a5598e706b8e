//! Any bytes as a recording: opened, read to the end, gathered into a trace, and given functions.
//!
//! Reading must end, within the limits of libFuzzer for time and memory, and what comes out must
//! agree with itself.
//!
//! These are the steps of `input::read`, which is not called itself: it would read the running
//! kernel's 100 000 symbols for each input that has a kernel's sample, start a thread, and find
//! other things on another machine. Here the recording is said to be of another kernel, and files
//! that the bytes name are looked for where there are none.

#![no_main]

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use proftool::binary::Finder;
use proftool::symbolize::{self, Library, symbolize};
use proftool::unwind::Rules;
use proftool::{perfdata, trace};

/// Copied stacks are unwound by their frame pointers; the target `unwind` has rules.
struct NoRules;

impl trace::RuleSource for NoRules {
    fn rules(&self, _: &trace::Image, _: Option<&str>) -> Option<Arc<Rules>> {
        None
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = perfdata::Reader::from_bytes(bytes.to_vec()) else {
        return;
    };
    let unwinding = trace::Unwinding {
        rules: &NoRules,
        workers: NonZeroUsize::MIN,
    };
    let everything = trace::TimeRange::default();
    let read = trace::read(
        &mut reader,
        everything,
        Some(unwinding),
        None,
        |_| {},
        |_| {},
    );
    let Ok(mut trace) = read else {
        return;
    };

    let taken: u64 = trace.samples.iter().map(|sample| sample.count).sum();
    // The events behind those of the recording are of intervals between its records.
    let recorded = reader.events().len();
    let own = trace.samples.iter();
    let own = own.filter(|sample| sample.event.index() < recorded);
    let own: u64 = own.map(|sample| sample.count).sum();
    let there = reader.counts().get(&SAMPLE).copied().unwrap_or(0);
    // A sample of a group's leader counts for each event of the group.
    let mut events = reader.events().iter();
    let has_groups = events.any(|event| event.attr.read_format & GROUP != 0);
    assert!(own <= there || has_groups, "{own} samples of {there}");
    for sample in &trace.samples {
        // Each of these is a row of its table, or indexing it panics.
        let _ = (
            &trace.events[sample.event],
            &trace.threads[sample.thread],
            &trace.paths[sample.path],
        );
    }
    let order = |sample: &trace::TraceSample| (sample.event, sample.thread, sample.path);
    assert!(trace.samples.is_sorted_by(|a, b| order(a) < order(b)));

    trace.recording.os_release = Some("of another machine".to_owned());
    let profile = symbolize(
        &trace,
        &Library::new(symbolize::Options {
            finder: FINDER.clone(),
            workers: NonZeroUsize::MIN,
            ..symbolize::Options::default()
        }),
    );
    let named: u64 = profile.samples_by_event().iter().sum();
    assert_eq!(named, taken, "samples that were lost by naming them");
    let mut paths = profile.paths.enumerate();
    assert!(paths.all(|(id, path)| path.caller.is_none_or(|caller| caller < id)));
});

/// Looks below a directory that is not there and that nobody can make.
static FINDER: LazyLock<Finder> = LazyLock::new(|| Finder::new(Some(Path::new("/proc/nothing"))));

/// PERF_RECORD_SAMPLE.
const SAMPLE: u32 = 9;

/// PERF_FORMAT_GROUP.
const GROUP: u64 = 1 << 3;
