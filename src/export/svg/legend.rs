//! What colours and patterns mean, below the frames.

use std::io::{self, Write};

use super::colors::{HUES, OTHERS};
use super::frames::Frames;
use super::{MARGIN, ROW, WIDTH, class, line_of_text};
use crate::export::text::{display_width, shortened};
use crate::view::{label, number};

/// The most modules that are named.
const MODULES: usize = HUES + 1;
/// The width of a character.
const CHAR: u64 = 8;
/// The width of a sample of a colour.
const SAMPLE: u64 = 18;
/// The most characters of a module's name.
const NAME: usize = 36;

/// A sample of a colour or pattern, and what it means.
struct Entry {
    class: String,
    text: String,
}

/// A line of the legend.
pub(super) enum Line {
    /// Samples with their meaning.
    Samples(Vec<(u64, String, String)>),
    /// A sentence.
    Text(String),
}

/// The lines.
pub(super) fn lines(frames: &Frames) -> Vec<Line> {
    let profile = frames.subject.profile;
    let total = frames.subject.selection.total();
    let colors = &frames.colors;
    let mut entries: Vec<Entry> = Vec::new();
    let (named, others): (Vec<_>, Vec<_>) =
        (colors.modules.iter()).partition(|(module, _)| colors.hue(*module) != OTHERS);
    for &&(module, weight) in named.iter().take(MODULES) {
        let share = number::percent(weight, total, 2);
        entries.push(Entry {
            class: class(colors.hue(module), 0),
            text: format!(
                "{} {share}%",
                shortened(&profile.modules[module].name, NAME)
            ),
        });
    }
    if !others.is_empty() {
        let count = others.len();
        let weight = others
            .iter()
            .fold(0u64, |sum, (_, weight)| sum.saturating_add(*weight));
        let share = number::percent(weight, total, 2);
        let s = if count == 1 { "" } else { "s" };
        entries.push(Entry {
            class: class(OTHERS, 0),
            text: format!("{count} more module{s} {share}%"),
        });
    }
    let mut lines = Vec::new();
    if colors.by_module {
        lines.push(Line::Text(
            "Colour: module, with its share of self. Shades only separate frames.".into(),
        ));
    } else if !frames.picture.layout.frames.is_empty() {
        lines.push(Line::Text("Colour: function; modules are not known".into()));
    }
    lines.extend(arranged(entries));
    let mut patterns = Vec::new();
    if frames.has(|node| frames.is_mark(node)) {
        patterns.push(Entry {
            class: "mark".into(),
            text: "not a function but a mark: here stacks are incomplete".into(),
        });
    }
    if frames.has(|node| !frames.is_mark(node) && label::is_inferred(node.inferred, node.weight()))
    {
        patterns.push(Entry {
            class: "i0".into(),
            text: "in most samples restored from the code, not recorded".into(),
        });
    }
    if frames.has_stubs() {
        patterns.push(Entry {
            class: "stub".into(),
            text: "a collapsed call: its samples are in the frame of that name below it".into(),
        });
    }
    lines.extend(arranged(patterns));
    let caveats = profile.caveats.iter();
    let mut notes: Vec<Line> = caveats
        .map(|caveat| Line::Text(format!("Note: {caveat}")))
        .collect();
    if !notes.is_empty() && frames.subject.is_part() {
        notes.insert(
            0,
            Line::Text("Notes describe the whole file, not only the samples shown:".into()),
        );
    }
    lines.extend(notes);
    lines
}

/// The entries in lines.
fn arranged(entries: Vec<Entry>) -> Vec<Line> {
    let mut lines: Vec<Vec<(u64, String, String)>> = Vec::new();
    let mut x = WIDTH;
    for entry in entries {
        let width = SAMPLE + (display_width(&entry.text) as u64 + 3) * CHAR;
        if x + width > WIDTH - MARGIN {
            lines.push(Vec::new());
            x = MARGIN;
        }
        if let Some(line) = lines.last_mut() {
            line.push((x, entry.class, entry.text));
        }
        x += width;
    }
    lines.into_iter().map(Line::Samples).collect()
}

/// Writes the lines from this place on.
pub(super) fn write(out: &mut dyn Write, lines: &[Line], top: u64) -> io::Result<()> {
    let room = ((WIDTH - 2 * MARGIN) / CHAR) as usize;
    for (number, line) in lines.iter().enumerate() {
        let y = top + (number as u64 + 1) * ROW;
        match line {
            Line::Text(text) => {
                line_of_text(out, "note", MARGIN, y, &shortened(text, room))?;
            }
            Line::Samples(samples) => {
                for (x, class, text) in samples {
                    let top = y - 11;
                    writeln!(
                        out,
                        "<rect class=\"{class}\" x=\"{x}\" y=\"{top}\" width=\"14\" height=\"13\"/>"
                    )?;
                    line_of_text(out, "note", x + SAMPLE, y, text)?;
                }
            }
        }
    }
    Ok(())
}
