//! The kernel's symbols, kept from one start of proftool to the next: see [`crate::cache`].
//!
//! ```text
//!   key    the start of the kernel (boot_id), its build (notes), and what its list begins with for
//!          this user: names are hidden from some
//!   rows   all zero: in one file core as start and end, and text, in the other when it was read
//!          1, start of a symbol: its size and name, and its module
//! ```

use std::io::Read;
use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Kallsyms, KernelFunction, Symbol};
use crate::base::Avma;
use crate::cache::{Cache, Contents, Rows};
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
    let rows = Rows::of(cache.load(OTHERS, &key(list)?)?)?;
    let Row::Read(read) = rows.get(&HEAD)? else {
        return None;
    };
    (read > after?).then(|| Kallsyms {
        kept: Some(Arc::new(KeptSymbols(rows))),
        ..Kallsyms::default()
    })
}

// It does not matter if that fails.
pub(super) fn store_others(
    cache: &Cache,
    list: &Path,
    kernel: &Kallsyms,
    read: SystemTime,
) -> Option<()> {
    let core = kernel.core.clone()?;
    let are = |symbol: &&Symbol| !core.contains(&symbol.start);
    let head = (HEAD, Row::Read(read));
    cache.store(OTHERS, &key(list)?, &rows(kernel, head, are)?)
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
    let head = (HEAD, Row::Kernel(core.start, core.end, kernel.text?.0));
    rows(kernel, head, |symbol| core.contains(&symbol.start))
}

fn rows<'k>(
    kernel: &'k Kallsyms,
    head: ([u8; 9], Row<'k>),
    are: impl Fn(&&Symbol) -> bool,
) -> Option<Vec<u8>> {
    let symbols = kernel.symbols.iter().filter(are).map(|symbol| {
        let function = kernel.function(symbol);
        // Not the end, which has nine bytes more.
        let row = Row::Symbol(function.size, function.name, function.module);
        (key_of(symbol.start), row)
    });
    Rows::contents(iter::once(head).chain(symbols))
}

const HEAD: [u8; 9] = [0; 9];

fn key_of(start: u64) -> [u8; 9] {
    let mut key = [1; 9];
    key[1..].copy_from_slice(&start.to_be_bytes());
    key
}

#[derive(Serialize, Deserialize)]
enum Row<'k> {
    // The start and end of the core, and its text.
    Kernel(u64, u64, u64),
    // When the others were read.
    Read(SystemTime),
    // The size of a symbol, its name, and its module.
    Symbol(u64, &'k str, Option<&'k str>),
}

// Looked up where they were read, as few of them are asked for.
#[derive(Debug)]
pub(super) struct KeptSymbols(Rows<9>);

impl KeptSymbols {
    pub(super) fn len(&self) -> usize {
        self.0.keys().len().saturating_sub(1)
    }

    pub(super) fn at(&self, address: Avma) -> Option<KernelFunction<'_>> {
        let (key, row) = self.0.at_or_before(&key_of(address.0))?;
        let Row::Symbol(size, name, module) = row else {
            return None;
        };
        let start = u64::from_be_bytes(*key.last_chunk()?);
        (address.0.checked_sub(start)? < size).then_some(KernelFunction {
            start: Avma(start),
            size,
            name,
            module,
        })
    }
}

fn read(contents: Contents) -> Option<Kallsyms> {
    let rows = Rows::of(contents)?;
    let Row::Kernel(start, end, text) = rows.get(&HEAD)? else {
        return None;
    };
    Some(Kallsyms {
        text: Some(Avma(text)),
        core: Some(start..end),
        kept: Some(Arc::new(KeptSymbols(rows))),
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
