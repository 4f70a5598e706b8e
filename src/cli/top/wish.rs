//! What is to be shown.

use std::sync::Arc;
use std::time::Duration;

use proftool::analysis::tree::Collapse;
use proftool::base::IdVec;
use proftool::profile::{EventId, Filter, FunctionId, Profile, Selection, Thread};
use proftool::view::Subject;
use proftool::view::flat::Sort;
use regex::Regex;
use rustc_hash::FxHashSet;

use super::changes::Changes;
use super::listing::{Identity, Key};
use super::pages::Asked;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    #[default]
    Flat,
    // One function, its callers and its callees.
    Graph,
    Tree,
    Cycles,
}

impl Wish {
    pub fn select(&self, profile: &Profile, event: EventId) -> Selection {
        let focus = self.focus.as_ref().map(|regex| match self.resolve {
            Some(resolve) => resolve(profile, Some(event), regex),
            None => regex.clone(),
        });
        let filter = Filter {
            focus,
            ..Filter::clone(&self.base)
        };
        let selection = profile.select(event, &filter);
        match &self.who {
            None => selection,
            // In addition to the threads that options ask for.
            Some(who) => selection.of_threads(|id| who.has(&profile.threads[id])),
        }
    }

    // Fewer samples are shown than at the start.
    pub fn picks(&self) -> bool {
        self.focus.is_some() || self.who.is_some()
    }
}

impl View {
    // All of them, in the order of their keys.
    pub const ALL: [View; 4] = [View::Flat, View::Graph, View::Tree, View::Cycles];

    pub fn name(self) -> &'static str {
        match self {
            View::Flat => "flat",
            View::Graph => "graph",
            View::Tree => "tree",
            View::Cycles => "cycles",
        }
    }
}

// Lines of functions whose full name or label matches.
#[derive(Clone, Debug, Default)]
pub struct Search(pub Option<Regex>);

// The functions whose lines are to be shown; `None` for all.
#[derive(Clone, Debug)]
pub struct Matches(Option<IdVec<FunctionId, bool>>);

impl Search {
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    // The functions that are looked for: by what the screen calls them as well.
    pub fn among(&self, subject: &Subject) -> Matches {
        let functions = &subject.profile.functions;
        Matches(self.0.as_ref().map(|regex| {
            let is_named = |id: FunctionId| regex.is_match(&functions[id].name);
            let unnamed = functions.ids().filter(|&id| !is_named(id));
            let labels = subject.labels(unnamed);
            let is_match = |id| is_named(id) || regex.is_match(labels.of(id));
            functions.ids().map(is_match).collect::<Vec<_>>().into()
        }))
    }
}

impl Matches {
    pub fn has(&self, function: FunctionId) -> bool {
        self.0.as_ref().is_none_or(|found| found[function])
    }
}

// Of the tree.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    // Those whose children are shown.
    pub nodes: Arc<FxHashSet<Key>>,
    // Whether chains of library calls are shown frame by frame.
    pub unfolded: bool,
    // From which node the heaviest path is to be opened, if that was asked for.
    pub hot: Option<Hot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hot {
    // The heaviest root.
    Root,
    Line(Key),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    // Threads with this command name, or of processes that were started for it.
    Command(String),
    Process(i32),
    Thread(i32),
}

impl Who {
    pub fn has(&self, thread: &Thread) -> bool {
        match self {
            Who::Command(name) => **name == *thread.comm || **name == **thread.command(),
            Who::Process(pid) => *pid == thread.pid,
            Who::Thread(tid) => *tid == thread.tid,
        }
    }
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Who::Command(name) => f.write_str(name),
            Who::Process(id) | Who::Thread(id) => write!(f, "{id}"),
        }
    }
}

// Makes a pattern of what a user gives, which may be a label, for samples of an event.
pub type Resolve = fn(&Profile, Option<EventId>, &Regex) -> Regex;

#[derive(Clone, Debug, Default)]
pub struct Wish {
    // Grows with each change of the others.
    pub revision: u64,
    pub view: View,
    // `None` for the event with the most samples.
    pub event: Option<String>,
    // Only stacks with a function that matches.
    pub focus: Option<Regex>,
    // What a focus stands for; `None` where it is always taken as it is.
    pub resolve: Option<Resolve>,
    pub who: Option<Who>,
    // What else samples have to pass.
    pub base: Arc<Filter>,
    // Directories and names that are the user's own code; none to tell by debug information.
    pub own: Arc<[String]>,
    // Only lines that match.
    pub search: Search,
    pub sort: Sort,
    // What has changed since other runs, if it is compared with some.
    pub changes: Option<Arc<Changes>>,
    // Whether that is the order of the flat view, before `sort`.
    pub by_change: bool,
    // The maximum number of lines of the flat view without a search; `None` for all.
    pub limit: Option<usize>,
    pub chosen: Option<Identity>,
    // `None` to choose the degree by the stacks.
    pub degree: Option<Collapse>,
    // Of the tree.
    pub opened: Opened,
    // `None` for no fading.
    pub half_life: Option<Duration>,
    pub page: Option<Asked>,
}
