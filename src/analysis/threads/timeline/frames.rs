//! For which sums the weight of a frame counts, by its position on the stack alone.

use crate::base::{Distinct, IdVec, define_id};
use crate::callgraph::{Cycles, GroupId};
use crate::profile::{FunctionId, Links, PathId, Profile, Step};

define_id! {
    /// A row of [`Timeline::calls`](super::Timeline::calls).
    pub CallId
}

/// A caller and a callee; an outermost function has no caller.
pub type Call = (Option<FunctionId>, FunctionId);

// A frame and the frames outwards of it.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub call: CallId,
    // No frame outwards of it was reached by the same call.
    pub is_first_of_call: bool,
    // No frame outwards of it is of the same function.
    pub is_first_of_function: bool,
    // The call that first led into the group of its function.
    pub arrival: CallId,
    // The next frame outwards in the same group; `None` for the outermost one.
    pub outer: Option<PathId>,
    // Where its function recurses: the next frame outwards of the same function, and the frame that
    // this one called.
    pub recursion: Option<(PathId, PathId)>,
}

pub(super) struct Frames {
    pub calls: IdVec<CallId, Call>,
    pub of_paths: IdVec<PathId, Frame>,
}

struct Stack<'a> {
    profile: &'a Profile,
    cycles: &'a Cycles,
    calls: Distinct<CallId, Call>,
    // How many of its frames were reached by each call.
    depths: IdVec<CallId, u32>,
    of_functions: IdVec<FunctionId, Innermost>,
    of_groups: IdVec<GroupId, Option<PathId>>,
    frames: IdVec<PathId, Frame>,
    // For each frame of it what it replaced.
    replaced: Vec<Replaced>,
}

#[derive(Clone, Copy, Default)]
struct Innermost {
    frame: Option<PathId>,
    called: Option<PathId>,
}

struct Replaced {
    of_function: Innermost,
    of_group: Option<PathId>,
    called_by_caller: Option<PathId>,
}

impl Frames {
    // Linear in paths and functions.
    pub fn of(profile: &Profile, cycles: &Cycles) -> Frames {
        let unset = Frame {
            call: CallId::new(0),
            is_first_of_call: false,
            is_first_of_function: false,
            arrival: CallId::new(0),
            outer: None,
            recursion: None,
        };
        let mut stack = Stack {
            profile,
            cycles,
            calls: Distinct::default(),
            depths: IdVec::new(),
            of_functions: IdVec::filled(Innermost::default(), profile.functions.len()),
            of_groups: IdVec::filled(None, cycles.groups()),
            frames: IdVec::filled(unset, profile.paths.len()),
            replaced: Vec::new(),
        };
        Links::through(&profile.paths, |_| true).walk(&profile.paths, |step| match step {
            Step::Enter(path) => stack.enter(path),
            Step::Leave(path) => stack.leave(path),
        });
        Frames {
            calls: stack.calls.into_rows(),
            of_paths: stack.frames,
        }
    }
}

impl Stack<'_> {
    fn caller(&self, path: PathId) -> Option<FunctionId> {
        let caller = self.profile.paths[path].caller?;
        Some(self.profile.paths[caller].function)
    }

    fn enter(&mut self, path: PathId) {
        let function = self.profile.paths[path].function;
        let caller = self.caller(path);
        let call = self.calls.id_of((caller, function));
        if self.depths.get(call).is_none() {
            self.depths.push(0);
        }
        let called_by_caller = caller.and_then(|it| self.of_functions[it].called.replace(path));
        let of_function = self.of_functions[function];
        let of_group = self.of_groups[self.cycles.group(function)].replace(path);
        self.frames[path] = Frame {
            call,
            is_first_of_call: self.depths[call] == 0,
            is_first_of_function: of_function.frame.is_none(),
            arrival: of_group.map_or(call, |outer| self.frames[outer].arrival),
            outer: of_group,
            recursion: of_function.frame.zip(of_function.called),
        };
        self.depths[call] += 1;
        self.of_functions[function] = Innermost {
            frame: Some(path),
            called: None,
        };
        self.replaced.push(Replaced {
            of_function,
            of_group,
            called_by_caller,
        });
    }

    fn leave(&mut self, path: PathId) {
        let Some(replaced) = self.replaced.pop() else {
            return;
        };
        let function = self.profile.paths[path].function;
        self.of_functions[function] = replaced.of_function;
        self.of_groups[self.cycles.group(function)] = replaced.of_group;
        // Its caller is the innermost frame of its function again.
        if let Some(caller) = self.caller(path) {
            self.of_functions[caller].called = replaced.called_by_caller;
        }
        self.depths[self.frames[path].call] -= 1;
    }
}
