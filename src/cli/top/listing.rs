//! The lines of a view, independent of a screen: typed cells, with keys by which lines are found
//! again in the next snapshot, in which functions have other ids.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use proftool::base::Language;
use proftool::base::Unit;
use proftool::profile::{self, FunctionId, Profile};
use proftool::view::table::{Cell, Column};
use rustc_hash::FxHasher;

/// A function, in every snapshot the same: its name, module, stated address and declaration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The full name.
    pub name: Arc<str>,
    /// What it is written in.
    pub language: Language,
    /// The short name of the module.
    pub module: Arc<str>,
    /// Where it begins in its file, if that is known.
    pub address: Option<u64>,
    /// Where it is declared, if that is known.
    pub declared_at: Option<Box<profile::Line>>,
}

impl Identity {
    /// That of a function of this profile.
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

    /// The function in this profile, if it has it.
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

/// What identifies a line across updates. Of two lines with the same key, either may be found.
pub type Key = u64;

/// The key of a function's line in a part of a view.
pub fn key_of(part: impl Hash, profile: &Profile, function: FunctionId) -> Key {
    let function = &profile.functions[function];
    let module = &profile.modules[function.module].name;
    let declared_at = &function.declared_at;
    key((part, &function.name, module, function.address, declared_at))
}

/// The key of a line that is known by this.
pub fn key(what: impl Hash) -> Key {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

/// What a line of a tree can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// There is nothing under it.
    Leaf,
    /// What is under it is not shown.
    Closed,
    /// What is under it is shown.
    Open,
    /// It is a collapsed call, which goes on at the line of this key.
    Stub(Key),
}

/// The place of a line in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// How many steps to the side it stands.
    pub steps: u32,
    /// How deep it is; 1 for a root.
    pub level: u32,
    /// Whether it is the only one under the line above it.
    pub is_only: bool,
    /// What can be done with it.
    pub fold: Fold,
    /// The line that it stands under.
    pub parent: Option<Key>,
}

/// How a line stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Not.
    #[default]
    Plain,
    /// It is what the view is about.
    Chosen,
    /// It is a heading or a sentence over the whole width: its one cell.
    Heading,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The key by which it is found again.
    pub key: Key,
    /// The function that it is about, if it is about one.
    pub function: Option<FunctionId>,
    /// A cell for each column; of a heading one.
    pub cells: Vec<Cell>,
    /// How it stands out.
    pub look: Look,
    /// Where it stands in a tree, if it does.
    pub branch: Option<Branch>,
}

impl Line {
    /// A heading or a sentence.
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

/// The lines of a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The columns.
    pub columns: Vec<Column>,
    /// The lines from top to bottom.
    pub lines: Vec<Line>,
    /// How many more there are.
    pub hidden: usize,
    /// Remarks of the view on its lines, a few words each: `340 functions`.
    pub about: Vec<String>,
    /// The line that is chosen as long as nobody has chosen another one.
    pub first: usize,
}

impl Listing {
    /// Takes the columns with these keys away. Headings have none.
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

/// What 100 % is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The name of the event.
    pub event: String,
    /// The unit of weights.
    pub unit: Unit,
    /// The weight of what is looked at, which is 100 %.
    pub weight: u64,
    /// The number of its distinct samples; each as one, however faded.
    pub samples: u64,
    /// The weight of all samples of the event: more than the other if only some are looked at.
    pub all: u64,
}
