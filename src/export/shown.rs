//! Writes functions and calls for every format and for the live screen: a name, the marks beside
//! it, the lines of a tree before it, and as much of that as a width allows.

use std::borrow::Cow;

use crate::base::{Unit, printable};
use crate::names::{self, GAP, INFERRED, Label, MIN_MARKED, Mark, Written, display_width};
use crate::view::number;
use crate::view::table::{Branch, Call, Cell, Column, Guide, Lines, Second, What};

/// What stands between a caller and its callee.
pub(super) const ARROW: &str = " → ";
/// What leads to the only one below another.
const BELOW: &str = "↳ ";
/// What a folded chain of calls begins with, and a guide whose first steps are left out.
const FOLD: &str = "⋯";
/// The characters that the names of owners may have that a folded chain names.
const OWNERS: usize = 16;
/// How many steps of a guide are drawn where there are more, or where there is no room for them.
const LAST_STEPS: usize = 6;

/// What a cell shows, as texts that can be shortened; safe to print.
#[derive(Clone, Debug)]
pub enum Shown<'a> {
    /// One text.
    One(Written<'a>),
    /// Caller and callee.
    Call([Written<'a>; 2]),
    /// The number of frames of a chain of calls, whose they are, and the last one.
    Fold([String; 2], Written<'a>),
}

impl<'a> Shown<'a> {
    /// A text from outside.
    pub fn text(text: &'a str) -> Shown<'a> {
        Shown::One(printable(text).into())
    }

    /// The text of a cell, without what stands before it.
    pub fn of(cell: &'a Cell, unit: &Unit) -> Shown<'a> {
        Shown::One(Written::from(match cell {
            Cell::Nothing => Cow::Borrowed(""),
            Cell::Text(text) => printable(text),
            Cell::Name(name) => return Shown::what(&name.what),
            Cell::Weight(value) => Cow::Owned(number::weight(*value, unit)),
            Cell::Count(value) => Cow::Owned(number::grouped(*value)),
            Cell::Index(0) => Cow::Borrowed(""),
            Cell::Index(index) => Cow::Owned(format!("[{index}]")),
            Cell::Share { part, whole } => Cow::Owned(number::percent(*part, *whole, 2)),
            Cell::Limit { part, whole } => Cow::Owned(number::limit(*part, *whole)),
            Cell::Difference(value) => Cow::Owned(number::difference(*value, unit)),
            Cell::Growth { difference, of } => Cow::Owned(number::growth(*difference, *of)),
            Cell::Factor { number, of } => Cow::Owned(number::factor(*number, *of)),
            Cell::PerCall { weight, calls } => {
                Cow::Owned(number::weight_per(*weight, *calls, unit))
            }
        }))
    }

    /// The text of what a row is about.
    pub fn what(what: &'a What) -> Shown<'a> {
        Shown::One(match what {
            What::Label(label) => return Shown::label(label),
            What::Call(call) => return Shown::call(call),
            What::Fold { frames, owners, to } => {
                return Shown::Fold(fold(*frames, owners), written(to));
            }
            What::Cycle { number, index } => Written {
                marks: index.map_or(String::new(), numbered).into(),
                ..format!("<cycle {number} as a whole>").into()
            },
            What::More(more) => format!("{GAP} {} more", number::grouped(*more as u64)).into(),
            What::Instruction { text, callee } => {
                let callee = callee
                    .as_ref()
                    .map_or(String::new(), |it| format!(" <{it}>"));
                printable(&format!("{text}{callee}")).into_owned().into()
            }
            What::Source {
                place,
                inlined,
                text,
            } => {
                let inlined = inlined.as_ref();
                let inlined = inlined.map_or(String::new(), |it| format!(" (inlined {it})"));
                let text = text.as_ref().map_or(String::new(), |it| format!("  {it}"));
                printable(&format!("{place}{inlined}{text}"))
                    .into_owned()
                    .into()
            }
        })
    }

    /// The text of a label.
    pub fn label(label: &'a Label) -> Shown<'a> {
        Shown::One(written(label))
    }

    /// The text of a call.
    pub fn call(call: &'a Call) -> Shown<'a> {
        let callee = match &call.to[..] {
            [callee] if !call.has_more => written(callee),
            callees => {
                let names: Vec<_> = callees
                    .iter()
                    .map(|it| written(it).whole().into_owned())
                    .collect();
                let more = if call.has_more { ", …" } else { "" };
                format!("{}{more}", names.join(", ")).into()
            }
        };
        Shown::Call([written(&call.from), callee])
    }

    /// All of it.
    pub fn whole(&self) -> Cow<'_, str> {
        match self {
            Shown::One(text) => text.whole(),
            Shown::Call([from, to]) => Cow::Owned(format!("{}{ARROW}{}", from.whole(), to.whole())),
            Shown::Fold([frames, owners], to) => {
                Cow::Owned(format!("{frames}{owners}{ARROW}{}", to.whole()))
            }
        }
    }

    /// The number of columns that it takes.
    pub fn width(&self) -> usize {
        match self {
            Shown::One(text) => text.width(),
            _ => display_width(&self.whole()),
        }
    }

    /// It in at most `width` columns. Both names of a call are shortened, so that the arrow stays;
    /// whose the frames of a folded chain are is left out before the name of its last function is
    /// shortened.
    pub fn shortened(&self, width: usize) -> Cow<'_, str> {
        if self.width() <= width {
            return self.whole();
        }
        let (before, names) = self.parts(width);
        let shown = names.iter().map(|(name, room)| name.shortened(*room));
        Cow::Owned(before + &shown.collect::<Vec<_>>().join(ARROW))
    }

    /// What stands before its names, and the names, each with the columns that it has if all have
    /// `width`.
    fn parts(&self, width: usize) -> (String, Vec<(Written<'_>, usize)>) {
        let room = width.saturating_sub(display_width(ARROW));
        let alone = |text, room| (String::new(), vec![(text, room)]);
        match self {
            Shown::One(text) => alone(borrowed(text), width),
            Shown::Call([_, to]) | Shown::Fold(_, to) if room < 4 => {
                let whole = self.whole();
                let text = whole[..whole.len() - to.marks.len()].to_owned();
                let marks = Cow::Borrowed(&*to.marks);
                alone(
                    Written {
                        marks,
                        ..text.into()
                    },
                    width,
                )
            }
            Shown::Call([from, to]) => {
                // What stands behind the callee says more than the ends of the names.
                let behind = Some(to.width_behind());
                let behind = behind.filter(|behind| room >= behind + 2 * MIN_MARKED);
                let half = (room - behind.unwrap_or(0)) / 2;
                // What a short name leaves over is for the longer one.
                let first = from.width().min(half.max(room.saturating_sub(to.width())));
                let rooms = [(borrowed(from), first), (borrowed(to), room - first)];
                (String::new(), rooms.into())
            }
            Shown::Fold([frames, owners], to) => {
                // The name says more than the number of frames.
                let least = display_width(frames) + to.width().min(MIN_MARKED);
                let before = match display_width(frames) + display_width(owners) + to.width() {
                    whole if whole <= room => format!("{frames}{owners}"),
                    _ if least <= room => frames.clone(),
                    _ => FOLD.to_owned(),
                };
                let room = room.saturating_sub(display_width(&before));
                (before + ARROW, vec![(borrowed(to), room)])
            }
        }
    }
}

/// The texts, each in the columns that there are for it: as [`shortened`](Shown::shortened), and so
/// that names stay different, both names of a call from all others too. A name that nothing else
/// tells apart is longer than its room.
pub fn fitted(texts: &[(&Shown<'_>, usize)]) -> Vec<String> {
    let parts = texts.iter().map(|(text, width)| text.parts(*width));
    let (before, names): (Vec<String>, Vec<Vec<_>>) = parts.unzip();
    let mut shown = names::fitted(&names.concat()).into_iter();
    let texts = before.into_iter().zip(&names);
    let joined = texts.map(|(before, names)| {
        let shown: Vec<String> = shown.by_ref().take(names.len()).collect();
        before + &shown.join(ARROW)
    });
    joined.collect()
}

/// A sentence with calls in it.
pub fn sentence(before: &str, calls: &[String], after: &str) -> String {
    format!("{before} {}{after}", calls.join(", "))
}

/// A label with its marks; safe to print.
pub(super) fn written(label: &Label) -> Written<'_> {
    let declaration = &label.text[label.text.len() - label.declaration..];
    let mut declaration = printable(declaration).len();
    let mut text = printable(&label.text);
    let mut marks = String::new();
    for mark in &label.marks {
        match mark {
            Mark::InlinedInto => text.to_mut().insert_str(0, "inlined into "),
            Mark::LeadsBack => {
                text.to_mut().push_str(" *");
                declaration = 0;
            }
            Mark::Inlined => marks.push_str(" (inlined)"),
            Mark::InCode => marks.push_str(" (in the code)"),
            Mark::Collapsed { part, whole } => {
                marks.push_str(&format!("... ({} %)", number::percent(*part, *whole, 2)));
            }
            Mark::Cycle(number) => marks.push_str(&format!(" <cycle {number}>")),
            Mark::Index(index) => marks.push_str(&numbered(*index)),
            Mark::ByCode => marks.push_str(" (inferred)"),
            Mark::AcrossGap => marks.push_str(" (frames missing)"),
            Mark::ThroughPointer => marks.push_str(" (through a pointer)"),
            Mark::Same(name) => marks.push_str(&format!(" (+{})", printable(name))),
            Mark::SameNumber(number) => marks.push_str(&format!(" (+{number})")),
            Mark::Remark(words) => marks.push_str(&format!(" ({})", printable(words))),
        }
    }
    Written {
        text,
        declaration,
        marks: marks.into(),
    }
}

/// The number of an entry of a listing behind a name.
fn numbered(index: u32) -> String {
    match index {
        0 => " ".into(),
        index => format!(" [{index}]"),
    }
}

fn borrowed<'a>(text: &'a Written<'_>) -> Written<'a> {
    Written {
        text: Cow::Borrowed(&text.text),
        declaration: text.declaration,
        marks: Cow::Borrowed(&text.marks),
    }
}

/// The number of frames of a folded chain, and whose they are.
fn fold(frames: usize, owners: &[String]) -> [String; 2] {
    let mut names = String::new();
    for (place, name) in owners.iter().enumerate() {
        if place > 0 && names.chars().count() + name.chars().count() > OWNERS {
            names.push_str(", …");
            break;
        }
        names.push_str(if place > 0 { ", " } else { "" });
        names.push_str(name);
    }
    [
        format!("{FOLD} {frames} frames"),
        format!(": {}", printable(&names)),
    ]
}

/// The heading of a column.
pub fn title(column: &Column) -> Cow<'static, str> {
    let title = column.title;
    match column.second {
        None => title.into(),
        Some(Second::Below(second)) => format!("{title} {BELOW}{second}").into(),
        Some(Second::Callee(second)) => format!("{title}{ARROW}{second}").into(),
    }
}

/// What stands before the name of a cell: its [`guide`], and the mark of a restored function.
pub fn before(cell: &Cell, width: usize) -> String {
    let Cell::Name(name) = cell else {
        return String::new();
    };
    let mark = if name.what.is_restored() {
        INFERRED
    } else {
        ""
    };
    let before = guide(&name.guide, width.saturating_sub(display_width(mark))) + mark;
    // No line ends with spaces.
    match Shown::what(&name.what).width() {
        0 => before.trim_end().to_owned(),
        _ => before,
    }
}

/// A guide in at most `width` columns: the first steps of a tree give way to the level, as in
/// `⋯17 │ ├ `. What leads to the text stays, however narrow it is.
///
/// ```
/// use proftool::export::shown;
/// use proftool::view::table::{Branch, Guide};
/// let steps = vec![true, true, false, true];
/// let guide = Guide::Tree { level: 12, steps, branch: Branch::Last };
/// assert_eq!(shown::guide(&guide, 80), "│ │   │ └ ");
/// assert_eq!(shown::guide(&guide, 9), "⋯12 │ └ ");
/// ```
pub fn guide(guide: &Guide, width: usize) -> String {
    let (level, steps, branch) = match guide {
        Guide::None => return String::new(),
        Guide::Part => return "  ".into(),
        Guide::Caller => return "  ← ".into(),
        Guide::Member => return "  · ".into(),
        Guide::Callee => return "  → ".into(),
        Guide::Jumps(lines) => return lines.iter().map(drawn).collect(),
        Guide::Tree {
            level,
            steps,
            branch,
        } => (level, steps, branch),
    };
    let branch = match branch {
        Branch::Only => BELOW,
        Branch::Inner => "├ ",
        Branch::Last => "└ ",
    };
    let mut start = String::new();
    let mut shown = &steps[..];
    if steps.len() > Guide::STEPS || 2 * steps.len() + 2 > width {
        start = format!("{FOLD}{level} ");
        let room = width.saturating_sub(display_width(&start) + 2) / 2;
        shown = &steps[steps.len() - room.min(LAST_STEPS).min(steps.len())..];
    }
    let steps = shown.iter().map(|&open| if open { "│ " } else { "  " });
    start + &steps.collect::<String>() + branch
}

/// The character for lines that meet.
fn drawn(lines: &Lines) -> char {
    match (lines.is_head, lines.up, lines.down, lines.left, lines.right) {
        (true, ..) => '▶',
        (_, true, true, true, _) => '┼',
        (_, true, true, _, true) => '├',
        (_, true, true, ..) => '│',
        (_, true, _, true, _) => '┴',
        (_, true, ..) => '╰',
        (_, _, true, true, _) => '┬',
        (_, _, true, ..) => '╭',
        (_, _, _, true, _) => '─',
        _ => ' ',
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn call(from: &str, to: &str, remark: Option<&str>) -> What {
        let remark = remark.map(|it| Mark::Remark(it.into()));
        What::Call(Call::new(from.into(), Label::from(to).with(remark)))
    }

    fn chain() -> What {
        What::Fold {
            frames: 9,
            owners: ["std", "tokio"].map(String::from).into(),
            to: "Task::run".into(),
        }
    }

    #[test]
    fn both_names_of_a_call_stay_visible() {
        for (from, to, remark, width, expected) in [
            ("parse", "expr", None, 20, "parse → expr"),
            ("a", "abcdefghij", None, 10, "a → ab…hij"),
            ("abcdefghij", "a", None, 10, "ab…hij → a"),
            ("abcdefghij", "klmnopqrst", None, 13, "a…hij → k…rst"),
            ("parse_expression", "f", None, 12, "pa…ssion → f"),
            (
                "parse_expression",
                "parse_term",
                None,
                17,
                "pa…sion → pa…term",
            ),
            (
                "parse_expression",
                "parse_term",
                Some("42 samples"),
                32,
                "pa…ssion → pa…_term (42 samples)",
            ),
        ] {
            let what = call(from, to, remark);
            assert_eq!(Shown::what(&what).shortened(width), expected);
        }
        let chain = chain();
        let shown = |width| Shown::what(&chain).shortened(width).into_owned();
        assert_eq!(shown(80), "⋯ 9 frames: std, tokio → Task::run");
        assert_eq!(shown(25), "⋯ 9 frames → Task::run");
        assert_eq!(shown(13), "⋯ → Task::run");
    }

    #[test]
    fn what_is_shortened_fits() {
        for what in [call("abcdefghij", "klmnopqrst", Some("1 call")), chain()] {
            for width in 0..60 {
                let text = Shown::what(&what).shortened(width).into_owned();
                assert!(display_width(&text) <= width.max(1), "{text}");
            }
        }
    }

    #[test]
    fn a_call_that_differs_in_both_names_keeps_its_arrow() {
        let names = ["aa", "ab"].map(|it| format!("parser::{it}::expression_of_something"));
        let pairs = names
            .iter()
            .flat_map(|a| names.iter().map(move |b| call(a, b, None)));
        let calls: Vec<What> = pairs.collect();
        let calls: Vec<Shown> = calls.iter().map(Shown::what).collect();
        let shown = fitted(&calls.iter().map(|call| (call, 40)).collect::<Vec<_>>());
        let distinct: BTreeSet<&String> = shown.iter().collect();
        assert_eq!(distinct.len(), 4, "{shown:?}");
        let is_whole = |text: &String| text.contains(ARROW) && display_width(text) <= 40;
        assert!(shown.iter().all(is_whole), "{shown:?}");
    }
}
