//! Places in code as pprof and OpenTelemetry have them: a function with all that is inlined into it
//! there.

use crate::analysis::call_stacks::{CallStacks, StackId};
use crate::base::{Distinct, IdVec, define_id};
use crate::profile::FunctionId;

use super::naming::Naming;

define_id! {
    // A row of the places.
    pub(super) LocationId
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Location {
    // The functions with their lines, innermost first.
    pub functions: Vec<(FunctionId, Option<u32>)>,
    // Some of it was not recorded but restored from the code.
    pub inferred: bool,
}

impl Location {
    // It contains the others. All of a place is in its module.
    pub fn outermost(&self) -> Option<FunctionId> {
        self.functions.last().map(|&(function, _)| function)
    }
}

// Each once.
pub(super) struct Locations<'a> {
    naming: &'a Naming<'a>,
    stacks: &'a CallStacks,
    rows: Distinct<LocationId, Location>,
    // The innermost place of a stack, and the stack outside of it.
    of_stacks: IdVec<StackId, Option<(LocationId, Option<StackId>)>>,
}

impl<'a> Locations<'a> {
    pub fn of(naming: &'a Naming<'a>, stacks: &'a CallStacks) -> Locations<'a> {
        Locations {
            naming,
            stacks,
            rows: Distinct::default(),
            of_stacks: IdVec::filled(None, stacks.frames.len()),
        }
    }

    // Leaf first.
    pub fn walk(&mut self, stack: StackId, mut visit: impl FnMut(LocationId)) {
        let mut at = Some(stack);
        while let Some(stack) = at {
            let (location, outside) = self.innermost(stack);
            visit(location);
            at = outside;
        }
    }

    pub fn into_rows(self) -> IdVec<LocationId, Location> {
        self.rows.into_rows()
    }

    fn innermost(&mut self, stack: StackId) -> (LocationId, Option<StackId>) {
        if let Some(known) = self.of_stacks[stack] {
            return known;
        }
        let mut location = Location {
            functions: Vec::new(),
            inferred: false,
        };
        let mut outside = None;
        for (_, frame) in self.stacks.outwards(stack) {
            let line = self.naming.line_in(frame.function, frame.line);
            location.functions.push((frame.function, line));
            location.inferred |= frame.inferred;
            outside = frame.caller;
            if !frame.inlined {
                break;
            }
        }
        let found = (self.rows.id_of(location), outside);
        self.of_stacks[stack] = Some(found);
        found
    }
}
