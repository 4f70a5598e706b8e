//! From an open recording to a trace.

use crate::perfdata::{Error, Pass, Reader};

use super::tracer::Tracer;
use super::{Image, Trace};

/// Which part of a recording to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Only samples from this many nanoseconds after the first one.
    pub from: Option<u64>,
    /// Only samples before this many nanoseconds after the first one.
    pub to: Option<u64>,
}

impl Options {
    /// Whether a sample so many nanoseconds after the first one is looked at.
    pub(super) fn covers(&self, time: u64) -> bool {
        self.from.is_none_or(|from| time >= from) && self.to.is_none_or(|to| time < to)
    }
}

/// Reads all samples. `progress` hears how many bytes of the data were read, `on_hit` of each
/// image when the first address in it is met.
///
/// # Errors
///
/// Those of [`Reader::visit`].
pub fn read(
    reader: &mut Reader,
    options: &Options,
    mut progress: impl FnMut(u64),
    mut on_hit: impl FnMut(&Image),
) -> Result<Trace, Error> {
    loop {
        let mut tracer = Tracer::new(options, &mut on_hit);
        let pass = reader.visit(&mut progress, |reader, record| {
            tracer.record(reader, record)
        })?;
        if pass == Pass::Done {
            return Ok(tracer.finish(reader));
        }
    }
}
