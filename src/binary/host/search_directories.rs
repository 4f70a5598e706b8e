//! Where copies of programs and their debug information are kept on a machine.
//!
//! ```text
//!   /usr/lib/debug/.build-id/ab/cdef….debug            debug files by build id
//!   /usr/lib/debug/usr/bin/prog.debug                  debug files by path
//!   ~/.debug/.build-id/ab/cdef…/{elf,debug,vdso}       perf's cache of what was recorded
//!   ~/.cache/debuginfod_client/abcdef…/{executable,debuginfo}
//!                                                      what debuginfod's client has fetched
//! ```
//!
//! Nothing is ever fetched.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::base::BuildId;
use crate::binary::Error;
use crate::binary::budget::{Budget, Pool};
use crate::binary::elf::Elf;
use crate::binary::elf::fields::c_string;
use crate::binary::elf::source::{FileState, Source};
use crate::files::{self, LastLink, OpenedFile, Root};

// The most bytes of a section that only names a file.
const LINK_LIMIT: u64 = 64 << 10;
// The size of the largest debug file whose checksum is computed, in bytes.
const CHECKSUM_LIMIT: u64 = 4 << 30;

// A path below a directory that stands for `/`, or one that a person named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::binary) struct FileLocation {
    // Nothing leads out of it. `None` for a file that a person named.
    root: Option<Root>,
    path: PathBuf,
    // Whether it is a link of `/proc`, which leads to a file without a name.
    is_link: bool,
}

impl FileLocation {
    pub(in crate::binary) fn named(path: &Path) -> FileLocation {
        FileLocation {
            root: None,
            path: path.to_owned(),
            is_link: false,
        }
    }

    // A link of `/proc/PID`, such as `exe`.
    pub(in crate::binary) fn of_process(link: &Path) -> FileLocation {
        FileLocation {
            is_link: true,
            ..FileLocation::named(link)
        }
    }

    pub(in crate::binary) fn below(root: &Root, path: PathBuf) -> FileLocation {
        FileLocation {
            root: Some(root.clone()),
            path,
            is_link: false,
        }
    }

    // The path for people.
    pub(in crate::binary) fn full(&self) -> PathBuf {
        let root = self.root.as_ref();
        root.map_or_else(|| self.path.clone(), |root| root.full(&self.path))
    }

    // `suffix` is behind the whole path of this file.
    pub(in crate::binary) fn with_suffix(&self, suffix: &str) -> FileLocation {
        let mut path = self.path.clone();
        path.as_mut_os_string().push(suffix);
        self.with(path)
    }

    // Another file below the same root.
    pub(in crate::binary) fn with(&self, path: PathBuf) -> FileLocation {
        let root = self.root.clone();
        let is_link = false;
        FileLocation {
            root,
            path,
            is_link,
        }
    }

    // Opens the file, if it is a regular one.
    pub(in crate::binary) fn open(&self) -> Result<OpenedFile, Error> {
        Ok(match &self.root {
            Some(root) => root.open(&self.path, LastLink::Follow)?,
            None if self.is_link => files::open_link(&self.path)?,
            None => files::open_named(&self.path)?,
        })
    }

    // `budget` counts what it costs.
    pub(in crate::binary) fn elf(&self, budget: &Arc<Budget>) -> Result<Elf, Error> {
        Elf::read(Source::file(self.open()?, budget), budget.clone())
    }
}

#[derive(Debug, Default)]
pub(in crate::binary) struct SearchDirectories {
    // What stands for `/`, for paths that a recording names.
    root: Root,
    // Trees of debug files: `/usr/lib/debug`.
    trees: Vec<FileLocation>,
    // Caches of recorded programs, in perf's layout: `~/.debug`.
    recorded: Vec<PathBuf>,
    // Caches of downloads, in the layout of debuginfod's client.
    fetched: Vec<PathBuf>,
    // What the debug information of all files found here may cost.
    pub(in crate::binary) pool: Pool,
    // So that many files that name one debug file do not have it read as often.
    checksums: Mutex<FxHashMap<FileState, u32>>,
}

