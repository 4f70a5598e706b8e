//! The order of each layer: cells next to those that they are linked with, so that few arcs cross.

/// How often all layers are sorted.
const SWEEPS: usize = 16;

/// The cells of a layout: first the nodes, then the joints of arcs that pass layers.
pub(super) struct Rows {
    /// The cells of each layer from left to right.
    pub rows: Vec<Vec<usize>>,
    /// The cells of each arc from top to bottom: a node, joints, a node.
    pub chains: Vec<Vec<usize>>,
    /// The layer of each cell.
    pub ranks: Vec<usize>,
    /// For each cell those above and those below that it is linked with.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl Rows {
    /// The cells, in each layer in order of their numbers. Each arc leads to a lower layer.
    pub fn new(ranks: &[usize], arcs: &[(usize, usize)]) -> Rows {
        let mut ranks = ranks.to_vec();
        let chains: Vec<Vec<usize>> = (arcs.iter())
            .map(|&(from, to)| {
                let mut chain = vec![from];
                for rank in ranks[from] + 1..ranks[to] {
                    chain.push(ranks.len());
                    ranks.push(rank);
                }
                chain.push(to);
                chain
            })
            .collect();
        let layers = ranks.iter().max().map_or(0, |most| most + 1);
        let mut rows = vec![Vec::new(); layers];
        for (cell, &rank) in ranks.iter().enumerate() {
            rows[rank].push(cell);
        }
        let mut above = vec![Vec::new(); ranks.len()];
        let mut below = vec![Vec::new(); ranks.len()];
        for link in chains.iter().flat_map(|chain| chain.windows(2)) {
            below[link[0]].push(link[1]);
            above[link[1]].push(link[0]);
        }
        Rows {
            rows,
            chains,
            ranks,
            above,
            below,
        }
    }

    /// Sorts the layers down and up by turns, each cell to the mean place of those that it is
    /// linked with in the layer before, and keeps the best order that was seen.
    pub fn sort(&mut self) {
        let mut best = (self.crossings(), self.rows.clone());
        for sweep in 0..SWEEPS {
            let is_down = sweep % 2 == 0;
            let mut layers: Vec<usize> = (0..self.rows.len()).collect();
            if !is_down {
                layers.reverse();
            }
            for pair in layers.windows(2) {
                let neighbours = if is_down { &self.above } else { &self.below };
                let places = places(&self.rows[pair[0]], self.ranks.len());
                let own = places_of(&self.rows[pair[1]]);
                let mut keyed: Vec<(f64, usize)> = own
                    .map(|(place, cell)| {
                        let linked = &neighbours[cell];
                        let sum: f64 = linked.iter().map(|&other| places[other]).sum();
                        let mean = sum / linked.len().max(1) as f64;
                        (if linked.is_empty() { place } else { mean }, cell)
                    })
                    .collect();
                // The sort is stable: of equals, the order stays.
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.rows[pair[1]] = keyed.into_iter().map(|(_, cell)| cell).collect();
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
    }

    /// How many pairs of links cross.
    fn crossings(&self) -> u64 {
        let between = |pair: &[Vec<usize>]| {
            let places = places(&pair[1], self.ranks.len());
            let ends = pair[0].iter().flat_map(|&cell| {
                let mut ends: Vec<usize> = (self.below[cell].iter())
                    .map(|&below| places[below] as usize)
                    .collect();
                ends.sort_unstable();
                ends
            });
            inversions(ends, pair[1].len())
        };
        self.rows.windows(2).map(between).sum()
    }
}

/// The place of each cell in its layer.
fn places(row: &[usize], cells: usize) -> Vec<f64> {
    let mut places = vec![0.0; cells];
    for (place, cell) in places_of(row) {
        places[cell] = place;
    }
    places
}

fn places_of(row: &[usize]) -> impl Iterator<Item = (f64, usize)> {
    row.iter()
        .enumerate()
        .map(|(place, &cell)| (place as f64, cell))
}

/// How many pairs of these numbers below `end` stand in the wrong order. Counts by a binary indexed
/// tree (Fenwick, 1994).
fn inversions(numbers: impl Iterator<Item = usize>, end: usize) -> u64 {
    let mut counts = vec![0u64; end + 1];
    let (mut found, mut seen) = (0, 0);
    for number in numbers {
        let mut at = number + 1;
        let mut up_to = 0;
        while at > 0 {
            up_to += counts[at];
            at &= at - 1;
        }
        found += seen - up_to;
        seen += 1;
        at = number + 1;
        while at <= end {
            counts[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_are_pairs_in_the_wrong_order() {
        assert_eq!(inversions([0, 1, 2].into_iter(), 3), 0);
        assert_eq!(inversions([2, 1, 1, 0].into_iter(), 3), 5);
    }

    #[test]
    fn arcs_that_need_not_cross_do_not() {
        // Two callers with two callees each, named crosswise, and one that is called over a layer.
        let ranks = [0, 0, 1, 1, 1, 1, 2];
        let arcs = [(0, 3), (0, 5), (1, 2), (1, 4), (0, 6), (3, 6)];
        let mut rows = Rows::new(&ranks, &arcs);
        assert!(rows.crossings() > 0);
        rows.sort();
        assert_eq!(rows.crossings(), 0);
        assert_eq!(rows.chains[4].len(), 3);
    }
}
