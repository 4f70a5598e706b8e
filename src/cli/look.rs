//! How an answer is shown: format, order, names, colours; the same for every view.

use std::ffi::OsStr;
use std::io::IsTerminal;

use clap::builder::{EnumValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use proftool::export::text;
use proftool::names::search::pattern;
use proftool::profile::{FunctionId, Profile, Selection};
use proftool::view::flat::Sort;
use proftool::view::{Figures, Names, Ranges, Subject};
use regex::Regex;

use super::choice::{self, Choice};
use super::failure;
use super::query::Query;

/// How the answer of a view is shown.
#[derive(Args, Debug)]
pub struct Look {
    #[command(flatten)]
    pub output: Output,
    /// The most rows, 0 for all [default: a page or two; JSON and CSV: all]
    #[arg(long, value_name = "N", help_heading = SHOW)]
    limit: Option<usize>,
    /// Leave out rows below this percentage.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = SHOW)]
    min: Option<f64>,
    /// Show what totals are at most where stacks lack callers; JSON and CSV always do.
    #[arg(long, help_heading = SHOW)]
    ranges: bool,
    /// Names of functions [default: short; JSON and CSV: full]
    #[arg(long, value_parser = choice::NAMES, help_heading = SHOW)]
    names: Option<Names>,
}

/// Which rows are shown. Shares stay those of all samples.
#[derive(Args, Debug)]
pub struct Shown {
    /// Only rows whose name matches; --focus chooses samples.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    show: Option<Regex>,
}

impl Shown {
    // The functions that are shown, in order; `None` where all are.
    pub fn of(&self, profile: &Profile) -> anyhow::Result<Option<Vec<FunctionId>>> {
        let Some(regex) = &self.show else {
            return Ok(None);
        };
        let ids = profile.functions.ids().zip(profile.matching(regex));
        let shown: Vec<FunctionId> = ids.filter(|(_, shown)| *shown).map(|(id, _)| id).collect();
        if shown.is_empty() {
            anyhow::bail!("no row's name matches {regex}");
        }
        Ok(Some(shown))
    }

    // Whether a row is shown that is no function.
    pub fn has(&self, name: &str) -> bool {
        self.show.as_ref().is_none_or(|regex| regex.is_match(name))
    }
}

/// How any answer is shown, whether it has rows of functions or not.
#[derive(Args, Debug)]
pub struct Output {
    /// Format.
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = SHOW)]
    pub format: Format,
    #[command(flatten, next_help_heading = SHOW)]
    colors: Colors,
    /// Start no pager.
    #[arg(long, help_heading = SHOW)]
    pub no_pager: bool,
    /// Exit 1 if the result is incomplete.
    #[arg(long, help_heading = SHOW)]
    pub strict: bool,
    /// Accepted for those who are used to perf: there is no other interface.
    #[arg(long, hide = true)]
    stdio: bool,
}

/// The heading of the options on how an answer is shown.
pub const SHOW: &str = "How to show it";

/// Whether an answer or a screen is in colours.
#[derive(Args, Clone, Copy, Debug)]
pub struct Colors {
    /// Use colours.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = When::Auto)]
    color: When,
}

/// How a screen of functions begins: that of a recording, or of a program that runs.
#[derive(Args, Clone, Copy, Debug)]
pub struct ScreenArgs {
    /// Order of flat.
    #[arg(long, default_value = "self", value_parser = SortKeyParser::new())]
    pub sort: Sort,
    #[command(flatten)]
    pub colors: Colors,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
    /// For Graphviz; of graph and callgraph.
    Dot,
    /// For pull requests; of compare.
    Markdown,
    /// Flame graph of compare.
    Svg,
    /// Page of compare.
    Html,
}

// The formats of a view, as its help offers them. `dot` is taken everywhere, as
// [`answer`](super::answer) knows better than a list of values why it is refused.
#[derive(Clone, Copy, Debug)]
pub struct Offered(&'static [Format]);

impl Offered {
    pub fn by(command: &str) -> Offered {
        use Format::{Csv, Dot, Html, Json, Markdown, Svg, Text};
        Offered(match command {
            "graph" | "callgraph" => &[Text, Json, Csv, Dot],
            "compare" => &[Text, Json, Csv, Markdown, Svg, Html],
            _ => &[Text, Json, Csv],
        })
    }
}

impl TypedValueParser for Offered {
    type Value = Format;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Format, clap::Error> {
        if value != "dot" {
            let offered = self.possible_values().into_iter().flatten();
            PossibleValuesParser::new(offered).parse_ref(command, arg, value)?;
        }
        EnumValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            self.0.iter().filter_map(Format::to_possible_value),
        ))
    }
}

