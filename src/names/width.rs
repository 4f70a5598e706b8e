//! Names shortened to the available columns.

use std::borrow::Cow;
use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use super::GAP;
use super::brackets::segments;
use super::language::{ALTERNATIVE, of_text};
use crate::base::Language;

/// The minimum width of a name next to its marks and its place of declaration. With less room,
/// marks are left out, and name and place are shortened as one text.
pub const MIN_MARKED: usize = 6;
/// What stands for marks where the name would have less with them.
const MARKS_LEFT_OUT: &str = " (…)";
/// Where there is less, not even that stands behind a name.
const MIN_WITH_SIGN: usize = 8;

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

/// A name as it is written, to be fitted into columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written<'a> {
    /// The name. Parts of it can be left out.
    pub text: Cow<'a, str>,
    /// The number of bytes at its end that are the declaration, as ` (a.c:12)`.
    pub declaration: usize,
    /// The marks behind it, as ` (inlined)`: all of them are shown, or none.
    pub marks: Cow<'a, str>,
}

impl<'a, S: Into<Cow<'a, str>>> From<S> for Written<'a> {
    fn from(text: S) -> Written<'a> {
        Written {
            text: text.into(),
            ..Written::default()
        }
    }
}

impl Written<'_> {
    /// All of it.
    pub fn whole(&self) -> Cow<'_, str> {
        match &*self.marks {
            "" => Cow::Borrowed(&self.text),
            marks => Cow::Owned(format!("{}{marks}", self.text)),
        }
    }

    /// The number of columns that it takes.
    pub fn width(&self) -> usize {
        display_width(&self.text) + display_width(&self.marks)
    }

    /// The columns of what stands behind the name.
    pub fn width_behind(&self) -> usize {
        display_width(self.parts().1) + display_width(&self.marks)
    }

    /// The name, and the place of its declaration.
    pub(super) fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.text.len() - self.declaration)
    }

    /// The marks as they are shown in `width` columns: whole, or a sign that there are some, or
    /// none. Never parts of them, which would look like parts of the name.
    pub(super) fn shown_marks(&self, width: usize) -> &str {
        let room = width.saturating_sub(display_width(&self.marks));
        if room >= MIN_MARKED || self.marks.is_empty() {
            &self.marks
        } else if width >= MIN_WITH_SIGN {
            MARKS_LEFT_OUT
        } else {
            ""
        }
    }

    /// It in at most `width` columns: the name is [`shortened`]. Its declaration and the marks
    /// behind it stay whole where the name keeps six columns; else ` (…)` stands for the marks.
    ///
    /// ```
    /// use proftool::names::Written;
    /// let name = Written::from("alloc::vec::Vec::push");
    /// let marked = |marks: &'static str| Written { marks: marks.into(), ..name.clone() };
    /// assert_eq!(marked(" (inlined)").shortened(20), "…::push (inlined)");
    /// assert_eq!(marked(" <cycle 2> [171]").shortened(20), "…::Vec::push (…)");
    /// ```
    pub fn shortened(&self, width: usize) -> Cow<'_, str> {
        if self.width() <= width {
            return self.whole();
        }
        let (name, marks) = self.shortened_apart(width);
        Cow::Owned(name + marks)
    }

    /// The name, which is too long with its marks, and the marks, each as it is shown.
    pub(super) fn shortened_apart(&self, width: usize) -> (String, &str) {
        let marks = self.shown_marks(width);
        let width = width.saturating_sub(display_width(marks));
        let (name, place) = self.parts();
        let room = width.saturating_sub(display_width(place));
        if room >= MIN_MARKED && !place.is_empty() {
            return (format!("{}{place}", shortened(name, room)), marks);
        }
        (shortened(&self.text, width).into_owned(), marks)
    }
}

/// `text` in at most `width` columns. Of a name with segments, the ones between the first and the
/// last two are left out first, then the first one, then arguments, then the last but one, so that
/// the function's own name stays. Of what is left, and of other texts, the middle is left out.
///
/// ```
/// use proftool::names::shortened;
/// assert_eq!(shortened("alloc::vec::into_iter::Vec::push", 20), "alloc::…::Vec::push");
/// assert_eq!(shortened("alloc::vec::Vec::push", 14), "…::Vec::push");
/// assert_eq!(shortened("alloc::vec::Vec::push", 10), "…::push");
/// assert_eq!(shortened("de::from_slice::<alloc::Vec>", 22), "de::from_slice::<…>");
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
    Cow::Owned(shortened_name(text, width))
}

/// Where the start of a path may be left out: the places of the `::` before each segment but the
/// first, in bytes.
///
/// ```
/// use proftool::names::path_breaks;
/// assert_eq!(path_breaks("alloc::vec::Vec<a::b>::push"), [5, 10, 21]);
/// assert!(path_breaks("A$P.<init>(int)").is_empty());
/// ```
pub fn path_breaks(text: &str) -> Vec<usize> {
    let language = of_text(text);
    if matches!(language, Language::Several) || !language.has_arguments() {
        return Vec::new();
    }
    let name = text.strip_prefix("async ").unwrap_or(text);
    let mut segments = segments(name);
    segments.pop();
    let mut at = text.len() - name.len();
    let mut breaks = Vec::with_capacity(segments.len());
    for segment in segments {
        at += segment.len();
        breaks.push(at);
        at += "::".len();
    }
    breaks
}

/// The same of a text that is too long.
fn shortened_name(text: &str, width: usize) -> String {
    match of_text(text) {
        Language::Several => return first_alternative(text, width),
        language if !language.has_arguments() => {
            // JavaScript's names have their place behind them.
            let place = text.ends_with(')').then(|| text.rfind(" (")).flatten();
            let (name, place) = text.split_at(place.unwrap_or(text.len()));
            let room = width.saturating_sub(display_width(place));
            return match room {
                MIN_MARKED.. => without_middle(name, room) + place,
                _ => without_middle(text, width),
            };
        }
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

/// The first of several names, or its start: the end of another one behind it would look like a
/// name that is neither.
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

/// A segment with what is in its brackets left out: `Vec<…>`, `f(…)`. Braces stay, as they hold the
/// name of what has no other, and of `<A as B>` the type: `<A…>`.
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

    #[test]
    fn an_arrow_closes_no_bracket() {
        let name = "all::call::<fn(u8) -> alloc::vec::Vec<u8>>";
        assert_eq!(shortened(name, 16), "all::call::<…>");
    }
}
