//! How far shares may be off, in words.

use super::{Subject, number};
use crate::analysis::sampling_error::{CONFIDENCE, SamplingError};
use crate::base::Event;

/// How unequal weights have to be before the effective number of samples is stated: the number of
/// samples is more than this part larger.
const UNEQUAL: f64 = 1.05;

/// Returns a line on the sampling error of the shares that are shown, or on why there is no error;
/// `None` if nothing is known.
pub fn line(subject: &Subject, error: &SamplingError) -> Option<String> {
    let off_cpu = [Event::off_cpu().name, Event::preempted().name];
    let is_off = off_cpu.contains(&subject.selection.event().name);
    let things = if is_off { "interval" } else { "event" };
    Some(match *error {
        SamplingError::Unknown => return None,
        SamplingError::Census => {
            format!("No sampling error: every {things} was recorded.")
        }
        SamplingError::IncompleteCensus {
            lost,
            throttled,
            intervals,
        } => {
            let parts: Vec<String> = [
                (lost, "record", " lost"),
                (intervals, "interval", " left out"),
                (throttled, "time", " throttled by the kernel"),
            ]
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|&(count, what, how)| {
                let s = if count == 1 { "" } else { "s" };
                format!("{} {what}{s}{how}", number::grouped(count))
            })
            .collect();
            format!(
                "Not every {things} was recorded ({}): the error of shares is unknown.",
                parts.join(", ")
            )
        }
        SamplingError::Sampled {
            effective_samples,
            half_width,
        } => {
            let points = half_width * 100.0;
            let samples = subject.selection.samples();
            let effective = if samples as f64 > effective_samples * UNEQUAL {
                format!(
                    "; their weights differ, so they count as {}",
                    number::grouped(effective_samples.round() as u64)
                )
            } else {
                String::new()
            };
            format!(
                "Sampling error: ±{points:.1} points ({CONFIDENCE} %, if the {} {} \
                 independent{effective}).",
                number::grouped(samples),
                if samples == 1 {
                    "sample is"
                } else {
                    "samples are"
                },
            )
        }
    })
}
