//! The counters of a group in samples, and what the records of several events share.

use super::word;
use crate::perfdata::offsets::Offsets;

const WORD: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) id: u64,
    pub(crate) value: u64,
}

impl Offsets {
    /// What is at the same place in records of this event and of the other one.
    pub(super) fn shared_with(&self, other: &Offsets) -> Offsets {
        fn shared<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.filter(|one| other.as_ref() == Some(one))
        }
        let places = |one: [Option<u8>; 5], other: [Option<u8>; 5]| {
            std::array::from_fn(|at| shared(one[at], other[at]))
        };
        let trailer_words = shared(self.trailer_words, other.trailer_words);
        let trailer = places(self.trailer, other.trailer);
        Offsets {
            sample: places(self.sample, other.sample),
            // Places in a trailer count from its start, which its size tells.
            trailer: trailer.map(|place| place.filter(|_| trailer_words.is_some())),
            trailer_words,
            group: shared(self.group, other.group),
        }
    }

    pub(crate) fn has_counters(&self) -> bool {
        self.group.is_some()
    }

    /// Where the counters of a group are in the body of a sample, as far as the body goes; and the
    /// bytes of each.
    fn counter_bytes(&self, body: &[u8]) -> Option<(std::ops::Range<usize>, usize)> {
        let group = self.group?;
        let nr_at = usize::from(group.nr) * WORD;
        let nr = usize::try_from(word(body, nr_at)?).ok()?;
        let begin = nr_at + WORD + usize::from(group.times) * WORD;
        let stride = usize::from(group.stride) * WORD;
        let end = begin.saturating_add(nr.saturating_mul(stride));
        Some((begin..end.min(body.len()), stride))
    }

    pub(super) fn counters(&self, body: &[u8]) -> impl Iterator<Item = Counter> {
        let (range, stride) = self.counter_bytes(body).unwrap_or((0..0, WORD));
        let counters = body.get(range).unwrap_or_default().chunks_exact(stride);
        counters.filter_map(|counter| {
            Some(Counter {
                value: word(counter, 0)?,
                id: word(counter, WORD)?,
            })
        })
    }

    pub(super) fn change_counters(&self, body: &mut [u8], change: &mut dyn FnMut(u64, u64) -> u64) {
        let (range, stride) = self.counter_bytes(body).unwrap_or((0..0, WORD));
        let counters = body.get_mut(range).unwrap_or_default();
        for counter in counters.chunks_exact_mut(stride) {
            let Some(id) = word(counter, WORD) else {
                return;
            };
            if let Some(value) = counter.first_chunk_mut::<WORD>() {
                *value = change(id, u64::from_ne_bytes(*value)).to_ne_bytes();
            }
        }
    }
}
