//! The DWARF sections of a file, loaded into memory: only those that lookups need.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use gimli::{
    DwarfPackage, DwarfPackageSections, DwarfSections, EndianSlice, RunTimeEndian, SectionId,
};

use super::elf::Elf;
use super::source::Source;

/// The sections that are read. Types, locations and macros are not.
const WANTED: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

type Slice<'b> = EndianSlice<'b, RunTimeEndian>;
type Sections = DwarfSections<Vec<u8>>;
type Package = DwarfPackageSections<Vec<u8>>;

/// The debug information of one program, and of the files that it leans on.
#[derive(Debug)]
pub(super) struct DebugInfo {
    sections: Sections,
    /// The supplementary file of dwz, named in `.gnu_debugaltlink`.
    supplement: Option<Sections>,
    /// The package of split DWARF: the program's path with `.dwp`.
    package: Option<Package>,
    /// The object files of split DWARF, one for each unit, read when a unit needs it.
    split: OnceLock<Vec<OnceLock<Option<Box<Sections>>>>>,
    endian: RunTimeEndian,
}

impl DebugInfo {
    /// Loads the sections of `elf`, of its supplement, and of the package beside `program`.
    pub(super) fn load(
        elf: &Elf,
        supplement: Option<&Elf>,
        program: &Path,
        problems: &mut Vec<String>,
    ) -> DebugInfo {
        DebugInfo {
            sections: sections(elf, SectionId::name, problems),
            supplement: supplement.map(|elf| sections(elf, SectionId::name, problems)),
            package: package(program, problems),
            split: OnceLock::new(),
            endian: elf.endian,
        }
    }

    /// A reader over the sections and those of the supplement.
    pub(super) fn borrow(&self) -> gimli::Dwarf<Slice<'_>> {
        self.sections
            .borrow_with_sup(self.supplement.as_ref(), |bytes| self.slice(bytes))
    }

    /// A reader over the package of split DWARF.
    pub(super) fn borrow_package(&self) -> Option<DwarfPackage<Slice<'_>>> {
        let package = self.package.as_ref()?;
        let package = package.borrow(|bytes| self.slice(bytes), self.slice(&[]));
        package.ok()
    }

    /// The object file with the other part of unit `index` of `units`. It is believed only if
    /// its unit has the id that is asked for, which is for the caller to check.
    pub(super) fn split(
        &self,
        index: usize,
        units: usize,
        directory: Option<&[u8]>,
        name: &[u8],
    ) -> Option<gimli::Dwarf<Slice<'_>>> {
        let all = self
            .split
            .get_or_init(|| (0..units).map(|_| OnceLock::new()).collect());
        let sections = all.get(index)?.get_or_init(|| {
            let directory = Path::new(OsStr::from_bytes(directory.unwrap_or_default()));
            let path = directory.join(OsStr::from_bytes(name));
            if !path.is_absolute() {
                return None;
            }
            let elf = Elf::read(Source::open(&path).ok()?).ok()?;
            let dwo = |id: SectionId| id.dwo_name().unwrap_or_default();
            Some(Box::new(sections(&elf, dwo, &mut Vec::new())))
        });
        let sections = sections.as_deref()?;
        Some(sections.borrow(|bytes| self.slice(bytes)))
    }

    fn slice<'b>(&self, bytes: &'b [u8]) -> Slice<'b> {
        EndianSlice::new(bytes, self.endian)
    }
}

/// The wanted sections under the names that `name` gives them. What is not there is empty.
///
/// Reading is bound by the page faults of fresh memory, so the largest section, `.debug_info`, is
/// read by a thread of its own beside the others.
fn sections(
    elf: &Elf,
    name: impl Fn(SectionId) -> &'static str,
    problems: &mut Vec<String>,
) -> Sections {
    let info = SectionId::DebugInfo;
    let info_name = name(info);
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().spawn_scoped(scope, move || {
            let mut problems = Vec::new();
            (section(elf, info, info_name, &mut problems), problems)
        });
        let loaded = DwarfSections::load(|id| -> Result<Vec<u8>, gimli::Error> {
            if id == info {
                return Ok(Vec::new());
            }
            Ok(section(elf, id, name(id), problems))
        });
        let mut sections: Sections = loaded.unwrap_or_default();
        // Where no thread could be had, there is time to read it here.
        let read = reader.ok().and_then(|reader| reader.join().ok());
        let (bytes, more) = read.unwrap_or_else(|| {
            let mut problems = Vec::new();
            (section(elf, info, info_name, &mut problems), problems)
        });
        sections.debug_info = gimli::DebugInfo::from(bytes);
        problems.extend(more);
        sections
    })
}

fn package(program: &Path, problems: &mut Vec<String>) -> Option<Package> {
    if program.as_os_str().is_empty() {
        return None;
    }
    let mut path = program.as_os_str().to_owned();
    path.push(".dwp");
    let elf = Elf::read(Source::open(Path::new(&path)).ok()?).ok()?;
    let loaded = DwarfPackageSections::load(|id| -> Result<Vec<u8>, gimli::Error> {
        // All of them: the index of the package cuts its part out of each.
        let name = id.dwo_name().unwrap_or_default();
        Ok(contents(&elf, name, problems))
    });
    loaded.ok()
}

/// The contents of a section if it is one of the wanted.
fn section(elf: &Elf, id: SectionId, name: &'static str, problems: &mut Vec<String>) -> Vec<u8> {
    if !WANTED.contains(&id) {
        return Vec::new();
    }
    contents(elf, name, problems)
}

fn contents(elf: &Elf, name: &'static str, problems: &mut Vec<String>) -> Vec<u8> {
    let Some(section) = elf.section(name.as_bytes()) else {
        return Vec::new();
    };
    elf.contents(name, section).unwrap_or_else(|error| {
        problems.push(error.to_string());
        Vec::new()
    })
}