impl SearchDirectories {
    // `symfs` is a directory that stands for `/`.
    pub(in crate::binary) fn usual(symfs: Option<&Path>) -> SearchDirectories {
        let root = symfs.map(Root::at).unwrap_or_default();
        let usual = Path::new("/usr/lib/debug");
        let own = FileLocation::below(&Root::default(), usual.to_owned());
        let inside = symfs.map(|_| FileLocation::below(&root, usual.to_owned()));
        let mut places = SearchDirectories {
            trees: inside.into_iter().chain([own]).collect(),
            root,
            ..SearchDirectories::default()
        };
        let directory = |name| std::env::var_os(name).map(PathBuf::from);
        let absolute = |path: &PathBuf| path.is_absolute();
        let home = directory("HOME").filter(absolute);
        places.recorded = home.iter().map(|home| home.join(".debug")).collect();
        places.fetched = fetched(
            directory("DEBUGINFOD_CACHE_PATH"),
            home.as_deref(),
            directory("XDG_CACHE_HOME").filter(absolute),
        );
        places
    }

    pub(in crate::binary) fn root(&self) -> &Root {
        &self.root
    }

    // An absolute path that a recording names.
    pub(in crate::binary) fn recorded(&self, path: &Path) -> FileLocation {
        FileLocation::below(&self.root, path.to_owned())
    }

    pub(in crate::binary) fn programs(&self, id: &BuildId) -> Vec<FileLocation> {
        let mut places = Vec::new();
        let hex = id.to_string();
        let (first, rest) = hex.split_at_checked(2).unwrap_or_default();
        let own = |path| FileLocation::below(&Root::default(), path);
        for cache in &self.recorded {
            let directory = cache.join(".build-id").join(first).join(rest);
            places.extend(["elf", "vdso"].map(|name| own(directory.join(name))));
        }
        for tree in &self.trees {
            places.push(tree.with(tree.path.join(".build-id").join(first).join(rest)));
        }
        for cache in &self.fetched {
            places.push(own(cache.join(&hex).join("executable")));
        }
        places
    }

    // The debug file of a program: by build id, by `.gnu_debuglink`, by path. It is believed only
    // if it has the program's build id or the checksum that the program states. `problems` has what
    // was not looked at.
    pub(in crate::binary) fn debug_file(
        &self,
        elf: &Elf,
        program: &FileLocation,
        problems: &mut Vec<String>,
    ) -> Option<Elf> {
        if let Some(id) = &elf.build_id {
            let found = self.by_id(id, &elf.budget);
            if found.is_some() {
                return found;
            }
        }
        let link = debug_link(elf);
        let candidates = self.beside(elf, program, link.as_ref());
        candidates.iter().find_map(|candidate| {
            let found = candidate.elf(&elf.budget).ok()?;
            let same = match (&elf.build_id, &found.build_id, &link) {
                (Some(a), Some(b), _) => a == b,
                (None, _, Some((_, sum))) | (_, None, Some((_, sum))) => {
                    match self.checksum(&found.source) {
                        Ok(found) => found == *sum,
                        Err(error) => {
                            let path = candidate.full();
                            problems.push(format!("{}: {error}", path.display()));
                            false
                        }
                    }
                }
                _ => false,
            };
            same.then_some(found)
        })
    }

    // Where the debug file of a program is looked for, in order.
    pub(in crate::binary) fn debug_places(
        &self,
        elf: &Elf,
        program: &FileLocation,
    ) -> Vec<FileLocation> {
        let by_id = elf.build_id.as_ref().map(|id| self.places_by_id(id));
        let mut places = by_id.unwrap_or_default();
        places.extend(self.beside(elf, program, debug_link(elf).as_ref()));
        places
    }

