//! A text over the view.

use proftool::names::display_width;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Paint, put};

// What stands behind a key in the help begins in this column.
const INDENT: usize = 13;

// Draws the text from this line on, as far back as it must be for the end to be seen; returns the
// number of its lines. One line of the text may stand out: the one that was looked for.
pub fn draw(
    text: &str,
    (place, found): (usize, Option<usize>),
    paint: Paint,
    buffer: &mut Buffer,
    body: Rect,
) -> usize {
    let width = usize::from(body.width);
    let lines: Vec<(bool, String)> = (text.lines().enumerate())
        .flat_map(|(at, line)| {
            let is_found = found == Some(at);
            wrapped(line, width)
                .into_iter()
                .map(move |line| (is_found, line))
        })
        .collect();
    // The last line of the room says where one is, and how to leave.
    let room = usize::from(body.height.saturating_sub(1));
    let top = place.min(lines.len().saturating_sub(room));
    for (row, (is_found, line)) in (body.y..).zip(lines.iter().skip(top).take(room)) {
        let is_heading = line.starts_with(|c: char| c.is_uppercase()) && !line.contains(' ');
        let style = if *is_found {
            paint.chosen()
        } else if is_heading || line.ends_with(':') {
            paint.bold()
        } else {
            Style::new()
        };
        put(buffer, body.x, row, line, style);
    }
    if body.height > 0 {
        let last = (top + room).min(lines.len());
        let foot = format!(
            "lines {} to {last} of {}; Esc closes",
            (top + 1).min(last),
            lines.len()
        );
        put(buffer, body.x, body.bottom() - 1, &foot, paint.faint());
    }
    lines.len()
}

// Continuation lines are indented to the second column.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    if display_width(line) <= width {
        return vec![line.to_owned()];
    }
    let indent = if line.starts_with(' ') {
        INDENT.min(width / 2)
    } else {
        0
    };
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let length = display_width(word.trim_end());
        if used + length > width && used > indent {
            lines.push(" ".repeat(indent));
            used = indent;
        }
        if let Some(last) = lines.last_mut() {
            last.push_str(word);
        }
        used += display_width(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_lines_continue_under_their_second_column() {
        assert_eq!(wrapped("short", 10), ["short"]);
        let lines = wrapped("  key        some words that are too long", 26);
        assert_eq!(
            lines,
            [
                "  key        some words ",
                "             that are too ",
                "             long"
            ]
        );
        assert_eq!(wrapped("a bb ccc", 3), ["a ", "bb ", "ccc"]);
        assert_eq!(wrapped("long", 1), ["long"]);
    }
}
