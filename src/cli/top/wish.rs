//! What is to be shown.

use std::sync::Arc;
use std::time::Duration;

use proftool::analysis::tree::Collapse;
use proftool::profile::{Filter, FunctionId, Profile};
use proftool::view::flat::Sort;
use regex::Regex;
use rustc_hash::FxHashSet;

use super::listing::{Identity, Key};
use super::pages::Asked;

/// The views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// Functions by weight.
    #[default]
    Flat,
    /// One function, its callers and its callees.
    Graph,
    /// Calls as a tree.
    Tree,
    /// Recursion.
    Cycles,
}

impl Wish {
    /// What samples have to pass.
    pub fn filter(&self) -> Filter {
        let mut filter = Filter {
            focus: self.focus.clone(),
            ..Filter::clone(&self.base)
        };
        match &self.who {
            None => {}
            Some(Who::Command(name)) => filter.comms = vec![name.clone()],
            Some(Who::Process(pid)) => filter.pids = vec![*pid],
            Some(Who::Thread(tid)) => filter.tids = vec![*tid],
        }
        filter
    }

    /// Whether fewer samples are shown than at the start.
    pub fn picks(&self) -> bool {
        self.focus.is_some() || self.who.is_some()
    }
}

impl View {
    /// All of them, in the order of their keys.
    pub const ALL: [View; 4] = [View::Flat, View::Graph, View::Tree, View::Cycles];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            View::Flat => "flat",
            View::Graph => "graph",
            View::Tree => "tree",
            View::Cycles => "cycles",
        }
    }
}

/// What lines are looked for: those of functions whose full name matches.
#[derive(Clone, Debug, Default)]
pub struct Search(pub Option<Regex>);

impl Search {
    /// Whether anything is looked for.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether this function's lines are to be shown.
    pub fn finds(&self, profile: &Profile, function: FunctionId) -> bool {
        let name = &profile.functions[function].name;
        self.0.as_ref().is_none_or(|regex| regex.is_match(name))
    }
}

/// Which nodes of the tree are open.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// Those whose children are shown.
    pub nodes: Arc<FxHashSet<Key>>,
    /// Whether chains of library calls are shown frame by frame.
    pub unfolded: bool,
    /// From which node the heaviest path is to be opened, if that was asked for.
    pub hot: Option<Hot>,
}

/// From where the heaviest path is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hot {
    /// From the heaviest root.
    Root,
    /// From this line.
    Line(Key),
}

/// The command, process or thread whose samples are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Those of threads with this command name, or of processes that were started for this.
    Command(String),
    /// Those of a process.
    Process(i32),
    /// Those of a thread.
    Thread(i32),
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Who::Command(name) => f.write_str(name),
            Who::Process(id) | Who::Thread(id) => write!(f, "{id}"),
        }
    }
}

/// What is to be shown.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Grows with each change of the others.
    pub revision: u64,
    /// The view.
    pub view: View,
    /// The name of the event; `None` for the one with the most samples.
    pub event: Option<String>,
    /// Only stacks with a function that matches.
    pub focus: Option<Regex>,
    /// Only samples of these.
    pub who: Option<Who>,
    /// What else samples have to pass.
    pub base: Arc<Filter>,
    /// Directories and names that are the user's own code; none to tell by debug information.
    pub own: Arc<[String]>,
    /// Only lines that match.
    pub search: Search,
    /// The order of functions.
    pub sort: Sort,
    /// The maximum number of lines of the flat view without a search; `None` for all.
    pub limit: Option<usize>,
    /// The function that the graph is about.
    pub chosen: Option<Identity>,
    /// The degree to which recursion is collapsed; `None` to choose it by the stacks.
    pub degree: Option<Collapse>,
    /// The open nodes of the tree.
    pub opened: Opened,
    /// The half-life of weights; `None` for no fading.
    pub half_life: Option<Duration>,
    /// The page over the view.
    pub page: Option<Asked>,
}
