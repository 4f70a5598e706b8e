//! Removes what no stack shows any more, after stacks were cut.

use crate::base::IdVec;
use crate::trace::{AddressPath, AddressPathId, AddressPaths, FrameId, Trace};

use super::checked::Checked;

impl Checked {
    /// Drops the paths that lead to no sample, and the frames that no path has: what a stack was
    /// cut from is in no view, not even with a weight of 0.
    pub(super) fn drop_unused(&mut self, trace: &Trace) {
        let mut is_used = IdVec::filled(false, self.paths.len());
        for sample in &trace.samples {
            is_used[self.now[sample.path]] = true;
        }
        // Callers come before callees.
        for (id, path) in self.paths.enumerate().rev() {
            if let Some(caller) = path.caller.filter(|_| is_used[id]) {
                is_used[caller] = true;
            }
        }
        let mut frames = IdVec::filled(false, self.frames.len());
        for (id, path) in self.paths.enumerate().filter(|(id, _)| is_used[*id]) {
            frames[path.frame] = true;
            for &place in self.places_of(id).unwrap_or_default() {
                frames[place] = true;
            }
        }
        let frames = self.drop_frames(&frames);
        self.drop_paths(&is_used, &frames);
    }

    /// Keeps these frames. Returns for each its new id.
    fn drop_frames(&mut self, is_used: &IdVec<FrameId, bool>) -> IdVec<FrameId, Option<FrameId>> {
        let mut kept = IdVec::new();
        let mut recorded = 0;
        let mut ids = IdVec::filled(None, is_used.len());
        for (id, &frame) in self.frames.enumerate().filter(|(id, _)| is_used[*id]) {
            recorded += usize::from(id.index() < self.recorded);
            ids[id] = Some(kept.push(frame));
        }
        self.frames = kept;
        self.recorded = recorded;
        ids
    }

    fn drop_paths(
        &mut self,
        is_used: &IdVec<AddressPathId, bool>,
        frames: &IdVec<FrameId, Option<FrameId>>,
    ) {
        let mut kept = AddressPaths::new();
        let mut states = IdVec::new();
        let mut ids: IdVec<AddressPathId, Option<AddressPathId>> =
            IdVec::filled(None, is_used.len());
        for (id, path) in self.paths.enumerate() {
            let Some(frame) = frames[path.frame].filter(|_| is_used[id]) else {
                continue;
            };
            let caller = path.caller.and_then(|caller| ids[caller]);
            ids[id] = Some(kept.push(AddressPath { caller, frame }));
            states.push(self.states[id]);
        }
        let places = std::mem::take(&mut self.places).into_iter();
        let places = places.filter_map(|(path, places)| {
            let places = places.iter().filter_map(|&place| frames[place]);
            Some((ids[path]?, places.collect()))
        });
        self.places = places.collect();
        // What leads to no sample is not asked for.
        let first = AddressPathId::new(0);
        let now = self.now.iter().map(|&id| ids[id].unwrap_or(first));
        self.now = now.collect::<Vec<_>>().into();
        (self.paths, self.states) = (kept, states);
    }
}
