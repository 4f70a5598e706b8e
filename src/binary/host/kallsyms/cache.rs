//! The kernel's own symbols, kept from one start of proftool to the next.
//!
//! ```text
//!   kallsyms    magic   sum of all that follows: u64
//!               key     length: u32, then the start of the kernel (boot_id), its build (notes), and what
//!                       its list begins with for this user: names are hidden from some
//!               core    start, end, text: u64 each
//!               symbols number: u32, then start, end: u64 and the end of the name: u32 of each
//!               names   one after the other
//! ```
//!
//! Addresses in the kernel help an attacker, so the directory and the file are open to their owner
//! alone, and the cache is not used where they belong to somebody else, are open to others, or are
//! reached over a link. What is read is checked as any input is. A new file takes the place of the old one
//! when it is whole.

use std::fs::{self, DirBuilder, File};
use std::hash::Hasher;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHasher;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};

use super::{Kallsyms, Others, Symbol};
use crate::base::Avma;
use crate::files;

const MAGIC: &[u8; 8] = b"kallsym1";
const NAME: &str = "kallsyms";
/// The largest cache that is read, in bytes.
const SIZE_LIMIT: u64 = 64 << 20;
/// More than what tells the start and the build of a kernel.
const WHOLE: u64 = 64 << 10;
/// How much of the list tells that it is the same one.
const BEGINNING: u64 = 2048;
/// What others may do with a file.
const OF_OTHERS: RawMode = 0o077;

/// A directory that is safe to use, for the list of the kernel that runs.
pub(super) struct Cache {
    directory: OwnedFd,
    list: PathBuf,
    key: Vec<u8>,
}

impl Cache {
    /// Opens the directory, which is made if it is missing. `None` if it is not this user's alone.
    pub fn open(directory: &Path, list: &Path) -> Option<Cache> {
        let user = user()?;
        if fs::symlink_metadata(directory).is_err() {
            // With the rights of another user the directories of this one are left alone.
            let mut above = directory.ancestors().skip(1);
            let above = above.find_map(|path| fs::metadata(path).ok())?;
            let mut builder = DirBuilder::new();
            let builder = builder.recursive(true).mode(0o700);
            (above.uid() == user).then(|| builder.create(directory).ok())??;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty()).ok()?;
        is_own(&opened, user, FileType::Directory)?;
        Some(Cache {
            directory: opened,
            list: list.to_owned(),
            key: key(list)?,
        })
    }

    /// The symbols, if they are those of the kernel that runs.
    pub fn load(&self) -> Option<Kallsyms> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, NAME, flags, Mode::empty()).ok()?;
        let size = is_own(&file, user()?, FileType::RegularFile)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(SIZE_LIMIT)).ok()?);
        let mut file = File::from(file).take(SIZE_LIMIT);
        file.read_to_end(&mut bytes).ok()?;
        let mut kernel = read(&bytes, &self.key)?;
        kernel.others = Some(Others {
            path: self.list.clone(),
            list: Arc::default(),
        });
        Some(kernel)
    }

    /// Keeps the symbols. It does not matter if that fails.
    pub fn store(&self, kernel: &Kallsyms) -> Option<()> {
        let bytes = written(kernel, &self.key)?;
        let own = format!("{NAME}.{}", process()?.display());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, &own, flags, mode).ok()?;
        let is_written = File::from(file).write_all(&bytes).is_ok();
        let directory = &self.directory;
        if !is_written || rustix::fs::renameat(directory, &own, directory, NAME).is_err() {
            rustix::fs::unlinkat(directory, &own, AtFlags::empty()).ok()?;
        }
        Some(())
    }
}

/// The user with whose rights this runs.
fn user() -> Option<u32> {
    Some(fs::metadata("/proc/self").ok()?.uid())
}

/// The number of this process.
fn process() -> Option<PathBuf> {
    fs::read_link("/proc/self").ok()
}

/// The size of what is open, if it is of this type, the user's, and closed to others.
fn is_own(opened: &OwnedFd, user: u32, kind: FileType) -> Option<u64> {
    let stat = rustix::fs::fstat(opened).ok()?;
    let is_own = FileType::from_raw_mode(stat.st_mode) == kind
        && stat.st_uid == user
        && stat.st_mode & OF_OTHERS == 0;
    is_own.then_some(u64::try_from(stat.st_size).unwrap_or(0))
}

/// What tells one start of a kernel from another, and what this user sees of it.
fn key(list: &Path) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let [boot, build] = ["/proc/sys/kernel/random/boot_id", "/sys/kernel/notes"].map(Path::new);
    for (path, length) in [(boot, WHOLE), (build, WHOLE), (list, BEGINNING)] {
        let file = files::open_named(path).ok()?.file;
        file.take(length).read_to_end(&mut key).ok()?;
    }
    Some(key)
}

