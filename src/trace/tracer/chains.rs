//! What the tracer does about samples whose call chain occurred before.

use crate::base::WeightSum;
use crate::perfdata::{Body, Record, Sample, Words};

use super::super::chain;
use super::super::known_chains::{Circumstances, Key, KnownChains};
use super::super::samples::SampleKey;
use super::super::{TraceEventId, TraceThreadId};
use super::Tracer;

/// What is known of the chain of a sample.
pub(super) enum ByChain {
    /// It occurred before, is in this place, and the sample was counted.
    Counted(usize),
    /// It is new, and is remembered by this key, if there is one.
    New(Option<Key>),
}

/// The key of a chain, which was found before its sample was taken.
pub(super) struct Ahead {
    circumstances: Circumstances,
    key: Key,
}

/// The chain of a sample, if that is its whole stack.
fn whole_chain<'a>(sample: &Sample<'a>) -> Option<Words<'a>> {
    // One with branches has more to its stack than the chain.
    let chain = sample.callchain.filter(|_| sample.branches.is_none());
    chain.filter(|chain| !chain.is_empty())
}

impl Tracer<'_, '_, '_> {
    /// Finds the keys of the chains of records that are to be taken next, and touches what is known
    /// of these chains. A processor waits for all of these places in memory at once, where it would
    /// wait for one after the other.
    pub(super) fn look_ahead(&mut self, records: &[Record<'_>], ahead: &mut Vec<Option<Ahead>>) {
        ahead.clear();
        if records.len() < 2 {
            return;
        }
        ahead.extend(records.iter().map(|record| self.ahead_of(record)));
        for Ahead { key, .. } in ahead.iter().flatten() {
            self.known_chains.touch(*key);
        }
    }

    fn ahead_of(&mut self, record: &Record<'_>) -> Option<Ahead> {
        let Body::Sample(sample) = &record.body else {
            return None;
        };
        // One with a copy of the stack is not counted by its chain.
        let chain = whole_chain(sample).filter(|_| sample.user_registers.is_none())?;
        let pid = sample.pid.unwrap_or(-1);
        let thread = self.threads.known(pid, sample.tid.unwrap_or(pid))?;
        let circumstances = self.circumstances(record, (sample, chain), (pid, thread));
        let key = self.known_chains.key(chain, circumstances);
        Some(Ahead { circumstances, key })
    }

    fn circumstances(
        &self,
        record: &Record<'_>,
        (sample, chain): (&Sample<'_>, Words<'_>),
        (pid, thread): (i32, TraceThreadId),
    ) -> Circumstances {
        Circumstances {
            pid,
            thread,
            memory: self.stacks.memory(pid),
            misc: record.misc,
            event: sample.event,
            ip: chain::running_outside(sample, chain, record.cpu_mode()),
            is_unwound: sample.is_unwound,
            is_shallow: None,
        }
    }

    /// Counts a sample if its chain occurred before under the same circumstances.
    pub(super) fn count_by_chain(
        &mut self,
        record: &Record<'_>,
        sample: &Sample<'_>,
        (pid, thread): (i32, TraceThreadId),
        (weight, ahead): (u64, Option<Ahead>),
    ) -> ByChain {
        let event = TraceEventId::new(sample.event);
        let Some(chain) = whole_chain(sample) else {
            return ByChain::New(None);
        };
        // A weight that is to be cut is not counted by chain.
        if !self.samples.has_room(event, weight) {
            return ByChain::New(None);
        }
        let circumstances = self.circumstances(record, (sample, chain), (pid, thread));
        // The records between may have changed them.
        let ahead = ahead.filter(|ahead| ahead.circumstances == circumstances);
        let mut key = match ahead {
            Some(ahead) => ahead.key,
            None => self.known_chains.key(chain, circumstances),
        };
        let mut known = self.known_chains.count(key, weight);
        // Where frame pointers lead astray, hardly two chains are equal, but many are up to there.
        if known.is_none()
            && !sample.is_unwound
            && let Some((end, is_shallow)) = self.stacks.goes_astray(chain, record.cpu_mode(), pid)
        {
            let circumstances = Circumstances {
                is_shallow: Some(is_shallow),
                ..circumstances
            };
            key = self.known_chains.key(chain.first(end), circumstances);
            known = self.known_chains.count(key, weight);
            if known.is_some() {
                self.stacks.course.found();
            }
        }
        match known {
            Some(chain) => {
                self.samples.take_room(event, weight);
                ByChain::Counted(chain)
            }
            None => ByChain::New(Some(key)),
        }
    }

    /// Takes what was counted by chain since the last time, and notes what is to be said of the
    /// stacks. Its weights have been accepted.
    pub(in crate::trace) fn take_chains(&mut self) -> Vec<(SampleKey, WeightSum)> {
        let mut chains = std::mem::replace(&mut self.known_chains, KnownChains::new());
        let mut rows = Vec::new();
        for (stack, sample, sum) in chains.take_sums() {
            let room = self.rooms.get(sample.event).copied().unwrap_or(0);
            self.note(stack, sum.count, room);
            rows.push((sample, sum));
        }
        self.known_chains = chains;
        rows
    }

    pub(in crate::trace) fn count_chains(&mut self) {
        for (sample, sum) in self.take_chains() {
            self.samples.add_accepted(sample, sum);
        }
    }
}
