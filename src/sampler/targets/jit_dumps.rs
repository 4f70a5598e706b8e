//! Jitdump files of processes in containers, kept for readers of the recording.
//!
//! Such a file is below the root of its process, as a perf map is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::perf_maps::{LIST_BYTES, OPENED, is_of};
use crate::files::{LastLink, ProcessView, is_jit_dump};
use crate::perfdata::KeptJitDump;

// What the recording says of a file beside its path and bytes, with the padding of the path.
const ENTRY: u64 = 24 + 64;

#[derive(Debug, Default)]
pub(in crate::sampler) struct JitDumps {
    /// By the process and its path.
    opened: FxHashMap<(i32, Vec<u8>), File>,
}

impl JitDumps {
    /// A process has mapped a file as code.
    pub(in crate::sampler) fn mapped(&mut self, pid: i32, path: &[u8]) {
        if self.opened.len() < OPENED
            && is_jit_dump(Path::new(OsStr::from_bytes(path)))
            && let Some(file) = open(pid, path)
        {
            self.opened.insert((pid, path.to_vec()), file);
        }
    }

    /// The files as they are at the end, with this number of bytes at most.
    pub(in crate::sampler) fn kept(&self, most: u64) -> Vec<KeptJitDump> {
        let mut left = most;
        let mut files: Vec<_> = self.opened.iter().collect();
        files.sort_unstable_by_key(|(key, _)| *key);
        let mut kept = Vec::new();
        for ((pid, path), file) in files {
            let Some(room) = left.checked_sub(ENTRY + path.len() as u64) else {
                continue;
            };
            let Some((bytes, left_out)) = read(file, LIST_BYTES.min(room)) else {
                continue;
            };
            left = room - bytes.len() as u64;
            kept.push(KeptJitDump {
                pid: *pid,
                path: String::from_utf8_lossy(path).into_owned(),
                bytes: bytes.into(),
                left_out,
            });
        }
        kept
    }
}

// As with perf maps, a file is used only if it belongs to the user of the process or to root.
fn open(pid: i32, path: &[u8]) -> Option<File> {
    let view = ProcessView::of(u32::try_from(pid).ok()?)?;
    if !view.is_elsewhere {
        return None;
    }
    let path = Path::new(OsStr::from_bytes(path));
    let opened = view.root.open(path, LastLink::Refuse).ok()?;
    is_of(&view, &opened.metadata).then_some(opened.file)
}

/// The first bytes of a file, this number at most, and how many it has after them.
fn read(file: &File, most: u64) -> Option<(Vec<u8>, u64)> {
    let size = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    bytes.truncate(whole_records(&bytes));
    // The last record may be half written, which is not worth a word.
    let left_out = if size > most {
        size - bytes.len() as u64
    } else {
        0
    };
    Some((bytes, left_out))
}

/// Where the last record ends that is whole. The header has its size at offset 8, and a record at
/// offset 4.
fn whole_records(bytes: &[u8]) -> usize {
    const PREFIX: usize = 16;
    let size = |at: usize| {
        let field = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(field.try_into().ok()?) as usize)
    };
    let mut end = size(8).unwrap_or(0);
    while let Some(length) = size(end + 4) {
        match end + length {
            // Whoever reads the file reports it.
            _ if length < PREFIX => return bytes.len(),
            after if after <= bytes.len() => end = after,
            _ => break,
        }
    }
    end.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A header and records of these sizes.
    fn dump(records: &[u32]) -> Vec<u8> {
        let mut bytes = [0x4a69_5444_u32, 1, 40].map(u32::to_ne_bytes).concat();
        bytes.resize(40, 0);
        for &size in records {
            let begin = bytes.len();
            bytes.extend([0, size].map(u32::to_ne_bytes).concat());
            bytes.resize(begin + size as usize, 0);
        }
        bytes
    }

    #[test]
    fn what_is_kept_of_a_file_ends_with_a_record() {
        let whole = dump(&[16, 100, 30]);
        assert_eq!(whole_records(&whole), whole.len());
        for (length, expected) in [
            (whole.len() - 1, 156),
            (157, 156),
            (155, 56),
            (56, 56),
            (7, 0),
        ] {
            assert_eq!(whole_records(&whole[..length]), expected, "{length}");
        }
        let damaged = dump(&[16, 0]);
        assert_eq!(whole_records(&damaged), damaged.len());
    }

    #[test]
    fn a_file_that_is_too_large_is_kept_up_to_the_limit_and_says_so() {
        let path = std::env::temp_dir().join(format!("proftool-kept-{}", std::process::id()));
        let whole = dump(&[16, 100, 30]);
        fs::write(&path, &whole).unwrap();
        let first = |most| read(&File::open(&path).unwrap(), most).unwrap();
        assert_eq!(first(1 << 20), (whole.clone(), 0));
        assert_eq!(first(170), (whole[..156].to_vec(), 30));
        // Half of a record that is being written.
        fs::write(&path, &whole[..170]).unwrap();
        assert_eq!(first(1 << 20), (whole[..156].to_vec(), 0));
        fs::remove_file(&path).unwrap();
    }
}
