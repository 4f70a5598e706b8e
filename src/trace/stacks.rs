//! From the call chain of a sample to the path of its stack.
//!
//! Most of the work is avoided: a chain that occurred before is known as a whole, and the outer
//! part of a new one is mostly that of the thread's last chain.

mod astray;
mod find;
pub(super) mod generators;

use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashMap;

use crate::base::{BROKEN, CaveatKind, Detail, Distinct, IdVec, NO_ADDRESS, TRUNCATED};
use crate::perfdata::{Attr, Record, Sample};

use super::chain::{self, Link, Space};
use super::image::mark_image;
use super::memory::{FoundNow, FrameTable, ProcessMemory, Snapshot};
use super::paths::{AddressPath, DistinctPaths};
use super::stack_copies::{Copy, Unwound};
use super::{AddressPathId, CallerBy, FrameAddress, FrameId, Image, ImageId, ImageKind};

// The name of images of unmapped addresses: each process may have one.
static UNMAPPED: LazyLock<Arc<str>> = LazyLock::new(|| "[unmapped]".into());

/// The stack of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    pub(super) path: AddressPathId,
    /// What is to be said of its outer end.
    pub(super) flaw: Option<CaveatKind>,
    /// What is to be said of where its innermost frame is.
    pub(super) place: Option<CaveatKind>,
    pub(super) has_user_frames: bool,
    /// Whether these are two at most.
    pub(super) is_shallow: bool,
}

/// The state of a process's memory and of the kernel's: which process, and how often it had
/// changed.
pub(super) type Memory = ((u32, u32), (u32, u32));

/// The last stack of a thread; what the next one shares with it needs no look-up.
#[derive(Debug, Default)]
struct LastStack {
    /// What the paths depend on apart from the links: the process, how often its memory and the
    /// kernel's had changed, and the mark under which they hang.
    valid_for: (i32, Memory, Option<AddressPathId>),
    links: Vec<Link>,
    paths: Vec<AddressPathId>,
}

/// The process that a stack's user part is found in.
#[derive(Clone, Copy)]
enum User<'a> {
    /// As it is now.
    Now(i32),
    /// As it was.
    Past(i32, &'a Snapshot),
}

// A record has 64 KiB at most, in bytes: larger copies would not be much larger.
const LARGEST_COPY: u64 = 60 << 10;
// Of how many snapshots of memory the frames are remembered.
const PAST: usize = 32;
// More processes as they are, and last stacks of threads, are forgotten.
const NOW: usize = 1024;

/// How the user's part of a stack was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Every address is in a mapping.
    Mapped,
    /// The innermost is not, so nothing can be said of the others.
    Unmapped,
    /// The innermost is, another is not.
    Broken,
}

/// Everything that stacks are made of: memory, and the tables of images, frames and paths.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    pub(super) images: Distinct<ImageId, Image>,
    pub(super) frames: Distinct<FrameId, FrameAddress>,
    pub(super) paths: DistinctPaths,
    pub(super) processes: FxHashMap<i32, ProcessMemory>,
    pub(super) kernel: ProcessMemory,
    /// How many processes began.
    births: u32,
    last: FxHashMap<i32, LastStack>,
    /// The frames of addresses as they are mapped now: in the kernel, and in processes by number.
    /// A process that nothing was mapped in has frames, too.
    kernel_found: FoundNow,
    now: FxHashMap<i32, FoundNow>,
    /// The frames of addresses in snapshots, by the snapshot's number.
    past: FxHashMap<u32, FrameTable>,
    links: Vec<Link>,
    found: Vec<FrameId>,
    /// Whether chains lead astray.
    pub(super) course: astray::Course,
    /// Which images were hit, and those of them that were not announced yet.
    hit: Vec<bool>,
    new_hits: Vec<ImageId>,
}

/// The mark that stands for the outer callers that are missing for this reason.
fn root_of(flaw: CaveatKind) -> &'static str {
    match flaw {
        CaveatKind::NoUnwindRules | CaveatKind::BrokenStack | CaveatKind::BrokenCopy => BROKEN,
        _ => TRUNCATED,
    }
}

