//! What a recording costs: the recorder's own time, and the slowdown of the program.
//!
//! The kernel does not report how long taking a sample takes. But a thread that only reads the
//! clock sees each interruption as a gap between two readings:
//!
//! ```text
//!   looks   | | | | | |          | | | | | | | | | | |          | | |
//!                     └─ sample ─┘                   └─ sample ─┘
//! ```
//!
//! So this thread records itself for a moment, with the options of the recording, and takes the
//! median of the longest gaps, as many as there were samples. This includes everything, also the
//! interrupt and the programming of the timer, except for the effect on the program's caches. The
//! thread's own stack stands in for those of the program: if they are far deeper, samples take
//! longer.

use std::time::{Duration, Instant};

use super::Session;
use super::options::Options;
use crate::sampler::kernel::{self, Usage};
use crate::sampler::output::log::Log;
use crate::sampler::output::tally::Tally;
use crate::sampler::{Rate, Target, limits};

// How long this thread records itself; longer than `LOST` it does not run in one gap.
const TRIAL: Duration = Duration::from_millis(60);
const LOST: Duration = Duration::from_millis(1);
// When it gives up, where others have the processor.
const TRIAL_MAX: Duration = Duration::from_millis(500);
// How often; more often than usual, for many samples in a short time.
const TRIAL_HERTZ: u64 = 3989;
// Fewer samples say nothing about the middle.
const TRIAL_SAMPLES: usize = 20;

/// The costs of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Costs {
    /// From the beginning of the recording to its end.
    pub elapsed: Duration,
    /// The processor time of the recorder meanwhile, user and system.
    pub recorder: Duration,
    /// The processor time of the command and all of its processes that were waited for, if they
    /// were what was recorded. Taking the samples is in it.
    pub program: Option<Duration>,
    /// How often the recorder went over the ring buffers.
    pub passes: u64,
    /// How many ring buffers there were.
    pub rings: usize,
    /// The bytes of each.
    pub ring_bytes: u64,
    /// The most bytes that were waiting in one of them.
    pub fullest: u64,
    /// Bytes of records, before they were compressed.
    pub record_bytes: u64,
    /// Bytes of records in the file.
    pub written_bytes: u64,
}

pub(in crate::sampler) struct Meter {
    began: Instant,
    used: Duration,
}

impl Meter {
    pub(in crate::sampler) fn start() -> Meter {
        Meter {
            began: Instant::now(),
            used: kernel::processor_time(Usage::Own),
        }
    }

    pub(in crate::sampler) fn read<W: std::io::Write + std::io::Seek>(
        &self,
        session: &Session,
        log: &Log<W>,
    ) -> Costs {
        let (rings, ring_bytes, fullest) = session.rings();
        let written_bytes = log.data_size();
        Costs {
            elapsed: self.began.elapsed(),
            recorder: kernel::processor_time(Usage::Own).saturating_sub(self.used),
            program: None,
            passes: log.passes(),
            rings,
            ring_bytes,
            fullest,
            record_bytes: log.drained_bytes(),
            written_bytes,
        }
    }
}

impl Costs {
    /// The processor time of the commands of this process that were waited for.
    pub(in crate::sampler) fn commands() -> Duration {
        kernel::processor_time(Usage::Children)
    }
}

/// Estimates how long one sample takes with these options, as this module's page describes; `None`
/// where the events do not interrupt a program that only computes. The estimate takes a tenth of a
/// second, or half a second on a busy processor.
pub fn sample_cost(options: &Options) -> Option<Duration> {
    let limit = limits::setting("/proc/sys/kernel/perf_event_max_sample_rate");
    let options = Options {
        rate: Some(Rate::Frequency(
            TRIAL_HERTZ.min(limit.unwrap_or(u64::MAX)).max(1),
        )),
        ..options.clone()
    };
    let own = Target::Threads(vec![kernel::thread_id()]);
    let mut session = Session::open(&options, &own, &mut |_| ()).ok()?;
    let mut gaps = Vec::with_capacity(1 << 16);
    let begin = Instant::now();
    let mut last = begin;
    let mut shortest = LOST;
    let mut busy = Duration::ZERO;
    while busy < TRIAL && last - begin < TRIAL_MAX {
        let now = Instant::now();
        let gap = now - last;
        shortest = shortest.min(gap);
        busy += gap.min(LOST);
        // No sample is taken in the time of a few looks.
        if gap > shortest * 4 && gaps.len() < gaps.capacity() {
            gaps.push(gap);
        }
        last = now;
    }
    session.stop();
    let mut tally = Tally::new(session.events());
    let drained = session.drain(&mut |records| {
        tally.count(records);
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(_) = drained;
    middle(gaps, usize::try_from(tally.samples).ok()?)
}

fn middle(mut gaps: Vec<Duration>, samples: usize) -> Option<Duration> {
    if samples < TRIAL_SAMPLES || gaps.len() < samples {
        return None;
    }
    gaps.sort_by(|one, other| other.cmp(one));
    Some(gaps[samples / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_without_samples_do_not_count() {
        let micros = |n| Duration::from_micros(n);
        // The recorder lost the processor twice; the clock was slow many times.
        let gaps = [
            vec![micros(4000); 2],
            vec![micros(3); 60],
            vec![micros(1); 900],
        ]
        .concat();
        assert_eq!(middle(gaps.clone(), 62), Some(micros(3)));
        assert_eq!(middle(gaps.clone(), 19), None);
        assert_eq!(middle(gaps, 1000), None);
    }
}
