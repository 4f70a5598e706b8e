//! One file makes threads: everything else asks it, and goes on without one where there is none.

use std::collections::BTreeMap;

use super::names::Names;
use super::tree::Tree;

/// The file.
const FILE: &str = "src/base/workers.rs";
/// What makes threads, or stands for what does, in `std::thread`.
const MAKERS: [&str; 5] = ["spawn", "scope", "Scope", "Builder", "spawn_unchecked"];
/// Names of packages that make threads.
const OTHERS: [&str; 3] = ["enable_steady_tick", "NbWorkers", "pthread_create"];

/// Tells each place in another file.
pub fn check(tree: &Tree, names: &BTreeMap<&str, Names>, told: &mut Vec<String>) {
    for (file, found) in names.iter().filter(|(file, _)| **file != FILE) {
        for path in &found.paths {
            let mut pairs = path.segments.windows(2);
            let makes = pairs.any(|pair| pair[0] == "thread" && MAKERS.contains(&&*pair[1]));
            let is_thread = path.segments.last().is_some_and(|last| last == "thread");
            let is_renamed = path
                .imported_as
                .as_ref()
                .is_some_and(|name| name != "thread");
            if makes || is_thread && is_renamed {
                told.push(format!(
                    "{file}:{}: `{}`; only {FILE} makes threads",
                    path.line,
                    path.segments.join("::")
                ));
            }
        }
    }
    for (file, text) in tree.sources() {
        for (line, text) in text.lines().enumerate() {
            if let Some(name) = OTHERS.iter().find(|name| text.contains(**name)) {
                told.push(format!(
                    "{file}:{}: `{name}`; only {FILE} makes threads",
                    line + 1
                ));
            }
        }
    }
}