impl Stacks {
    pub(super) fn tell_hits(&mut self, tell: &mut dyn FnMut(&Image)) {
        for image in self.new_hits.drain(..) {
            tell(&self.images.rows()[image]);
        }
    }

    /// The state of a process's memory and of the kernel's.
    pub(super) fn memory(&self, pid: i32) -> Memory {
        let process = self
            .processes
            .get(&pid)
            .map_or((0, 0), ProcessMemory::state);
        (process, self.kernel.state())
    }

    /// What a process has in memory where it was copied, and whether it was replacing its program.
    /// The stack is unwound later, when the mappings may be others.
    pub(super) fn memory_at(
        &mut self,
        pid: i32,
        copy: &mut Copy<'_>,
        snapshots: &mut u32,
    ) -> (Arc<Snapshot>, bool) {
        let process = self.processes.entry(pid).or_default();
        process.is_at(copy.program_counter);
        if let Some(site) = process.site(copy.program_counter) {
            copy.back_at(site);
        }
        (process.snapshot(snapshots), process.is_in_exec())
    }

    pub(super) fn fork(&mut self, pid: i32, parent: i32, copies: bool, time: Option<u64>) {
        self.births += 1;
        let child = match self.processes.get(&parent) {
            Some(parent) if copies => parent.forked(self.births, time),
            _ => ProcessMemory::born(self.births, time),
        };
        self.processes.insert(pid, child);
    }

    /// The same processes and none of the stacks, in tables of their own. What refers to images by
    /// their ids has to be renamed by what is returned: for each image its new id.
    pub(super) fn emptied(&self) -> (Stacks, IdVec<ImageId, Option<ImageId>>) {
        let mut fresh = Stacks {
            births: self.births,
            ..Stacks::default()
        };
        let mut ids = IdVec::filled(None, self.images.rows().len());
        let images = &mut fresh.images;
        let mut rename =
            |id| *ids[id].get_or_insert_with(|| images.id_of(self.images.rows()[id].clone()));
        let processes = self.processes.iter();
        fresh.processes = processes
            .map(|(&pid, process)| (pid, process.renamed(&mut rename)))
            .collect();
        fresh.kernel = self.kernel.renamed(&mut rename);
        (fresh, ids)
    }

    /// Takes those paths of other tables that are `wanted`, which includes the callers of each.
    /// Returns their ids here.
    pub(super) fn take_paths(
        &mut self,
        other: &Stacks,
        images: &mut IdVec<ImageId, Option<ImageId>>,
        wanted: &IdVec<AddressPathId, bool>,
    ) -> IdVec<AddressPathId, Option<AddressPathId>> {
        let mut ids = IdVec::filled(None, wanted.len());
        for (id, path) in other.paths.rows().enumerate().filter(|(id, _)| wanted[*id]) {
            let frame = other.frames.rows()[path.frame];
            let image = frame.image;
            let image = *images[image]
                .get_or_insert_with(|| self.images.id_of(other.images.rows()[image].clone()));
            let frame = self.frame(FrameAddress { image, ..frame });
            let caller = path.caller.and_then(|caller| ids[caller]);
            ids[id] = Some(self.paths.id_of(AddressPath { caller, frame }));
        }
        // These images were announced.
        self.new_hits.clear();
        ids
    }

    /// A thread ended: nothing is shared with the next one of its number.
    pub(super) fn forget(&mut self, tid: i32) {
        self.last.remove(&tid);
    }

    pub(super) fn forget_process(&mut self, pid: i32) {
        self.processes.remove(&pid);
        self.now.remove(&pid);
    }

    pub(super) fn stack(
        &mut self,
        record: &Record<'_>,
        sample: &Sample<'_>,
        attr: &Attr,
        (pid, tid): (i32, i32),
    ) -> Stack {
        if sample.is_unwound {
            return self.unwound_chain(record, sample, attr, (pid, tid));
        }
        let mut links = std::mem::take(&mut self.links);
        let shape = chain::links(sample, record.cpu_mode(), attr, &mut links);
        let broken = CaveatKind::BrokenStack;
        let root = shape.cut.then_some((TRUNCATED, CaveatKind::CutStack));
        let (path, is_broken) = self.path(User::Now(pid), tid, &links, root, broken);
        self.links = links;
        self.course.note(is_broken);
        Stack {
            path,
            flaw: if is_broken {
                Some(broken)
            } else {
                shape.cut.then_some(CaveatKind::CutStack)
            },
            place: self.place(path),
            has_user_frames: shape.user_frames > 0 && sample.callchain.is_some(),
            is_shallow: shape.user_frames <= 2,
        }
    }

