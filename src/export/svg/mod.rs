//! A flame graph as a picture in SVG: call paths from the root at the bottom up, or callers from
//! the innermost functions at the top down.
//!
//! The file is complete without its script, which adds search and zoom, lays the picture out again
//! for the width of the window, and asks for nothing from outside. A frame is a group of a `title`,
//! a `rect` and, where there is room, a `text`:
//!
//! ```text
//!   <g data-k="5"><title>parse (1,234 samples, 5.60%; self 12; app)</title>
//!     <rect class="m0" x="10" y="80" width="66.08" height="16"/>
//!     <text x="13" y="92">parse</text></g>
//! ```
//!
//! Titles have full counts; time is rounded as on pages. Widths are the weights of [`FlameLayout`]
//! over the total, in thousandths of a pixel. Names are escaped for XML, and printable.

mod colors;
mod frames;
mod legend;

use std::borrow::Cow;
use std::io::{self, Write};

use self::colors::{Colors, Part, SHADES};
use self::frames::Frames;
use crate::analysis::tree::{CallTree, Collapse, Direction, FlameLayout};
use crate::base::{IdVec, printable};
use crate::profile::{FunctionId, FunctionKind, ModuleId};
use crate::view::changes::ChangedFrames;
use crate::view::{Names, Subject, number};

use super::naming::PRODUCER;
use super::text::wrapped;
use crate::names::display_width;

// The width of the picture in pixels.
const WIDTH: u64 = 1200;
// Left and right of the frames.
const MARGIN: u64 = 10;
// The width of the total.
const PLOT: u64 = WIDTH - 2 * MARGIN;
// The height of a frame, and of a line of text.
const ROW: u64 = 17;
// The width of a character, of the widest of the usual fonts.
const CHAR: f64 = 7.3;
// The columns of lines above and below the frames.
const COLUMNS: usize = (PLOT as f64 / CHAR) as usize;
// The columns of the title, in letters of 15 pixels instead of 12: it ends where the controls
// begin, which take 600 pixels of its line.
const TITLE: usize = ((PLOT - 600) as f64 * 12.0 / 15.0 / CHAR) as usize;

/// A call tree to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// The tree.
    pub tree: &'a CallTree,
    /// Its frames.
    pub layout: &'a FlameLayout,
    /// Whether it is one of callees or of callers.
    pub direction: Direction,
    /// The number of levels that callers were followed to at most; `None` where all were.
    pub depth: Option<u32>,
}

/// Returns the least weight of a frame that can be seen: a tenth of a pixel.
pub fn least(total: u64) -> u64 {
    total.div_ceil(PLOT * 10)
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("flames.js");

/// Writes the picture.
pub fn write(out: &mut dyn Write, subject: &Subject, picture: &Picture) -> io::Result<()> {
    draw(out, subject, picture, None, Around::Nothing)
}

/// Writes the picture of new runs, in which frames show what has changed.
pub fn write_changes(
    out: &mut dyn Write,
    subject: &Subject,
    picture: &Picture,
    changes: &ChangedFrames,
) -> io::Result<()> {
    draw(out, subject, picture, Some(changes), Around::Nothing)
}

/// Writes the same as an element of a page, which has [`style_of_changes`] and [`script_in_page`].
#[cfg(feature = "compare")]
pub(super) fn write_changes_in_page(
    out: &mut dyn Write,
    subject: &Subject,
    picture: &Picture,
    changes: &ChangedFrames,
) -> io::Result<()> {
    draw(out, subject, picture, Some(changes), Around::Page)
}

/// The style of pictures of changes.
#[cfg(feature = "compare")]
pub(super) fn style_of_changes() -> String {
    style(colors::of_changes())
}

/// The script of the only picture of a page.
#[cfg(feature = "compare")]
pub(super) fn script_in_page() -> String {
    // The picture is not the document there.
    SCRIPT.replacen(ROOT, "document.querySelector(\"svg\")", 1)
}

/// How the script finds the picture.
#[cfg(feature = "compare")]
const ROOT: &str = "document.documentElement";

// What the picture is a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    // It is a file.
    Nothing,
    #[cfg(feature = "compare")]
    Page,
}

