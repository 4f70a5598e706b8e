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

// Its name, what help says of it, and what it stands for.
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
        let values = values.map(|(name, help, _)| PossibleValue::new(*name).help(*help));
        Some(Box::new(values))
    }
}

pub const COLLAPSE: Choice<Collapse> = Choice(&[
    ("none", "None; every call is a line", Collapse::None),
    ("direct", "Direct recursion only", Collapse::Direct),
    (
        "conservative",
        "Also calls whose collapse removes no function from a call chain",
        Collapse::Conservative,
    ),
    (
        "full",
        "All recursive calls; no function appears twice in a call chain",
        Collapse::Full,
    ),
]);

pub const NAMES: Choice<Names> = Choice(&[
    (
        "short",
        "Without parameters, template arguments and generics",
        Names::Short,
    ),
    ("full", "As demangled", Names::Full),
    ("mangled", "As in the symbol table", Names::Mangled),
]);

// Ties are sorted by name.
pub const SORT: Choice<Sort> = Choice(&[
    (
        "self",
        "The weight of the samples taken in the function itself",
        Sort::SelfWeight,
    ),
    (
        "total",
        "The weight of the samples with the function on the stack",
        Sort::Total,
    ),
    ("name", "The name", Sort::Name),
    (
        "samples",
        "The number of samples taken in the function itself",
        Sort::Samples,
    ),
]);

pub const MODEL: Choice<Model> = Choice(&[
    (
        "measured",
        "From whole stacks, without assumptions",
        Model::Measured,
    ),
    (
        "propagated",
        "By call counts, as gprof does",
        Model::Propagated,
    ),
    (
        "fonseca",
        "As gprof does, and propagated within cycles",
        Model::Fonseca,
    ),
]);

pub const RULE: Choice<Rule> = Choice(&[
    (
        "strict",
        "The time below the call, without the self time of the function itself",
        Rule::Strict,
    ),
    ("whole", "All time below the call", Rule::Whole),
]);

pub const BASE: Choice<Base> = Choice(&[
    (
        "total",
        "The function's total: self % and total % can be compared",
        Base::Total,
    ),
    (
        "self",
        "The function's self weight, as in perf annotate; without total %",
        Base::SelfWeight,
    ),
    ("all", "All samples, as in flat", Base::All),
]);

pub const SYNTAX: Choice<Syntax> = Choice(&[
    ("att", "AT&T, as objdump and perf print it", Syntax::Att),
    ("intel", "Intel", Syntax::Intel),
]);

pub const FOLDED_UNIT: Choice<Weights> = Choice(&[
    ("samples", "Numbers of samples", Weights::Samples),
    (
        "ns",
        "Nanoseconds; proftool writes them for events that measure time",
        Weights::Time(1),
    ),
    ("us", "Microseconds", Weights::Time(1_000)),
    ("ms", "Milliseconds", Weights::Time(1_000_000)),
    ("s", "Seconds", Weights::Time(1_000_000_000)),
    ("bytes", "Bytes", Weights::Bytes),
]);
