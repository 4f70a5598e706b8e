//! Who made the calls that were counted.
//!
//! An arc of a gmon.out has the place to which the callee returns, and a place in the callee. How
//! exact the former is differs:
//!
//! ```text
//!   exact      the return address: the call ends there, so its last byte lies one before
//!   bucket     glibc keeps the first of the 16 bytes (8 where words have 32 bits) from `low` on in
//!              which the return address lies
//!   start      gprof -s writes the first address of the caller, and of the callee
//! ```
//!
//! A bucket may lie in several functions. Then it is the one whose code calls the callee with a
//! return address in that bucket; the call may be the last thing in a function, which does not
//! return, and the return address be the next function's.

use rustc_hash::FxHashMap;

use super::file::{ArcCount, Gmon};
use super::function_at::function_at;
use crate::base::{CaveatKind, Caveats, Svma};
use crate::binary::{Binary, FunctionSymbol};
use crate::scan::{Destination, FileTables, Leaving, LeavingKind, Single};

// What the code calls to have a call counted.
const COUNTERS: [&str; 7] = [
    "mcount",
    "_mcount",
    "__mcount",
    "__mcount_internal",
    "_gprof_mcount",
    "__fentry__",
    "\u{1}mcount",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPlaces {
    // The return address.
    Exact,
    // The first address of a bucket of this size, in which the call is.
    Bucket(u64),
    // The first address of the caller.
    Start,
}

// How well the code of a function explains a call, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    Nothing,
    // It calls there what may go on to the callee: another function that jumps somewhere, or a
    // library.
    Detour,
    // It calls there what only a run can tell, or what jumps to the callee.
    Possible,
    // It calls the callee there.
    Call,
}

// The calls between functions, as indices of [`Binary::functions`], in the order of the files'
// arcs. What lies outside of functions is left out and reported.
pub(super) fn calls(
    gmon: &Gmon,
    program: &Binary,
    caveats: &mut Caveats,
) -> Vec<(usize, usize, u64)> {
    let tables = FileTables::read(program).ok();
    let mut code = ProgramCode {
        program,
        single: tables.as_ref().map(Single::new),
        known: FxHashMap::default(),
    };
    let (mut astray, mut shared) = (0u64, 0u64);
    let mut calls = Vec::with_capacity(gmon.arcs.len());
    for arcs in gmon.arcs_by_file() {
        let places = CallPlaces::of(arcs, gmon, program);
        for arc in arcs {
            let to = code.callee(arc.to, places);
            let from = to.and_then(|to| code.caller(arc.from, to, places));
            let (Some(to), Some((from, is_sure))) = (to, from) else {
                astray = astray.saturating_add(arc.count);
                continue;
            };
            if !is_sure {
                shared = shared.saturating_add(arc.count);
            }
            calls.push((from, to, arc.count));
        }
    }
    for (kind, count) in [
        (CaveatKind::AstrayCounts, astray),
        (CaveatKind::SharedPlaces, shared),
    ] {
        if count > 0 {
            caveats.add(kind, count);
        }
    }
    calls
}

impl CallPlaces {
    fn of(arcs: &[ArcCount], gmon: &Gmon, program: &Binary) -> CallPlaces {
        let starts = |address: u64| {
            let function = program.function_at(Svma(address));
            function.is_some_and(|function| function.start.0 == address)
        };
        if arcs.iter().all(|arc| starts(arc.from) && starts(arc.to)) {
            return CallPlaces::Start;
        }
        let size: u64 = if program.is_wide() { 16 } else { 8 };
        let low = gmon
            .histograms
            .first()
            .map(|first| first.low)
            .or(arcs.first().map(|arc| arc.from))
            .unwrap_or(0);
        let is_first = |arc: &ArcCount| arc.from.wrapping_sub(low).is_multiple_of(size);
        if arcs.iter().all(is_first) {
            CallPlaces::Bucket(size)
        } else {
            CallPlaces::Exact
        }
    }
}

struct ProgramCode<'t> {
    program: &'t Binary,
    single: Option<Single<'t>>,
    known: FxHashMap<usize, Vec<Leaving>>,
}

