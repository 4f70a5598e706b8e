//! The trace at the end of the records, or at a moment in between.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use linux_perf_event_reader::{AttrFlags, SampleFormat, constants};

use crate::base::{
    BROKEN, CaveatKind, Caveats, Counting, IdVec, Periods, Sampling, TRUNCATED, utf8,
};
use crate::perfdata::{Attr, CountedImage, KeptPerfMap, Reader, RecordedStacks};

use super::counts::counting;
use super::events::{event, sampling};
use super::image::mark_image;
use super::known_chains::KnownChains;
use super::off_cpu::OffCpu;
use super::samples::{self, Samples};
use super::stacks::generators::generators;
use super::tracer::mappings::listed_builds;
use super::tracer::{Depths, Lost, Tracer};
use super::{Image, ImageId, ImageKind, Recording, Trace, TraceSample};

// With fewer samples, no conclusion about frame pointers is possible.
const FEW_SAMPLES: u64 = 20;

impl Tracer<'_, '_, '_> {
    /// Starts over: forgets samples and caveats, but not which threads and mappings exist.
    pub(super) fn reset(&mut self, reader: &Reader) {
        self.settle(reader);
        self.samples = Samples::default();
        self.known_chains = KnownChains::new();
        self.trace.caveats = Caveats::default();
        (self.execs, self.mapped) = (0, 0);
        self.taken = 0;
        self.times = None;
        self.lost = Lost::default();
        self.counts.reset();
        self.depths = Depths::default();
        if let Some(off_cpu) = &mut self.off_cpu {
            off_cpu.reset();
        }
        self.trace.events = IdVec::new();
        self.trace.sampling = IdVec::new();
        self.learn_events(reader);
    }

    pub(super) fn finish(mut self, reader: &Reader) -> Trace {
        self.finish_off_cpu();
        self.settle(reader);
        self.learn_events(reader);
        let chains = self.take_chains();
        self.known_chains = KnownChains::new();
        let mut trace = std::mem::take(&mut self.trace);
        trace.samples = std::mem::take(&mut self.samples).rows_with(chains);
        let stacks = std::mem::take(&mut self.stacks);
        trace.generators = generators(&stacks, reader.features().clock);
        trace.images = stacks.images.into_rows();
        trace.frames = stacks.frames.into_rows();
        trace.paths = stacks.paths.into_rows();
        trace.threads = std::mem::take(&mut self.threads).table.into_rows();
        let off_cpu = self
            .off_cpu
            .as_ref()
            .map(|off_cpu| off_cpu.samples().rows());
        self.conclude(reader, &mut trace, off_cpu);
        let others = self.off_cpu.as_mut().and_then(OffCpu::take_times);
        trace.times = self.timed.take().and_then(|timed| {
            // The events of time off the processor come behind those of the recording.
            let mut times = timed.finish(others, reader.events().len())?;
            (times.start, times.end) = self.part.after(self.times.map_or(0, |(first, _)| first));
            Some(times)
        });
        trace
    }

    /// The trace as it is now, with rows of samples that are made of those of its tables: the
    /// second are those of time off the processor.
    pub(super) fn snapshot(
        &mut self,
        reader: &Reader,
        rows: impl FnOnce(&Samples, Option<&Samples>) -> (Vec<TraceSample>, Vec<TraceSample>),
    ) -> Trace {
        self.settle(reader);
        self.count_chains();
        self.learn_events(reader);
        let mut trace = self.trace.clone();
        let off_cpu = self.off_cpu.as_ref().map(OffCpu::samples);
        let (samples, mut off_cpu) = rows(&self.samples, off_cpu);
        trace.samples = samples;
        if let Some(state) = &self.off_cpu {
            let stacks = &mut self.stacks;
            off_cpu.extend(state.open_samples(|name| stacks.mark(name)));
            samples::sort(&mut off_cpu);
            samples::sum_up(&mut off_cpu);
        }
        trace.generators = generators(&self.stacks, reader.features().clock);
        trace.images = self.stacks.images.rows().clone();
        trace.frames = self.stacks.frames.rows().clone();
        trace.paths = self.stacks.paths.rows().clone();
        trace.threads = self.threads.table.rows().clone();
        self.conclude(reader, &mut trace, Some(off_cpu));
        trace
    }

    /// In pipe mode they come last.
    fn take_listed_builds(&self, reader: &Reader, trace: &mut Trace) {
        let listed = listed_builds(reader);
        for image in trace.images.iter_mut().filter(|i| i.build_id.is_none()) {
            let owner = self.has_listed_build.get(&*image.path);
            if owner.is_none_or(|file| *file == image.file) {
                image.build_id = listed.get(&*image.path).map(|&id| id.clone());
            }
        }
    }

    /// What is known of a trace when all of it, so far, is in its tables.
    fn conclude(&self, reader: &Reader, trace: &mut Trace, off_cpu: Option<Vec<TraceSample>>) {
        // In pipe mode names may come after samples.
        trace.events = reader.events().iter().map(event).collect::<Vec<_>>().into();
        let sampling = reader.events().iter().map(|event| sampling(&event.attr));
        trace.sampling = sampling.collect::<Vec<_>>().into();
        if let (Some(state), Some(rows)) = (&self.off_cpu, off_cpu) {
            state.append_to(trace, rows);
        }
        self.take_listed_builds(reader, trace);
        trace.kernel_symbols.sort();
        trace.perf_maps = reader.features().perf_maps.clone();
        trace.jit_dumps = reader.features().jit_dumps.clone();
        let caveats = &mut trace.caveats;
        let cut = trace.perf_maps.iter().filter(|map| map.left_out > 0);
        for map in cut.filter(|map| trace.generators.contains_key(&map.pid)) {
            let KeptPerfMap { pid, left_out, .. } = **map;
            let detail = format!("process {pid}: its last {left_out} bytes were left out");
            caveats.add_detail(CaveatKind::CutPerfMap, 1, detail);
        }
        caveats.merge(reader.caveats());
        caveats.merge(self.dumps.caveats());
        // No frame refers to these files, but names come from them.
        for image in self.dumps.untimed() {
            if !trace.images.iter().any(|known| known == image) {
                trace.images.push(image.clone());
            }
        }
        let counted = reader.features().call_counts.as_ref();
        // The first is the command, unless it ran before.
        let others = self
            .execs
            .saturating_sub(u64::from(!self.ran_before))
            .saturating_sub(counted.map_or(0, |counts| counts.followed));
        if counted.is_some() && others > 0 {
            caveats.add(CaveatKind::UncountedPrograms, others);
        }
        trace.counted = counted.map(|counts| {
            let images = counts
                .images
                .iter()
                .map(|image| counted_image(&mut trace.images, image));
            (counts.clone(), images.collect())
        });
        let images = trace.counted.iter().flat_map(|(_, images)| images);
        let images = images.filter(|&&image| self.uncounted.has(&trace.images[image].path));
        trace.partly_counted = images.copied().collect();
        // Stacks may turn out to be cut or broken when they are checked against the code.
        for mark in [TRUNCATED, BROKEN].map(mark_image) {
            if !trace.images.iter().any(|known| *known == mark) {
                trace.images.push(mark);
            }
        }
        let lost = self.lost.records.max(self.lost.samples);
        if lost > 0 {
            caveats.add(CaveatKind::Lost, lost);
        }
        self.counts.compare(reader, caveats);
        note_outlying_periods(self.counts.periods(), reader, caveats);
        if caveats.count(CaveatKind::NotUnwound) == 0
            && !excludes_user_stacks(reader)
            && self.depths.user_samples >= FEW_SAMPLES
            && self.depths.shallow * 2 > self.depths.user_samples
        {
            caveats.add(CaveatKind::NoFramePointers, self.depths.shallow);
        }
        let has_samples = reader.counts().contains_key(&constants::PERF_RECORD_SAMPLE);
        if trace.samples.is_empty() && has_samples && !self.part.is_all() {
            let when = match self.times {
                Some((first, last)) => format!(
                    "the recording has samples from 0 to {:.6} s",
                    (last - first) as f64 / 1e9
                ),
                None => "the recording's samples have no time".to_owned(),
            };
            caveats.add_detail(CaveatKind::NoSamplesInTime, 1, when);
        } else if trace.samples.is_empty() && self.execs > 0 && self.mapped == 0 {
            // A program that is recorded maps its file as soon as it starts.
            caveats.add(CaveatKind::StoppedAtExec, 1);
        } else if trace.samples.is_empty() {
            caveats.add(CaveatKind::NoSamples, 1);
        } else {
            note_what_was_recorded(reader, caveats);
        }
        let features = reader.features();
        trace.recording = Recording {
            copies: self.copied,
            unwound: self.unwound,
            duration: self.times.map(|(first, last)| last - first),
            started: features
                .clock
                .zip(self.times)
                .and_then(|(clock, (first, _))| clock.wall_time(first)),
            ..Recording::of(reader, self.times.map(|(_, last)| last), &self.first_mapped)
        };
    }
}

