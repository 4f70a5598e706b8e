//! Pages as Markdown, as one pastes them into a pull request.

use std::io::{self, Write};

use crate::base::printable;
use crate::export::shown::{self, Shown};
use crate::view::page::{Block, Page};
use crate::view::table::{Role, Table};

/// Writes the sentences and tables of a page; what is advice for a terminal is left out.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, page: &Page) -> io::Result<()> {
    for block in &page.blocks {
        match block {
            Block::Heading(text) => writeln!(out, "#### {}\n", escaped(text))?,
            Block::Line(text) => writeln!(out, "{}\n", escaped(text))?,
            Block::Table(table) => self::table(out, table, page)?,
            Block::Hidden(rows) => writeln!(out, "{}\n", rows.words())?,
            _ => {}
        }
    }
    Ok(())
}

fn table(out: &mut dyn Write, table: &Table, page: &Page) -> io::Result<()> {
    let titles = table.columns.iter().map(shown::title);
    line(out, titles.map(|title| escaped(&title)))?;
    let rule = table.columns.iter().map(|column| match column.role {
        Role::Name | Role::Code | Role::Aside => "---",
        _ => "---:",
    });
    line(out, rule.map(str::to_owned))?;
    for row in &table.rows {
        let cells = row.iter().zip(&table.columns);
        let cells = cells.map(|(cell, column)| {
            let text = Shown::of(cell, &page.unit).whole().into_owned();
            match column.role {
                // Nothing in a name is markup.
                Role::Name if !text.contains('`') => format!("`{}`", text.replace('|', "\\|")),
                _ => escaped(&text),
            }
        });
        line(out, cells)?;
    }
    writeln!(out)
}

fn line(out: &mut dyn Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    let cells: Vec<String> = cells.collect();
    writeln!(out, "| {} |", cells.join(" | "))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '|' | '#' | '~'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
