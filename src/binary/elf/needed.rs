//! What a linked file tells the dynamic linker, and the functions that it exports.
//!
//! ```text
//!   .dynamic     d_tag, d_val                          a word each, up to a tag of 0
//!   1  NEEDED    libm.so.6                             as often as there are libraries
//!   14 SONAME    libm.so.6                             what the file is called by
//!   15 RPATH     $ORIGIN/../lib:/opt/lib               where to look, also for what it loads
//!   29 RUNPATH   $ORIGIN/../lib:/opt/lib               where to look, first
//!   21 DEBUG     0; the linker writes an address here  its list of loaded files, for debuggers
//!   22 TEXTREL   0                                     it changes instructions
//!   .gnu.version                                       2 bytes a symbol; 0x8000: not the default
//! ```

use std::hash::BuildHasher;
use std::sync::Arc;

use object::elf;
use rustc_hash::FxBuildHasher;

use super::fields::c_string;
use super::symbols::{self, SymbolTable};
use super::{Elf, Section};
use crate::base::{Svma, utf8};
use crate::binary::Binary;

const ENTRY_LIMIT: usize = 4096;
// Libraries of one file.
const NEEDED_LIMIT: usize = 1024;
// The longest name or list of directories, in bytes.
const TEXT_LIMIT: usize = 16 << 10;
// A version that is only used by those that ask for it by name.
const HIDDEN_VERSION: u16 = 0x8000;
// The flag of `DT_FLAGS` that means the same as `DT_TEXTREL`.
const DF_TEXTREL: u64 = 4;

// The flag of `DT_FLAGS_1` of a program that is loaded anywhere.
const DF_1_PIE: u64 = 0x0800_0000;

/// What a file tells the dynamic linker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// The names of the libraries that it is linked with, in order.
    pub libraries: Vec<Vec<u8>>,
    /// The name by which others need it.
    pub soname: Option<Vec<u8>>,
    /// Directories that hold for what it loads and for what that loads, separated by colons.
    pub rpath: Option<Vec<u8>>,
    /// Directories that hold for what it loads itself; if there are any, `rpath` does not count.
    pub runpath: Option<Vec<u8>>,
    /// Where the dynamic linker notes the address of its list of loaded files (`DT_DEBUG`).
    pub list: Option<Svma>,
    /// Whether the dynamic linker changes instructions (`DT_TEXTREL`).
    pub changes_code: bool,
    /// Whether it is a program that is loaded anywhere, with or without a linker (`DF_1_PIE`).
    pub is_program: bool,
}

/// The functions that a file exports, by linkage name.
#[derive(Debug, Default)]
pub struct Exports {
    symbols: Arc<SymbolTable>,
    // The hash of a name, whether it is not of the default version, and which symbol; sorted.
    by_name: Vec<(u64, bool, u32)>,
}

impl Exports {
    /// Where the function of this name starts: that of the default version, if there are several.
    pub fn start(&self, name: &[u8]) -> Option<Svma> {
        self.starts(name).next()
    }

    /// Where each version of the function of this name starts, the default version first.
    pub fn starts(&self, name: &[u8]) -> impl Iterator<Item = Svma> {
        let hash = hash(name);
        let from = self.by_name.partition_point(|&(known, ..)| known < hash);
        let same = self
            .by_name
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(move |&&(known, ..)| known == hash);
        same.filter_map(move |&(_, _, symbol)| {
            let entry = self.symbols.entries.get(symbol as usize)?;
            (self.symbols.name(entry)? == name).then_some(Svma(entry.value))
        })
    }

    /// All exported functions' addresses, in no order. Several names may share one.
    pub fn addresses(&self) -> impl Iterator<Item = Svma> {
        self.entries().map(|entry| Svma(entry.value))
    }

    /// Those that pick the function which is called under their name (GNU indirect functions).
    pub fn choosers(&self) -> impl Iterator<Item = Svma> {
        let choosers = self
            .entries()
            .filter(|entry| entry.kind == elf::STT_GNU_IFUNC.0);
        choosers.map(|entry| Svma(entry.value))
    }

    fn entries(&self) -> impl Iterator<Item = &symbols::Entry> {
        let entries = &self.symbols.entries;
        let symbols = self.by_name.iter();
        symbols.filter_map(|&(_, _, symbol)| entries.get(symbol as usize))
    }
}

fn hash(name: &[u8]) -> u64 {
    FxBuildHasher.hash_one(name)
}

