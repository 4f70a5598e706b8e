//! What samples and the code say of functions: whom they call, and which ways lead out of that.

use super::{Node, way};
use crate::analysis::cut::is_row;
use crate::base::IdVec;
use crate::profile::{CallKind, Followed, FunctionId, Profile};

// How many calls away from the entry of a program the code is that may call `main`.
const START_UP_CALLS: usize = 4;

pub(super) struct Known {
    pub(super) ways: IdVec<Node, u8>,
    // The nodes of the functions that were followed.
    pub(super) followed: Vec<Node>,
    // Whether copies of it may be where nothing was read.
    pub(super) copied: IdVec<FunctionId, bool>,
    pub(super) unread: IdVec<FunctionId, bool>,
    pub(super) kernel: IdVec<FunctionId, bool>,
    // Whether an indirect call may be one of it.
    pub(super) target: IdVec<FunctionId, bool>,
    // Whether it is a function whose address the entry of a program takes.
    pub(super) main: IdVec<FunctionId, bool>,
}

impl Known {
    pub(super) fn of(profile: &Profile) -> Known {
        match &profile.code.followed {
            Some(followed) if !profile.code.is_whole => Known::of_followed(profile, followed),
            _ => Known::of_whole(profile),
        }
    }

    fn nothing(functions: usize) -> Known {
        Known {
            ways: IdVec::filled(0, functions),
            followed: Vec::new(),
            copied: IdVec::filled(false, functions),
            unread: IdVec::filled(false, functions),
            kernel: IdVec::filled(false, functions),
            target: IdVec::filled(false, functions),
            main: IdVec::filled(false, functions),
        }
    }

    fn of_followed(profile: &Profile, followed: &Followed) -> Known {
        let mut known = Known::nothing(profile.functions.len());
        let mut is_followed = IdVec::filled(false, profile.functions.len());
        for function in &followed.functions {
            let node = match function.function {
                Some(id) => {
                    is_followed[id] = true;
                    Node::of(id)
                }
                None => known.ways.push(0),
            };
            known.followed.push(node);
            // Of a function with several copies any may lead there.
            if function.calls_unknown {
                known.ways[node] |= way::INDIRECT | way::ANYWHERE;
            }
            if function.is_unread {
                known.ways[node] |= way::UNREAD | way::ANYWHERE;
            }
        }
        for (id, function) in profile.functions.enumerate() {
            known.kernel[id] = profile.code.is_kernel(function.module);
        }
        for &id in &followed.copied {
            known.copied[id] = !known.kernel[id];
        }
        for (id, function) in profile.functions.enumerate() {
            known.unread[id] = !is_followed[id] && !function.is_cut_mark() && !is_row(profile, id);
            // What is only inlined is read with the functions that it is known to be in. They do
            // not lead where its other copies may.
            if known.unread[id] && !known.kernel[id] && !known.copied[id] {
                known.ways[Node::of(id)] = way::UNREAD | way::ANYWHERE;
            }
        }
        known
    }

    fn of_whole(profile: &Profile) -> Known {
        let code = &profile.code;
        let mut known = Known::nothing(profile.functions.len());
        let of = |id: FunctionId| {
            let known = code.functions.get(id).and_then(Option::as_ref);
            known.filter(|_| code.is_whole)
        };
        let mut is_read = IdVec::filled(false, profile.modules.len());
        for (id, function) in profile.functions.enumerate() {
            match of(id) {
                Some(code) if code.imported => known.ways[Node::of(id)] = way::UNREAD,
                Some(code) => {
                    is_read[function.module] = true;
                    known.target[id] = code.pointers_in_data > 0 || code.can_be_found;
                    known.ways[Node::of(id)] = if code.calls_indirectly() {
                        way::INDIRECT
                    } else {
                        0
                    };
                }
                None => known.unread[id] = !function.is_cut_mark() && !is_row(profile, id),
            }
        }
        known.read_what_is_inlined(profile);
        // After inlined functions are known as read: what is still unread may call anything, and
        // pointers may lead to it. User code cannot call into the kernel by a pointer.
        for (id, function) in profile.functions.enumerate() {
            known.kernel[id] = code.is_kernel(function.module);
            known.target[id] &= !known.kernel[id];
            if known.unread[id] && !known.kernel[id] {
                known.target[id] = true;
                known.ways[Node::of(id)] = way::UNREAD;
                if is_read[function.module] {
                    known.ways[Node::of(id)] |= way::ANYWHERE;
                }
            }
        }
        for call in code.calls().iter().filter(|call| !call.kind.is_call()) {
            if of(call.from).is_some_and(|code| code.is_entry) {
                known.main[call.to] = true
            } else {
                known.target[call.to] |= !known.kernel[call.to]
            }
        }
        known.start_up(profile);
        known
    }

