//! The kernel's own list of its symbols: `/proc/kallsyms`.
//!
//! ```text
//!   ffffffff81000000 T _stext
//!   ffffffffc0a01000 t nf_hook     [nf_tables]
//! ```
//!
//! To users without the right to see the addresses, the kernel shows them all as zero.

mod cache;
mod list;

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use self::list::{Line, List};
use crate::base::Avma;
use crate::binary::Error;
use crate::cache::Cache;
use crate::files;

const SIZE_LIMIT: u64 = 256 << 20;

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
    list: Option<Arc<List>>,
    text: Option<Avma>,
    hidden: bool,
    // Where the kernel's own symbols are, from the first function to the last symbol, if no module
    // lies between them. Within it nothing changes until the next start.
    core: Option<Range<u64>>,
    // If only those symbols are here, as a cache kept them: the list with the others.
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
        Ok(Kallsyms::of(bytes))
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
        if let Some(mut kernel) = cache::load(cache, path) {
            kernel.others = Some(Others {
                path: path.to_owned(),
                cache: cache.clone(),
                made,
                list: Arc::default(),
            });
            return Ok(kernel);
        }
        let list = Kallsyms::read(path)?;
        cache::store(cache, path, &list);
        Ok(list)
    }

    /// Reads a list that is in memory. Lines that are not understood are passed over.
    pub fn parse(list: &[u8]) -> Kallsyms {
        Kallsyms::of(list.to_vec())
    }

    fn of(list: Vec<u8>) -> Kallsyms {
        let mut seen = Seen::default();
        let list = List::sorted(list, |is_first, line| {
            if is_first {
                seen = Seen::default();
            }
            seen.add(line);
        });
        let hidden = seen.has_code && !seen.has_address;
        Kallsyms {
            list: (!hidden).then(|| Arc::new(list)),
            text: seen.text,
            hidden,
            core: seen.core.filter(|_| !seen.is_mixed && !hidden),
            others: None,
        }
    }

    /// Whether the list names functions but hides their addresses.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let functions = self.symbols().filter(Line::is_code);
        functions.count()
    }

    fn symbols(&self) -> impl Iterator<Item = Line<'_>> {
        self.list.iter().flat_map(|list| list.symbols())
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
        self.list.as_ref()?.at(address.0)
    }
}

// What the lines of a list show together.
#[derive(Default)]
struct Seen {
    text: Option<Avma>,
    has_code: bool,
    has_address: bool,
    core: Option<Range<u64>>,
    has_module_behind: bool,
    is_mixed: bool,
}

impl Seen {
    fn add(&mut self, line: &Line) {
        // Other symbols may have the same address, and only one of them counts.
        if line.name == b"_text" || (line.name == b"_stext" && self.text.is_none()) {
            self.text = Some(Avma(line.start));
        }
        self.has_code |= line.is_code();
        self.has_address |= line.is_code() && line.start != 0;
        match &mut self.core {
            None if line.module.is_none() && line.is_code() => {
                self.core = Some(line.start..line.start);
            }
            Some(_) if line.module.is_some() => self.has_module_behind = true,
            Some(core) => {
                core.end = line.start;
                self.is_mixed |= self.has_module_behind;
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_zero_are_hidden() {
        let kernel = Kallsyms::parse(b"0000000000000000 T a\n0000000000000000 t b\n");
        assert!(kernel.is_hidden() && kernel.len() == 0);
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

    #[test]
    fn symbols_of_a_module_stand_in_any_order() {
        let kernel = "ffffffff81000000 T _text\nffffffff81000010 t next\n";
        let module = "ffffffffc0a01000 t late\t[mod]\nffffffffc0a00000 t early\t[mod]\n";
        let odd = "ffffffffc0a02000\tt \u{e9}\u{a0} [odd]\r";
        let kernel = Kallsyms::parse(format!("{kernel}{module}{odd}").as_bytes());
        let named = |address| {
            kernel
                .at(Avma(address))
                .map(|it| (it.name, it.size, it.module))
        };
        let next = 0xffff_ffff_c0a0_0000 - 0xffff_ffff_8100_0010;
        assert_eq!(named(0xffff_ffff_8100_0010), Some(("next", next, None)));
        let early = named(0xffff_ffff_c0a0_0fff);
        assert_eq!(early, Some(("early", 0x1000, Some("mod"))));
        let late = named(0xffff_ffff_c0a0_1000);
        assert_eq!(late, Some(("late", 0x1000, Some("mod"))));
        let odd = named(0xffff_ffff_c0a0_2fff);
        assert_eq!(odd, Some(("\u{e9}\u{a0}", 0x1000, Some("odd"))));
        assert_eq!(kernel.len(), 5);
    }
}