/// When something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

// Reads what functions are sorted by, or the keys that perf's users are accustomed to where they
// mean the same.
#[derive(Clone)]
pub struct SortKeyParser(Choice<Sort>);

impl SortKeyParser {
    pub fn new() -> SortKeyParser {
        SortKeyParser(choice::SORT)
    }
}

impl TypedValueParser for SortKeyParser {
    type Value = Sort;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Sort, clap::Error> {
        let keys: Vec<&str> = value.to_str().unwrap_or_default().split(',').collect();
        // perf groups rows by its keys. A row here is a symbol of a DSO, so only these may be
        // named.
        let of_a_function = |key: &&str| {
            matches!(
                *key,
                "sym" | "symbol" | "dso" | "overhead" | "overhead_self" | "overhead_children"
            )
        };
        let names_the_row = |key: &&str| !key.ends_with("dso");
        if keys.iter().all(of_a_function) && keys.iter().any(names_the_row) {
            return Ok(match keys[0] {
                "overhead_children" => Sort::Total,
                _ => Sort::SelfWeight,
            });
        }
        self.0.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

impl Look {
    // A table or a drawing has no place for an assumed unit: stderr has it.
    pub fn subject<'a>(
        &self,
        query: &Query,
        profile: &'a Profile,
        selection: &'a Selection,
    ) -> Subject<'a> {
        let is_assumed = selection.sampling().assumes(&selection.event().unit);
        if is_assumed && matches!(self.output.format, Format::Csv | Format::Dot) {
            let text = "folded stacks do not state a unit; weights are taken as samples";
            failure::line("note", text);
            failure::line("hint", "state the unit: --folded-unit us");
        }
        Subject {
            profile,
            selection,
            names: self.names(),
            figures: if query.percent_only() {
                Figures::Percent
            } else {
                Figures::All
            },
            ranges: match self.ranges {
                true => Ranges::Shown,
                false => Ranges::Hidden,
            },
        }
    }

    pub fn names(&self) -> Names {
        self.names_or(match self.output.format {
            Format::Json | Format::Csv => Names::Full,
            _ => Names::Short,
        })
    }

    // `usual` is for when nothing is asked for.
    pub fn names_or(&self, usual: Names) -> Names {
        self.names.unwrap_or(usual)
    }

    // `usual` is for a text when nothing is asked for.
    pub fn limit(&self, usual: usize) -> Option<usize> {
        match (self.limit, self.output.format) {
            (Some(0), _) => None,
            (Some(limit), _) => Some(limit),
            (None, Format::Text | Format::Markdown | Format::Html) => Some(usual),
            (None, _) => None,
        }
    }

    // `usual` is for a text when nothing is asked for.
    pub fn min(&self, usual: f64) -> f64 {
        self.min.unwrap_or(match self.output.format {
            Format::Text | Format::Markdown => usual,
            _ => 0.0,
        })
    }

    pub fn has_limit(&self) -> bool {
        self.limit.is_some()
    }

    pub fn has_min(&self) -> bool {
        self.min.is_some()
    }
}

impl Output {
    pub fn text(&self) -> text::Options {
        text::Options {
            width: width(),
            color: self.colors.on_stdout(),
        }
    }
}

impl Colors {
    pub fn on_stdout(self) -> bool {
        match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => std::io::stdout().is_terminal() && colors_wanted(),
        }
    }
}

fn colors_wanted() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && set("TERM") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

// The terminal's, or what `COLUMNS` says, or 100.
pub fn width() -> usize {
    const SANE: std::ops::RangeInclusive<usize> = 20..=1000;
    let terminal = || {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(usize::from(width.0))
    };
    let columns = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    let sane = |width: &usize| SANE.contains(width);
    (terminal().filter(sane))
        .or_else(|| columns().filter(sane))
        .unwrap_or(100)
}

// A share in percent; a percent sign may follow.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err("not a percentage from 0 to 100".into()),
    }
}
