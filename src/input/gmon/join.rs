//! Adds counted calls to samples: the arcs of a gmon.out become counts in the profile of a
//! recording of the same program.
//!
//! Functions are the same where they start at the same address of the program. Those that no
//! sample has shown are added.

use rustc_hash::FxHashMap;

use super::{Named, function, sum, symbols};
use crate::base::{CaveatKind, Caveats};
use crate::binary::Binary;
use crate::profile::{CallCount, Counts, FunctionId, FunctionKind, ModuleId, PathId, Profile};

use super::Error;

// Plain is the file of the name that threads go by, in which most samples were taken.
pub(in crate::input) fn program(profile: &Profile) -> Option<ModuleId> {
    let mut weights: FxHashMap<ModuleId, u64> = FxHashMap::default();
    for sample in &profile.samples {
        let path: PathId = sample.path;
        for frame in profile.paths.outwards(path) {
            let module = profile.functions[frame.function].module;
            let comm = &profile.threads[sample.thread].comm;
            let name = &profile.modules[module].name;
            // The kernel keeps 15 bytes of a command's name.
            let is_it = *name == **comm || comm.len() == 15 && name.starts_with(&**comm);
            if is_it && profile.modules[module].path.starts_with('/') {
                let weight = weights.entry(module).or_default();
                *weight = weight.saturating_add(sample.weight);
                break;
            }
        }
    }
    let heaviest = weights
        .into_iter()
        .max_by_key(|&(id, weight)| (weight, std::cmp::Reverse(id)));
    heaviest.map(|(id, _)| id)
}

pub(in crate::input) fn counts(
    profile: &mut Profile,
    module: ModuleId,
    files: &[Named],
    binary: &Binary,
) -> Result<(), Error> {
    let mut caveats = Caveats::default();
    let gmon = sum(files, binary, &mut caveats)?;
    let counted = symbols::count(&gmon, binary, &mut caveats);
    let of_module = profile
        .functions
        .enumerate()
        .filter(|(_, f)| f.module == module && f.kind != FunctionKind::Mark);
    let mut known: FxHashMap<u64, FunctionId> = FxHashMap::default();
    for (id, function) in of_module {
        if let Some(address) = function.address {
            known.entry(address).or_insert(id);
        }
    }
    let mut of_place: FxHashMap<usize, FunctionId> = FxHashMap::default();
    let mut id = |profile: &mut Profile, place: usize| {
        *of_place.entry(place).or_insert_with(|| {
            let symbol = &counted.symbols[place];
            // A function that was called and never sampled is not in the profile yet.
            *known
                .entry(symbol.start.0)
                .or_insert_with(|| profile.functions.push(function(symbol, module)))
        })
    };
    let mut rows: Vec<CallCount> = Vec::new();
    for &(from, to, calls) in &counted.calls {
        let from = Some(id(profile, from));
        let to = id(profile, to);
        rows.push(CallCount {
            from,
            to,
            calls,
            is_least: false,
        });
    }
    if rows.is_empty() {
        let what = "no calls were counted between functions of the program";
        profile.caveats.add_detail(CaveatKind::Skipped, 1, what);
    }
    profile.counts = Some(Counts::of(rows));
    super::mark_uncounted(profile);
    profile.tell_apart();
    profile.caveats.merge(&caveats);
    Ok(())
}
