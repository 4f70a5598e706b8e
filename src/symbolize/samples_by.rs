//! Counts the samples whose stacks have frames of a kind, each once, in one walk over the stacks.

use crate::base::IdVec;
use crate::trace::{AddressPathId, AddressPaths, Trace};

use super::repair::Checked;

/// Samples by groups of frames that their stacks have.
pub(super) struct SamplesBy {
    /// How many frames of a group are on the way to the path at hand.
    depth: Vec<u32>,
    /// The samples below the outermost of them.
    pub(super) samples: Vec<u64>,
}

impl SamplesBy {
    pub(super) fn new(groups: usize) -> SamplesBy {
        SamplesBy {
            depth: vec![0; groups],
            samples: vec![0; groups],
        }
    }

    pub(super) fn enter(&mut self, group: usize, samples: u64) {
        if self.depth[group] == 0 {
            self.samples[group] = self.samples[group].saturating_add(samples);
        }
        self.depth[group] += 1;
    }

    pub(super) fn leave(&mut self, group: usize) {
        self.depth[group] -= 1;
    }
}

pub(super) fn samples_below(trace: &Trace, checked: &Checked) -> IdVec<AddressPathId, u64> {
    let mut samples: IdVec<AddressPathId, u64> = IdVec::filled(0, checked.paths.len());
    for sample in &trace.samples {
        let path = checked.now[sample.path];
        samples[path] = samples[path].saturating_add(sample.count);
    }
    for (id, path) in checked.paths.enumerate().rev() {
        if let Some(caller) = path.caller {
            samples[caller] = samples[caller].saturating_add(samples[id]);
        }
    }
    samples
}

/// Enters each path after its caller and leaves it after its callees; `visit` hears which of the
/// two.
pub(super) fn walk(paths: &AddressPaths, mut visit: impl FnMut(AddressPathId, bool)) {
    let mut first: IdVec<AddressPathId, Option<AddressPathId>> = IdVec::filled(None, paths.len());
    let mut next = first.clone();
    let mut outermost = None;
    for (id, path) in paths.enumerate().rev() {
        let place = match path.caller {
            Some(caller) => &mut first[caller],
            None => &mut outermost,
        };
        next[id] = place.replace(id);
    }
    let mut at = outermost;
    while let Some(mut path) = at {
        visit(path, true);
        at = first[path];
        while at.is_none() {
            visit(path, false);
            at = next[path];
            match paths[path].caller {
                Some(caller) if at.is_none() => path = caller,
                _ => break,
            }
        }
    }
}
