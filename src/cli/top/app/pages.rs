//! What keys do that only a recording has, and on a page over the view.

use proftool::profile::Profile;

use super::super::key::Key;
use super::super::pages::{Asked, What};
use super::super::prompt::Purpose;
use super::super::source::State;
use super::super::wish::{View, Who};
use super::{Action, App, Overlay};

impl App {
    // Whether a recording is looked at, to which nothing is added.
    pub fn is_recording(&self) -> bool {
        matches!(self.state, State::Recorded(_))
    }

    // A page is made again for another width.
    pub fn widen(&mut self, width: usize) {
        self.width = width;
        if let Some(page) = self.wish.page.as_mut().filter(|page| page.width != width) {
            page.width = width;
            self.changed();
        }
    }

    // The text of the page that is asked for, as soon as it is there.
    pub fn page(&self) -> Option<&str> {
        let (asked, text) = self.prepared.as_ref()?.page.as_ref()?;
        (self.wish.page.as_ref() == Some(asked)).then_some(text.as_str())
    }

    pub(super) fn recording_key(&mut self, key: Key) -> Option<Action> {
        match key {
            Key::Enter => self.open_page(What::Detail),
            Key::Char('a') => self.open_page(What::Source),
            Key::Char(' ') if self.wish.view == View::Tree => self.toggle(),
            Key::Char('t') => self.ask(Purpose::Who),
            Key::Char('T') => self.ask(Purpose::Time),
            Key::Char('p' | ' ' | 'z' | 'd' | '<' | '>' | 'w') => {
                self.message = Some("this key is for top: a recording does not change".into());
            }
            _ => return None,
        }
        Some(Action::Nothing)
    }

    fn open_page(&mut self, what: What) {
        let Some(function) = self.identity() else {
            let is_empty = self.line().is_none();
            let why = if is_empty {
                "no function is shown"
            } else {
                "this line is no function"
            };
            self.message = Some(why.into());
            return;
        };
        self.show_page(Asked {
            what,
            function,
            width: self.width,
        });
    }

    fn show_page(&mut self, page: Asked) {
        self.wish.page = Some(page);
        self.overlay = Some((Overlay::Page, 0));
        self.found = None;
        self.changed();
    }

    // Does what a key does on a page, if it does not scroll or close it.
    pub(super) fn page_key(&mut self, key: Key) -> bool {
        let Some(page) = self.wish.page.clone() else {
            return false;
        };
        match key {
            Key::Char('a') => self.show_page(Asked {
                what: match page.what {
                    What::Source => What::Assembly,
                    What::Detail | What::Assembly => What::Source,
                },
                ..page
            }),
            Key::Enter if page.what != What::Detail => self.show_page(Asked {
                what: What::Detail,
                ..page
            }),
            Key::Enter => {}
            Key::Char('/') => self.ask(Purpose::Find),
            Key::Char('n') => self.find_next(1),
            Key::Char('N') => self.find_next(-1),
            _ => return false,
        }
        true
    }

    pub fn found(&self) -> Option<usize> {
        self.found
    }

    // Goes to the next line that is looked for, or the one before: from the line found last if it
    // is on the screen, else from the first line on it. After the last line the search goes on at
    // the first.
    pub(super) fn find_next(&mut self, step: isize) {
        let (Some(text), Some(regex)) = (self.page(), &self.find) else {
            self.message = Some("press / to search this page".into());
            return;
        };
        let lines = text.lines().count();
        let top = self.overlay.map_or(0, |(_, place)| place);
        let top = top.min(lines.saturating_sub(self.room));
        let on_screen = top..top + self.room;
        let found: Vec<usize> = (text.lines().enumerate())
            .filter(|(_, line)| regex.is_match(line))
            .map(|(place, _)| place)
            .collect();
        let last = self.found.filter(|line| on_screen.contains(line));
        let before = found.partition_point(|&place| place < last.unwrap_or(top));
        let next = match (step, last) {
            (1.., Some(_)) => before + 1,
            (1.., None) => before,
            _ => before.wrapping_sub(1),
        };
        let (around, why) = match step {
            1.. => (found.first(), "search continued at the top"),
            _ => (found.last(), "search continued at the bottom"),
        };
        let Some(&place) = found.get(next).or(around) else {
            self.message = Some(format!("no line with /{regex}/"));
            return;
        };
        if found.get(next).is_none() {
            self.message = Some(why.into());
        }
        self.found = Some(place);
        if !on_screen.contains(&place) {
            self.overlay = Some((Overlay::Page, place));
        }
    }

    // All samples, if the text is empty. An error if it names no command, process or thread of the
    // profile.
    pub(super) fn select(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        let profile = self.current().map(|seen| &seen.profile);
        let who = match text {
            "" => None,
            _ => Some(
                profile
                    .and_then(|profile| who(profile, text))
                    .ok_or("no such command or thread")?,
            ),
        };
        self.wish.who = who;
        self.changed();
        Ok(())
    }
}

// A command, process or thread.
fn who(profile: &Profile, text: &str) -> Option<Who> {
    let number = text.parse::<i32>().ok();
    let all = [
        Some(Who::Command(text.to_owned())),
        number.map(Who::Process),
        number.map(Who::Thread),
    ];
    let is_there = |who: &Who| profile.threads.iter().any(|thread| who.has(thread));
    all.into_iter().flatten().find(is_there)
}
