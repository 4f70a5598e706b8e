//! Budgets: `budgets [{rule, function|module|path, of, measured|null, limit, verdict}]`, and the
//! same for CI services. `rule` is `time`, `percent`, `growth` or `calls`; times are in the event's
//! unit. `verdict` is `pass`, `fail` or `undecided`.

use std::io::{self, Write};

use serde::Serialize;

use super::head;
use super::layout::list;
use crate::base::{Caveats, Event, Sampling, Unit, printable};
use crate::export::Advice;
use crate::view::number;

/// A budget and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Row<'a> {
    /// What is limited.
    pub rule: &'static str,
    /// The function whose budget it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<&'a str>,
    /// The module whose budget it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<&'a str>,
    /// The files whose budget it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    /// Whether callees count: `self` or `total`.
    pub of: &'static str,
    /// What was measured; of calls the most of a run.
    pub measured: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// Whether it is kept.
    pub verdict: &'static str,
    /// The event's unit.
    #[serde(skip)]
    pub unit: Unit,
}

impl Row<'_> {
    /// What is limited of what.
    pub fn subject(&self) -> String {
        let scope = self.function.or(self.module).or(self.path).unwrap_or("all");
        let of = if self.of == "self" { " (self)" } else { "" };
        format!("{} of {scope}{of}", self.rule)
    }

    /// The budget and the figure in one sentence.
    pub fn sentence(&self) -> String {
        let written = |value: f64| match self.rule {
            "time" => number::weight(value.round() as u64, &self.unit),
            "calls" => number::grouped(value as u64),
            _ => format!("{value:.1} %"),
        };
        let measured = self.measured.map_or("not known".to_owned(), written);
        format!(
            "{}: {measured}, at most {}",
            self.subject(),
            written(self.limit)
        )
    }
}

/// Writes the document, with the total and the number of samples of all runs.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    event: &Event,
    (total, samples): (u64, u64),
    known: (&Caveats, &dyn Advice),
    rows: &[Row],
) -> io::Result<()> {
    head(
        out,
        "check",
        event,
        Sampling::Unknown,
        total,
        samples,
        known,
    )?;
    out.write_all(b"\"budgets\":")?;
    list(out, rows)?;
    out.write_all(b"}\n")
}

/// Writes JUnit's XML: a test a budget. One that is undecided is skipped.
///
/// # Errors
///
/// Those of `out`.
pub fn junit(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuite name=\"budgets\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
        rows.len(),
        count("fail"),
        count("undecided")
    )?;
    for row in rows {
        let said = xml(&row.sentence());
        let inner = match row.verdict {
            "fail" => format!("<failure message=\"{said}\"/>"),
            "undecided" => format!("<skipped message=\"{said}\"/>"),
            _ => String::new(),
        };
        let name = xml(&row.subject());
        writeln!(
            out,
            "  <testcase classname=\"budget\" name=\"{name}\">{inner}</testcase>"
        )?;
    }
    writeln!(out, "</testsuite>")
}

/// Writes annotations as GitHub's workflows read them from the log.
///
/// # Errors
///
/// Those of `out`.
pub fn github(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    for row in rows {
        let level = match row.verdict {
            "fail" => "error",
            "undecided" => "warning",
            _ => "notice",
        };
        let text = printable(&row.sentence()).replace('%', "%25");
        writeln!(out, "::{level} title=budget {}::{text}", row.verdict)?;
    }
    Ok(())
}

fn xml(text: &str) -> String {
    let text = printable(text).replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
