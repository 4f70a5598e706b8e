//! The machine code of a file: where the bytes of an address are. It is read in pieces, so that a
//! scan of all code needs memory for one piece only.
//!
//! ```text
//!   section    .init    .text             .fini        linkage tables are left out:
//!   stretch             main│parse│lex│…               their stubs have names already
//! ```

use object::elf;

use super::Elf;
use super::source::Source;
use crate::base::{FileOffset, Svma};
use crate::binary::{Binary, Error};

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Machine {
    /// x86-64, instructions of 1 to 15 bytes.
    X86_64,
    /// AArch64, instructions of 4 bytes.
    Aarch64,
    X86,
    /// RISC-V with 64-bit addresses, compressed instructions included.
    Riscv64,
    /// RISC-V with 32-bit addresses, compressed instructions included.
    Riscv32,
}

impl Machine {
    // `None` where it is none of these.
    pub(in crate::binary) fn of(elf: &Elf) -> Option<Machine> {
        Machine::of_number(elf.machine, elf.wide)
    }

    // By the number in ELF files; `is_wide` if addresses have 64 bits.
    pub(in crate::binary) fn of_number(machine: u16, is_wide: bool) -> Option<Machine> {
        Some(match machine {
            m if m == elf::EM_X86_64.0 => Machine::X86_64,
            m if m == elf::EM_AARCH64.0 => Machine::Aarch64,
            m if m == elf::EM_386.0 => Machine::X86,
            m if m == elf::EM_RISCV.0 && is_wide => Machine::Riscv64,
            m if m == elf::EM_RISCV.0 => Machine::Riscv32,
            _ => return None,
        })
    }
}

/// A part of a function without another one in it: most functions are one stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The address of the first byte.
    pub start: Svma,
    /// The address behind the last byte.
    pub end: Svma,
    /// The index in [`Binary::functions`].
    pub function: usize,
}

/// Where the bytes of all code sections are.
#[derive(Debug)]
pub struct Code<'a> {
    pub machine: Machine,
    /// What cannot be read; each a lower-case fragment.
    pub problems: Vec<String>,
    source: &'a Source,
    // Sorted by start.
    sections: Vec<Extent>,
}

#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    size: u64,
    offset: u64,
}

/// A part of the code: what of the file holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePiece {
    /// Where in the file its first byte is.
    pub offset: FileOffset,
    /// The number of bytes.
    pub length: u64,
}

impl Code<'_> {
    /// The code from `start` to `end` or to the end of the section; `None` where there is none.
    pub fn piece(&self, start: Svma, end: Svma) -> Option<CodePiece> {
        let after = self.sections.partition_point(|at| at.start <= start.0);
        let section = self.sections.get(after.checked_sub(1)?)?;
        let from = start.0.wrapping_sub(section.start);
        let rest = section.size.checked_sub(from)?;
        let length = end.0.checked_sub(start.0)?.min(rest);
        (length > 0).then_some(CodePiece {
            offset: FileOffset(section.offset.wrapping_add(from)),
            length,
        })
    }

    /// Reads a piece into `into`, which is made longer where it has to be.
    ///
    /// # Errors
    /// When the file cannot be read, or no longer has these bytes.
    pub fn read<'b>(&self, piece: CodePiece, into: &'b mut Vec<u8>) -> Result<&'b [u8], Error> {
        let CodePiece { offset, length } = piece;
        self.source.read_into("code", offset.0, length, into)
    }

    /// The sections of code: start and size, in order of address.
    pub fn sections(&self) -> impl Iterator<Item = (Svma, u64)> {
        let sections = self.sections.iter();
        sections.map(|section| (Svma(section.start), section.size))
    }

    /// How many bytes of code there are.
    pub fn size(&self) -> u64 {
        let sizes = self.sections.iter().map(|section| section.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// The addresses from the first byte of code to the last.
    pub fn range(&self) -> std::ops::RangeInclusive<u64> {
        let first = self.sections.first().map_or(0, |section| section.start);
        let end = |section: &Extent| section.start.saturating_add(section.size);
        first..=self.sections.iter().map(end).max().unwrap_or(0)
    }
}

// Code that does nothing but return from a signal, by the system call of that name. Debuggers know
// it in the same way.
const SIGNAL_RETURNS: [&[u8]; 6] = [
    // x86-64: mov $15,%rax or mov $15,%eax; syscall
    &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
    &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05],
    // x86: mov $173,%eax; int $0x80, and the older pop %eax; mov $119,%eax; int $0x80
    &[0xb8, 0xad, 0, 0, 0, 0xcd, 0x80],
    &[0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80],
    // AArch64: mov x8,#139; svc #0
    &[0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4],
    // RISC-V: li a7,139; ecall
    &[0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0],
];

