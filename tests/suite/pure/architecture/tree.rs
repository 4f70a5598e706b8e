//! The files that are checked, in memory: read from this crate, or planted.

use std::collections::BTreeMap;
use std::path::Path;

/// Files by their path from the root of the repository: `Cargo.toml` and all of `src/`.
pub struct Tree {
    pub files: BTreeMap<String, String>,
}

impl Tree {
    /// The files of the repository that this test belongs to.
    pub fn of_this_crate() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut tree = Self::new(&[]);
        tree.read(root, Path::new("Cargo.toml"));
        tree.read_all(root, Path::new("src"));
        tree
    }

    /// Reads all files below a folder.
    pub fn read_all(&mut self, root: &Path, folder: &Path) {
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(root.join(&folder)).unwrap() {
                let entry = entry.unwrap();
                let path = folder.join(entry.file_name());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path);
                } else {
                    self.read(root, &path);
                }
            }
        }
    }

    /// Reads a file. Of a recording or a program only the name counts.
    pub fn read(&mut self, root: &Path, path: &Path) {
        let bytes = std::fs::read(root.join(path)).unwrap();
        let text = String::from_utf8(bytes).unwrap_or_default();
        self.add(path.to_str().unwrap(), &text);
    }

    /// A tree of given files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let owned = |&(path, text): &(&str, &str)| (path.to_string(), text.to_string());
        Self {
            files: files.iter().map(owned).collect(),
        }
    }

    pub fn add(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_string(), text.to_string());
    }

    /// Removes what begins with `path`.
    pub fn remove(&mut self, path: &str) {
        self.files.retain(|file, _| !file.starts_with(path));
    }

    pub fn append(&mut self, path: &str, text: &str) {
        self.files.get_mut(path).unwrap().push_str(text);
    }

    /// Replaces `old`, which must be there, by `new`.
    pub fn edit(&mut self, path: &str, old: &str, new: &str) {
        let text = self.files.get_mut(path).unwrap();
        assert!(text.contains(old), "{path} does not hold {old:?}");
        *text = text.replace(old, new);
    }

    /// The text of a file; nothing if it is not there.
    pub fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    /// The Rust files of `src/`, with their text.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(|(path, _)| path.starts_with("src/") && path.ends_with(".rs"))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

/// The path of the module that a file is: `src/perfdata/attr/mod.rs` is `perfdata::attr`. The
/// roots of the two crates are empty.
pub fn module_path(file: &str) -> Vec<String> {
    let inner = file.strip_prefix("src/").unwrap_or(file);
    let inner = inner.strip_suffix(".rs").unwrap_or(inner);
    let mut path: Vec<String> = inner.split('/').map(String::from).collect();
    if matches!(
        path.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        path.pop();
    }
    path
}

/// The room of a file: the first name below `src/`, without `.rs`.
pub fn room_of(file: &str) -> &str {
    let inner = file.strip_prefix("src/").unwrap_or(file);
    let name = inner.split('/').next().unwrap_or(inner);
    name.strip_suffix(".rs").unwrap_or(name)
}
