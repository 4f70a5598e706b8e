//! Arrows from jumps to where they lead, beside a list of instructions.
//!
//! ```text
//!    ╭─  jne    1139        each jump whose two ends are on the list has a lane; the shortest
//!   ╭┼─  jmp    1150        are the nearest to the text
//!   │╰▶  mov    %eax,%ebx
//!   ╰─▶  ret
//! ```

use std::collections::BTreeMap;

use crate::view::table::Lines;

/// The most lanes; jumps that find none have no arrow.
const LANES: usize = 6;

/// What stands before each of `rows` rows; `jumps` has the row of each jump and that of its target.
pub(super) fn beside(rows: usize, jumps: &[(usize, usize)]) -> Vec<Vec<Lines>> {
    let mut by_length: Vec<(usize, usize, usize)> = jumps
        .iter()
        .map(|&(from, to)| (from.min(to), from.max(to), from))
        .filter(|&(first, last, _)| first < last && last < rows)
        .collect();
    by_length.sort_by_key(|&(first, last, from)| (last - first, first, from));
    by_length.dedup();
    // By lane: the last row of each arrow, by its first.
    let mut lanes: Vec<BTreeMap<usize, usize>> = Vec::new();
    let mut arrows = Vec::new();
    for (first, last, from) in by_length {
        let is_free = |lane: &BTreeMap<usize, usize>| {
            let before = lane.range(..=last).next_back();
            before.is_none_or(|(_, &end)| end < first)
        };
        let lane = lanes.iter().position(is_free);
        let lane = match lane {
            Some(lane) => lane,
            None if lanes.len() < LANES => {
                lanes.push(BTreeMap::new());
                lanes.len() - 1
            }
            None => continue,
        };
        lanes[lane].insert(first, last);
        arrows.push((first, last, from, lane));
    }
    if lanes.is_empty() {
        return vec![Vec::new(); rows];
    }
    // The lanes from the left to the right, the head of the arrow, and a space.
    let head = lanes.len();
    let mut drawn = vec![vec![Lines::default(); head + 2]; rows];
    for (first, last, from, lane) in arrows {
        let column = head - 1 - lane;
        for (at, row) in drawn[first..=last].iter_mut().enumerate() {
            let at = first + at;
            row[column].up |= at > first;
            row[column].down |= at < last;
            if at > first && at < last {
                continue;
            }
            row[column].right = true;
            for lines in &mut row[column + 1..=head] {
                (lines.left, lines.right) = (true, true);
            }
            row[head].is_head |= at != from;
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::{Lines, beside};

    fn drawn(rows: &[&str]) -> Vec<Vec<Lines>> {
        let lines = |c: char| Lines {
            up: "│╰├┼┴".contains(c),
            down: "│╭├┼┬".contains(c),
            left: "─▶┼┴┬".contains(c),
            right: "─▶┼┴┬╭╰├".contains(c),
            is_head: c == '▶',
        };
        rows.iter()
            .map(|row| row.chars().map(lines).collect())
            .collect()
    }

    #[test]
    fn arrows_lead_from_jumps_to_targets_and_cross() {
        assert_eq!(beside(3, &[]), drawn(&["", "", ""]));
        assert_eq!(beside(3, &[(0, 2)]), drawn(&["╭─ ", "│  ", "╰▶ "]));
        assert_eq!(beside(2, &[(1, 0)]), drawn(&["╭▶ ", "╰─ "]));
        let crossing = beside(4, &[(0, 2), (1, 3)]);
        assert_eq!(crossing, drawn(&[" ╭─ ", "╭┼─ ", "│╰▶ ", "╰─▶ "]));
        // A jump that is a target, too.
        assert_eq!(
            beside(3, &[(1, 2), (2, 0)]),
            drawn(&["╭─▶ ", "│╭─ ", "╰┴▶ "])
        );
        // What leads nowhere or to itself has no arrow.
        assert_eq!(beside(2, &[(0, 0), (0, 7)]), drawn(&["", ""]));
    }

    #[test]
    fn any_number_of_jumps_keeps_the_width() {
        let jumps: Vec<(usize, usize)> = (0..100).map(|row| (row, 199 - row)).collect();
        let rows = beside(200, &jumps);
        let width = rows[0].len();
        assert!(width <= 8 && rows.iter().all(|row| row.len() == width));
    }
}