/// The sum of these bytes.
fn sum(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// The file for these symbols; `None` if they cannot be kept: they are hidden, or mixed with those of
/// modules.
fn written(kernel: &Kallsyms, key: &[u8]) -> Option<Vec<u8>> {
    let core = kernel.core.clone()?;
    let text = kernel.text?.0;
    let own = kernel.symbols.iter();
    let own: Vec<&Symbol> = own.filter(|symbol| core.contains(&symbol.start)).collect();
    let mut body = Vec::new();
    body.extend(u32::try_from(key.len()).ok()?.to_le_bytes());
    body.extend(key);
    for number in [core.start, core.end, text] {
        body.extend(number.to_le_bytes());
    }
    body.extend(u32::try_from(own.len()).ok()?.to_le_bytes());
    let mut names = String::new();
    for symbol in own {
        names.push_str(super::named(&kernel.names, symbol.name));
        body.extend(symbol.start.to_le_bytes());
        body.extend(symbol.end.to_le_bytes());
        body.extend(u32::try_from(names.len()).ok()?.to_le_bytes());
    }
    body.extend(names.into_bytes());
    let mut bytes = MAGIC.to_vec();
    bytes.extend(sum(&body).to_le_bytes());
    bytes.extend(body);
    Some(bytes)
}

/// The symbols in a file with this key.
fn read(bytes: &[u8], key: &[u8]) -> Option<Kallsyms> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (stated, body) = rest.split_first_chunk()?;
    let (length, rest) = body.split_first_chunk()?;
    let rest = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (same, rest) = (rest.0 == key, rest.1);
    if !same || u64::from_le_bytes(*stated) != sum(body) {
        return None;
    }
    let (start, rest) = rest.split_first_chunk()?;
    let (end, rest) = rest.split_first_chunk()?;
    let (text, rest) = rest.split_first_chunk()?;
    let [start, end, text] = [start, end, text].map(|number| u64::from_le_bytes(*number));
    let (number, rest) = rest.split_first_chunk()?;
    let rows = (u32::from_le_bytes(*number) as usize).checked_mul(ROW)?;
    let (rows, names) = rest.split_at_checked(rows)?;
    let names = std::str::from_utf8(names).ok()?;
    let symbols = symbols(rows, start..end, names.len())?;
    Some(Kallsyms {
        symbols,
        names: names.to_owned(),
        text: Some(Avma(text)),
        core: Some(start..end),
        ..Kallsyms::default()
    })
}

/// The bytes of one symbol.
const ROW: usize = 20;

/// The symbols in these rows, in order within `core`, with names of this length together.
fn symbols(rows: &[u8], core: Range<u64>, names: usize) -> Option<Vec<Symbol>> {
    let mut symbols = Vec::with_capacity(rows.len() / ROW);
    let (mut after, mut name) = (core.start, 0);
    for row in rows.chunks_exact(ROW) {
        let (start, rest) = row.split_first_chunk()?;
        let (end, rest) = rest.split_first_chunk()?;
        let [start, end] = [start, end].map(|number| u64::from_le_bytes(*number));
        let name_end = u32::from_le_bytes(*rest.first_chunk()?);
        let is_in_order = after <= start && start < end && end <= core.end;
        if !is_in_order || name_end < name || name_end as usize > names {
            return None;
        }
        symbols.push(Symbol {
            start,
            end,
            name: (name, name_end),
            module: None,
            is_code: true,
        });
        (after, name) = (end, name_end);
    }
    Some(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const LIST: &[u8] =
        b"0 A percpu\n1000 T _text\n1010 t next\n1020 D table\n1030 t last\n1040 D end\n\
        9000 t hook\t[mod]\n9100 t other\t[mod]\n";

    fn room(name: &str) -> PathBuf {
        let name = format!("proftool-kallsyms-{}-{name}", process().unwrap().display());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("list"), LIST).unwrap();
        path
    }

    #[test]
    fn what_is_kept_names_all_addresses_as_the_list_does() {
        let room = room("same");
        let (list, directory) = (room.join("list"), room.join("cache"));
        let plain = Kallsyms::parse(LIST);
        for _ in 0..2 {
            let kernel = Kallsyms::read_cached(&list, &directory).unwrap();
            assert_eq!(kernel.text(), plain.text());
            for address in (0..0xb000).map(Avma) {
                assert_eq!(kernel.at(address), plain.at(address), "{address:?}");
            }
        }
        assert!(directory.join(NAME).is_file());
        assert!(Cache::open(&directory, &list).unwrap().load().is_some());
        // Modules come and go while the kernel runs.
        let more = [LIST, b"a000 t later\t[late]\n"].concat();
        fs::write(&list, more).unwrap();
        let cache = Cache::open(&directory, &list).unwrap();
        assert!(cache.load().is_none(), "the list begins otherwise");
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn directories_and_files_that_are_open_to_others_are_not_used() {
        let room = room("open");
        let (list, directory) = (room.join("list"), room.join("cache"));
        Kallsyms::read_cached(&list, &directory).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(
            (mode(&directory), mode(&directory.join(NAME))),
            (0o700, 0o600)
        );
        let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        allow(&directory.join(NAME), 0o644).unwrap();
        assert!(Cache::open(&directory, &list).unwrap().load().is_none());
        allow(&directory, 0o755).unwrap();
        assert!(Cache::open(&directory, &list).is_none());
        allow(&directory, 0o700).unwrap();
        let link = room.join("link");
        symlink(&directory, &link).unwrap();
        assert!(Cache::open(&link, &list).is_none());
        allow(&directory.join(NAME), 0o600).unwrap();
        fs::rename(directory.join(NAME), room.join("file")).unwrap();
        symlink(room.join("file"), directory.join(NAME)).unwrap();
        assert!(Cache::open(&directory, &list).unwrap().load().is_none());
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn any_change_of_a_byte_is_seen() {
        let bytes = written(&Kallsyms::parse(LIST), b"key").unwrap();
        assert!(read(&bytes, b"key").is_some());
        assert!(read(&bytes, b"other").is_none());
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            assert!(read(&changed, b"key").is_none(), "{place}");
            assert!(read(&bytes[..place], b"key").is_none(), "{place}");
        }
    }

    #[test]
    fn hidden_and_mixed_lists_are_not_kept() {
        let kept = |list: &[u8]| written(&Kallsyms::parse(list), b"").is_some();
        assert!(kept(LIST));
        assert!(!kept(b"0 T _text\n0 t a\n0 D end\n"));
        assert!(!kept(
            b"1000 T _text\n1010 t hook\t[mod]\n1020 t last\n1030 D end\n"
        ));
    }
}
