//! Functions by address: symbols sorted, aliases folded, gaps and overlaps settled.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};

use super::code::{Stretch, is_signal_return};
use super::fields::c_string;
use crate::base::{Svma, utf8};

// In longer symbols without a size no code is looked for that returns from a signal, in bytes.
const SEARCHED: u64 = 256;

/// Which table a function was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SymbolSource {
    /// `.symtab` of the file or of its debug file.
    Symtab,
    /// `.dynsym`: what the file exports; all that a stripped library has.
    Dynsym,
    /// `.symtab` of the compressed `.gnu_debugdata`.
    MiniDebug,
    /// `.gopclntab`: the functions of a Go program, which are there even if it is stripped.
    Go,
    /// A stub of the procedure linkage table, named after what it calls: `write@plt`.
    Plt,
    /// The bounds of a function in `.eh_frame`. It has no name.
    Unwind,
}

// How good a symbol is among those of one address: lower is better. The order is that of perf
// (`choose_best_symbol` in its `symbol.c`), so that both show the same name: with a size before
// without, not weak before weak, global before local; then fewer leading underscores, then the
// longer name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::binary) struct Rank(u8);

impl Rank {
    const LABEL: u8 = 8;
    const UNSIZED: u8 = 4;
    const LOCAL: u8 = 1;
    // Listed by Go, where no symbol names it.
    pub(in crate::binary) const GO: Rank = Rank(0x10);
    // Code without a name.
    const UNWIND: Rank = Rank(0xff);
    // Code without a name that begins with a frame.
    const INSIDE: Rank = Rank(0xfe);

    pub(in crate::binary) fn new(is_label: bool, size: u64, binding: u8) -> Rank {
        let mut rank = 0;
        if binding == elf::STB_WEAK.0 {
            rank |= 2;
        }
        if binding == elf::STB_LOCAL.0 {
            rank |= Rank::LOCAL;
        }
        if size == 0 {
            rank |= Rank::UNSIZED;
        }
        if is_label {
            rank |= Rank::LABEL;
        }
        Rank(rank)
    }

    // A mere label: a symbol without a type.
    pub(in crate::binary) fn is_label(self) -> bool {
        !self.is_nameless() && self.0 & Rank::LABEL != 0
    }

    fn is_nameless(self) -> bool {
        [Rank::UNWIND, Rank::INSIDE].contains(&self)
    }
}

/// One function: where it is and where its name is. 24 bytes, so that a file with a million of them
/// stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionSymbol {
    /// The address of its first byte.
    pub start: Svma,
    /// Its size in bytes. Without a stated one it reaches to the next symbol or the section's end.
    pub size: u64,
    pub(in crate::binary) name: u32,
    pub(in crate::binary) names: u8,
    pub(in crate::binary) rank: Rank,
    /// Where it was found.
    pub source: SymbolSource,
}

impl FunctionSymbol {
    /// The address behind its last byte.
    pub fn end(&self) -> Svma {
        Svma(self.start.0.saturating_add(self.size))
    }

    /// Whether `address` lies in it.
    pub fn contains(&self, address: Svma) -> bool {
        address >= self.start && address < self.end()
    }

    /// Whether the file states where it ends, so that no data behind it are taken for its code.
    pub fn has_stated_end(&self) -> bool {
        let is_sized = self.rank.0 & (Rank::UNSIZED | Rank::LABEL) == 0;
        self.rank.is_nameless() || self.source == SymbolSource::Go || is_sized
    }

    /// Whether other files may have a function of the same name: it is local to one.
    pub fn is_local(&self) -> bool {
        !self.rank.is_nameless() && self.rank.0 & Rank::LOCAL != 0
    }

    /// Whether it is known by its bounds only, and a frame is set up already at its first byte: a
    /// function begins without one, so it is entered by jumps from the one that it is a part of.
    pub fn begins_with_a_frame(&self) -> bool {
        self.rank == Rank::INSIDE
    }

    pub(in crate::binary) fn unwind(start: u64, size: u64, has_frame: bool) -> FunctionSymbol {
        FunctionSymbol {
            start: Svma(start),
            size,
            name: 0,
            names: u8::MAX,
            rank: if has_frame {
                Rank::INSIDE
            } else {
                Rank::UNWIND
            },
            source: SymbolSource::Unwind,
        }
    }
}

