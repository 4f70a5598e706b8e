//! The sections that tell how to unwind a stack: call frame information, as bytes.

use std::iter;

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameOffset, EndianSlice,
    Endianity, FrameDescriptionEntry, RunTimeEndian, UnwindSection,
};

use super::code::Machine;
use super::pclntab::table::GoStack;
use super::{Elf, Section, pclntab};
use crate::base::Svma;
use crate::binary::{Binary, Error, SymbolSource};

pub(super) type Entry<'a> = FrameDescriptionEntry<EndianSlice<'a, RunTimeEndian>>;

/// A section of call frame information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSection {
    /// The address of its first byte.
    pub address: Svma,
    pub bytes: Vec<u8>,
}

/// What the exception handling of a program needs, which is loaded with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionFrames {
    /// `.eh_frame`: the entries.
    pub entries: Option<FrameSection>,
    /// `.eh_frame_hdr`: a table of the entries, sorted by address.
    pub table: Option<FrameSection>,
    /// The address of `.text`, from which some pointers are counted.
    pub text: Svma,
    /// The address of `.got`, from which others are.
    pub got: Svma,
}

/// How the stack grows in the functions of a Go program.
#[derive(Debug)]
pub struct GoFrames(pclntab::table::Table);

impl GoFrames {
    /// What the stack is like at an address; `None` where that is not known.
    pub fn at(&self, address: Svma) -> Option<GoStack> {
        self.0.stack_at(address.0)
    }
}

impl Binary {
    /// The instruction set; `None` where it is not known here.
    pub fn machine(&self) -> Option<Machine> {
        Machine::of(&self.elf)
    }

    /// Whether its numbers have the least significant byte first.
    pub fn is_little_endian(&self) -> bool {
        self.elf.endian == gimli::RunTimeEndian::Little
    }

    /// The entry point; `None` for a library that cannot be run.
    pub fn entry(&self) -> Option<Svma> {
        Some(Svma(self.elf.entry)).filter(|entry| entry.0 != 0)
    }

    /// Whether code of the file computes addresses of its functions from distances, which no
    /// relocation and no pointer shows: Go does, for the methods of interfaces.
    pub fn has_distances(&self) -> bool {
        pclntab::is_of_go(&self.elf)
    }

    /// How the stack grows in the functions of a Go program, by its table of functions, which each
    /// call reads again; `None` if there is no readable one.
    pub fn go_frames(&self) -> Option<GoFrames> {
        let table = pclntab::table(&self.elf, &mut Vec::new())?.ok()?;
        Some(GoFrames(table))
    }

    /// Whether an address is in a stub of a linkage table (PLT): a jump to where a slot says.
    pub fn is_stub(&self, address: Svma) -> bool {
        let function = self.function_at(address);
        function.is_some_and(|function| function.source == SymbolSource::Plt)
    }

    /// `.eh_frame` and what belongs to it. In an object file it has no addresses yet, and counts as
    /// absent.
    ///
    /// # Errors
    /// When a section does not lie in the file, is too large or cannot be read.
    pub fn exception_frames(&self) -> Result<ExceptionFrames, Error> {
        let elf = &self.elf;
        if elf.relocatable {
            return Ok(ExceptionFrames::default());
        }
        let address = |name: &[u8]| Svma(elf.section(name).map_or(0, |section| section.address));
        Ok(ExceptionFrames {
            entries: read(elf, ".eh_frame")?,
            table: read(elf, ".eh_frame_hdr")?,
            text: address(b".text"),
            got: address(b".got"),
        })
    }

    /// `.debug_frame` of this file or of its debug file, which is looked for at the first call.
    ///
    /// # Errors
    /// As [`Binary::exception_frames`].
    pub fn debug_frames(&self) -> Result<Option<FrameSection>, Error> {
        match self.with_section(b".debug_frame") {
            Some(elf) if !elf.relocatable => read(elf, ".debug_frame"),
            _ => Ok(None),
        }
    }
}

// `.eh_frame` of a file, ready to be parsed.
pub(super) struct EntrySection<'a> {
    pub(super) frames: EhFrame<EndianSlice<'a, RunTimeEndian>>,
    pub(super) bases: BaseAddresses,
    bytes: &'a [u8],
}

impl<'a> EntrySection<'a> {
    pub(super) fn new(elf: &Elf, section: &Section, bytes: &'a [u8]) -> EntrySection<'a> {
        let address = |name: &[u8]| elf.section(name).map_or(0, |section| section.address);
        let bases = BaseAddresses::default()
            .set_eh_frame(section.address)
            .set_eh_frame_hdr(address(b".eh_frame_hdr"))
            .set_text(address(b".text"))
            .set_got(address(b".got"));
        let mut frames = EhFrame::from(EndianSlice::new(bytes, elf.endian));
        frames.set_address_size(if elf.wide { 8 } else { 4 });
        EntrySection {
            frames,
            bases,
            bytes,
        }
    }

    // The entries of functions, up to the first damage; those that cannot be read are left out.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        let mut entries = self.frames.entries(&self.bases);
        let functions = iter::from_fn(move || entries.next().ok().flatten());
        functions.filter_map(|entry| match entry {
            CieOrFde::Fde(partial) => partial
                .parse(|section, bases, at| common_entry(section, self.bytes, bases, at))
                .ok(),
            CieOrFde::Cie(_) => None,
        })
    }

    pub(super) fn entry_at(&self, offset: usize) -> gimli::Result<Entry<'a>> {
        let offset = EhFrameOffset(offset);
        let common = |section: &_, bases: &_, at| common_entry(section, self.bytes, bases, at);
        self.frames.fde_from_offset(&self.bases, offset, common)
    }
}

// `None` where there is no section or it is empty.
fn read(elf: &Elf, name: &'static str) -> Result<Option<FrameSection>, Error> {
    let Some(section) = elf.section(name.as_bytes()) else {
        return Ok(None);
    };
    let bytes = elf.contents(name, section)?;
    let address = Svma(section.address);
    Ok((!bytes.is_empty()).then_some(FrameSection { address, bytes }))
}

// At `offset` of the section with these `bytes`; an error if there is none, it cannot be read, or
// the text that names its extensions is longer than any (`zPLRSBG`): each of many entries could
// have it read to the end of the section.
pub fn common_entry<'a, E, S>(
    section: &S,
    bytes: &[u8],
    bases: &BaseAddresses,
    offset: S::Offset,
) -> gimli::Result<CommonInformationEntry<EndianSlice<'a, E>>>
where
    E: Endianity,
    S: UnwindSection<EndianSlice<'a, E>>,
{
    // Lengths, id and version, in either form, and a text of ten bytes or more.
    const HEAD: usize = 32;
    let at: usize = gimli::UnwindOffset::into(offset);
    let head = bytes.get(at..).unwrap_or_default();
    let head = head.get(..HEAD).unwrap_or(head);
    let is_long = head.first_chunk() == Some(&[0xff; 4]);
    let text = head.get(if is_long { 21 } else { 9 }..).unwrap_or_default();
    if text.contains(&0) {
        section.cie_from_offset(bases, offset)
    } else {
        Err(gimli::Error::UnknownAugmentation)
    }
}
