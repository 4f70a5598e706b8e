//! Finds the file that was mapped when a program ran.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::namespaces::Namespaces;
use super::perf_maps::{self, ProcessTimes};
use super::running::NamelessPrograms;
use super::search_directories::{self, FileLocation, SearchDirectories};
use super::vdso;
use crate::base::BuildId;
use crate::binary::budget::Budget;
use crate::binary::{Binary, Error, JitCode, JitDump, PerfMap};
use crate::cache::Cache;
use crate::files::{LastLink, Root};

// Paths of one build that are tried.
const LISTED: usize = 8;

/// Where files that a recording names are looked for.
///
/// A file is used only if it is the build that was recorded, as far as the recording says which
/// one that was:
///
/// 1. the recorded path, under `symfs` if there is one;
/// 2. with `symfs`, and if the build is known, the recorded path itself;
/// 3. the caches by build ID: `~/.debug`, `/usr/lib/debug`, debuginfod's;
/// 4. other paths that the recording has for the same build, as those of a container's files;
/// 5. the same path in the containers of this machine, if the build is known;
/// 6. programs that run and whose file was deleted, replaced, or never had a name (memfd).
#[derive(Clone, Debug)]
pub struct Finder {
    places: Arc<SearchDirectories>,
    namespaces: Namespaces,
    nameless: NamelessPrograms,
    // The paths that a recording has for each build.
    listed: Arc<FxHashMap<BuildId, Vec<PathBuf>>>,
    // Where is kept what takes long to find out about files.
    cache: Option<Arc<Cache>>,
}

impl Default for Finder {
    fn default() -> Finder {
        Finder::new(None)
    }
}

impl Finder {
    /// Makes a finder; `symfs` is a directory that stands for `/`. With it, files are looked for
    /// under it first. A file elsewhere is used only if it has the build ID that was recorded.
    pub fn new(symfs: Option<&Path>) -> Finder {
        Finder {
            places: Arc::new(SearchDirectories::usual(symfs)),
            namespaces: Namespaces::default(),
            nameless: NamelessPrograms::default(),
            listed: Arc::default(),
            cache: None,
        }
    }

    /// Keeps in `cache` what takes long to find out about the opened files.
    pub fn with_cache(self, cache: Option<Arc<Cache>>) -> Finder {
        Finder { cache, ..self }
    }

