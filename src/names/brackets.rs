//! The brackets of names of C++ and Rust, and the paths outside of them.

/// The length of the bracketed group at the start of `text`. Arrows are no brackets.
pub(super) fn group(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => open.push(c),
            '>' if before == '-' || before == '=' => {}
            '>' | ')' | ']' | '}' => {
                let matching = match c {
                    '>' => '<',
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                if open.pop() != Some(matching) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        before = c;
    }
    None
}

/// `text` before and after the first `mark` that is in no bracket.
pub(super) fn split_outside<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let mut depth = 0i32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' => depth -= 1,
            ' ' if depth == 0 && text[at..].starts_with(mark) => {
                return Some((&text[..at], &text[at + mark.len()..]));
            }
            _ => {}
        }
        before = c;
    }
    None
}

/// The segments of a name: what stands between `::` outside of brackets. Arguments are part of the
/// segment before them. Arrows are no brackets.
pub fn segments(name: &str) -> Vec<&str> {
    let (mut depth, mut start, mut before) = (0usize, 0, ' ');
    let mut segments = Vec::new();
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && at >= start && at > 0 => {
                let rest = &name[at..];
                if rest.starts_with("::") && !rest.starts_with("::<") {
                    segments.push(&name[start..at]);
                    start = at + 2;
                }
            }
            _ => {}
        }
        before = c;
    }
    segments.push(&name[start..]);
    segments
}
