//! Names shortened to the available columns.

use std::borrow::Cow;
use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use super::GAP;
use super::brackets::segments;
use super::language::{ALTERNATIVE, of_text};
use crate::base::Language;

/// The minimum width of a name next to its marks and its place of declaration. With less room, marks are left out,
/// and name and place are shortened as one text.
pub(super) const MIN_MARKED: usize = 6;
/// What stands for marks where the name would have less with them.
const MARKS_LEFT_OUT: &str = " (…)";
/// Where there is less, not even that stands behind a name.
const MIN_WITH_SIGN: usize = 8;
/// What stands between a caller and its callee.
pub const ARROW: &str = " → ";
/// What a folded chain of calls begins with.
const FOLD: char = '⋯';

/// Returns the number of columns that a text takes on a terminal. Wide characters (CJK, emoji) take
/// two, combining characters none. Each character counts by itself, as most terminals do it and
/// so that widths add up; joiners and variation selectors are never printed as such.
///
/// ```
/// use proftool::names::display_width;
/// assert_eq!(display_width("naïve"), 5);
/// assert_eq!(display_width("解析 e\u{301}"), 6);
/// ```
pub fn display_width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// A name, or a call of the form `caller → callee`, in at most `width` columns. Both names of a call
/// are [`shortened`], so that the arrow stays.
///
/// ```
/// use proftool::names::shortened_call;
/// assert_eq!(shortened_call("parse_expression → f", 12), "pa…ssion → f");
/// assert_eq!(shortened_call("parse_expression → parse_term", 17), "pa…sion → pa…term");
/// assert_eq!(shortened_call("parse_expression → parse_term (42 samples)", 32), "pa…ssion → pa…_term (42 samples)");
/// assert_eq!(shortened_call("⋯ 9 frames: std, tokio → Task::run", 25), "⋯ 9 frames → Task::run");
/// assert_eq!(shortened_call("⋯ 9 frames: std, tokio → Task::run", 13), "⋯ → Task::run");
/// ```
pub fn shortened_call(text: &str, width: usize) -> Cow<'_, str> {
    if display_width(text) <= width {
        return Cow::Borrowed(text);
    }
    let names: Vec<Cow<'_, str>> = names_of(text, width)
        .map(|(name, room)| shortened(name, room))
        .collect();
    Cow::Owned(names.join(ARROW))
}

/// The names in a text, each with the columns that it has if all of them have `width`: caller and callee of a
/// call, and of other texts the text itself. [`ARROW`] stands between two. Whose the frames of a folded chain are
/// (`⋯ 47 frames: std, tokio → f`) is left out before the name of its last function is shortened.
pub(super) fn names_of(text: &str, width: usize) -> impl Iterator<Item = (&str, usize)> {
    let room = width.saturating_sub(display_width(ARROW));
    let (Some((mut caller, callee)), 4..) = (text.split_once(ARROW), room) else {
        return [Some((text, width)), None].into_iter().flatten();
    };
    let mut lengths = [caller, callee].map(display_width);
    if caller.starts_with(FOLD) && lengths[0] + lengths[1] > room {
        caller = caller.split_once(": ").map_or(caller, |(frames, _)| frames);
        lengths[0] = display_width(caller);
        // The name says more than the number of frames.
        let needed = lengths[1].min(MIN_MARKED);
        if room < lengths[0] + needed
            && let Some(mark) = caller.get(..FOLD.len_utf8())
        {
            caller = mark;
            lengths[0] = display_width(mark);
        }
        let room = room.saturating_sub(lengths[0]);
        return [Some((caller, lengths[0])), Some((callee, room))]
            .into_iter()
            .flatten();
    }
    // What stands behind the callee says more than the ends of the names.
    let remark = display_width(behind_name(callee));
    let remark = Some(remark)
        .filter(|remark| room >= remark + 2 * MIN_MARKED)
        .unwrap_or(0);
    let half = (room - remark) / 2;
    // What a short name leaves over is for the longer one.
    let first = lengths[0].min(half.max(room.saturating_sub(lengths[1])));
    let names = [Some((caller, first)), Some((callee, room - first))];
    names.into_iter().flatten()
}

