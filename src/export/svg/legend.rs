//! What colours and patterns mean, below the frames.

use std::io::{self, Write};

use super::colors::{HUES, OTHERS, hue};
use super::frames::Frames;
use super::{COLUMNS, MARGIN, ROW, WIDTH, class, lines_of, paragraph};
use crate::base::printable;
use crate::names::{display_width, shortened};
use crate::view::changes::Tint;
use crate::view::{label, number};

const MODULES: usize = HUES + 1;
const CHAR: u64 = 8;
const SAMPLE: u64 = 18;
const NAME: usize = 36;

// A sample of a colour or pattern, and what it means.
pub(super) struct Entry {
    class: String,
    text: String,
}

// A sample with its place: the line, and where it begins.
pub(super) struct Placed {
    line: u64,
    x: u64,
    entry: Entry,
}

pub(super) enum Part {
    // Samples with their meaning.
    Samples(Vec<Placed>),
    // The lines of a sentence.
    Text(Vec<String>),
}

impl Part {
    fn text(text: &str) -> Part {
        Part::Text(lines_of(&printable(text), COLUMNS))
    }

    fn height(&self) -> u64 {
        match self {
            Part::Samples(samples) => samples.last().map_or(0, |last| last.line + 1),
            Part::Text(lines) => lines.len() as u64,
        }
    }
}

pub(super) fn height(parts: &[Part]) -> u64 {
    parts.iter().map(Part::height).sum()
}

pub(super) fn parts(frames: &Frames) -> Vec<Part> {
    let mut parts = match frames.changes {
        Some(_) => of_changes(),
        None => of_modules(frames),
    };
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
    parts.push(arranged(patterns));
    let caveats = frames.subject.profile.caveats.iter();
    let mut notes: Vec<Part> = caveats
        .map(|caveat| Part::text(&format!("Note: {caveat}")))
        .collect();
    if !notes.is_empty() && frames.subject.is_part() {
        notes.insert(
            0,
            Part::text("Notes describe the whole file, not only the samples shown:"),
        );
    }
    parts.extend(notes);
    parts
}

// What the colours of changes mean.
fn of_changes() -> Vec<Part> {
    let meanings = [
        (Tint::Worse, "worse by its self weight"),
        (Tint::WorseByCallees, "worse by what it calls"),
        (Tint::Better, "better by its self weight"),
        (Tint::BetterByCallees, "better by what it calls"),
        (Tint::Neutral, "same or undecided"),
    ];
    let entry = |(tint, text): (Tint, &str)| Entry {
        class: class(hue(tint), 0),
        text: text.to_owned(),
    };
    let text = "Widths: new runs. Colour: what has changed; shades only separate frames. New and \
                large changes are worse if they are more, better if less.";
    vec![
        Part::text(text),
        arranged(meanings.map(entry).into_iter().collect()),
    ]
}

fn of_modules(frames: &Frames) -> Vec<Part> {
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
    let mut parts = Vec::new();
    if colors.by_module {
        parts.push(Part::text(
            "Colour: module, with its share of self. Shades only separate frames.",
        ));
    } else if !frames.picture.layout.frames.is_empty() {
        parts.push(Part::text("Colour: function; modules are not known"));
    }
    parts.push(arranged(entries));
    parts
}

// The entries next to and below each other.
fn arranged(entries: Vec<Entry>) -> Part {
    let (mut line, mut x) = (0, MARGIN);
    let place = |entry: Entry| {
        let width = SAMPLE + (display_width(&entry.text) as u64 + 3) * CHAR;
        if x > MARGIN && x + width > WIDTH - MARGIN {
            (line, x) = (line + 1, MARGIN);
        }
        let placed = Placed { line, x, entry };
        x += width;
        placed
    };
    Part::Samples(entries.into_iter().map(place).collect())
}

pub(super) fn write(out: &mut dyn Write, parts: &[Part], top: u64) -> io::Result<()> {
    let mut y = top + ROW;
    for part in parts {
        match part {
            Part::Text(lines) => paragraph(out, "note", MARGIN, y, lines)?,
            Part::Samples(samples) => {
                out.write_all(b"<g class=\"samples\">\n")?;
                for Placed { line, x, entry } in samples {
                    let y = y + line * ROW;
                    let top = y - 11;
                    let class = &entry.class;
                    writeln!(
                        out,
                        "<rect class=\"{class}\" x=\"{x}\" y=\"{top}\" width=\"14\" height=\"13\"/>"
                    )?;
                    let text = [printable(&entry.text).into_owned()];
                    paragraph(out, "note", x + SAMPLE, y, &text)?;
                }
                out.write_all(b"</g>\n")?;
            }
        }
        y += part.height() * ROW;
    }
    Ok(())
}
