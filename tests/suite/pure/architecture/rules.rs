//! The rules: what the map demands of the code.

use std::collections::{BTreeMap, BTreeSet};

use super::circles;
use super::errors;
use super::map::{Inner, Map, Room};
use super::names::{NamedPath, Names};
use super::signatures;
use super::source::{Source, Sources};
use super::speech;
use super::threads;
use super::tree::{Tree, module_path, room_of};
use super::types;

/// No file is longer.
const LINES_MAX: usize = 600;
/// No folder has more files, not counting those of its folders.
const FILES_MAX: usize = 25;

/// Names that say nothing about what a module owns.
const IDLE_NAMES: [&str; 10] = [
    "util", "utils", "common", "shared", "helper", "helpers", "misc", "manager", "handler", "stuff",
];

/// Every violation, as `file:line: what` in the order of files.
pub fn check(tree: &Tree) -> Vec<String> {
    let map = match Map::read(tree.text("src/ARCHITECTURE.md")) {
        Ok(map) => map,
        Err(missing) => return vec![missing],
    };
    let mut told = Vec::new();
    let mut names = BTreeMap::new();
    let mut sources = Sources::new();
    for (file, text) in tree.sources() {
        match Source::of(file, text) {
            Ok(found) => {
                names.insert(file, found.names.clone());
                sources.insert(file, found);
            }
            Err(why) => told.push(format!("{file}: {why}")),
        }
    }
    check_map(&map, &mut told);
    check_rooms(&map, tree, &names, &mut told);
    check_packages(&map, tree, &mut told);
    check_pages_and_lengths(&map, tree, &mut told);
    check_names(&names, &mut told);
    check_folders(tree, &mut told);
    check_circles(&names, &mut told);
    check_unsafe(&map, &names, &mut told);
    speech::check(&map, &sources, &mut told);
    threads::check(tree, &names, &mut told);
    signatures::check(&map, tree, &sources, &names, &mut told);
    errors::check(&map, &sources, &mut told);
    check_use(&map, &names, &mut told);
    let macros = exported_macros(&names);
    for (file, found) in &names {
        for path in &found.paths {
            check_path(&map, &macros, file, path, &mut told);
        }
    }
    check_inner(&map, &names, &mut told);
    types::check(&map, &names, &mut told);
    told.dedup();
    told
}

/// A room imports only from rooms above it, so that the arrows of the map cannot form a circle.
fn check_map(map: &Map, told: &mut Vec<String>) {
    for (row, room) in map.rooms.iter().enumerate() {
        let above: Vec<&str> = map.rooms[..row]
            .iter()
            .map(|room| room.name.as_str())
            .collect();
        for import in &room.imports {
            if !above.contains(&import.as_str()) {
                told.push(format!(
                    "src/ARCHITECTURE.md: `{}` may import `{import}`, which is not above it in the map",
                    room.name
                ));
            }
        }
    }
    for (room, targets) in &map.types_only {
        let imports = map.room(room).map(|room| &room.imports);
        for target in targets {
            if !imports.is_some_and(|imports| imports.contains(target)) {
                told.push(format!(
                    "src/ARCHITECTURE.md: `{room}` names types of `{target}`, which it may not import"
                ));
            }
        }
    }
    for package in &map.packages {
        for home in package.homes.iter().flatten() {
            if map.room(home).is_none() {
                told.push(format!(
                    "src/ARCHITECTURE.md: `{}` is at home in `{home}`, which is no room of the map",
                    package.name
                ));
            }
        }
    }
}