// What of a function goes on behind another one which started inside it.
#[derive(Clone, Copy, Debug)]
struct Rest {
    start: u64,
    end: u64,
    function: u32,
}

impl Rest {
    fn stretch(&self) -> Stretch {
        Stretch {
            start: Svma(self.start),
            end: Svma(self.end),
            function: self.function as usize,
        }
    }
}

#[derive(Debug, Default)]
pub(in crate::binary) struct Functions {
    symbols: Vec<FunctionSymbol>,
    names: Vec<Arc<Vec<u8>>>,
    rests: Vec<Rest>,
    // The best symbols of those that choose, by address.
    choosers: FxHashMap<u64, FunctionSymbol>,
    // The symbols of other functions that have the code of one in `symbols`, in order of address.
    folded: Vec<FunctionSymbol>,
    pub(in crate::binary) problems: Vec<String>,
}

impl Functions {
    // Symbols refer to the table by the number that is returned.
    pub(in crate::binary) fn add_names(&mut self, names: Arc<Vec<u8>>) -> u8 {
        self.names.push(names);
        u8::try_from(self.names.len().saturating_sub(1)).unwrap_or(u8::MAX)
    }

    pub(in crate::binary) fn push(&mut self, symbol: FunctionSymbol) {
        self.symbols.push(symbol);
    }

    pub(in crate::binary) fn symbols(&self) -> &[FunctionSymbol] {
        &self.symbols
    }

    // Its function chooses, when the program starts, what is called by its name. The function often
    // has another name at the same address, which says how it chooses.
    pub(in crate::binary) fn push_chooser(&mut self, symbol: FunctionSymbol) {
        let known = self.choosers.get(&symbol.start.0);
        if known.is_none_or(|known| self.is_better(&symbol, known)) {
            self.choosers.insert(symbol.start.0, symbol);
        }
    }

    // The name under which others call what the function at this address chooses.
    pub(in crate::binary) fn chooser(&self, start: u64) -> Option<&[u8]> {
        self.name_bytes(self.choosers.get(&start)?)
    }

    // Before the functions are settled; those of other functions where nothing else is known.
    pub(in crate::binary) fn choosers_at(
        &self,
        addresses: &FxHashSet<u64>,
    ) -> FxHashMap<u64, Vec<u8>> {
        let mut best: FxHashMap<u64, &FunctionSymbol> = FxHashMap::default();
        if addresses.is_empty() {
            return FxHashMap::default();
        }
        let here = |symbol: &&FunctionSymbol| addresses.contains(&symbol.start.0);
        for symbol in self.symbols.iter().filter(here) {
            let entry = best.entry(symbol.start.0).or_insert(symbol);
            if self.is_better(symbol, entry) {
                *entry = symbol;
            }
        }
        best.extend(self.choosers.iter().map(|(&at, symbol)| (at, symbol)));
        let name = |(at, symbol)| Some((at, self.name_bytes(symbol)?.to_vec()));
        best.into_iter().filter_map(name).collect()
    }

    fn is_better(&self, symbol: &FunctionSymbol, known: &FunctionSymbol) -> bool {
        let order = symbol.rank.cmp(&known.rank);
        order.then_with(|| self.by_name(symbol, known)).is_lt()
    }

    // The name as it stands in the file.
    pub(in crate::binary) fn name_bytes(&self, symbol: &FunctionSymbol) -> Option<&[u8]> {
        c_string(
            self.names.get(usize::from(symbol.names))?,
            symbol.name as usize,
        )
    }

    // A zero ends the name somewhere.
    pub(in crate::binary) fn bytes_from_name(&self, symbol: &FunctionSymbol) -> Option<&[u8]> {
        let names = self.names.get(usize::from(symbol.names))?;
        names.get(symbol.name as usize..)
    }

