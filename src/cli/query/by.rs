//! What a row of a view is: a function, or a module, a line, a thread and others.

use std::ffi::OsStr;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum};
use proftool::profile::{Profile, RowKind, RowLevel, Selection};
use proftool::view::flat::Sort;

use super::open::Needs;
use super::{Counting, Query};
use crate::cli::failure::{Misused, hinted};
use crate::cli::look::SortKeyParser;

/// What a row is.
#[derive(Args, Clone, Copy, Debug)]
pub struct Rows {
    /// Rows.
    #[arg(long, value_enum, value_name = "ROW", default_value_t = By::Function)]
    pub by: By,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    #[value(aliases = ["functions", "sym", "symbol"])]
    Function,
    /// Programs, libraries, the kernel.
    #[value(aliases = ["modules", "dso"])]
    Module,
    #[value(aliases = ["files", "srcfile"])]
    File,
    #[value(aliases = ["lines", "srcline"])]
    Line,
    /// Of machine code, as the file states it.
    #[value(aliases = ["addresses"])]
    Address,
    #[value(aliases = ["threads", "tid"])]
    Thread,
    /// Compilers and linkers with the file or crate that they were given.
    #[value(aliases = ["commands", "comm"])]
    Command,
    /// Each sample counts 1.
    #[value(aliases = ["events"])]
    Event,
    /// Crates, libraries, directories of the project, by the innermost frame outside of the kernel
    /// and standard libraries.
    #[value(aliases = ["crates"])]
    Crate,
}

impl By {
    // [`By::Crate`] is no row of a profile.
    pub fn kind(self) -> RowKind {
        match self {
            By::Function | By::Crate => RowKind::Function,
            By::Module => RowKind::Module,
            By::File => RowKind::File,
            By::Line => RowKind::Line,
            By::Address => RowKind::Address,
            By::Thread => RowKind::Thread,
            By::Command => RowKind::Command,
            By::Event => RowKind::Event,
        }
    }

    pub fn is_other(self) -> bool {
        self != By::Function
    }

    // Rows are of whole samples and not of frames on their stacks.
    pub fn is_outside_stacks(self) -> bool {
        self.kind().is_of_samples()
    }

    pub fn option(self) -> String {
        let value = self.to_possible_value();
        format!(
            "--by {}",
            value.as_ref().map_or("", PossibleValue::get_name)
        )
    }

    // These options are about calls between functions.
    pub fn refuse_with(self, options: &[(&str, bool)]) -> anyhow::Result<()> {
        let given = options.iter().find(|(_, is_given)| *is_given);
        match given {
            Some((option, _)) if self.is_other() => {
                let text = format!("{option} is about functions; leave out {}", self.option());
                Err(Misused(text).into())
            }
            _ => Ok(()),
        }
    }

    // What is known only of functions that are on stacks: threads do not call each other.
    pub fn refuse_crate(self, view: &str) -> anyhow::Result<()> {
        if self != By::Crate {
            return Ok(());
        }
        let text = format!("{view} has no rows by crate; use proftool flat --by crate");
        Err(Misused(text).into())
    }
}

impl Query {
    pub fn open_for_rows(&self, by: By) -> anyhow::Result<Profile> {
        let profile = self.open(match by {
            By::File | By::Line => Needs::LINES,
            By::Address => Needs::ADDRESSES,
            By::Module => Needs::STACKS,
            _ => Needs::TOTALS,
        })?;
        self.refuse_rows(by, &profile)?;
        Ok(profile)
    }

    // Rows that the profile does not know.
    pub fn refuse_rows(&self, by: By, profile: &Profile) -> anyhow::Result<()> {
        if by.is_other() {
            self.refuse_without_stacks(profile, &by.option())?;
        }
        let places = profile.places.as_ref();
        let has_addresses = places.is_some_and(|places| !places.addresses().is_empty());
        if by == By::Address && !has_addresses && !profile.samples.is_empty() {
            let text = format!("{} has no addresses of machine code", self.file().display());
            let hint =
                "only recordings (perf.data) have them; for functions leave out --by address";
            return Err(hinted(text, Some(hint.into())));
        }
        if matches!(by, By::File | By::Line)
            && profile.lines.is_empty()
            && !profile.samples.is_empty()
        {
            let text = format!(
                "{}: the source line of no frame is known",
                self.file().display()
            );
            let hint = "build with debug info (-g), and record perf.data; formats of other tools \
                rarely have lines";
            return Err(hinted(text, Some(hint.into())));
        }
        Ok(())
    }

    pub fn select_rows(
        &self,
        profile: Profile,
        by: By,
        level: RowLevel,
    ) -> anyhow::Result<(Profile, Selection)> {
        let main = self.event(&profile)?;
        let events = match by {
            By::Event if self.unit == Some(Counting::Time) => {
                let text =
                    "--by event counts samples: events have different units; leave out --unit";
                return Err(Misused(text.into()).into());
            }
            By::Event if self.event.is_none() => profile.events.ids().collect(),
            _ => Vec::from_iter(main),
        };
        let mut selections = Vec::new();
        for event in events {
            selections.push((event, self.select_event(&profile, event)?));
        }
        if !by.is_other() {
            let selection = selections.pop().map(|(_, selection)| selection);
            return Ok((profile, selection.unwrap_or_else(Selection::nothing)));
        }
        Ok(profile.by_rows(by.kind(), level, &selections))
    }
}

// Reads what a row is, and offers only those of a view; the view refuses others and says why.
#[derive(Clone)]
pub struct RowsOf(fn(By) -> bool);

impl RowsOf {
    // The rows that the command of this name has, if it does not have all.
    pub fn command(name: &str) -> Option<RowsOf> {
        match name {
            "graph" | "browse" => Some(RowsOf(|by| by != By::Crate && !by.is_outside_stacks())),
            "tree" => Some(RowsOf(|by| by != By::Crate)),
            _ => None,
        }
    }
}

impl TypedValueParser for RowsOf {
    type Value = By;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<By, clap::Error> {
        EnumValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let offered = By::value_variants().iter().filter(|by| (self.0)(**by));
        Some(Box::new(offered.filter_map(By::to_possible_value)))
    }
}

// The order of a flat profile, or what perf's keys for grouping ask for.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub key: Sort,
    // What a row is, where perf's keys say so.
    pub by: Option<By>,
}

// A key of proftool, or perf's, of which one may say what a row is.
#[derive(Clone)]
pub struct OrderParser(SortKeyParser);

impl OrderParser {
    pub fn new() -> OrderParser {
        OrderParser(SortKeyParser::new())
    }
}

impl TypedValueParser for OrderParser {
    type Value = Order;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Order, clap::Error> {
        let keys = value.to_str().unwrap_or_default().split(',');
        let (figures, rows): (Vec<&str>, Vec<&str>) =
            keys.partition(|key| key.starts_with("overhead"));
        let by = match rows[..] {
            ["dso"] => Some(By::Module),
            ["srcfile"] => Some(By::File),
            ["srcline"] => Some(By::Line),
            ["comm"] => Some(By::Command),
            ["tid"] => Some(By::Thread),
            _ => None,
        };
        let key = match by {
            Some(_) if figures.first() == Some(&"overhead_children") => Sort::Total,
            Some(_) => Sort::SelfWeight,
            None => self.0.parse_ref(command, arg, value)?,
        };
        Ok(Order { key, by })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}
