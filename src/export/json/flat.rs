//! The flat profile: `functions [{name, module, self, total|null, total_max|null, calls, cycle,
//! samples, inferred, model, label, linkage_name|null, address|null, decl_file|null,
//! decl_line|null}]`. `model` is there only where no stack shows the total: `propagated` where
//! gprof's propagation estimates it, `none` where it is not known. Then `total_max` is null. Where
//! calls were counted there are `recursive_calls|null, calls_at_least, self_per_call|null,
//! total_per_call|null` as well: `calls` are those by other functions, null if they were not
//! counted; with `calls_at_least` there may have been more. Self weight is divided by all calls,
//! the total by those of other functions. With intervals there are `self_half_width` and
//! `total_half_width`: half the widths of the 95 % intervals, in the event's unit.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::layout::list;
use super::{Identity, TotalMax, view_head};
use crate::analysis::called::Called;
use crate::export::Advice;
use crate::view::Subject;
use crate::view::basis;
use crate::view::flat::{Flat, Row};

// `calls` and `cycle` are not known from samples alone.
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
    #[serde(flatten)]
    called: Option<CalledItem>,
    cycle: Option<usize>,
    samples: u64,
    inferred: u64,
    #[serde(flatten)]
    intervals: Option<IntervalItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'static str>,
    #[serde(flatten)]
    identity: Identity<'a>,
}

#[derive(Serialize)]
struct IntervalItem {
    self_half_width: u64,
    total_half_width: u64,
}

// What is known of a function's calls, where calls were counted.
#[derive(Serialize)]
pub(super) struct CalledItem {
    recursive_calls: Option<u64>,
    calls_at_least: bool,
    self_per_call: Option<f64>,
    total_per_call: Option<f64>,
}

impl CalledItem {
    fn of(row: &Row, called: &Called) -> CalledItem {
        let per = |weight: u64, calls: Option<u64>| calls.map(|n| weight as f64 / n as f64);
        let is_known = called.by_others.is_some() || called.recursive.is_some();
        let is_measured = row.known == basis::Total::Measured;
        CalledItem {
            recursive_calls: called.recursive,
            calls_at_least: called.is_least && is_known,
            self_per_call: per(row.self_weight, called.self_divisor),
            total_per_call: per(row.total, called.total_divisor.filter(|_| is_measured)),
        }
    }
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
            calls: row.called.and_then(|called| called.by_others),
            called: row
                .called
                .as_ref()
                .map(|called| CalledItem::of(row, called)),
            cycle: None,
            samples: row.samples,
            inferred: row.inferred,
            intervals: row
                .half_widths
                .map(|[self_half_width, total_half_width]| IntervalItem {
                    self_half_width,
                    total_half_width,
                }),
            model: row.known.model(),
            identity: Identity::of(subject, row.function, &row.name.text),
        }
    }
}

/// Writes the document.
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
