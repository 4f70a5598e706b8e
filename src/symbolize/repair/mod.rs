//! Stacks checked against the code: is each frame called by the one outside of it?
//!
//! ```text
//!   Trace ──▶ code     what the instruction before each return address calls
//!         ──▶ check    that is the next function     verified
//!                      it is a pointer's             not checkable
//!                      no call returns there         cut
//!                      it is another one             contradicted, unless
//!         ──▶ explain  the code has one explanation  functions are missing there
//!         ──▶ beginnings   how other stacks of the program begin
//!         ──▶ paths    with what is missing, marked as inferred
//!         ══▶ Checked
//!         ──▶ follow   what the functions on them lead to
//!         ══▶ Followed
//! ```
//!
//! The weights of samples never change. Paths gain missing frames, and lose wrong ones: where a
//! frame pointer led to an address to which no call returns, the stack is cut, and marked as
//! broken. A stack with no explanation or several ones stays as it is, and is counted.

mod beginnings;
mod callers;
mod case;
mod check;
mod checked;
mod code;
mod control_flow;
mod explain;
mod explanation;
mod follow;
mod frames;
mod function_exits;
mod go_runtime;
mod making;
mod mapped;
mod memo;
mod paths;
mod unknown_callers;
mod unused;

use std::cell::OnceCell;

use crate::base::IdVec;
use crate::trace::{ImageId, Trace};

use super::library::Library;
use super::name_source::NameSource;
use super::names::Names;

pub(super) use checked::{Checked, Correction};
pub(super) use follow::Followed;

use self::check::Checks;
use self::code::Code;

/// Holds the stacks of a trace against the code, and puts in what is missing, if that is asked for.
/// Then follows the calls of the functions on them, if `follows`.
pub(super) fn check(
    trace: &Trace,
    name_sources: &IdVec<ImageId, NameSource>,
    names: &Names,
    library: &Library,
    follows: bool,
) -> (Checked, Option<Followed>) {
    let tables: Vec<_> = name_sources.iter().map(|_| OnceCell::new()).collect();
    let tables = tables.into();
    let code = Code::new(trace, name_sources, names, &tables, library);
    let checked = if library.options.repairs {
        paths::checked(trace, &Checks::new(trace, name_sources, &code))
    } else {
        Checked::as_recorded(trace)
    };
    let followed = follows.then(|| follow::follow(&checked, &code));
    code.keep_exits();
    (checked, followed)
}
