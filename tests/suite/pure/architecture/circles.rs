//! Which file names which, and the circles in that.
//!
//! ```text
//! src/sampler/rings/rows.rs ─▶ src/sampler/targets/target.rs    use super::super::targets::target::Target
//! src/trace/tracer.rs       ─▶ src/perfdata/sample.rs           use crate::perfdata::Sample: the page of
//!                                                               perfdata hands it on
//! ```
//!
//! A page (`mod.rs`, or `name.rs` next to `name/`) and the files below it count as one family: that
//! a page declares its files, hands their names on and builds its main type of them, while they add
//! to that type, is how a folder of Rust is laid out. So no arrow is drawn between a page and what
//! is below it; any two other files must not reach each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::names::Names;
use super::rules::resolve;
use super::tree::module_path;

/// Files by the module that they are.
type Modules<'a> = BTreeMap<Vec<String>, &'a str>;

/// For each file those that it names.
pub type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The arrows between files of the library, and those of the command line.
pub fn arrows<'a>(names: &BTreeMap<&'a str, Names>) -> Arrows<'a> {
    let sources = names.keys().filter(|file| !is_test(&module_path(file)));
    let roots = ["src/lib.rs", "src/main.rs"];
    let modules: Modules<'_> = sources
        .filter(|file| !roots.contains(file))
        .map(|file| (module_path(file), *file))
        .collect();
    let mut arrows = Arrows::new();
    for (module, file) in &modules {
        let mut named = BTreeSet::new();
        for path in &names[file].paths {
            if is_test(&path.inside) {
                continue;
            }
            let target = resolve(file, path).and_then(|full| defined_in(full, &modules, names));
            named.extend(target.filter(|target| {
                let target = module_path(target);
                !target.starts_with(module) && !module.starts_with(&target)
            }));
        }
        arrows.insert(file, named);
    }
    arrows
}

fn is_test(module: &[String]) -> bool {
    module.iter().any(|name| name == "tests")
}

/// The file that defines what a path from the crate's root names. Pages hand names on, so the way
/// may lead over several.
fn defined_in<'a>(
    mut full: Vec<String>,
    modules: &Modules<'a>,
    names: &BTreeMap<&'a str, Names>,
) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    loop {
        let depth = (1..=full.len()).rev();
        let depth = depth
            .into_iter()
            .find(|&depth| modules.contains_key(&full[..depth]))?;
        let file = modules[&full[..depth]];
        let rest = full.split_off(depth);
        // What is named of a page may be handed on from a file below it.
        let handed_on = rest.first().and_then(|name| {
            let below =
                |target: &Vec<String>| target.len() > full.len() + 1 && target.starts_with(&full);
            names[file]
                .paths
                .iter()
                .filter(|path| path.inside.is_empty() && path.segments.last() == Some(name))
                .find_map(|path| {
                    let child = [&full[..], &path.segments[..1]].concat();
                    let target = if modules.contains_key(&child) {
                        Some([&full[..], &path.segments[..]].concat())
                    } else {
                        resolve(file, path)
                    };
                    target.filter(below)
                })
        });
        match handed_on {
            Some(next) if seen.insert(next.clone()) => full = [next, rest[1..].to_vec()].concat(),
            _ => return Some(file),
        }
    }
}

/// One shortest circle through each file that can reach itself, no file twice.
pub fn circles<'a>(arrows: &Arrows<'a>) -> Vec<Vec<&'a str>> {
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for file in arrows.keys() {
        let circle = shortest(arrows, file).unwrap_or_default();
        if !circle.is_empty() && circle.iter().all(|file| !told.contains(file)) {
            told.extend(&circle);
            found.push(circle);
        }
    }
    found
}

/// The shortest way from a file back to it; breadth first.
fn shortest<'a>(arrows: &Arrows<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for next in arrows.get(file).into_iter().flatten() {
            if *next == start {
                let mut way = vec![file];
                while way[way.len() - 1] != start {
                    way.push(from[way[way.len() - 1]]);
                }
                way.reverse();
                return Some(way);
            }
            if !from.contains_key(next) {
                from.insert(next, file);
                queue.push_back(next);
            }
        }
    }
    None
}
