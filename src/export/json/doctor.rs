//! What was checked: `checks [{subject, check, status, found, remedy|null}]` with the statuses `ok`,
//! `warn` and `bad`. Where no recording was looked at, there are no samples.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{head, list, string};
use crate::base::Sampling;
use crate::export::Advice;
use crate::view::doctor::Findings;

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
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
    list(out, findings.checks.iter(), |out, check| {
        let remedy = check
            .remedy
            .as_deref()
            .map_or(Cow::Borrowed("null"), string);
        write!(
            out,
            "{{\"subject\":{},\"check\":{},\"status\":{},\"found\":{},\"remedy\":{remedy}}}",
            string(&check.subject),
            string(check.check),
            string(check.status.name()),
            string(&check.found),
        )
    })?;
    out.write_all(b"}\n")
}
