//! The lines of a view, independent of a screen: typed cells, with keys by which lines are found
//! again in the next snapshot, in which functions have other ids.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use proftool::base::Language;
use proftool::base::Unit;
use proftool::profile::{self, FunctionId, Profile};
use proftool::view::table::{Cell, Column};
use rustc_hash::FxHasher;

// A function, in every snapshot the same: its name, module, stated address and declaration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub name: Arc<str>,
    pub language: Language,
    // The short name.
    pub module: Arc<str>,
    // Where it begins in its file, if that is known.
    pub address: Option<u64>,
    pub declared_at: Option<Box<profile::Line>>,
}

impl Identity {
    pub fn of(profile: &Profile, function: FunctionId) -> Identity {
        let function = &profile.functions[function];
        Identity {
            language: function.language,
            name: function.name.as_str().into(),
            module: profile.modules[function.module].name.as_str().into(),
            address: function.address,
            declared_at: function.declared_at.clone(),
        }
    }

    // The function in this profile, if it has it.
    pub fn find(&self, profile: &Profile) -> Option<FunctionId> {
        let mut functions = profile.functions.enumerate();
        let found = functions.find(|(_, function)| {
            *function.name == *self.name
                && function.address == self.address
                && function.declared_at == self.declared_at
                && *profile.modules[function.module].name == *self.module
        });
        found.map(|(id, _)| id)
    }
}

// What identifies a line across updates. Of two lines with the same key, either may be found.
pub type Key = u64;

// The key of a function's line in a part of a view.
pub fn key_of(part: impl Hash, profile: &Profile, function: FunctionId) -> Key {
    let function = &profile.functions[function];
    let module = &profile.modules[function.module].name;
    let declared_at = &function.declared_at;
    key((part, &function.name, module, function.address, declared_at))
}

pub fn key(what: impl Hash) -> Key {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    Leaf,
    Closed,
    Open,
    // A collapsed call, which goes on at the line of this key.
    Stub(Key),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    // How many steps to the side it stands.
    pub steps: u32,
    // 1 for a root.
    pub level: u32,
    // Whether it is the only one under the line above it.
    pub is_only: bool,
    pub fold: Fold,
    // The line that it stands under.
    pub parent: Option<Key>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    #[default]
    Plain,
    // What the view is about.
    Chosen,
    // A heading or a sentence over the whole width: its one cell.
    Heading,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    // The key by which it is found again.
    pub key: Key,
    pub function: Option<FunctionId>,
    // One for each column; of a heading one.
    pub cells: Vec<Cell>,
    pub look: Look,
    pub branch: Option<Branch>,
}

impl Line {
    pub fn heading(key: Key, text: String) -> Line {
        Line {
            key,
            function: None,
            cells: vec![Cell::Text(text)],
            look: Look::Heading,
            branch: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub columns: Vec<Column>,
    pub lines: Vec<Line>,
    // How many more there are.
    pub hidden: usize,
    // Remarks of the view on its lines, a few words each: `340 functions`.
    pub about: Vec<String>,
    // The line that is chosen as long as nobody has chosen another one.
    pub first: usize,
}

impl Listing {
    // Headings have no columns.
    pub fn without(mut self, keys: &[&str]) -> Listing {
        let kept = self.columns.iter().map(|it| !keys.contains(&it.key));
        let kept: Vec<bool> = kept.collect();
        self.columns.retain(|it| !keys.contains(&it.key));
        let rows = self.lines.iter_mut();
        for line in rows.filter(|line| line.look != Look::Heading) {
            let mut kept = kept.iter();
            line.cells.retain(|_| *kept.next().unwrap_or(&true));
        }
        self
    }
}

// What 100 % is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    pub event: String,
    pub unit: Unit,
    // The weight of what is looked at, which is 100 %.
    pub weight: u64,
    // Distinct samples; each as one, however faded.
    pub samples: u64,
    // The weight of all samples of the event: more than the other if only some are looked at.
    pub all: u64,
}
