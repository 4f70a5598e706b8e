//! The call tree: `direction`, `collapse`, `roots [node]`; a node is `{name, module, level,
//! direct, indirect, in_only, stub, inlined, cut, children}`.
//!
//! A stub stands for a call that recursion was collapsed into; it has no counts, but `to_level`,
//! the level of the node that has them. `cut` is the weight of stacks that go on from the node
//! but were not followed.

use std::io::{self, Write};

use super::{string, view_head};
use crate::analysis::tree::Node;
use crate::view::Subject;
use crate::view::tree::{Direction, Tree};

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, subject: &Subject, tree: &Tree) -> io::Result<()> {
    view_head(out, "tree", subject)?;
    write!(
        out,
        "\"direction\":{},\"collapse\":{},\"roots\":[",
        string(match tree.direction {
            Direction::TopDown => "top-down",
            Direction::BottomUp => "bottom-up",
        }),
        string(tree.calls.collapse.name())
    )?;
    // The level of the last node, whose list of children is still open.
    let mut open = 0;
    for id in tree.nodes() {
        let node = &tree.calls.nodes[id];
        if node.level <= open {
            close(out, open - node.level + 1)?;
            out.write_all(b",")?;
        }
        out.write_all(b"\n")?;
        open = node.level;
        let module = subject.module(node.function);
        write!(
            out,
            "{{\"name\":{},\"module\":{},\"level\":{},",
            string(tree.name(id)),
            string(module),
            node.level
        )?;
        counts(out, node)?;
        write!(out, "\"inlined\":{},\"children\":[", node.inlined)?;
    }
    close(out, open)?;
    out.write_all(b"]}\n")
}

fn counts(out: &mut dyn Write, node: &Node) -> io::Result<()> {
    match node.stub {
        Some(level) => write!(out, "\"stub\":true,\"to_level\":{level},"),
        None => write!(
            out,
            "\"direct\":{},\"indirect\":{},\"in_only\":{},\"cut\":{},\"stub\":false,",
            node.direct, node.indirect, node.in_only, node.cut
        ),
    }
}

/// Closes `nodes` nodes, each with its list of children.
fn close(out: &mut dyn Write, nodes: u32) -> io::Result<()> {
    (0..nodes).try_for_each(|_| out.write_all(b"]}"))
}