    // What the program names is looked for below the same root. `None` for a program whose path is
    // not absolute.
    pub(in crate::binary) fn rooted(&self, program: &FileLocation) -> Option<FileLocation> {
        if program.root.is_some() {
            return Some(program.clone());
        }
        let path = &program.path;
        let inside = self
            .root
            .directory()
            .and_then(|root| path.strip_prefix(root).ok());
        match inside {
            Some(inside) => Some(FileLocation::below(&self.root, Path::new("/").join(inside))),
            None => {
                (path.is_absolute()).then(|| FileLocation::below(&Root::default(), path.clone()))
            }
        }
    }

    // A file that a program names: below the same root, relative to its directory.
    pub(in crate::binary) fn named_by(
        &self,
        program: &FileLocation,
        name: &Path,
    ) -> Option<FileLocation> {
        let program = self.rooted(program)?;
        let path = program.path.parent()?.join(name);
        Some(program.with(path))
    }

    // Named by the program, or found by its path.
    fn beside(
        &self,
        elf: &Elf,
        program: &FileLocation,
        link: Option<&(PathBuf, u32)>,
    ) -> Vec<FileLocation> {
        let Some(program) = self.rooted(program) else {
            return Vec::new();
        };
        let mut places = Vec::new();
        if let (Some((name, _)), Some(directory)) = (link, program.path.parent()) {
            places.push(program.with(directory.join(name)));
            places.push(program.with(directory.join(".debug").join(name)));
            places.extend(self.under_trees(&directory.join(name)));
        }
        if elf.build_id.is_some() {
            for place in self.under_trees(&program.path) {
                let debug = place.with_suffix(".debug");
                places.extend([place, debug]);
            }
        }
        places.retain(|candidate| *candidate != program);
        places
    }

    // `.gnu_debugaltlink`: a path, a zero byte, a build id.
    pub(in crate::binary) fn supplement(&self, elf: &Elf, program: &FileLocation) -> Option<Elf> {
        let link = link_in(elf, b".gnu_debugaltlink")?;
        let name = c_string(&link, 0)?;
        let id = BuildId::new(link.get(name.len().checked_add(1)?..)?)?;
        let named = self.named_by(program, Path::new(OsStr::from_bytes(name)));
        let found = named.and_then(|place| open(&place, &id, &elf.budget));
        found.or_else(|| self.by_id(&id, &elf.budget))
    }

    fn by_id(&self, id: &BuildId, budget: &Arc<Budget>) -> Option<Elf> {
        let places = self.places_by_id(id);
        let mut found = places.iter().filter_map(|place| open(place, id, budget));
        found.find(|elf| elf.has(b".debug_info") || elf.has(b".symtab"))
    }

    fn places_by_id(&self, id: &BuildId) -> Vec<FileLocation> {
        let hex = id.to_string();
        let (first, rest) = hex.split_at_checked(2).unwrap_or_default();
        let own = |path| FileLocation::below(&Root::default(), path);
        let mut places = Vec::new();
        for tree in &self.trees {
            let directory = tree.path.join(".build-id").join(first);
            places.push(tree.with(directory.join(format!("{rest}.debug"))));
        }
        for cache in &self.recorded {
            let directory = cache.join(".build-id").join(first).join(rest);
            places.extend(["debug", "elf", "vdso"].map(|name| own(directory.join(name))));
        }
        for cache in &self.fetched {
            places.push(own(cache.join(&hex).join("debuginfo")));
        }
        places
    }

    fn under_trees(&self, path: &Path) -> impl Iterator<Item = FileLocation> {
        let relative = path.strip_prefix("/").unwrap_or(Path::new("")).to_owned();
        self.trees
            .iter()
            .map(move |tree| tree.with(tree.path.join(&relative)))
    }

