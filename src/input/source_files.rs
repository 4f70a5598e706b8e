//! Source files, found by the paths that debug information has.

use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::utf8;
use crate::files::{self, LastLink, OpenedFile, Root};
use crate::profile::SourceText;

/// The largest source file that is read, in bytes.
const LARGEST: u64 = 32 << 20;

/// The most bytes of all source files together.
const MOST: u64 = 128 << 20;

/// Finds and reads source files, each once.
#[derive(Clone, Debug)]
pub struct SourceFiles {
    directory: Option<PathBuf>,
    root: Root,
    /// The bytes that may still be read.
    left: u64,
    read: FxHashMap<String, Option<Arc<SourceText>>>,
}

impl SourceFiles {
    /// Looks for files below `directory`, where the end of a path is enough, the longest that exists; then
    /// where the path says, below `symfs` if that is a directory that stands for `/`. No path that a file
    /// has leads out of these, and one that depends on the current directory leads nowhere.
    pub fn new(directory: Option<&Path>, symfs: Option<&Path>) -> SourceFiles {
        SourceFiles {
            directory: directory.map(Path::to_owned),
            root: symfs.map_or_else(Root::default, Root::at),
            left: MOST,
            read: FxHashMap::default(),
        }
    }

    /// Reads the source file that debug information knows by this path. `None` where there is no such
    /// regular file that can be read, or it is too large: one may have 32 MiB, all together 128 MiB.
    pub fn read(&mut self, file: &str) -> Option<Arc<SourceText>> {
        if let Some(known) = self.read.get(file) {
            return known.clone();
        }
        let source = self.find(file).map(Arc::new);
        self.read.insert(file.to_owned(), source.clone());
        source
    }

    fn find(&mut self, file: &str) -> Option<SourceText> {
        let path = Path::new(file);
        if let Some(directory) = self.directory.clone() {
            let mut ends = endings(path);
            let found = ends.find_map(|end| files::open_named(&directory.join(end)).ok());
            if let Some(found) = found {
                return self.text(found);
            }
        }
        if path.is_relative() {
            return None;
        }
        let opened = self.root.open(path, LastLink::Follow).ok()?;
        let found = OpenedFile {
            path: self.root.full(path),
            ..opened
        };
        self.text(found)
    }

    fn text(&mut self, opened: OpenedFile) -> Option<SourceText> {
        let limit = LARGEST.min(self.left);
        if opened.metadata.len() > limit {
            return None;
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        opened.file.take(limit).read_to_end(&mut bytes).ok()?;
        self.left -= bytes.len() as u64;
        let path = opened.path.to_string_lossy().into_owned();
        let modified = opened.metadata.modified().ok();
        Some(SourceText::new(path, modified, utf8(&bytes).into_owned()))
    }
}

/// The ends of a path, from all of it to its last part; without those that lead upwards.
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
