//! Ways in which functions may be called without passing a counted site.

use rustc_hash::FxHashSet;

use super::{CallCounter, PlannedFile};
use crate::perfdata::CountedCallee;

// Functions by which a program finds others by name, or loads libraries that call what it exports.
const BY_NAME: [&str; 4] = ["dlsym", "dlvsym", "dlopen", "dlmopen"];

pub(super) struct OtherWays {
    /// The starts of functions that may be called from elsewhere than the sites, in order.
    pub(super) open: Vec<u64>,
    /// For each site whether its caller may call the same callee through a pointer as well.
    pub(super) is_least: Vec<bool>,
}

impl CallCounter {
    /// For each file what may be called in other ways than by the sites.
    pub(super) fn other_ways(&self) -> Vec<OtherWays> {
        let imports = self
            .files
            .iter()
            .flat_map(|planned| &planned.file.found.imports);
        let by_name = |name: &String| BY_NAME.contains(&name.as_str());
        // What is loaded later was asked for by name, if only by the C library.
        let looks_up =
            self.loads_later || { imports }.any(by_name) || self.foreign.iter().any(by_name);
        let mut taken_names = FxHashSet::default();
        for PlannedFile { file, .. } in &self.files {
            let rows = file.found.taken_imports.iter();
            taken_names.extend(rows.filter_map(|&row| file.found.imports.get(row).cloned()));
        }
        let files = self.files.iter();
        let files = files.map(|planned| self.ways_into(planned, looks_up, &taken_names));
        files.collect()
    }

    fn ways_into(
        &self,
        PlannedFile { file, .. }: &PlannedFile,
        looks_up: bool,
        taken_names: &FxHashSet<String>,
    ) -> OtherWays {
        let exports = file.binary.exports();
        let starts = |names: &FxHashSet<String>| -> Vec<u64> {
            let names = names.iter();
            let starts = names.flat_map(|name| exports.starts(name.as_bytes()));
            starts.map(|start| start.0).collect()
        };
        let mut taken = file.found.taken_starts.clone();
        taken.extend(starts(taken_names));
        if looks_up {
            taken.extend(exports.addresses().map(|start| start.0));
        }
        let is_least = file.found.sites.iter().map(|site| {
            let is_taken = match site.row.callee {
                CountedCallee::At(start) => taken.contains(&start),
                CountedCallee::Import(row) => {
                    let name = file.found.imports.get(row as usize);
                    looks_up || name.is_some_and(|name| taken_names.contains(name))
                }
            };
            is_taken && file.found.calls_otherwise.contains(&site.row.caller)
        });
        let is_least = is_least.collect();
        let mut open = taken;
        open.extend(starts(&self.foreign));
        open.extend(file.binary.entry().map(|entry| entry.0));
        let mut open: Vec<u64> = open.into_iter().collect();
        open.sort_unstable();
        OtherWays { open, is_least }
    }
}
