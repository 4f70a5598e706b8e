//! What functions are called where they are shown together: short, and still told apart.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::name::short_name;
use super::page::Block;
use super::table::Cell;
use super::{Names, Subject};
use crate::profile::FunctionId;

/// What stands before the name of a function that was put into stacks which lacked it.
pub const INFERRED: &str = "~";

/// What stands behind a call that no stack was recorded with.
pub(super) const BY_CODE: &str = " (inferred)";

/// What that means.
pub(super) const LEGEND_OF_CALLS: &str = "(inferred): few or no stacks were recorded with this call; it was restored from the code. \
    --no-repair shows stacks as recorded.";

/// A call, with a mark behind it if it [is inferred](is_inferred).
pub(super) fn call(text: &str, inferred: u64, weight: u64) -> String {
    let mark = if is_inferred(inferred, weight) {
        BY_CODE
    } else {
        ""
    };
    format!("{text}{mark}")
}

/// Whether what has this weight is marked: at least half of it rests on functions that were put into
/// stacks.
pub fn is_inferred(inferred: u64, weight: u64) -> bool {
    inferred > 0 && inferred >= weight.saturating_sub(inferred)
}

/// The name of a function, marked if it [is inferred](is_inferred).
pub(super) fn cell(name: &str, inferred: u64, weight: u64) -> Cell {
    let text = name.to_owned();
    match is_inferred(inferred, weight) {
        false => Cell::Text(text),
        true => Cell::Branch {
            guide: INFERRED.into(),
            text,
        },
    }
}

/// A text, with the mark before it if what it tells of [is inferred](is_inferred).
pub(super) fn marked(text: &str, inferred: u64, weight: u64) -> String {
    let mark = if is_inferred(inferred, weight) {
        INFERRED
    } else {
        ""
    };
    format!("{mark}{text}")
}

/// What the mark means, where there are any.
pub(super) fn legend(is_marked: bool) -> Option<Block> {
    let text = "~f: in most samples here, f was not recorded; it was restored because every way through \
                the code passes through it. --no-repair shows stacks as recorded.";
    is_marked.then(|| Block::Line(text.into()))
}

/// The labels of the functions that a view shows.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    labels: FxHashMap<FunctionId, String>,
}

impl Labels {
    /// Labels for these functions.
    ///
    /// Where short names are asked for, functions that would look alike get their full names,
    /// and those that still do their module, then their address.
    pub fn new(subject: &Subject, functions: impl IntoIterator<Item = FunctionId>) -> Labels {
        let shown: FxHashSet<FunctionId> = functions.into_iter().collect();
        let mut shown: Vec<FunctionId> = shown.into_iter().collect();
        shown.sort_unstable();
        if subject.names != Names::Short {
            let label = |id| (id, subject.name(id).to_owned());
            let labels = shown.into_iter().map(label).collect();
            return Labels { labels };
        }
        let full = |id: FunctionId| subject.name(id);
        let module = |id: FunctionId| match subject.module(id) {
            "" => full(id).to_owned(),
            module => format!("{} [{module}]", full(id)),
        };
        let address = |id: FunctionId| match subject.profile.functions[id].address {
            None => module(id),
            Some(address) => format!("{} {address:#x}", module(id)),
        };
        let mut labels = FxHashMap::default();
        let left = settle(&mut labels, shown, |id| short_name(full(id)).into_owned());
        let left = settle(&mut labels, left, |id| full(id).to_owned());
        let left = settle(&mut labels, left, module);
        let left = settle(&mut labels, left, address);
        labels.extend(left.into_iter().map(|id| (id, address(id))));
        Labels { labels }
    }

    /// The label of a function for which there is one.
    pub fn of(&self, function: FunctionId) -> &str {
        self.labels.get(&function).map_or("", String::as_str)
    }
}

/// Gives a label to each function whose label no other has; gives the others back.
fn settle(
    labels: &mut FxHashMap<FunctionId, String>,
    functions: Vec<FunctionId>,
    label: impl Fn(FunctionId) -> String,
) -> Vec<FunctionId> {
    let mut groups: BTreeMap<String, Vec<FunctionId>> = BTreeMap::new();
    for id in functions {
        groups.entry(label(id)).or_default().push(id);
    }
    let mut left = Vec::new();
    for (label, group) in groups {
        match group[..] {
            [id] => drop(labels.insert(id, label)),
            _ => left.extend(group),
        }
    }
    left
}