pub(in crate::binary) fn is_signal_return(bytes: &[u8]) -> bool {
    SIGNAL_RETURNS.iter().any(|code| bytes.starts_with(code))
}

impl Binary {
    /// Whether the code at an address does nothing but return from a signal.
    pub fn returns_from_signal(&self, at: Svma) -> bool {
        let bytes: Option<[u8; 9]> = self.bytes_at(at);
        bytes.is_some_and(|bytes| is_signal_return(&bytes))
    }

    /// The bytes that the file has at an address, of data or of code; `None` where it has fewer.
    pub fn bytes_at<const N: usize>(&self, at: Svma) -> Option<[u8; N]> {
        self.bytes(at, N as u64)?.first_chunk().copied()
    }

    // Read at once.
    pub(in crate::binary) fn bytes(&self, at: Svma, number: u64) -> Option<Vec<u8>> {
        let section = self.elf.sections.iter().find(|section| {
            let from = at.0.checked_sub(section.address);
            let is_inside = from.and_then(|from| section.size.checked_sub(from));
            (section.is_code() || section.is_data())
                && section.kind != elf::SHT_NOBITS.0
                && is_inside.is_some_and(|rest| rest >= number)
        })?;
        let offset = section.offset.checked_add(at.0 - section.address)?;
        self.elf.source.read("data", offset, number).ok()
    }

    pub(in crate::binary) fn section_start(&self, name: &[u8]) -> Option<Svma> {
        let section = self.elf.section(name)?;
        Some(Svma(self.elf.section_start(section)))
    }

    /// The machine code.
    ///
    /// # Errors
    /// When its instruction set is not known here.
    pub fn code(&self) -> Result<Code<'_>, Error> {
        let machine = Machine::of(&self.elf).ok_or(Error::UnknownMachine {
            machine: self.elf.machine,
        })?;
        let mut problems = Vec::new();
        let sections = sections(&self.elf, &mut problems);
        Ok(Code {
            machine,
            problems,
            source: &self.elf.source,
            sections,
        })
    }

    /// The code of all functions, sorted by address, each byte once. Where functions overlap, a
    /// byte belongs to the one that starts last.
    pub fn stretches(&self) -> Vec<Stretch> {
        self.table().stretches()
    }

    /// The code of one function by its index in [`Binary::functions`], sorted by address.
    pub fn stretches_of(&self, function: usize) -> Vec<Stretch> {
        self.table().stretches_of(function)
    }
}

fn sections(elf: &Elf, problems: &mut Vec<String>) -> Vec<Extent> {
    let mut sections = Vec::new();
    // Sound sections do not share bytes, so together they are no larger than the file.
    let mut room = elf.source.size();
    for section in elf.sections.iter().filter(|section| section.is_code()) {
        if section.is_linkage_table() || section.kind == elf::SHT_NOBITS.0 {
            continue;
        }
        let start = elf.section_start(section);
        let (offset, size) = (section.offset, section.size);
        let problem = match start.checked_add(size) {
            None => Some(format!("code at {start:#x} wraps around")),
            Some(_) if size > room => Some("code sections are larger than the file".to_owned()),
            Some(_) => {
                let checked = elf.source.check("code", offset, size);
                checked.err().map(|error| error.to_string())
            }
        };
        match problem {
            None => {
                room = room.saturating_sub(size);
                sections.push(Extent {
                    start,
                    size,
                    offset,
                });
            }
            Some(problem) if problems.contains(&problem) => {}
            Some(problem) => problems.push(problem),
        }
    }
    sections.sort_by_key(|section| section.start);
    sections
}
