//! A call tree in a page, as columns in the order of the tree, a parent before its children.
//!
//! | column | of each node |
//! |---|---|
//! | first | the number of nodes, that of nodes left out, and the width of roots left out |
//! | up | how many levels it is above a child of the node before it |
//! | function | its place in the page's table |
//! | marks | 1 a stub, 2 restored from the code, 4 inlined |
//! | own | the weight of the samples that end in it; of a stub what went through it |
//! | more | how much more passes it than ends in or under it, as recursion was folded into it |
//! | left | the width of children left out; of a stub how many levels up it leads |
//!
//! The width of a node is the weight of the samples that end in or under it: these add up in every
//! degree of collapsing, as each sample ends in one node.

use std::io;

use crate::analysis::threads::timeline::EndSum;
use crate::analysis::tree::{CallTree, NodeId};
use crate::base::IdVec;
use crate::profile::FunctionId;
use crate::view::label;

use super::packed::{Columns, divisor};

// Whatever room there is. Lighter nodes are left out, with all that is under them.
pub(super) const NODES: usize = 100_000;

const STUB: u64 = 1;
const INFERRED: u64 = 2;
const INLINED: u64 = 4;

pub(super) fn packed(
    tree: &CallTree,
    kept: Option<&IdVec<NodeId, bool>>,
    place: &dyn Fn(FunctionId) -> u64,
) -> io::Result<String> {
    let (widths, _) = tree.flame_weights();
    let is_kept = |id: NodeId| kept.is_none_or(|kept| kept[id]);
    let mut left: IdVec<NodeId, u64> = match kept {
        Some(_) => IdVec::filled(0, tree.nodes.len()),
        None => IdVec::new(),
    };
    for (id, node) in tree.nodes.enumerate() {
        if let (false, Some(parent)) = (is_kept(id), node.parent)
            && is_kept(parent)
        {
            left[parent] += widths[id];
        }
    }
    let ids = || tree.nodes.ids().filter(|&id| is_kept(id));
    let nodes = || ids().map(|id| (id, tree.nodes.at(id)));
    let count = ids().count();
    let mut columns = Columns::new();
    columns.number(count as u64)?;
    columns.number((tree.nodes.len() - count) as u64)?;
    let roots = tree.roots().filter(|&id| !is_kept(id));
    columns.number(roots.map(|id| widths[id]).sum())?;
    let mut before = 0;
    columns.column(nodes().map(|(_, node)| {
        let up = u64::from(before + 1 - node.level);
        before = node.level;
        up
    }))?;
    columns.column(nodes().map(|(_, node)| place(node.function)))?;
    columns.column(nodes().map(|(_, node)| {
        let mark = |is: bool, bit| if is { bit } else { 0 };
        mark(node.stub.is_some(), STUB)
            | mark(label::is_inferred(node.inferred, node.weight()), INFERRED)
            | mark(node.inlined, INLINED)
    }))?;
    columns.column(nodes().map(|(_, node)| node.in_only + node.passes))?;
    columns.column(nodes().map(|(id, node)| match node.stub {
        Some(_) => 0,
        None => node.weight().saturating_sub(widths[id]),
    }))?;
    columns.column(nodes().map(|(id, node)| match node.stub {
        Some(target) => u64::from(node.level - tree.nodes.at(target).level),
        None => left.get(id).copied().unwrap_or(0),
    }))?;
    columns.finish()
}

// No more than `most`, and only those heavier than `least`; `None` for all. A parent stands for at
// least as much as its children, so that the heaviest nodes are a tree.
pub(super) fn kept(
    tree: &CallTree,
    most: usize,
    least: Option<u64>,
) -> Option<IdVec<NodeId, bool>> {
    let mut least = least;
    if tree.nodes.len() > most {
        let mut standings: Vec<u64> = tree.nodes.iter().map(|node| node.standing()).collect();
        let heaviest_left_out = standings.len() - most - 1;
        let (_, &mut standing, _) = standings.select_nth_unstable(heaviest_left_out);
        least = least.max(Some(standing));
    }
    let least = least?;
    let kept: Vec<bool> = tree
        .nodes
        .iter()
        .map(|node| node.standing() > least)
        .collect();
    Some(kept.into())
}

// The number of each node where sums by time name it: twice its place among those kept, from 1 on,
// and one more for what is left out under it; 0 stands for all roots.
pub(super) fn numbers(tree: &CallTree, kept: Option<&IdVec<NodeId, bool>>) -> IdVec<NodeId, u32> {
    let mut numbers: IdVec<NodeId, u32> = IdVec::new();
    let mut next = 1;
    for (id, node) in tree.nodes.enumerate() {
        let is_kept = kept.is_none_or(|kept| kept[id]);
        numbers.push(match is_kept {
            true => next * 2,
            false => node.parent.map_or(0, |parent| numbers[parent]) | 1,
        });
        next += u32::from(is_kept);
    }
    numbers
}

// What ends in nodes by time: the greatest common divisor of the weights, by which they are
// divided; the number of sums; and of each the step from the node before, the bucket, and the
// weight.
pub(super) fn times(sums: &[EndSum]) -> io::Result<String> {
    let unit = sums.iter().fold(0, |unit, sum| divisor(unit, sum.weight));
    let unit = unit.max(1);
    let mut columns = Columns::new();
    columns.number(unit)?;
    columns.number(sums.len() as u64)?;
    let mut before = 0;
    columns.column(sums.iter().map(|sum| {
        let step = sum.end - before;
        before = sum.end;
        u64::from(step)
    }))?;
    columns.column(sums.iter().map(|sum| u64::from(sum.bucket)))?;
    columns.column(sums.iter().map(|sum| sum.weight / unit))?;
    columns.finish()
}
