//! The functions of a file as GNU gprof distinguishes them.
//!
//! gprof takes its functions from `.symtab` alone and ignores the sizes of symbols: a function
//! reaches to the next one, whatever lies between. It keeps what `nm` marks `T`, `t` or `W`:
//!
//! ```text
//!   T   global, in a section of code        kept
//!   W   weak, in any section                kept, even where it is data
//!   t   local, in a section of code         kept unless its name has a `$`, or a `.` that does
//!                                           not begin `.123`, `.clone.123` or `.constprop.123`
//!   u v i a d b r n …                       dropped
//! ```
//!
//! The time and calls of a dropped symbol go to the function before it. Use this choice to get
//! gprof's figures, and [`Binary::functions`] for everything else.
//!
//! Read in gprof 2.40 (`corefile.c`, `symtab.c`) and BFD (`syms.c`), and compared with it by
//! running both.

use object::elf;

use super::fields::c_string;
use super::symbols::{self, Entry};
use super::{Elf, Section};
use crate::base::{Svma, utf8};
use crate::binary::{Binary, Error};

/// A function in gprof's sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GprofSymbol {
    /// The address of its first byte.
    pub start: Svma,
    /// Its name as it stands in the file.
    pub name: String,
    /// Whether the symbol is marked as a function; gprof counts no calls of others.
    pub is_function: bool,
    /// Whether it is local to its object file.
    pub is_local: bool,
}

/// The functions of a file in gprof's sense.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GprofSymbols {
    /// The functions, sorted by start, one for each start.
    pub rows: Vec<GprofSymbol>,
    /// The address behind the last one: the end of `.text`, wherever the last one starts.
    pub end: Svma,
}

impl GprofSymbols {
    /// The place of the function that contains `address`.
    pub fn at(&self, address: Svma) -> Option<usize> {
        let place = self
            .rows
            .partition_point(|row| row.start <= address)
            .checked_sub(1)?;
        (place + 1 < self.rows.len() || address < self.end).then_some(place)
    }
}

impl Binary {
    /// Whether its addresses have 64 bits.
    pub fn is_wide(&self) -> bool {
        self.elf.wide
    }

    /// Whether its numbers have the most significant byte first.
    pub fn is_big_endian(&self) -> bool {
        self.elf.endian == gimli::RunTimeEndian::Big
    }

    /// The functions in gprof's sense; none where the file has no `.symtab`.
    ///
    /// # Errors
    /// When the table or its strings cannot be read.
    pub fn gprof_symbols(&self) -> Result<GprofSymbols, Error> {
        let Some(elf) = self.with_section(b".symtab") else {
            return Ok(GprofSymbols::default());
        };
        let is_table = |section: &&Section| section.kind == elf::SHT_SYMTAB.0;
        let Some(table) = elf.sections.iter().find(is_table) else {
            return Ok(GprofSymbols::default());
        };
        let table = symbols::SymbolTable::read(elf, table)?;
        let entries = table.entries.iter();
        let mut rows: Vec<GprofSymbol> = entries
            .filter_map(|entry| row(elf, &table.strings, entry))
            .collect();
        // Stable: of equals the first in the file stands first.
        rows.sort_by_key(|row| (row.start, !row.is_function, row.is_local));
        rows.dedup_by(|later, kept| {
            let alias = later.start == kept.start;
            if alias && is_better(later, kept) {
                std::mem::swap(later, kept);
            }
            alias
        });
        let text = elf.section(b".text");
        let end = text.map_or(0, |text| text.address.saturating_add(text.size));
        Ok(GprofSymbols {
            rows,
            end: Svma(end),
        })
    }
}

// The function that a symbol names, if gprof keeps it.
fn row(elf: &Elf, strings: &[u8], symbol: &Entry) -> Option<GprofSymbol> {
    let is = |kind| symbol.kind == kind;
    if is(elf::STT_SECTION.0) || is(elf::STT_FILE.0) || is(elf::STT_GNU_IFUNC.0) {
        return None;
    }
    let is_local = match symbol.binding {
        // A weak symbol counts wherever it is defined, but data that says so does not.
        weak if weak == elf::STB_WEAK.0 && symbol.section == u32::from(elf::SHN_UNDEF.0) => {
            return None;
        }
        weak if weak == elf::STB_WEAK.0 => {
            return kept(strings, symbol, false).filter(|_| !is(elf::STT_OBJECT.0));
        }
        global if global == elf::STB_GLOBAL.0 => false,
        local if local == elf::STB_LOCAL.0 => true,
        _ => return None,
    };
    let section = elf.sections.get(symbol.section as usize);
    if symbol.section == u32::from(elf::SHN_UNDEF.0) || !section.is_some_and(is_text) {
        return None;
    }
    if is_local && !is_clean(strings, symbol.name) {
        return None;
    }
    kept(strings, symbol, is_local)
}