fn draw(
    out: &mut dyn Write,
    subject: &Subject,
    picture: &Picture,
    changes: Option<&ChangedFrames>,
    around: Around,
) -> io::Result<()> {
    let profile = subject.profile;
    let functions = || {
        let nodes = picture.tree.nodes.iter();
        nodes.map(|node| node.function)
    };
    let parts = parts(subject, picture);
    let short = Subject {
        names: match subject.names {
            Names::Full => Names::Short,
            names => names,
        },
        ..*subject
    };
    let frames = Frames {
        subject,
        picture,
        colors: Colors::new(profile, &parts),
        changes,
        names: subject.labels(functions()),
        short: short.labels(functions()),
    };
    let head = head(subject, picture, (changes, around));
    let facts: Vec<String> = head[1..]
        .iter()
        .map(|fact| printable(fact).into())
        .collect();
    let facts: Vec<Vec<String>> = facts.iter().map(|fact| lines_of(fact, COLUMNS)).collect();
    let lines_above = 1 + facts.iter().map(Vec::len).sum::<usize>() as u64;
    // Between them and the frames is room for a line of the script.
    let top = 12 + ROW * (lines_above + 1) + ROW / 2;
    let levels = u64::from(frames.levels());
    let below = top + levels * ROW + ROW / 2;
    let foot = legend::parts(&frames);
    let height = below + (legend::height(&foot) + 1) * ROW;
    if around == Around::Nothing {
        out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
    }
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" \
         version=\"1.1\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">"
    )?;
    writeln!(out, "<title>{}</title>", escaped(&head[0]))?;
    writeln!(out, "<desc>{} {}</desc>", PRODUCER.0, PRODUCER.1)?;
    let palette: &[[u8; 3]] = match changes {
        Some(_) => colors::of_changes(),
        None => colors::palette(subject.selection.event()),
    };
    if around == Around::Nothing {
        writeln!(out, "<style>\n{}</style>", style(palette))?;
    }
    patterns(out, palette)?;
    writeln!(
        out,
        "<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>"
    )?;
    let title = printable(&head[0]);
    paragraph(out, "title", MARGIN, 12 + ROW, &[cut(&title, TITLE).into()])?;
    let mut y = 12 + 2 * ROW;
    for lines in &facts {
        paragraph(out, "head", MARGIN, y, lines)?;
        y += ROW * lines.len() as u64;
    }
    let root = match picture.direction {
        Direction::TopDown => "bottom",
        Direction::BottomUp => "top",
    };
    writeln!(
        out,
        "<g id=\"frames\" data-root=\"{root}\" data-left=\"{MARGIN}\" data-width=\"{PLOT}\" \
         data-char=\"{CHAR}\" data-row=\"{ROW}\" data-top=\"{top}\" data-bottom=\"{below}\">"
    )?;
    frames.write(out, top)?;
    out.write_all(b"</g>\n")?;
    out.write_all(b"<g id=\"foot\">\n")?;
    legend::write(out, &foot, below)?;
    out.write_all(b"</g>\n")?;
    if around == Around::Nothing {
        write!(out, "<script><![CDATA[\n{SCRIPT}]]></script>\n")?;
    }
    out.write_all(b"</svg>\n")
}

// What each module has of the samples and of the frames.
fn parts(subject: &Subject, picture: &Picture) -> IdVec<ModuleId, Part> {
    let profile = subject.profile;
    let mut parts = IdVec::filled(Part::default(), profile.modules.len());
    let is_code = |function: FunctionId| profile.functions[function].kind != FunctionKind::Mark;
    let rows = subject
        .selection
        .rows()
        .iter()
        .map(|row| (profile.paths[row.path].function, row.weight));
    for (function, weight) in rows.filter(|&(function, _)| is_code(function)) {
        let own = &mut parts[profile.functions[function].module].own;
        *own = own.saturating_add(weight);
    }
    let drawn = picture
        .layout
        .frames
        .iter()
        .map(|frame| (picture.tree.nodes.at(frame.node).function, frame.weight));
    for (function, weight) in drawn.filter(|&(function, _)| is_code(function)) {
        let frames = &mut parts[profile.functions[function].module].frames;
        *frames = frames.saturating_add(weight);
    }
    parts
}

// Above the frames.
fn head(
    subject: &Subject,
    picture: &Picture,
    (changes, around): (Option<&ChangedFrames>, Around),
) -> Vec<String> {
    let what = match picture.direction {
        Direction::TopDown => "Flame graph",
        Direction::BottomUp => "Callers of the innermost functions",
    };
    let command = subject.profile.about.command.as_deref();
    let title = command.map_or(what.to_owned(), |command| format!("{what}: {command}"));
    let mut facts = subject.headline();
    match picture.tree.collapse {
        Collapse::None => {}
        degree => facts.push_str(&format!("; recursion is collapsed ({})", degree.name())),
    }
    let mut lines = match changes {
        Some(changes) if around == Around::Nothing => {
            let [subject, all] = changes.summary.clone();
            vec![changes.title.clone(), subject, all]
        }
        // The page has them.
        Some(_) => vec![format!("{what} of the new runs")],
        None => vec![title, facts],
    };
    lines.extend(changes.and_then(|it| it.gone.clone()));
    let left_out = number::grouped(picture.layout.left_out as u64);
    lines.extend(match (picture.layout.left_out, picture.direction) {
        (0, _) => None,
        (1, Direction::TopDown) => Some("1 frame narrower than 0.1 px is not drawn.".into()),
        (_, Direction::TopDown) => Some(format!(
            "{left_out} frames narrower than 0.1 px are not drawn."
        )),
        // The callers of these are not followed.
        (_, Direction::BottomUp) => Some(format!(
            "{left_out} frames narrower than 0.1 px and their callers are not drawn."
        )),
    });
    let frames = picture.layout.frames.iter();
    let cut = frames
        .map(|frame| picture.tree.nodes.at(frame.node).cut)
        .fold(0, u64::saturating_add);
    if let Some(depth) = picture.depth.filter(|_| cut > 0) {
        let share = number::percent(cut, picture.layout.total, 2);
        lines.push(format!(
            "Callers are followed to level {depth} at most; of {share}% some are not drawn."
        ));
    }
    if picture.layout.frames.is_empty() {
        lines.push("There are no samples.".to_owned());
    }
    lines
}

