//! Any bytes as a recording: opened, read to the end, and gathered into a trace.
//!
//! Reading must end, within the limits of libFuzzer for time and memory, and what comes out must
//! agree with itself. Names are not looked up: that would open files that the bytes name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proftool::{perfdata, trace};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = perfdata::Reader::from_bytes(bytes.to_vec()) else {
        return;
    };
    let Ok(trace) = trace::read(&mut reader, &trace::Options::default(), |_| {}) else {
        return;
    };

    let taken: u64 = trace.samples.iter().map(|sample| sample.count).sum();
    let there = reader.counts().get(&SAMPLE).copied().unwrap_or(0);
    assert!(taken <= there, "{taken} samples of {there}");
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
});

/// PERF_RECORD_SAMPLE.
const SAMPLE: u32 = 9;
