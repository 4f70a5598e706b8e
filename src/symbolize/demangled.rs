//! Demangles linkage names, for people.

use std::num::NonZeroUsize;

use crate::base::{CaveatKind, Language, parallel};
use crate::binary::demangled;
use crate::profile::{Builder, Function, FunctionKind};

use super::limits;

// The number of names that a worker takes at once: some tenths of a millisecond of work.
const SHARE: usize = 64;

/// Demangles the names, in parallel: each function's once, as long as there is room for them.
pub(super) fn name_for_people(builder: &mut Builder, workers: NonZeroUsize) {
    fn readable(function: &Function) -> Option<(String, Language)> {
        if function.kind != FunctionKind::Named {
            return None;
        }
        let (name, language) = demangled(&function.name);
        (name != function.name).then(|| (name.into_owned(), language))
    }
    let mut functions: Vec<&mut Function> = builder.functions_mut().collect();
    let mut taken: usize = 0;
    let mut as_linked: u64 = 0;
    for functions in functions.chunks_mut(limits::DEMANGLED_AT_ONCE) {
        if taken > limits::DEMANGLED_BYTES {
            as_linked += functions.len() as u64;
            continue;
        }
        let shares: Vec<&[&mut Function]> = functions.chunks(SHARE).collect();
        let names = parallel::map(workers, &shares, |share| {
            let names = share.iter().map(|function| readable(function));
            names.collect::<Vec<_>>()
        });
        for (function, name) in functions.iter_mut().zip(names.into_iter().flatten()) {
            let Some((name, language)) = name else {
                continue;
            };
            function.language = language;
            let growth = name.len().saturating_sub(function.name.len());
            taken = taken.saturating_add(growth);
            function.linkage_name = Some(std::mem::replace(&mut function.name, name).into());
        }
    }
    drop(functions);
    if as_linked > 0 {
        let detail = format!("readable names of {as_linked} functions, too long together");
        let caveats = builder.caveats();
        caveats.add_detail(CaveatKind::DebugInfoLimit, 1, detail);
    }
}
