//! What ran before the recording began, as the records that the kernel would have written.
//!
//! ```text
//! /proc/PID/task/TID/comm        COMM of each thread, and FORK of all but the first
//! /proc/PID/task/TID/stat        SWITCH of each that is blocked, for time off the processor
//! /proc/PID/maps                 MMAP2 of each mapping with code
//! /proc/PID/map_files/RANGE      the file that is mapped, whatever its path leads to now
//! /proc/PID/exe, PID/root/PATH   the same for those who may not open the former
//! ```
//!
//! All records have the time 0: they stand before everything that is sampled.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::elf_notes;
use super::mapped::{Mapped, mappings};
use super::target::Group;
use crate::base::BuildId;
use crate::files::{ListOfProcess, Root, living_thread, read_list};
use crate::perfdata::writer::{UserMapping, blocked_record, comm_record, thread_record};

// The longest list of mappings that is read of a process at first, so that those of all others are
// read before those that are longer, and the longest at all. The kernel allows 65 530 mappings (of
// about 100 bytes, but the path of each may have 4096) unless it is told otherwise.
const LIST: (usize, usize) = (1 << 20, 32 << 20);
// How much is read of all lists, and how long all records are, in bytes.
const LISTS: usize = 512 << 20;
const RECORDS: usize = 128 << 20;

type File = ((u32, u32), u64);

/// A process, and the number of one of its threads by which `/proc` shows its memory.
#[derive(Clone, Copy, Debug)]
struct Shown {
    pid: i32,
    by: i32,
}

#[derive(Debug, Default)]
pub(in crate::sampler) struct Existing {
    pub(in crate::sampler) records: Vec<u8>,
    pub(in crate::sampler) hidden: usize,
    pub(in crate::sampler) cut: usize,
    read: usize,
    data: bool,
    blocked: bool,
    build_ids: FxHashMap<File, Option<BuildId>>,
}

impl Existing {
    /// Makes the records of these processes. With `data`, mappings of files without code get
    /// records as well; with `blocked`, each blocked thread gets a switch record.
    pub(in crate::sampler) fn look(groups: &[Group], data: bool, blocked: bool) -> Existing {
        let mut existing = Existing {
            data,
            blocked,
            ..Existing::default()
        };
        let mut long = Vec::new();
        for group in groups {
            existing.process(group);
            // The first thread may have ended before the others, and shows no memory then.
            let living = u32::try_from(group.pid).ok().and_then(living_thread);
            let shown = Shown {
                pid: group.pid,
                by: living.map_or(group.pid, u32::cast_signed),
            };
            match existing.list(shown.by, LIST.0) {
                Some(list) if list.is_cut => long.push(shown),
                Some(list) => existing.mappings(shown, &list),
                None => {}
            }
        }
        for shown in long {
            if let Some(list) = existing.list(shown.by, LIST.1) {
                existing.mappings(shown, &list);
            }
        }
        existing
    }

    fn process(&mut self, group: &Group) {
        let pid = group.pid;
        self.name(pid, pid);
        for &tid in group.threads.iter().filter(|tid| **tid != pid) {
            self.records.extend(thread_record(pid, tid));
            self.name(pid, tid);
        }
    }

    fn list(&mut self, id: i32, most: usize) -> Option<ListOfProcess> {
        let most = most.min(LISTS.saturating_sub(self.read));
        match read_list(Path::new(&format!("/proc/{id}/maps")), most, b'\n') {
            Ok(list) => {
                self.read += list.bytes.len();
                Some(list)
            }
            Err(error) => {
                let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
                self.hidden += usize::from(is_denied);
                None
            }
        }
    }

    fn mappings(&mut self, process: Shown, list: &ListOfProcess) {
        let mut has_room = true;
        let mut all = mappings(&list.bytes).peekable();
        let mut before: Option<Mapped<'_>> = None;
        while let Some(mapping) = all.next() {
            has_room = self.records.len() < RECORDS;
            if !has_room {
                break;
            }
            let moved = before.zip(all.peek());
            if let Some(file) = moved.and_then(|(before, next)| mapping.replaced(&before, next)) {
                self.mapping(process, &file);
            }
            self.mapping(process, &mapping);
            before = Some(mapping);
        }
        self.cut += usize::from(list.is_cut || !has_room);
    }