fn kept(strings: &[u8], symbol: &Entry, is_local: bool) -> Option<GprofSymbol> {
    let name = c_string(strings, symbol.name as usize)?;
    Some(GprofSymbol {
        start: Svma(symbol.value),
        name: utf8(name).into_owned(),
        is_function: symbol.kind == elf::STT_FUNC.0,
        is_local,
    })
}

// Known by name, whatever their flags say; a `.`, `$` or digit may follow.
const SECTIONS: [(&[u8], bool); 19] = [
    (b".bss", false),
    (b"code", true),
    (b".data", false),
    (b"*DEBUG*", false),
    (b".debug", false),
    (b".drectve", false),
    (b".edata", false),
    (b".fini", true),
    (b".idata", false),
    (b".init", true),
    (b".pdata", false),
    (b".rdata", false),
    (b".rodata", false),
    (b".sbss", false),
    (b".scommon", false),
    (b".sdata", false),
    (b".text", true),
    (b"vars", false),
    (b"zerovars", false),
];

// Whether symbols of the section are of the class `t`.
fn is_text(section: &Section) -> bool {
    let known = SECTIONS.iter().find(|(name, _)| {
        let rest = section.name.strip_prefix(*name);
        let follows = |c: &u8| matches!(c, b'.' | b'$' | b'0'..=b'9');
        rest.is_some_and(|rest| rest.first().is_none_or(follows))
    });
    known.map_or_else(|| section.is_code(), |&(_, is_text)| is_text)
}

// gprof's loop steps over the end of a name that ends with an allowed suffix and goes on with the
// next string of the table; so `walk.1` is dropped when `walk.cold` happens to stand behind it.
fn is_clean(strings: &[u8], at: u32) -> bool {
    let mut rest = strings.get(at as usize..).unwrap_or_default();
    if matches!(rest.first(), None | Some(0)) {
        return false;
    }
    while let Some(&c) = rest.first().filter(|c| **c != 0) {
        if c == b'$' {
            return false;
        }
        while rest.first() == Some(&b'.') {
            for clone in [&b".clone."[..], b".constprop."] {
                let longer = rest.get(clone.len()).is_some_and(|c| *c != 0);
                if longer && rest.starts_with(clone) {
                    rest = &rest[clone.len() - 1..];
                    break;
                }
            }
            let mut digit_seen = false;
            loop {
                rest = rest.get(1..).unwrap_or_default();
                match rest.first() {
                    None | Some(0) => break,
                    Some(b'.') if digit_seen => break,
                    Some(b'0'..=b'9') => digit_seen = true,
                    Some(_) => return false,
                }
            }
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    true
}

// Whether the second of two symbols of one address is the one that gprof keeps.
fn is_better(later: &GprofSymbol, kept: &GprofSymbol) -> bool {
    if later.is_local != kept.is_local {
        return kept.is_local;
    }
    if later.is_function != kept.is_function {
        return later.is_function;
    }
    // As far as two count: `f` before `_f` before `__f`.
    let underscores =
        |row: &GprofSymbol| row.name.bytes().take(2).take_while(|c| *c == b'_').count();
    underscores(later) < underscores(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_names_are_judged_as_gprof_does() {
        let clean = |strings: &str| is_clean(strings.as_bytes(), 0);
        for kept in [
            "walk\0",
            "walk.1\0",
            "walk.clone.3\0",
            "f.constprop.0.2\0",
            "f.7.8\0\0",
        ] {
            assert!(clean(kept), "{kept}");
        }
        for dropped in [
            "\0",
            "a$b\0",
            "walk.cold\0",
            "walk.part.0\0",
            "f.isra.0\0",
            "L.x\0",
        ] {
            assert!(!clean(dropped), "{dropped}");
        }
        // The name behind an allowed suffix is judged too.
        assert!(clean("walk.1\0next\0"));
        assert!(!clean("walk.1\0next.cold\0"));
        assert!(!clean("walk.1\0a$b\0"));
        assert!(clean("walk\0next.cold\0"));
        assert!(!is_clean(b"x", 7));
    }

    #[test]
    fn the_better_alias_is_global_then_a_function_then_without_underscores() {
        let symbol = |name: &str, is_local, is_function| GprofSymbol {
            start: Svma(16),
            name: name.into(),
            is_function,
            is_local,
        };
        let f = symbol("f", false, true);
        assert!(is_better(&f, &symbol("f", true, true)));
        assert!(is_better(&f, &symbol("f", false, false)));
        assert!(is_better(&f, &symbol("_f", false, true)));
        assert!(is_better(
            &symbol("_f", false, true),
            &symbol("__f", false, true)
        ));
        assert!(!is_better(
            &symbol("__f", false, true),
            &symbol("___f", false, true)
        ));
        assert!(!is_better(&symbol("g", false, true), &f));
    }
}
