//! The lines of `/proc/PID/maps`.
//!
//! ```text
//! 55d4c8a00000-55d4c8a02000 r-xp 00002000 fe:00 1234    /usr/bin/prog (deleted)
//! range                     rights offset device inode  path as the process has it
//! ```

use std::io;
use std::path::Path;

use crate::base::utf8;
use crate::files::read_list;

// The most bytes that are read of a list of mappings.
pub(in crate::sampler) const MAPPINGS: usize = 32 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sampler) struct Mapped<'a> {
    pub(in crate::sampler) start: u64,
    pub(in crate::sampler) end: u64,
    /// `PROT_READ`, `PROT_WRITE` and `PROT_EXEC`.
    pub(in crate::sampler) protection: u32,
    pub(in crate::sampler) shared: bool,
    /// The position in the file of what is at `start`.
    pub(in crate::sampler) offset: u64,
    pub(in crate::sampler) device: (u32, u32),
    pub(in crate::sampler) inode: u64,
    /// Empty if it shows no file; a line feed in it stands as `\012`.
    pub(in crate::sampler) path: &'a [u8],
}

impl Mapped<'_> {
    pub(in crate::sampler) fn executable(&self) -> bool {
        self.protection & libc::PROT_EXEC as u32 != 0
    }

    pub(in crate::sampler) fn len(&self) -> u64 {
        self.end - self.start
    }
}

impl<'a> Mapped<'a> {
    /// The mapping of a file that this one, anonymous memory with code, has replaced: helpers for
    /// huge pages copy a program's text and put the copy in its place. The file is on both sides of
    /// it, and the addresses in it fit.
    pub(in crate::sampler) fn replaced(
        &self,
        before: &Mapped<'a>,
        next: &Mapped<'a>,
    ) -> Option<Mapped<'a>> {
        let file = |mapped: &Mapped<'a>| (mapped.device, mapped.inode, mapped.path);
        let shift = |mapped: &Mapped<'_>| mapped.start.wrapping_sub(mapped.offset);
        let is_between = before.end == self.start && self.end == next.start;
        let is_of_file = before.inode != 0 && file(before) == file(next);
        let fits = is_between && is_of_file && shift(before) == shift(next);
        (fits && self.inode == 0 && self.executable()).then(|| Mapped {
            start: self.start,
            end: self.end,
            protection: self.protection,
            offset: self.start.wrapping_sub(shift(before)),
            ..*before
        })
    }
}

pub(in crate::sampler) fn maps(id: i32) -> io::Result<Vec<u8>> {
    let list = read_list(Path::new(&format!("/proc/{id}/maps")), MAPPINGS, b'\n')?;
    Ok(list.bytes)
}

pub(in crate::sampler) fn mappings(list: &[u8]) -> impl Iterator<Item = Mapped<'_>> {
    list.split(|byte| *byte == b'\n').filter_map(mapping)
}

fn mapping(line: &[u8]) -> Option<Mapped<'_>> {
    let mut words = line.splitn(6, |byte| *byte == b' ');
    let (range, rights) = (utf8(words.next()?), words.next()?);
    let (offset, device) = (utf8(words.next()?), utf8(words.next()?));
    let inode = utf8(words.next()?);
    let path = words.next().unwrap_or_default().trim_ascii_start();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let (major, minor) = device.split_once(':')?;
    let right = |at: usize, letter: u8, bit: i32| match rights.get(at) {
        Some(found) if *found == letter => bit as u32,
        _ => 0,
    };
    (start <= end).then_some(Mapped {
        start,
        end,
        protection: right(0, b'r', libc::PROT_READ)
            | right(1, b'w', libc::PROT_WRITE)
            | right(2, b'x', libc::PROT_EXEC),
        shared: rights.get(3) == Some(&b's'),
        offset: hex(&offset)?,
        device: (
            u32::try_from(hex(major)?).ok()?,
            u32::try_from(hex(minor)?).ok()?,
        ),
        inode: inode.parse().ok()?,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed() {
        let list = b"55d4c8a00000-55d4c8a02000 r-xp 00002000 fe:1a 12    /usr/my prog (deleted)\n\
            7f0000000000-7f0000003000 rw-s 00000000 00:00 0 \n\
            \n bad\nx-y r-xp\n5-4 r-xp 0 0:0 0 \n";
        let found: Vec<Mapped<'_>> = mappings(list).collect();
        let program = Mapped {
            start: 0x55d4_c8a0_0000,
            end: 0x55d4_c8a0_2000,
            protection: 5,
            shared: false,
            offset: 0x2000,
            device: (0xfe, 0x1a),
            inode: 12,
            path: b"/usr/my prog (deleted)",
        };
        assert_eq!(found[0], program);
        assert!(found[0].executable() && found[0].len() == 0x2000);
        assert!(found[1].shared && found[1].protection == 3 && found[1].path.is_empty());
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_copy_of_text_lies_between_parts_of_its_file() {
        let list = |last: &str| {
            format!(
                "1000-2000 r--p 00000000 fe:0 7 /bin/app\n\
                 2000-5000 rwxp 00000000 00:00 0 \n\
                 5000-6000 r--p {last} /bin/app\n"
            )
        };
        let replaced = |last: &str| {
            let list = list(last);
            let found: Vec<Mapped<'_>> = mappings(list.as_bytes()).collect();
            let file = found[1].replaced(&found[0], &found[2])?;
            assert!(file.path == b"/bin/app" && file.executable());
            Some((file.start, file.end, file.offset))
        };
        assert_eq!(replaced("00004000 fe:0 7"), Some((0x2000, 0x5000, 0x1000)));
        // Another file, or the same one loaded again elsewhere.
        assert_eq!(replaced("00004000 fe:0 8"), None);
        assert_eq!(replaced("00003000 fe:0 7"), None);
    }
}
