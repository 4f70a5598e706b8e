//! The DWARF sections of a file, loaded into memory: only those that lookups need.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use gimli::{
    DwarfPackage, DwarfPackageSections, DwarfSections, EndianSlice, RunTimeEndian, SectionId,
};

use crate::base::parallel;
use crate::binary::budget::Account;
use crate::binary::elf::{Elf, Section};
use crate::binary::host::search_directories::FileLocation;

// Types, locations and macros are not read.
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
type Sections = DwarfSections<Arc<Vec<u8>>>;
type Package = DwarfPackageSections<Arc<Vec<u8>>>;

// The debug information of one program, and of the files that it leans on.
#[derive(Debug)]
pub(in crate::binary) struct DebugInfo {
    sections: Sections,
    // The supplementary file of dwz, named in `.gnu_debugaltlink`.
    supplement: Option<Sections>,
    // The package of split DWARF: the program's path with `.dwp`.
    package: Option<Package>,
    // The object files of split DWARF, one for each unit, read when a unit needs it.
    split: OnceLock<Vec<OnceLock<Option<Box<Sections>>>>>,
    endian: RunTimeEndian,
    // Where the program is, if its path is absolute: split DWARF is looked for below its root.
    program: Option<FileLocation>,
    account: Account,
}

impl DebugInfo {
    // Loads the sections of `elf`, of its supplement, and of the package next to the program. What
    // takes too much memory is not loaded, and counts until the file is closed.
    pub(in crate::binary) fn load(
        elf: &Elf,
        supplement: Option<&Elf>,
        program: Option<FileLocation>,
        problems: &mut Vec<String>,
    ) -> DebugInfo {
        let account = Account::new(&elf.budget);
        let own = sections(elf, SectionId::name, &account, problems).unwrap_or_default();
        let supplement =
            supplement.and_then(|elf| sections(elf, SectionId::name, &account, problems));
        let package = program
            .as_ref()
            .and_then(|program| package(program, elf, &account, problems));
        DebugInfo {
            sections: own,
            supplement,
            package,
            split: OnceLock::new(),
            endian: elf.endian,
            program,
            account,
        }
    }

    pub(in crate::binary) fn borrow(&self) -> gimli::Dwarf<Slice<'_>> {
        self.sections
            .borrow_with_sup(self.supplement.as_ref(), |bytes| self.slice(bytes))
    }

    pub(in crate::binary) fn borrow_package(&self) -> Option<DwarfPackage<Slice<'_>>> {
        let package = self
            .package
            .as_ref()?
            .borrow(|bytes| self.slice(bytes), self.slice(&[]));
        package.ok()
    }

    // The object file with the other part of unit `index` of `units`. It is believed only if its
    // unit has the id that is asked for, which is for the caller to check.
    pub(in crate::binary) fn split(
        &self,
        index: usize,
        units: usize,
        directory: Option<&[u8]>,
        name: &[u8],
    ) -> Option<gimli::Dwarf<Slice<'_>>> {
        let all = self
            .split
            .get_or_init(|| (0..units).map(|_| OnceLock::new()).collect());
        let sections = all
            .get(index)?
            .get_or_init(|| {
                let directory = Path::new(OsStr::from_bytes(directory.unwrap_or_default()));
                let path = directory.join(OsStr::from_bytes(name));
                if !path.is_absolute() {
                    return None;
                }
                let elf = self
                    .program
                    .as_ref()?
                    .with(path)
                    .elf(self.account.budget())
                    .ok()?;
                let dwo = |id: SectionId| id.dwo_name().unwrap_or_default();
                let sections = sections(&elf, dwo, &self.account, &mut Vec::new())?;
                Some(Box::new(sections))
            })
            .as_deref()?;
        Some(sections.borrow(|bytes| self.slice(bytes)))
    }

    fn slice<'b>(&self, bytes: &'b [u8]) -> Slice<'b> {
        EndianSlice::new(bytes, self.endian)
    }
}

