//! Code that processes compile while they run, where a jitdump file tells when and where.
//!
//! ```text
//!   Mapping of jit-PID.dump ──▶ JitSource ──▶ the code of the process, in order of time
//!   Sample at time t        ──▶ what was put into memory up to t lies over the mappings
//! ```
//!
//! An address in such code is counted as the place of the code in the file, which is the same
//! wherever the code is moved and never that of other code. So the time of a sample decides here
//! which code it is in, and there are only as many frames as distinct places.

use std::sync::Arc;

use linux_perf_event_reader::AttrFlags;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::{CaveatKind, Caveats, GeneratedCode};
use crate::perfdata::{KeptJitDump, Reader, Task};

use super::stacks::Stacks;
use super::{Image, ImageKind};

/// Where the code comes from that jitdump files list.
pub trait JitSource: Sync {
    /// Whether a file is one, by its path.
    fn is_dump(&self, path: &str) -> bool;

    /// All code in a file in order of time; `None` if its times are not those of
    /// `CLOCK_MONOTONIC`. `os_release` is that of the kernel that it was written under.
    ///
    /// # Errors
    /// Why the file cannot be read.
    fn code(
        &self,
        dump: MappedDump<'_>,
        os_release: Option<&str>,
    ) -> Result<Option<Arc<[GeneratedCode]>>, String>;
}

/// A jitdump file that a process mapped.
#[derive(Clone, Copy, Debug)]
pub struct MappedDump<'a> {
    pub pid: i32,
    /// Where the process has it.
    pub path: &'a str,
    /// The file, if the recorder kept it.
    pub kept: Option<&'a KeptJitDump>,
}

/// The code of one process that is yet to be put into its memory.
struct Feed {
    image: Image,
    code: Arc<[GeneratedCode]>,
    next: usize,
    /// When a thread of the process ended last.
    ended: Option<u64>,
    /// Whether its first thread has ended.
    is_over: bool,
}

// Code is listed after the file was made and mapped. It may be listed earlier by less than this
// number of nanoseconds, which is below the least offset of a time namespace: as a rule they are
// whole seconds.
const SLACK: u64 = 900_000_000;

/// The jitdump files of all processes.
#[derive(Default)]
pub(super) struct Dumps<'a> {
    source: Option<&'a dyn JitSource>,
    /// Whether the files still grow. A compiler writes what it did long after samples of it have
    /// come, so time is of no use then.
    is_growing: bool,
    feeds: FxHashMap<i32, Feed>,
    untimed: Vec<Image>,
    /// The files whose times turned out not to be those of the recording.
    misfits: FxHashSet<String>,
    caveats: Caveats,
}

impl<'a> Dumps<'a> {
    /// Dumps that are read once. The times of `misfits` are not used.
    pub(super) fn timed(source: Option<&'a dyn JitSource>, misfits: FxHashSet<String>) -> Self {
        Dumps {
            source,
            misfits,
            ..Dumps::default()
        }
    }

    /// Dumps of processes that still run.
    pub(super) fn growing(source: Option<&'a dyn JitSource>) -> Self {
        Dumps {
            source,
            is_growing: true,
            ..Dumps::default()
        }
    }

    /// A process has mapped a file at a time. Tells whether it is a jitdump, and reads it if it is.
    pub(super) fn is_dump(
        &mut self,
        reader: &Reader,
        path: &str,
        (pid, time): (i32, Option<u64>),
    ) -> bool {
        let Some(source) = self.source.filter(|source| source.is_dump(path)) else {
            return false;
        };
        let image = |is_timed| Image {
            file: None,
            path: path.into(),
            raw_path: None,
            build_id: None,
            kind: ImageKind::JitDump { pid, is_timed },
        };
        let mut known = self
            .feeds
            .get(&pid)
            .map(|feed| &feed.image)
            .into_iter()
            .chain(&self.untimed);
        if known.any(|known| [true, false].map(image).contains(known)) {
            return true;
        }
        if self.is_growing {
            self.untimed.push(image(false));
            return true;
        }
        let release = reader.features().os_release.as_deref();
        let mut kept = reader.features().jit_dumps.iter();
        let kept = kept.find(|kept| kept.pid == pid && kept.path == path);
        let code = match source.code(MappedDump { pid, path, kept }, release) {
            // The times in a jitdump are those of CLOCK_MONOTONIC. A recording with another clock
            // cannot be compared with them.
            Ok(code) => code.filter(|_| has_monotonic_clock(reader)),
            Err(error) => {
                let detail = format!("{path}: {error}");
                self.caveats.add_detail(CaveatKind::BadJitDump, 1, detail);
                return true;
            }
        };
        // In a time namespace CLOCK_MONOTONIC is another clock than that of the recording.
        let is_misfit = |code: &Arc<[GeneratedCode]>| {
            let first = code.first().map(|code| code.time.saturating_add(SLACK));
            self.misfits.contains(path) || first.zip(time).is_some_and(|(first, time)| first < time)
        };
        match code {
            Some(code) if is_misfit(&code) => {
                self.caveats.add_detail(CaveatKind::JitOtherTime, 1, path);
                self.untimed.push(image(false));
            }
            Some(code) => {
                let feed = Feed {
                    image: image(true),
                    code,
                    next: 0,
                    ended: None,
                    is_over: false,
                };
                self.feeds.insert(pid, feed);
            }
            None => {
                self.caveats.add_detail(CaveatKind::JitWithoutTime, 1, path);
                self.untimed.push(image(false));
            }
        }
        true
    }