    // Made once for each file. Holes are not read for it: a debug file that is mostly holes does
    // not count.
    fn checksum(&self, source: &Source) -> Result<u32, Error> {
        let size = source.size();
        let what = "the debug file, whose checksum was not made,".to_owned();
        if source.is_sparse() {
            return Err(Error::BeyondShare { what, size });
        }
        if size > CHECKSUM_LIMIT {
            return Err(Error::TooLarge {
                what,
                size,
                limit: CHECKSUM_LIMIT,
            });
        }
        let Some(state) = source.state() else {
            return checksum(source);
        };
        let known = || {
            self.checksums
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(sum) = known().get(&state) {
            return Ok(*sum);
        }
        let sum = checksum(source)?;
        known().insert(state, sum);
        Ok(sum)
    }
}

// The caches of debuginfod's client, in the order in which it takes the first that exists
// (`debuginfod_query_server` in elfutils). Files are checked by build id, so all of them are used.
fn fetched(named: Option<PathBuf>, home: Option<&Path>, xdg: Option<PathBuf>) -> Vec<PathBuf> {
    // The client takes a relative path from where it runs.
    let named = named.and_then(|path| std::path::absolute(path).ok());
    let former = home.map(|home| home.join(".debuginfod_client_cache"));
    let usual = home.map(|home| home.join(".cache"));
    let caches = [xdg, usual].into_iter().flatten();
    let mut all: Vec<PathBuf> = named.into_iter().chain(former).collect();
    all.extend(caches.map(|cache| cache.join("debuginfod_client")));
    all
}

// The file at `place` if it has this build id.
pub(in crate::binary) fn open(
    place: &FileLocation,
    id: &BuildId,
    budget: &Arc<Budget>,
) -> Option<Elf> {
    let elf = place.elf(budget).ok()?;
    (elf.build_id.as_ref() == Some(id)).then_some(elf)
}

// The start of a section that names another file.
fn link_in(elf: &Elf, section: &[u8]) -> Option<Vec<u8>> {
    let section = elf.section(section)?;
    let size = section.size.min(LINK_LIMIT);
    elf.source.read("debug link", section.offset, size).ok()
}

// A file name, zeros up to a multiple of 4 bytes, the CRC-32 of that file. A name with a slash is
// not believed.
fn debug_link(elf: &Elf) -> Option<(PathBuf, u32)> {
    let link = link_in(elf, b".gnu_debuglink")?;
    let name = c_string(&link, 0)?;
    let behind_name = name.len().checked_add(1)?.checked_next_multiple_of(4)?;
    let sum = elf.fields(&link).u32(behind_name)?;
    if name.is_empty() || name.contains(&b'/') || name == b".." || name == b"." {
        return None;
    }
    Some((PathBuf::from(OsStr::from_bytes(name)), sum))
}

// CRC-32, as zlib has it.
fn checksum(source: &Source) -> Result<u32, Error> {
    let mut sum = flate2::Crc::new();
    let mut piece = Vec::new();
    let mut at = 0;
    while at < source.size() {
        let length = source.size().saturating_sub(at).min(1 << 20);
        sum.update(source.read_into("the debug file", at, length, &mut piece)?);
        at = at.saturating_add(length);
    }
    Ok(sum.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_caches_of_debuginfod_are_used_in_its_order() {
        let path = |text: &str| Some(PathBuf::from(text));
        let home = Path::new("/home/u");
        let all = fetched(path("/named"), Some(home), path("/xdg"));
        let expected = [
            "/named",
            "/home/u/.debuginfod_client_cache",
            "/xdg/debuginfod_client",
            "/home/u/.cache/debuginfod_client",
        ];
        assert_eq!(all, expected.map(PathBuf::from));
        let own = std::env::current_dir().unwrap();
        assert_eq!(fetched(path("cache"), None, None), [own.join("cache")]);
        assert!(fetched(path(""), None, None).is_empty());
    }

    #[test]
    fn the_checksum_is_that_of_zlib() {
        let source = Source::Memory(b"123456789".to_vec());
        assert_eq!(checksum(&source).ok(), Some(0xcbf4_3926));
    }
}
