//! The flat profile: `functions [{name, module, self, total, total_max, calls, cycle, samples,
//! inferred, label, linkage_name, address|null, decl_file|null, decl_line|null}]`. `total_max` is what the total may be at most: more than it where stacks were cut.

use std::io::{self, Write};

use super::{identity, list, string, view_head};
use crate::view::Subject;
use crate::view::flat::{Flat, Row};

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, subject: &Subject, flat: &Flat) -> io::Result<()> {
    view_head(out, "flat", subject)?;
    out.write_all(b"\"functions\":")?;
    list(out, flat.rows.iter(), |out, row| {
        fields(out, subject, row)?;
        out.write_all(b"}")
    })?;
    out.write_all(b"}\n")
}

/// Writes a function without the closing brace. `calls` and `cycle` are not known from samples
/// alone.
pub(super) fn fields(out: &mut dyn Write, subject: &Subject, row: &Row) -> io::Result<()> {
    write!(
        out,
        "{{\"name\":{},\"module\":{},\"self\":{},\"total\":{},\"total_max\":{},\"calls\":null,\"cycle\":null,\"samples\":{},\"inferred\":{}",
        string(&subject.plain_name(row.function)),
        string(&row.module),
        row.self_weight,
        row.total,
        row.total_max,
        row.samples,
        row.inferred
    )?;
    identity(out, subject, row.function, &row.name)
}
