//! Where copies of programs and their debug information are kept on a machine.
//!
//! ```text
//!   /usr/lib/debug/.build-id/ab/cdef….debug            debug files by build id
//!   /usr/lib/debug/usr/bin/prog.debug                  debug files by path
//!   ~/.debug/.build-id/ab/cdef…/{elf,debug,vdso}       perf's cache of what was recorded
//!   ~/.cache/debuginfod_client/abcdef…/{executable,debuginfo}
//! ```
//!
//! Nothing is ever fetched.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::fields::c_string;
use super::source::Source;
use crate::base::BuildId;

/// The most bytes of a section that only names a file.
const LINK_LIMIT: u64 = 64 << 10;

/// The directories.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Trees of debug files: `/usr/lib/debug`.
    roots: Vec<PathBuf>,
    /// Caches of recorded programs, in perf's layout: `~/.debug`.
    recorded: Vec<PathBuf>,
    /// Caches of downloads, in the layout of debuginfod's client.
    fetched: Vec<PathBuf>,
}

impl Places {
    /// The usual directories; `symfs` is a directory that stands for `/`.
    pub(super) fn usual(symfs: Option<&Path>) -> Places {
        let mut places = Places::default();
        let usual = Path::new("/usr/lib/debug");
        places
            .roots
            .extend(symfs.map(|root| root.join("usr/lib/debug")));
        places.roots.push(usual.to_owned());
        let directory = |name| std::env::var_os(name).map(PathBuf::from);
        let absolute = |path: &PathBuf| path.is_absolute();
        if let Some(home) = directory("HOME").filter(absolute) {
            places.recorded.push(home.join(".debug"));
            places.fetched.push(home.join(".cache/debuginfod_client"));
        }
        let cache = directory("DEBUGINFOD_CACHE_PATH").filter(absolute);
        places.fetched.extend(cache);
        places
    }

    /// Where a copy of the program with this build id may be.
    pub(super) fn programs(&self, id: &BuildId) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        let hex = id.to_string();
        let (first, rest) = hex.split_at_checked(2).unwrap_or_default();
        for cache in &self.recorded {
            let directory = cache.join(".build-id").join(first).join(rest);
            paths.extend(["elf", "vdso"].map(|name| directory.join(name)));
        }
        for root in &self.roots {
            paths.push(root.join(".build-id").join(first).join(rest));
        }
        for cache in &self.fetched {
            paths.push(cache.join(&hex).join("executable"));
        }
        paths
    }

    /// The debug file of a program: by build id, by `.gnu_debuglink`, by path. It is believed
    /// only if it has the program's build id or the checksum that the program states.
    pub(super) fn debug_file(&self, elf: &Elf, path: &Path) -> Option<Elf> {
        if let Some(id) = &elf.build_id {
            let found = self.by_id(id);
            if found.is_some() {
                return found;
            }
        }
        let link = debug_link(elf);
        self.beside(elf, path, link.as_ref())
            .iter()
            .find_map(|candidate| {
                let source = Source::open(candidate).ok()?;
                let found = Elf::read(source).ok()?;
                let same = match (&elf.build_id, &found.build_id, &link) {
                    (Some(a), Some(b), _) => a == b,
                    (None, _, Some((_, sum))) | (_, None, Some((_, sum))) => {
                        checksum(&found.source)? == *sum
                    }
                    _ => false,
                };
                same.then_some(found)
            })
    }

    /// Where the debug file of a program is looked for, in order.
    pub(super) fn debug_places(&self, elf: &Elf, path: &Path) -> Vec<PathBuf> {
        let by_id = elf.build_id.as_ref().map(|id| self.places_by_id(id));
        let mut paths = by_id.unwrap_or_default();
        paths.extend(self.beside(elf, path, debug_link(elf).as_ref()));
        paths
    }

    /// Where the debug file may be that a program names, or that is found by its path.
    fn beside(&self, elf: &Elf, path: &Path, link: Option<&(PathBuf, u32)>) -> Vec<PathBuf> {
        let directory = path.parent().filter(|directory| directory.is_absolute());
        let mut paths = Vec::new();
        if let (Some((name, _)), Some(directory)) = (link, directory) {
            paths.push(directory.join(name));
            paths.push(directory.join(".debug").join(name));
            paths.extend(self.under_roots(directory).map(|under| under.join(name)));
        }
        if directory.is_some() && elf.build_id.is_some() {
            for mut under in self.under_roots(path) {
                paths.push(under.clone());
                under.as_mut_os_string().push(".debug");
                paths.push(under);
            }
        }
        paths.retain(|candidate| candidate != path);
        paths
    }

    /// The supplementary file that `.gnu_debugaltlink` names: a path, a zero byte, a build id.
    pub(super) fn supplement(&self, elf: &Elf, path: &Path) -> Option<Elf> {
        let section = elf.section(b".gnu_debugaltlink")?;
        let link = elf
            .source
            .read("debug link", section.offset, section.size.min(LINK_LIMIT));
        let link = link.ok()?;
        let name = c_string(&link, 0)?;
        let id = BuildId::new(link.get(name.len().checked_add(1)?..)?)?;
        let named = path
            .parent()
            .unwrap_or(Path::new(""))
            .join(OsStr::from_bytes(name));
        let found = open(&named, &id);
        found.or_else(|| self.by_id(&id))
    }

    fn by_id(&self, id: &BuildId) -> Option<Elf> {
        let paths = self.places_by_id(id);
        let mut found = paths.iter().filter_map(|path| open(path, id));
        found.find(|elf| elf.has(b".debug_info") || elf.has(b".symtab"))
    }

    /// Where debug files are kept by build id.
    fn places_by_id(&self, id: &BuildId) -> Vec<PathBuf> {
        let hex = id.to_string();
        let (first, rest) = hex.split_at_checked(2).unwrap_or_default();
        let mut paths = Vec::new();
        for root in &self.roots {
            let directory = root.join(".build-id").join(first);
            paths.push(directory.join(format!("{rest}.debug")));
        }
        for cache in &self.recorded {
            let directory = cache.join(".build-id").join(first).join(rest);
            paths.extend(["debug", "elf", "vdso"].map(|name| directory.join(name)));
        }
        for cache in &self.fetched {
            paths.push(cache.join(&hex).join("debuginfo"));
        }
        paths
    }

    /// An absolute path under each of the trees of debug files.
    fn under_roots(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let relative = path.strip_prefix("/").unwrap_or(Path::new("")).to_owned();
        self.roots.iter().map(move |root| root.join(&relative))
    }
}

