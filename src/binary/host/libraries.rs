//! The libraries that a program is linked with, found as the dynamic linker finds them, and which
//! of them defines a function that another one calls by name.
//!
//! ```text
//!   prog ─▶ libm.so.6     DT_RPATH of prog and of what loaded it, unless it has a DT_RUNPATH
//!        ─▶ libc.so.6     DT_RUNPATH of prog
//!             ─▶ ld.so    /etc/ld.so.conf, and the files that it includes
//!                         /lib/x86_64-linux-gnu, /usr/lib/x86_64-linux-gnu, /lib64, …
//!
//!   definition("puts"):   prog, libm.so.6, libc.so.6, ld.so: the first that has it
//! ```
//!
//! The order is that of ld.so(8): breadth first, each file once, the program before all. What
//! depends on how a program is started is not known here: `LD_LIBRARY_PATH`, `LD_PRELOAD`, what
//! is opened later by `dlopen`, and which version of a function is asked for; the default one is
//! taken.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use object::elf;
use rustc_hash::FxHashSet;

use crate::base::{Svma, utf8};
use crate::binary::{Binary, Exports, Finder, Needed};
use crate::files::LastLink;

// Files that are opened.
const FILE_LIMIT: usize = 256;
// Places that are looked at for one program.
const TRY_LIMIT: usize = 1 << 14;
// Directories that files may add to the usual ones for one library.
const DIRECTORY_LIMIT: usize = 256;
// The longest file of directories that is read, in bytes.
const LIST_LIMIT: u64 = 64 << 10;
// Files that a list of directories may include.
const INCLUDE_LIMIT: usize = 256;

/// A program or library, and what it is linked with, in the order in which names are looked up.
#[derive(Debug)]
pub struct Libraries {
    files: Vec<Linked>,
    /// What was not found or could not be used; each a lower-case fragment.
    pub problems: Vec<String>,
}

#[derive(Debug)]
struct Linked {
    binary: Arc<Binary>,
    exports: OnceLock<Exports>,
    needed: Needed,
    // Which file needs it first.
    loader: Option<usize>,
    // The directory that `$ORIGIN` stands for, below the finder's root.
    origin: PathBuf,
}

impl Libraries {
    /// Opens what `program` is linked with and what that is linked with. Symbols are not read yet.
    pub fn of(program: &Arc<Binary>, finder: &Finder) -> Libraries {
        let mut libraries = Libraries {
            files: Vec::new(),
            problems: Vec::new(),
        };
        let path = program.path();
        let path = match finder.root().directory() {
            // A link to a program does not change where it looks for libraries.
            None => fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            Some(root) => Path::new("/").join(path.strip_prefix(root).unwrap_or(path)),
        };
        libraries.push(program.clone(), &path, None);
        let usual = usual(program, finder);
        let mut known: FxHashSet<Vec<u8>> = FxHashSet::default();
        let mut tries = 0;
        let mut at = 0;
        while let Some(file) = libraries.files.get(at) {
            for name in file.needed.libraries.clone() {
                if !known.insert(name.clone()) {
                    continue;
                }
                if libraries.files.len() >= FILE_LIMIT || tries >= TRY_LIMIT {
                    let problem = format!("more than {FILE_LIMIT} libraries, the rest is left out");
                    libraries.problems.push(problem);
                    return libraries;
                }
                let mut places = libraries.places(&name, at, &usual).into_iter();
                let found = places.find_map(|place| {
                    tries += 1;
                    let binary = finder.open(&place).ok()?;
                    let fits = binary.elf.machine == program.elf.machine
                        && binary.elf.wide == program.elf.wide;
                    fits.then_some((place, binary))
                });
                let Some((place, binary)) = found else {
                    let needer = libraries
                        .files
                        .get(at)
                        .map(|file| file.binary.path())
                        .unwrap_or(Path::new(""))
                        .display();
                    let name = utf8(&name).into_owned();
                    let problem = format!("library {name} was not found, which {needer} needs");
                    libraries.problems.push(problem);
                    continue;
                };
                libraries.push(Arc::new(binary), &place, Some(at));
                let last = libraries.files.last();
                known.extend(last.and_then(|file| file.needed.soname.clone()));
            }
            at += 1;
        }
        libraries
    }

    /// The files in the order in which names are looked up, the program first.
    pub fn files(&self) -> impl Iterator<Item = &Arc<Binary>> {
        self.files.iter().map(|file| &file.binary)
    }

    /// The file that defines the function of this linkage name, and where it starts there.
    pub fn definition(&self, name: &str) -> Option<(&Arc<Binary>, Svma)> {
        self.files.iter().find_map(|file| {
            let exports = file.exports.get_or_init(|| file.binary.exports());
            Some((&file.binary, exports.start(name.as_bytes())?))
        })
    }

    fn push(&mut self, binary: Arc<Binary>, path: &Path, loader: Option<usize>) {
        self.files.push(Linked {
            needed: binary.needed(),
            exports: OnceLock::new(),
            loader,
            origin: path.parent().unwrap_or(Path::new("/")).to_owned(),
            binary,
        });
    }

