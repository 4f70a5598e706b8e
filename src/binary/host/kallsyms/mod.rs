//! The kernel's own list of its symbols: `/proc/kallsyms`.
//!
//! ```text
//!   ffffffff81000000 T _stext
//!   ffffffffc0a01000 t nf_hook     [nf_tables]
//! ```
//!
//! To users without the right to see the addresses, the kernel shows them all as zero.

mod cache;

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use memchr::memchr_iter;

use self::cache::KeptSymbols;
use crate::base::{Avma, utf8};
use crate::binary::Error;
use crate::cache::Cache;
use crate::files;

const SIZE_LIMIT: u64 = 256 << 20;
// Longer names are passed over, in bytes.
const NAME_LIMIT: usize = 8 << 10;
// The last symbol of all reaches to the end of its page.
const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFunction<'k> {
    /// The address of its first byte while the kernel ran.
    pub start: Avma,
    /// The bytes up to the next symbol.
    pub size: u64,
    pub name: &'k str,
    /// The module that it belongs to; `None` for the kernel itself.
    pub module: Option<&'k str>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    end: u64,
    // Where its name is, and that of its module.
    name: (u32, u32),
    module: Option<u32>,
    // Other symbols only end what stands before them.
    is_code: bool,
}

/// The functions of a running kernel, sorted.
///
/// ```
/// use proftool::base::Avma;
/// use proftool::binary::Kallsyms;
/// let list = "ffff0000 T start\nffff0010 t next\t[mod]\nffff0020 d table\n";
/// let kernel = Kallsyms::parse(list.as_bytes());
/// let next = kernel.at(Avma(0xffff001f)).unwrap();
/// assert_eq!((next.name, next.module, next.size), ("next", Some("mod"), 16));
/// assert!(kernel.at(Avma(0xffff0020)).is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Kallsyms {
    symbols: Vec<Symbol>,
    names: String,
    modules: Vec<Box<str>>,
    text: Option<Avma>,
    hidden: bool,
    // Where the kernel's own symbols are, without its modules, if no module lies between them.
    // Within it nothing changes until the next start.
    core: Option<Range<u64>>,
    // Those symbols, if they were kept before; then no others are here.
    kept: Option<Arc<KeptSymbols>>,
    // If only those symbols are here: the list with the others.
    others: Option<Others>,
}

// Symbols of modules, and of code that the kernel makes, come and go. They are read when an address
// asks for them, and those that were read after the recording was made are as good.
#[derive(Clone, Debug)]
struct Others {
    path: PathBuf,
    cache: Arc<Cache>,
    made: Option<SystemTime>,
    list: Arc<OnceLock<Kallsyms>>,
}

impl Others {
    fn read(&self) -> Kallsyms {
        let now = SystemTime::now();
        let known = cache::load_others(&self.cache, &self.path, self.made);
        known.unwrap_or_else(|| {
            let list = Kallsyms::read(&self.path).unwrap_or_default();
            cache::store_others(&self.cache, &self.path, &list, now);
            list
        })
    }
}

impl Kallsyms {
    /// Reads a list such as `/proc/kallsyms`.
    ///
    /// # Errors
    /// When the file cannot be opened or read, or is longer than 256 MB.
    pub fn read(path: &Path) -> Result<Kallsyms, Error> {
        let mut bytes = Vec::new();
        let file = files::open_named(path)?.file;
        let mut limited = file.take(SIZE_LIMIT.saturating_add(1));
        limited.read_to_end(&mut bytes).map_err(Error::at(path))?;
        if bytes.len() as u64 > SIZE_LIMIT {
            return Err(Error::TooLarge {
                what: "the list of kernel symbols".to_owned(),
                size: bytes.len() as u64,
                limit: SIZE_LIMIT,
            });
        }
        Ok(Kallsyms::parse(&bytes))
    }

    /// Reads the list of the running kernel, for a recording that was `made` at this time. A cache
    /// keeps the part that does not change until the next boot, and what was there at some time.
    ///
    /// The kernel formats the list again for each reader, at most 4 KiB at a time, which takes
    /// longer than everything else that a small recording needs.
    ///
    /// # Errors
    /// Those of [`Kallsyms::read`].
    pub fn read_cached(
        path: &Path,
        cache: &Arc<Cache>,
        made: Option<SystemTime>,
    ) -> Result<Kallsyms, Error> {
        if let Some(mut cached) = cache::load(cache, path) {
            cached.others = Some(Others {
                path: path.to_owned(),
                cache: cache.clone(),
                made,
                list: Arc::default(),
            });
            return Ok(cached);
        }
        let list = Kallsyms::read(path)?;
        cache::store(cache, path, &list);
        Ok(list)
    }

