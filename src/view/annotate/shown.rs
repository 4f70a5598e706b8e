//! Which rows a page has: those with weight, and some around them.

use super::Options;
use crate::view::flat::reaches;

/// Marks the rows that are shown, of `weights`: self weight and total of each row, which are shares
/// of these.
pub(super) fn rows(
    weights: &[(u64, u64)],
    (of_own, of_total): (u64, u64),
    options: &Options,
) -> Vec<bool> {
    let mut chosen: Vec<usize> = (0..weights.len())
        .filter(|&row| {
            let (own, sum) = weights[row];
            (own > 0 && reaches(own, of_own, options.min))
                || (sum > 0 && reaches(sum, of_total, options.min))
        })
        .collect();
    if let Some(limit) = options.limit {
        chosen.sort_by_key(|&row| {
            let (own, sum) = weights[row];
            std::cmp::Reverse((sum.max(own), own))
        });
        chosen.truncate(limit);
        chosen.sort_unstable();
    }
    let context = options.context;
    if context == usize::MAX {
        return vec![true; weights.len()];
    }
    let mut is_shown = vec![false; weights.len()];
    let mut next = 0;
    for row in chosen {
        let from = row.saturating_sub(context).max(next);
        let to = row
            .saturating_add(context)
            .saturating_add(1)
            .min(weights.len());
        for shown in is_shown.get_mut(from..to).unwrap_or_default() {
            *shown = true;
        }
        next = next.max(to);
    }
    is_shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_weight_are_shown_with_those_around_them() {
        let mut weights = vec![(0, 0); 10];
        weights[0] = (1, 1);
        weights[5] = (0, 3);
        weights[9] = (9, 9);
        let shown = |limit, min, context| {
            let options = Options {
                limit,
                min,
                context,
                ..Options::default()
            };
            let rows = rows(&weights, (10, 13), &options).into_iter().enumerate();
            rows.filter_map(|(row, is_shown)| is_shown.then_some(row))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(None, 0.0, 1), [0, 1, 4, 5, 6, 8, 9]);
        assert_eq!(shown(None, 20.0, 0), [5, 9]);
        assert_eq!(shown(Some(1), 0.0, 2), [7, 8, 9]);
        assert_eq!(shown(None, 0.0, usize::MAX).len(), 10);
    }
}