    /// The stack of a chain that its recorder has unwound.
    fn unwound_chain(
        &mut self,
        record: &Record<'_>,
        sample: &Sample<'_>,
        attr: &Attr,
        (pid, tid): (i32, i32),
    ) -> Stack {
        let mut links = std::mem::take(&mut self.links);
        let mode = record.cpu_mode();
        let (end, is_by_pointers) = chain::unwound_links(sample, mode, attr, &mut links);
        let process = self.processes.get(&pid);
        let is_in_exec = process.is_some_and(ProcessMemory::is_in_exec);
        if chain::is_in_kernel(mode, attr) && (is_by_pointers || !is_in_exec) {
            chain::enter_kernel(&mut links);
        }
        let stack = self.hang(User::Now(pid), tid, &links, end);
        self.links = links;
        stack
    }

    pub(super) fn unwound(&mut self, unwound: &Unwound<'_>) -> Stack {
        let &Unwound { sample, joined, .. } = unwound;
        let copied = sample.copied;
        let mut links = std::mem::take(&mut self.links);
        links.clear();
        let frames = copied.user_frames(unwound.frames, joined);
        links.extend(frames.map(|(address, caller_by)| Link {
            space: Space::User,
            address,
            caller_by,
        }));
        links.reverse();
        links.extend_from_slice(unwound.kernel);
        if copied.is_in_kernel && !copied.is_in_exec {
            chain::enter_kernel(&mut links);
        }
        let user = User::Past(sample.pid, unwound.memory);
        let stack = self.hang(user, sample.tid, &links, copied.flaw(joined));
        self.links = links;
        stack
    }

    /// The stack of links, outermost first, whose outermost frame is missing for this reason.
    fn hang(
        &mut self,
        user: User<'_>,
        tid: i32,
        links: &[Link],
        flaw: Option<CaveatKind>,
    ) -> Stack {
        let mut of_user = links.iter().filter(|link| link.space == Space::User);
        let broken = match of_user.clone().next() {
            Some(link) if link.caller_by == CallerBy::FramePointer => CaveatKind::BrokenStack,
            _ => CaveatKind::BrokenCopy,
        };
        // A program counter outside of all mappings has a caveat of its own.
        let innermost = of_user.next_back().copied();
        let is_mapped = innermost.is_some_and(|link| self.place_of(user, link).is_some());
        let flaw = flaw.filter(|_| is_mapped);
        let root = flaw.map(|flaw| (root_of(flaw), flaw));
        let (path, is_broken) = self.path(user, tid, links, root, broken);
        Stack {
            path,
            flaw: if is_broken { Some(broken) } else { flaw },
            place: self.place(path),
            has_user_frames: false,
            is_shallow: false,
        }
    }

    /// What is to be said of where the innermost frame of a path is.
    fn place(&self, path: AddressPathId) -> Option<CaveatKind> {
        let frame = self.frames.rows()[self.paths.rows()[path].frame];
        match self.images.rows()[frame.image].kind {
            ImageKind::Guest => Some(CaveatKind::Guest),
            ImageKind::Unmapped { .. } => Some(CaveatKind::Unmapped),
            // The only mark that is a whole stack.
            ImageKind::Mark => Some(CaveatKind::NoAddress),
            _ => None,
        }
    }

    /// What is to be said of a flaw besides its kind: of a copy of at most `room` bytes its size,
    /// of code without rules its file.
    pub(super) fn detail(&self, stack: Stack, room: u64) -> Option<Detail> {
        match stack.flaw? {
            CaveatKind::ShortCopy if room >= LARGEST_COPY => {
                Some(Detail::Largest(format!("{room} bytes")))
            }
            CaveatKind::ShortCopy | CaveatKind::ShortTop => Some(format!("{room} bytes").into()),
            CaveatKind::NoUnwindRules => {
                let paths = self.paths.rows();
                let (mut path, mut outermost) = (paths[stack.path], None);
                while let Some(caller) = path.caller {
                    outermost = Some(path.frame);
                    path = paths[caller];
                }
                let image = &self.images.rows()[self.frames.rows()[outermost?].image];
                Some(match image.kind {
                    kind if kind.generated_by().is_some() => Detail::NoFile,
                    _ => Detail::Text(image.path.to_string()),
                })
            }
            _ => None,
        }
    }

