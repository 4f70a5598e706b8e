//! Where threads leave their processor: the functions from which they entered the kernel.
//!
//! ```text
//!   main ─▶ lock_outer ─▶ pthread_mutex_lock ─▶ entry_SYSCALL_64 ─▶ … ─▶ futex_wait ─▶ schedule
//!           └ caller      └ waits in            └────────────── the kernel ──────────────┘
//! ```
//!
//! Each stack of off-CPU time ends in the scheduler, so self weight is meaningless there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::base::IdVec;
use crate::profile::{FunctionId, PathId, Profile, Selection};

/// A function in which threads wait, as called from another module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// The innermost function outside of the kernel; if there is none, the outermost one in it.
    pub function: FunctionId,
    /// The innermost caller in another module: of a library's function the program's.
    pub caller: Option<FunctionId>,
}

/// The weight of each wait, the heaviest first; together the selection's. Linear in paths and rows.
pub fn by_function(profile: &Profile, selection: &Selection) -> Vec<(Wait, u64)> {
    let module = |path: PathId| profile.functions[profile.paths[path].function].module;
    let is_kernel = |path: PathId| profile.modules[module(path)].is_kernel();
    let mut entries: IdVec<PathId, Option<PathId>> = IdVec::filled(None, profile.paths.len());
    let mut callers: IdVec<PathId, Option<PathId>> = IdVec::filled(None, profile.paths.len());
    for (id, path) in profile.paths.enumerate() {
        // The outermost path in the kernel.
        let outer = path.caller.and_then(|caller| entries[caller]);
        entries[id] = outer.or_else(|| is_kernel(id).then_some(id));
        callers[id] = path.caller.and_then(|caller| {
            if module(caller) == module(id) {
                callers[caller]
            } else {
                Some(caller)
            }
        });
    }
    let mut weights: BTreeMap<Wait, u64> = BTreeMap::new();
    for row in selection.rows() {
        let place = match entries[row.path] {
            Some(entry) => profile.paths[entry].caller.unwrap_or(entry),
            None => row.path,
        };
        let wait = Wait {
            function: profile.paths[place].function,
            caller: callers[place].map(|caller| profile.paths[caller].function),
        };
        *weights.entry(wait).or_default() += row.weight;
    }
    let mut waits: Vec<(Wait, u64)> = weights.into_iter().collect();
    let name = |id: FunctionId| &*profile.functions[id].name;
    waits.sort_by_key(|&(wait, weight)| {
        (
            Reverse(weight),
            name(wait.function),
            wait.caller.map(name),
            wait,
        )
    });
    waits
}
