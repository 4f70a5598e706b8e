//! Cycles, which are the same on both sides where they share functions.
//!
//! A cycle of the base may be two of the new side, or one more function may take part in it. Cycles
//! with a function in common are one set, so the sets share none and each figure is of one:
//!
//! ```text
//!   base  {expr, term, factor}           set  {expr, term, factor, unary}
//!   new   {expr, term}  {factor, unary}
//! ```

use super::row::Row;
use super::run::ArcFigures;
use crate::callgraph::cycles_of;

/// A set of rows that share cycles.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    /// Each row, and on which sides it is in a cycle with others of the set.
    pub members: Vec<(usize, [bool; 2])>,
}

/// Returns the sets of rows that are in a cycle with each other on either side.
pub(super) fn cycles(rows: &[Row]) -> Vec<Cycle> {
    let of_sides = [0, 1].map(|side| cycles_of(rows.len(), arcs(rows, side)));
    // What is next to each other in a cycle is in one set.
    let pairs = of_sides.iter().flatten().flat_map(|cycle| cycle.windows(2));
    let both_ways = pairs.flat_map(|two| [(two[0], two[1]), (two[1], two[0])]);
    let is_in = of_sides.each_ref().map(|cycles| {
        let mut is_in = vec![false; rows.len()];
        let members = cycles.iter().flatten();
        members.for_each(|member| is_in[*member as usize] = true);
        is_in
    });
    let sets = cycles_of(rows.len(), both_ways.collect()).into_iter();
    let members = |set: Vec<u32>| {
        let places = set.into_iter().map(|place| place as usize);
        let members = places.map(|place| (place, is_in.each_ref().map(|it| it[place])));
        members.collect()
    };
    sets.map(members).map(|members| Cycle { members }).collect()
}

// Caller and callee of each call of a side.
fn arcs(rows: &[Row], side: usize) -> Vec<(u32, u32)> {
    let mut arcs = Vec::new();
    for (callee, row) in rows.iter().enumerate() {
        for (caller, runs) in &row.callers {
            let is_made = |run: &ArcFigures| run.through > 0.0 || run.calls.unwrap_or(0) > 0;
            if runs[side].iter().any(is_made) {
                arcs.push((*caller as u32, callee as u32));
            }
        }
    }
    arcs
}
