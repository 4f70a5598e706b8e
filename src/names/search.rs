//! Finds functions by what a user calls them.
//!
//! A user may give a full name, a symbol, or a short name; a label, as views print it where names
//! are ambiguous; a label that the function can have in another part of the recording; a part of a
//! name; or a regular expression. The first kind that matches decides. Marks behind a label, such
//! as `(inferred)`, are ignored unless a function is called so with them, and so is the mark of a
//! restored function in front of it. The symbol of a clone or a
//! part of a function, such as `parse.constprop.0`, names the function if nothing else is called
//! so.

use std::borrow::Cow;

use regex::Regex;

use super::stem::without_copy;
use super::{Form, GAP, INFERRED, Label, Labels, Names, Naming, short_name};
use crate::base::printable;
use crate::profile::{Function, FunctionId, Profile};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The function.
    One(FunctionId),
    /// Several that fit equally well, in the order of the candidates, each with a label that finds
    /// it alone.
    Several(Vec<(FunctionId, Label)>),
    /// None; these are the labels of those with the most similar names.
    Nothing(Vec<String>),
}

/// What pages put behind a label: words, and numbers in brackets. A declaration, `(a.c:12)`, is
/// part of a label.
const MARKS: &str = r"(\.* \((\+.*|[^():]*)\)| \[\d+\]| <\w+ \d+>)+$";
/// The number of similar names that an error lists.
const SIMILAR: usize = 5;
/// How many characters of a name are compared.
const COMPARED: usize = 80;

/// The regular expression that a user gives. Names such as `{lambda()#1}` are not valid ones, nor
/// are some labels in which a narrow page leaves out the end of arguments, and stand for
/// themselves.
///
/// # Errors
///
/// What is wrong with it, in one line.
pub fn pattern(text: &str) -> Result<Regex, String> {
    let literal = || {
        text.contains(['{', GAP])
            .then(|| Regex::new(&regex::escape(text)).ok())
    };
    Regex::new(text)
        .or_else(|error| literal().flatten().ok_or(error))
        .map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        })
}

/// A label as it is printed, without the mark of a restored function in front of it.
pub fn unmarked(text: &str) -> &str {
    text.strip_prefix(INFERRED).unwrap_or(text)
}

/// Looks for a function among the candidates.
pub fn find(naming: &Naming, candidates: &[FunctionId], text: &str) -> Found {
    let text = unmarked(text);
    let found = find_text(naming, candidates, text);
    if !matches!(found, Found::Nothing(_)) {
        return found;
    }
    let (label, marks) = text.split_at(marks(text));
    let function = without_copy(label);
    let label = Some(label).filter(|label| !marks.is_empty() && !label.is_empty());
    let others = [label, function].into_iter().flatten();
    others
        .map(|name| find_text(naming, candidates, name))
        .find(|other| !matches!(other, Found::Nothing(_)))
        .unwrap_or(found)
}

fn find_text(naming: &Naming, candidates: &[FunctionId], text: &str) -> Found {
    let short = Naming {
        names: Names::Short,
        ..*naming
    };
    let labels = Labels::new(&short, candidates.iter().copied());
    // As they are asked for, where that is another form.
    let asked = match naming.names {
        Names::Short => Labels::default(),
        Names::Full | Names::Mangled => Labels::new(naming, candidates.iter().copied()),
    };
    let function = |id: FunctionId| &naming.profile.functions[id];
    let regex = Regex::new(text);
    let is_shortened = text.contains(GAP);
    let ways: [&dyn Fn(FunctionId) -> bool; 9] = [
        &|id| !text.is_empty() && asked.of(id) == text,
        &|id| labels.of(id) == text || printable(labels.of(id)) == text,
        &|id| is_shortened && is_short_for(text, labels.of(id)),
        &|id| naming.profile.name(id) == text,
        &|id| {
            let function = function(id);
            function.name == text || function.linkage_name.as_deref() == Some(text)
        },
        &|id| short_name(function(id)) == text || short.plain_name(id) == text,
        &|id| can_be_called(&short, id, text),
        &|id| !text.is_empty() && has_part(function(id), text),
        &|id| {
            let matches = |regex: &Regex| regex.is_match(&function(id).name);
            !text.is_empty() && regex.as_ref().is_ok_and(matches)
        },
    ];
    for way in ways {
        let fitting: Vec<FunctionId> = candidates.iter().copied().filter(|&id| way(id)).collect();
        match fitting[..] {
            [] => {}
            [id] => return Found::One(id),
            _ => {
                let labelled = |id| (id, labels.label(id));
                return Found::Several(fitting.into_iter().map(labelled).collect());
            }
        }
    }
    Found::Nothing(similar(&labels, candidates, text))
}

