//! The cache: what one run of proftool keeps for the next, in the user's cache directory.
//!
//! ```text
//!   file    magic: 8 bytes
//!           sum of all that follows: u64
//!           key     length: u32, then what the contents are true for
//!           contents
//! ```
//!
//! The contents reveal where the kernel's functions are and what programs contain, so only their
//! owner may read the directory and its files. The cache is not used if they belong to somebody
//! else, if others may read them, or if a symbolic link leads to them. Code that reads contents
//! checks them like any other input. A new file replaces the old one only when it is complete. If
//! anything fails, proftool goes on without the cache.
//!
//! Contents are values in the format of [postcard](https://postcard.jamesmunns.com): as a whole, or
//! many of them by key, as [`Rows`].

mod kept;
mod rows;

use std::fs::{self, DirBuilder, File};
use std::hash::Hasher;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustc_hash::FxHasher;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode, Timespec, Timestamps, UTIME_NOW};
use serde::{Deserialize, Serialize};

pub use self::kept::Kept;
pub use self::rows::Rows;

/// The last byte counts the formats of what is kept, so that no other one is misread.
const MAGIC: &[u8; 8] = b"proftoo4";
/// The largest file that is read or written, in bytes.
const FILE_LIMIT: u64 = 64 << 20;
/// What all files may have together, in bytes. Beyond it those go that were not used for longest.
const TOTAL_LIMIT: u64 = 256 << 20;
/// What others may do with a file.
const OF_OTHERS: RawMode = 0o077;
/// A file that is used counts as used now if its mark is older.
const MARK_AGE: Duration = Duration::from_secs(3600);

/// A directory that is safe to use.
#[derive(Debug)]
pub struct Cache {
    directory: OwnedFd,
    user: u32,
}

/// The contents of a file.
#[derive(Debug)]
pub struct Contents {
    bytes: Vec<u8>,
    start: usize,
}

impl Contents {
    /// The bytes that were kept.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Contents {
    fn from(bytes: Vec<u8>) -> Contents {
        Contents { bytes, start: 0 }
    }
}

/// Where something is kept: in which cache, under which name, and for which key.
#[derive(Clone, Debug)]
pub struct Place {
    pub cache: Arc<Cache>,
    /// The name of a file in it.
    pub name: String,
    /// What the contents are true for.
    pub key: Vec<u8>,
}

impl Place {
    /// What was kept here.
    pub fn load(&self) -> Option<Contents> {
        self.cache.load(&self.name, &self.key)
    }

    /// Keeps these contents here. It does not matter if that fails.
    pub fn store(&self, contents: &[u8]) -> Option<()> {
        self.cache.store(&self.name, &self.key, contents)
    }
}

/// The bytes of a value; `None` if it has a part that cannot be kept.
pub fn encode(value: &impl Serialize) -> Option<Vec<u8>> {
    postcard::to_stdvec(value).ok()
}

/// The value that consists of these bytes, all of them.
///
/// Bytes of any kind are safe to decode: a text is taken from them, and a list grows with what is
/// read, as serde does not believe a stated length of more than a megabyte.
pub fn decode<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}

impl Cache {
    /// Opens the directory, which is made if it is missing. `None` if it is not this user's alone.
    pub fn open(directory: &Path) -> Option<Cache> {
        let user = fs::metadata("/proc/self").ok()?.uid();
        if fs::symlink_metadata(directory).is_err() {
            // With the rights of another user the directories of this one are left alone.
            let mut above = directory.ancestors().skip(1);
            let above = above.find_map(|path| fs::metadata(path).ok())?;
            let mut builder = DirBuilder::new();
            let builder = builder.recursive(true).mode(0o700);
            (above.uid() == user).then(|| builder.create(directory).ok())??;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, Mode::empty()).ok()?;
        is_own(&directory, user, FileType::Directory)?;
        Some(Cache { directory, user })
    }