// What is not there is empty. Reading is bound by the page faults of fresh memory, so the largest
// section, `.debug_info`, is read by a thread of its own while the others are read.
fn sections(
    elf: &Elf,
    name: impl Fn(SectionId) -> &'static str,
    account: &Account,
    problems: &mut Vec<String>,
) -> Option<Sections> {
    let names: Vec<&'static str> = WANTED.iter().map(|&id| name(id)).collect();
    let contents = Contents::admit(elf, &names, account)?;
    let info_name = name(SectionId::DebugInfo);
    let others: Vec<&'static str> = names.iter().copied().filter(|&n| n != info_name).collect();
    // Sections of the same bytes have the same problems: the first of them that is read reports.
    let workers = if contents.is_apart(info_name) { 2 } else { 1 };
    let workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
    let found = parallel::map(workers, &[&others[..], &[info_name]], |names| {
        let mut problems = Vec::new();
        for name in *names {
            contents.get(name, &mut problems);
        }
        problems
    });
    problems.extend(found.into_iter().flatten());
    let loaded = DwarfSections::load(|id| -> Result<Arc<Vec<u8>>, gimli::Error> {
        if !WANTED.contains(&id) {
            return Ok(Arc::default());
        }
        Ok(contents.get(name(id), problems))
    });
    Some(loaded.unwrap_or_default())
}

fn package(
    program: &FileLocation,
    elf: &Elf,
    account: &Account,
    problems: &mut Vec<String>,
) -> Option<Package> {
    let package = program.with_suffix(".dwp").elf(&elf.budget).ok()?;
    // All of them: the index of the package cuts its part out of each.
    let mut names = Vec::new();
    let listed = DwarfPackageSections::load(|id| -> Result<Arc<Vec<u8>>, gimli::Error> {
        names.push(id.dwo_name().unwrap_or_default());
        Ok(Arc::default())
    });
    drop(listed);
    let contents = Contents::admit(&package, &names, account)?;
    let loaded = DwarfPackageSections::load(|id| -> Result<Arc<Vec<u8>>, gimli::Error> {
        Ok(contents.get(id.dwo_name().unwrap_or_default(), problems))
    });
    loaded.ok()
}

// Sections of the same bytes are read once.
struct Contents<'e> {
    elf: &'e Elf,
    parts: Vec<(Part, OnceLock<Arc<Vec<u8>>>)>,
}

// Which bytes of the file a section has, and whether they are compressed.
type Part = (u64, u64, bool);

impl<'e> Contents<'e> {
    // All at once; `None` where that is too much.
    fn admit(elf: &'e Elf, names: &[&'static str], account: &Account) -> Option<Contents<'e>> {
        let mut parts: Vec<(Part, OnceLock<_>)> = Vec::new();
        let mut size: u64 = 0;
        for section in names.iter().filter_map(|name| elf.section(name.as_bytes())) {
            let part = part(section);
            if !parts.iter().any(|(known, _)| *known == part) {
                parts.push((part, OnceLock::new()));
                size = size.saturating_add(elf.full_size(section));
            }
        }
        account.take(size).then_some(Contents { elf, parts })
    }

    fn is_apart(&self, name: &str) -> bool {
        let of = |name: &str| self.elf.section(name.as_bytes()).map(part);
        let own = of(name);
        let mut others = WANTED
            .iter()
            .map(|id| id.name())
            .chain(WANTED.iter().filter_map(|id| id.dwo_name()));
        own.is_some() && !others.any(|other| other != name && of(other) == own)
    }

    fn get(&self, name: &'static str, problems: &mut Vec<String>) -> Arc<Vec<u8>> {
        let Some(section) = self.elf.section(name.as_bytes()) else {
            return Arc::default();
        };
        let own = part(section);
        let Some((_, bytes)) = self.parts.iter().find(|(part, _)| *part == own) else {
            return Arc::default();
        };
        let read = || {
            let bytes = self.elf.inflated(name, section).unwrap_or_else(|error| {
                problems.push(error.to_string());
                Vec::new()
            });
            Arc::new(bytes)
        };
        bytes.get_or_init(read).clone()
    }
}

fn part(section: &Section) -> Part {
    (section.offset, section.size, section.is_compressed())
}
