//! Source files, found by the paths that debug information has.
//!
//! Debug information may name any file as source: a private key, or `/proc/self/environ`, which has
//! the environment of whoever looks. What reads it may be asked to by somebody else: the program is
//! a stranger's, or another user's process in a recording of the whole machine. So a text is shown
//! only if it is source, as far as that can be told:
//!
//! ```text
//!                                             on a screen    in a file     in one, all asked for
//!   a regular file, not of the kernel              ✓             ✓             ✓
//!   root: the program's owner can read it          ✓             ✓
//!   below a directory of the compilation                         ✓
//!   shared, or source by its name and place                      ✓
//!   it is what was compiled, as far as stated                    ✓             ✓
//! ```
//!
//! A file is written to be sent, to people who cannot read what its writer can. A screen shows what
//! the one before it could open anyway, unless that is root.

mod rules;

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use md5::{Digest, Md5};
use rustc_hash::FxHashMap;

use crate::base::utf8;
use crate::files::{self, LastLink, OpenedFile, Root};
use crate::profile::{NoSource, SourceText};

pub use rules::SourceClaim;

const LARGEST: u64 = 32 << 20;

const MOST: u64 = 128 << 20;

/// Where source text goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// To whoever asked for it.
    #[default]
    Screen,
    /// Into a file, which may be sent to others.
    File,
}

/// How source files are found, and what may be shown of them.
#[derive(Clone, Debug, Default)]
pub struct SourceOptions<'a> {
    /// The directory below which files are looked for first, by the longest end of a path there.
    pub directory: Option<&'a Path>,
    /// The directory that stands for `/` where files are looked for at their paths.
    pub symfs: Option<&'a Path>,
    /// Where the text goes.
    pub audience: Audience,
    /// Whether every file is taken that can be read and was compiled.
    pub takes_all: bool,
}

/// Finds and reads source files, each once.
#[derive(Clone, Debug)]
pub struct SourceFiles {
    directory: Option<PathBuf>,
    root: Root,
    audience: Audience,
    takes_all: bool,
    // It may read files that their owners alone may.
    is_root: bool,
    // The bytes that may still be read.
    left: u64,
    read: FxHashMap<(String, SourceClaim), Result<Arc<SourceText>, NoSource>>,
}

impl SourceFiles {
    /// Looks for files in the directory, then where their paths say. No path that a file has leads
    /// out of these, and one that depends on the current directory leads nowhere.
    pub fn new(options: &SourceOptions<'_>) -> SourceFiles {
        let user = std::fs::metadata("/proc/self").map(|own| own.uid());
        SourceFiles {
            directory: options.directory.map(Path::to_owned),
            root: options.symfs.map_or_else(Root::default, Root::at),
            audience: options.audience,
            takes_all: options.takes_all,
            // Where it is not known, the narrower rule holds.
            is_root: user.map_or(true, |user| user == 0),
            left: MOST,
            read: FxHashMap::default(),
        }
    }

    /// Reads the source file that debug information knows by this path, of which lines up to `last`
    /// are shown.
    ///
    /// # Errors
    ///
    /// Why its text is not shown. One file may have 32 MiB, all together 128 MiB.
    pub fn read(
        &mut self,
        file: &str,
        claim: &SourceClaim,
        last: u32,
    ) -> Result<Arc<SourceText>, NoSource> {
        let key = (file.to_owned(), claim.clone());
        let known = self.read.get(&key).cloned();
        let text = known.unwrap_or_else(|| {
            let text = self.find(file, claim).map(Arc::new);
            self.read.insert(key, text.clone());
            text
        })?;
        if self.audience == Audience::File && text.lines() < last as usize {
            return Err(NoSource::Changed);
        }
        Ok(text)
    }

