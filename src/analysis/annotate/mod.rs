//! One function from within: its weight by source line and by address of its machine code.
//!
//! ```text
//!   main ◀─9─ sum ◀─4─ sum ◀─5─ add      line 4 of sum: total, once
//!                                        line 5 of sum: total; main, line 9: total
//! ```
//!
//! The self weight of a line is that of the samples taken in it, the total that of all samples that
//! were in it or in what it calls, inlined calls included. A sample counts once for each line and each
//! address, however often the function is on its stack. So no total exceeds that of the function, and
//! the self weights add up to its self weight.

mod code;

use rustc_hash::FxHashMap;

pub use self::code::{AddressWeights, CodeWeights, addresses};

use super::inclusive::{self, FunctionWeights};
use crate::profile::{
    FunctionId, LineId, Listing, PlaceId, PlaceWeights, Places, Profile, Selection,
};

/// The weights of one source line of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineWeights {
    /// The line; `None` for all weight whose line is not known.
    pub line: Option<LineId>,
    /// The weight of the samples taken in it.
    pub self_weight: u64,
    /// The weight of the samples taken in it and in what it calls; `None` where the profile does not
    /// have the lines of calls.
    pub total: Option<u64>,
}

/// A function from within.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The function.
    pub function: FunctionId,
    /// The weight of the samples taken in it.
    pub self_weight: u64,
    /// The weight of the samples with it on the stack.
    pub total: u64,
    /// Its lines, by file and line; the one that is not known comes last.
    pub lines: Vec<LineWeights>,
    /// Its machine code; `None` where the profile has no addresses of it.
    pub code: Option<CodeWeights>,
}

/// What all functions of a selection have in common: computed once, however many are looked at.
#[derive(Debug)]
pub struct Sums<'a> {
    profile: &'a Profile,
    selection: &'a Selection,
    by_function: FunctionWeights,
    by_place: Option<PlaceWeights>,
}

impl<'a> Sums<'a> {
    /// Adds up the weights of functions and places. Linear in paths, places and rows.
    ///
    /// ```
    /// use proftool::analysis::annotate::Sums;
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId};
    ///
    /// // Folded stacks have no lines: all is in the row without one.
    /// let profile = folded::read("main;sum;sum 3\n".as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let sum = Sums::of(&profile, &selection).within(FunctionId::new(1), None);
    /// assert_eq!((sum.lines[0].line, sum.lines[0].self_weight), (None, 3));
    /// ```
    pub fn of(profile: &'a Profile, selection: &'a Selection) -> Sums<'a> {
        let places = profile.places.as_ref();
        Sums {
            profile,
            selection,
            by_function: inclusive::by_function(profile, selection),
            by_place: places.map(|places| PlaceWeights::of(places, selection)),
        }
    }

    /// Looks at one function; at its machine code by the instructions of `listing`, if there is one.
    /// Linear in places and rows, apart from sorting what it finds.
    pub fn within(&self, function: FunctionId, listing: Option<&Listing>) -> Summary {
        let Sums {
            profile, selection, ..
        } = *self;
        let mut own: FxHashMap<Option<LineId>, u64> = FxHashMap::default();
        for row in selection.rows() {
            if profile.paths[row.path].function == function {
                *own.entry(row.line).or_default() += row.weight;
            }
        }
        let places = profile.places.as_ref();
        let totals = places
            .zip(self.by_place.as_ref())
            .map(|(places, placed)| line_totals(profile, places, placed, selection, function));
        let mut lines: Vec<LineWeights> = (totals.iter().flat_map(FxHashMap::keys))
            .chain(own.keys())
            .map(|&line| LineWeights {
                line,
                self_weight: own.get(&line).copied().unwrap_or(0),
                total: (totals.as_ref()).map(|totals| totals.get(&line).copied().unwrap_or(0)),
            })
            .collect();
        lines.sort_unstable_by(|a, b| {
            let place = |row: &LineWeights| {
                let line = &profile.lines[row.line?];
                Some((&line.file, line.line, row.line))
            };
            let is_unknown = |row: &LineWeights| row.line.is_none();
            (is_unknown(a).cmp(&is_unknown(b))).then_with(|| place(a).cmp(&place(b)))
        });
        // A line with self and total came from both maps; equal rows are neighbours now.
        lines.dedup_by_key(|row| row.line);
        let code = places
            .zip(self.by_place.as_ref())
            .and_then(|(places, placed)| {
                code::weights(profile, places, placed, selection, function, listing)
            });
        Summary {
            function,
            self_weight: self.by_function.self_weight[function],
            total: self.by_function.total[function],
            lines,
            code,
        }
    }
}

/// The total of each line of the function.
fn line_totals(
    profile: &Profile,
    places: &Places,
    placed: &PlaceWeights,
    selection: &Selection,
    function: FunctionId,
) -> FxHashMap<Option<LineId>, u64> {
    let is_it = |place: PlaceId| profile.paths[places.tree()[place].path].function == function;
    let mut below: Vec<(PlaceId, Option<LineId>)> = Vec::new();
    for (id, place) in places.tree().enumerate() {
        if place.caller.is_some_and(is_it) {
            below.push((id, place.line));
        }
    }
    let here = selection.rows().iter().filter_map(|row| {
        let place = row.place.filter(|&place| is_it(place))?;
        Some((place, row.line, row.weight))
    });
    placed.totals(below.into_iter(), here)
}