    /// Returns what was kept under this name, if it was kept for this key.
    pub fn load(&self, name: &str, key: &[u8]) -> Option<Contents> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty()).ok()?;
        let state = is_own(&file, self.user, FileType::RegularFile)?;
        let size = u64::try_from(state.st_size).ok()?;
        if size > FILE_LIMIT {
            return None;
        }
        mark(&file, state.st_mtime);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(size).ok()?).ok()?;
        File::from(file).take(size).read_to_end(&mut bytes).ok()?;
        let start = contents_start(&bytes, key)?;
        Some(Contents { bytes, start })
    }

    /// Keeps these contents under a name, for a key. It does not matter if that fails.
    pub fn store(&self, name: &str, key: &[u8], contents: &[u8]) -> Option<()> {
        let head = head(key, contents)?;
        let size = head.len().saturating_add(contents.len()) as u64;
        if size > FILE_LIMIT {
            return None;
        }
        let own = format!("{name}.{}", process()?.display());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let directory = &self.directory;
        let file = rustix::fs::openat(directory, &own, flags, mode).ok()?;
        let mut file = File::from(file);
        let written = file
            .write_all(&head)
            .and_then(|()| file.write_all(contents));
        if written.is_err() || rustix::fs::renameat(directory, &own, directory, name).is_err() {
            rustix::fs::unlinkat(directory, &own, AtFlags::empty()).ok()?;
        }
        self.make_room(name)
    }

    /// Removes the files that were not used for longest until the others fit, except the newest
    /// one.
    fn make_room(&self, newest: &str) -> Option<()> {
        let mut files: Vec<(i64, Vec<u8>, u64)> = Vec::new();
        let mut total: u64 = 0;
        for entry in Dir::read_from(&self.directory).ok()? {
            let name = entry.ok()?.file_name().to_bytes().to_vec();
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let state = rustix::fs::statat(&self.directory, &name, flags).ok()?;
            let size = u64::try_from(state.st_size).unwrap_or(0);
            if FileType::from_raw_mode(state.st_mode) == FileType::RegularFile {
                total = total.saturating_add(size);
                files.push((state.st_mtime, name, size));
            }
        }
        files.sort_unstable();
        for (_, name, size) in files {
            if total <= TOTAL_LIMIT {
                break;
            }
            if name != newest.as_bytes() {
                rustix::fs::unlinkat(&self.directory, &name, AtFlags::empty()).ok()?;
                total = total.saturating_sub(size);
            }
        }
        Some(())
    }
}

fn process() -> Option<PathBuf> {
    fs::read_link("/proc/self").ok()
}

/// The state of what is open, if it is of this type, the user's, and closed to others.
fn is_own(opened: &OwnedFd, user: u32, kind: FileType) -> Option<rustix::fs::Stat> {
    let state = rustix::fs::fstat(opened).ok()?;
    let is_own = FileType::from_raw_mode(state.st_mode) == kind
        && state.st_uid == user
        && state.st_mode & OF_OTHERS == 0;
    is_own.then_some(state)
}

/// Marks a file as used now, unless it was marked lately.
fn mark(file: &OwnedFd, marked: i64) {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    if u64::try_from(marked)
        .unwrap_or(0)
        .saturating_add(MARK_AGE.as_secs())
        < now
    {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        // The order of what is removed is then another one.
        let _ = rustix::fs::futimens(file, &times);
    }
}

/// The sum of these bytes, which come in two parts.
fn sum(key: &[u8], contents: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.write(contents);
    hasher.finish()
}

/// What stands before the contents.
fn head(key: &[u8], contents: &[u8]) -> Option<Vec<u8>> {
    let mut head = MAGIC.to_vec();
    head.extend(sum(key, contents).to_le_bytes());
    head.extend(u32::try_from(key.len()).ok()?.to_le_bytes());
    head.extend(key);
    Some(head)
}

