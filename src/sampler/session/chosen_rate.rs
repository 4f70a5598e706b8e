//! The requested rate, compared with what the kernel allows.

use super::options::Options;
use crate::sampler::error::{Error, Note};
use crate::sampler::events::rate::Rate;
use crate::sampler::limits::setting;

pub(in crate::sampler) fn rate(
    chosen: Option<Rate>,
    notes: &mut dyn FnMut(Note),
) -> Result<Rate, Error> {
    let limit = setting("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or(u64::MAX);
    within(chosen, limit, notes)
}

fn within(chosen: Option<Rate>, limit: u64, notes: &mut dyn FnMut(Note)) -> Result<Rate, Error> {
    match chosen {
        Some(Rate::Frequency(wanted)) if wanted > limit => Err(Error::Frequency { wanted, limit }),
        Some(rate) => Ok(rate),
        None if Options::FREQUENCY > limit => {
            notes(Note::LowerFrequency { limit });
            Ok(Rate::Frequency(limit.max(1)))
        }
        None => Ok(Rate::Frequency(Options::FREQUENCY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_frequency_is_refused_and_the_usual_one_lowered() {
        let mut notes = Vec::new();
        let mut note = |n| notes.push(n);
        let high = within(Some(Rate::Frequency(200_000)), 100_000, &mut note);
        let (wanted, limit) = match high.unwrap_err() {
            Error::Frequency { wanted, limit } => (wanted, limit),
            other => panic!("{other}"),
        };
        assert_eq!((wanted, limit), (200_000, 100_000));
        let usual = within(None, 500, &mut note).unwrap();
        assert_eq!(usual, Rate::Frequency(500));
        let period = within(Some(Rate::Period(1)), 500, &mut note).unwrap();
        assert_eq!(period, Rate::Period(1));
        assert_eq!(notes, [Note::LowerFrequency { limit: 500 }]);
    }
}
