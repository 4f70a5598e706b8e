//! Names on one page that stay different where they are shortened.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::width::{
    ARROW, MIN_MARKED, display_width, names_of, own_name, shortened, shown_marks, split_marks,
    split_place,
};
use super::{GAP, excerpt, of_text};
use crate::base::Language;

/// The number of attempts to distinguish shortened texts that look the same by parts further in.
const ROUNDS: usize = 16;

/// The texts, each in the columns that there are for it: shortened, and where different names would look the same
/// with the places in which they differ. Both names of a call are told apart from all others. A name that nothing else
/// tells apart is longer than its room. What stands behind a name is no part of it.
pub fn fitted(texts: &[(&str, usize)]) -> Vec<String> {
    let names: Vec<Vec<(&str, usize)>> = (texts.iter())
        .map(|&(text, room)| names_of(text, room).collect())
        .collect();
    let mut shown = fitted_names(&names.concat()).into_iter();
    let of_text = |names: &Vec<_>| {
        let shown: Vec<Cow<'_, str>> = shown.by_ref().take(names.len()).collect();
        shown.join(ARROW)
    };
    names.iter().map(of_text).collect()
}

fn fitted_names<'t>(texts: &[(&'t str, usize)]) -> Vec<Cow<'t, str>> {
    let short = |&(text, room): &(&'t str, usize)| shortened(text, room);
    let mut shown: Vec<Cow<'t, str>> = texts.iter().map(short).collect();
    // One place may tell a text from some and another from others, so all of them stay in sight.
    let mut telling: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for round in 0..=ROUNDS {
        let alike = alike(texts, &shown);
        if alike.is_empty() {
            break;
        }
        for places in alike {
            let mut all = places.iter().map(|&place| label_of(texts[place].0));
            let first = all.next().unwrap_or_default();
            let shared = all
                .filter(|text| *text != first)
                .map(|text| common_prefix(first, text))
                .min();
            for place in places {
                let (text, room) = texts[place];
                shown[place] = match shared {
                    Some(shared) if round < ROUNDS => {
                        let telling = telling.entry(place).or_default();
                        telling.insert(shared);
                        let telling: Vec<usize> = telling.iter().copied().collect();
                        around(text, &telling, room)
                    }
                    _ => Cow::Borrowed(text),
                };
            }
        }
    }
    shown
}

/// The places of texts whose names are not the same, but shown the same.
fn alike(texts: &[(&str, usize)], shown: &[Cow<'_, str>]) -> Vec<Vec<usize>> {
    let mut by_shown: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, text) in shown.iter().enumerate() {
        by_shown.entry(label_of(text)).or_default().push(place);
    }
    let mut alike: Vec<Vec<usize>> = by_shown.into_values().collect();
    let name = |place: usize| label_of(texts[place].0);
    alike.retain(|places| {
        let is_cut = places.iter().any(|&at| shown[at].contains(GAP));
        is_cut && places.iter().any(|&at| name(at) != name(places[0]))
    });
    alike
}

/// A text without the marks behind it.
fn label_of(text: &str) -> &str {
    split_marks(text).0
}

/// The number of bytes that two texts have in common at their start, up to the start of a character.
fn common_prefix(one: &str, other: &str) -> usize {
    let same = one.char_indices().zip(other.chars());
    let differs = same.clone().find(|((_, a), b)| a != b);
    let shorter = one.len().min(other.len());
    differs.map_or(shorter, |((at, _), _)| at)
}

/// Shortens a text to `room` columns and keeps what stands at `places`, which are in order, and of the function's own
/// name as much as there is room for.
fn around<'t>(text: &'t str, places: &[usize], room: usize) -> Cow<'t, str> {
    // Parts of several names, side by side, would look like one.
    if display_width(text) <= room || of_text(text) == Language::Several {
        return Cow::Borrowed(text);
    }
    let (label, marks) = split_marks(text);
    let marks = shown_marks(marks, room);
    let room = room.saturating_sub(display_width(marks));
    let (name, place) = split_place(label);
    let left = room.saturating_sub(display_width(place));
    let is_in_name = places.last().is_some_and(|&place| place < name.len());
    let shown = if display_width(label) <= room {
        label.to_owned()
    } else if !place.is_empty() && left >= MIN_MARKED && is_in_name {
        format!("{}{place}", excerpt::of(name, places, own_name(name), left))
    } else {
        excerpt::of(label, places, own_name(name), room)
    };
    Cow::Owned(shown + marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_two_places_fit_into_their_columns() {
        let name = |function: &str, of: &str| {
            format!(
                "std::__unguarded_{function}<__normal_iterator<{of}*, vector<{of}>>, _Iter_comp>"
            )
        };
        let functions = ["partition", "linear_insert"];
        let names: Vec<String> = functions
            .iter()
            .flat_map(|it| ["int", "long", "double"].map(|of| name(it, of)))
            .collect();
        for room in [28, 33, 50, 70] {
            let texts: Vec<(&str, usize)> = names.iter().map(|name| (&**name, room)).collect();
            let shown = fitted(&texts);
            let distinct: BTreeSet<&str> = shown.iter().map(AsRef::as_ref).collect();
            assert_eq!(distinct.len(), names.len(), "{shown:?}");
            for text in &shown {
                assert!(display_width(text) <= room, "{text} in {room}");
            }
        }
    }

    #[test]
    fn names_that_differ_in_their_declarations_stay_different_without_room() {
        let name = |file: &str| format!("parser::expression (src/{file}.rs:12) <cycle 1> [23]");
        let names = ["additive", "assign", "assignment"].map(name);
        for room in 8..60 {
            let texts: Vec<(&str, usize)> = names.iter().map(|name| (&**name, room)).collect();
            let shown = fitted(&texts);
            let distinct: BTreeSet<&str> = shown.iter().map(|it| label_of(it)).collect();
            assert_eq!(distinct.len(), names.len(), "{shown:?}");
            assert!(
                shown.iter().all(|text| display_width(text) <= room.max(10)),
                "{room}: {shown:?}"
            );
        }
    }

    #[test]
    fn a_call_that_differs_in_both_names_keeps_its_arrow() {
        let names = ["aa", "ab"].map(|it| format!("parser::{it}::expression_of_something"));
        let pairs = names
            .iter()
            .flat_map(|a| names.iter().map(move |b| format!("{a}{ARROW}{b}")));
        let calls: Vec<String> = pairs.collect();
        let texts: Vec<(&str, usize)> = calls.iter().map(|call| (&**call, 40)).collect();
        let shown = fitted(&texts);
        let distinct: BTreeSet<&str> = shown.iter().map(AsRef::as_ref).collect();
        assert_eq!(distinct.len(), 4, "{shown:?}");
        assert!(
            shown
                .iter()
                .all(|text| text.contains(ARROW) && display_width(text) <= 40),
            "{shown:?}"
        );
    }
}
