//! Arrows from jumps to where they lead, beside a list of instructions.
//!
//! ```text
//!    ╭─  jne    1139        each jump whose two ends are on the list has a lane; the shortest
//!   ╭┼─  jmp    1150        are the nearest to the text
//!   │╰▶  mov    %eax,%ebx
//!   ╰─▶  ret
//! ```

use std::collections::BTreeMap;

/// The most lanes; jumps that find none have no arrow.
const LANES: usize = 6;

/// What stands before each of `rows` rows; `jumps` has the row of each jump and that of its target.
pub(super) fn beside(rows: usize, jumps: &[(usize, usize)]) -> Vec<String> {
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
        return vec![String::new(); rows];
    }
    // The lanes from the left to the right, and the head of the arrow.
    let width = lanes.len() + 1;
    let mut drawn = vec![[' '; LANES + 1]; rows];
    for &(first, last, _, lane) in &arrows {
        for row in &mut drawn[first + 1..last] {
            row[lanes.len() - 1 - lane] = '│';
        }
    }
    for &(first, last, from, lane) in &arrows {
        let column = lanes.len() - 1 - lane;
        for (at, corner) in [(first, '╭'), (last, '╰')] {
            let row = &mut drawn[at];
            row[column] = match (row[column], corner) {
                (' ', corner) => corner,
                ('─', '╭') => '┬',
                ('─', _) => '┴',
                _ => '├',
            };
            for cell in &mut row[column + 1..width - 1] {
                *cell = match *cell {
                    ' ' => '─',
                    '│' => '┼',
                    '╭' => '┬',
                    '╰' => '┴',
                    other => other,
                };
            }
            let head = &mut row[width - 1];
            if at != from {
                *head = '▶';
            } else if *head == ' ' {
                *head = '─';
            }
        }
    }
    let text = |row: [char; LANES + 1]| row[..width].iter().chain(&[' ']).collect();
    drawn.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::beside;

    #[test]
    fn arrows_lead_from_jumps_to_targets_and_cross() {
        assert_eq!(beside(3, &[]), ["", "", ""]);
        assert_eq!(beside(3, &[(0, 2)]), ["╭─ ", "│  ", "╰▶ "]);
        assert_eq!(beside(2, &[(1, 0)]), ["╭▶ ", "╰─ "]);
        let crossing = beside(4, &[(0, 2), (1, 3)]);
        assert_eq!(crossing, [" ╭─ ", "╭┼─ ", "│╰▶ ", "╰─▶ "]);
        // A jump that is a target, too.
        assert_eq!(beside(3, &[(1, 2), (2, 0)]), ["╭─▶ ", "│╭─ ", "╰┴▶ "]);
        // What leads nowhere or to itself has no arrow.
        assert_eq!(beside(2, &[(0, 0), (0, 7)]), ["", ""]);
    }

    #[test]
    fn any_number_of_jumps_keeps_the_width() {
        let jumps: Vec<(usize, usize)> = (0..100).map(|row| (row, 199 - row)).collect();
        let rows = beside(200, &jumps);
        let width = rows[0].chars().count();
        assert!(width <= 8 && rows.iter().all(|row| row.chars().count() == width));
    }
}
