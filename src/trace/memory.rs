//! Which image an address shows: the mappings of each process and of the kernel, as they change.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashMap;
use rpds::RedBlackTreeMapSync;

use crate::base::{CodeAddress, GeneratedCode};
use crate::perfdata::CallCounts;

use super::{CallerBy, FrameId, ImageId};

/// A range of addresses that shows an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MappedRange {
    /// The first address behind it.
    end: u64,
    image: ImageId,
    /// What to add to an address to get the address in the image (wrapping).
    shift: u64,
}

/// Mappings that do not overlap, by start. Generated code lies over them: the memory that it is in
/// may be mapped again, as when its protection changes, and the code is still there.
///
/// A clone shares what neither changes. A recording can fork often a process with many mappings
/// and change one of them each time: whole copies would take memory by the product of the two.
#[derive(Clone, Debug)]
pub(super) struct Mappings {
    ranges: Ranges,
    generated: Ranges,
    /// Stubs that count calls: an address in one stands for the call that led there.
    stubs: Vec<Stubs>,
}

/// A range of addresses with stubs of one file.
#[derive(Clone, Debug)]
pub(super) struct Stubs {
    pub(super) start: u64,
    /// The first address behind it.
    pub(super) end: u64,
    pub(super) counts: Arc<CallCounts>,
    pub(super) shown: Shown,
}

/// What a mapping of the recorder's memory shows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    /// The stubs of the file at this place among those whose calls are counted.
    Image(usize),
    /// The code that reports what a program loads and executes: its place among the agents.
    Agent(usize),
}

impl Stubs {
    /// The site of the stub at an address, and the bytes that are on the stack now and were not
    /// there.
    fn site(&self, address: u64) -> Option<(u64, u64)> {
        let offset = address.checked_sub(self.start)?;
        if address >= self.end {
            return None;
        }
        let image = match self.shown {
            Shown::Image(image) => self.counts.images.get(image)?,
            Shown::Agent(agent) => return self.counts.agents.get(agent)?.site(offset),
        };
        let (site, pushed) = image.site_of_stub(offset)?;
        // Another process may have both the file and the stubs elsewhere, as far from each other.
        let moved = match image.stubs_at {
            0 => 0,
            at => self.start.wrapping_sub(at),
        };
        Some((site.wrapping_add(moved), pushed))
    }
}

type Ranges = RedBlackTreeMapSync<u64, MappedRange>;

impl Default for Mappings {
    fn default() -> Mappings {
        Mappings {
            ranges: Ranges::new_sync(),
            generated: Ranges::new_sync(),
            stubs: Vec::new(),
        }
    }
}

impl Mappings {
    /// Maps `start..end` to `image`; what was mapped there before is gone. `base` is the address
    /// in the image that `start` shows.
    pub(super) fn map(&mut self, start: u64, end: u64, image: ImageId, base: u64) {
        self.unmap(start, end);
        let shift = base.wrapping_sub(start);
        self.ranges
            .insert_mut(start, MappedRange { end, image, shift });
    }

    /// Forgets what is mapped in `start..end`; what reaches over its borders is trimmed.
    pub(super) fn unmap(&mut self, start: u64, end: u64) {
        clear(&mut self.ranges, start, end);
        self.stubs
            .retain(|stubs| stubs.end <= start || end <= stubs.start);
    }

    pub(super) fn map_stubs(&mut self, stubs: Stubs) {
        self.unmap(stubs.start, stubs.end);
        self.stubs.push(stubs);
    }

    /// The call site whose stub is at an address, and the bytes that are on the stack now and were
    /// not there.
    fn site(&self, address: u64) -> Option<(u64, u64)> {
        self.stubs.iter().find_map(|stubs| stubs.site(address))
    }

