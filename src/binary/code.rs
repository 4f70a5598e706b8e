//! The machine code of a file, as bytes by address.
//!
//! ```text
//!   section    .init    .text             .fini        linkage tables are left out:
//!   stretch             main│parse│lex│…               their stubs have names already
//! ```

use object::elf;

use super::elf::Elf;
use super::{Binary, Error, plt};
use crate::base::Svma;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Machine {
    /// x86-64, instructions of 1 to 15 bytes.
    X86_64,
    /// AArch64, instructions of 4 bytes.
    Aarch64,
    /// 32-bit x86.
    X86,
    /// RISC-V with 64-bit addresses, compressed instructions included.
    Riscv64,
    /// RISC-V with 32-bit addresses, compressed instructions included.
    Riscv32,
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

/// The bytes of all code sections.
#[derive(Debug)]
pub struct Code {
    /// The instruction set.
    pub machine: Machine,
    /// What could not be read; each a lower-case fragment.
    pub problems: Vec<String>,
    /// Start and bytes, sorted by start.
    sections: Vec<(u64, Vec<u8>)>,
}

impl Code {
    /// The bytes from `start` up to `end` or to the end of the section, whichever comes first;
    /// empty where there is no code.
    pub fn bytes(&self, start: Svma, end: Svma) -> &[u8] {
        self.find(start, end).unwrap_or_default()
    }

    /// The addresses from the first byte of code to the last.
    pub fn range(&self) -> std::ops::RangeInclusive<u64> {
        let first = self.sections.first().map_or(0, |(start, _)| *start);
        let end = |(start, bytes): &(u64, Vec<u8>)| start.saturating_add(bytes.len() as u64);
        first..=self.sections.iter().map(end).max().unwrap_or(0)
    }

    fn find(&self, start: Svma, end: Svma) -> Option<&[u8]> {
        let after = self.sections.partition_point(|&(at, _)| at <= start.0);
        let (at, bytes) = self.sections.get(after.checked_sub(1)?)?;
        let from = usize::try_from(start.0.checked_sub(*at)?).ok()?;
        let rest = bytes.get(from..)?;
        let length = usize::try_from(end.0.checked_sub(start.0)?).unwrap_or(usize::MAX);
        rest.get(..length.min(rest.len()))
    }
}

impl Binary {
    /// The machine code. It is read at once and not kept.
    ///
    /// # Errors
    /// When its instruction set is not known here.
    pub fn code(&self) -> Result<Code, Error> {
        let machine = match self.elf.machine {
            m if m == elf::EM_X86_64.0 => Machine::X86_64,
            m if m == elf::EM_AARCH64.0 => Machine::Aarch64,
            m if m == elf::EM_386.0 => Machine::X86,
            m if m == elf::EM_RISCV.0 && self.elf.wide => Machine::Riscv64,
            m if m == elf::EM_RISCV.0 => Machine::Riscv32,
            m => return Err(Error::UnknownMachine(m)),
        };
        let mut problems = Vec::new();
        let sections = sections(&self.elf, &mut problems);
        Ok(Code {
            machine,
            problems,
            sections,
        })
    }

    /// The code of all functions, sorted by address, each byte once. Where functions overlap, a
    /// byte belongs to the one that starts last.
    pub fn stretches(&self) -> Vec<Stretch> {
        self.table().stretches()
    }
}

fn sections(elf: &Elf, problems: &mut Vec<String>) -> Vec<(u64, Vec<u8>)> {
    let mut sections = Vec::new();
    // Sound sections do not share bytes, so together they are no larger than the file.
    let mut room = elf.source.size();
    for section in elf.sections.iter().filter(|section| section.is_code()) {
        if plt::is_table(section) || section.kind == elf::SHT_NOBITS.0 {
            continue;
        }
        let start = elf.section_start(section);
        let read = match start.checked_add(section.size) {
            None => Err(format!("code at {start:#x} wraps around")),
            Some(_) if section.size > room => {
                Err("code sections are larger than the file".to_owned())
            }
            Some(_) => {
                let read = elf.source.read("code", section.offset, section.size);
                read.map_err(|error| error.to_string())
            }
        };
        match read {
            Ok(bytes) => {
                room = room.saturating_sub(section.size);
                sections.push((start, bytes));
            }
            Err(problem) if problems.contains(&problem) => {}
            Err(problem) => problems.push(problem),
        }
    }
    sections.sort_by_key(|&(start, _)| start);
    sections
}
