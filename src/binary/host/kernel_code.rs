//! The machine code of the running kernel.
//!
//! ```text
//!   /proc/kcore        an ELF core file: a program header for each range of the kernel's memory
//!   vmlinux            the file that the kernel was linked to, by build ID: moved by _text − .text
//! ```
//!
//! The kernel changes its code while it starts and runs (alternatives, static keys, tracing). So
//! its memory comes first, which only root may read; a vmlinux has the code as it was built, and
//! the source lines.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::elf;

use super::finder::Finder;
use super::search_directories::FileLocation;
use crate::base::{Avma, BuildId, Svma, utf8};
use crate::binary::{Binary, Error, Machine};
use crate::files::{self, Root};

/// The kernel's memory as a file.
pub const KERNEL_MEMORY: &str = "/proc/kcore";
// Kernels have some dozens of program headers.
const MOST_RANGES: usize = 4096;
// The size of the header of an ELF file with 64-bit addresses, and of its program headers.
const HEADER: usize = 64;
const RANGE: usize = 56;
// Bytes that are read at a time. No function of a kernel comes near it.
const MOST: u64 = 64 << 20;

// A range of the kernel's memory, and where the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u64,
    size: u64,
    offset: u64,
}

// The kernel's memory, as `/proc/kcore` shows it.
#[derive(Debug)]
struct Memory {
    file: File,
    machine: Machine,
    ranges: Vec<Range>,
}

impl Memory {
    fn open(path: &Path) -> Result<Memory, Error> {
        let file = files::open_named(path)?.file;
        let mut header = [0; HEADER];
        let read = file.read_exact_at(&mut header, 0);
        read.map_err(Error::at(path))?;
        let (offset, count, machine) = table(&header)?;
        let mut bytes = vec![0; count * RANGE];
        let read = file.read_exact_at(&mut bytes, offset);
        read.map_err(Error::at(path))?;
        Ok(Memory {
            file,
            machine,
            ranges: ranges(&bytes),
        })
    }

    // Bytes that are in one range.
    fn read(&self, start: u64, size: u64) -> Option<Vec<u8>> {
        let range = self.ranges.iter().find(|range| {
            let from = start.checked_sub(range.start);
            let rest = from.and_then(|from| range.size.checked_sub(from));
            rest.is_some_and(|rest| rest >= size)
        })?;
        let offset = range.offset.checked_add(start - range.start)?;
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }
}

// Where the program headers are, how many there are, and the machine, by an ELF header of this
// machine's byte order.
fn table(header: &[u8; HEADER]) -> Result<(u64, usize, Machine), Error> {
    let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let is_wide = header[4] == elf::ELFCLASS64.0;
    if header[..4] != elf::ELFMAG || !is_wide || usize::from(half(54)) != RANGE {
        return Err(Error::NotElf);
    }
    let machine = match half(18) {
        m if m == elf::EM_X86_64.0 => Machine::X86_64,
        m if m == elf::EM_AARCH64.0 => Machine::Aarch64,
        machine => return Err(Error::UnknownMachine { machine }),
    };
    let mut offset = [0; 8];
    offset.copy_from_slice(&header[32..40]);
    let count = usize::from(half(56)).min(MOST_RANGES);
    Ok((u64::from_ne_bytes(offset), count, machine))
}

// The loaded ones.
fn ranges(headers: &[u8]) -> Vec<Range> {
    let headers = headers.as_chunks::<RANGE>().0;
    let found = headers.iter().filter_map(|header| {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&header[at..at + 8]);
            u64::from_ne_bytes(bytes)
        };
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        (kind == elf::PT_LOAD.0).then(|| Range {
            offset: word(8),
            start: word(16),
            size: word(32),
        })
    });
    found.collect()
}

/// Where the code of a function was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelCodeSource {
    /// The kernel's memory: the code as it runs.
    Memory(PathBuf),
    /// A vmlinux of the same build: the code as it was built.
    Built(PathBuf),
}

/// The code of the running kernel.
#[derive(Debug)]
pub struct KernelCode {
    memory: Result<Memory, Error>,
    // The file that the running kernel was built to, and what its addresses are moved by.
    built: Option<(Binary, u64)>,
}

impl KernelCode {
    /// Opens the kernel's memory and its vmlinux, as far as they are there. `text` is the present
    /// address of its symbol `_text`.
    ///
    /// # Errors
    /// Why its memory cannot be read, if there is no vmlinux of its build either.
    pub fn running(finder: &Finder, text: Avma) -> Result<KernelCode, Error> {
        let notes = whole("/sys/kernel/notes");
        let release = whole("/proc/sys/kernel/osrelease");
        let release = utf8(&release);
        let built = BuildId::in_notes(&notes)
            .and_then(|build_id| vmlinux(finder, &build_id, release.trim()))
            .and_then(|binary| {
                let moved = text.0.wrapping_sub(binary.section_start(b".text")?.0);
                Some((binary, moved))
            });
        match Memory::open(Path::new(KERNEL_MEMORY)) {
            Err(error) if built.is_none() => Err(error),
            memory => Ok(KernelCode { memory, built }),
        }
    }