    /// Puts generated code into memory, over what was generated there before. `image` lists it.
    pub(super) fn generate(&mut self, code: &GeneratedCode, image: ImageId) {
        if let Some(from) = code.moved_from {
            clear(&mut self.generated, from, from.saturating_add(code.size));
        }
        let (start, end) = (code.start, code.start.saturating_add(code.size));
        clear(&mut self.generated, start, end);
        let shift = code.place.wrapping_sub(start);
        self.generated
            .insert_mut(start, MappedRange { end, image, shift });
    }

    pub(super) fn ungenerate(&mut self, start: u64, end: u64) {
        if !self.generated.is_empty() {
            clear(&mut self.generated, start, end);
        }
    }

    /// The parts of `start..end` at which something is mapped: each range, its image, and the
    /// address in the image that it begins with.
    fn shown(&self, start: u64, end: u64) -> Vec<((u64, u64), ImageId, u64)> {
        let before = self.ranges.range(..start).next_back();
        let ranges = before.into_iter().chain(self.ranges.range(start..end));
        let parts = ranges.map(|(&begin, range)| {
            let (from, to) = (begin.max(start), range.end.min(end));
            ((from, to), range.image, from.wrapping_add(range.shift))
        });
        parts.filter(|((from, to), ..)| from < to).collect()
    }

    fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn renamed(&self, new: &mut dyn FnMut(ImageId) -> ImageId) -> Mappings {
        let mut renamed = |ranges: &Ranges| {
            let ranges = ranges.iter().map(|(&start, &range)| {
                let image = new(range.image);
                (start, MappedRange { image, ..range })
            });
            ranges.collect()
        };
        Mappings {
            ranges: renamed(&self.ranges),
            generated: renamed(&self.generated),
            stubs: self.stubs.clone(),
        }
    }

    fn find(&self, address: u64) -> Option<(ImageId, u64)> {
        let find = |ranges: &Ranges, address: u64| {
            let (_, range) = ranges.range(..=address).next_back()?;
            (address < range.end).then(|| (range.image, address.wrapping_add(range.shift)))
        };
        if let Some((site, _)) = self.site(address) {
            return find(&self.ranges, site);
        }
        let generated = (!self.generated.is_empty()).then(|| find(&self.generated, address));
        generated.flatten().or_else(|| find(&self.ranges, address))
    }
}

/// Removes `start..end`; what reaches over its borders is trimmed.
fn clear(ranges: &mut Ranges, start: u64, end: u64) {
    if let Some((&before, &range)) = ranges.range(..start).next_back()
        && range.end > start
    {
        let trimmed = MappedRange {
            end: start,
            ..range
        };
        ranges.insert_mut(before, trimmed);
        if range.end > end {
            ranges.insert_mut(end, range);
        }
    }
    let inside: Vec<(u64, MappedRange)> = ranges
        .range(start..end)
        .map(|(&s, &range)| (s, range))
        .collect();
    for (begin, range) in inside {
        ranges.remove_mut(&begin);
        if range.end > end {
            ranges.insert_mut(end, range);
        }
    }
}

/// What is mapped in a process at one moment.
#[derive(Clone, Debug, Default)]
struct Maps {
    now: Mappings,
    /// What was mapped before the last exec, until the new program runs: while the kernel loads
    /// it, the user's registers are still those of the old one.
    before_exec: Mappings,
}

impl Maps {
    fn find(&self, address: u64) -> Option<(ImageId, u64)> {
        let found = self.now.find(address);
        found.or_else(|| self.before_exec.find(address))
    }

    fn find_code(&self, address: CodeAddress) -> Option<(ImageId, CodeAddress)> {
        // A call at the very end of a mapping returns to the address behind it.
        let (image, at) = self.find(address.lookup())?;
        Some(match address {
            CodeAddress::Instruction(_) => (image, CodeAddress::Instruction(at)),
            CodeAddress::Return(_) => (image, CodeAddress::Return(at.wrapping_add(1))),
            CodeAddress::InKernel { entry, .. } => {
                (image, CodeAddress::InKernel { address: at, entry })
            }
        })
    }
}

/// The memory of a process at one moment, for those who look at it later.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Tells it from all others of a recording.
    pub(super) number: u32,
    maps: Maps,
}