    /// Returns the files that do not state when code was where.
    pub(super) fn untimed(&self) -> &[Image] {
        &self.untimed
    }

    /// A thread has ended.
    pub(super) fn exit(&mut self, task: &Task, time: Option<u64>) {
        if let Some(feed) = self.feeds.get_mut(&task.pid) {
            feed.ended = feed.ended.max(time);
            feed.is_over |= task.pid == task.tid;
        }
    }

    /// Returns the files that list code later than their process ended: their times are not those
    /// of the recording.
    pub(super) fn misfits(&self) -> FxHashSet<String> {
        let is_misfit = |feed: &&Feed| {
            let last = feed.code.last().map(|code| code.time);
            feed.is_over && feed.ended.is_some() && last > feed.ended
        };
        let found = self.feeds.values().filter(is_misfit);
        found.map(|feed| feed.image.path.to_string()).collect()
    }

    /// A process has replaced its program.
    pub(super) fn exec(&mut self, pid: i32) {
        self.feeds.remove(&pid);
    }

    /// Puts the code into the memory of a process that was there by a time.
    pub(super) fn advance(&mut self, pid: i32, time: Option<u64>, stacks: &mut Stacks) {
        let Some(feed) = self.feeds.get_mut(&pid) else {
            return;
        };
        let rest = feed.code.get(feed.next..).unwrap_or_default();
        let time = time.unwrap_or(u64::MAX);
        let count = rest.iter().take_while(|code| code.time <= time).count();
        if count == 0 {
            return;
        }
        feed.next += count;
        let image = stacks.images.id_of(feed.image.clone());
        let process = stacks.processes.entry(pid).or_default();
        process.change(|mappings| {
            for code in rest.iter().take(count) {
                mappings.generate(code, image);
            }
        });
    }

    /// Returns what could not be read, or is ambiguous.
    pub(super) fn caveats(&self) -> &Caveats {
        &self.caveats
    }
}

fn has_monotonic_clock(reader: &Reader) -> bool {
    const CLOCK_MONOTONIC: u32 = 1;
    reader.events().iter().all(|event| {
        let attr = &event.attr;
        attr.flags().contains(AttrFlags::USE_CLOCKID) && attr.clock_id == CLOCK_MONOTONIC
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::CodeAddress;

    #[test]
    fn an_address_shows_the_code_that_was_there_at_the_time() {
        let (pid, path) = (7, "/tmp/jit-7.dump");
        let code = |time, start, place, moved_from| GeneratedCode {
            time,
            start,
            size: 0x20,
            place,
            moved_from,
        };
        let code = [
            code(10, 0x1000, 100, None),
            code(20, 0x1000, 200, None),
            code(30, 0x5000, 200, Some(0x1000)),
        ];
        let kind = ImageKind::JitDump {
            pid,
            is_timed: true,
        };
        let image = Image {
            file: None,
            path: path.into(),
            raw_path: None,
            build_id: None,
            kind,
        };
        let mut dumps = Dumps::default();
        dumps.feeds.insert(
            pid,
            Feed {
                image,
                code: code.into(),
                next: 0,
                ended: None,
                is_over: false,
            },
        );
        let mut stacks = Stacks::default();
        let mut at = |time, address| {
            dumps.advance(pid, Some(time), &mut stacks);
            let process = stacks.processes.get(&pid)?;
            let (_, address) = process.find(CodeAddress::Instruction(address))?;
            Some(address.lookup())
        };
        assert_eq!(at(9, 0x1000), None);
        assert_eq!(at(10, 0x1008), Some(108));
        assert_eq!(at(25, 0x1008), Some(208));
        assert_eq!(at(25, 0x1020), None);
        assert_eq!(at(30, 0x1008), None);
        assert_eq!(at(30, 0x5008), Some(208));
        // Time does not go back.
        assert_eq!(at(10, 0x5008), Some(208));
    }

    #[test]
    fn generated_code_outlives_a_change_of_protection_but_not_a_new_file() {
        let mut stacks = Stacks::default();
        let image = |kind| Image {
            file: None,
            path: "".into(),
            raw_path: None,
            build_id: None,
            kind,
        };
        let is_timed = true;
        let dump = stacks
            .images
            .id_of(image(ImageKind::JitDump { pid: 7, is_timed }));
        let memory = stacks.images.id_of(image(ImageKind::Generated { pid: 7 }));
        let process = stacks.processes.entry(7).or_default();
        let shown = |process: &super::super::memory::ProcessMemory| {
            let found = process.find(CodeAddress::Instruction(0x1008));
            found.map(|(image, _)| image)
        };
        process.change(|m| {
            let code = GeneratedCode {
                time: 1,
                start: 0x1000,
                size: 0x20,
                place: 50,
                moved_from: None,
            };
            m.generate(&code, dump);
            m.map(0x1000, 0x2000, memory, 0x1000);
        });
        assert_eq!(shown(process), Some(dump));
        process.change(|m| m.ungenerate(0x1000, 0x2000));
        assert_eq!(shown(process), Some(memory));
    }
}
