//! Functions that filters name.

use proftool::names::search;
use proftool::profile::{EventId, Profile, pattern_of};
use regex::Regex;

use crate::cli::function;

// Views print labels such as `step (a.c:12)`: as a regular expression such a label does not match
// itself, and stands for its function.
pub fn resolved(profile: &Profile, event: Option<EventId>, regex: &Regex) -> Regex {
    let text = regex.as_str();
    let is_name = |name: &str| regex.is_match(name);
    if regex::escape(text) == text && profile.functions.iter().any(|it| is_name(&it.name)) {
        return regex.clone();
    }
    let plain = search::unmarked(text).replace('\\', "");
    let is_literal = regex::escape(&plain) == search::unmarked(text);
    let name = if is_literal { &plain } else { text };
    let labelled =
        search::labelled(profile, name).or_else(|| function::shown_as(profile, event?, name));
    let label = labelled
        .map(|id| profile.name(id))
        .filter(|label| is_literal || !regex.is_match(label));
    let exact = label.and_then(|label| Regex::new(&pattern_of(label)).ok());
    exact.unwrap_or_else(|| regex.clone())
}