/// What a row allows is made use of; else it is no wall, but an open door.
fn check_use(map: &Map, names: &BTreeMap<&str, Names>, told: &mut Vec<String>) {
    let macros = exported_macros(names);
    let is_there =
        |room: &Room| !room.outside && names.keys().any(|file| room_of(file) == room.name);
    let mut used: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut packages: BTreeSet<(&str, &[String])> = BTreeSet::new();
    for (file, found) in names {
        let here = room_of(file);
        for path in &found.paths {
            for length in 1..=path.segments.len() {
                packages.insert((here, &path.segments[..length]));
            }
            let local = ["crate", "self", "super"].contains(&path.segments[0].as_str());
            let full = resolve(file, path).filter(|_| local).unwrap_or_default();
            if let Some(first) = full.first() {
                let target = macros.get(first).unwrap_or(first);
                used.insert((here, target.clone()));
                // A folder that is a room in a room.
                let inner = module_path(file);
                for room in map
                    .inner
                    .iter()
                    .filter(|room| inner.starts_with(&room.path))
                {
                    let around = room.path.len() - 1;
                    let named = full
                        .get(around)
                        .filter(|_| full.starts_with(&room.path[..around]));
                    used.extend(
                        named.map(|named| ("", format!("{}/{named}", room.path.join("/")))),
                    );
                }
            }
        }
    }
    for (row, room) in map
        .rooms
        .iter()
        .enumerate()
        .filter(|(_, room)| is_there(room))
    {
        let above = |import: &&String| map.rooms[..row].iter().any(|room| room.name == **import);
        let unused = |import: &&String| !used.contains(&(room.name.as_str(), import.to_string()));
        for import in room.imports.iter().filter(above).filter(unused) {
            let name = &room.name;
            told.push(format!(
                "src/ARCHITECTURE.md: `{name}` may import `{import}`, but does not"
            ));
        }
    }
    for room in &map.inner {
        let path = room.path.join("/");
        let unused = |import: &&String| !used.contains(&("", format!("{path}/{import}")));
        for import in room.imports.iter().filter(unused) {
            told.push(format!(
                "src/ARCHITECTURE.md: `{path}` may import `{import}`, but does not"
            ));
        }
    }
    for package in &map.packages {
        let path = package.name.replace('-', "_");
        let path: Vec<String> = path.split("::").map(String::from).collect();
        for home in package.homes.iter().flatten() {
            if map.room(home).is_some() && !packages.contains(&(home.as_str(), &path[..])) {
                let name = &package.name;
                told.push(format!(
                    "src/ARCHITECTURE.md: `{name}` is at home in `{home}`, which does not name it"
                ));
            }
        }
    }
}

/// What stands directly below `src/` is the rooms of the map; the library declares its own.
fn check_rooms(map: &Map, tree: &Tree, names: &BTreeMap<&str, Names>, told: &mut Vec<String>) {
    let is_code = |file: &&String| file.starts_with("src/") && file.ends_with(".rs");
    let files = tree.files.keys().filter(is_code);
    let there: BTreeSet<&str> = files.map(|file| room_of(file)).collect();
    for room in there.iter().filter(|&&room| room != "lib") {
        if map.room(room).is_none() {
            told.push(format!(
                "src/{room}: no row of the map in src/ARCHITECTURE.md"
            ));
        }
    }
    let declares = |file: &str, name: &str, public: bool| {
        names.get(file).is_some_and(|found| {
            let mut modules = found.modules.iter();
            modules.any(|module| module.name == name && (module.public || !public))
        })
    };
    for Room { name, outside, .. } in &map.rooms {
        if !there.contains(name.as_str()) {
            told.push(format!(
                "src/ARCHITECTURE.md: the map has a room `{name}`, but src/ has not"
            ));
        } else if !outside && !declares("src/lib.rs", name, true) {
            told.push(format!(
                "src/lib.rs: the room `{name}` is not declared by `pub mod {name};`"
            ));
        } else if *outside && declares("src/lib.rs", name, false) {
            told.push(format!(
                "src/lib.rs: `{name}` is declared here too; the command line belongs to the binary"
            ));
        } else if *outside && name != "main" && !declares("src/main.rs", name, false) {
            told.push(format!("src/main.rs: `mod {name};` is missing"));
        }
    }
}

/// Every dependency has a row, and every row is a dependency.
fn check_packages(map: &Map, tree: &Tree, told: &mut Vec<String>) {
    let dependencies = dependencies(tree.text("Cargo.toml"));
    for name in &dependencies {
        if !map.packages.iter().any(|package| package.name == *name) {
            told.push(format!(
                "Cargo.toml: `{name}` has no row in the map in src/ARCHITECTURE.md"
            ));
        }
    }
    for package in &map.packages {
        let name = package.name.as_str();
        if !name.starts_with("std::") && !dependencies.contains(&name) {
            told.push(format!(
                "src/ARCHITECTURE.md: the map has a package `{name}`, but Cargo.toml has not"
            ));
        }
    }
}

/// Packages whose version begins with 0, by the names that code has for them.
pub fn unstable_packages(cargo_toml: &str) -> Vec<String> {
    let names = dependencies(cargo_toml);
    let is_unstable = |name: &&&str| {
        let mut lines = cargo_toml.lines();
        lines.any(|line| {
            let value = line.strip_prefix(**name).map(str::trim_start);
            let value = value.and_then(|value| value.strip_prefix('='));
            let version = value.map(|value| value.split_once("version").map_or(value, |(_, v)| v));
            let number = version.and_then(|version| version.split('"').nth(1));
            number.is_some_and(|number| number.trim_start_matches(['=', '^', '~']).starts_with("0"))
        })
    };
    let unstable = names.iter().filter(is_unstable);
    unstable.map(|name| name.replace('-', "_")).collect()
}

