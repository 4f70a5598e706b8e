//! Writes recordings whose every sample is known, with the crate's own writer.

use std::fs::File;
use std::path::Path;

use proftool::perfdata::writer::{
    ATTR_SIZE, FeatureSections, UserMapping, Writer, WriterEvent, comm_record,
};

pub const SAMPLE: u32 = 9;

pub const SWITCH: u32 = 14;

pub const EXIT: u32 = 4;

pub const LOST: u32 = 2;
pub const LOST_SAMPLES: u32 = 13;
pub const KSYMBOL: u32 = 17;

pub const MISC_KERNEL: u16 = 1;

pub const MISC_USER: u16 = 2;

pub const MISC_SWITCH_OUT: u16 = 1 << 13;

pub const CONTEXT_KERNEL: u64 = -128_i64 as u64;

pub const CONTEXT_USER: u64 = -512_i64 as u64;

/// IP, TID, TIME, CALLCHAIN, CPU, PERIOD, IDENTIFIER.
pub const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 16;

pub const SAMPLE_ID_ALL: u64 = 1 << 18;

pub const USE_CLOCKID: u64 = 1 << 25;

pub const CONTEXT_SWITCH: u64 = 1 << 26;

pub const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;

pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;

/// The software events, by their number in `perf_event_open`.
pub const CPU_CLOCK: u64 = 0;

pub const CONTEXT_SWITCHES: u64 = 3;

pub const PAGE_FAULTS: u64 = 2;

/// A sample: of which event, whose, when, and its stack, innermost frame first.
#[derive(Clone, Copy, Default)]
pub struct Taken<'a> {
    pub event: usize,
    /// Process and thread.
    pub task: i32,
    pub time: u64,
    pub kernel: &'a [u64],
    pub user: &'a [u64],
    /// Where it was taken, if that is not the innermost frame.
    pub ip: Option<u64>,
    /// 1 if none is given.
    pub period: Option<u64>,
}

/// A recording that is being written.
pub struct Recording {
    events: Vec<WriterEvent>,
    records: Vec<u8>,
}

impl Recording {
    /// Times are those of `CLOCK_MONOTONIC` if `has_clock`.
    pub fn new(events: &[(&str, u64)], has_clock: bool) -> Recording {
        let event = |(index, &(name, config)): (usize, &(&str, u64))| {
            let mut attr = [0; ATTR_SIZE];
            let mut put =
                |at: usize, bytes: &[u8]| attr[at..at + bytes.len()].copy_from_slice(bytes);
            put(0, &1_u32.to_ne_bytes());
            put(4, &(ATTR_SIZE as u32).to_ne_bytes());
            put(8, &config.to_ne_bytes());
            put(16, &1_u64.to_ne_bytes());
            put(24, &SAMPLE_TYPE.to_ne_bytes());
            let clock = if has_clock { USE_CLOCKID } else { 0 };
            put(40, &(SAMPLE_ID_ALL | CONTEXT_SWITCH | clock).to_ne_bytes());
            put(92, &1_u32.to_ne_bytes());
            WriterEvent {
                name: name.to_owned(),
                attr,
                ids: vec![index as u64 + 1],
            }
        };
        Recording {
            events: events.iter().enumerate().map(event).collect(),
            records: Vec::new(),
        }
    }

    /// The same with these flags of all its events.
    pub fn with_flags(mut self, flags: u64) -> Recording {
        for event in &mut self.events {
            let all = &mut event.attr[40..48];
            let before = u64::from_ne_bytes((&*all).try_into().unwrap());
            all.copy_from_slice(&(before | flags).to_ne_bytes());
        }
        self
    }

    /// A process of this name, from the start.
    pub fn process(&mut self, task: i32, name: &str) {
        let record = comm_record(task, task, name.as_bytes());
        self.records.extend(record);
    }

    /// A file in the memory of a process, from the start: the code at `offset` lies at `start`.
    pub fn mapping(&mut self, task: i32, path: &str, (start, len): (u64, u64), offset: u64) {
        let mapping = UserMapping {
            start,
            len,
            page_offset: offset,
            device: (0, 0),
            inode: 0,
            build_id: None,
            protection: 5,
            flags: 2,
            data: false,
            name: path.into(),
        };
        self.records.extend(mapping.record(task));
    }

