//! The static call graph: `functions [{name, linkage_name, module, address|null, size, imported,
//! indirect_calls, indirect_jumps, cycle|null}]`, `arcs [{from, to, kind, sites}]` with the kinds
//! `call`, `tail` and `import`, `indirect_sites`, `cycles [[index]]`.
//!
//! `from`, `to` and the members of cycles index `functions`, `cycle` indexes `cycles`. An
//! imported function has no address, and its module is `[import]`. `indirect_sites` counts the
//! calls whose callees are not known; `indirect_jumps`, which are mostly the tables of switches,
//! are not in it.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{list, string, view_head};
use crate::view::Subject;
use crate::view::callgraph::CallGraphView;

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, subject: &Subject, view: &CallGraphView) -> io::Result<()> {
    view_head(out, "callgraph", subject)?;
    let nullable = |number: Option<u64>| match number {
        Some(number) => Cow::Owned(number.to_string()),
        None => Cow::Borrowed("null"),
    };
    out.write_all(b"\"functions\":")?;
    list(out, view.functions.iter(), |out, &id| {
        let function = &subject.profile.functions[id];
        let node = &view.graph.nodes[id];
        let linkage_name = function.linkage_name.as_deref().unwrap_or(&function.name);
        write!(
            out,
            "{{\"name\":{},\"linkage_name\":{},\"module\":{},\"address\":{},\"size\":{},\"imported\":{},",
            string(view.name(id)),
            string(linkage_name),
            string(subject.module(id)),
            nullable(function.address),
            node.size,
            node.imported
        )?;
        write!(
            out,
            "\"indirect_calls\":{},\"indirect_jumps\":{},\"cycle\":{}}}",
            node.indirect_calls,
            node.indirect_jumps,
            nullable(view.cycle(id).map(|cycle| cycle as u64))
        )
    })?;
    out.write_all(b",\n\"arcs\":")?;
    list(out, view.arcs.iter(), |out, arc| {
        write!(
            out,
            "{{\"from\":{},\"to\":{},\"kind\":{},\"sites\":{}}}",
            view.index(arc.from),
            view.index(arc.to),
            string(arc.kind.name()),
            arc.sites
        )
    })?;
    write!(
        out,
        ",\n\"indirect_sites\":{},\"indirect_jumps\":{},\n\"cycles\":",
        view.indirect_calls(),
        view.indirect_jumps()
    )?;
    list(out, view.cycles(), |out, members| {
        out.write_all(b"[")?;
        for (i, member) in members.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(out, "{comma}{}", view.index(*member))?;
        }
        out.write_all(b"]")
    })?;
    out.write_all(b"}\n")
}