/// `text` in at most `width` columns. Of a name with segments, the ones between the first and the last two
/// are left out first, then the first one, then arguments, then the last but one, so that the function's own name stays.
/// Of what is left, and of other texts, the middle is left out. Marks after it, as `(inlined)`, stay whole where the name
/// keeps six columns, or ` (…)` stands for them.
///
/// ```
/// use proftool::names::shortened;
/// assert_eq!(shortened("alloc::vec::into_iter::Vec::push", 20), "alloc::…::Vec::push");
/// assert_eq!(shortened("alloc::vec::Vec::push", 14), "…::Vec::push");
/// assert_eq!(shortened("alloc::vec::Vec::push", 10), "…::push");
/// assert_eq!(shortened("de::from_slice::<alloc::Vec>", 22), "de::from_slice::<…>");
/// assert_eq!(shortened("alloc::vec::Vec::push (inlined)", 20), "…::push (inlined)");
/// assert_eq!(shortened("alloc::vec::Vec::push <cycle 2> [171]", 20), "…::Vec::push (…)");
/// assert_eq!(shortened("alloc::vec::Vec::extend_from_slice", 14), "…exte…om_slice");
/// assert_eq!(shortened("std::panic::catch_unwind::<main::{closure#0}>", 17), "…::catch_unwind…");
/// assert_eq!(shortened("parse_expression", 12), "pars…ression");
/// assert_eq!(shortened("A$P.<init>(int)", 12), "A$P.…t>(int)");
/// assert_eq!(shortened("a::f(int) or b::g(int)", 16), "a::f(int) or …");
/// assert_eq!(shortened("構文解析器", 7), "構…析器");
/// ```
pub fn shortened(text: &str, width: usize) -> Cow<'_, str> {
    if display_width(text) <= width {
        return Cow::Borrowed(text);
    }
    let (label, marks) = split_marks(text);
    let marks = shown_marks(marks, width);
    let width = width.saturating_sub(display_width(marks));
    let (name, place) = split_place(label);
    let room = width.saturating_sub(display_width(place));
    if room >= MIN_MARKED && !place.is_empty() {
        return Cow::Owned(format!("{}{place}{marks}", shortened_name(name, room)));
    }
    Cow::Owned(format!("{}{marks}", shortened_name(label, width)))
}

/// A label, and the marks behind it, which are no part of it: `(inlined)`, `<cycle 1> [3]`, `[3] (frames missing)`,
/// `... (12.00 %)`. The place of a declaration, `(a.c:12)`, is part of a label. Demanglers print no space before arguments.
pub(super) fn split_marks(text: &str) -> (&str, &str) {
    let mut at = text.len();
    while let Some(before) = without_mark(&text[..at]) {
        at = before;
    }
    text.split_at(at)
}

/// Where the last mark of a text starts.
fn without_mark(text: &str) -> Option<usize> {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((before, number)) = text.strip_suffix(']').and_then(|it| it.rsplit_once(" [")) {
        return is_number(number).then_some(before.len());
    }
    if let Some((before, number)) =
        (text.strip_suffix('>')).and_then(|it| it.rsplit_once(" <cycle "))
    {
        return is_number(number).then_some(before.len());
    }
    let inside = text.strip_suffix(')')?;
    // `f (+g (a.c:12))`: g has the same samples.
    if let Some((before, _)) = inside.split_once(" (+") {
        return Some(before.len());
    }
    let (before, words) = inside.rsplit_once(" (")?;
    let is_mark = !words.contains(['(', ')']) && place(text).is_none();
    // `f... (12.00 %)` is a call that is shown elsewhere.
    is_mark.then(|| before.trim_end_matches('.').len())
}

/// What stands behind a name: the place of its declaration, and marks.
fn behind_name(text: &str) -> &str {
    let (label, _) = split_marks(text);
    &text[split_place(label).0.len()..]
}

/// Where the place of a declaration starts behind a name: `(a.c:12)`.
fn place(label: &str) -> Option<usize> {
    let (before, place) = label.strip_suffix(')')?.rsplit_once(" (")?;
    let (_, line) = place.rsplit_once(':')?;
    let is_line = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    is_line.then_some(before.len())
}