/// The names below every `[…dependencies]` of a Cargo.toml that is not of tests or builds.
fn dependencies(cargo_toml: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in cargo_toml.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section == "dependencies" || section.ends_with(".dependencies");
            found.extend(section.strip_prefix("dependencies."));
        } else if inside && !line.starts_with('#') {
            let key = line.split(['=', '.', ' ']).next().unwrap_or_default();
            found.extend(Some(key).filter(|key| !key.is_empty()));
        }
    }
    found
}

fn check_pages_and_lengths(map: &Map, tree: &Tree, told: &mut Vec<String>) {
    for (file, text) in tree.sources() {
        let is_page = map.rooms.iter().any(|Room { name, .. }| {
            [format!("src/{name}.rs"), format!("src/{name}/mod.rs")].contains(&file.to_string())
        });
        if is_page && !text.starts_with("//!") {
            told.push(format!("{file}: the room's page (`//!`) is missing"));
        }
        let lines = text.lines().count();
        if lines > LINES_MAX {
            told.push(format!(
                "{file}: {lines} lines, above {LINES_MAX}: look for the second idea"
            ));
        }
    }
}

fn check_names(names: &BTreeMap<&str, Names>, told: &mut Vec<String>) {
    let idle = |name: &str| IDLE_NAMES.contains(&name);
    let message = |name: &str| format!("`{name}` names no idea; name what the module owns");
    for (file, found) in names {
        if let Some(name) = module_path(file).iter().find(|name| idle(name)) {
            told.push(format!("{file}: {}", message(name)));
        }
        for module in found.modules.iter().filter(|module| idle(&module.name)) {
            told.push(format!("{file}:{}: {}", module.line, message(&module.name)));
        }
    }
}

/// A room in a room names of the one around it what its row lists, and is seen by its page only.
fn check_inner(map: &Map, names: &BTreeMap<&str, Names>, told: &mut Vec<String>) {
    for Inner {
        path: inner,
        imports,
    } in &map.inner
    {
        let around = &inner[..inner.len() - 1];
        let shown = inner.join("/");
        let modules: BTreeSet<Vec<String>> = names.keys().map(|file| module_path(file)).collect();
        if !modules.contains(inner) {
            told.push(format!(
                "src/ARCHITECTURE.md: the map has a room `{shown}`, but src/ has not"
            ));
        }
        for (file, found) in names {
            let module = module_path(file);
            if !module.starts_with(around) {
                continue;
            }
            let is_inside = module.starts_with(inner);
            for path in &found.paths {
                let Some(full) = resolve(file, path) else {
                    continue;
                };
                let named = full.get(around.len()).filter(|_| full.starts_with(around));
                let is_listed =
                    named.is_none_or(|named| full.starts_with(inner) || imports.contains(named));
                let deeper = full.get(..inner.len() + 1).map(<[String]>::to_vec);
                let is_page = !full.starts_with(inner)
                    || deeper.is_none_or(|deeper| !modules.contains(&deeper));
                if is_inside && !is_listed {
                    told.push(format!(
                        "{file}:{}: `{shown}` may not import `{}`",
                        path.line,
                        full.join("::")
                    ));
                } else if !is_inside && !is_page {
                    told.push(format!(
                        "{file}:{}: of `{shown}` only its page may be named",
                        path.line
                    ));
                }
            }
        }
    }
}

/// Nobody finds a file among forty.
fn check_folders(tree: &Tree, told: &mut Vec<String>) {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, _) in tree.sources() {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry(folder).or_default() += 1;
    }
    for (folder, files) in folders {
        if files > FILES_MAX {
            told.push(format!(
                "{folder}: {files} files, above {FILES_MAX}: look for a folder's worth of them"
            ));
        }
    }
}

/// Files that name each other can only be read together.
fn check_circles(names: &BTreeMap<&str, Names>, told: &mut Vec<String>) {
    for circle in circles::circles(&circles::arrows(names)) {
        told.push(format!(
            "{}: files name each other in a circle",
            circle.join(" -> ")
        ));
    }
}

