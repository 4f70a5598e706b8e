//! What distinguishes definitions of one image that are different functions.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::binary::{Declared, DefinitionId, Described};

use super::without_link_mark;

/// What distinguishes the functions of one image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    External(String),
    Declared {
        declaration: Declaration,
        unit: Option<u64>,
    },
    Entry(DefinitionId),
}

/// What a function is called and where it is declared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Declaration {
    linkage_name: Option<String>,
    name: Option<String>,
    file: String,
    line: u32,
}

impl Key {
    pub(super) fn of(described: &Described, first_line: Option<&(String, u32)>) -> Key {
        let linkage_name = described.linkage_name.as_deref().map(without_link_mark);
        let stem = linkage_name.map(without_rust_hash);
        if let Some(linkage_name) = linkage_name
            && described.is_external
            && stem == Some(linkage_name)
        {
            return Key::External(linkage_name.to_owned());
        }
        // All instances of a template have its name and its line.
        if described.may_be_instance && linkage_name.is_none() {
            return Key::Entry(described.root);
        }
        let (file, line) = match (&described.declared, first_line) {
            (Some(Declared::At(file, line)), _) => (normal(file), *line),
            (_, Some((file, line))) => (normal(file), *line),
            _ => return Key::Entry(described.root),
        };
        let name = match stem {
            // The hash of a Rust name stands for its arguments, too.
            Some(_) => described.name.clone(),
            None => described.qualified_name.clone(),
        };
        let declaration = Declaration {
            linkage_name: stem.map(str::to_owned),
            name,
            file,
            line,
        };
        Key::Declared {
            declaration,
            unit: None,
        }
    }
}

/// Lines that a definition has for certain. The order of the fields sorts those of one name in one
/// file by their first line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Extent<'a> {
    name: Option<&'a str>,
    file: &'a str,
    first: u32,
    last: u32,
    unit: u64,
    root: DefinitionId,
}

/// The first lines of definitions whose lines are only partly known, by their last entries:
/// definitions of one name from different units are the same if their lines overlap.
pub(super) fn first_lines(
    described: &[(DefinitionId, Described)],
) -> FxHashMap<DefinitionId, (String, u32)> {
    let mut all = Vec::new();
    for (_, described) in described {
        if let Some(Declared::Lines(file, first, last)) = &described.declared {
            all.push(Extent {
                name: described.qualified_name.as_deref(),
                file,
                first: *first,
                last: *last,
                unit: described.unit,
                root: described.root,
            });
        }
    }
    all.sort_unstable();
    all.dedup();
    let mut found = FxHashMap::default();
    let mut rest = all.as_slice();
    while let Some(&start) = rest.first() {
        let mut reach = start.last;
        let overlaps = |next: &&Extent| {
            let is_same = next.name == start.name && next.file == start.file;
            let overlaps = is_same && next.first <= reach;
            if overlaps {
                reach = reach.max(next.last);
            }
            overlaps
        };
        let count = rest.iter().take_while(overlaps).count().max(1);
        let (cluster, others) = rest.split_at(count.min(rest.len()));
        rest = others;
        let mut units = FxHashSet::default();
        // A unit that has two such definitions says that these are two.
        if cluster.iter().all(|extent| units.insert(extent.unit)) {
            for extent in cluster {
                found.insert(extent.root, (start.file.to_owned(), start.first));
            }
        }
    }
    found
}

/// A legacy Rust name without the hash at its end: `17h` and sixteen hexadecimal digits.
fn without_rust_hash(name: &str) -> &str {
    let Some(before) = name.strip_suffix('E').filter(|n| n.starts_with("_ZN")) else {
        return name;
    };
    match before.rsplit_once("17h") {
        Some((before, hash))
            if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            before
        }
        _ => name,
    }
}

/// A path without `.` and `..`, so that one header has one path in all units.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts
                .last()
                .is_some_and(|last| !last.is_empty() && *last != "..") =>
            {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