    /// Adds the paths that a recording lists with their builds.
    pub fn with_listed<'a>(self, files: impl Iterator<Item = (&'a BuildId, &'a str)>) -> Finder {
        let mut listed: FxHashMap<BuildId, Vec<PathBuf>> = FxHashMap::default();
        for (build_id, path) in files.filter(|(_, path)| path.starts_with('/')) {
            let paths = listed.entry(build_id.clone()).or_default();
            if paths.len() < LISTED {
                paths.push(path.into());
            }
        }
        Finder {
            listed: Arc::new(listed),
            ..self
        }
    }

    /// Opens the file that a recording names as `path`, which ends in ` (deleted)` if the kernel
    /// reported that. `[vdso]` is the vdso of the running kernel.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotRegular`], [`Error::NotElf`] and so on when there is no
    /// usable file; [`Error::ChangedBuild`] when there is one, but not the one that ran;
    /// [`Error::RelativePath`] for paths that would depend on the current directory.
    pub fn find(
        &self,
        path: impl AsRef<Path>,
        build_id: Option<&BuildId>,
    ) -> Result<Binary, Error> {
        let found = self.find_anywhere(path.as_ref(), build_id)?;
        Ok(found.with_cache(self.cache.clone()))
    }

    fn find_anywhere(&self, path: &Path, build_id: Option<&BuildId>) -> Result<Binary, Error> {
        let error = match self.at_path(path) {
            Ok(binary) => match build_id {
                Some(recorded) if binary.build_id() != Some(recorded) => Error::ChangedBuild {
                    found: binary.build_id().cloned(),
                    recorded: recorded.clone(),
                },
                _ => return Ok(binary),
            },
            Err(error) => error,
        };
        let elsewhere = build_id.and_then(|id| {
            let here = |path: &Path| FileLocation::below(&Root::default(), path.to_owned());
            let is_file = path.is_absolute() && self.has_root();
            let mut candidates: Vec<FileLocation> =
                is_file.then(|| here(path)).into_iter().collect();
            candidates.extend(self.places.programs(id));
            let listed = self
                .listed
                .get(id)
                .into_iter()
                .flatten()
                .filter(|listed| *listed != path);
            candidates.extend(listed.flat_map(|listed| {
                let below = self.has_root().then(|| self.places.recorded(listed));
                below.into_iter().chain([here(listed)])
            }));
            candidates.extend(self.in_containers(path));
            candidates.into_iter().find_map(|place| {
                let budget = Budget::new(&self.places.pool);
                let elf = search_directories::open(&place, id, &budget)?;
                Some(Binary::new(place, elf, self.places.clone()))
            })
        });
        elsewhere
            .or_else(|| self.running(path, build_id, &error))
            .ok_or(error)
    }

    // There is no file at its path, or another one. Without a build ID it has to be the only
    // program that was at this path.
    fn running(&self, path: &Path, build_id: Option<&BuildId>, error: &Error) -> Option<Binary> {
        if self.has_root() || !path.is_absolute() {
            return None;
        }
        let (places, is_one) = self.nameless.at(path);
        let Some(id) = build_id else {
            let is_gone = matches!(error, Error::NotFound | Error::Deleted);
            let mut places = places.into_iter().filter(|_| is_one && is_gone);
            return places.find_map(|place| self.at_location(place).ok());
        };
        places.into_iter().find_map(|place| {
            let budget = Budget::new(&self.places.pool);
            let elf = search_directories::open(&place, id, &budget)?;
            Some(Binary::new(place, elf, self.places.clone()))
        })
    }

    // Where a path leads for processes that see other file systems.
    fn in_containers(&self, path: &Path) -> Vec<FileLocation> {
        if !path.is_absolute() {
            return Vec::new();
        }
        let roots = self.namespaces.roots();
        let below = |root: &PathBuf| FileLocation::below(&Root::at(root), path.to_owned());
        roots.iter().map(below).collect()
    }

    /// Opens the file at `path` without looking for other copies; its debug files are looked for in
    /// this finder's places.
    ///
    /// # Errors
    /// As [`Binary::open`].
    pub fn open_named(&self, path: &Path) -> Result<Binary, Error> {
        Binary::open_with(FileLocation::named(path), self.places.clone())
    }

    /// Opens a file at a path that a process states, which sees the file systems below `root`: no
    /// link leads out of that, and a file that the kernel makes up is not opened.
    ///
    /// # Errors
    /// As [`Binary::open`].
    pub fn open_stated(&self, root: Option<&Path>, path: &Path) -> Result<Binary, Error> {
        let root = root.map(Root::at).unwrap_or_default();
        let place = FileLocation::below(&root, path.to_owned());
        Binary::open_with(place, self.places.clone())
    }

    /// Reads the jitdump file that a recording names as `path`: below the root of its process while
    /// that lives, if it is another one, else below ours.
    ///
    /// # Errors
    /// If there is no file, it is a link or not a regular file, it belongs to somebody else
    /// ([`Error::Foreign`]), its header is no jitdump's, or the system refuses.
    pub fn jit_dump(&self, path: &Path, pid: i32, times: ProcessTimes) -> Result<JitDump, Error> {
        if !path.is_absolute() {
            return Err(Error::RelativePath);
        }
        perf_maps::read_dump(self.places.root(), path, pid, times)
    }

    /// Opens the jitdump file that a recording names as `path`, to read the code in it.
    ///
    /// # Errors
    /// As [`jit_dump`](Self::jit_dump).
    pub fn jit_code(&self, path: impl AsRef<Path>) -> Result<JitCode, Error> {
        let path = path.as_ref();
        if !path.is_absolute() {
            return Err(Error::RelativePath);
        }
        JitCode::read_opened(self.places.root().open(path, LastLink::Refuse)?, path)
    }

    /// Reads the map of code that a process made at run time: below its own root while it lives,
    /// else below ours, or below the directory that stands for `/` if there is one.
    ///
    /// # Errors
    /// As [`PerfMap::read`], and [`Error::OlderThanProcess`] for what an earlier process left.
    pub fn perf_map(&self, pid: u32, times: ProcessTimes) -> Result<PerfMap, Error> {
        perf_maps::read(self.places.root(), pid, times)
    }

    /// Whether files are looked for under a directory that stands for `/`.
    pub fn has_root(&self) -> bool {
        self.places.root().directory().is_some()
    }

    pub(super) fn kept_programs(&self, build_id: &BuildId) -> Vec<FileLocation> {
        self.places.programs(build_id)
    }

    pub(super) fn at_location(&self, place: FileLocation) -> Result<Binary, Error> {
        Binary::open_with(place, self.places.clone())
    }

    fn at_path(&self, path: &Path) -> Result<Binary, Error> {
        let name = path.as_os_str().as_encoded_bytes();
        if name == b"[vdso]" {
            return vdso::own();
        }
        if name.ends_with(b" (deleted)") {
            return Err(Error::Deleted);
        }
        self.open(path)
    }

    pub(in crate::binary) fn open(&self, path: &Path) -> Result<Binary, Error> {
        if !path.is_absolute() {
            return Err(Error::RelativePath);
        }
        Binary::open_with(self.places.recorded(path), self.places.clone())
    }

    pub(in crate::binary) fn root(&self) -> &Root {
        self.places.root()
    }
}
