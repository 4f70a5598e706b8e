//! Source lines and inlined calls, from DWARF.
//!
//! ```text
//!   address ─▶ units     which compilation unit        .debug_aranges, else each unit's ranges
//!                │
//!                ├─▶ rows      its line and file       .debug_line
//!                └─▶ functions its function            .debug_info: subprograms with their ranges
//!                       └─▶ inlines  the calls that were inlined there, by depth
//!                              └─▶ definition  along abstract origins and specifications
//! ```
//!
//! Each step is done the first time an address needs it, once, and is shared by all workers. What
//! is never asked for is never read: of a unit's inlined calls only those of functions that were
//! hit, of names only those that are shown.
//!
//! Nothing recurses on the input, so deeply nested debug information cannot overflow the stack;
//! calls nested deeper than 512 are left out. Everything that is kept, and everything that is read
//! more often than it is in the file, is charged to the account of the file: see `budget.rs`.
//!
//! # Why not addr2line
//!
//! The crate `addr2line` answers the same question, and a test compares every frame with it
//! (`binary::frames_are_those_of_the_addr2line_crate`). As of version 0.27 it does not fit:
//!
//! - Its `Context` is not `Sync` (it caches in `OnceCell`), so every worker would parse the same
//!   units again. Here a `OnceLock` shares each step with all workers.
//! - It recurses once per level of nested inlined calls, and its memory is not bounded by the size
//!   of the file. Debug information is untrusted input here: see SECURITY.md.
//! - An inlined frame has a name and a position, but not the definition that it is a copy of. Two
//!   functions of one name (a `static` function in two files) would become one, and the copies of
//!   one function in several units would become several. [`Definition`] needs the entry at the end
//!   of the chain of abstract origins, with its unit.
//!
//! It could replace `rows`, `functions`, `inlines` and `units` once it has a context for several
//! threads, limits on depth and memory, and the entry and unit of each inlined frame. `definition`,
//! `described` and `scopes` would stay.

mod abbreviations;
mod definition;
mod described;
mod extents;
mod functions;
mod inlines;
pub(in crate::binary) mod kept;
mod line_rows;
mod names;
mod ranges;
mod scopes;
mod stated;
mod unit;
mod units;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};

use gimli::{EndianSlice, RunTimeEndian};
use rustc_hash::FxHashMap;

pub use self::definition::DefinitionId;
pub use self::described::{Declared, Described};
pub use self::stated::{StatedSource, is_source_name};

use self::definition::Definition;
use self::kept::Kept;
use self::units::Units;
use super::dwarf::DebugInfo;
use crate::base::{Svma, utf8};
use crate::binary::Binary;
use crate::binary::budget::{Account, Budget};

type Slice<'b> = EndianSlice<'b, RunTimeEndian>;

/// One frame of an address: the function itself, or a call that was inlined into it.
#[derive(Clone, Debug)]
pub struct InlineFrame<'l> {
    /// The linkage name, not demangled; where there is none (C) the plain name.
    pub function: Option<Cow<'l, str>>,
    /// The function that it is.
    pub definition: Option<DefinitionKey>,
    /// Whether it is not a call of the source but a part of the function around it, split off and
    /// inlined back by the compiler.
    pub is_split_off: bool,
    /// The path of the source file as the compiler knew it.
    pub file: Option<&'l str>,
    /// The line, from 1: of the address in the innermost frame, of the inlined call in others.
    pub line: Option<u32>,
}

/// What a function is known by in debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionKey {
    /// Identifies the entry that its names and declaration were read from.
    pub id: DefinitionId,
    /// Identifies the last entry of the chain. Frames with one root are one function.
    pub root: DefinitionId,
}

/// Looks addresses up in DWARF debug information: see
/// [`Binary::lines`](crate::binary::Binary::lines).
///
/// It is `Sync`. Workers that share one share what it has read; workers that each make their own
/// read again what others have read.
#[derive(Debug)]
pub struct Lines<'b> {
    // Its debug information is read when it is needed. `None` for a file without.
    binary: Option<&'b Binary>,
    debug: OnceLock<Option<Debug<'b>>>,
}

#[derive(Debug)]
struct Debug<'b> {
    info: &'b DebugInfo,
    dwarf: gimli::Dwarf<Slice<'b>>,
    units: Units<'b>,
    // The units of the supplementary file (`.gnu_debugaltlink`), if there is one.
    supplement: Option<Units<'b>>,
    package: Option<gimli::DwarfPackage<Slice<'b>>>,
    definitions: Mutex<FxHashMap<DefinitionId, Arc<Definition<'b>>>>,
    account: Account,
    // What is to be told if an answer depends on more than these.
    kept: Option<&'b Kept>,
}

