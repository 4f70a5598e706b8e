//! From an open recording to a trace.

use rustc_hash::FxHashSet;

use crate::base::workers;
use crate::perfdata::{Error, Pass, Reader};

use super::jit::Dumps;
use super::stack_copies::StackCopies;
use super::time_range::Scope;
use super::tracer::Tracer;
use super::unwinders::Unwinders;
use super::{Image, JitSource, Trace, Unwinding};

/// Reads all samples of a part of time. `progress` is called with the number of bytes read so far,
/// `on_hit` with each image when its first address occurs. Copied stacks are unwound if there are
/// unwinders; else such samples have the stack of their call chain. Without a source of generated
/// code, generated functions have no names.
///
/// # Errors
///
/// Those of [`Reader::visit`].
pub fn read(
    reader: &mut Reader,
    scope: impl Into<Scope>,
    unwinding: Option<Unwinding<'_>>,
    jit: Option<&dyn JitSource>,
    mut progress: impl FnMut(u64),
    mut on_hit: impl FnMut(&Image),
) -> Result<Trace, Error> {
    let wanted: Scope = scope.into();
    workers::scope(|scope| {
        let mut misfits = FxHashSet::default();
        loop {
            let copies = unwinding.map(|how| StackCopies::new(Unwinders::new(scope, how)));
            let mut tracer = Tracer::new(
                wanted,
                copies,
                Dumps::timed(jit, misfits.clone()),
                &mut on_hit,
            );
            let pass = reader.visit_batches(&mut progress, |reader, records| {
                tracer.records(reader, records);
            })?;
            // Known only in the end: the names of the samples before depend on it.
            let found = tracer.dumps.misfits();
            if pass == Pass::Done && !found.is_empty() {
                misfits.extend(found);
            } else if pass == Pass::Done {
                return Ok(tracer.finish(reader));
            }
        }
    })
}
