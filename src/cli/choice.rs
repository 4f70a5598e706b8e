//! Options whose values are those of a type of the library.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, Error};
use proftool::analysis::detail::Rule;
use proftool::analysis::graph::Model;
use proftool::analysis::tree::Collapse;
use proftool::input::Syntax;
use proftool::input::folded::Weights;
use proftool::view::Names;
use proftool::view::annotate::Base;
use proftool::view::flat::Sort;

// Its name, what help says of it, if anything, and what it stands for.
type Value<T> = (&'static str, &'static str, T);

#[derive(Debug)]
pub struct Choice<T: 'static>(&'static [Value<T>]);

impl<T> Clone for Choice<T> {
    fn clone(&self) -> Choice<T> {
        Choice(self.0)
    }
}

impl<T: Copy + Send + Sync + 'static> TypedValueParser for Choice<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let offered = self.possible_values().into_iter().flatten();
        let name = PossibleValuesParser::new(offered).parse_ref(command, arg, value)?;
        let found = self.0.iter().find(|(known, ..)| *known == name);
        Ok(found.expect("it is one of the values that were offered").2)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = self.0.iter();
        let values = values.map(|(name, help, _)| match help.is_empty() {
            true => PossibleValue::new(*name),
            false => PossibleValue::new(*name).help(*help),
        });
        Some(Box::new(values))
    }
}

pub const COLLAPSE: Choice<Collapse> = Choice(&[
    ("none", "Every call is a line", Collapse::None),
    ("direct", "Calls of a function by itself", Collapse::Direct),
    (
        "conservative",
        "Calls whose collapse removes no function from a chain",
        Collapse::Conservative,
    ),
    (
        "full",
        "No function is twice in a chain of calls",
        Collapse::Full,
    ),
]);

pub const NAMES: Choice<Names> = Choice(&[
    (
        "short",
        "Without parameters and template arguments",
        Names::Short,
    ),
    ("full", "As demangled", Names::Full),
    ("mangled", "As in the symbol table", Names::Mangled),
]);

// Ties are sorted by name.
pub const SORT: Choice<Sort> = Choice(&[
    (
        "self",
        "Samples taken in the function itself",
        Sort::SelfWeight,
    ),
    (
        "total",
        "Samples with the function on the stack",
        Sort::Total,
    ),
    ("name", "", Sort::Name),
    ("samples", "Self, in numbers of samples", Sort::Samples),
]);

pub const MODEL: Choice<Model> = Choice(&[
    ("measured", "From whole stacks", Model::Measured),
    (
        "propagated",
        "By call counts, as gprof does",
        Model::Propagated,
    ),
    (
        "fonseca",
        "As gprof does, and within cycles, too",
        Model::Fonseca,
    ),
]);

pub const RULE: Choice<Rule> = Choice(&[
    (
        "strict",
        "Below the call, without the self time of the function itself",
        Rule::Strict,
    ),
    (
        "whole",
        "All below the call, as in PurifyPlus 7",
        Rule::Whole,
    ),
]);

pub const BASE: Choice<Base> = Choice(&[
    ("total", "The function's total", Base::Total),
    (
        "self",
        "Its self weight, as in perf annotate",
        Base::SelfWeight,
    ),
    ("all", "All samples, as in flat", Base::All),
]);

pub const SYNTAX: Choice<Syntax> =
    Choice(&[("att", "", Syntax::Att), ("intel", "", Syntax::Intel)]);

pub const FOLDED_UNIT: Choice<Weights> = Choice(&[
    ("samples", "", Weights::Samples),
    ("ns", "", Weights::Time(1)),
    ("us", "", Weights::Time(1_000)),
    ("ms", "", Weights::Time(1_000_000)),
    ("s", "", Weights::Time(1_000_000_000)),
    ("bytes", "", Weights::Bytes),
]);
