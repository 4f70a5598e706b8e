//! Names for people, made of linkage names.

use std::num::NonZeroUsize;

use crate::base::CaveatKind;
use crate::binary::demangle;
use crate::profile::{Builder, Function, FunctionKind};

use super::limits;

/// Demangles the names, in parallel: each function's once, as long as there is room for them.
pub(super) fn name_for_people(builder: &mut Builder, workers: NonZeroUsize) {
    fn rename(function: &mut Function) {
        if function.kind != FunctionKind::Named {
            return;
        }
        let name = demangle(&function.name);
        if name != function.name {
            let name = name.into_owned();
            function.linkage_name = Some(std::mem::replace(&mut function.name, name).into());
        }
    }
    let mut functions: Vec<&mut Function> = builder.functions_mut().collect();
    let mut taken: usize = 0;
    let mut as_linked: u64 = 0;
    for functions in functions.chunks_mut(limits::DEMANGLED_AT_ONCE) {
        if taken > limits::DEMANGLED_BYTES {
            as_linked += functions.len() as u64;
            continue;
        }
        let share = functions.len().div_ceil(workers.get()).max(64);
        std::thread::scope(|scope| {
            let mut shares = functions.chunks_mut(share);
            let own = shares.next();
            for others in shares {
                scope.spawn(|| others.iter_mut().for_each(|f| rename(f)));
            }
            own.into_iter().flatten().for_each(|f| rename(f));
        });
        let growth = |function: &&mut Function| {
            let before = function.linkage_name.as_ref().map(|name| name.len())?;
            Some(function.name.len().saturating_sub(before))
        };
        let growth = functions.iter().filter_map(growth);
        taken = growth.fold(taken, usize::saturating_add);
    }
    drop(functions);
    if as_linked > 0 {
        let detail = format!("readable names of {as_linked} functions, too long together");
        let caveats = builder.caveats();
        caveats.add_detail(CaveatKind::DebugInfoLimit, 1, detail);
    }
}
