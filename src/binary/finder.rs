//! Finds the file that was mapped when a program ran.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::namespaces::Namespaces;
use super::places::{self, Places};
use super::{Binary, Error, JitDump, vdso};
use crate::base::BuildId;

/// Where files that a recording names are looked for.
///
/// A file is used only if it is the build that was recorded, as far as the recording says which
/// one that was:
///
/// 1. the recorded path, under `symfs` if there is one;
/// 2. the caches by build id: `~/.debug`, `/usr/lib/debug`, debuginfod's;
/// 3. the same path in the containers of this machine, without `symfs` and if the build is known.
#[derive(Clone, Debug)]
pub struct Finder {
    symfs: Option<PathBuf>,
    places: Arc<Places>,
    namespaces: Namespaces,
}

impl Default for Finder {
    fn default() -> Finder {
        Finder::new(None)
    }
}

impl Finder {
    /// A finder; `symfs` is a directory that stands for `/`. With it, files are looked for under
    /// it and never at the recorded path itself.
    pub fn new(symfs: Option<&Path>) -> Finder {
        Finder {
            symfs: symfs.map(Path::to_owned),
            places: Arc::new(Places::usual(symfs)),
            namespaces: Namespaces::default(),
        }
    }

    /// Opens the file that a recording knows by `path`, which ends in ` (deleted)` where the
    /// kernel said so. `[vdso]` is the vdso of the running kernel.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotRegular`], [`Error::NotElf`] and so on when there is no
    /// usable file; [`Error::ChangedBuild`] when there is one, but not the one that ran;
    /// [`Error::RelativePath`] for paths that would depend on the current directory.
    pub fn find(&self, path: &str, build_id: Option<&BuildId>) -> Result<Binary, Error> {
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
            let mut paths = self.places.programs(id);
            paths.extend(self.in_containers(path));
            paths.into_iter().find_map(|path| {
                let elf = places::open(&path, id)?;
                Some(Binary::new(path, elf, self.places.clone()))
            })
        });
        elsewhere.ok_or(error)
    }

    /// Where a path leads for processes that see other file systems.
    fn in_containers(&self, path: &str) -> Vec<PathBuf> {
        if self.symfs.is_some() || !path.starts_with('/') {
            return Vec::new();
        }
        let roots = self.namespaces.roots();
        roots
            .iter()
            .map(|root| under(root, Path::new(path)))
            .collect()
    }

    /// Opens the file that a person names; its debug files are looked for in this finder's places.
    ///
    /// # Errors
    /// As [`Binary::open`].
    pub fn open_named(&self, path: &Path) -> Result<Binary, Error> {
        Binary::open_with(path, self.places.clone())
    }

    /// Reads the jitdump file that a recording knows by `path`.
    ///
    /// # Errors
    /// As [`JitDump::read`].
    pub fn jit_dump(&self, path: &str) -> Result<JitDump, Error> {
        let path = Path::new(path);
        if !path.is_absolute() {
            return Err(Error::RelativePath);
        }
        JitDump::read(&self.place(path), None)
    }

    /// Whether files are looked for under a directory that stands for `/`.
    pub fn has_root(&self) -> bool {
        self.symfs.is_some()
    }

    fn at_path(&self, path: &str) -> Result<Binary, Error> {
        if path == "[vdso]" {
            return vdso::own();
        }
        if path.ends_with(" (deleted)") {
            return Err(Error::Deleted);
        }
        self.open(Path::new(path))
    }

    /// Opens the file at this absolute path.
    pub(super) fn open(&self, path: &Path) -> Result<Binary, Error> {
        if !path.is_absolute() {
            return Err(Error::RelativePath);
        }
        Binary::open_with(&self.place(path), self.places.clone())
    }

    /// Where an absolute path leads.
    pub(super) fn place(&self, path: &Path) -> PathBuf {
        match &self.symfs {
            Some(root) => under(root, path),
            None => path.to_owned(),
        }
    }

    /// The directory that stands for `/`, if there is one.
    pub(super) fn root(&self) -> Option<&Path> {
        self.symfs.as_deref()
    }
}

/// `path` below `root`; `..` does not lead out of it.
fn under(root: &Path, path: &Path) -> PathBuf {
    let mut inside: Vec<&std::ffi::OsStr> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::ParentDir => {
                inside.pop();
            }
            _ => {}
        }
    }
    let mut full = root.to_owned();
    full.extend(inside);
    full
}
