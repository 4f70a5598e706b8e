//! The source lines of calls: of those that the function makes, and of those that reach it.

use super::{Options, without_weights};
use crate::analysis::call_sites::CallSite;
use crate::names::{Label, Mark};
use crate::profile::LineId;
use crate::view::Subject;
use crate::view::flat::reaches;
use crate::view::table::{Cell, Column, Role, Table};

/// One side of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The calls that it makes.
    Made,
    /// The calls by which it is reached.
    Received,
}

impl Side {
    pub(super) const ALL: [Side; 2] = [Side::Made, Side::Received];

    /// What the table for people is called.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Side::Made => "Source lines of its calls",
            Side::Received => "Source lines it is called from",
        }
    }

    /// What a record for machines is called.
    pub(super) fn what(self) -> &'static str {
        match self {
            Side::Made => "call_site",
            Side::Received => "called_from",
        }
    }
}

/// The calls of one side that are shown.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The heaviest first.
    pub sites: Vec<CallSite>,
    /// How many lines are not shown.
    pub hidden: usize,
    /// Whether any line is known, shown or not.
    pub is_known: bool,
}

impl Listed {
    /// Chooses those that have their share of `whole`.
    pub(super) fn of(all: &[CallSite], whole: u64, options: &Options) -> Listed {
        let sites: Vec<CallSite> = all
            .iter()
            .filter(|site| reaches(site.weight, whole, options.min))
            .take(options.limit.unwrap_or(usize::MAX))
            .copied()
            .collect();
        Listed {
            hidden: all.len() - sites.len(),
            is_known: all.iter().any(|site| site.line.is_some()),
            sites,
        }
    }

    /// The table for people.
    pub(super) fn table(
        &self,
        subject: &Subject,
        side: Side,
        whole: u64,
        label: impl Fn(&CallSite) -> Label,
    ) -> Table {
        let title = match side {
            Side::Made => "descendant",
            Side::Received => "caller",
        };
        let mut table = Table::new(vec![
            Column::new("percent", "%", Role::Heat),
            Column::new("weight", "weight", Role::Spare),
            Column::new("line", "line", Role::Name),
            Column::new("name", title, Role::Name),
        ]);
        for site in &self.sites {
            let mark = site.inlined.then_some(match side {
                Side::Made => Mark::Inlined,
                Side::Received => Mark::InlinedInto,
            });
            table.rows.push(vec![
                Cell::Share {
                    part: site.weight,
                    whole,
                },
                Cell::Weight(site.weight),
                Cell::Text(site.line.map_or("?".into(), |line| place(subject, line))),
                Cell::name(label(site).with(mark)),
            ]);
        }
        without_weights(table, subject)
    }
}

/// A line as it is shown: `file.c:123`.
pub(super) fn place(subject: &Subject, line: LineId) -> String {
    let line = &subject.profile.lines[line];
    format!("{}:{}", line.file, line.line)
}
