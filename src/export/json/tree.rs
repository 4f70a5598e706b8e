//! The call tree: `direction`, `collapse`, `root|null`, `rows {none, direct, conservative,
//! full}|null`, `repeats {nodes, repeating}|null`, `roots [node]`; a node is `{name, module, label, level, total, direct, indirect,
//! in_only, stub, inlined, cut, inferred, total_max|null, children}`.
//!
//! `total` counts each sample that passes the node once. It is `direct`, what arrived by calls alone,
//! and `indirect`, what had gone through a collapsed call before it first arrived.
//!
//! A stub stands for a call that recursion was collapsed into; it has no counts, but `to_level`,
//! the level of the node above it that has them, and `passes`, the weight of the samples that went
//! through it. `total_max` is what `direct` and `indirect` together are at most; top down, the
//! outermost nodes of a function add up to no less than what its total is at most. `cut` is the weight of stacks that go on from the node but were not followed. `root`
//! is the function that stacks are looked at from, if not whole. `rows` tells, top down and where
//! stacks recurse, how many nodes and stubs each degree of collapsing gives; null for one that was not
//! counted to the end. `repeats` is what the degree was chosen by where none was asked for: of the
//! heaviest nodes of the tree that is not collapsed, those that repeat a function above them.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{string, total_max, view_head};
use crate::analysis::tree::{Collapse, Node, Repeats};
use crate::export::Advice;
use crate::view::Subject;
use crate::view::tree::{Direction, Tree};

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    tree: &Tree,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "tree", subject, advice)?;
    write!(
        out,
        "\"direction\":{},\"collapse\":{},\"root\":{},",
        string(match tree.direction {
            Direction::TopDown => "top-down",
            Direction::BottomUp => "bottom-up",
        }),
        string(tree.calls.collapse.name()),
        tree.root().map_or(Cow::Borrowed("null"), string)
    )?;
    match tree.options.rows {
        None => out.write_all(b"\"rows\":null,")?,
        Some(rows) => {
            let mut mark = "\"rows\":{";
            for (degree, rows) in Collapse::ALL.into_iter().zip(rows) {
                let rows = rows.map_or(Cow::Borrowed("null"), |rows| rows.to_string().into());
                write!(out, "{mark}{}:{rows}", string(degree.name()))?;
                mark = ",";
            }
            out.write_all(b"},")?;
        }
    }
    match tree.options.repeats {
        None => out.write_all(b"\"repeats\":null,")?,
        Some(Repeats { nodes, repeating }) => write!(
            out,
            "\"repeats\":{{\"nodes\":{nodes},\"repeating\":{repeating}}},"
        )?,
    }
    out.write_all(b"\"roots\":[")?;
    // The level of the last node, whose list of children is still open.
    let mut open = 0;
    for id in tree.nodes() {
        let node = tree.calls.nodes.at(id);
        if node.level <= open {
            close(out, open - node.level + 1)?;
            out.write_all(b",")?;
        }
        out.write_all(b"\n")?;
        open = node.level;
        let module = subject.module(node.function);
        write!(
            out,
            "{{\"name\":{},\"module\":{},\"label\":{},\"level\":{},",
            string(&subject.plain_name(node.function)),
            string(module),
            string(tree.name(id)),
            node.level
        )?;
        counts(out, tree, &node)?;
        if node.stub.is_none() {
            write!(out, "\"total_max\":{},", total_max(Some(tree.at_most(id))))?;
        }
        write!(out, "\"inlined\":{},\"children\":[", node.inlined)?;
    }
    close(out, open)?;
    out.write_all(b"]}\n")
}

fn counts(out: &mut dyn Write, tree: &Tree, node: &Node) -> io::Result<()> {
    match node.stub {
        Some(target) => write!(
            out,
            "\"stub\":true,\"to_level\":{},\"passes\":{},",
            tree.calls.nodes.at(target).level,
            node.passes
        ),
        None if node.in_code => write!(
            out,
            "\"total\":0,\"direct\":0,\"indirect\":0,\"in_only\":0,\"cut\":0,\"inferred\":0,\"stub\":false,\"origin\":\"code\","
        ),
        None => write!(
            out,
            "\"total\":{},\"direct\":{},\"indirect\":{},\"in_only\":{},\"cut\":{},\"inferred\":{},\"stub\":false,",
            node.weight(),
            node.direct,
            node.indirect,
            node.in_only,
            node.cut,
            node.inferred
        ),
    }
}

/// Closes `nodes` nodes, each with its list of children.
fn close(out: &mut dyn Write, nodes: u32) -> io::Result<()> {
    (0..nodes).try_for_each(|_| out.write_all(b"]}"))
}