impl Binary {
    /// What it tells the dynamic linker; nothing if linked statically. Each call reads it again.
    pub fn needed(&self) -> Needed {
        read(&self.elf).unwrap_or_default()
    }

    /// The functions that the file exports. Each call finds them again.
    pub fn exports(&self) -> Exports {
        let elf = &self.elf;
        let symbols = elf.dynamic_symbols().cloned().unwrap_or_default();
        let mut by_name = Vec::new();
        let is_versions = |s: &&Section| s.kind == elf::SHT_GNU_VERSYM.0;
        let versions = elf
            .sections
            .iter()
            .find(is_versions)
            .and_then(|s| elf.source.read("versions", s.offset, s.size).ok())
            .unwrap_or_default();
        for (entry, index) in symbols.entries.iter().zip(0_u32..) {
            let section = elf.sections.get(entry.section as usize);
            if !section.is_some_and(Section::is_code) || !is_given(entry) {
                continue;
            }
            let Some(name) = symbols.name(entry) else {
                continue;
            };
            let version = elf.fields(&versions).u16(index as usize * 2);
            let hidden = version.is_some_and(|version| version & HIDDEN_VERSION != 0);
            by_name.push((hash(name), hidden, index));
        }
        by_name.sort_unstable();
        Exports { symbols, by_name }
    }
}

impl Binary {
    /// The linkage names that the file imports.
    pub fn imported_names(&self) -> Vec<String> {
        let elf = &self.elf;
        let Ok(symbols) = elf.dynamic_symbols() else {
            return Vec::new();
        };
        let undefined = symbols
            .entries
            .iter()
            .filter(|entry| entry.section == u32::from(elf::SHN_UNDEF.0));
        let names = undefined.filter_map(|entry| Some(utf8(symbols.name(entry)?).into_owned()));
        names.filter(|name| !name.is_empty()).collect()
    }
}

// Others see it, and it may be a function's.
fn is_given(entry: &symbols::Entry) -> bool {
    let kinds = [elf::STT_FUNC.0, elf::STT_GNU_IFUNC.0, elf::STT_NOTYPE.0];
    let hidden = [elf::STV_HIDDEN.0, elf::STV_INTERNAL.0].contains(&entry.visibility);
    kinds.contains(&entry.kind) && entry.binding != elf::STB_LOCAL.0 && !hidden
}

fn read(elf: &Elf) -> Option<Needed> {
    let mut sections = elf.sections.iter();
    let section = sections.find(|s| s.kind == elf::SHT_DYNAMIC.0)?;
    let bytes = elf
        .source
        .read("the dynamic section", section.offset, section.size)
        .ok()?;
    let table = elf
        .sections
        .get(section.link as usize)
        .filter(|section| section.kind == elf::SHT_STRTAB.0)?;
    // A few of the names of all symbols: the table may have megabytes.
    let text = |at: u64| {
        let size = table.size.checked_sub(at)?.min(TEXT_LIMIT as u64 + 1);
        let offset = table.offset.checked_add(at)?;
        let strings = elf.source.read("names", offset, size).ok()?;
        let text = c_string(&strings, 0)?;
        (!text.is_empty()).then(|| text.to_vec())
    };
    let mut needed = Needed::default();
    let word = if elf.wide { 8 } else { 4 };
    // A table may be long and say the same again and again: texts are copied within a limit.
    let entries = bytes.chunks_exact(2 * word).enumerate().take(ENTRY_LIMIT);
    for (number, entry) in entries {
        let (Some(tag), Some(at)) = (elf.fields(entry).word(0), elf.fields(entry).word(word))
        else {
            break;
        };
        match i64::try_from(tag).map(elf::DynamicTag) {
            Ok(elf::DT_NULL) => break,
            Ok(elf::DT_NEEDED) if needed.libraries.len() < NEEDED_LIMIT => {
                needed.libraries.extend(text(at));
            }
            Ok(elf::DT_SONAME) => needed.soname = text(at),
            Ok(elf::DT_RPATH) => needed.rpath = text(at),
            Ok(elf::DT_RUNPATH) => needed.runpath = text(at),
            Ok(elf::DT_DEBUG) => {
                let value = (number * 2 * word + word) as u64;
                needed.list = section.address.checked_add(value).map(Svma);
            }
            Ok(elf::DT_TEXTREL) => needed.changes_code = true,
            Ok(elf::DT_FLAGS_1) => needed.is_program = at & DF_1_PIE != 0,
            Ok(elf::DT_FLAGS) => needed.changes_code |= at & DF_TEXTREL != 0,
            _ => {}
        }
    }
    Some(needed)
}
