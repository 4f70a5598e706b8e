//! The kernel's own symbols, kept from one start of proftool to the next: see [`crate::cache`].
//!
//! ```text
//!   key    the start of the kernel (boot_id), its build (notes), and what its list begins with for
//!          this user: names are hidden from some
//!   rows   all zero: core as start and end, and text
//!          1, start of a symbol: its size and name
//! ```

use std::io::Read;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Kallsyms, Others};
use crate::base::Avma;
use crate::cache::{Cache, Contents, Rows};
use crate::files;

const NAME: &str = "kernel-symbols";
// More than what tells the start and the build of a kernel.
const WHOLE: u64 = 64 << 10;
// How much of the list tells that it is the same one.
const BEGINNING: u64 = 2048;

// If they are those of the kernel that runs.
pub(super) fn load(cache: &Cache, list: &Path) -> Option<Kallsyms> {
    let mut kernel = read(cache.load(NAME, &key(list)?)?)?;
    kernel.others = Some(Others {
        path: list.to_owned(),
        list: Arc::default(),
    });
    Some(kernel)
}

// It does not matter if that fails.
pub(super) fn store(cache: &Cache, list: &Path, kernel: &Kallsyms) -> Option<()> {
    cache.store(NAME, &key(list)?, &written(kernel)?)
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
    let own = kernel.symbols.iter().filter(|it| core.contains(&it.start));
    let own = own.map(|symbol| {
        let name = super::named(&kernel.names, symbol.name);
        // Not the end, which has nine bytes more.
        let size = symbol.end.saturating_sub(symbol.start);
        (key_of(symbol.start), Row::Symbol(size, name))
    });
    Rows::contents(iter::once(head).chain(own))
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
    // The size of a symbol and its name.
    Symbol(u64, &'k str),
}

// Looked up where they were read, as few of them are asked for.
#[derive(Debug)]
pub(super) struct KeptSymbols(Rows<9>);

impl KeptSymbols {
    pub(super) fn len(&self) -> usize {
        self.0.keys().len().saturating_sub(1)
    }

    // Start, size and name.
    pub(super) fn at(&self, address: u64) -> Option<(u64, u64, &str)> {
        let (key, Row::Symbol(size, name)) = self.0.at_or_before(&key_of(address))? else {
            return None;
        };
        let start = u64::from_be_bytes(*key.last_chunk()?);
        (address.checked_sub(start)? < size).then_some((start, size, name))
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
        let cache = Cache::open(&directory).unwrap();
        let plain = Kallsyms::parse(LIST);
        for _ in 0..2 {
            let kernel = Kallsyms::read_cached(&list, &cache).unwrap();
            assert_eq!(kernel.text(), plain.text());
            for address in (0..0xb000).map(Avma) {
                assert_eq!(kernel.at(address), plain.at(address), "{address:?}");
            }
        }
        assert!(directory.join(NAME).is_file());
        assert!(load(&cache, &list).is_some());
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
            cache.store(NAME, b"", contents).unwrap();
            let kernel = read(cache.load(NAME, b"").unwrap()).unwrap_or_default();
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
