//! One function: `rule|null`, `function {name, linkage_name, module, self, total, total_max|null, root,
//! recursive, model, label, address|null, decl_file|null, decl_line|null}`,
//! `callers [{name, module, weight, recursive, inferred, label}]`,
//! `descendants [{name, module, weight, recursive, inferred, label}]`,
//! `call_sites [{callee, module, file|null, line|null, weight, inlined, label}]|null`,
//! `called_from [{caller, module, file|null, line|null, weight, inlined, label}]|null`,
//! `lines [{file, line, weight}]`, `depths [{depth, weight}]`.
//!
//! `model` is there only without stacks: `propagated`, as total, root,
//! callers and descendants are estimated by gprof's propagation from counted calls. Then `rule` and
//! `total_max` are null, `recursive` says whether counted calls lead back, and there are no depths.
//!
//! `root` is the weight of the stacks on which the function is outermost, which no caller has. A
//! descendant is `recursive` if some stack leads from it back to the function, a caller if some stack
//! leads from the function to it; either is `inferred` if no stack was recorded with the call, but
//! missing frames restored from the code have it. `depths` tells how often the function stands on a stack; their
//! weights add up to the total.
//!
//! `call_sites` are the calls in the function by line, `called_from` the calls of it by line of the
//! caller; null where the input has no lines of calls, as folded stacks. A sample counts once for a
//! line and the function at the other end, with all that is further in. `inlined` are those whose
//! calls on that line were all inlined.

use std::io::{self, Write};

use super::{declaration, list, string, total_max, view_head};
use crate::analysis::detail::{Basis, Neighbour};
use crate::export::Advice;
use crate::view::Subject;
use crate::view::detail::{DetailView, Listed};

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &DetailView,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "detail", subject, advice)?;
    let detail = &view.detail;
    let function = &subject.profile.functions[detail.function];
    let linkage_name = function.linkage_name.as_deref().unwrap_or(&function.name);
    let measured = detail.basis == Basis::Stacks;
    let model = if measured {
        ""
    } else {
        ",\"model\":\"propagated\""
    };
    let rule = measured.then(|| string(detail.rule.name()));
    write!(
        out,
        "\"rule\":{},\n\"function\":{{\"name\":{},\"linkage_name\":{},\"module\":{},\"self\":{},\"total\":{},\"total_max\":{},\"root\":{},\"recursive\":{}{model},\"label\":{}",
        rule.as_deref().unwrap_or("null"),
        string(&subject.plain_name(detail.function)),
        string(linkage_name),
        string(subject.module(detail.function)),
        detail.self_weight,
        detail.total,
        total_max(view.total_max),
        detail.outermost,
        detail.recurses(),
        string(view.name(detail.function))
    )?;
    match function.address {
        Some(address) => write!(out, ",\"address\":{address}")?,
        None => out.write_all(b",\"address\":null")?,
    }
    declaration(out, function)?;
    out.write_all(b"}")?;
    let neighbour = |out: &mut dyn Write, other: &Neighbour| {
        write!(
            out,
            "{{\"name\":{},\"module\":{},\"weight\":{},\"recursive\":{},\"inferred\":{},\"label\":{}}}",
            string(&subject.plain_name(other.function)),
            string(subject.module(other.function)),
            other.weight,
            other.recursive,
            other.inferred,
            string(view.name(other.function))
        )
    };
    out.write_all(b",\n\"callers\":")?;
    list(out, view.callers.iter(), neighbour)?;
    out.write_all(b",\n\"descendants\":")?;
    list(out, view.descendants.iter(), neighbour)?;
    let by_line = |out: &mut dyn Write, other: &str, listed: &Option<Listed>| {
        let Some(listed) = listed else {
            return out.write_all(b"null");
        };
        list(out, listed.sites.iter(), |out, site| {
            write!(
                out,
                "{{\"{other}\":{},\"module\":{},",
                string(&subject.plain_name(site.function)),
                string(subject.module(site.function))
            )?;
            match site.line.map(|line| &subject.profile.lines[line]) {
                Some(line) => {
                    write!(
                        out,
                        "\"file\":{},\"line\":{},",
                        string(&line.file),
                        line.line
                    )?;
                }
                None => out.write_all(b"\"file\":null,\"line\":null,")?,
            }
            write!(
                out,
                "\"weight\":{},\"inlined\":{},\"label\":{}}}",
                site.weight,
                site.inlined,
                string(view.name(site.function))
            )
        })
    };
    out.write_all(b",\n\"call_sites\":")?;
    by_line(out, "callee", &view.call_sites)?;
    out.write_all(b",\n\"called_from\":")?;
    by_line(out, "caller", &view.called_from)?;
    out.write_all(b",\n\"lines\":")?;
    list(out, view.lines.iter(), |out, row| {
        let line = &subject.profile.lines[row.line];
        write!(
            out,
            "{{\"file\":{},\"line\":{},\"weight\":{}}}",
            string(&line.file),
            line.line,
            row.weight
        )
    })?;
    out.write_all(b",\n\"depths\":")?;
    list(out, detail.depths.iter(), |out, (depth, weight)| {
        write!(out, "{{\"depth\":{depth},\"weight\":{weight}}}")
    })?;
    out.write_all(b"}\n")
}
