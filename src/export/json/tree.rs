//! The call tree: `direction`, `collapse`, `root|null`, `rows {none, direct, conservative,
//! full}|null`, `repeats {nodes, repeating}|null`, `roots [node]`; a node is `{name, module, label,
//! linkage_name, address|null, level, total, direct, indirect, in_only, stub, inlined, cut,
//! inferred, total_max|null, children}`.
//!
//! `total` counts each sample that passes the node once. It is `direct`, what arrived by calls
//! alone, and `indirect`, what had gone through a collapsed call before it first arrived.
//!
//! A stub stands for a call that recursion was collapsed into; it has no counts, but `to_level`,
//! the level of the node above it that has them, and `passes`, the weight of the samples that went
//! through it. `total_max` is what `direct` and `indirect` together are at most; top down, the
//! outermost nodes of a function add up to no less than what its total is at most. `cut` is the
//! weight of stacks that go on from the node but were not followed. `root` is the function that
//! stacks are looked at from, if not whole. `rows` tells, top down and where stacks recurse, how
//! many nodes and stubs each degree of collapsing gives; null for one that was not counted to the
//! end. `repeats` is the reason for the degree where none was requested: of the heaviest nodes of
//! the tree that is not collapsed, those that repeat a function above them.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::layout::fields;
use super::{RowFields, TotalMax, linkage_name, view_head};
use crate::analysis::tree::{Collapse, Direction, Node, NodeId};
use crate::export::Advice;
use crate::view::Subject;
use crate::view::tree::Tree;

#[derive(Serialize)]
struct TreeFields<'a> {
    direction: &'static str,
    collapse: &'static str,
    root: Option<&'a str>,
    rows: Option<DegreeRows>,
    repeats: Option<RepeatFields>,
}

// Nodes and stubs at each degree of collapsing.
struct DegreeRows([Option<usize>; Collapse::ALL.len()]);

impl Serialize for DegreeRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let degrees = Collapse::ALL.map(|degree| degree.name());
        serializer.collect_map(degrees.into_iter().zip(self.0))
    }
}

#[derive(Serialize)]
struct RepeatFields {
    nodes: usize,
    repeating: usize,
}

#[derive(Serialize)]
struct NodeFields<'a> {
    name: Cow<'a, str>,
    module: &'a str,
    label: &'a str,
    linkage_name: &'a str,
    address: Option<u64>,
    level: u32,
    #[serde(flatten)]
    counts: Counts,
    inlined: bool,
    #[serde(flatten)]
    row: Option<RowFields<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Counts {
    Stub {
        stub: bool,
        to_level: u32,
        passes: u64,
    },
    Node {
        total: u64,
        direct: u64,
        indirect: u64,
        in_only: u64,
        cut: u64,
        inferred: u64,
        stub: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<&'static str>,
        #[serde(flatten)]
        total_max: TotalMax,
    },
}

/// Writes the document.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    tree: &Tree,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "tree", subject, advice)?;
    let about = TreeFields {
        direction: match tree.summary.direction {
            Direction::TopDown => "top-down",
            Direction::BottomUp => "bottom-up",
        },
        collapse: tree.summary.calls.collapse.name(),
        root: tree.root(),
        rows: tree.summary.rows.map(DegreeRows),
        repeats: tree.summary.repeats.map(|repeats| RepeatFields {
            nodes: repeats.nodes,
            repeating: repeats.repeating,
        }),
    };
    fields(out, &about)?;
    out.write_all(b",\"roots\":[")?;
    // The levels of the nodes whose lists of children are still open. Nodes that are folded into a
    // line are not written, so that levels may be missing.
    let mut open: Vec<u32> = Vec::new();
    for id in tree.nodes() {
        let node = tree.node(id);
        let around = open.partition_point(|&level| level < node.level);
        if around < open.len() {
            close(out, open.len() - around)?;
            out.write_all(b",")?;
        }
        out.write_all(b"\n{")?;
        open.truncate(around);
        open.push(node.level);
        let function = &subject.profile.functions[node.function];
        let about = NodeFields {
            name: subject.plain_name(node.function),
            module: subject.module(node.function),
            label: tree.name(id),
            linkage_name: linkage_name(function),
            address: function.address,
            level: node.level,
            counts: counts(tree, id, &node),
            inlined: node.inlined,
            row: RowFields::of(subject, node.function),
        };
        fields(out, &about)?;
        out.write_all(b",\"children\":[")?;
    }
    close(out, open.len())?;
    out.write_all(b"]}\n")
}

fn counts(tree: &Tree, id: NodeId, node: &Node) -> Counts {
    if let Some(target) = node.stub {
        return Counts::Stub {
            stub: true,
            to_level: tree.node(target).level,
            passes: node.passes,
        };
    }
    // What no stack shows counts for nothing.
    let count = |value: u64| if node.in_code { 0 } else { value };
    Counts::Node {
        total: count(node.weight()),
        direct: count(node.direct),
        indirect: count(node.indirect),
        in_only: count(node.in_only),
        cut: count(node.cut),
        inferred: count(node.inferred),
        stub: false,
        origin: node.in_code.then_some("code"),
        total_max: Some(tree.summary.at_most(id)).into(),
    }
}

// Each with its list of children.
fn close(out: &mut dyn Write, nodes: usize) -> io::Result<()> {
    (0..nodes).try_for_each(|_| out.write_all(b"]}"))
}
