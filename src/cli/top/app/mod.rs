//! What is on the screen and what keys do to it: state without a terminal, a clock or a thread.

mod pages;
mod prompts;
mod sampling;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proftool::analysis::tree::Collapse;
use proftool::view::flat::Sort;

use super::cursor::Cursor;
use super::graph;
use super::key::Key;
use super::listing::{Fold, Identity, Line};
use super::prepare::Prepared;
use super::prompt::{Prompt, Purpose};
use super::source::{Seen, State, Written};
use super::wish::{Hot, View, Wish};

// Steps back from function to function.
const STEPS_BACK: usize = 256;
// The number of lines of the flat view until the cursor goes further down.
pub const LINES: usize = 500;
// The file that is written where no other is named.
const FILE: &str = "perf.data";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Quit,
    // Count from now on.
    Reset,
    // Let weights fade, or not.
    HalfLife(Option<Duration>),
    // Write the samples that are counted.
    Write(PathBuf),
    // Another program has written on the screen.
    Repaint,
    // Stop the job, as Ctrl-Z does.
    Suspend,
    // Read only the samples of this time; of all, if it is empty.
    Time(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    // What the keys do.
    Help,
    // What is known of the samples, and what is not.
    Info,
    // The page about a function that is asked for.
    Page,
}

pub struct App {
    pub wish: Wish,
    pub prepared: Option<Prepared>,
    // The text over it, and how far it is scrolled.
    pub overlay: Option<(Overlay, usize)>,
    // How far the page is scrolled that the text lies over, if it lies over one.
    under: Option<usize>,
    pub prompt: Option<Prompt>,
    // What was done last, or why it could not be done.
    pub message: Option<String>,
    pub state: State,
    resets: u64,
    // How many lines of a list the screen has room for.
    pub room: usize,
    width: usize,
    // What is looked for on a page, and its line that was found last.
    find: Option<regex::Regex>,
    found: Option<usize>,
    // The part of the time that is read; all, if it is empty.
    time: String,
    latest: Option<Arc<Seen>>,
    paused: Option<Arc<Seen>>,
    cursors: [Cursor; View::ALL.len()],
    // The functions from which the graph was walked to the one that it is about.
    behind: Vec<Identity>,
}

impl App {
    pub fn new(sort: Sort, half_life: Option<Duration>) -> App {
        let mut wish = Wish {
            sort,
            half_life,
            limit: Some(LINES),
            ..Wish::default()
        };
        wish.opened.hot = Some(Hot::Root);
        App {
            wish,
            prepared: None,
            overlay: None,
            under: None,
            prompt: None,
            message: None,
            state: State::Running,
            resets: 0,
            room: 1,
            width: 80,
            find: None,
            found: None,
            time: String::new(),
            latest: None,
            paused: None,
            cursors: Default::default(),
            behind: Vec::new(),
        }
    }

    pub fn see(&mut self, latest: Option<Arc<Seen>>) {
        self.latest = latest.or(self.latest.take());
    }

    // Shown or not.
    pub fn latest(&self) -> Option<&Arc<Seen>> {
        self.latest.as_ref()
    }

    // The newest, or the one at the time of the pause.
    pub fn current(&self) -> Option<&Arc<Seen>> {
        self.paused.as_ref().or(self.latest.as_ref())
    }

    // While the figures of the current profile are made, an older one.
    pub fn on_screen(&self) -> Option<&Arc<Seen>> {
        self.shown().map(|shown| &shown.seen).or(self.current())
    }

    // Whether the figures of this moment are from before the last reset, which has not been
    // followed yet or stands behind a pause.
    pub fn is_outdated(&self, seen: &Seen) -> bool {
        // After the end of sampling there is nothing to reset.
        let is_followed = |latest: &Arc<Seen>| latest.resets > seen.resets;
        let will_be = self.state == State::Running;
        seen.resets < self.resets && (will_be || self.latest.as_ref().is_some_and(is_followed))
    }

    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    // Takes what was made for a wish, unless it is for another view than is wished now.
    pub fn receive(&mut self, mut prepared: Prepared) {
        if prepared.view != self.wish.view {
            return;
        }
        let mut to_top = false;
        if let Some(path) = prepared.hot.take()
            && let Some(hot) = self.wish.opened.hot.take()
        {
            Arc::make_mut(&mut self.wish.opened.nodes).extend(path.opened);
            // At first what all stacks begin with is passed over.
            to_top = hot == Hot::Root;
            let end = if to_top { path.fork } else { path.end };
            self.cursor_mut().pin(end);
        }
        if prepared.view == View::Graph && self.wish.chosen.is_none() {
            self.wish.chosen = prepared.about.clone();
        }
        let lines = &prepared.listing;
        let cursor = &mut self.cursors[self.wish.view as usize];
        cursor.follow(&lines.lines, lines.first, self.room);
        if to_top {
            cursor.raise(lines.lines.len(), self.room);
        }
        self.prepared = Some(prepared);
    }

