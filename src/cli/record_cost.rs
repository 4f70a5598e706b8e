//! What `record` tells at the end: what the recording cost (`--verbose`), and that short threads were missed.

use std::time::Duration;

use proftool::sampler::{End, Options, Rate, Recording, sample_cost};

/// Samples that stand for less than this part of the processor time are told.
const LEAST_SHARE: f64 = 0.5;
/// With fewer samples to be expected nothing is told.
const LEAST_EXPECTED: f64 = 50.0;

/// The lines.
pub fn lines(recording: &Recording, options: &Options) -> Vec<String> {
    let costs = &recording.costs;
    let mut lines = vec![
        format!(
            "the recorder used {} of processor time in {} ({}) and made {} passes over the buffers",
            time(costs.recorder),
            time(costs.elapsed),
            share(costs.recorder, costs.elapsed),
            costs.passes,
        ),
        format!(
            "{} buffers of {} KiB, at most {:.0} % full; {} records lost",
            costs.rings,
            costs.ring_bytes / 1024,
            100.0 * costs.fullest as f64 / costs.ring_bytes.max(1) as f64,
            recording.lost,
        ),
    ];
    if recording.samples > 0 {
        let each = |bytes: u64| bytes as f64 / recording.samples as f64;
        let mut line = format!(
            "{:.0} bytes a sample, over all records",
            each(costs.record_bytes)
        );
        if options.compression.is_some() {
            line += &format!(
                "; compressed to {:.0} ({:.1} : 1)",
                each(costs.written_bytes),
                costs.record_bytes as f64 / costs.written_bytes.max(1) as f64
            );
        }
        lines.push(line);
    }
    lines.extend(slow_down(recording, options));
    lines
}

/// A line where samples stand for much less time than the command took. Counting begins anew in
/// each new thread: those that live shorter than the time between two samples have hardly any,
/// with perf as here. `None` where that cannot be told: of a command that was not recorded to its
/// end, of other events, or with losses.
pub fn missed(recording: &Recording, options: &Options) -> Option<String> {
    let hertz = match options.rate {
        None => Options::FREQUENCY,
        Some(Rate::Frequency(hertz)) => hertz,
        Some(Rate::Period(_)) => return None,
    };
    let is_clock = match options.events.as_slice() {
        [] => true,
        [event] => matches!(event.name(), "cpu-clock" | "task-clock"),
        _ => false,
    };
    let is_whole = recording.end == End::Command && recording.lost + recording.throttled == 0;
    // Another warning says why.
    if !is_clock || !is_whole || options.off_cpu || recording.stopped_at_exec {
        return None;
    }
    let program = recording.costs.program?;
    let expected = program.as_secs_f64() * hertz as f64;
    let found = recording.samples as f64 / expected;
    (expected >= LEAST_EXPECTED && found < LEAST_SHARE).then(|| {
        format!(
            "warning: the samples cover {:.0} % of the {} of processor time that the command used: \
             threads shorter than the sampling interval get almost no samples",
            100.0 * found,
            time(program)
        )
    })
}

/// What the samples took from the program: an estimate.
fn slow_down(recording: &Recording, options: &Options) -> Option<String> {
    if recording.samples == 0 {
        return None;
    }
    let Some(each) = sample_cost(options) else {
        return Some("the kernel's time per sample is unknown".into());
    };
    let all = each.saturating_mul(u32::try_from(recording.samples).unwrap_or(u32::MAX));
    let mut line = format!(
        "the kernel needs ≈ {} per sample here, ≈ {} for all samples",
        time(each),
        time(all)
    );
    if let Some(program) = recording.costs.program {
        let without = program.saturating_sub(all);
        line += &format!(
            ": the program used {} of processor time, ≈ {} more than without recording",
            time(program),
            share(all, without)
        );
    }
    Some(line)
}

fn time(time: Duration) -> String {
    proftool::view::number::duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// One time in hundredths of another.
fn share(part: Duration, whole: Duration) -> String {
    format!(
        "{:.2} %",
        100.0 * part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
    )
}