impl Snapshot {
    pub(super) fn find(&self, address: u64) -> Option<(ImageId, u64)> {
        self.maps.find(address)
    }

    pub(super) fn find_code(&self, address: CodeAddress) -> Option<(ImageId, CodeAddress)> {
        self.maps.find_code(address)
    }
}

/// The frames of addresses, and whether they are mapped.
pub(super) type FrameTable = HashMap<FrameKey, (FrameId, bool)>;

/// An address, what kind of one it is, and how its caller is found: two words, as every frame of
/// every new chain is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameKey {
    address: u64,
    /// From the lowest bit on: 2 bits for how the caller is found, 2 for the kind, 32 for how the
    /// kernel was entered.
    kind: u64,
}

impl FrameKey {
    pub(super) fn of(address: CodeAddress, caller_by: CallerBy) -> FrameKey {
        let (kind, entry) = match address {
            CodeAddress::Instruction(_) => (0, 0),
            CodeAddress::Return(_) => (1, 0),
            CodeAddress::InKernel { entry, .. } => (2, entry),
        };
        let by = match caller_by {
            CallerBy::Rules => 0,
            CallerBy::Copy => 1,
            CallerBy::FramePointer => 2,
        };
        FrameKey {
            address: address.recorded(),
            kind: u64::from(entry) << 4 | kind << 2 | by,
        }
    }
}

impl Hash for FrameKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.address.rotate_left(4) ^ self.kind);
    }
}

/// The frames of addresses in the memory of one process, as long as that does not change.
#[derive(Debug, Default)]
pub(super) struct FoundNow {
    state: (u32, u32),
    found: FrameTable,
}

impl FoundNow {
    /// What was found in memory of this state: see [`ProcessMemory::state`].
    pub(super) fn at(&mut self, state: (u32, u32)) -> &mut FrameTable {
        if self.state != state {
            self.state = state;
            self.found.clear();
        }
        &mut self.found
    }
}

#[derive(Debug, Default)]
pub(super) struct ProcessMemory {
    maps: Maps,
    /// Tells it from an earlier process of its number.
    birth: u32,
    /// Counts the changes; frames that were looked up before a change are looked up again.
    generation: u32,
    /// The memory as it is since the last change.
    snapshot: Option<Arc<Snapshot>>,
    /// The file of the program: the kernel maps it before all others.
    program: Option<ImageId>,
    /// When the process or its program started, if that was recorded.
    began: Option<u64>,
}

impl ProcessMemory {
    /// A process without memory. `birth` is no other process's.
    pub(super) fn born(birth: u32, began: Option<u64>) -> ProcessMemory {
        ProcessMemory {
            birth,
            began,
            ..ProcessMemory::default()
        }
    }

    /// Which process it is, and how often its memory has changed.
    pub(super) fn state(&self) -> (u32, u32) {
        (self.birth, self.generation)
    }

    /// A process that begins with a copy of its parent's memory. `birth` is no other process's.
    pub(super) fn forked(&self, birth: u32, began: Option<u64>) -> ProcessMemory {
        ProcessMemory {
            birth,
            began,
            maps: self.maps.clone(),
            program: self.program,
            ..ProcessMemory::default()
        }
    }

    pub(super) fn renamed(&self, new: &mut dyn FnMut(ImageId) -> ImageId) -> ProcessMemory {
        ProcessMemory {
            birth: self.birth,
            generation: self.generation,
            maps: Maps {
                now: self.maps.now.renamed(new),
                before_exec: self.maps.before_exec.renamed(new),
            },
            program: self.program.map(new),
            began: self.began,
            ..ProcessMemory::default()
        }
    }

    pub(super) fn find(&self, address: CodeAddress) -> Option<(ImageId, CodeAddress)> {
        self.maps.find_code(address)
    }

    /// What was mapped in `start..end` until now: see [`Mappings::shown`].
    pub(super) fn shown(&self, start: u64, end: u64) -> Vec<((u64, u64), ImageId, u64)> {
        self.maps.now.shown(start, end)
    }