/// Where the contents of a file begin, if they are whole and were kept for this key.
fn contents_start(bytes: &[u8], key: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (stated, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (kept, contents) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let is_whole = kept == key && u64::from_le_bytes(*stated) == sum(kept, contents);
    is_whole.then(|| bytes.len().saturating_sub(contents.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn room(name: &str) -> PathBuf {
        let name = format!("proftool-cache-{}-{name}", process().unwrap().display());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    fn loaded(directory: &Path, key: &[u8]) -> Option<Vec<u8>> {
        let contents = Cache::open(directory)?.load("one", key)?;
        Some(contents.bytes().to_vec())
    }

    #[test]
    fn what_is_kept_is_found_for_its_key_alone() {
        let room = room("same");
        let directory = room.join("cache");
        for contents in [&b"first"[..], b"second", b""] {
            let cache = Cache::open(&directory).unwrap();
            cache.store("one", b"key", contents).unwrap();
            assert_eq!(loaded(&directory, b"key").as_deref(), Some(contents));
            assert_eq!(loaded(&directory, b"other"), None);
        }
        let files = fs::read_dir(&directory).unwrap().count();
        assert_eq!(files, 1, "nothing is left of writing");
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn directories_and_files_that_are_open_to_others_are_not_used() {
        let room = room("open");
        let directory = room.join("cache");
        let file = directory.join("one");
        Cache::open(&directory).unwrap().store("one", b"", b"kept");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&file)), (0o700, 0o600));
        let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        allow(&file, 0o644).unwrap();
        assert_eq!(loaded(&directory, b""), None);
        allow(&directory, 0o755).unwrap();
        assert!(Cache::open(&directory).is_none());
        allow(&directory, 0o700).unwrap();
        let link = room.join("link");
        symlink(&directory, &link).unwrap();
        assert!(Cache::open(&link).is_none());
        allow(&file, 0o600).unwrap();
        assert!(loaded(&directory, b"").is_some());
        fs::rename(&file, room.join("file")).unwrap();
        symlink(room.join("file"), &file).unwrap();
        assert_eq!(loaded(&directory, b""), None);
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn any_change_of_a_byte_is_seen() {
        let contents = b"contents of several bytes";
        let bytes = [&head(b"key", contents).unwrap()[..], contents].concat();
        assert!(contents_start(&bytes, b"key").is_some());
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            assert!(contents_start(&changed, b"key").is_none(), "{place}");
            assert!(contents_start(&bytes[..place], b"key").is_none(), "{place}");
        }
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let room = room("full");
        let directory = room.join("cache");
        let cache = Cache::open(&directory).unwrap();
        let place = |number: u64| directory.join(format!("{number}"));
        for number in 0..6 {
            // Holes take nothing of the disk.
            let file = File::create(place(number)).unwrap();
            file.set_len(TOTAL_LIMIT / 4).unwrap();
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(9 - number);
            file.set_modified(used).unwrap();
        }
        cache.store("new", b"", b"contents").unwrap();
        let kept: Vec<bool> = (0..6).map(|number| place(number).exists()).collect();
        assert_eq!(kept, [true, true, true, false, false, false]);
        assert!(directory.join("new").exists());
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn a_file_that_is_used_is_marked_after_an_hour() {
        let room = room("mark");
        let cache = Cache::open(&room.join("cache"));
        let (cache, file) = (cache.unwrap(), room.join("cache/one"));
        cache.store("one", b"", b"kept").unwrap();
        let age_when_used = |minutes: u64| {
            let age = Duration::from_secs(60 * minutes);
            let opened = File::options().write(true).open(&file).unwrap();
            opened.set_modified(SystemTime::now() - age).unwrap();
            cache.load("one", b"").unwrap();
            let marked = fs::metadata(&file).unwrap().modified().unwrap();
            SystemTime::now().duration_since(marked).unwrap_or_default()
        };
        assert!(age_when_used(30) >= Duration::from_secs(60 * 30));
        assert!(age_when_used(90) < Duration::from_secs(60 * 30));
        fs::remove_dir_all(room).unwrap();
    }
}
