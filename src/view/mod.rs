//! Arranges results for people: which rows, in which order, under which names.
//!
//! ```text
//!   analysis ──▶ flat, tree, detail, … ──▶ Page of tables and sentences ──▶ text
//!                       │                   Table of typed cells         ──▶ csv
//!                       └───────────────────────────────────────────────▶ json
//! ```
//!
//! Views are pure: they choose and order, and leave numbers as numbers, names as they are and marks
//! beside them as values. [`export`](crate::export) handles the width of the terminal, escaping,
//! and all texts.

pub mod annotate;
pub mod basis;
pub mod callgraph;
pub mod caveats;
pub mod certainty;
pub mod changes;
#[cfg(feature = "compare")]
pub mod compare;
pub mod cycles;
pub mod detail;
pub mod doctor;
pub mod drawing;
pub mod flat;
pub mod graph;
pub mod info;
pub mod label;
pub mod layered;
mod merged;
pub mod number;
pub mod owners;
pub mod page;
pub mod quality;
pub mod question;
pub mod range;
pub mod report;
pub mod rows;
pub mod table;
pub mod tree;

use std::borrow::Cow;

use crate::base::{Sampling, Unit};
use crate::names::{Labels, Naming};
use crate::profile::{FunctionId, Profile, Selection, in_brackets};

pub use crate::names::Names;

/// Which figures a text shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Figures {
    /// Percentages and weights.
    #[default]
    All,
    /// Percentages only.
    Percent,
}

/// Whether tables for people have what totals are at most, where stacks lack callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ranges {
    /// They have not.
    #[default]
    Hidden,
    /// In a column of its own.
    Shown,
}

/// The subject of a view: the selected samples of a profile, and how functions and figures are
/// written.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The samples.
    pub selection: &'a Selection,
    /// How functions are named.
    pub names: Names,
    /// Which figures are shown.
    pub figures: Figures,
    /// Whether ranges are.
    pub ranges: Ranges,
}

impl<'a> Subject<'a> {
    /// The samples with all figures, and without ranges.
    pub fn new(profile: &'a Profile, selection: &'a Selection, names: Names) -> Subject<'a> {
        Subject {
            profile,
            selection,
            names,
            figures: Figures::All,
            ranges: Ranges::Hidden,
        }
    }

    /// What functions are called.
    pub fn naming(&self) -> Naming<'a> {
        Naming {
            profile: self.profile,
            names: self.names,
        }
    }

    /// The name of a function in the chosen form; the full one where short was chosen.
    pub fn name(&self, function: FunctionId) -> &'a str {
        self.naming().name(function)
    }

    /// Labels for these functions.
    pub fn labels(&self, functions: impl IntoIterator<Item = FunctionId>) -> Labels {
        Labels::new(&self.naming(), functions)
    }

    /// The name of a function, which others may have too.
    pub fn plain_name(&self, function: FunctionId) -> Cow<'a, str> {
        self.naming().plain_name(function)
    }

    /// The short name of a function's module; empty where there is none.
    pub fn module(&self, function: FunctionId) -> &'a str {
        &self.profile.modules[self.profile.functions[function].module].name
    }

    /// A function's name with its module behind it, unless it ends with it.
    pub(crate) fn with_module(&self, name: &str, function: FunctionId) -> String {
        let module = in_brackets(self.module(function));
        if name.ends_with(&module) {
            name.to_owned()
        } else {
            format!("{name}{module}")
        }
    }

    /// Whether any of these functions has a module.
    pub(crate) fn has_modules(&self, mut functions: impl Iterator<Item = FunctionId>) -> bool {
        functions.any(|function| !self.module(function).is_empty())
    }

    /// Whether the profile has samples that are not shown: of other events, or left out by filters.
    pub(crate) fn is_part(&self) -> bool {
        let counts = self.profile.samples_by_event();
        let all = counts.iter().fold(0u64, |sum, &n| sum.saturating_add(n));
        self.selection.samples() < all
    }

    /// What one row is, and several: function, functions.
    pub fn noun(&self) -> (&'static str, &'static str) {
        rows::noun(self.profile.rows)
    }

    /// One line on what is shown: the samples, their event, and the total in its unit.
    pub fn headline(&self) -> String {
        let (event, samples) = (self.selection.event(), self.selection.samples());
        if self.selection.sampling() == Sampling::Merged {
            let amount = stated_amount(samples, self.selection.total(), &event.unit);
            return format!("{amount} (folded stacks: {})", not_stated(&event.unit));
        }
        let mut line = counted_samples(samples);
        if event.is_off_processor() && event.unit == Unit::Nanoseconds {
            // These are no samples in the usual sense: nothing was chosen by chance.
            let time = number::weight(self.selection.total(), &event.unit);
            let how = match event.base() {
                "preempted" => "preempted",
                _ => "off-CPU",
            };
            return format!("{time} {how}, in {line}");
        }
        if event.name != "samples" {
            line = format!("{line} of {}", event.name);
        }
        let total = number::weight(self.selection.total(), &event.unit);
        match &event.unit {
            Unit::Samples => line,
            Unit::Nanoseconds => format!("{line}, {total} in all"),
            Unit::Count(what) => format!("{line}, {total} {what} in all"),
        }
    }
}

/// `1 sample`, `2 samples`.
fn counted_samples(samples: u64) -> String {
    let plural = if samples == 1 { "" } else { "s" };
    format!("{} sample{plural}", number::grouped(samples))
}

/// The amount that folded stacks state: samples, or a total whose number of samples is not stated.
fn stated_amount(samples: u64, total: u64, unit: &Unit) -> String {
    match unit {
        Unit::Samples => counted_samples(samples),
        Unit::Nanoseconds => number::weight(total, unit),
        Unit::Count(what) => format!("{} {what}", number::weight(total, unit)),
    }
}

/// What folded stacks of this unit do not state.
fn not_stated(unit: &Unit) -> &'static str {
    match unit {
        Unit::Samples => "unit not stated, taken as samples",
        Unit::Nanoseconds | Unit::Count(_) => "number of samples not stated",
    }
}