fn check_unsafe(map: &Map, names: &BTreeMap<&str, Names>, told: &mut Vec<String>) {
    let listed = |file: &str| {
        let inner = file.strip_prefix("src/").unwrap_or(file);
        map.unsafe_files.iter().any(|listed| listed == inner)
    };
    for (file, found) in names.iter().filter(|(file, _)| !listed(file)) {
        for line in &found.unsafe_lines {
            told.push(format!(
                "{file}:{line}: unsafe code in a file that the map does not list for it"
            ));
        }
    }
    for file in &map.unsafe_files {
        let found = names.get(format!("src/{file}").as_str());
        if found.is_none_or(|found| found.unsafe_lines.is_empty()) {
            told.push(format!(
                "src/ARCHITECTURE.md: the map lists src/{file} for unsafe code, but there is none"
            ));
        }
    }
}

/// The room of each macro that stands at the crate's root.
fn exported_macros(names: &BTreeMap<&str, Names>) -> BTreeMap<String, String> {
    names
        .iter()
        .flat_map(|(file, found)| {
            let room = room_of(file).to_string();
            let macros = found.exported_macros.iter();
            macros.map(move |name| (name.clone(), room.clone()))
        })
        .collect()
}

fn check_path(
    map: &Map,
    macros: &BTreeMap<String, String>,
    file: &str,
    path: &NamedPath,
    told: &mut Vec<String>,
) {
    let mut tell = |what: String| told.push(format!("{file}:{}: {what}", path.line));
    let segments: Vec<&str> = path.segments.iter().map(String::as_str).collect();
    if is_glob_of_module(&segments) && !is_import_of_tested(&segments, path) {
        return tell("glob import; name what is used".into());
    }
    let here = room_of(file);
    let room = map.room(here);
    let outside = room.is_some_and(|room| room.outside);
    match segments[0] {
        "crate" | "self" | "super" => match resolve(file, path) {
            None => tell("`super` leaves the crate".into()),
            Some(full) if full.is_empty() => {
                tell("the crate's root is imported; import from a room".into());
            }
            Some(full) => {
                let target = macros.get(&full[0]).unwrap_or(&full[0]).as_str();
                if target == here || room.is_some_and(|r| r.imports.iter().any(|i| i == target)) {
                } else if outside {
                    tell(format!(
                        "`{here}` may not import `crate::{target}`; use `proftool::`"
                    ));
                } else if map.room(target).is_none() {
                    tell(format!("`crate::{target}` is no room of the map"));
                } else {
                    tell(format!("`{here}` may not import `{target}`"));
                }
            }
        },
        "proftool" if !outside => {
            tell("a room of the library imports with `crate::`, not `proftool::`".into());
        }
        "proftool" => {
            let target = segments.get(1).copied().unwrap_or_default();
            if map.room(target).is_none_or(|room| room.outside) {
                tell(format!("`proftool::{target}` is no room of the map"));
            }
        }
        _ => {
            for package in &map.packages {
                let name = package.name.replace('-', "_");
                let parts: Vec<&str> = name.split("::").collect();
                let away = |homes: &Vec<String>| !homes.iter().any(|home| home == here);
                if segments.starts_with(&parts) && package.homes.as_ref().is_some_and(away) {
                    tell(format!("`{}` is not at home in `{here}`", package.name));
                }
            }
        }
    }
}

/// A glob may name the variants of an enum (`use Kind::*` in a function), but not a module.
fn is_glob_of_module(segments: &[&str]) -> bool {
    let is_type = |name: &str| name.starts_with(char::is_uppercase);
    match segments {
        [.., of, "*"] => !is_type(of),
        [.., last] => *last == "*",
        [] => false,
    }
}

/// `use super::*` in `mod tests { … }` names the file that it tests.
fn is_import_of_tested(segments: &[&str], path: &NamedPath) -> bool {
    segments == ["super", "*"] && path.inside == ["tests"]
}

/// The path from the crate's root; `None` if it climbs above it.
pub fn resolve(file: &str, path: &NamedPath) -> Option<Vec<String>> {
    let mut full = module_path(file);
    full.extend(path.inside.iter().cloned());
    let mut segments = path.segments.as_slice();
    while let Some((first, rest)) = segments.split_first() {
        match first.as_str() {
            "crate" => full.clear(),
            "self" => {}
            "super" => {
                full.pop()?;
            }
            _ => break,
        }
        segments = rest;
    }
    full.extend(segments.iter().cloned());
    Some(full)
}