    // Where a library may be that the file at index `by` needs.
    fn places(&self, name: &[u8], by: usize, usual: &[PathBuf]) -> Vec<PathBuf> {
        let name = OsStr::from_bytes(name);
        if name.as_bytes().contains(&b'/') {
            return vec![PathBuf::from(name)];
        }
        let Some(file) = self.files.get(by) else {
            return Vec::new();
        };
        let mut directories = Vec::new();
        match &file.needed.runpath {
            Some(list) => file.directories(list, &mut directories),
            None => {
                let mut at = Some(by);
                while let Some(file) = at.and_then(|at| self.files.get(at)) {
                    if let (Some(list), None) = (&file.needed.rpath, &file.needed.runpath) {
                        file.directories(list, &mut directories);
                    }
                    at = file.loader;
                }
            }
        }
        directories.truncate(DIRECTORY_LIMIT);
        directories.extend_from_slice(usual);
        directories.iter().map(|place| place.join(name)).collect()
    }
}

impl Linked {
    // Adds the directories of a list, as far as it says which ones: `$LIB` and `$PLATFORM` are the
    // dynamic linker's to know.
    fn directories(&self, list: &[u8], into: &mut Vec<PathBuf>) {
        for item in list.split(|&byte| byte == b':') {
            let rest = [&b"$ORIGIN"[..], b"${ORIGIN}"]
                .iter()
                .find_map(|origin| item.strip_prefix(*origin));
            let path = match rest {
                Some(rest) => {
                    let mut path = self.origin.as_os_str().as_bytes().to_vec();
                    path.extend_from_slice(rest);
                    PathBuf::from(OsStr::from_bytes(&path))
                }
                None => PathBuf::from(OsStr::from_bytes(item)),
            };
            if path.is_absolute() && !path.as_os_str().as_bytes().contains(&b'$') {
                into.push(path);
            }
        }
    }
}

// The directories of every program for the machine of this one.
fn usual(program: &Binary, finder: &Finder) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    let configured = text(finder, Path::new("/etc/ld.so.conf"));
    for line in configured.split(|&byte| byte == b'\n') {
        let line = line.trim_ascii();
        match line.strip_prefix(b"include") {
            None => add(line, &mut directories),
            Some(pattern) => {
                for path in included(finder, pattern.trim_ascii()) {
                    let text = text(finder, &path);
                    let lines = text.split(|&byte| byte == b'\n');
                    lines.for_each(|line| add(line.trim_ascii(), &mut directories));
                }
            }
        }
    }
    let machine = program.elf.machine;
    let names = [
        (elf::EM_X86_64.0, "x86_64-linux-gnu"),
        (elf::EM_386.0, "i386-linux-gnu"),
        (elf::EM_AARCH64.0, "aarch64-linux-gnu"),
        (elf::EM_RISCV.0, "riscv64-linux-gnu"),
    ];
    if let Some((_, name)) = names.iter().find(|&&(m, _)| m == machine) {
        directories.extend(["/lib", "/usr/lib"].map(|root| Path::new(root).join(name)));
    }
    let width = if program.elf.wide {
        ["/lib64", "/usr/lib64"]
    } else {
        ["/lib32", "/usr/lib32"]
    };
    directories.extend(width.map(PathBuf::from));
    directories.extend(["/lib", "/usr/lib", "/usr/local/lib"].map(PathBuf::from));
    let mut met = FxHashSet::default();
    directories.retain(|directory| met.insert(directory.clone()));
    directories
}

// A line of `/etc/ld.so.conf`.
fn add(line: &[u8], into: &mut Vec<PathBuf>) {
    let line = line.split(|&byte| byte == b'#').next().unwrap_or(line);
    let path = Path::new(OsStr::from_bytes(line.trim_ascii()));
    if path.is_absolute() {
        into.push(path.to_owned());
    }
}

// `DIRECTORY/*.ENDING` is how lists of directories include others; sorted by name.
fn included(finder: &Finder, pattern: &[u8]) -> Vec<PathBuf> {
    let pattern = Path::new(OsStr::from_bytes(pattern));
    let (Some(directory), Some(name)) = (pattern.parent(), pattern.file_name()) else {
        return Vec::new();
    };
    let directory = Path::new("/etc").join(directory);
    let Some(ending) = name.as_bytes().strip_prefix(b"*") else {
        return vec![directory.join(name)];
    };
    let mut names: Vec<_> = finder
        .root()
        .names(&directory)
        .unwrap_or_default()
        .into_iter()
        .filter(|name| name.as_bytes().ends_with(ending))
        .take(INCLUDE_LIMIT)
        .collect();
    names.sort();
    names.into_iter().map(|name| directory.join(name)).collect()
}

// A short regular file; nothing, if it cannot be read.
fn text(finder: &Finder, path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    if let Ok(opened) = finder.root().open(path, LastLink::Follow) {
        // What was read before an error stays.
        let _ = opened.file.take(LIST_LIMIT).read_to_end(&mut text);
    }
    text
}