    fn find(&mut self, file: &str, claim: &SourceClaim) -> Result<SourceText, NoSource> {
        let path = Path::new(file);
        if let Some(directory) = self.directory.clone() {
            let found = endings(path).find_map(|end| self.in_directory(&directory, &end));
            if let Some(found) = found {
                self.permit(&found, file, claim, None)?;
                return self.text(found, claim);
            }
        }
        if path.is_relative() {
            return Err(NoSource::NotFound);
        }
        let opened = self.root.open(path, LastLink::Follow);
        let opened = opened.map_err(|error| match error {
            files::Error::NotRegular => NoSource::OfSystem,
            _ => NoSource::NotFound,
        })?;
        let mut place = None;
        let mut found = OpenedFile {
            path: self.root.full(path),
            ..opened
        };
        if self.is_strict() {
            // What it is comes before where it is: it is the better reason.
            self.permit_kind(&found, claim)?;
            let places = claim.places(path);
            let mut opened = places.iter().filter_map(|(directory, name)| {
                let opened = self.root.open_below(directory, name).ok()?;
                Some((opened, directory.join(name)))
            });
            let (below, whole) = opened.next().ok_or(NoSource::Outside)?;
            found.file = below.file;
            found.metadata = below.metadata;
            place = Some(whole);
        }
        self.permit(&found, file, claim, place.as_deref())?;
        self.text(found, claim)
    }

    // Whether a file has to be known to be source.
    fn is_strict(&self) -> bool {
        self.audience == Audience::File && !self.takes_all
    }

    fn in_directory(&self, directory: &Path, end: &Path) -> Option<OpenedFile> {
        let path = directory.join(end);
        if self.is_strict() {
            let directory = std::fs::canonicalize(directory).ok()?;
            let opened = Root::default().open_below(&directory, end).ok()?;
            return Some(OpenedFile { path, ..opened });
        }
        files::open_named(&path).ok()
    }

    fn permit_kind(&self, opened: &OpenedFile, claim: &SourceClaim) -> Result<(), NoSource> {
        if opened.is_of_system() {
            return Err(NoSource::OfSystem);
        }
        let is_readable = |&owner: &u32| owner == 0 || opened.is_readable_by(owner);
        if self.is_root && !self.takes_all && !claim.owners.iter().all(is_readable) {
            return Err(NoSource::NotOfOwner);
        }
        Ok(())
    }

    // `place` is where it was opened if it was not looked for in a directory that was named.
    fn permit(
        &self,
        opened: &OpenedFile,
        file: &str,
        claim: &SourceClaim,
        place: Option<&Path>,
    ) -> Result<(), NoSource> {
        self.permit_kind(opened, claim)?;
        if !self.is_strict() || opened.is_shared() && claim.is_enough_if_shared(file) {
            return Ok(());
        }
        // A second name may be source's for what is no source, and so may a link on the way.
        let is_alone = opened.metadata.nlink() == 1;
        let is_near = claim.stated.as_ref().is_some_and(|stated| stated.is_near);
        let is_in_place = place.is_none_or(|place| is_near && self.is_without_links(place, opened));
        if claim.is_named_as_source(file) && is_alone && is_in_place {
            Ok(())
        } else {
            Err(NoSource::Private)
        }
    }

    // Whether no link is on the whole way to a file.
    fn is_without_links(&self, place: &Path, opened: &OpenedFile) -> bool {
        let inside = place.strip_prefix("/").unwrap_or(place);
        let found = self.root.open_below(Path::new("/"), inside);
        let identity = |of: &OpenedFile| (of.metadata.dev(), of.metadata.ino());
        found.is_ok_and(|found| identity(&found) == identity(opened))
    }

    fn text(&mut self, opened: OpenedFile, claim: &SourceClaim) -> Result<SourceText, NoSource> {
        let limit = LARGEST.min(self.left);
        if opened.metadata.len() > limit {
            return Err(NoSource::NotFound);
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        let read = opened.file.take(limit).read_to_end(&mut bytes);
        read.map_err(|_| NoSource::NotFound)?;
        self.left -= bytes.len() as u64;
        let digest = claim.stated.as_ref().and_then(|stated| stated.digest);
        let is_other = |digest: [u8; 16]| <[u8; 16]>::from(Md5::digest(&bytes)) != digest;
        if self.audience == Audience::File && digest.is_some_and(is_other) {
            return Err(NoSource::Changed);
        }
        let path = opened.path.to_string_lossy().into_owned();
        let modified = opened.metadata.modified().ok();
        Ok(SourceText::new(path, modified, utf8(&bytes).into_owned()))
    }
}

// The ends of a path, from all of it to its last part; without those that lead upwards.
fn endings(path: &Path) -> impl Iterator<Item = PathBuf> {
    let mut parts: Vec<_> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::ParentDir => {
                parts.pop();
            }
            _ => {}
        }
    }
    let count = parts.len();
    (0..count).map(move |from| parts[from..].iter().collect())
}
