//! The notes of ELF files, which have the builds of files.

use std::fs::File;
use std::os::unix::fs::FileExt;

const PT_NOTE: u32 = 4;
// Notes are small; more than this is not read of any file.
const NOTES_LIMIT: u64 = 1 << 16;

/// The first thing that `find` finds in the notes of a segment of an ELF file of this machine's
/// byte order.
pub fn find<T>(file: &File, find: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    let class = header[4];
    if !header.starts_with(b"\x7fELF") || !matches!(class, 1 | 2) {
        return None;
    }
    // Elf64: e_phoff at 32, e_phentsize at 54, e_phnum at 56; p_offset at 8, p_filesz at 32.
    // Elf32: e_phoff at 28, e_phentsize at 42, e_phnum at 44; p_offset at 4, p_filesz at 16.
    let (word, table, sizes, offset_at, size_at) = match class {
        2 => (8, 32, 54, 8, 32),
        _ => (4, 28, 42, 4, 16),
    };
    let start = number(&header, table, word)?;
    let entry_size = number(&header, sizes, 2)?;
    let entries = number(&header, sizes + 2, 2)?;
    if entry_size < 32 || entry_size * entries > NOTES_LIMIT {
        return None;
    }
    let mut segments = vec![0; (entry_size * entries) as usize];
    file.read_exact_at(&mut segments, start).ok()?;
    segments
        .chunks_exact(entry_size as usize)
        .filter(|segment| number(segment, 0, 4) == Some(u64::from(PT_NOTE)))
        .find_map(|segment| {
            let size = number(segment, size_at, word)?.min(NOTES_LIMIT);
            let mut notes = vec![0; size as usize];
            file.read_exact_at(&mut notes, number(segment, offset_at, word)?)
                .ok()?;
            find(&notes)
        })
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?;
    Some(match size {
        2 => u64::from(u16::from_ne_bytes(*bytes.first_chunk()?)),
        4 => u64::from(u32::from_ne_bytes(*bytes.first_chunk()?)),
        _ => u64::from_ne_bytes(*bytes.first_chunk()?),
    })
}
