//! Answers arranged for people: which rows, in which order, under which names.
//!
//! ```text
//!   analysis ──▶ flat, tree, report ──▶ Page of tables and sentences ──▶ text
//!                       │                Table of typed cells         ──▶ csv
//!                       └────────────────────────────────────────────▶ json
//! ```
//!
//! Views are pure: they choose and order, and leave numbers as numbers and names as they are.
//! How wide a terminal is, what may be printed on it, and how a number is escaped is for
//! [`export`](crate::export).

pub mod caveats;
pub mod flat;
pub mod label;
pub mod name;
pub mod number;
pub mod page;
pub mod report;
pub mod table;
pub mod tree;

use crate::profile::{FunctionId, Profile, Selection};

/// In which form functions are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// Without parameters, template arguments and generics, as far as names stay distinct.
    #[default]
    Short,
    /// As demangled.
    Full,
    /// As in the symbol table.
    Mangled,
}

/// Which figures a text shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Figures {
    /// Percentages and weights.
    #[default]
    All,
    /// Percentages only.
    Percent,
}

/// What a view is about: the selected samples of a profile, and how to speak of them.
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
}

impl<'a> Subject<'a> {
    /// The name of a function in the chosen form; the full one where short was chosen, as only
    /// a [`label::Labels`] can shorten names and keep them distinct.
    pub fn name(&self, function: FunctionId) -> &'a str {
        let function = &self.profile.functions[function];
        match (self.names, &function.linkage_name) {
            (Names::Mangled, Some(name)) => name,
            _ => &function.name,
        }
    }

    /// The short name of a function's module; empty where there is none.
    pub fn module(&self, function: FunctionId) -> &'a str {
        &self.profile.modules[self.profile.functions[function].module].name
    }

    /// Whether any of these functions has a module.
    pub(crate) fn has_modules(&self, mut functions: impl Iterator<Item = FunctionId>) -> bool {
        functions.any(|function| !self.module(function).is_empty())
    }

    /// One line on what is shown: the event, the samples and the total.
    pub fn headline(&self) -> String {
        let (event, selection) = (&self.selection.event, self.selection);
        let samples = number::grouped(selection.samples);
        let plural = if selection.samples == 1 { "" } else { "s" };
        if event.name == "samples" || event.unit == crate::base::Unit::Samples {
            let of = if event.name == "samples" {
                String::new()
            } else {
                format!(" of {}", event.name)
            };
            return format!("{samples} sample{plural}{of}");
        }
        let total = number::weight(selection.total, &event.unit);
        let what = match &event.unit {
            crate::base::Unit::Count(what) => format!(" {what}"),
            _ => String::new(),
        };
        format!(
            "{samples} sample{plural} of {}, {total}{what} in all",
            event.name
        )
    }
}
