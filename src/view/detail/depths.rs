//! Depths of recursion, put together where there are too many for a page.

/// Depths that are listed one by one; more are put together by powers of two.
const DEPTHS: usize = 12;

/// First depth, last depth and weight of each line of the table: all depths, or 1, 2, 3 to 4, 5 to
/// 8 and so on where there are too many.
pub(super) fn steps(depths: &[(u32, u64)]) -> Vec<(u32, u32, u64)> {
    if depths.len() <= DEPTHS {
        return depths
            .iter()
            .map(|&(depth, weight)| (depth, depth, weight))
            .collect();
    }
    let mut steps: Vec<(u32, u32, u64)> = Vec::new();
    for &(depth, weight) in depths {
        let last = depth.checked_next_power_of_two().unwrap_or(u32::MAX);
        match steps.last_mut() {
            Some(step) if step.1 == last => step.2 += weight,
            _ => steps.push((last / 2 + 1, last, weight)),
        }
    }
    if let (Some(step), Some(&(deepest, _))) = (steps.last_mut(), depths.last()) {
        step.1 = deepest;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::steps;

    #[test]
    fn many_depths_are_merged_without_loss() {
        let few = [(1, 5), (7, 2)];
        assert_eq!(steps(&few), [(1, 1, 5), (7, 7, 2)]);
        let many: Vec<(u32, u64)> = (1..=100).map(|depth| (depth, 1)).collect();
        let expected = [
            (1, 1, 1),
            (2, 2, 1),
            (3, 4, 2),
            (5, 8, 4),
            (9, 16, 8),
            (17, 32, 16),
            (33, 64, 32),
            (65, 100, 36),
        ];
        assert_eq!(steps(&many), expected);
    }
}
