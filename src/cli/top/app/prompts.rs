//! What a person is asked for, and what is done with the answer.

use std::path::PathBuf;

use rustc_hash::FxHashSet;

use super::super::key::Key;
use super::super::prompt::{Outcome, Prompt, Purpose};
use super::super::wish::{Search, Who};
use super::{Action, App, FILE};

impl App {
    pub(super) fn ask(&mut self, purpose: Purpose) {
        let text = match purpose {
            Purpose::Search => pattern(&self.wish.search.0),
            Purpose::Focus => pattern(&self.wish.focus),
            Purpose::Find => pattern(&self.find),
            Purpose::Who => self.wish.who.as_ref().map_or(String::new(), Who::to_string),
            Purpose::Time => self.time.clone(),
            Purpose::Write => FILE.to_owned(),
        };
        if purpose == Purpose::Write
            && let Some(why) = self.cannot_be_written()
        {
            self.message = Some(why.into());
            return;
        }
        let mut prompt = Prompt::new(purpose, text);
        prompt.hints = self.hints(purpose);
        self.prompt = Some(prompt);
    }

    // What can be answered.
    fn hints(&self, purpose: Purpose) -> Vec<String> {
        let Some(seen) = self.current() else {
            return Vec::new();
        };
        match purpose {
            Purpose::Who => {
                let threads = seen.profile.threads.iter();
                let names = threads.flat_map(|it| [&**it.command(), &*it.comm]);
                let mut known = FxHashSet::default();
                names
                    .filter(|&it| known.insert(it))
                    .map(str::to_owned)
                    .collect()
            }
            Purpose::Search | Purpose::Focus | Purpose::Find => {
                vec!["a regular expression".to_owned()]
            }
            Purpose::Time | Purpose::Write => Vec::new(),
        }
    }

    // This answer was refused.
    pub fn refuse_time(&mut self, range: String, why: String) {
        let mut prompt = Prompt::new(Purpose::Time, range);
        prompt.is_old = false;
        prompt.wrong = Some(why);
        self.prompt = Some(prompt);
    }

    pub fn read_time(&mut self, range: &str) {
        range.trim().clone_into(&mut self.time);
    }

    fn cannot_be_written(&self) -> Option<&'static str> {
        match self.current() {
            None => Some("there are no samples yet"),
            Some(seen) if self.is_outdated(seen) => {
                Some("samples from before the reset are not kept; press w when new ones are shown")
            }
            Some(_) => None,
        }
    }

    pub(super) fn answer(&mut self, mut prompt: Prompt, key: Key) -> Action {
        match prompt.key(key) {
            Outcome::Asking => {
                // Lines are looked for while a person types; half a pattern changes nothing.
                if let (Purpose::Search, Ok(regex)) = (prompt.purpose, prompt.regex()) {
                    self.look_for(regex);
                }
                self.prompt = Some(prompt);
            }
            Outcome::GivenUp => {
                if prompt.purpose == Purpose::Search {
                    self.look_for(prompt.before());
                }
            }
            Outcome::Answered => match prompt.purpose {
                Purpose::Who => {
                    if let Err(why) = self.select(&prompt.text) {
                        prompt.wrong = Some(why);
                        self.prompt = Some(prompt);
                    }
                }
                Purpose::Time => return Action::Time(prompt.text),
                Purpose::Search | Purpose::Focus | Purpose::Find => match prompt.regex() {
                    Err(why) => {
                        prompt.wrong = Some(why);
                        self.prompt = Some(prompt);
                    }
                    Ok(regex) if prompt.purpose == Purpose::Search => self.look_for(regex),
                    Ok(regex) if prompt.purpose == Purpose::Find => {
                        self.find = regex;
                        self.found = None;
                        self.find_next(1);
                    }
                    Ok(regex) => {
                        self.wish.focus = regex;
                        self.changed();
                    }
                },
                Purpose::Write if prompt.text.is_empty() => {}
                Purpose::Write => return Action::Write(PathBuf::from(prompt.text)),
            },
        }
        Action::Nothing
    }

    pub(super) fn look_for(&mut self, regex: Option<regex::Regex>) {
        if pattern(&regex) != pattern(&self.wish.search.0) {
            self.wish.search = Search(regex);
            self.changed();
        }
    }

    // First lines, then stacks, threads and times.
    pub(super) fn clear(&mut self) -> Action {
        if self.wish.search.is_on() {
            self.look_for(None);
        } else if self.wish.focus.take().is_some() || self.wish.who.take().is_some() {
            self.changed();
        } else if !self.time.is_empty() {
            return Action::Time(String::new());
        }
        Action::Nothing
    }
}

fn pattern(regex: &Option<regex::Regex>) -> String {
    let pattern = regex.as_ref().map(|regex| regex.as_str().to_owned());
    pattern.unwrap_or_default()
}
