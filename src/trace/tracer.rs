//! Takes records one by one and builds the trace.

use linux_perf_event_reader::CpuMode;
use rustc_hash::FxHashMap;

use crate::base::{BuildId, CaveatKind, CodeAddress, Distinct, Event, Id, Unit, utf8};
use crate::perfdata::{Attr, Body, Mapping, Reader, Record, Sample, Task};

use super::build::Options;
use super::chain::{self, Link, Shape, Space};
use super::memory::Process;
use super::paths::{AddressPath, DistinctPaths};
use super::remembered::{Circumstances, Remembered};
use super::threads::Threads;
use super::{
    AddressPathId, FrameAddress, FrameId, Image, ImageId, ImageKind, Trace, TraceEventId,
    TraceSample, TraceThreadId,
};

/// Builds a [`Trace`].
pub(super) struct Tracer<'o> {
    options: &'o Options,
    trace: Trace,
    images: Distinct<ImageId, Image>,
    frames: Distinct<FrameId, FrameAddress>,
    paths: DistinctPaths,
    threads: Threads,
    processes: FxHashMap<i32, Process>,
    /// The kernel's and its modules' mappings.
    kernel: Process,
    samples: FxHashMap<(TraceEventId, TraceThreadId, AddressPathId), (u64, u64)>,
    totals: Vec<u64>,
    /// The last value of each counter that is read with its group.
    counters: FxHashMap<u64, u64>,
    times: Option<(u64, u64)>,
    shapes: Shapes,
    links: Vec<Link>,
    remembered: Remembered,
}

/// How the user's stacks look on the whole.
#[derive(Debug, Default)]
struct Shapes {
    user_samples: u64,
    shallow: u64,
}

/// Fewer samples say nothing about frame pointers.
const FEW_SAMPLES: u64 = 20;