    fn name(&mut self, pid: i32, tid: i32) {
        if let Ok(comm) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) {
            let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
            self.records.extend(comm_record(pid, tid, comm));
        }
        if self.blocked && is_blocked(pid, tid) {
            self.records.extend(blocked_record(pid, tid));
        }
    }

    fn mapping(&mut self, process: Shown, mapping: &Mapped<'_>) {
        let code = mapping.executable();
        let is_file = mapping.path.starts_with(b"/");
        let wanted = code || self.data && is_file;
        if !wanted {
            return;
        }
        let record = UserMapping {
            start: mapping.start,
            len: mapping.len(),
            page_offset: mapping.offset,
            device: mapping.device,
            inode: mapping.inode,
            build_id: self.build_id(process.by, mapping),
            protection: mapping.protection,
            flags: if mapping.shared {
                libc::MAP_SHARED as u32
            } else {
                libc::MAP_PRIVATE as u32
            },
            data: !code,
            name: name(mapping.path),
        };
        self.records.extend(record.record(process.pid));
    }

    fn build_id(&mut self, id: i32, mapping: &Mapped<'_>) -> Option<BuildId> {
        if !mapping.path.starts_with(b"/") || mapping.inode == 0 {
            return None;
        }
        let file = (mapping.device, mapping.inode);
        if let Some(known) = self.build_ids.get(&file) {
            return known.clone();
        }
        let build_id = mapped_build_id(id, mapping);
        self.build_ids.insert(file, build_id.clone());
        build_id
    }
}

/// Whether a thread waits for something: it sleeps, for a while or for a disk, or is stopped.
fn is_blocked(pid: i32, tid: i32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    // The name stands in parentheses and may have any byte.
    let state = stat
        .iter()
        .rposition(|&byte| byte == b')')
        .and_then(|end| stat.get(end.checked_add(2)?));
    matches!(state, Some(b'S' | b'D' | b'T' | b't'))
}

/// The build ID of the very file that is mapped. Its path may lead to another by now.
fn mapped_build_id(id: i32, mapping: &Mapped<'_>) -> Option<BuildId> {
    let process = PathBuf::from(format!("/proc/{id}"));
    let range = format!("map_files/{:x}-{:x}", mapping.start, mapping.end);
    let path = Path::new(OsStr::from_bytes(mapping.path));
    let inode = mapping.inode;
    elf_notes::build_id_of_link(&process.join(range), None)
        .or_else(|| elf_notes::build_id_of_link(&process.join("exe"), Some(inode)))
        .or_else(|| elf_notes::build_id_of_inode(&Root::at(&process.join("root")), path, inode))
}

fn name(path: &[u8]) -> Vec<u8> {
    if path.is_empty() || path.starts_with(b"[anon") {
        return b"//anon".to_vec();
    }
    if !path.contains(&b'\\') {
        return path.to_vec();
    }
    let mut name = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(after) => {
                name.push(b'\n');
                rest = after;
            }
            None => {
                name.push(byte);
                rest = after;
            }
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::output::tally::Tally;

    #[test]
    fn this_process_is_described_with_the_build_ids_of_its_files() {
        let pid = std::process::id() as i32;
        let threads = vec![pid];
        let existing = Existing::look(&[Group { pid, threads }], false, false);
        assert_eq!(existing.hidden, 0);
        let mut tally = Tally::default();
        tally.look(&existing.records);
        let program = std::env::current_exe().unwrap();
        let told = &tally.images[program.as_os_str().as_bytes()];
        assert_eq!(*told, elf_notes::build_id_of(&program));
        assert!(tally.images.contains_key(b"[vdso]".as_slice()));
    }

    #[test]
    fn a_process_that_has_ended_gives_no_records() {
        let threads = vec![i32::MAX];
        let gone = Group {
            pid: i32::MAX,
            threads,
        };
        assert!(Existing::look(&[gone], true, true).records.is_empty());
    }

    #[test]
    fn names_are_those_of_the_kernels_records() {
        assert_eq!(name(b""), b"//anon");
        assert_eq!(name(b"[anon:stack]"), b"//anon");
        assert_eq!(name(b"[vdso]"), b"[vdso]");
        assert_eq!(name(b"/a\\012b (deleted)"), b"/a\nb (deleted)");
    }
}
