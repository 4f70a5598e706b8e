//! The kernel's own symbols, kept from one start of proftool to the next: see [`crate::cache`].
//!
//! ```text
//!   key         the start of the kernel (boot_id), its build (notes), and what its list begins with for
//!               this user: names are hidden from some
//!   contents    core    start, end, text: u64 each
//!               symbols number: u32, then start, end: u64 and the end of the name: u32 of each
//!               names   one after the other
//! ```

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::{Kallsyms, Others, Symbol};
use crate::base::Avma;
use crate::cache::{Cache, Contents};
use crate::files;

const NAME: &str = "kernel-symbols";
/// More than what tells the start and the build of a kernel.
const WHOLE: u64 = 64 << 10;
/// How much of the list tells that it is the same one.
const BEGINNING: u64 = 2048;

/// Returns the symbols that were kept, if they are those of the kernel that runs.
pub(super) fn load(cache: &Cache, list: &Path) -> Option<Kallsyms> {
    let mut kernel = read(cache.load(NAME, &key(list)?)?)?;
    kernel.others = Some(Others {
        path: list.to_owned(),
        list: Arc::default(),
    });
    Some(kernel)
}

/// Keeps the symbols. It does not matter if that fails.
pub(super) fn store(cache: &Cache, list: &Path, kernel: &Kallsyms) -> Option<()> {
    cache.store(NAME, &key(list)?, &written(kernel)?)
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

/// The contents for these symbols; `None` if they cannot be kept: they are hidden, or mixed with those of
/// modules.
fn written(kernel: &Kallsyms) -> Option<Vec<u8>> {
    let core = kernel.core.clone()?;
    let text = kernel.text?.0;
    let own: Vec<&Symbol> = kernel
        .symbols
        .iter()
        .filter(|symbol| core.contains(&symbol.start))
        .collect();
    let mut body = Vec::new();
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
    Some(body)
}

/// The bytes of one symbol.
const ROW: usize = 20;

/// Symbols that are looked up where they were read, as few of them are asked for.
#[derive(Debug)]
pub(super) struct KeptSymbols {
    contents: Contents,
    /// Where the rows begin and end. The names are behind them.
    rows: (usize, usize),
}

impl KeptSymbols {
    fn rows(&self) -> &[[u8; ROW]] {
        let rows = self.contents.bytes().get(self.rows.0..self.rows.1);
        rows.unwrap_or_default().as_chunks().0
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows().len()
    }

    /// The one that contains `address`: start, end and name.
    pub(super) fn at(&self, address: u64) -> Option<(u64, u64, &str)> {
        let rows = self.rows();
        let after = rows.partition_point(|row| numbers(row).0 <= address);
        let place = after.checked_sub(1)?;
        let (start, end, to) = numbers(rows.get(place)?);
        let before = place.checked_sub(1).and_then(|before| rows.get(before));
        let from = before.map_or(0, |row| numbers(row).2);
        let names = self.contents.bytes().get(self.rows.1..)?;
        let name = str::from_utf8(names.get(from..to)?).ok()?;
        (start <= address && address < end).then_some((start, end, name))
    }
}

/// The start and end of a symbol, and where its name ends.
fn numbers(row: &[u8; ROW]) -> (u64, u64, usize) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, name @ ..] = *row;
    let start = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let end = u64::from_le_bytes([i, j, k, l, m, n, o, p]);
    (start, end, u32::from_le_bytes(name) as usize)
}

/// The symbols in these contents.
fn read(contents: Contents) -> Option<Kallsyms> {
    let bytes = contents.bytes();
    let (start, rest) = bytes.split_first_chunk()?;
    let (end, rest) = rest.split_first_chunk()?;
    let (text, rest) = rest.split_first_chunk()?;
    let [start, end, text] = [start, end, text].map(|number| u64::from_le_bytes(*number));
    let (number, rest) = rest.split_first_chunk()?;
    let length = (u32::from_le_bytes(*number) as usize).checked_mul(ROW)?;
    let from = bytes.len().checked_sub(rest.len())?;
    let rows = (from, from.checked_add(length)?);
    (rows.1 <= bytes.len()).then(|| Kallsyms {
        text: Some(Avma(text)),
        core: Some(start..end),
        kept: Some(Arc::new(KeptSymbols { contents, rows })),
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