impl<'o> Tracer<'o> {
    pub(super) fn new(options: &'o Options) -> Tracer<'o> {
        Tracer {
            options,
            trace: Trace::default(),
            images: Distinct::default(),
            frames: Distinct::default(),
            paths: DistinctPaths::default(),
            threads: Threads::default(),
            processes: FxHashMap::default(),
            kernel: Process::default(),
            samples: FxHashMap::default(),
            totals: Vec::new(),
            counters: FxHashMap::default(),
            times: None,
            shapes: Shapes::default(),
            links: Vec::new(),
            remembered: Remembered::new(),
        }
    }

    /// Takes in one record.
    pub(super) fn record(&mut self, reader: &Reader, record: &Record<'_>) {
        match &record.body {
            Body::Sample(sample) => self.sample(reader, record, sample),
            Body::Mapping(mapping) => self.mapping(record, mapping),
            Body::Name {
                pid,
                tid,
                name,
                exec,
            } => {
                if *exec && let Some(process) = self.processes.get_mut(pid) {
                    process.exec();
                }
                self.threads.name(*pid, *tid, utf8(name).into_owned());
            }
            Body::Fork(task) => self.fork(task),
            Body::Exit(task) => self.threads.exit(task.tid),
            Body::Lost(count) | Body::LostSamples(count) => {
                self.trace.caveats.add(CaveatKind::Lost, *count);
            }
            Body::Throttle { on: true } => self.trace.caveats.add(CaveatKind::Throttled, 1),
            Body::KernelSymbol {
                address,
                size,
                removed,
                name,
            } => self.kernel_symbol(*address, u64::from(*size), *removed, name),
            _ => {}
        }
    }

    fn fork(&mut self, task: &Task) {
        if task.pid != task.parent_pid
            && let Some(parent) = self.processes.get(&task.parent_pid)
        {
            let child = parent.forked();
            self.processes.insert(task.pid, child);
        }
        self.threads.fork(task.pid, task.tid, task.parent_tid);
    }

    fn mapping(&mut self, record: &Record<'_>, mapping: &Mapping<'_>) {
        if !mapping.executable || mapping.length == 0 {
            return;
        }
        let start = mapping.address;
        let end = start.checked_add(mapping.length - 1);
        let Some(end) = end.map(|last| last.saturating_add(1)) else {
            return self.trace.caveats.add_with(CaveatKind::Skipped, 1, || {
                format!(
                    "at offset {:#x}: mapping of {:#x} bytes at {start:#x} passes the end of memory",
                    record.offset, mapping.length
                )
            });
        };
        let path = utf8(mapping.path);
        match Space::of(record.cpu_mode()) {
            Space::Other => {}
            Space::Kernel => {
                let (image, base) = self.kernel_image(&path, mapping);
                self.kernel.change(|m| m.map(start, end, image, base));
            }
            Space::User => {
                let kind = user_image_kind(&path, mapping.pid);
                let base = match kind {
                    ImageKind::File => mapping.page_offset,
                    ImageKind::Vdso => 0,
                    _ => start,
                };
                let image = self.image(&path, mapping.build_id.clone(), kind);
                let process = self.processes.entry(mapping.pid).or_default();
                process.change(|m| m.map(start, end, image, base));
            }
        }
    }

    /// The image of a kernel mapping and the address in it of the mapping's start.
    fn kernel_image(&mut self, path: &str, mapping: &Mapping<'_>) -> (ImageId, u64) {
        let build_id = mapping.build_id.clone();
        if let Some(reference) = path.strip_prefix("[kernel.kallsyms]") {
            // `[kernel.kallsyms]_text`: the page offset is that symbol's address.
            let text =
                (!reference.is_empty() && mapping.page_offset > 0).then_some(mapping.page_offset);
            let image = self.image("[kernel.kallsyms]", build_id, ImageKind::Kernel { text });
            return (image, mapping.address);
        }
        let kind = match path.starts_with("[bpf") || path.starts_with("bpf_") {
            true => ImageKind::KernelGenerated,
            false => ImageKind::Module,
        };
        (self.image(path, build_id, kind), mapping.address)
    }

    fn kernel_symbol(&mut self, address: u64, size: u64, removed: bool, name: &[u8]) {
        let Some(end) = address.checked_add(size).filter(|_| size > 0) else {
            return;
        };
        if removed {
            return self.kernel.change(|m| m.unmap(address, end));
        }
        let image = self.image("[bpf]", None, ImageKind::KernelGenerated);
        self.kernel.change(|m| m.map(address, end, image, address));
        let name = utf8(name).into_owned();
        self.trace.kernel_symbols.push((address, size, name));
    }

    fn image(&mut self, path: &str, build_id: Option<BuildId>, kind: ImageKind) -> ImageId {
        self.images.id_of(Image {
            path: path.to_owned(),
            build_id,
            kind,
        })
    }

    fn frame(&mut self, image: ImageId, address: CodeAddress) -> FrameId {
        self.frames.id_of(FrameAddress { image, address })
    }

    /// The path of an outermost frame.
    fn root(&mut self, frame: FrameId) -> AddressPathId {
        let caller = None;
        self.paths.id_of(AddressPath { caller, frame })
    }

    fn mark(&mut self, name: &str) -> FrameId {
        let image = self.image(name, None, ImageKind::Mark);
        self.frame(image, CodeAddress::Instruction(0))
    }

    fn sample(&mut self, reader: &Reader, record: &Record<'_>, sample: &Sample<'_>) {
        self.learn_events(reader);
        if let Some(time) = sample.time {
            let (first, last) = self.times.get_or_insert((time, time));
            *first = (*first).min(time);
            *last = (*last).max(time);
            if !self.options.covers(time.saturating_sub(*first)) {
                return;
            }
        }
        let attr = &reader.events()[sample.event].attr;
        let pid = sample.pid.unwrap_or(-1);
        let tid = sample.tid.unwrap_or(pid);
        let (path, shape) = self.path_of(record, sample, attr, pid, tid);
        self.note_shape(sample, path, shape);
        let thread = self.threads.of(pid, tid);
        let group = sample.read.filter(|read| read.group);
        let Some(group) = group else {
            let weight = sample.period.or(attr.fixed_period()).unwrap_or(1);
            return self.add(sample.event, thread, path, weight);
        };
        // The leader's sample stands for all events of its group: each counter says how far it
        // has come since it was read last.
        for (id, value) in group.counters() {
            let Some(event) = id.and_then(|id| reader.event_of_id(id)) else {
                continue;
            };
            let last = self.counters.insert(id.unwrap_or(0), value).unwrap_or(0);
            let weight = value.saturating_sub(last);
            if weight > 0 {
                self.add(event, thread, path, weight);
            }
        }
    }

    /// Makes rows for events that the reader has and the trace has not.
    fn learn_events(&mut self, reader: &Reader) {
        for description in &reader.events()[self.trace.events.len()..] {
            self.trace.events.push(event(description));
            self.totals.push(0);
        }
    }

    fn add(&mut self, event: usize, thread: TraceThreadId, path: AddressPathId, weight: u64) {
        let total = &mut self.totals[event];
        let accepted = weight.min(u64::MAX - *total);
        *total += accepted;
        if accepted < weight {
            self.trace.caveats.add(CaveatKind::WeightLimit, 1);
        }
        let key = (TraceEventId::new(event), thread, path);
        let sum = self.samples.entry(key).or_insert((0, 0));
        sum.0 += accepted;
        sum.1 += 1;
    }

    /// The path of a sample's stack, and its shape. A chain that was met before has the same one.
    fn path_of(
        &mut self,
        record: &Record<'_>,
        sample: &Sample<'_>,
        attr: &Attr,
        pid: i32,
        tid: i32,
    ) -> (AddressPathId, Shape) {
        let process = self.processes.get_mut(&pid);
        let generation = process.map_or(0, |process| {
            if record.cpu_mode() == CpuMode::User {
                process.runs();
            }
            process.generation
        });
        let generations = (generation, self.kernel.generation);
        // A sample with branches or without a chain has more to its stack than the chain.
        let chain = sample.callchain.filter(|chain| !chain.is_empty());
        let key = chain.filter(|_| sample.branches.is_none()).map(|chain| {
            let circumstances = Circumstances {
                pid,
                generations,
                misc: record.misc,
                event: sample.event,
            };
            self.remembered.key(chain, circumstances)
        });
        if let Some(known) = key.and_then(|key| self.remembered.get(key)) {
            return known;
        }
        let mut links = std::mem::take(&mut self.links);
        let mut shape = chain::links(sample, record.cpu_mode(), attr, &mut links);
        shape.broken = self.cut_broken(pid, &mut links);
        let path = self.path(pid, tid, generations, &links, shape);
        self.links = links;
        if let Some(key) = key {
            self.remembered.insert(key, path, shape);
        }
        (path, shape)
    }

    /// Cuts a user stack at the first return address that is in no mapping, and whatever lies
    /// outside of it: following frame pointers through code that keeps none leads anywhere.
    /// Returns whether it did. Where even the innermost frame is in no mapping, the mappings are
    /// what is missing, and nothing is cut.
    fn cut_broken(&self, pid: i32, links: &mut Vec<Link>) -> bool {
        let Some(process) = self.processes.get(&pid) else {
            return false;
        };
        let mut user = links.iter().enumerate().rev();
        let mut user = user.by_ref().filter(|(_, link)| link.space == Space::User);
        let is_mapped = |link: &Link| process.holds(link.address);
        if !user.next().is_some_and(|(_, link)| is_mapped(link)) {
            return false;
        }
        let Some((broken, _)) = user.find(|(_, link)| !is_mapped(link)) else {
            return false;
        };
        links.drain(..=broken);
        true
    }

    /// The path of a stack, outermost link first.
    fn path(
        &mut self,
        pid: i32,
        tid: i32,
        generations: (u32, u32),
        links: &[Link],
        shape: Shape,
    ) -> AddressPathId {
        let mark = match shape {
            _ if links.is_empty() => Some("[no address]"),
            Shape { broken: true, .. } => Some("[broken stack]"),
            Shape { cut: true, .. } => Some("[truncated]"),
            _ => None,
        };
        let root = mark.map(|mark| {
            let frame = self.mark(mark);
            self.root(frame)
        });
        let valid_for = (pid, generations, root);
        let mut last = self.threads.stacks.remove(&tid).unwrap_or_default();
        if last.valid_for != valid_for {
            last.links.clear();
            last.paths.clear();
            last.valid_for = valid_for;
        }
        let shared = last
            .links
            .iter()
            .zip(links)
            .take_while(|(a, b)| a == b)
            .count();
        last.links.truncate(shared);
        last.paths.truncate(shared);
        let mut caller = last.paths.last().copied().or(root);
        for &link in &links[shared..] {
            let frame = self.frame_of(pid, link);
            let path = self.paths.id_of(AddressPath { caller, frame });
            caller = Some(path);
            last.links.push(link);
            last.paths.push(path);
        }
        self.threads.stacks.insert(tid, last);
        caller.expect("a stack without links has a mark")
    }

    /// Counts what is to be said of a sample's stack.
    fn note_shape(&mut self, sample: &Sample<'_>, path: AddressPathId, shape: Shape) {
        let mut note = |kind| self.trace.caveats.add(kind, 1);
        if shape.broken {
            note(CaveatKind::BrokenStack);
        } else if shape.cut {
            note(CaveatKind::CutStack);
        }
        if sample.user_stack.is_some_and(|stack| !stack.is_empty()) {
            note(CaveatKind::NotUnwound);
        }
        let frame = self.frames.rows()[self.paths.rows()[path].frame];
        match self.images.rows()[frame.image].kind {
            ImageKind::Guest => note(CaveatKind::Guest),
            ImageKind::Unmapped { .. } => note(CaveatKind::Unmapped),
            // The only mark that is a whole stack.
            ImageKind::Mark => note(CaveatKind::NoAddress),
            _ => {}
        }
        if sample.callchain.is_some() && shape.user_frames > 0 {
            self.shapes.user_samples += 1;
            self.shapes.shallow += u64::from(shape.user_frames <= 2);
        }
    }

    fn frame_of(&mut self, pid: i32, link: Link) -> FrameId {
        let key = (
            link.address.recorded(),
            matches!(link.address, CodeAddress::Return(_)),
        );
        let process = match link.space {
            Space::Kernel => Some(&self.kernel),
            Space::User => self.processes.get(&pid),
            Space::Other => None,
        };
        if let Some(&frame) = process.and_then(|p| p.found.get(&key)) {
            return frame;
        }
        let found = process.and_then(|p| p.find(link.address));
        let (image, address) = match (found, link.space) {
            (Some(found), _) => found,
            (None, Space::Kernel) => {
                let kind = ImageKind::Kernel { text: None };
                (self.image("[kernel.kallsyms]", None, kind), link.address)
            }
            (None, Space::User) => {
                let kind = ImageKind::Unmapped { pid };
                (self.image("[unmapped]", None, kind), link.address)
            }
            (None, Space::Other) => (self.image("[guest]", None, ImageKind::Guest), link.address),
        };
        let frame = self.frame(image, address);
        let process = match link.space {
            Space::Kernel => &mut self.kernel,
            _ => self.processes.entry(pid).or_default(),
        };
        if link.space != Space::Other {
            process.found.insert(key, frame);
        }
        frame
    }

    /// The finished trace.
    pub(super) fn finish(mut self, reader: &Reader) -> Trace {
        self.learn_events(reader);
        let mut trace = self.trace;
        trace.images = self.images.into_rows();
        trace.frames = self.frames.into_rows();
        // Old kernels do not tell builds with mappings; the recorder does at the end.
        let listed: FxHashMap<&str, &BuildId> = reader
            .features()
            .build_ids
            .iter()
            .map(|file| (file.path.as_str(), &file.build_id))
            .collect();
        for image in trace.images.iter_mut().filter(|i| i.build_id.is_none()) {
            image.build_id = listed.get(image.path.as_str()).map(|&id| id.clone());
        }
        trace.paths = self.paths.into_rows();
        trace.threads = self.threads.table.into_rows();
        trace.kernel_symbols.sort();
        trace.samples = self
            .samples
            .into_iter()
            .map(|((event, thread, path), (weight, count))| TraceSample {
                event,
                thread,
                path,
                weight,
                count,
            })
            .collect();
        trace
            .samples
            .sort_unstable_by_key(|s| (s.event, s.thread, s.path));
        let caveats = &mut trace.caveats;
        caveats.merge(reader.caveats());
        if self.shapes.user_samples >= FEW_SAMPLES
            && self.shapes.shallow * 2 > self.shapes.user_samples
        {
            caveats.add(CaveatKind::NoFramePointers, self.shapes.shallow);
        }
        if trace.samples.is_empty() {
            caveats.add(CaveatKind::NoSamples, 1);
        } else {
            note_what_was_recorded(reader, caveats);
        }
        let features = reader.features();
        trace.recording = super::Recording {
            command_line: features.command_line.clone(),
            arch: features.arch.clone(),
            os_release: features.os_release.clone(),
            duration: self.times.map(|(first, last)| last - first),
        };
        trace
    }
}

/// What a user mapping of this path is.
fn user_image_kind(path: &str, pid: i32) -> ImageKind {
    const GENERATED: [&str; 7] = [
        "//anon",
        "/anon_hugepage",
        "/dev/zero",
        "/memfd:",
        "/SYSV",
        "anon_inode:",
        "[anon:",
    ];
    if path == "[vdso]" {
        return ImageKind::Vdso;
    }
    let generated = GENERATED.iter().any(|prefix| path.starts_with(prefix))
        || path.is_empty()
        || path.starts_with('[');
    match generated {
        true => ImageKind::Generated { pid },
        false => ImageKind::File,
    }
}

/// The event in the profile's terms. Without periods in its samples a sample counts one.
fn event(description: &crate::perfdata::EventDescription) -> Event {
    let mut event = Event::named(&description.name);
    let attr = &description.attr;
    let has_period = attr
        .sample_format()
        .contains(linux_perf_event_reader::SampleFormat::PERIOD);
    if !has_period && attr.fixed_period().is_none() {
        event.unit = Unit::Samples;
    }
    event
}

/// What the settings of all events leave out.
fn note_what_was_recorded(reader: &Reader, caveats: &mut crate::base::Caveats) {
    use linux_perf_event_reader::{AttrFlags, SampleFormat};
    let all = |test: fn(&crate::perfdata::Attr) -> bool| {
        reader.events().iter().all(|event| test(&event.attr))
    };
    if all(|attr| attr.flags().contains(AttrFlags::EXCLUDE_KERNEL)) {
        caveats.add(CaveatKind::UserOnly, 1);
    }
    const STACKS: SampleFormat = SampleFormat::CALLCHAIN.union(SampleFormat::BRANCH_STACK);
    if all(|attr| !attr.sample_format().intersects(STACKS)) {
        caveats.add(CaveatKind::NoStacks, 1);
    }
}
