//! A page of what has changed between runs: the sentences and tables of the comparison, and the
//! flame graph of the new runs, with which it is one file that asks for nothing.
//!
//! The picture is an element of the page; its rules and its script are those of a picture alone.

use std::io::{self, Write};

use super::{escaped, policy};
use crate::base::printable;
use crate::export::shown::{self, Shown};
use crate::export::svg::{self, Picture};
use crate::view::Subject;
use crate::view::changes::ChangedFrames;
use crate::view::page::{Block, Page};
use crate::view::table::{Role, Table};

const STYLE: &str = include_str!("changes.css");

/// Writes the page.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    page: &Page,
    subject: &Subject,
    (picture, changes): (&Picture, &ChangedFrames),
) -> io::Result<()> {
    let style = svg::style_of_changes() + STYLE;
    let script = svg::script_in_page();
    let title = text(&changes.title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} - proftool</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n",
        policy(&script, &style)
    )?;
    for block in &page.blocks {
        match block {
            Block::Heading(heading) => writeln!(out, "<h2>{}</h2>", text(heading))?,
            Block::Line(line) => writeln!(out, "<p>{}</p>", text(line))?,
            Block::Table(table) => self::table(out, table, page)?,
            Block::Hidden(rows) => writeln!(out, "<p>{}</p>", rows.words())?,
            _ => {}
        }
    }
    svg::write_changes_in_page(out, subject, picture, changes)?;
    write!(out, "<script>{script}</script>\n</body>\n</html>\n")
}

fn table(out: &mut dyn Write, table: &Table, page: &Page) -> io::Result<()> {
    let class = |role: Role| match role {
        Role::Name | Role::Code => "name",
        Role::Aside => "aside",
        _ => "number",
    };
    out.write_all(b"<div class=\"scroll\"><table>\n<tr>")?;
    for column in &table.columns {
        let title = text(&shown::title(column));
        write!(out, "<th class=\"{}\">{title}</th>", class(column.role))?;
    }
    out.write_all(b"</tr>\n")?;
    for row in &table.rows {
        out.write_all(b"<tr>")?;
        for (cell, column) in row.iter().zip(&table.columns) {
            let cell = text(&Shown::of(cell, &page.unit).whole());
            write!(out, "<td class=\"{}\">{cell}</td>", class(column.role))?;
        }
        out.write_all(b"</tr>\n")?;
    }
    out.write_all(b"</table></div>\n")
}

fn text(text: &str) -> String {
    escaped(&printable(text))
}
