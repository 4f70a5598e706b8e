//! A line that asks for input.

use proftool::names::search;
use regex::Regex;

use super::key::Key;

// The maximum length of an answer in characters.
const MOST: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    // A pattern for lines.
    Search,
    // A pattern for stacks.
    Focus,
    // A pattern for the lines of a page.
    Find,
    // A command, a process or a thread.
    Who,
    Time,
    // The name of a file to write.
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    // There is more to come.
    Asking,
    // The text is the answer.
    Answered,
    // There is no answer.
    GivenUp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub purpose: Purpose,
    pub text: String,
    // Why it cannot be the answer.
    pub wrong: Option<String>,
    // What can be answered, as far as there is room for it.
    pub hints: Vec<String>,
    // The answer is still the one that was there: a character takes its place.
    pub is_old: bool,
    before: String,
}

impl Prompt {
    // The answer is one that a key can take as it is.
    pub fn new(purpose: Purpose, text: String) -> Prompt {
        Prompt {
            purpose,
            before: text.clone(),
            is_old: !text.is_empty(),
            text,
            wrong: None,
            hints: Vec::new(),
        }
    }

    pub fn key(&mut self, key: Key) -> Outcome {
        self.wrong = None;
        if std::mem::take(&mut self.is_old) && matches!(key, Key::Char(_)) {
            self.text.clear();
        }
        match key {
            Key::Enter => return Outcome::Answered,
            Key::Escape => return Outcome::GivenUp,
            Key::Backspace if self.text.is_empty() => return Outcome::GivenUp,
            Key::Backspace => drop(self.text.pop()),
            Key::Control('u') => self.text.clear(),
            Key::Control('w') => {
                let rest = self.text.trim_end();
                let word = rest.rfind(char::is_whitespace).map_or(0, |space| space + 1);
                self.text.truncate(word);
            }
            Key::Char(c) if self.text.chars().count() < MOST => self.text.push(c),
            _ => {}
        }
        Outcome::Asking
    }

    pub fn regex(&self) -> Result<Option<Regex>, String> {
        compiled(&self.text)
    }

    pub fn before(&self) -> Option<Regex> {
        compiled(&self.before).unwrap_or_default()
    }
}

fn compiled(text: &str) -> Result<Option<Regex>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    search::pattern(text).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited() {
        let mut prompt = Prompt::new(Purpose::Search, "a b".into());
        assert_eq!(prompt.key(Key::Control('w')), Outcome::Asking);
        assert_eq!(prompt.text, "a ");
        prompt.key(Key::Char('ü'));
        prompt.key(Key::Backspace);
        prompt.key(Key::Char('('));
        assert_eq!(prompt.text, "a (");
        assert!(prompt.regex().unwrap_err().contains("unclosed"));
        assert_eq!(prompt.before().unwrap().as_str(), "a b");
        prompt.key(Key::Control('u'));
        assert!(prompt.regex().unwrap().is_none());
        assert_eq!(prompt.key(Key::Backspace), Outcome::GivenUp);
        assert_eq!(prompt.key(Key::Enter), Outcome::Answered);
    }

    #[test]
    fn the_suggested_answer_is_kept_or_overwritten() {
        let mut prompt = Prompt::new(Purpose::Write, "perf.data".into());
        assert!(prompt.is_old);
        prompt.key(Key::Char('a'));
        prompt.key(Key::Char('b'));
        assert_eq!(prompt.text, "ab");
        let mut prompt = Prompt::new(Purpose::Write, "perf.data".into());
        prompt.key(Key::Backspace);
        prompt.key(Key::Char('x'));
        assert_eq!(prompt.text, "perf.datx");
    }
}