    /// The path of links, outermost first, and whether they lead to no code.
    ///
    /// A user stack is cut at the first return address that is in no mapping, and whatever lies
    /// outside of it: following frame pointers through code that keeps none leads anywhere. Where
    /// even the innermost frame is in no mapping, the mappings are what is missing, and nothing is
    /// cut.
    ///
    /// `root` is the mark under which the links hang, if any, and what is to be said of them;
    /// `broken` is what is to be said of a stack that is cut here.
    fn path(
        &mut self,
        user: User<'_>,
        tid: i32,
        links: &[Link],
        root: Option<(&str, CaveatKind)>,
        broken: CaveatKind,
    ) -> (AddressPathId, bool) {
        if links.is_empty() {
            return (self.mark(NO_ADDRESS), false);
        }
        let root = root.map(|(root, flaw)| self.mark_of(root, Some(flaw)));
        let (pid, memory) = match user {
            User::Now(pid) => (pid, self.memory(pid)),
            User::Past(pid, memory) => (pid, ((u32::MAX, memory.number), self.kernel.state())),
        };
        let valid_for = (pid, memory, root);
        let mut last = self.last.remove(&tid).unwrap_or_default();
        if last.valid_for != valid_for {
            last.links.clear();
            last.paths.clear();
            last.valid_for = valid_for;
        }
        let pairs = last.links.iter().zip(links);
        let shared = pairs.take_while(|(a, b)| a == b).count();
        let mut found = std::mem::take(&mut self.found);
        let end = self.find_inwards(user, memory, &links[shared..], &mut found);
        let is_broken = end == End::Broken;
        let result = if is_broken {
            let mut path = self.mark_of(BROKEN, Some(broken));
            for &frame in found.iter().rev() {
                let caller = Some(path);
                path = self.paths.id_of(AddressPath { caller, frame });
            }
            (path, true)
        } else {
            last.links.truncate(shared);
            last.paths.truncate(shared);
            last.links.extend_from_slice(&links[shared..]);
            let mut caller = last.paths.last().copied().or(root);
            for &frame in found.iter().rev() {
                let path = self.paths.id_of(AddressPath { caller, frame });
                last.paths.push(path);
                caller = Some(path);
            }
            if end == End::Unmapped {
                // What lies outside of an unmapped frame is not good enough for the next stack.
                last.links.clear();
                last.paths.clear();
            }
            (caller.expect("there are links"), false)
        };
        self.found = found;
        if self.last.len() >= NOW {
            self.last.clear();
        }
        self.last.insert(tid, last);
        result
    }

    fn image(&mut self, path: impl Into<Arc<str>>, kind: ImageKind) -> ImageId {
        self.images.id_of(Image {
            file: None,
            path: path.into(),
            raw_path: None,
            build_id: None,
            kind,
        })
    }

    fn frame(&mut self, frame: FrameAddress) -> FrameId {
        let known = self.frames.rows().len();
        let image = frame.image;
        let frame = self.frames.id_of(frame);
        if self.frames.rows().len() > known {
            self.hit.resize(self.images.rows().len(), false);
            if !std::mem::replace(&mut self.hit[image.index()], true) {
                self.new_hits.push(image);
            }
        }
        frame
    }

    /// The path of an outermost frame that is a mark.
    pub(super) fn mark(&mut self, name: &str) -> AddressPathId {
        self.mark_of(name, None)
    }

    fn mark_of(&mut self, name: &str, flaw: Option<CaveatKind>) -> AddressPathId {
        let image = self.images.id_of(mark_image(name));
        let frame = self.frame(FrameAddress::of_mark(image, flaw));
        let caller = None;
        self.paths.id_of(AddressPath { caller, frame })
    }
}