impl ProgramCode<'_> {
    fn index(&self, address: u64) -> Option<usize> {
        function_at(self.program, address)
    }

    fn starting_at(&self, start: Svma) -> Option<usize> {
        let functions = self.program.functions();
        functions.binary_search_by_key(&start, |f| f.start).ok()
    }

    fn symbol(&self, index: usize) -> Option<&FunctionSymbol> {
        self.program.functions().get(index)
    }

    fn leaving(&mut self, index: usize) -> &[Leaving] {
        let start = self.symbol(index).map(|function| function.start);
        let read = || Some(self.single.as_ref()?.leaving(start?)?.sites);
        self.known
            .entry(index)
            .or_insert_with(|| read().unwrap_or_default())
    }

    // The function that holds the place where its call of `mcount` returns to. Where that call is
    // the last thing in it, this is the start of the next function.
    fn callee(&mut self, place: u64, places: CallPlaces) -> Option<usize> {
        let index = self.index(place);
        let is_start = index
            .and_then(|index| self.symbol(index))
            .is_none_or(|function| function.start.0 == place);
        let before = place.checked_sub(1).and_then(|last| self.index(last));
        let Some(before) = before.filter(|_| is_start && places != CallPlaces::Start) else {
            return index;
        };
        let leaving = self.leaving(before).last().cloned();
        let counts = leaving.is_some_and(|leaving| {
            ends(&leaving) == place
                && leaving.kind == LeavingKind::Call
                && self.is_counter(&leaving.to)
        });
        if counts { Some(before) } else { index }
    }

    // The function that made a call of `to`, and whether there is no other that may have made it.
    fn caller(&mut self, place: u64, to: usize, places: CallPlaces) -> Option<(usize, bool)> {
        let size = match places {
            CallPlaces::Start => return self.index(place).map(|index| (index, true)),
            CallPlaces::Exact => {
                let index = self.index(place.checked_sub(1)?)?;
                return Some((index, true));
            }
            CallPlaces::Bucket(size) => size,
        };
        let mut holders: Vec<usize> = Vec::new();
        for address in place.saturating_sub(1)..place.saturating_add(size - 1) {
            let holder = self.index(address);
            holders.extend(holder.filter(|holder| !holders.contains(holder)));
        }
        if holders.len() < 2 {
            return holders.first().map(|&only| (only, true));
        }
        let returns = place..place.saturating_add(size);
        let rated: Vec<(usize, Evidence)> = holders
            .iter()
            .map(|&holder| (holder, self.evidence(holder, to, &returns)))
            .collect();
        let best = rated.iter().map(|&(_, evidence)| evidence).max()?;
        let mut fitting = rated.iter().filter(|&&(_, evidence)| evidence == best);
        let first = fitting.next().map(|&(holder, _)| holder)?;
        match best {
            // Nothing speaks for any of them: the function in which the bucket begins, as in gprof.
            Evidence::Nothing => Some((self.index(place).unwrap_or(first), false)),
            _ => Some((first, fitting.next().is_none())),
        }
    }

    fn evidence(&mut self, from: usize, to: usize, returns: &std::ops::Range<u64>) -> Evidence {
        let destinations: Vec<Destination> = self
            .leaving(from)
            .iter()
            .filter(|site| site.kind == LeavingKind::Call && returns.contains(&ends(site)))
            .map(|site| site.to.clone())
            .collect();
        let mut best = Evidence::Nothing;
        for destination in destinations {
            if self.is_counter(&destination) {
                continue;
            }
            best = best.max(match destination {
                Destination::Unknown => Evidence::Possible,
                destination if self.is(&destination, to) => Evidence::Call,
                Destination::Import(_) => Evidence::Detour,
                Destination::Function(start) => self.goes_on(start, to),
            });
        }
        best
    }

    // A function that was called may jump to `to`, which then returns to the caller.
    fn goes_on(&mut self, start: Svma, to: usize) -> Evidence {
        let Some(through) = self.starting_at(start) else {
            return Evidence::Nothing;
        };
        let jumps: Vec<Destination> = self
            .leaving(through)
            .iter()
            .filter(|site| site.kind == LeavingKind::Jump)
            .map(|site| site.to.clone())
            .collect();
        let leads = |to_it: &Destination| match to_it {
            Destination::Unknown => Evidence::Possible,
            destination if self.is(destination, to) => Evidence::Possible,
            _ => Evidence::Detour,
        };
        jumps.iter().map(leads).max().unwrap_or(Evidence::Nothing)
    }

    fn is(&self, destination: &Destination, function: usize) -> bool {
        let Some(symbol) = self.symbol(function) else {
            return false;
        };
        match destination {
            Destination::Function(start) => *start == symbol.start,
            Destination::Import(name) => {
                self.program.function_name(symbol).as_deref() == Some(name)
            }
            Destination::Unknown => false,
        }
    }

    fn is_counter(&self, destination: &Destination) -> bool {
        let name = match destination {
            Destination::Import(name) => Some(name.as_str().into()),
            Destination::Function(start) => {
                let symbol = self.program.function_at(*start);
                symbol.and_then(|symbol| self.program.function_name(symbol))
            }
            Destination::Unknown => None,
        };
        name.is_some_and(|name| COUNTERS.contains(&&*name))
    }
}

fn ends(leaving: &Leaving) -> u64 {
    leaving.at.0.saturating_add(leaving.length.into())
}
