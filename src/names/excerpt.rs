//! The most distinctive parts of a text that is too long.

use std::ops::Range;

use super::GAP;
use super::width::columns;

/// How much of what two names share stands before the place where they differ.
const SHARED: usize = 8;
/// From this width on there is room for the start of a name, too.
const LONG: usize = 24;

/// The parts of `text` around `places`, which are bytes of it, and as much of `own` as fits into
/// `room` columns, with a gap wherever something is left out.
///
/// First comes one character at each place, then up to half of the room for `own`, then all parts
/// grow by turns. Longer than `room` only if not even a character of each place fits.
pub(super) fn of(text: &str, places: &[usize], own: Range<usize>, room: usize) -> String {
    let mut excerpt = Excerpt::new(text, room);
    let mut windows: Vec<Window> = Vec::new();
    for &place in places {
        let at = excerpt.place(place);
        excerpt.show(at);
        windows.push(Window::new(at, SHARED));
    }
    let [first, last] = [own.start, own.end.saturating_sub(1)].map(|at| excerpt.place(at));
    let mut of_name = Window::new(last, usize::MAX);
    let half = excerpt.used + room / 2;
    if excerpt.try_to_show(last) {
        while of_name.left > first && excerpt.used < half && excerpt.widen_left(&mut of_name) {}
        windows.push(of_name);
    }
    if room >= LONG && excerpt.try_to_show(0) {
        windows.push(Window::new(0, 0));
    }
    loop {
        let used = excerpt.used;
        for window in &mut windows {
            excerpt.widen_right(window);
            excerpt.widen_left(window);
        }
        if excerpt.used == used {
            break;
        }
    }
    excerpt.text()
}

/// Which characters of a text are shown.
struct Excerpt<'t> {
    text: &'t str,
    /// Where each character starts, with its columns. Combining ones belong to the one before them.
    characters: Vec<(usize, usize)>,
    is_shown: Vec<bool>,
    /// The columns that are taken, gaps included.
    used: usize,
    room: usize,
}

/// A run of characters that grows to both sides.
struct Window {
    left: usize,
    right: usize,
    /// How far it may still grow to the left.
    before: usize,
}

impl Window {
    fn new(at: usize, before: usize) -> Window {
        Window {
            left: at,
            right: at,
            before,
        }
    }
}

impl<'t> Excerpt<'t> {
    fn new(text: &'t str, room: usize) -> Excerpt<'t> {
        let mut characters: Vec<(usize, usize)> = Vec::new();
        for (at, c) in text.char_indices() {
            if columns(c) > 0 || at == 0 {
                characters.push((at, columns(c)));
            }
        }
        Excerpt {
            text,
            is_shown: vec![false; characters.len()],
            characters,
            // One gap for all that is not shown.
            used: 1,
            room,
        }
    }

    /// The number of the character at this byte; of the last one for the end of the text.
    fn place(&self, at: usize) -> usize {
        let next = self.characters.partition_point(|&(start, _)| start <= at);
        next.saturating_sub(1)
    }

    /// Whether this character is left out; no for what is outside of the text.
    fn is_hidden(&self, at: Option<usize>) -> bool {
        let shown = at.and_then(|at| self.is_shown.get(at));
        shown.is_some_and(|shown| !shown)
    }

    /// The columns that are taken once this character is shown, too.
    fn used_with(&self, at: usize) -> usize {
        let gaps = usize::from(self.is_hidden(at.checked_sub(1)))
            + usize::from(self.is_hidden(Some(at + 1)));
        let width = self.characters.get(at).map_or(0, |&(_, width)| width);
        // It divides a gap, shortens one or fills it.
        self.used + width + gaps - 1
    }

    fn show(&mut self, at: usize) {
        if self.is_hidden(Some(at)) {
            self.used = self.used_with(at);
            self.is_shown[at] = true;
        }
    }

    /// Shows a character if there is room for it; whether it is shown.
    fn try_to_show(&mut self, at: usize) -> bool {
        if self.is_hidden(Some(at)) && self.used_with(at) <= self.room {
            self.show(at);
        }
        self.is_shown.get(at) == Some(&true)
    }

    /// Moves the left end to the next character that was not shown; whether there was room for it.
    fn widen_left(&mut self, window: &mut Window) -> bool {
        while window.before > 0 && window.left > 0 {
            let was_shown = self.is_shown[window.left - 1];
            if !self.try_to_show(window.left - 1) {
                return false;
            }
            window.left -= 1;
            window.before -= 1;
            if !was_shown {
                return true;
            }
        }
        false
    }

    /// Moves the right end to the next character that was not shown.
    fn widen_right(&mut self, window: &mut Window) {
        while window.right + 1 < self.is_shown.len() {
            let was_shown = self.is_shown[window.right + 1];
            if !self.try_to_show(window.right + 1) {
                return;
            }
            window.right += 1;
            if !was_shown {
                return;
            }
        }
    }

    /// What is shown, with gaps.
    fn text(&self) -> String {
        let mut out = String::new();
        let ends = self.characters.iter().skip(1).map(|&(start, _)| start);
        let ends = ends.chain([self.text.len()]);
        for ((&(start, _), end), &is_shown) in self.characters.iter().zip(ends).zip(&self.is_shown)
        {
            if is_shown {
                out.push_str(&self.text[start..end]);
            } else if !out.ends_with(GAP) {
                out.push(GAP);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_and_what_differs_stay() {
        let name = "namespace_0::Type3<Arg1>::method_10";
        let own = 26..name.len();
        assert_eq!(&name[own.clone()], "method_10");
        let shown = [12, 16, 30].map(|room| of(name, &[10], own.clone(), room));
        assert_eq!(
            shown,
            [
                "…_0:…thod_10",
                "…e_0::…method_10",
                "namespace_0::Typ…1>::method_10"
            ]
        );
    }

    #[test]
    fn wide_and_combining_characters_stay_whole() {
        let name = "構文解析器::e\u{301}tat";
        assert_eq!(of(name, &[0], 17..name.len(), 8), "構…:e\u{301}tat");
    }
}
