//! Makes what is to be shown from what is seen. It may take longer than the time to the next key,
//! so it has a thread of its own; what a key does not change is kept.

use std::sync::Arc;

use proftool::analysis::owners::Owners;
use proftool::analysis::tree::Collapse;
use proftool::profile::{EventId, Filter, FunctionId, Profile, Selection};
use proftool::view::{Names, Subject};

use super::super::advice::Situation;
use super::listing::{Identity, Key, Listing, Whole};
use super::pages::{self, Asked};
use super::source::Seen;
use super::source::Source;
use super::wish::{View, Who, Wish};
use super::{cycles, flat, graph, tree};

#[derive(Clone, Debug)]
pub struct Prepared {
    pub seen: Arc<Seen>,
    pub view: View,
    pub listing: Listing,
    pub whole: Whole,
    pub events: Vec<String>,
    pub about: Option<Identity>,
    // The function that was chosen is in no stack at this moment.
    pub is_gone: bool,
    // What was opened along the heaviest path.
    pub hot: Option<tree::HotPath>,
    // The nodes of the tree that are no line, as a chain of calls is one.
    pub folded: Vec<Key>,
    // How far recursion is collapsed in the tree.
    pub degree: Option<Collapse>,
    pub page: Option<(Asked, String)>,
}

#[derive(Default)]
pub struct Preparer {
    kept: Option<Kept>,
}

// What was made for the last wish.
struct Kept {
    number: u64,
    event: Option<String>,
    focus: Option<String>,
    who: Option<Who>,
    selection: Selection,
    all: u64,
    tree: Option<(Option<Collapse>, tree::Made)>,
}

impl Preparer {
    pub fn prepare(&mut self, seen: &Arc<Seen>, wish: &Wish) -> Prepared {
        let profile = &seen.profile;
        let mut kept = match self.kept.take() {
            Some(kept) if kept.is_for(seen, wish) => kept,
            _ => Kept::new(seen, wish),
        };
        let subject = Subject::new(profile, &kept.selection, Names::Short);
        let mut prepared = Prepared {
            seen: Arc::clone(seen),
            view: wish.view,
            listing: Listing::default(),
            whole: Whole {
                event: kept.selection.event().name.clone(),
                unit: kept.selection.event().unit.clone(),
                weight: kept.selection.total(),
                samples: kept.selection.samples(),
                all: kept.all,
            },
            events: profile
                .events
                .iter()
                .map(|event| event.name.clone())
                .collect(),
            about: None,
            is_gone: false,
            hot: None,
            folded: Vec::new(),
            degree: None,
            page: None,
        };
        match wish.view {
            View::Flat => prepared.listing = flat::listing(&subject, wish),
            View::Graph => prepared.graph(&subject, wish),
            View::Tree => {
                // The tree is the slow part, and does not depend on what is open or searched for:
                // keys that change only these do not build it again.
                let made = kept.tree.take();
                let made = made.filter(|(degree, _)| *degree == wish.degree);
                let (_, made) = made.unwrap_or_else(|| {
                    let owners = Owners::of_profile(profile, &wish.own);
                    (wish.degree, tree::make(&subject, wish.degree, &owners))
                });
                let shown = tree::listing(&subject, &made, &wish.opened, &wish.search);
                prepared.listing = shown.listing;
                prepared.hot = shown.hot;
                prepared.folded = shown.folded;
                prepared.degree = Some(made.tree.calls.collapse);
                kept.tree = Some((wish.degree, made));
            }
            View::Cycles => prepared.listing = cycles::listing(&subject, &wish.search),
        }
        self.kept = Some(kept);
        prepared
    }
}

impl Preparer {
    // The page that a wish asks for, by what was prepared for it last.
    pub fn page(
        &self,
        seen: &Seen,
        wish: &Wish,
        (source, situation): (&dyn Source, &Situation),
    ) -> Option<(Asked, String)> {
        let (kept, asked) = (self.kept.as_ref()?, wish.page.as_ref()?);
        let subject = Subject::new(&seen.profile, &kept.selection, Names::Short);
        let function = asked.function.find(&seen.profile);
        let text = pages::text(source, &subject, function, asked, situation);
        Some((asked.clone(), text))
    }
}

impl Prepared {
    fn graph(&mut self, subject: &Subject, wish: &Wish) {
        let known = (wish.chosen.as_ref()).map(|identity| identity.find(subject.profile));
        let function = match known {
            Some(function) => function,
            None => hottest(subject),
        };
        match function {
            Some(function) => {
                self.about = Some(Identity::of(subject.profile, function));
                self.listing = graph::listing(subject, function, &wish.search);
            }
            None => {
                self.about = wish.chosen.clone();
                self.is_gone = wish.chosen.is_some();
            }
        }
    }

    // The identity of the function of a line, if it is about one.
    pub fn identity(&self, line: usize) -> Option<Identity> {
        let function = self.listing.lines.get(line)?.function?;
        Some(Identity::of(&self.seen.profile, function))
    }
}

// The function with the largest self weight.
fn hottest(subject: &Subject) -> Option<FunctionId> {
    let options = proftool::view::flat::Options {
        limit: Some(1),
        ..Default::default()
    };
    let summary = proftool::analysis::flat::Summary::of(subject.profile, subject.selection);
    let flat = proftool::view::flat::arrange(subject, &summary, &options);
    flat.rows.first().map(|row| row.function)
}

impl Kept {
    fn new(seen: &Seen, wish: &Wish) -> Kept {
        let profile = &seen.profile;
        let selection = match event(profile, wish.event.as_deref()) {
            None => Selection::nothing(),
            Some(event) => wish.select(profile, event),
        };
        let everything = Filter {
            weighing: wish.base.weighing,
            ..Filter::default()
        };
        let all = match event(profile, wish.event.as_deref()) {
            Some(event) if wish.picks() => profile.select(event, &everything).total(),
            _ => selection.total(),
        };
        Kept {
            number: seen.number,
            event: wish.event.clone(),
            focus: pattern(wish),
            who: wish.who.clone(),
            selection,
            all,
            tree: None,
        }
    }

    fn is_for(&self, seen: &Seen, wish: &Wish) -> bool {
        let is_same = self.number == seen.number && self.event == wish.event;
        is_same && self.focus == pattern(wish) && self.who == wish.who
    }
}

fn pattern(wish: &Wish) -> Option<String> {
    wish.focus.as_ref().map(|focus| focus.as_str().to_owned())
}

// Returns the event of this name, or else the event with the most samples.
pub fn event(profile: &Profile, name: Option<&str>) -> Option<EventId> {
    let named = name.and_then(|name| profile.event_named(name));
    named.or_else(|| profile.main_event())
}
