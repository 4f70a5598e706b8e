//! The functions of a program by the names that a linker or a post-link optimizer uses.

use rustc_hash::FxHashMap;

use super::Options;
use crate::base::Svma;
use crate::binary::{Binary, Finder};
use crate::profile::{FunctionId, ModuleId, Profile};
use crate::scan::{FileTables, Leaving, Single};

/// The functions of a profile that are in one program file.
#[derive(Debug, Default)]
pub struct LinkedProgram {
    functions: FxHashMap<FunctionId, LinkedFunction>,
}

#[derive(Debug)]
struct LinkedFunction {
    name: String,
    start: u64,
    sites: Vec<Leaving>,
}

impl LinkedProgram {
    /// Reads the program of these functions, the heaviest first; `None` without one that has names.
    pub fn of(
        profile: &Profile,
        functions: &[FunctionId],
        options: &Options,
    ) -> Option<LinkedProgram> {
        let finder = Finder::new(options.symfs.as_deref());
        let mut tried: Vec<ModuleId> = Vec::new();
        for &function in functions {
            let module = profile.functions[function].module;
            if tried.contains(&module) {
                continue;
            }
            tried.push(module);
            let build_id = profile.build_ids.get(module).and_then(Option::as_ref);
            let found = finder.find(profile.modules[module].path.clone(), build_id);
            let Some(binary) = found.ok().filter(|binary| binary.is_program()) else {
                continue;
            };
            let own = functions
                .iter()
                .copied()
                .filter(|&id| profile.functions[id].module == module);
            return Some(LinkedProgram::read(profile, &binary, own));
        }
        None
    }

    fn read(
        profile: &Profile,
        binary: &Binary,
        functions: impl Iterator<Item = FunctionId>,
    ) -> LinkedProgram {
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let mut names: FxHashMap<u64, String> = FxHashMap::default();
        for symbol in binary.functions() {
            let Some(name) = binary.function_name(symbol) else {
                continue;
            };
            let mut name = name.into_owned();
            // Several files may have a local function of one name.
            if symbol.is_local() {
                let number = numbers.entry(name.clone()).or_default();
                *number += 1;
                name = format!("{name}/{number}");
            }
            names.insert(symbol.start.0, name);
        }
        let tables = FileTables::read(binary).ok();
        let single = tables.as_ref().map(Single::new);
        let mut program = LinkedProgram::default();
        for id in functions {
            let Some(start) = profile.functions[id].address else {
                continue;
            };
            let Some(name) = names.get(&start) else {
                continue;
            };
            let exits = single
                .as_ref()
                .and_then(|single| single.leaving(Svma(start)));
            let function = LinkedFunction {
                name: name.clone(),
                start,
                sites: exits.map(|exits| exits.sites).unwrap_or_default(),
            };
            program.functions.insert(id, function);
        }
        program
    }

    /// The linkage name of a function, with a number behind a slash for one local to a file.
    pub fn name(&self, function: FunctionId) -> Option<&str> {
        let function = self.functions.get(&function)?;
        Some(&function.name)
    }

    /// The distance from the start of a function to its call or jump around this address.
    pub fn site(&self, function: FunctionId, at: u64) -> Option<u64> {
        let function = self.functions.get(&function)?;
        let after = function.sites.partition_point(|site| site.at.0 <= at);
        let site = function.sites.get(after.checked_sub(1)?)?;
        let is_inside = at - site.at.0 < u64::from(site.length);
        is_inside
            .then(|| site.at.0.checked_sub(function.start))
            .flatten()
    }
}