    pub fn machine(&self) -> Option<Machine> {
        match (&self.memory, &self.built) {
            (Ok(memory), _) => Some(memory.machine),
            (_, Some((binary, _))) => binary.code().ok().map(|code| code.machine),
            _ => None,
        }
    }

    /// Reads the code at an address that the running kernel has; `None` if nothing is mapped there.
    pub fn read(&self, start: Avma, size: u64) -> Option<(Vec<u8>, KernelCodeSource)> {
        if size == 0 || size > MOST {
            return None;
        }
        if let Ok(memory) = &self.memory
            && let Some(bytes) = memory.read(start.0, size)
        {
            return Some((bytes, KernelCodeSource::Memory(KERNEL_MEMORY.into())));
        }
        let (binary, moved) = self.built.as_ref()?;
        let at = Svma(start.0.wrapping_sub(*moved));
        let code = binary.code().ok()?;
        let piece = code.piece(at, Svma(at.0.checked_add(size)?))?;
        let mut bytes = Vec::new();
        code.read(piece, &mut bytes).ok()?;
        bytes.truncate(usize::try_from(piece.length).ok()?);
        let path = binary.path().to_owned();
        Some((bytes, KernelCodeSource::Built(path)))
    }

    /// The vmlinux of this build, which has source lines, and what its addresses are moved by.
    pub fn built(&self) -> Option<(&Binary, u64)> {
        self.built.as_ref().map(|(binary, moved)| (binary, *moved))
    }
}

// Empty if it cannot be read.
fn whole(path: &str) -> Vec<u8> {
    const MOST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    if let Ok(opened) = files::open_named(Path::new(path)) {
        // What was read of it before an error is not believed.
        let read = opened.file.take(MOST).read_to_end(&mut bytes);
        bytes.truncate(read.unwrap_or(0));
    }
    bytes
}

// A vmlinux with code, of this build.
fn vmlinux(finder: &Finder, build_id: &BuildId, release: &str) -> Option<Binary> {
    let mut places = finder.kept_programs(build_id);
    let own = |path: String| FileLocation::below(&Root::default(), path.into());
    if !release.is_empty() && !release.contains('/') {
        let paths = [
            format!("/lib/modules/{release}/build/vmlinux"),
            format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
            format!("/usr/lib/debug/boot/vmlinux-{release}"),
            format!("/boot/vmlinux-{release}"),
        ];
        places.extend(paths.into_iter().map(own));
    }
    places.into_iter().find_map(|place| {
        let binary = finder.at_location(place).ok()?;
        let is_it = binary.build_id() == Some(build_id);
        let has_code = || binary.code().is_ok_and(|code| code.size() > 0);
        (is_it && has_code()).then_some(binary)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;

    // An ELF core file with a note and two ranges of memory.
    fn core() -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..4].copy_from_slice(&elf::ELFMAG);
        bytes[4] = elf::ELFCLASS64.0;
        bytes[18..20].copy_from_slice(&elf::EM_X86_64.0.to_ne_bytes());
        bytes[32..40].copy_from_slice(&(HEADER as u64).to_ne_bytes());
        bytes[54..56].copy_from_slice(&(RANGE as u16).to_ne_bytes());
        bytes[56..58].copy_from_slice(&3u16.to_ne_bytes());
        let memory = (HEADER + 3 * RANGE) as u64;
        for (kind, offset, start) in [
            (elf::PT_NOTE.0, 0, 0),
            (elf::PT_LOAD.0, memory, 0xffff_ffff_8100_0000),
            (elf::PT_LOAD.0, memory + 4, 0xffff_ffff_c000_0000u64),
        ] {
            let mut header = [0; RANGE];
            header[..4].copy_from_slice(&kind.to_ne_bytes());
            for (at, word) in [(8, offset), (16, start), (32, 4)] {
                header[at..at + 8].copy_from_slice(&word.to_ne_bytes());
            }
            bytes.extend(header);
        }
        bytes.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        bytes
    }

    fn opened(bytes: &[u8]) -> Result<Memory, Error> {
        let file = rustix::fs::memfd_create("core", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = File::from(file);
        file.write_all(bytes).unwrap();
        Memory::open(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
    }

    #[test]
    fn memory_is_read_by_address_and_never_across_ranges() {
        let memory = opened(&core()).unwrap();
        assert_eq!(memory.machine, Machine::X86_64);
        let read = |start, size| memory.read(start, size);
        assert_eq!(read(0xffff_ffff_8100_0001, 3), Some(vec![2, 3, 4]));
        assert_eq!(read(0xffff_ffff_c000_0000, 4), Some(vec![5, 6, 7, 8]));
        assert_eq!(read(0xffff_ffff_8100_0001, 4), None);
        assert_eq!(read(0xffff_ffff_80ff_ffff, 2), None);
        assert_eq!(read(0, 1), None);
    }

    #[test]
    fn what_is_no_core_file_is_refused() {
        let other = opened(&[0x7f; 200]);
        assert!(matches!(other, Err(Error::NotElf)));
        assert!(opened(&core()[..100]).is_err());
    }
}