    // A function that exists only as copies in others was read with these. Which of their indirect
    // calls are in the copy is not known: it may be all.
    fn read_what_is_inlined(&mut self, profile: &Profile) {
        let inlined = |kind: CallKind| kind == CallKind::Inlined;
        let code = &profile.code;
        let calls = code.calls().iter().filter(|call| inlined(call.kind));
        let mut copies: Vec<(FunctionId, FunctionId)> =
            calls.map(|call| (call.from, call.to)).collect();
        copies.sort_unstable();
        // Those that are read, or become so, and whose copies are to be looked at.
        let hosts = copies.iter().map(|&(host, _)| host);
        let mut open: Vec<FunctionId> = hosts.filter(|&host| !self.unread[host]).collect();
        let only_copies = self.unread.clone();
        open.dedup();
        while let Some(host) = open.pop() {
            let from = copies.partition_point(|&(from, _)| from < host);
            for &(_, copy) in copies[from..].iter().take_while(|(from, _)| *from == host) {
                if !only_copies[copy] {
                    continue;
                }
                let (host, node) = (Node::of(host), Node::of(copy));
                let ways = self.ways[node] | self.ways[host];
                if self.unread[copy] || ways != self.ways[node] {
                    self.unread[copy] = false;
                    self.ways[node] = ways;
                    open.push(copy);
                }
            }
        }
        for &(host, copy) in &copies {
            if self.unread[host] && only_copies[copy] {
                self.ways[Node::of(copy)] |= way::UNREAD;
            }
        }
    }

    // The code between the entry of a program and `main`: what makes indirect calls there and is
    // called from nowhere else.
    fn start_up(&mut self, profile: &Profile) {
        let code = &profile.code;
        let calls = code.calls().iter().filter(|call| call.kind.is_call());
        let mut calls: Vec<(FunctionId, FunctionId)> =
            calls.map(|call| (call.from, call.to)).collect();
        calls.dedup();
        let mut callers = IdVec::filled(0u32, profile.functions.len());
        for &(_, callee) in &calls {
            callers[callee] += 1;
        }
        let entries = code
            .functions
            .enumerate()
            .filter(|(_, code)| code.is_some_and(|code| code.is_entry));
        let mut open: Vec<FunctionId> = entries.map(|(id, _)| id).collect();
        for &entry in &open {
            self.ways[Node::of(entry)] |= way::START;
        }
        for _ in 0..START_UP_CALLS {
            let mut next = Vec::new();
            for &caller in &open {
                let from = calls.partition_point(|&(from, _)| from < caller);
                for &(_, callee) in calls[from..].iter().take_while(|(from, _)| *from == caller) {
                    callers[callee] -= 1;
                    if callers[callee] == 0 {
                        next.push(callee);
                    }
                }
            }
            for &callee in &next {
                let ways = &mut self.ways[Node::of(callee)];
                if *ways != 0 {
                    *ways |= way::START;
                }
            }
            open = next;
        }
    }
}

// Sorted, each pair once: the calls that samples show, of any event and thread, and those in the
// code.
pub(super) fn calls(profile: &Profile, known: &Known) -> Vec<(Node, Node)> {
    let observed = profile.paths.enumerate().filter_map(|(_, path)| {
        let caller = profile.paths[path.caller?].function;
        let is_call = caller != path.function
            && !profile.functions[caller].is_cut_mark()
            && !is_row(profile, caller)
            && !is_row(profile, path.function);
        is_call.then_some((caller, path.function))
    });
    let code = &profile.code;
    let picks = |id: FunctionId| {
        let code = code.functions.get(id).copied().flatten();
        code.is_some_and(|code| code.picks)
    };
    let in_code = code
        .calls()
        .iter()
        .filter(|call| call.kind.is_call() || picks(call.from))
        .map(|call| (call.from, call.to));
    let mut calls: Vec<(Node, Node)> = observed
        .chain(in_code)
        .map(|(from, to)| (Node::of(from), Node::of(to)))
        .collect();
    let followed = code.followed.as_ref().map(|followed| &followed.calls);
    for &(from, to) in followed.into_iter().flatten() {
        let node = |place: u32| known.followed.get(place as usize).copied();
        calls.extend(node(from).zip(node(to)));
    }
    calls.sort_unstable();
    calls.dedup();
    calls
}