    pub fn shown(&self) -> Option<&Prepared> {
        let prepared = self.prepared.as_ref();
        prepared.filter(|prepared| prepared.view == self.wish.view)
    }

    pub fn cursor(&self) -> &Cursor {
        &self.cursors[self.wish.view as usize]
    }

    fn cursor_mut(&mut self) -> &mut Cursor {
        &mut self.cursors[self.wish.view as usize]
    }

    // How many lines of a list there is room for.
    pub fn resize(&mut self, room: usize) {
        self.room = room.max(1);
        let lines = self.shown().map_or(0, |shown| shown.listing.lines.len());
        let room = self.room;
        self.cursor_mut().fit(lines, room);
    }

    pub fn written(&mut self, path: &std::path::Path, written: Result<Written, String>) {
        let name = path.display().to_string();
        self.message = Some(super::written::written(&name, written));
    }

    // What was opened last takes the key: a prompt, an overlay, the view.
    pub fn key(&mut self, key: Key) -> Action {
        match key {
            Key::Control('c') => return Action::Quit,
            Key::Control('l') => return Action::Repaint,
            Key::Control('z') => return Action::Suspend,
            _ => {}
        }
        self.message = None;
        if let Some(prompt) = self.prompt.take() {
            return self.answer(prompt, key);
        }
        if let Some((overlay, place)) = self.overlay
            && self.overlay_key(overlay, place, key)
        {
            return Action::Nothing;
        }
        if self.moved(key) {
            return Action::Nothing;
        }
        if self.is_recording()
            && let Some(action) = self.recording_key(key)
        {
            return action;
        }
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char(c @ '1'..='4') => self.turn_to(View::ALL[c as usize - '1' as usize]),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(View::ALL.len() - 1),
            Key::Enter => self.enter(),
            Key::Char('g') => self.graph_of_line(),
            Key::Backspace => self.back(),
            Key::Left | Key::Right => self.fold(key),
            Key::Escape => return self.clear(),
            Key::Char('/') => self.ask(Purpose::Search),
            Key::Char('f') => self.ask(Purpose::Focus),
            Key::Char('w') => self.ask(Purpose::Write),
            Key::Char('s') => self.sort(),
            Key::Char('c') => self.collapse(),
            Key::Char('e') if self.wish.view == View::Tree => self.open_hot_path(),
            Key::Char('u') if self.wish.view == View::Tree => self.unfold(),
            Key::Char('e' | 'E') => self.next_event(),
            Key::Char('p' | ' ') => self.pause(),
            Key::Char('z') => return self.reset(),
            Key::Char('d') => return self.fade(),
            Key::Char('<') => return self.fade_in(|time| time / 2),
            Key::Char('>') => return self.fade_in(|time| time * 2),
            Key::Char('a' | 't' | 'T') => {
                self.message = Some("this key is for recordings: w writes one for browse".into());
            }
            Key::Char('i') => self.overlay = Some((Overlay::Info, 0)),
            Key::Char('?' | 'h') => self.overlay = Some((Overlay::Help, 0)),
            _ => {}
        }
        Action::Nothing
    }

    // Says whether the key was for the text over the view.
    fn overlay_key(&mut self, overlay: Overlay, place: usize, key: Key) -> bool {
        if overlay == Overlay::Page && self.page_key(key) {
            return true;
        }
        let other = match key {
            Key::Char('i') if overlay != Overlay::Info => Some(Overlay::Info),
            Key::Char('?' | 'h') if overlay != Overlay::Help => Some(Overlay::Help),
            _ => None,
        };
        if let Some(other) = other {
            if overlay == Overlay::Page {
                self.under = Some(place);
            }
            self.overlay = Some((other, 0));
            return true;
        }
        match key {
            Key::Escape | Key::Backspace | Key::Enter | Key::Char('q' | 'i' | '?' | 'h') => {
                self.close();
            }
            // It leads to a view.
            Key::Char('1'..='4') | Key::Tab | Key::BackTab => {
                self.under = None;
                self.close();
                return false;
            }
            _ => self.overlay = Some((overlay, scrolled(place, key, self.room))),
        }
        true
    }

    // A page that the text lies over is there again.
    fn close(&mut self) {
        self.overlay = self.under.take().map(|place| (Overlay::Page, place));
        if self.overlay.is_none() {
            self.wish.page = None;
        }
    }

    // A text over the view is not scrolled beyond its end.
    pub fn fit(&mut self, lines: usize) {
        let last = lines.saturating_sub(self.room);
        if let Some((_, place)) = &mut self.overlay {
            *place = (*place).min(last);
        }
    }

    fn moved(&mut self, key: Key) -> bool {
        let room = self.room;
        let cursor = &mut self.cursors[self.wish.view as usize];
        let prepared = self.prepared.as_ref();
        let shown = prepared.filter(|prepared| prepared.view == self.wish.view);
        let (lines, first): (&[Line], usize) = match shown {
            Some(shown) => (&shown.listing.lines, shown.listing.first),
            None => (&[], 0),
        };
        match key {
            Key::Up | Key::Char('k') => cursor.up(lines, 1, room),
            Key::Down | Key::Char('j') => cursor.down(lines, 1, room),
            Key::PageUp | Key::Control('b') => cursor.up(lines, room, room),
            Key::PageDown | Key::Control('f') => cursor.down(lines, room, room),
            Key::Control('u') => cursor.up(lines, room.div_ceil(2), room),
            Key::Control('d') => cursor.down(lines, room.div_ceil(2), room),
            Key::Home => cursor.release(lines, first.min(lines.len()), room),
            Key::End | Key::Char('G') => cursor.end(lines, room),
            _ => return false,
        }
        let nears_end = cursor.index() + room >= lines.len();
        let hidden = shown.map_or(0, |shown| shown.listing.hidden);
        let limit = match key {
            Key::Home => Some(LINES),
            _ if hidden > 0 && nears_end => None,
            _ => self.wish.limit,
        };
        if limit != self.wish.limit {
            self.wish.limit = limit;
            self.changed();
        }
        true
    }

    fn changed(&mut self) {
        self.wish.revision += 1;
    }

    fn turn(&mut self, steps: usize) {
        let place = self.wish.view as usize + steps;
        self.turn_to(View::ALL[place % View::ALL.len()]);
    }

    fn turn_to(&mut self, view: View) {
        let from = self.wish.view;
        let is_asked = from == View::Flat || self.wish.chosen.is_none();
        if view == View::Graph
            && is_asked
            && let Some(identity) = self.identity()
        {
            self.choose(identity);
            self.behind.clear();
        }
        if view != from {
            self.wish.view = view;
            self.changed();
        }
    }

    fn identity(&self) -> Option<Identity> {
        self.shown()?.identity(self.cursor().index())
    }

    fn line(&self) -> Option<&Line> {
        self.shown()?.listing.lines.get(self.cursor().index())
    }

    fn choose(&mut self, identity: Identity) {
        if self.wish.chosen.as_ref() != Some(&identity) {
            self.wish.chosen = Some(identity);
            self.cursors[View::Graph as usize].pin(graph::itself());
            self.changed();
        }
    }

    fn enter(&mut self) {
        match self.wish.view {
            View::Flat => self.turn_to(View::Graph),
            View::Cycles | View::Graph => self.graph_of_line(),
            View::Tree => self.toggle(),
        }
    }

    fn graph_of_line(&mut self) {
        let Some(identity) = self.identity() else {
            return;
        };
        if self.wish.view == View::Graph {
            let from = self.wish.chosen.clone().filter(|from| *from != identity);
            self.behind.extend(from);
            if self.behind.len() > STEPS_BACK {
                self.behind.remove(0);
            }
        } else {
            self.behind.clear();
        }
        self.choose(identity);
        if self.wish.view != View::Graph {
            self.wish.view = View::Graph;
            self.changed();
        }
    }

    fn back(&mut self) {
        if self.wish.view != View::Graph {
            return;
        }
        match self.behind.pop() {
            Some(identity) => self.choose(identity),
            None => self.turn_to(View::Flat),
        }
    }

    // Opens or closes the line of the tree; from a collapsed call goes to where it goes on.
    fn toggle(&mut self) {
        let Some((key, branch)) = self.line().and_then(|line| Some((line.key, line.branch?)))
        else {
            return;
        };
        match branch.fold {
            Fold::Leaf => return,
            Fold::Stub(target) => return self.go_to(target),
            Fold::Closed => drop(Arc::make_mut(&mut self.wish.opened.nodes).insert(key)),
            Fold::Open => drop(Arc::make_mut(&mut self.wish.opened.nodes).remove(&key)),
        }
        self.cursor_mut().pin(key);
        self.changed();
    }

    fn fold(&mut self, key: Key) {
        let Some(branch) = self.line().and_then(|line| line.branch) else {
            return;
        };
        match (key, branch.fold) {
            (Key::Right, Fold::Closed) | (Key::Left, Fold::Open) => self.toggle(),
            (Key::Right, Fold::Open) => drop(self.moved(Key::Down)),
            (Key::Left, _) => {
                if let Some(parent) = branch.parent {
                    self.go_to(parent);
                }
            }
            _ => {}
        }
    }

    fn go_to(&mut self, key: super::listing::Key) {
        let room = self.room;
        let Some(prepared) = &self.prepared else {
            return;
        };
        let cursor = &mut self.cursors[self.wish.view as usize];
        cursor.pin(key);
        cursor.follow(&prepared.listing.lines, 0, room);
    }

    fn open_hot_path(&mut self) {
        let Some(key) = self.line().map(|line| line.key) else {
            return;
        };
        self.wish.opened.hot = Some(Hot::Line(key));
        self.changed();
    }

    // Frame by frame, or as one line each.
    fn unfold(&mut self) {
        let opened = &mut self.wish.opened;
        opened.unfolded = !opened.unfolded;
        if let Some(prepared) = self.prepared.as_ref().filter(|_| opened.unfolded) {
            Arc::make_mut(&mut opened.nodes).extend(&prepared.folded);
        }
        if let Some(key) = self.line().map(|line| line.key) {
            self.cursor_mut().pin(key);
        }
        self.changed();
    }

    fn sort(&mut self) {
        if self.wish.view != View::Flat {
            self.message = Some("only the flat view has other sort orders".into());
            return;
        }
        let was_by_change = std::mem::take(&mut self.wish.by_change);
        self.wish.sort = match self.wish.sort {
            Sort::SelfWeight if was_by_change => Sort::SelfWeight,
            Sort::SelfWeight => Sort::Total,
            Sort::Total => Sort::Name,
            Sort::Name | Sort::Samples => {
                self.wish.by_change = self.wish.changes.is_some();
                Sort::SelfWeight
            }
        };
        self.changed();
    }

    fn collapse(&mut self) {
        if self.wish.view != View::Tree {
            self.message = Some("recursion is collapsed in the tree view (3)".into());
            return;
        }
        let now = self.shown().and_then(|shown| shown.degree);
        let place = Collapse::ALL.iter().position(|&degree| Some(degree) == now);
        let next = place.map_or(0, |place| place + 1) % Collapse::ALL.len();
        self.wish.degree = Some(Collapse::ALL[next]);
        self.changed();
    }

    fn next_event(&mut self) {
        let Some(shown) = self.shown() else { return };
        let events = &shown.events;
        if events.len() < 2 {
            self.message = Some(format!("{} is the only event", shown.whole.event));
            return;
        }
        let place = events.iter().position(|name| *name == shown.whole.event);
        let next = place.map_or(0, |place| place + 1) % events.len();
        self.wish.event = Some(events[next].clone());
        self.changed();
    }
}

// The first line of a text over the view after a key; as it was, if the key does not scroll.
fn scrolled(place: usize, key: Key, room: usize) -> usize {
    match key {
        Key::Up | Key::Char('k') => place.saturating_sub(1),
        Key::Down | Key::Char('j') => place.saturating_add(1),
        Key::PageUp | Key::Char('b') | Key::Control('b') => place.saturating_sub(room),
        Key::PageDown | Key::Char(' ') | Key::Control('f') => place.saturating_add(room),
        Key::Control('u') => place.saturating_sub(room.div_ceil(2)),
        Key::Control('d') => place.saturating_add(room.div_ceil(2)),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => usize::MAX,
        _ => place,
    }
}
