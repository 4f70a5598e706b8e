//! What was checked of a machine, a program or a recording, what was found, and what to change.

use super::page::{Block, Page};
use super::table::{Cell, Column, Role, Table};
use crate::base::{Caveats, Event, Unit};

pub use super::page::Status;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is about: `this machine`, a file, a process.
    pub subject: String,
    /// What was looked at, in a word or two.
    pub check: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was found, a lower-case fragment.
    pub found: String,
    /// What to change, with exact commands.
    pub remedy: Option<String>,
}

/// All checks, in the order in which they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// The checks; those of one subject stand together.
    pub checks: Vec<Check>,
    /// The event of the recording that was looked at, if one was.
    pub event: Event,
    /// The weight of its samples.
    pub total: u64,
    /// Their number.
    pub samples: u64,
    /// What is not known of it.
    pub caveats: Caveats,
}

impl Findings {
    /// Findings about something that has no samples.
    pub fn of(checks: Vec<Check>) -> Findings {
        Findings {
            checks,
            event: Event {
                name: "samples".into(),
                unit: Unit::Samples,
            },
            total: 0,
            samples: 0,
            caveats: Caveats::default(),
        }
    }
}

/// The check that summarizes a library in one line.
pub const LIBRARY: &str = "library";

/// The page: for each subject its checks, and in the end how many need attention. Libraries are
/// under one heading, and a remedy that several of them share is shown once.
///
/// ```
/// use proftool::view::doctor::{Check, Findings, Status, page};
/// use proftool::view::page::Block;
/// let check = Check {
///     subject: "app".into(),
///     check: "symbols",
///     status: Status::Ok,
///     found: "in the file".into(),
///     remedy: None,
/// };
/// let page = page(&Findings::of(vec![check]));
/// assert_eq!(page.blocks.last(), Some(&Block::Line("Nothing to change.".into())));
/// ```
pub fn page(findings: &Findings) -> Page {
    let mut blocks = Vec::new();
    let mut heading = None;
    for (i, check) in findings.checks.iter().enumerate() {
        let is_library = check.check == LIBRARY;
        let (title, what) = if is_library {
            ("libraries", &*check.subject)
        } else {
            (&*check.subject, check.check)
        };
        if heading != Some(title) {
            if heading.is_some() {
                blocks.push(Block::Space);
            }
            blocks.push(Block::Heading(title.to_owned()));
            heading = Some(title);
        }
        // A remedy that libraries in a row share stands at the last of them.
        let next = findings.checks.get(i + 1);
        let told_next =
            next.is_some_and(|next| next.check == LIBRARY && next.remedy == check.remedy);
        blocks.push(Block::Check {
            status: check.status,
            text: format!("{what}: {}", check.found),
            remedy: check.remedy.clone().filter(|_| !(is_library && told_next)),
        });
    }
    let count = |status| {
        findings
            .checks
            .iter()
            .filter(|c| c.status == status)
            .count()
    };
    let (bad, warn) = (count(Status::Bad), count(Status::Warn));
    let summary = match (bad, warn) {
        (0, 0) => "Nothing to change.".to_owned(),
        (bad, warn) => format!("{}, {}.", counted(warn, "warning"), counted(bad, "error")),
    };
    blocks.extend([Block::Space, Block::Line(summary)]);
    Page {
        unit: Unit::Samples,
        blocks,
    }
}

/// `1 warning`, `no errors`.
fn counted(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// The checks as a table.
pub fn table(findings: &Findings) -> Table {
    let mut table = Table::new(vec![
        Column::new("subject", "subject", Role::Aside),
        Column::new("check", "check", Role::Aside),
        Column::new("status", "status", Role::Aside),
        Column::new("found", "found", Role::Name),
        Column::new("remedy", "remedy", Role::Aside),
    ]);
    for check in &findings.checks {
        table.rows.push(vec![
            Cell::Text(check.subject.clone()),
            Cell::Text(check.check.to_owned()),
            Cell::Text(check.status.name().to_owned()),
            Cell::Text(check.found.clone()),
            check.remedy.clone().map_or(Cell::Nothing, Cell::Text),
        ]);
    }
    table
}