/// Whether a text is what a page shows of a label where its width does not suffice: the label with
/// parts left out.
fn is_short_for(text: &str, label: &str) -> bool {
    let label = printable(label);
    let (start, mut rest) = text.split_once(GAP).unwrap_or((text, ""));
    let Some(mut label) = label.strip_prefix(start) else {
        return false;
    };
    while let Some((part, others)) = rest.split_once(GAP) {
        let Some(at) = label.find(part) else {
            return false;
        };
        label = &label[at + part.len()..];
        rest = others;
    }
    label.ends_with(rest)
}

/// Whether a text is a label that a function can have where other ones share its name, or short for
/// one: as pages about more samples, or about other ones, have it.
fn can_be_called(naming: &Naming, function: FunctionId, text: &str) -> bool {
    // What tells functions of a name apart stands in brackets or behind a space.
    if !text.contains([' ', '<', '(']) {
        return false;
    }
    let profile = naming.profile;
    let full = Cow::Borrowed(&*profile.functions[function].name);
    let plain = naming.plain_name(function);
    let fuller = Form::FULLER.map(|form| naming.name_in(function, form));
    let is_shortened = text.contains(GAP);
    let is_it = |label: &str| text == label || is_shortened && is_short_for(text, label);
    [full, plain].into_iter().chain(fuller).any(|name| {
        let can_start = is_shortened || text.starts_with(&*name);
        let mut labels = profile.possible_labels(function, &name);
        can_start && (is_it(&name) || labels.any(|label| is_it(&label)))
    })
}

/// Where the marks begin that stand behind a label, such as `(inlined)`; the length of the text if
/// it has none.
fn marks(text: &str) -> usize {
    let marks = Regex::new(MARKS).ok().and_then(|marks| marks.find(text));
    marks.map_or(text.len(), |marks| marks.start())
}

/// Returns the function with this label, short or full, among all of the profile; or the only one
/// that a page shows so where its width does not suffice.
pub fn labelled(profile: &Profile, text: &str) -> Option<FunctionId> {
    let text = unmarked(text);
    let mut ids = profile.functions.ids();
    if let Some(full) = ids.find(|&id| profile.name(id) == text) {
        return Some(full);
    }
    let naming = Naming {
        profile,
        names: Names::Short,
    };
    let labels = Labels::new(&naming, profile.functions.ids());
    let mut ids = profile.functions.ids();
    if let Some(exact) = ids.find(|&id| labels.of(id) == text) {
        return Some(exact);
    }
    let only = |is_it: &dyn Fn(FunctionId) -> bool| {
        let mut fitting = profile.functions.ids().filter(|&id| is_it(id));
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first)
    };
    let is_shortened = text.contains(GAP);
    only(&|id| is_shortened && is_short_for(text, labels.of(id)))
        .or_else(|| only(&|id| can_be_called(&naming, id, text)))
}

fn has_part(function: &Function, text: &str) -> bool {
    let linkage_name = function.linkage_name.as_deref().unwrap_or_default();
    function.name.contains(text)
        || linkage_name.contains(text)
        || short_name(function).contains(text)
}

/// The labels that a typing error could have made `text` of, the most similar first.
fn similar(labels: &Labels, candidates: &[FunctionId], text: &str) -> Vec<String> {
    let wanted: Vec<char> = text.chars().take(COMPARED).collect();
    let mut near: Vec<(usize, usize, &str)> = candidates
        .iter()
        .enumerate()
        .map(|(place, &id)| (edits(&wanted, labels.of(id)), place, labels.of(id)))
        .filter(|&(edits, _, label)| {
            edits * 2 <= wanted.len().max(label.chars().take(COMPARED).count())
        })
        .collect();
    near.sort_unstable();
    near.truncate(SIMILAR);
    near.into_iter()
        .map(|(_, _, label)| label.to_owned())
        .collect()
}

/// How many characters have to be put in, taken out or replaced to make `name` of `wanted`
/// (V. I. Levenshtein, *Binary codes capable of correcting deletions, insertions, and reversals*,
/// 1966). Upper and lower case are one.
fn edits(wanted: &[char], name: &str) -> usize {
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (taken, c) in name.chars().take(COMPARED).enumerate() {
        let mut diagonal = row[0];
        row[0] = taken + 1;
        for (i, w) in wanted.iter().enumerate() {
            let replaced = diagonal + usize::from(!w.eq_ignore_ascii_case(&c));
            diagonal = row[i + 1];
            row[i + 1] = replaced.min(row[i] + 1).min(row[i + 1] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_the_fewest() {
        let cases = [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("Main", "main", 0),
            ("prase", "parse", 2),
            ("parse", "parser", 1),
            ("parser", "parse", 1),
        ];
        for (wanted, name, expected) in cases {
            let wanted: Vec<char> = wanted.chars().collect();
            assert_eq!(edits(&wanted, name), expected, "{name}");
        }
    }
}
