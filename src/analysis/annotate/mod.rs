//! One function from within: its weight by source line and by address of its machine code.
//!
//! ```text
//!   main ◀─9─ sum ◀─4─ sum ◀─5─ add      line 4 of sum: total, once
//!                                        line 5 of sum: total; main, line 9: total
//! ```
//!
//! The self weight of a line is that of the samples taken in it, the total that of all samples that
//! were in it or in what it calls, inlined calls included. A sample counts once for each line and
//! each address, however often the function is on its stack. So no total exceeds that of the
//! function, and the self weights add up to its self weight.

mod code;

use rustc_hash::FxHashMap;

pub use self::code::{AddressWeights, CodeWeights};

use super::inclusive::{self, FunctionWeights};
use crate::base::Lists;
use crate::profile::{
    FunctionId, LineId, Listing, PlaceId, PlaceWeights, Places, Profile, SelectedRow, Selection,
};

/// The weights of one source line of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineWeights {
    /// The line; `None` for all weight whose line is not known.
    pub line: Option<LineId>,
    /// The weight of the samples taken in it.
    pub self_weight: u64,
    /// The weight of the samples in it and in what it calls; `None` without the lines of calls.
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
    // The numbers of the rows that end in each function.
    rows: Lists<u32>,
    placed: Option<Placed<'a>>,
}

// What is known of places, by function: a profile has many of them, and a function few.
#[derive(Debug)]
struct Placed<'a> {
    places: &'a Places,
    weights: PlaceWeights,
    of_function: Lists<PlaceId>,
    // The places that each function has called.
    called_by: Lists<PlaceId>,
    // For each row the function in whose machine code it was taken.
    machine: Vec<Option<FunctionId>>,
    // The numbers of the rows that were taken in the machine code of each function.
    rows_within: Lists<u32>,
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
        let rows = selection.rows().iter().zip(0..);
        let rows = rows.map(|(row, number)| (profile.paths[row.path].function.index(), number));
        Sums {
            profile,
            selection,
            by_function: inclusive::by_function(profile, selection),
            rows: Lists::new(profile.functions.len(), rows),
            placed: places.map(|places| Placed::new(profile, places, selection)),
        }
    }

    fn rows_of(&self, function: FunctionId) -> impl Iterator<Item = (usize, &'a SelectedRow)> {
        let rows = self.selection.rows();
        let numbers = self.rows.of(function.index()).iter();
        numbers.map(move |&number| (number as usize, &rows[number as usize]))
    }

    /// Looks at one function; at its machine code by the instructions of `listing`, if there is
    /// one. Linear in its places, what they call, and its rows, apart from sorting what it finds.
    pub fn within(&self, function: FunctionId, listing: Option<&Listing>) -> Summary {
        let profile = self.profile;
        let mut own: FxHashMap<Option<LineId>, u64> = FxHashMap::default();
        for (_, row) in self.rows_of(function) {
            *own.entry(row.line).or_default() += row.weight;
        }
        let placed = self.placed.as_ref();
        let totals = placed.map(|placed| self.line_totals(placed, function));
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
        let code = placed.and_then(|placed| self.code(placed, function, function, listing));
        Summary {
            function,
            self_weight: self.by_function.self_weight[function],
            total: self.by_function.total[function],
            lines,
            code,
        }
    }

    fn line_totals(
        &self,
        placed: &Placed<'_>,
        function: FunctionId,
    ) -> FxHashMap<Option<LineId>, u64> {
        let called = placed.called_by.of(function.index()).iter();
        let below = called.map(|&id| (id, placed.places.tree()[id].line));
        let rows = self.rows_of(function);
        let here = rows.filter_map(|(_, row)| Some((row.place?, row.line, row.weight)));
        placed.weights.totals(below, here)
    }
}

impl<'a> Placed<'a> {
    fn new(profile: &'a Profile, places: &'a Places, selection: &Selection) -> Placed<'a> {
        let functions = profile.functions.len();
        let function = |id: PlaceId| profile.paths[places.tree()[id].path].function.index();
        let called = places.tree().enumerate();
        let called = called.filter_map(|(id, place)| Some((function(place.caller?), id)));
        let machine = code::machine_functions(profile, places, selection);
        let taken = machine.iter().zip(0..);
        let taken = taken.filter_map(|(function, row)| Some((function.as_ref()?.index(), row)));
        Placed {
            places,
            weights: PlaceWeights::of(places, selection),
            of_function: Lists::new(functions, places.tree().ids().map(|id| (function(id), id))),
            called_by: Lists::new(functions, called),
            rows_within: Lists::new(functions, taken),
            machine,
        }
    }

    fn of_function(&self, function: FunctionId) -> impl Iterator<Item = PlaceId> {
        self.of_function.of(function.index()).iter().copied()
    }

    fn rows_within<'s>(
        &self,
        selection: &'s Selection,
        function: FunctionId,
    ) -> impl Iterator<Item = &'s SelectedRow> {
        let numbers = self.rows_within.of(function.index()).iter();
        numbers.map(|&number| &selection.rows()[number as usize])
    }
}
