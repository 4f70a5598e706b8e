//! The flat profile: `functions [{name, module, self, total|null, total_max|null, calls, cycle, samples,
//! inferred, model, label, linkage_name, address|null, decl_file|null, decl_line|null}]`. `model` is
//! there only where no stack shows the total: `propagated` where gprof's propagation estimates it,
//! `none` where it is not known. Then `total_max` is null.

use std::io::{self, Write};

use super::{identity, list, string, total_max, view_head};
use crate::export::Advice;
use crate::view::Subject;
use crate::view::basis::Total;
use crate::view::flat::{Flat, Row};

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    flat: &Flat,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "flat", subject, advice)?;
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
    let total = match row.known {
        Total::Measured => row.total.to_string(),
        Total::Estimated(total) => total.to_string(),
        Total::Unknown => "null".into(),
    };
    write!(
        out,
        "{{\"name\":{},\"module\":{},\"self\":{},\"total\":{total},\"total_max\":{},\"calls\":null,\"cycle\":null,\"samples\":{},\"inferred\":{}",
        string(&subject.plain_name(row.function)),
        string(&row.module),
        row.self_weight,
        total_max(row.total_max),
        row.samples,
        row.inferred
    )?;
    if let Some(model) = row.known.model() {
        write!(out, ",\"model\":{}", string(model))?;
    }
    identity(out, subject, row.function, &row.name)
}
