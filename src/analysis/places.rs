//! Where time is spent: in the kernel, in libraries, in programs.

use super::inclusive::FunctionWeights;
use crate::base::IdVec;
use crate::profile::{ModuleId, Profile};

/// The self weight by module, the heaviest first: parts that add up to the whole. All modules of
/// the kernel are one, and `None` is what has no module: marks, and stacks that name none.
pub fn by_self(profile: &Profile, weights: &FunctionWeights) -> Vec<(Option<ModuleId>, u64)> {
    let is_kernel =
        |module: ModuleId| profile.modules[module].is_kernel() || profile.code.is_kernel(module);
    let kernel = profile.modules.ids().find(|&module| is_kernel(module));
    let mut parts: IdVec<ModuleId, u64> = IdVec::filled(0, profile.modules.len());
    let mut nowhere = 0u64;
    for (id, function) in profile.functions.enumerate() {
        let module = match kernel.filter(|_| is_kernel(function.module)) {
            Some(kernel) => kernel,
            None => function.module,
        };
        let part = match profile.modules[module].name.is_empty() {
            true => &mut nowhere,
            false => &mut parts[module],
        };
        *part = part.saturating_add(weights.self_weight[id]);
    }
    let modules = parts.enumerate().map(|(id, &part)| (Some(id), part));
    let mut places: Vec<_> = modules.chain([(None, nowhere)]).collect();
    places.retain(|&(_, part)| part > 0);
    // Stable: of equals, the one that was met first.
    places.sort_by_key(|&(_, part)| std::cmp::Reverse(part));
    places
}