/// A name, and the place of its declaration, which is part of the label.
pub(super) fn split_place(label: &str) -> (&str, &str) {
    label.split_at(place(label).unwrap_or(label.len()))
}

/// The marks of a label as they are shown in `width` columns: whole, or a sign that there are some, or none. Never
/// parts of them, which would look like parts of the label.
pub(super) fn shown_marks(marks: &str, width: usize) -> &str {
    let room = width.saturating_sub(display_width(marks));
    if room >= MIN_MARKED || marks.is_empty() {
        marks
    } else if width >= MIN_WITH_SIGN {
        MARKS_LEFT_OUT
    } else {
        ""
    }
}

fn shortened_name(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    match of_text(text) {
        Language::Several => return first_alternative(text, width),
        language if !language.has_arguments() => return without_middle(text, width),
        _ => {}
    }
    let (word, name) = match text.strip_prefix("async ") {
        Some(name) => ("async ", name),
        None => ("", text),
    };
    let segments = segments(name);
    let bare: Vec<Cow<'_, str>> = segments.iter().map(|it| without_arguments(it)).collect();
    let whole: Vec<Cow<'_, str>> = segments.into_iter().map(Cow::Borrowed).collect();
    let fits = |text: String| Some(text).filter(|text| display_width(text) <= width);
    if whole.len() > 1 || bare != whole {
        // The function's own arguments go first.
        let mut own = whole.clone();
        if let (Some(last), Some(bare)) = (own.last_mut(), bare.last()) {
            last.clone_from(bare);
        }
        let short = shortest_path(word, &whole, 2, &fits)
            .or_else(|| shortest_path(word, &own, 2, &fits))
            .or_else(|| fits(format!("{word}{}", bare.join("::"))))
            .or_else(|| shortest_path(word, &bare, 2, &fits))
            .or_else(|| shortest_path(word, &bare, 1, &fits));
        if let Some(short) = short {
            return short;
        }
        if width > MIN_MARKED {
            return own_name_alone(word, name, width);
        }
    }
    without_middle(text, width)
}

/// The first of several names, or its start: the end of another one behind it would look like a name
/// that is neither.
fn first_alternative(text: &str, width: usize) -> String {
    let (first, _) = text.split_once(ALTERNATIVE).unwrap_or((text, ""));
    let short = format!("{first}{ALTERNATIVE}{GAP}");
    if display_width(&short) <= width {
        return short;
    }
    format!("{}{GAP}", first_columns(first, width.saturating_sub(1)))
}

/// The function's own name, with gaps for the path before it and the arguments behind it.
fn own_name_alone(word: &str, name: &str, width: usize) -> String {
    let own = own_name(name);
    let is_path = own.start > 0;
    let gap = |is_left_out: bool| if is_left_out { "…" } else { "" };
    let is_inside = is_path || !word.is_empty();
    let [before, behind] = [is_inside, own.end < name.len()].map(gap);
    let room = width.saturating_sub(display_width(before) + display_width(behind));
    let own = &name[own];
    let path = if is_path && display_width(own) + 2 <= room {
        "::"
    } else {
        ""
    };
    if display_width(own) <= room {
        return format!("{before}{path}{own}{behind}");
    }
    format!("{before}{}{behind}", without_middle(own, room))
}

