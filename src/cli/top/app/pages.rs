//! What keys do that only a recording has, and on a page over the view.

use proftool::profile::Profile;

use super::super::key::Key;
use super::super::pages::{Asked, What};
use super::super::prompt::Purpose;
use super::super::source::State;
use super::super::wish::{View, Who};
use super::{Action, App, Overlay};

impl App {
    /// Whether a recording is looked at, to which nothing is added.
    pub fn is_recording(&self) -> bool {
        matches!(self.state, State::Recorded(_))
    }

    /// Takes note of how many columns the screen has: a page is made again for another width.
    pub fn widen(&mut self, width: usize) {
        self.width = width;
        if let Some(page) = self.wish.page.as_mut().filter(|page| page.width != width) {
            page.width = width;
            self.changed();
        }
    }

    /// The text of the page that is asked for, as soon as it is there.
    pub fn page(&self) -> Option<&str> {
        let (asked, text) = self.prepared.as_ref()?.page.as_ref()?;
        (self.wish.page.as_ref() == Some(asked)).then_some(text.as_str())
    }

    /// Does what a key of a recording does, if it is one.
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
            self.message = Some("this line is no function".into());
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
        self.changed();
    }

    /// Does what a key does on a page, if it does not scroll or close it.
    pub(super) fn page_key(&mut self, place: usize, key: Key) -> bool {
        let Some(page) = self.wish.page.clone() else {
            return false;
        };
        // Scrolling begins where the page ends on the screen, however far a key went.
        let lines = self.page().map_or(0, |text| text.lines().count());
        let place = place.min(lines.saturating_sub(self.room));
        self.overlay = Some((Overlay::Page, place));
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
            Key::Char('n') => self.find(place + 1, 1),
            Key::Char('N') => self.find(place, -1),
            _ => return false,
        }
        true
    }

    /// Scrolls to the next line that is looked for, or the one before: from this line on, it included or, backwards,
    /// not. After the last line the search goes on at the first.
    pub(super) fn find(&mut self, from: usize, step: isize) {
        let (Some(text), Some(regex)) = (self.page(), &self.find) else {
            return;
        };
        let found: Vec<usize> = (text.lines().enumerate())
            .filter(|(_, line)| regex.is_match(line))
            .map(|(place, _)| place)
            .collect();
        let after = found.partition_point(|&place| place < from);
        let next = match step {
            1.. => found.get(after).or(found.first()),
            _ => (after.checked_sub(1).and_then(|place| found.get(place))).or(found.last()),
        };
        match next {
            Some(&place) => self.overlay = Some((Overlay::Page, place)),
            None => self.message = Some(format!("no line with /{regex}/")),
        }
    }

    /// Selects the samples of a command, a process or a thread; of all, if the text is empty.
    ///
    /// # Errors
    ///
    /// If the text names no command, process or thread of the profile.
    pub(super) fn select(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        let profile = self.current().map(|seen| &seen.profile);
        let who = match text {
            "" => None,
            _ => Some(
                profile
                    .and_then(|profile| who(profile, text))
                    .ok_or("no command or thread is called so")?,
            ),
        };
        self.wish.who = who;
        self.changed();
        Ok(())
    }
}

/// The command, process or thread that a person names.
fn who(profile: &Profile, text: &str) -> Option<Who> {
    let mut threads = profile.threads.iter();
    let number = text.parse::<i32>().ok();
    let is = |is_it: &dyn Fn(&proftool::profile::Thread) -> bool| profile.threads.iter().any(is_it);
    if threads.any(|thread| *thread.comm == *text || **thread.command() == *text) {
        return Some(Who::Command(text.to_owned()));
    }
    match number {
        Some(number) if is(&|thread| thread.pid == number) => Some(Who::Process(number)),
        Some(number) if is(&|thread| thread.tid == number) => Some(Who::Thread(number)),
        _ => None,
    }
}
