//! Comments that a change of the line width has broken.
//!
//! ```text
//! /// up to 30            a number on two lines
//! /// 000 times a second
//! // of the first // of the second      two lines that became one
//! ```

use super::tree::Tree;

/// The text of a line that holds nothing but a comment, with its marker.
fn comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let text = line.strip_prefix("//")?;
    let marker = 2 + usize::from(text.starts_with(['/', '!']));
    Some(line.split_at(marker))
}

/// Whether a number goes on from the end of one line to the begin of the next.
fn splits_a_number(line: &str, next: &str) -> bool {
    let word = next.split_whitespace().next().unwrap_or_default();
    let group = word.trim_end_matches(['.', ',', ';', ':', ')']);
    let is_group = group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    is_group && line.ends_with(|last: char| last.is_ascii_digit())
}

/// Each broken comment with its place.
pub fn broken(tree: &Tree) -> Vec<String> {
    let mut told = Vec::new();
    for (file, text) in tree.sources() {
        let lines: Vec<&str> = text.lines().collect();
        let mut is_code = false;
        for (index, line) in lines.iter().enumerate() {
            let Some((marker, text)) = comment(line) else {
                is_code = false;
                continue;
            };
            is_code ^= text.trim_start().starts_with("```");
            if is_code {
                continue;
            }
            let next = lines.get(index + 1).and_then(|line| comment(line));
            let next = next.filter(|(other, _)| *other == marker);
            if next.is_some_and(|(_, next)| splits_a_number(text, next)) {
                told.push(format!("{file}:{}: a number on two lines", index + 1));
            }
            let text = format!(" {}", text.trim_start());
            if text.contains(" // ") || text.contains(" /// ") || text.contains(" //! ") {
                told.push(format!("{file}:{}: two comments on one line", index + 1));
            }
        }
    }
    told
}

#[test]
fn no_comment_was_broken_by_wrapping() {
    assert_eq!(broken(&Tree::of_this_crate()), Vec::<String>::new());
}

#[test]
fn a_broken_comment_is_reported() {
    let page = "\
        /// The most is 16\n\
        /// 777 of them; of 16\n\
        /// there are few, and 1024\n\
        // // are no group.\n\
        // One. // Two.\n\
        /// ```text\n\
        /// // in an example\n\
        /// ```\n\
        fn f() {} // 16\n";
    assert_eq!(
        broken(&Tree::new(&[("src/a.rs", page)])),
        [
            "src/a.rs:1: a number on two lines",
            "src/a.rs:4: two comments on one line",
            "src/a.rs:5: two comments on one line",
        ]
    );
}
