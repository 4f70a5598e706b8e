//! Lines of several parts; the last parts are dropped if there is little room.

use std::borrow::Cow;

use proftool::base::printable;
use proftool::names::{display_width, shortened};

// As many parts as there is room for, from the first; the first one is shortened if need be.
pub fn joined(parts: &[String], between: &str, room: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for part in parts {
        let part: Cow<str> = printable(part);
        let length = display_width(&part);
        if line.is_empty() {
            line = shortened(&part, room).into_owned();
            used = display_width(&line);
        } else if used + display_width(between) + length <= room {
            line.push_str(between);
            line.push_str(&part);
            used += display_width(between) + length;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn parts_without_room_are_left_out_and_the_first_is_shortened() {
        let parts = ["abcdef", "too long for it", "gh"].map(String::from);
        assert_eq!(joined(&parts, ", ", 40), "abcdef, too long for it, gh");
        assert_eq!(joined(&parts, ", ", 10), "abcdef, gh");
        assert_eq!(joined(&parts, ", ", 4), "a…ef");
        assert_eq!(joined(&parts, ", ", 1), "…");
        assert_eq!(joined(&["a\x1b".to_owned()], "", 9), "a\\x1b");
        assert_eq!(joined(&[], ", ", 9), "");
    }
}
