//! The selected line of a list: it is found again when lines move, and the list is scrolled so that
//! it is visible.

use super::listing::{Key, Line};

#[derive(Clone, Debug, Default)]
pub struct Cursor {
    // `None` until a line is selected: then the first one is shown as selected.
    key: Option<Key>,
    // Whether it is the last line, whichever that is.
    is_last: bool,
    index: usize,
    // The first line on the screen.
    top: usize,
}

impl Cursor {
    pub fn index(&self) -> usize {
        self.index
    }

    pub fn top(&self) -> usize {
        self.top
    }

    // When lines are there.
    pub fn pin(&mut self, key: Key) {
        self.key = Some(key);
        self.is_last = false;
    }

    // Finds the chosen line among these; where it is gone, the place stays.
    pub fn follow(&mut self, lines: &[Line], first: usize, room: usize) {
        let found = |key| lines.iter().position(|line| line.key == key);
        self.index = match self.key {
            _ if self.is_last => lines.len().saturating_sub(1),
            None => first,
            Some(key) => found(key).unwrap_or(self.index),
        };
        self.fit(lines.len(), room);
    }

    // The first line is selected, whatever it is.
    pub fn release(&mut self, lines: &[Line], first: usize, room: usize) {
        self.key = None;
        self.is_last = false;
        self.top = 0;
        self.follow(lines, first, room);
    }

    // Whichever line is the last.
    pub fn end(&mut self, lines: &[Line], room: usize) {
        self.go(lines, usize::MAX, room);
        self.is_last = true;
    }

    // The selected line becomes the first on the screen, if possible.
    pub fn raise(&mut self, lines: usize, room: usize) {
        self.top = self.index;
        self.fit(lines, room);
    }

    pub fn up(&mut self, lines: &[Line], steps: usize, room: usize) {
        self.go(lines, self.index.saturating_sub(steps), room);
    }

    pub fn down(&mut self, lines: &[Line], steps: usize, room: usize) {
        self.go(lines, self.index.saturating_add(steps), room);
    }

    fn go(&mut self, lines: &[Line], index: usize, room: usize) {
        self.index = index.min(lines.len().saturating_sub(1));
        self.is_last = false;
        self.key = lines.get(self.index).map(|line| line.key);
        self.fit(lines.len(), room);
    }

    // The selected line is visible, and no space is left that lines could fill.
    pub fn fit(&mut self, lines: usize, room: usize) {
        let room = room.max(1);
        self.index = self.index.min(lines.saturating_sub(1));
        let least = (self.index + 1).saturating_sub(room);
        let most = self.index.min(lines.saturating_sub(room));
        self.top = self.top.clamp(least.min(most), most.max(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(keys: &[Key]) -> Vec<Line> {
        let line = |&key: &Key| Line::heading(key, String::new());
        keys.iter().map(line).collect()
    }

    #[test]
    fn a_selected_line_stays_selected_and_visible() {
        let mut cursor = Cursor::default();
        let all = lines(&[10, 11, 12, 13, 14]);
        cursor.follow(&all, 0, 2);
        assert_eq!((cursor.index(), cursor.top()), (0, 0));
        // Nobody has chosen it: the first line is another one now.
        cursor.follow(&lines(&[11, 10]), 0, 2);
        assert_eq!(cursor.index(), 0);
        cursor.down(&all, 3, 2);
        assert_eq!((cursor.index(), cursor.top()), (3, 2));
        cursor.follow(&lines(&[13, 10, 11, 12, 14]), 0, 2);
        assert_eq!((cursor.index(), cursor.top()), (0, 0));
        // It is gone, and comes back.
        cursor.follow(&lines(&[10, 11]), 0, 2);
        assert_eq!(cursor.index(), 0);
        cursor.follow(&all, 0, 2);
        assert_eq!(cursor.index(), 3);
        cursor.end(&all, 2);
        cursor.follow(&lines(&[1, 2, 3, 4, 5, 6, 7, 8]), 0, 2);
        assert_eq!((cursor.index(), cursor.top()), (7, 6));
        cursor.release(&all, 1, 2);
        assert_eq!((cursor.index(), cursor.top()), (1, 0));
    }

    #[test]
    fn any_height_and_number_of_lines_is_handled() {
        let mut cursor = Cursor::default();
        for count in [0u64, 1, 2, 7] {
            let all = lines(&(0..count).collect::<Vec<_>>());
            for room in [0, 1, 3, 100] {
                cursor.down(&all, 5, room);
                cursor.up(&all, 1, room);
                cursor.down(&all, usize::MAX, room);
                assert!(cursor.index() < all.len().max(1));
                let last = cursor.top() + room.max(1);
                assert!(cursor.top() <= cursor.index() && cursor.index() < last);
            }
        }
    }
}