    pub(super) fn images(&self) -> impl Iterator<Item = ImageId> {
        self.maps.now.ranges.values().map(|range| range.image)
    }

    pub(super) fn program(&self) -> Option<ImageId> {
        self.program
    }

    /// When the process or its program started, by the clock of the records, if that was recorded.
    pub(super) fn began(&self) -> Option<u64> {
        self.began
    }

    /// A file was mapped. The first one is the program.
    pub(super) fn has_file(&mut self, image: ImageId) {
        self.program.get_or_insert(image);
    }

    /// The call site whose stub is at an address, and the bytes that are on the stack now and were
    /// not there.
    pub(super) fn site(&self, address: u64) -> Option<(u64, u64)> {
        self.maps.now.site(address)
    }

    pub(super) fn change(&mut self, change: impl FnOnce(&mut Mappings)) {
        change(&mut self.maps.now);
        self.changed();
    }

    /// A new program has replaced the old one.
    pub(super) fn exec(&mut self, time: Option<u64>) {
        self.began = time.or(self.began);
        self.maps.before_exec = std::mem::take(&mut self.maps.now);
        self.program = None;
        self.changed();
    }

    /// Whether the last program's memory still counts.
    pub(super) fn is_in_exec(&self) -> bool {
        !self.maps.before_exec.is_empty()
    }

    /// The program counter of its user is here.
    pub(super) fn is_at(&mut self, program_counter: u64) {
        // Where only the new program has code, that runs.
        let Maps { now, before_exec } = &self.maps;
        if self.is_in_exec()
            && now.find(program_counter).is_some()
            && before_exec.find(program_counter).is_none()
        {
            self.runs();
        }
    }

    /// The program runs: a sample was taken in user space.
    pub(super) fn runs(&mut self) {
        if self.is_in_exec() {
            self.maps.before_exec = Mappings::default();
            self.changed();
        }
    }

    /// The memory as it is now. `number` counts the snapshots.
    pub(super) fn snapshot(&mut self, number: &mut u32) -> Arc<Snapshot> {
        let maps = &self.maps;
        let snapshot = self.snapshot.get_or_insert_with(|| {
            *number += 1;
            Arc::new(Snapshot {
                number: *number,
                maps: maps.clone(),
            })
        });
        snapshot.clone()
    }

    fn changed(&mut self) {
        self.generation += 1;
        self.snapshot = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_mapping_replaces_only_what_it_covers() {
        let (old, new) = (ImageId::new(0), ImageId::new(1));
        let mut mappings = Mappings::default();
        mappings.map(0x1000, 0x5000, old, 0);
        mappings.map(0x2000, 0x3000, new, 0x700);
        assert_eq!(mappings.find(0x0fff), None);
        assert_eq!(mappings.find(0x1fff), Some((old, 0xfff)));
        assert_eq!(mappings.find(0x2001), Some((new, 0x701)));
        assert_eq!(mappings.find(0x3000), Some((old, 0x2000)));
        assert_eq!(mappings.find(0x5000), None);
    }

    #[test]
    fn a_change_after_a_fork_affects_one_process_only() {
        let (old, new) = (ImageId::new(0), ImageId::new(1));
        let mut parent = ProcessMemory::default();
        parent.change(|m| m.map(0x1000, 0x5000, old, 0));
        let mut child = parent.forked(1, None);
        child.change(|m| m.map(0x2000, 0x3000, new, 0));
        parent.change(|m| m.unmap(0x4000, 0x5000));
        let image = |process: &ProcessMemory, address| {
            process
                .find(CodeAddress::Instruction(address))
                .map(|(image, _)| image)
        };
        assert_eq!(image(&child, 0x2000), Some(new));
        assert_eq!(image(&child, 0x4000), Some(old));
        assert_eq!(image(&parent, 0x2000), Some(old));
        assert_eq!(image(&parent, 0x4000), None);
    }
}