/// Notes samples whose period is far above those of the others of their event.
fn note_outlying_periods(periods: &[Periods], reader: &Reader, caveats: &mut Caveats) {
    for (periods, event) in periods.iter().zip(reader.events()) {
        let attr = &event.attr;
        let is_clock = matches!(counting(attr), Counting::Clock | Counting::UserClock);
        let is_drawn = sampling(attr) == Sampling::Drawn;
        let is_constant = is_clock || attr.fixed_period().is_some() && is_drawn;
        if let Some(outlying) = periods.outlying(is_constant) {
            let detail = outlying.detail(&event.name, is_clock);
            caveats.add_detail(CaveatKind::OutlyingPeriod, outlying.count, detail);
        }
    }
}

/// The image of a file whose calls were counted. It may be that no sample was taken in it.
fn counted_image(images: &mut IdVec<ImageId, Image>, counted: &CountedImage) -> ImageId {
    let path = utf8(&counted.path);
    let is_it = |image: &Image| {
        image.kind == ImageKind::File
            && *image.path == *path
            && (image.build_id.is_none() || image.build_id == counted.build_id)
    };
    if let Some(id) = images.ids().find(|&id| is_it(&images[id])) {
        return id;
    }
    let raw_path = match &path {
        Cow::Owned(_) => Some(Path::new(OsStr::from_bytes(&counted.path)).into()),
        Cow::Borrowed(_) => None,
    };
    images.push(Image {
        file: None,
        raw_path,
        build_id: counted.build_id.clone(),
        kind: ImageKind::File,
        path: path.into(),
    })
}

