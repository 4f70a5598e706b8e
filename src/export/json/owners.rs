//! Time by crate: `owners [{name, kind, weight, samples, total}]`, the heaviest first, and
//! `through_project`. `kind` is `project`, `library`, `standard`, `kernel`, or `cut` for the stacks
//! that are cut before any frame of a project or library. `weight` adds up to the total of the
//! document. `total` is the weight of the samples with the owner's code on the stack, each counted
//! once; null for cut stacks. `through_project` is that of all of the project's code together.

use std::io::{self, Write};

use serde::Serialize;

use super::layout::list;
use super::view_head;
use crate::analysis::owners::Charged;
use crate::export::Advice;
use crate::view::{Subject, owners};

#[derive(Serialize)]
struct OwnerItem<'a> {
    name: &'a str,
    kind: &'static str,
    weight: u64,
    samples: u64,
    total: Option<u64>,
}

/// Writes the document.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    charged: &Charged,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "owners", subject, advice)?;
    fields(out, charged)?;
    out.write_all(b"}\n")
}

pub(super) fn fields(out: &mut dyn Write, charged: &Charged) -> io::Result<()> {
    out.write_all(b"\"owners\":")?;
    let items = charged.shares.iter().map(|share| OwnerItem {
        name: owners::name(charged, share),
        kind: owners::kind(charged, share),
        weight: share.weight,
        samples: share.samples,
        total: share.owner.map(|_| share.total),
    });
    list(out, items)?;
    write!(out, ",\n\"through_project\":{}", charged.through_own)
}