    /// The last mapping came about at this time.
    pub fn mapped_at(&mut self, time: u64) {
        // Before it: task, time; behind: processor, id.
        let end = self.records.len() - 16;
        self.records[end - 8..end].copy_from_slice(&time.to_ne_bytes());
    }

    /// A process of one thread ends.
    pub fn exit(&mut self, task: i32, time: u64) {
        let words = [task, 1, task, 1].map(i32::to_ne_bytes).concat();
        let body = [words, time.to_ne_bytes().to_vec()].concat();
        self.record(EXIT, 0, &body, Some((task, time)));
    }

    /// A function of the kernel, from the start.
    pub fn kernel_function(&mut self, name: &str, start: u64, size: u32) {
        let mut body = start.to_ne_bytes().to_vec();
        body.extend(size.to_ne_bytes());
        body.extend([0; 4]);
        body.extend(name.as_bytes());
        body.push(0);
        body.resize(body.len().next_multiple_of(8), 0);
        self.record(KSYMBOL, 0, &body, Some((0, 0)));
    }

    pub fn sample(&mut self, taken: Taken<'_>) {
        let mut chain = Vec::new();
        for (context, frames) in [(CONTEXT_KERNEL, taken.kernel), (CONTEXT_USER, taken.user)] {
            if !frames.is_empty() {
                chain.push(context);
                chain.extend(frames);
            }
        }
        let innermost = chain.get(1).copied().unwrap_or_default();
        let ip = taken.ip.unwrap_or(innermost);
        let mut body = Vec::new();
        let pair = |value: i32| [value, value].map(i32::to_ne_bytes).concat();
        body.extend((taken.event as u64 + 1).to_ne_bytes());
        body.extend(ip.to_ne_bytes());
        body.extend(pair(taken.task));
        body.extend(taken.time.to_ne_bytes());
        // Processor 0.
        let period = taken.period.unwrap_or(1);
        for word in [0, period, chain.len() as u64].into_iter().chain(chain) {
            body.extend(word.to_ne_bytes());
        }
        let is_in_kernel = !taken.kernel.is_empty() || ip >> 63 == 1;
        let misc = if is_in_kernel { MISC_KERNEL } else { MISC_USER };
        self.record(SAMPLE, misc, &body, None);
    }

    /// A thread leaves its processor to wait, or comes back.
    /// Records that were lost: as the kernel says it meanwhile, and as the recorder does at the end.
    pub fn lost(&mut self, meanwhile: u64, at_the_end: u64) {
        let body = [1_u64.to_ne_bytes(), meanwhile.to_ne_bytes()].concat();
        self.record(LOST, 0, &body, Some((0, 0)));
        self.record(LOST_SAMPLES, 0, &at_the_end.to_ne_bytes(), Some((0, 0)));
    }

    pub fn switch(&mut self, task: i32, time: u64, out: bool) {
        let misc = if out { MISC_SWITCH_OUT } else { 0 };
        self.record(SWITCH, misc, &[], Some((task, time)));
    }

    /// `id` is the thread and the time that stand behind a record that is no sample.
    fn record(&mut self, kind: u32, misc: u16, body: &[u8], id: Option<(i32, u64)>) {
        let trailer = id.map_or_else(Vec::new, |(task, time)| {
            let task = [task, task].map(i32::to_ne_bytes).concat();
            let words = [time, 0, 1].map(u64::to_ne_bytes).concat();
            [task, words].concat()
        });
        let size = 8 + body.len() + trailer.len();
        self.records.extend(kind.to_ne_bytes());
        self.records.extend(misc.to_ne_bytes());
        self.records.extend((size as u16).to_ne_bytes());
        self.records.extend(body);
        self.records.extend(trailer);
    }

    pub fn write(&self, path: &Path) {
        self.write_with(path, |_| {});
    }

    /// Writes the file with further sections.
    pub fn write_with(&self, path: &Path, add: impl FnOnce(&mut FeatureSections)) {
        let mut writer = Writer::new(File::create(path).unwrap(), &self.events).unwrap();
        writer.append(&self.records).unwrap();
        writer.finish_round().unwrap();
        let mut features = FeatureSections::default();
        features.events(&self.events);
        add(&mut features);
        writer.finish(&features).unwrap();
    }
}
