//! `unwind_stacks FILE`: the user stack of every sample with a copy, by `proftool::unwind` alone.
//!
//! A line for each: thread, nanoseconds, how the stack ends, then for its frames, innermost first,
//! where in their files they are looked up (an address where nothing is mapped).
//! `scripts/compare_perf_unwind.py` holds them against perf's.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use linux_perf_event_reader::constants::PERF_RECORD_MISC_FORK_EXEC;
use proftool::base::FileOffset;
use proftool::binary::Finder;
use proftool::perfdata::{Body, CpuMode, Mapping, Pass, Reader, Record, Sample};
use proftool::unwind::{Arch, CodeAt, ProcessCode, Registers, Rules, StackCopy, Unwinder};

/// Files by number, opened once.
#[derive(Default)]
struct Files {
    numbers: HashMap<String, usize>,
    rules: Vec<Option<Arc<Rules>>>,
    finder: Finder,
}

/// What is mapped in one process: by start, the end, the offset and the file.
#[derive(Clone, Default)]
struct Maps(BTreeMap<u64, (u64, u64, usize)>);

impl Maps {
    /// The start of the mapping that holds an address, its offset and file.
    fn find(&self, address: u64) -> Option<(u64, u64, usize)> {
        let (&start, &(end, offset, file)) = self.0.range(..=address).next_back()?;
        (address < end).then_some((start, offset, file))
    }
}

/// One process as it is now.
struct Process<'a> {
    number: u32,
    maps: &'a Maps,
    files: &'a Files,
}

impl ProcessCode for Process<'_> {
    fn number(&self) -> u32 {
        self.number
    }

    fn place(&self, address: u64) -> CodeAt<'_> {
        let Some((start, offset, file)) = self.maps.find(address) else {
            return CodeAt::Unmapped;
        };
        let ruled = || {
            let rules = self.files.rules[file].as_deref()?;
            Some(CodeAt::Ruled {
                file: file as u32,
                rules,
                address: rules.svma(FileOffset(address - start + offset))?,
            })
        };
        ruled().unwrap_or(CodeAt::Unruled)
    }
}

impl Files {
    fn number(&mut self, path: &str) -> usize {
        if let Some(&number) = self.numbers.get(path) {
            return number;
        }
        let binary = self.finder.find(path, None).ok();
        let rules = binary.and_then(|binary| Rules::new(Arc::new(binary)));
        self.rules.push(rules.map(Arc::new));
        self.numbers.insert(path.to_owned(), self.rules.len() - 1);
        self.rules.len() - 1
    }
}

#[derive(Default)]
struct Recording {
    files: Files,
    processes: HashMap<i32, (u32, Maps)>,
    changes: u32,
    unwinder: Unwinder,
}

impl Recording {
    fn change(&mut self, pid: i32, change: impl FnOnce(&mut Maps)) {
        self.changes += 1;
        let process = self.processes.entry(pid).or_default();
        process.0 = self.changes;
        change(&mut process.1);
    }

    fn map(&mut self, mapping: &Mapping<'_>) {
        let path = String::from_utf8_lossy(mapping.path).into_owned();
        let file = self.files.number(&path);
        let offset = if path == "[vdso]" {
            0
        } else {
            mapping.page_offset
        };
        let (start, end) = (mapping.address, mapping.address + mapping.length);
        self.change(mapping.pid, |Maps(maps)| {
            // What reaches over the new one's borders is cut in pieces.
            let old: Vec<_> = maps.range(..end).map(|(&s, &m)| (s, m)).collect();
            for (begin, (stop, shift, of)) in old.into_iter().filter(|(_, m)| m.0 > start) {
                maps.remove(&begin);
                if begin < start {
                    maps.insert(begin, (start, shift, of));
                }
                if stop > end {
                    maps.insert(end, (stop, shift + (end - begin), of));
                }
            }
            maps.insert(start, (end, offset, file));
        });
    }

    fn record(&mut self, reader: &Reader, record: &Record<'_>, out: &mut impl Write) {
        match &record.body {
            Body::Mapping(mapping) if mapping.executable && record.cpu_mode() == CpuMode::User => {
                self.map(mapping);
            }
            Body::Name {
                pid, exec: true, ..
            } => self.change(*pid, |maps| maps.0.clear()),
            Body::Fork(task) if task.pid != task.parent_pid => {
                let copies = record.misc & PERF_RECORD_MISC_FORK_EXEC == 0;
                let parent = self.processes.get(&task.parent_pid);
                let parent = parent.filter(|_| copies).cloned().unwrap_or_default();
                self.change(task.pid, |maps| *maps = parent.1);
            }
            Body::Sample(sample) => {
                self.sample(reader, sample, out);
            }
            _ => {}
        }
    }

    fn sample(&mut self, reader: &Reader, sample: &Sample<'_>, out: &mut impl Write) -> Option<()> {
        let bytes = sample.user_stack?;
        let told = sample.user_registers?;
        let arch = Arch::of_task(reader.features().arch.as_deref(), told.abi, told.mask)?;
        let registers = Registers::of_sample(arch, &told);
        let stack = StackCopy {
            thread: 1,
            start: registers.stack_pointer()?,
            bytes,
            is_full: bytes.len() as u64 >= sample.user_stack_room,
        };
        let (number, maps) = self.processes.entry(sample.pid?).or_default();
        let process = Process {
            number: *number,
            maps,
            files: &self.files,
        };
        let mut frames = Vec::new();
        let end = self
            .unwinder
            .unwind(&process, registers, stack, &mut frames);
        let (tid, time) = (sample.tid?, sample.time?);
        write!(out, "{tid} {time} {end:?}").ok()?;
        for frame in frames {
            let address = frame.lookup();
            let (start, offset) = maps.find(address).map_or((0, 0), |(s, o, _)| (s, o));
            write!(out, " {:x}", address - start + offset).ok()?;
        }
        writeln!(out).ok()
    }
}

fn main() {
    let file = std::env::args().nth(1).expect("unwind_stacks FILE");
    let mut reader = Reader::open(Path::new(&file)).expect("a recording");
    let mut out = BufWriter::new(std::io::stdout());
    let mut text = Vec::new();
    let mut pass = Pass::Again;
    while pass == Pass::Again {
        text.clear();
        let mut recording = Recording::default();
        let visit = |reader: &Reader, record: &Record<'_>| {
            recording.record(reader, record, &mut text);
        };
        pass = reader.visit(|_| (), visit).expect("readable");
    }
    out.write_all(&text).expect("written");
}