/// What the settings of all events leave out.
fn note_what_was_recorded(reader: &Reader, caveats: &mut crate::base::Caveats) {
    let all = |test: fn(&crate::perfdata::Attr) -> bool| {
        reader.events().iter().all(|event| test(&event.attr))
    };
    if all(|attr| attr.flags().contains(AttrFlags::EXCLUDE_KERNEL)) {
        caveats.add(CaveatKind::UserOnly, 1);
    }
    const STACKS: SampleFormat = SampleFormat::CALLCHAIN
        .union(SampleFormat::BRANCH_STACK)
        .union(SampleFormat::STACK_USER);
    if all(|attr| !attr.sample_format().intersects(STACKS)) {
        caveats.add(CaveatKind::NoStacks, 1);
    }
    if excludes_user_stacks(reader) {
        caveats.add(CaveatKind::NoUserStacks, 1);
    }
    let is_of_user_only = |attr: &Attr| {
        let flags = attr.flags();
        flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_KERNEL)
            && !flags.contains(AttrFlags::EXCLUDE_KERNEL)
    };
    let events = reader.events().iter().map(|event| &event.attr);
    if events.filter(|attr| has_chain(attr)).any(is_of_user_only) {
        caveats.add(CaveatKind::NoKernelStacks, 1);
    }
}

fn has_chain(attr: &Attr) -> bool {
    attr.sample_format().contains(SampleFormat::CALLCHAIN)
}

/// Whether call chains were asked for without their part in user space, and nothing else holds
/// that.
fn excludes_user_stacks(reader: &Reader) -> bool {
    let attrs = reader.events().iter().map(|event| &event.attr);
    let mut chains = attrs.clone().filter(|attr| has_chain(attr));
    let has_branches = |attr: &Attr| attr.sample_format().contains(SampleFormat::BRANCH_STACK);
    RecordedStacks::of(attrs.clone()) == RecordedStacks::Chain
        && chains.all(|attr| attr.flags().contains(AttrFlags::EXCLUDE_CALLCHAIN_USER))
        && !attrs.clone().any(has_branches)
}