    // `None` for functions known by their bounds only.
    pub(in crate::binary) fn name(&self, symbol: &FunctionSymbol) -> Option<Cow<'_, str>> {
        self.name_bytes(symbol).map(utf8)
    }

    // Sorts, folds aliases and settles sizes. `code` are the ranges of code sections, sorted;
    // `read` reads them.
    pub(in crate::binary) fn settle(
        &mut self,
        code: &[(u64, u64)],
        read: impl Fn(Svma, u64) -> Option<Vec<u8>>,
    ) {
        let mut symbols = std::mem::take(&mut self.symbols);
        // Stable: of aliases that are equal in all else, the first in the file stands first.
        symbols.sort_by(|a, b| {
            (a.start, a.rank)
                .cmp(&(b.start, b.rank))
                .then_with(|| self.by_name(a, b))
        });
        // The best symbol of an address stands first. Where it has no size, an alias may have one.
        let mut folded = Vec::new();
        symbols.dedup_by(|later, first| {
            let alias = later.start == first.start;
            if alias && first.size == 0 {
                first.size = later.size;
            }
            if alias && self.are_different_functions(first, later) {
                let size = first.size.max(later.size);
                folded.push(FunctionSymbol { size, ..*later });
            }
            alias
        });
        self.folded = folded;
        self.symbols = drop_inner(symbols);
        self.extend_unsized(code);
        self.end_before_signal_returns(read);
        self.find_rests();
        self.symbols.shrink_to_fit();
    }

    // Compilers and linkers merge functions whose code is the same. Names of C do not tell these
    // from aliases.
    fn are_different_functions(&self, a: &FunctionSymbol, b: &FunctionSymbol) -> bool {
        let name = |symbol| self.name_bytes(symbol).unwrap_or_default();
        let (a, b) = (name(a), name(b));
        let is_mangled = |name: &[u8]| name.starts_with(b"_Z") || name.starts_with(b"_R");
        is_mangled(a) && is_mangled(b) && a != b && !are_variants(a, b)
    }

    // Whether an address may be in a function that has its code in common with others.
    pub(in crate::binary) fn may_be_folded(&self, at: u64) -> bool {
        let behind = self.folded.partition_point(|other| other.start.0 <= at);
        let before = behind.checked_sub(1).map(|place| &self.folded[place]);
        before.is_some_and(|other| other.size == 0 || at < other.end().0)
    }

    // Linkage names.
    pub(in crate::binary) fn folded_into(&self, start: u64) -> impl Iterator<Item = Cow<'_, str>> {
        let from = self.folded.partition_point(|other| other.start.0 < start);
        let here = self.folded.iter().skip(from);
        let here = here.take_while(move |other| other.start.0 == start);
        here.filter_map(|other| self.name(other))
    }

    // The order of aliases of equal rank.
    fn by_name(&self, a: &FunctionSymbol, b: &FunctionSymbol) -> Ordering {
        let (a_name, b_name) = (self.name_bytes(a), self.name_bytes(b));
        alias_order(a_name.unwrap_or_default(), b_name.unwrap_or_default())
            .then(a.source.cmp(&b.source))
    }

    // Gives symbols without a size the space up to the next one or the end of the section.
    fn extend_unsized(&mut self, code: &[(u64, u64)]) {
        let mut next = u64::MAX;
        for symbol in self.symbols.iter_mut().rev() {
            let start = symbol.start.0;
            if symbol.size == 0 {
                let before = code.partition_point(|&(begin, _)| begin <= start);
                let section = before.checked_sub(1).and_then(|i| code.get(i));
                let end = section.map_or(next, |&(_, end)| end.min(next));
                symbol.size = end.saturating_sub(start);
            }
            next = start;
        }
    }

    // musl's code that returns from signal handlers is behind `setjmp`, and only files with all
    // symbols name it.
    fn end_before_signal_returns(&mut self, read: impl Fn(Svma, u64) -> Option<Vec<u8>>) {
        let unsized_ones = self.symbols.iter_mut().filter(|symbol| {
            let is_short = symbol.size <= SEARCHED;
            is_short && symbol.source != SymbolSource::Plt && !symbol.has_stated_end()
        });
        for symbol in unsized_ones {
            let bytes = read(symbol.start, symbol.size).unwrap_or_default();
            let mut behind = 1..bytes.len();
            let found = behind.find(|&at| bytes.get(at..).is_some_and(is_signal_return));
            symbol.size = found.map_or(symbol.size, |at| at as u64);
        }
    }

    // Where one function starts inside another, an address belongs to the one that started last.
    // What of the outer one lies behind the inner one is noted here.
    fn find_rests(&mut self) {
        let mut open: Vec<(u64, u32)> = Vec::new();
        let mut at: u64 = 0;
        let mut starts = self.symbols.iter().skip(1).map(|symbol| symbol.start.0);
        for (index, symbol) in self.symbols.iter().enumerate() {
            let next = starts.next().unwrap_or(u64::MAX);
            at = at.max(symbol.start.0);
            let Ok(index) = u32::try_from(index) else {
                return;
            };
            open.push((symbol.end().0, index));
            while let Some(&(end, function)) = open.last() {
                if at >= next {
                    break;
                }
                let stop = end.min(next);
                if function != index && at < stop {
                    self.rests.push(Rest {
                        start: at,
                        end: stop,
                        function,
                    });
                }
                at = at.max(stop);
                if end > next {
                    break;
                }
                open.pop();
            }
        }
    }

    // Sorted by address, each byte once.
    pub(in crate::binary) fn stretches(&self) -> Vec<Stretch> {
        let starts = (0..self.symbols.len()).filter_map(|function| self.first_stretch(function));
        let rests = self.rests.iter().map(Rest::stretch);
        let mut stretches: Vec<Stretch> = starts.chain(rests).collect();
        stretches.sort_unstable_by_key(|stretch| stretch.start);
        stretches
    }

    // Sorted by address.
    pub(in crate::binary) fn stretches_of(&self, function: usize) -> Vec<Stretch> {
        let first = self.first_stretch(function);
        let end = self
            .symbols
            .get(function)
            .map_or(Svma(0), FunctionSymbol::end);
        let from = first.map_or(0, |first| {
            self.rests
                .partition_point(|rest| rest.start < first.start.0)
        });
        let rests = self
            .rests
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|rest| rest.start < end.0)
            .map(Rest::stretch)
            .filter(|rest| rest.function == function);
        first.into_iter().chain(rests).collect()
    }

    // The code from the start of a function up to the next start.
    fn first_stretch(&self, function: usize) -> Option<Stretch> {
        let symbol = self.symbols.get(function)?;
        let next = self
            .symbols
            .get(function + 1)
            .map_or(Svma(u64::MAX), |next| next.start);
        Some(Stretch {
            start: symbol.start,
            end: symbol.end().min(next),
            function,
        })
    }

    pub(in crate::binary) fn at(&self, address: Svma) -> Option<&FunctionSymbol> {
        let after = self.symbols.partition_point(|s| s.start <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        if symbol.contains(address) {
            return Some(symbol);
        }
        let after = self.rests.partition_point(|rest| rest.start <= address.0);
        let rest = self.rests.get(after.checked_sub(1)?)?;
        if address.0 < rest.end {
            return self.symbols.get(rest.function as usize);
        }
        None
    }
}

// One constructor or destructor, for complete objects and for bases: `_ZN1AC1Ev` and `_ZN1AC2Ev`.
fn are_variants(a: &[u8], b: &[u8]) -> bool {
    let mut before = b'_';
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            let is_kind = matches!(before, b'C' | b'D' | b'I');
            before = *a;
            a == b || is_kind && a.is_ascii_digit() && b.is_ascii_digit()
        })
}

// Fewer leading underscores first, then the longer name.
fn alias_order(a: &[u8], b: &[u8]) -> Ordering {
    let underscores = |name: &[u8]| name.iter().take_while(|&&b| b == b'_').count();
    underscores(a)
        .cmp(&underscores(b))
        .then(b.len().cmp(&a.len()))
}

// Labels and nameless bounds that start inside a function with a name and a size.
fn drop_inner(mut symbols: Vec<FunctionSymbol>) -> Vec<FunctionSymbol> {
    let mut covered: u64 = 0;
    symbols.retain(|symbol| {
        let minor = symbol.rank.is_nameless() || symbol.rank.is_label();
        if minor && symbol.start.0 < covered {
            return false;
        }
        if !minor {
            covered = covered.max(symbol.end().0);
        }
        true
    });
    symbols
}