/// The file at `path` if it has this build id.
pub(super) fn open(path: &Path, id: &BuildId) -> Option<Elf> {
    if !path.is_absolute() {
        return None;
    }
    let elf = Elf::read(Source::open(path).ok()?).ok()?;
    (elf.build_id.as_ref() == Some(id)).then_some(elf)
}

/// The contents of `.gnu_debuglink`: a file name, zeros up to a multiple of 4 bytes, the CRC-32 of
/// that file. A name with a slash is not believed.
fn debug_link(elf: &Elf) -> Option<(PathBuf, u32)> {
    let section = elf.section(b".gnu_debuglink")?;
    let link = elf
        .source
        .read("debug link", section.offset, section.size.min(LINK_LIMIT))
        .ok()?;
    let name = c_string(&link, 0)?;
    let sum = name.len().checked_add(1)?.checked_next_multiple_of(4)?;
    let sum = elf.fields(&link).u32(sum)?;
    if name.is_empty() || name.contains(&b'/') || name == b".." || name == b"." {
        return None;
    }
    Some((PathBuf::from(OsStr::from_bytes(name)), sum))
}

/// The CRC-32 of a whole file (polynomial 0xedb88320, as zlib has it).
fn checksum(source: &Source) -> Option<u32> {
    let table: [u32; 256] = std::array::from_fn(|byte| {
        let byte = u32::try_from(byte).unwrap_or(0);
        (0..8).fold(byte, |sum, _| {
            let low = sum & 1;
            (sum >> 1) ^ (0xedb8_8320 & low.wrapping_neg())
        })
    });
    let mut sum = !0;
    let mut at = 0;
    while at < source.size() {
        let length = source.size().saturating_sub(at).min(1 << 20);
        for byte in source.read("the debug file", at, length).ok()? {
            let index = (sum ^ u32::from(byte)) & 0xff;
            sum = (sum >> 8) ^ table.get(index as usize).copied().unwrap_or(0);
        }
        at = at.saturating_add(length);
    }
    Some(!sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zlib() {
        let source = Source::Memory(b"123456789".to_vec());
        assert_eq!(checksum(&source), Some(0xcbf4_3926));
    }
}
