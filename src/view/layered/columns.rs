//! The horizontal place of each cell: near those that it is linked with, in the order of its layer.

use super::order::Rows;
use super::{Arc, Size, Spacing};

/// How often all layers are moved.
const SWEEPS: usize = 24;
/// The width of a joint, and how far apart two of them are, as a part of the distance of nodes.
const JOINT: f64 = 4.0;
const NEAR: f64 = 0.5;
/// The horizontal distance of an arc that leads up from the middle of a node, where arcs that lead
/// down end.
pub(super) const ASIDE: f64 = 12.0;

/// The cells with what they belong to.
pub(super) struct Joined<'a> {
    pub rows: &'a Rows,
    pub sizes: &'a [Size],
    pub arcs: &'a [Arc],
    pub is_upward: &'a [bool],
}

impl Joined<'_> {
    /// The extent of a cell; a joint has hardly any.
    pub fn size(&self, cell: usize) -> Size {
        self.sizes.get(cell).copied().unwrap_or(Size {
            width: JOINT,
            height: 0.0,
        })
    }

    /// The horizontal distances of the ends of an arc from the centres of their cells.
    pub fn asides(&self, arc: usize) -> (f64, f64) {
        let Arc { from, to } = &self.arcs[arc];
        if self.is_upward[arc] {
            (to.x + ASIDE, from.x + ASIDE)
        } else {
            (from.x, to.x)
        }
    }
}

/// A link as seen from one of its cells.
#[derive(Clone, Copy)]
struct Link {
    /// The other cell.
    other: usize,
    /// How far to the right of it this cell would be if the link were vertical.
    shift: f64,
    /// How much a slant is to be avoided: most between joints, as the eye follows long arcs.
    weight: f64,
}

/// The centres of all cells.
pub(super) fn columns(joined: &Joined, spacing: &Spacing) -> Vec<f64> {
    let rows = &joined.rows.rows;
    let cells = joined.rows.ranks.len();
    let mut above: Vec<Vec<Link>> = vec![Vec::new(); cells];
    let mut below: Vec<Vec<Link>> = vec![Vec::new(); cells];
    for (arc, chain) in joined.rows.chains.iter().enumerate() {
        let (first, last) = joined.asides(arc);
        for (place, link) in chain.windows(2).enumerate() {
            let is_joint = |cell: usize| cell >= joined.sizes.len();
            let joints = link.iter().filter(|&&cell| is_joint(cell)).count();
            let weight = [1.0, 2.0, 8.0][joints];
            let begin = if place == 0 { first } else { 0.0 };
            let end = if place + 2 == chain.len() { last } else { 0.0 };
            below[link[0]].push(Link {
                other: link[1],
                shift: end - begin,
                weight,
            });
            above[link[1]].push(Link {
                other: link[0],
                shift: begin - end,
                weight,
            });
        }
    }
    let mut x = vec![0.0; cells];
    for row in rows {
        settle(joined, spacing, row, &mut x, |_| (0.0, 1.0));
    }
    for sweep in 0..SWEEPS {
        let is_down = sweep % 2 == 0;
        // At last a cell looks both ways, so that neither end of an arc is slanted for the other
        // one.
        let is_both = sweep + 4 >= SWEEPS;
        for at in 0..rows.len() {
            let row = &rows[if is_down { at } else { rows.len() - 1 - at }];
            let before = x.clone();
            settle(joined, spacing, row, &mut x, |cell| {
                let (up, down): (&[Link], &[Link]) = (&above[cell], &below[cell]);
                let (up, down) = match (is_both, is_down) {
                    (true, _) => (up, down),
                    (_, true) => (up, &[][..]),
                    _ => (&[][..], down),
                };
                let links = || up.iter().chain(down);
                let weight: f64 = links().map(|link| link.weight).sum();
                let sum: f64 = links()
                    .map(|link| link.weight * (before[link.other] + link.shift))
                    .sum();
                if weight > 0.0 {
                    (sum / weight, weight)
                } else {
                    // A small weight lets others push it aside.
                    (before[cell], 0.1)
                }
            });
        }
    }
    x
}

/// Puts the cells of a row as near as can be to where they want to be, by weighted squares, without
/// changing their order or coming too near: with the distances taken off, places only have to be in
/// order, which is isotonic regression (pool adjacent violators; Ayer and others, 1955).
fn settle(
    joined: &Joined,
    spacing: &Spacing,
    row: &[usize],
    x: &mut [f64],
    wanted: impl Fn(usize) -> (f64, f64),
) {
    struct Pool {
        mean: f64,
        weight: f64,
        cells: usize,
    }
    let mut pools: Vec<Pool> = Vec::new();
    let mut offsets: Vec<f64> = Vec::with_capacity(row.len());
    for (place, &cell) in row.iter().enumerate() {
        let offset = match place.checked_sub(1).map(|before| row[before]) {
            Some(before) => {
                let is_joint = |cell: usize| cell >= joined.sizes.len();
                let near = is_joint(before) || is_joint(cell);
                let gap = spacing.nodes * if near { NEAR } else { 1.0 };
                let widths = joined.size(before).width + joined.size(cell).width;
                offsets[place - 1] + widths / 2.0 + gap
            }
            None => 0.0,
        };
        offsets.push(offset);
        let (mean, weight) = wanted(cell);
        let mut pool = Pool {
            mean: mean - offset,
            weight,
            cells: 1,
        };
        while let Some(before) = pools.pop_if(|before| before.mean >= pool.mean) {
            let weight = before.weight + pool.weight;
            pool = Pool {
                mean: (before.mean * before.weight + pool.mean * pool.weight) / weight,
                weight,
                cells: before.cells + pool.cells,
            };
        }
        pools.push(pool);
    }
    let means = (pools.iter()).flat_map(|pool| std::iter::repeat_n(pool.mean, pool.cells));
    for ((&cell, offset), mean) in row.iter().zip(offsets).zip(means) {
        x[cell] = mean + offset;
    }
}