// The colours of this picture, and the rules that all have.
fn style(palette: &[[u8; 3]]) -> String {
    let mut rules = STYLE.to_owned();
    for (hue, &color) in palette.iter().enumerate() {
        for shade in 0..SHADES {
            let class = class(hue, shade);
            let color = colors::shade(color, shade);
            rules.push_str(&format!(".{class} {{ fill: {color}; }}\n"));
        }
        rules.push_str(&format!(".i{hue} {{ fill: url(#hatch{hue}); }}\n"));
    }
    rules.push_str(".mark { fill: url(#hatch-mark); }\n");
    rules
}

// The fills with lines.
fn patterns(out: &mut dyn Write, palette: &[[u8; 3]]) -> io::Result<()> {
    out.write_all(b"<defs>\n")?;
    let light = [0xdd; 3];
    let named = palette
        .iter()
        .enumerate()
        .map(|(hue, &color)| (format!("hatch{hue}"), color, "M0 8L8 0"));
    let mark = ("hatch-mark".to_owned(), light, "M0 0L8 8M0 8L8 0");
    for (id, color, lines) in named.chain([mark]) {
        let color = colors::shade(color, 0);
        writeln!(
            out,
            "<pattern id=\"{id}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
             <path fill=\"{color}\" d=\"M0 0H8V8H0Z\"/>\
             <path class=\"hatch\" d=\"{lines}\"/></pattern>"
        )?;
    }
    out.write_all(b"</defs>\n")
}

// `m3`, `m3b`, `m3c`.
fn class(hue: usize, shade: usize) -> String {
    format!("m{hue}{}", ["", "b", "c"][shade % SHADES])
}

// The lines of a text that is printable, in this number of columns. The text is what they have
// together.
fn lines_of(text: &str, columns: usize) -> Vec<String> {
    let mut lines = wrapped(text, 0, columns);
    let last = lines.len() - 1;
    for line in &mut lines[..last] {
        line.push(' ');
    }
    lines
}

// Writes lines below each other.
fn paragraph(out: &mut dyn Write, class: &str, x: u64, y: u64, lines: &[String]) -> io::Result<()> {
    write!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">")?;
    for (number, line) in lines.iter().enumerate() {
        let line = escaped(line);
        match number {
            0 => write!(out, "{line}")?,
            _ => write!(out, "<tspan x=\"{x}\" dy=\"{ROW}\">{line}</tspan>")?,
        }
    }
    out.write_all(b"</text>\n")
}

// The start of a text, in this number of columns.
fn cut(text: &str, room: usize) -> Cow<'_, str> {
    if display_width(text) <= room {
        return Cow::Borrowed(text);
    }
    let mut start = String::new();
    let (mut letter, mut used) = ([0; 4], 0);
    for c in text.chars() {
        let letter = c.encode_utf8(&mut letter);
        used += display_width(letter);
        if used >= room {
            break;
        }
        start.push_str(letter);
    }
    start.push('…');
    Cow::Owned(start)
}

// Printable, without markup and without what XML does not allow.
fn escaped(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    let is_special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\u{fffe}' | '\u{ffff}');
    if !text.contains(is_special) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' => out.push_str("\\u{fffe}"),
            '\u{ffff}' => out.push_str("\\u{ffff}"),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::colors::HUES;
    use super::*;

    #[test]
    fn no_name_leaves_its_title() {
        assert_eq!(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
        assert_eq!(escaped("\u{1}\u{ffff}]]>"), "\\x01\\u{ffff}]]&gt;");
        assert_eq!(escaped("naïve"), "naïve");
    }

    #[test]
    fn each_hue_has_its_classes() {
        let all: Vec<String> = (0..HUES).map(|hue| class(hue, 1)).collect();
        assert_eq!(all[0], "m0b");
        assert_eq!(class(2, 0), "m2");
    }

    #[cfg(feature = "compare")]
    #[test]
    fn the_script_has_one_way_to_find_its_picture() {
        assert_eq!(SCRIPT.matches(ROOT).count(), 1);
        assert!(!script_in_page().contains(ROOT));
    }
}