    /// Reads a list that is in memory. Lines that are not understood are passed over.
    pub fn parse(list: &[u8]) -> Kallsyms {
        let mut all = Kallsyms::default();
        let mut from = 0;
        for end in memchr_iter(b'\n', list).chain([list.len()]) {
            all.line(&list[from..end]);
            from = end + 1;
        }
        let code = all.symbols.iter().filter(|symbol| symbol.is_code);
        all.hidden = code.clone().count() > 0 && code.clone().all(|symbol| symbol.start == 0);
        if all.hidden {
            all.symbols.clear();
            return all;
        }
        // Of the names of one address the last in the list is kept, as perf does: the kernel lists
        // `__do_sys_read`, `__ia32_sys_read`, `__x64_sys_read` in this order.
        all.symbols.sort_by_key(|symbol| symbol.start);
        all.symbols.dedup_by(|later, first| {
            let alias = later.start == first.start;
            if alias && later.is_code {
                *first = *later;
            }
            alias
        });
        let mut next: Option<u64> = None;
        for symbol in all.symbols.iter_mut().rev() {
            let page = || {
                symbol
                    .start
                    .saturating_add(1)
                    .checked_next_multiple_of(PAGE)
            };
            symbol.end = next.or_else(page).unwrap_or(u64::MAX);
            next = Some(symbol.start);
        }
        all.core = core(&all.symbols);
        all.symbols.retain(|symbol| symbol.is_code);
        all
    }

    /// Whether the list names functions but hides their addresses.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        let kept = self.kept.as_ref().map_or(0, |kept| kept.len());
        self.symbols.len().saturating_add(kept)
    }

    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the kernel's text begins: the address of `_text`, or of `_stext` where that is not
    /// listed. Recordings state by it where the kernel was.
    pub fn text(&self) -> Option<Avma> {
        self.text
    }

    /// The function that contains `address`.
    pub fn at(&self, address: Avma) -> Option<KernelFunction<'_>> {
        let is_here = |core: &Range<u64>| core.contains(&address.0);
        if let Some(others) = &self.others
            && !self.core.as_ref().is_some_and(is_here)
        {
            return others.list.get_or_init(|| others.read()).at(address);
        }
        if let Some(kept) = &self.kept {
            return kept.at(address);
        }
        let after = self.symbols.partition_point(|s| s.start <= address.0);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        if address.0 >= symbol.end {
            return None;
        }
        Some(self.function(symbol))
    }

    fn function(&self, symbol: &Symbol) -> KernelFunction<'_> {
        let module = symbol.module.and_then(|m| self.modules.get(m as usize));
        KernelFunction {
            start: Avma(symbol.start),
            size: symbol.end.saturating_sub(symbol.start),
            name: named(&self.names, symbol.name),
            module: module.map(|module| &**module),
        }
    }

    fn line(&mut self, line: &[u8]) -> Option<()> {
        if line.len() > NAME_LIMIT {
            return None;
        }
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let start = number(words.next()?)?;
        let kind = words.next()?;
        let name = &*utf8(words.next()?);
        // Other symbols may have the same address, and only one of them is kept.
        if name == "_text" || (name == "_stext" && self.text.is_none()) {
            self.text = Some(Avma(start));
        }
        let is_code = matches!(kind, b"T" | b"t" | b"W" | b"w");
        let module = words
            .next()
            .map(utf8)
            .and_then(|word| self.module(word.trim_matches(['[', ']'])));
        let at = self.names.len();
        if is_code {
            self.names.push_str(name);
        }
        self.symbols.push(Symbol {
            start,
            end: start,
            name: (
                u32::try_from(at).ok()?,
                u32::try_from(self.names.len()).ok()?,
            ),
            module,
            is_code,
        });
        Some(())
    }

    // The symbols of one module stand together.
    fn module(&mut self, name: &str) -> Option<u32> {
        if self.modules.last().is_none_or(|last| **last != *name) {
            self.modules.push(name.into());
        }
        u32::try_from(self.modules.len().checked_sub(1)?).ok()
    }
}

// A number of up to 16 hexadecimal digits.
fn number(word: &[u8]) -> Option<u64> {
    let digits = (1..=16).contains(&word.len()).then_some(word)?;
    digits.iter().try_fold(0, |number, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(number << 4 | u64::from(digit))
    })
}

// From the first function to the last symbol of the kernel itself, if no module is between. Symbols
// are sorted, and each ends where the next one begins.
fn core(symbols: &[Symbol]) -> Option<Range<u64>> {
    let is_own = |symbol: &&Symbol| symbol.module.is_none();
    let first = symbols
        .iter()
        .filter(is_own)
        .find(|symbol| symbol.is_code)?;
    let last = symbols.iter().rfind(is_own)?;
    let core = first.start..last.start;
    let mut modules = symbols.iter().filter(|symbol| symbol.module.is_some());
    let is_apart = !modules.any(|symbol| core.contains(&symbol.start));
    is_apart.then_some(core)
}

fn named(names: &str, (from, to): (u32, u32)) -> &str {
    names.get(from as usize..to as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_zero_are_hidden() {
        let kernel = Kallsyms::parse(b"0000000000000000 T a\n0000000000000000 t b\n");
        assert!(kernel.is_hidden() && kernel.is_empty());
        assert!(!Kallsyms::parse(b"").is_hidden());
    }

    #[test]
    fn the_last_name_of_code_wins_and_bad_lines_are_passed_over() {
        let list = b"10 t local\n10 W weak\n10 T global\n10 d data\n\xff\n12 T\nzz T x\n20 T end\n";
        let kernel = Kallsyms::parse(list);
        assert_eq!(kernel.at(Avma(0x1f)).map(|f| f.name), Some("global"));
        assert_eq!(kernel.at(Avma(0x20)).map(|f| f.size), Some(0xfe0));
        assert_eq!(kernel.at(Avma(0xf)), None);
        assert_eq!(kernel.text(), None);
    }
}