/// The path with as many segments as fit, but no fewer than `least` of the last ones.
fn shortest_path(
    word: &str,
    segments: &[Cow<'_, str>],
    least: usize,
    fits: &dyn Fn(String) -> Option<String>,
) -> Option<String> {
    let (first, others) = segments.split_first()?;
    let most = others.len().saturating_sub(1);
    let last = |kept: usize| others[others.len() - kept..].join("::");
    let mut kept = (least..=most).rev();
    let with_first = kept.find_map(|kept| fits(format!("{word}{first}::{GAP}::{}", last(kept))));
    let can = others.len() >= least;
    with_first
        .or_else(|| fits(format!("{word}{GAP}::{}", last(least.min(others.len())))).filter(|_| can))
}

/// Where the function's own name stands in a name: its last segment, without arguments.
pub(super) fn own_name(name: &str) -> Range<usize> {
    if !of_text(name).has_arguments() {
        return 0..name.len();
    }
    let last = segments(name).pop().unwrap_or(name);
    let start = name.len() - last.len();
    let is_plain = !last.starts_with(['<', '{', '(']) && !last.starts_with("operator");
    let end = last.find(['<', '(']).filter(|_| is_plain);
    let own = end.map_or(last, |end| last[..end].trim_end_matches([':', ' ']));
    start..start + own.len()
}

/// A segment with what is in its brackets left out: `Vec<…>`, `f(…)`. Braces stay, as they hold the name of what
/// has no other, and of `<A as B>` the type: `<A…>`.
fn without_arguments(segment: &str) -> Cow<'_, str> {
    if let Some(inside) = segment.strip_prefix('<') {
        let is_end = |c: char| "<>( [,".contains(c);
        let start = inside
            .find(|c: char| c.is_alphabetic() || c == '_')
            .unwrap_or(0);
        let length = inside[start..].find(is_end).unwrap_or(inside.len() - start);
        let name = inside[..start + length].trim_start_matches(['&', ' ']);
        let mark = if inside.starts_with(name) { "" } else { "…" };
        return if segment.ends_with('>') && !name.is_empty() {
            Cow::Owned(format!("<{mark}{name}{GAP}>"))
        } else {
            Cow::Borrowed(segment)
        };
    }
    if !segment.contains(['<', '(']) || segment.starts_with("operator") {
        return Cow::Borrowed(segment);
    }
    let mut out = String::new();
    let (mut depth, mut before) = (0usize, ' ');
    for c in segment.chars() {
        let opens = matches!(c, '<' | '(');
        let closes = c == ')' || c == '>' && before != '-';
        depth = depth.saturating_sub(usize::from(closes));
        if depth == 0 {
            out.push(c);
        }
        if opens {
            if depth == 0 {
                out.push(GAP);
            }
            depth += 1;
        }
        before = c;
    }
    Cow::Owned(out)
}

/// Both ends of a text. The end of a name tells more than its start and gets more room.
fn without_middle(text: &str, width: usize) -> String {
    let kept = width.saturating_sub(1);
    let start = first_columns(text, kept * 2 / 5);
    let end = last_columns(&text[start.len()..], kept - display_width(start));
    format!("{start}{GAP}{end}")
}

/// The start of a text, with a mark where there was more.
pub fn without_end(text: &str, width: usize) -> Cow<'_, str> {
    if display_width(text) <= width {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!(
        "{}{GAP}",
        first_columns(text, width.saturating_sub(1))
    ))
}

/// The start of `text` that fits into `width` columns.
fn first_columns(text: &str, width: usize) -> &str {
    let mut room = width;
    let start = text.chars().take_while(|&c| takes(&mut room, c));
    &text[..start.map(char::len_utf8).sum()]
}

/// Returns the end of `text` that fits into `width` columns.
///
/// ```
/// use proftool::names::last_columns;
/// assert_eq!(last_columns("src/main.rs", 4), "n.rs");
/// assert_eq!(last_columns("構文", 3), "文");
/// ```
pub fn last_columns(text: &str, width: usize) -> &str {
    let mut room = width;
    let end = text.chars().rev().take_while(|&c| takes(&mut room, c));
    let end = &text[text.len() - end.map(char::len_utf8).sum::<usize>()..];
    // A combining character whose base is cut off would combine with what is written before it.
    end.trim_start_matches(|c| columns(c) == 0)
}

/// Takes the columns of `c` from `room`; false where there are too few.
fn takes(room: &mut usize, c: char) -> bool {
    let left = room.checked_sub(columns(c));
    *room = left.unwrap_or(0);
    left.is_some()
}

pub(super) fn columns(c: char) -> usize {
    c.width().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_keeps_its_start_and_its_arguments() {
        assert_eq!(without_end("f(a, b);", 8), "f(a, b);");
        assert_eq!(without_end("f(a, b);", 7), "f(a, b…");
        assert_eq!(without_end("構文(a)", 4), "構…");
        assert_eq!(without_end("f()", 0), "…");
    }
}
