//! Rooms that name only types of another room: they arrange what was computed, and compute nothing.
//!
//! By Rust's naming a type, a variant or a constant begins with a capital letter; a function or a
//! module does not. So an import must end at a capital letter, and a type from there must not be
//! followed by a small one. Calls of methods on a value cannot be told by their names.
//!
//! ```text
//! use crate::analysis::cut::AtMost;         fine
//! use crate::analysis::cut;                 a module: opens its functions
//! crate::analysis::cut::by_function(…)      a function
//! Coverage::of(…)                           a function of a type that was imported
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::map::Map;
use super::names::Names;
use super::rules::resolve;
use super::tree::{module_path, room_of};

/// Where a room names more than types of a room of which it may name only these.
pub fn check(map: &Map, names: &BTreeMap<&str, Names>, told: &mut Vec<String>) {
    for (room, targets) in &map.types_only {
        let files: Vec<_> = names
            .iter()
            .filter(|(file, _)| room_of(file) == room)
            .collect();
        let imported = imported(&files, targets);
        for (file, found) in files {
            for path in &found.paths {
                let is_test = path.inside.first().is_some_and(|module| module == "tests");
                let Some(full) = resolve(file, path).filter(|_| !is_test) else {
                    continue;
                };
                let at = full.iter().position(|name| is_type(name));
                let is_named = targets.contains(&full[0]);
                let is_imported = at.is_some_and(|at| imported.contains(&full[..=at]));
                let ends_in_function = full.last().is_some_and(|name| !is_type(name));
                if (is_named || is_imported) && ends_in_function {
                    told.push(format!(
                        "{file}:{}: `{room}` names `{}`, which is no type; it arranges what was computed",
                        path.line,
                        path.segments.join("::")
                    ));
                }
            }
        }
    }
}

/// The types of the targets by every path by which files of the room import them, from each other
/// too.
fn imported(files: &[(&&str, &Names)], targets: &[String]) -> BTreeSet<Vec<String>> {
    let mut known: BTreeSet<Vec<String>> = BTreeSet::new();
    loop {
        let before = known.len();
        for (file, found) in files {
            for path in &found.paths {
                let (Some(name), Some(full)) = (&path.imported_as, resolve(file, path)) else {
                    continue;
                };
                if targets.contains(&full[0]) || known.contains(&full) {
                    let mut here = module_path(file);
                    here.extend(path.inside.iter().cloned());
                    here.push(name.clone());
                    known.insert(here);
                }
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}
