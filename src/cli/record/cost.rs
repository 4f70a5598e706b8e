//! What `record --verbose` reports at the end: what the recording cost.

use std::time::Duration;

use proftool::sampler::{Options, Recording, sample_cost};

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
            "{:.0} bytes per sample, counting all records",
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

// What the samples took from the program: an estimate.
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
        line += &format!(": the program used {} of processor time", time(program));
        // An estimate of most of the time says nothing of the rest: switches cost less than
        // samples.
        if all < without {
            line += &format!(", ≈ {} more than without recording", share(all, without));
        }
    }
    Some(line)
}

fn time(time: Duration) -> String {
    proftool::view::number::duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

// One time in hundredths of another.
fn share(part: Duration, whole: Duration) -> String {
    format!(
        "{:.2} %",
        100.0 * part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
    )
}
