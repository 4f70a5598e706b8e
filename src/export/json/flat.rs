//! The flat profile: `functions [{name, module, self, total|null, total_max|null, calls, cycle, samples,
//! inferred, model, label, linkage_name, address|null, decl_file|null, decl_line|null}]`. `model` is
//! there only where no stack shows the total: `propagated` where gprof's propagation estimates it,
//! `none` where it is not known. Then `total_max` is null.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::layout::list;
use super::{Identity, TotalMax, view_head};
use crate::export::Advice;
use crate::view::Subject;
use crate::view::basis;
use crate::view::flat::{Flat, Row};

/// A function. `calls` and `cycle` are not known from samples alone.
#[derive(Serialize)]
pub(super) struct FunctionItem<'a> {
    name: Cow<'a, str>,
    module: &'a str,
    #[serde(rename = "self")]
    self_weight: u64,
    total: Total,
    #[serde(flatten)]
    total_max: TotalMax,
    calls: Option<u64>,
    cycle: Option<usize>,
    samples: u64,
    inferred: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'static str>,
    #[serde(flatten)]
    identity: Identity<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Total {
    Measured(u64),
    Estimated(f64),
    Unknown,
}

impl<'a> FunctionItem<'a> {
    pub(super) fn of(subject: &Subject<'a>, row: &'a Row) -> FunctionItem<'a> {
        FunctionItem {
            name: subject.plain_name(row.function),
            module: &row.module,
            self_weight: row.self_weight,
            total: match row.known {
                basis::Total::Measured => Total::Measured(row.total),
                basis::Total::Estimated(total) => Total::Estimated(total),
                basis::Total::Unknown => Total::Unknown,
            },
            total_max: row.total_max.into(),
            calls: None,
            cycle: None,
            samples: row.samples,
            inferred: row.inferred,
            model: row.known.model(),
            identity: Identity::of(subject, row.function, &row.name),
        }
    }
}

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
    let items = flat.rows.iter().map(|row| FunctionItem::of(subject, row));
    list(out, items)?;
    out.write_all(b"}\n")
}
