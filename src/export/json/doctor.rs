//! What was checked: `checks [{subject, check, status, found, remedy|null}]` with the statuses
//! `ok`, `note`, `warn` and `bad`. Where no recording was looked at, there are no samples.

use std::io::{self, Write};

use serde::Serialize;

use super::head;
use super::layout::list;
use crate::base::Sampling;
use crate::export::Advice;
use crate::view::doctor::Findings;

#[derive(Serialize)]
struct CheckItem<'a> {
    subject: &'a str,
    check: &'a str,
    status: &'a str,
    found: &'a str,
    remedy: Option<&'a str>,
}

/// Writes the document.
pub fn write(out: &mut dyn Write, findings: &Findings, advice: &dyn Advice) -> io::Result<()> {
    head(
        out,
        "doctor",
        &findings.event,
        Sampling::Unknown,
        findings.total,
        findings.samples,
        (&findings.caveats, advice),
    )?;
    out.write_all(b"\"checks\":")?;
    let items = findings.checks.iter().map(|check| CheckItem {
        subject: &check.subject,
        check: check.check,
        status: check.status.name(),
        found: &check.found,
        remedy: check.remedy.as_deref(),
    });
    list(out, items)?;
    out.write_all(b"}\n")
}
