//! Sorts rows by a small number in linear time (counting sort).

/// The rows in order of `key`, which is below `keys`; rows of the same key stay in their order (H.
/// Seward's counting sort, 1954). There are fewer rows than `u32::MAX`.
pub(super) fn ordered_by<T: Copy>(rows: Vec<T>, keys: usize, key: impl Fn(T) -> usize) -> Vec<T> {
    let Some(&any) = rows.first() else {
        return rows;
    };
    // Where the next row of each key goes.
    let mut next = vec![0u32; keys + 1];
    for &row in &rows {
        next[key(row) + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut ordered = vec![any; rows.len()];
    for row in rows {
        let at = &mut next[key(row)];
        ordered[*at as usize] = row;
        *at += 1;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::ordered_by;

    #[test]
    fn rows_are_sorted_and_equal_rows_keep_their_order() {
        let rows = vec![(2, 'a'), (0, 'b'), (2, 'c'), (1, 'd'), (0, 'e')];
        let ordered = ordered_by(rows, 4, |row| row.0);
        assert_eq!(ordered, [(0, 'b'), (0, 'e'), (1, 'd'), (2, 'a'), (2, 'c')]);
        assert!(ordered_by(Vec::<usize>::new(), 0, |row| row).is_empty());
    }
}