impl<'b> Lines<'b> {
    pub(in crate::binary) fn new(binary: &'b Binary) -> Lines<'b> {
        Lines {
            binary: Some(binary),
            debug: OnceLock::new(),
        }
    }

    /// Lines of a file without debug information: it knows no address.
    pub fn none() -> Lines<'b> {
        Lines {
            binary: None,
            debug: OnceLock::new(),
        }
    }

    // Read now if it was not needed before.
    fn debug(&self) -> Option<&Debug<'b>> {
        let binary = self.binary?;
        let debug = self.debug.get_or_init(|| {
            let info = binary.debug_info()?;
            Some(Debug::new(info, &binary.elf.budget, self.kept()))
        });
        debug.as_ref()
    }

    fn kept(&self) -> Option<&'b Kept> {
        self.binary?.kept_lines()
    }

    /// Puts the frames of `address` into `out`, which is emptied first: innermost first, so the
    /// last one is the function that has the symbol. None when nothing is known of the address.
    pub fn frames<'l>(&'l self, address: Svma, out: &mut Vec<InlineFrame<'l>>) {
        self.put_frames(address, true, out);
    }

    /// [`Lines::frames`] without files and lines: line tables are read only where nothing else
    /// knows the address.
    pub fn frames_without_lines<'l>(&'l self, address: Svma, out: &mut Vec<InlineFrame<'l>>) {
        self.put_frames(address, false, out);
    }

    fn put_frames<'l>(&'l self, address: Svma, lines: bool, out: &mut Vec<InlineFrame<'l>>) {
        out.clear();
        let kept = self.kept();
        if kept.is_some_and(|kept| kept.frames(address.0, lines, out)) {
            return;
        }
        let Some(debug) = self.debug() else { return };
        for index in debug.units.candidates(address.0, debug) {
            let unit = debug.units.unit(index, &debug.dwarf, &debug.account);
            if unit.is_some_and(|unit| unit.frames(address.0, lines, debug, out)) {
                break;
            }
        }
        if let Some(kept) = kept {
            kept.add_frames(address.0, lines, out);
        }
    }

    /// The text of a source file that the compiler has put into the debug information of the code
    /// at `address` (clang's `-gembed-source`), by the path that [`InlineFrame::file`] has. Texts
    /// of `limit` bytes or more are passed over.
    pub fn embedded_source(&self, address: Svma, path: &str, limit: usize) -> Option<Cow<'b, str>> {
        let debug = self.debug()?;
        let mut candidates = debug.units.candidates(address.0, debug);
        candidates.find_map(|index| {
            let unit = debug.units.unit(index, &debug.dwarf, &debug.account)?;
            unit.embedded_source(path, limit, debug).map(text)
        })
    }

    /// What line tables state of the source files with these paths, as [`InlineFrame::file`] has
    /// them; `None` for those that no table has. The units of the code at `near` are asked first.
    pub fn stated_sources(&self, near: Svma, paths: &[&str]) -> Vec<Option<StatedSource>> {
        let mut stated = vec![None; paths.len()];
        let Some(debug) = self.debug().filter(|_| !paths.is_empty()) else {
            return stated;
        };
        let wanted = stated::wanted(paths);
        let first = debug.units.candidates(near.0, debug);
        for index in first.chain(0..debug.units.len()) {
            if stated.iter().all(Option::is_some) {
                break;
            }
            if let Some(unit) = debug.units.unit(index, &debug.dwarf, &debug.account) {
                stated::add(unit, debug, &wanted, &mut stated);
            }
        }
        stated
    }

    /// How many units describe functions, and how many of these have line tables only.
    pub fn units_with_functions(&self) -> (usize, usize) {
        let debug = self.debug();
        debug.map_or((0, 0), |debug| debug.units.with_functions(&debug.account))
    }

    /// Whether so much of the debug information was read that reading it was given up: it is
    /// hostile, or larger than we are ready to hold.
    pub fn is_exhausted(&self) -> bool {
        let debug = self.debug.get().and_then(Option::as_ref);
        debug.is_some_and(|debug| debug.account.is_refused())
    }
}

impl<'b> Debug<'b> {
    fn new(info: &'b DebugInfo, budget: &Arc<Budget>, kept: Option<&'b Kept>) -> Debug<'b> {
        let dwarf = info.borrow();
        Debug {
            units: Units::list(&dwarf),
            supplement: dwarf.sup().map(Units::list),
            package: info.borrow_package(),
            definitions: Mutex::default(),
            info,
            dwarf,
            account: Account::new(budget),
            kept,
        }
    }
}

fn text(name: &[u8]) -> Cow<'_, str> {
    utf8(name)
}

#[cfg(test)]
mod tests {
    use super::Lines;
    use crate::binary::Binary;

    #[test]
    fn workers_may_share_a_binary_and_its_lines() {
        fn shared<T: Send + Sync>() {}
        shared::<Binary>();
        shared::<Lines<'_>>();
    }
}
