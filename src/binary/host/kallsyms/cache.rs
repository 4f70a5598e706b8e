//! The kernel's symbols, kept from one start of proftool to the next: see [`crate::cache`].
//!
//! ```text
//!   key    the start of the kernel (boot_id), its build (notes), and what its list begins with for
//!          this user: names are hidden from some
//!   head   length: u8, then in one file core as start and end, and text, in the other when it was
//!          read
//!   list   lines of the functions in core, without the digits that all addresses there begin with,
//!          or of all others; and the line behind each, where that function ends
//! ```

use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Kallsyms;
use super::list::{DIGITS, List};
use crate::base::Avma;
use crate::cache::{self, Cache, Contents};
use crate::files;

// The kernel's own symbols, and the others.
const OWN: &str = "kernel-symbols";
const OTHERS: &str = "kernel-others";
// More than what tells the start and the build of a kernel.
const WHOLE: u64 = 64 << 10;
// How much of the list tells that it is the same one.
const BEGINNING: u64 = 2048;

// If they are those of the kernel that runs.
pub(super) fn load(cache: &Cache, list: &Path) -> Option<Kallsyms> {
    read(cache.load(OWN, &key(list)?)?)
}

// It does not matter if that fails.
pub(super) fn store(cache: &Cache, list: &Path, kernel: &Kallsyms) -> Option<()> {
    cache.store(OWN, &key(list)?, &written(kernel)?)
}

// The others, if they were read after a time. What was there before it may have gone by then.
pub(super) fn load_others(
    cache: &Cache,
    list: &Path,
    after: Option<SystemTime>,
) -> Option<Kallsyms> {
    let contents = cache.load(OTHERS, &key(list)?)?;
    let (read, from): (SystemTime, usize) = head(&contents)?;
    let list = contents.bytes().get(from..)?;
    (read > after?).then(|| Kallsyms::parse(list))
}

// It does not matter if that fails.
pub(super) fn store_others(
    cache: &Cache,
    list: &Path,
    kernel: &Kallsyms,
    read: SystemTime,
) -> Option<()> {
    let core = kernel.core.clone()?;
    let lines = lines(kernel, 0, |start| !core.contains(&start));
    cache.store(OTHERS, &key(list)?, &[headed(&read)?, lines].concat())
}

// What tells one start of a kernel from another, and what this user sees of it.
fn key(list: &Path) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let [boot, build] = ["/proc/sys/kernel/random/boot_id", "/sys/kernel/notes"].map(Path::new);
    for (path, length) in [(boot, WHOLE), (build, WHOLE), (list, BEGINNING)] {
        let file = files::open_named(path).ok()?.file;
        file.take(length).read_to_end(&mut key).ok()?;
    }
    Some(key)
}

// `None` if the symbols cannot be kept: they are hidden, or mixed with those of modules.
fn written(kernel: &Kallsyms) -> Option<Vec<u8>> {
    let core = kernel.core.clone()?;
    let head = headed(&(core.start, core.end, kernel.text?.0))?;
    let lines = lines(kernel, common_digits(&core), |start| core.contains(&start));
    Some([head, lines].concat())
}

// The lines of some functions, without so many digits of their addresses, and of what ends them.
fn lines(kernel: &Kallsyms, digits: usize, are: impl Fn(u64) -> bool) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut is_open = false;
    for symbol in kernel.symbols() {
        let is_wanted = symbol.is_code() && are(symbol.start);
        if is_wanted || is_open {
            lines.extend_from_slice(symbol.text.get(digits..).unwrap_or_default());
            lines.push(b'\n');
        }
        is_open = is_wanted;
    }
    lines
}

// How many digits the addresses from the start to the end of a range have in common, but the last.
fn common_digits(range: &Range<u64>) -> usize {
    let same = (range.start ^ range.end).leading_zeros() as usize / 4;
    same.min(DIGITS - 1)
}

fn headed(head: &impl Serialize) -> Option<Vec<u8>> {
    let mut head = cache::encode(head)?;
    head.insert(0, u8::try_from(head.len()).ok()?);
    Some(head)
}

// The head of contents, and where what follows begins.
fn head<'c, T: Deserialize<'c>>(contents: &'c Contents) -> Option<(T, usize)> {
    let (&length, rest) = contents.bytes().split_first()?;
    let head = rest.get(..length.into())?;
    Some((cache::decode(head)?, usize::from(length) + 1))
}

fn read(contents: Contents) -> Option<Kallsyms> {
    let ((start, end, text), from) = head(&contents)?;
    let core = start..end;
    let base = start & !(u64::MAX >> (common_digits(&core) * 4));
    Some(Kallsyms {
        list: Some(Arc::new(List::kept(contents, from, base))),
        text: Some(Avma(text)),
        core: Some(core),
        ..Kallsyms::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const LIST: &[u8] =
        b"0 A percpu\n1000 T _text\n1010 t next\n1020 D table\n1030 t last\n1040 D end\n\
        9000 t hook\t[mod]\n9100 t other\t[mod]\n";

    fn room(name: &str) -> PathBuf {
        let own = fs::read_link("/proc/self").unwrap();
        let name = format!("proftool-kallsyms-{}-{name}", own.display());
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
        let cache = Arc::new(Cache::open(&directory).unwrap());
        let plain = Kallsyms::parse(LIST);
        let made = SystemTime::now();
        for made in [None, None, Some(made), Some(made)] {
            let kernel = Kallsyms::read_cached(&list, &cache, made).unwrap();
            assert_eq!(kernel.text(), plain.text());
            for address in (0..0xb000).map(Avma) {
                assert_eq!(kernel.at(address), plain.at(address), "{address:?}");
            }
        }
        assert!(directory.join(OWN).is_file());
        assert!(load(&cache, &list).is_some());
        // What was read after a recording holds for it, and for none of later.
        let others = |made| load_others(&cache, &list, made).map(|others| others.len());
        assert_eq!(others(Some(made)), Some(2));
        assert_eq!(others(Some(SystemTime::now())), None);
        assert_eq!(others(None), None);
        // Modules come and go while the kernel runs.
        let more = [LIST, b"a000 t late\t[late]\n"].concat();
        fs::write(&list, more).unwrap();
        assert!(load(&cache, &list).is_none(), "the list begins otherwise");
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn no_contents_make_it_panic() {
        let room = room("damaged");
        let cache = Cache::open(&room.join("cache")).unwrap();
        let contents = written(&Kallsyms::parse(LIST)).unwrap();
        let look = |contents: &[u8]| {
            cache.store(OWN, b"", contents).unwrap();
            let kernel = read(cache.load(OWN, b"").unwrap()).unwrap_or_default();
            let addresses = (0..0xb000).step_by(16).map(Avma);
            addresses.filter_map(|address| kernel.at(address)).count()
        };
        assert_eq!(look(&contents), 3);
        for place in 0..contents.len() {
            let mut changed = contents.clone();
            changed[place] ^= 0x90;
            look(&changed);
            look(&contents[..place]);
        }
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn hidden_and_mixed_lists_are_not_kept() {
        let kept = |list: &[u8]| written(&Kallsyms::parse(list)).is_some();
        assert!(kept(LIST));
        assert!(!kept(b"0 T _text\n0 t a\n0 D end\n"));
        assert!(!kept(
            b"1000 T _text\n1010 t hook\t[mod]\n1020 t last\n1030 D end\n"
        ));
    }
}
