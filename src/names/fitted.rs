//! Names on one page that stay different where they are shortened.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::width::{MIN_MARKED, Written, display_width, own_name};
use super::{GAP, excerpt, of_text};
use crate::base::Language;

/// The number of attempts to distinguish shortened texts that look the same by parts further in.
const ROUNDS: usize = 16;

/// The names, each in the columns that there are for it: shortened, and where different ones would
/// look the same with the places in which they differ. A name that nothing else tells apart is
/// longer than its room. Marks behind a name are no part of it.
pub fn fitted(names: &[(Written<'_>, usize)]) -> Vec<String> {
    let mut shown: Vec<Fitted> = names
        .iter()
        .map(|(name, room)| short(name, *room))
        .collect();
    // One place may tell a text from some and another from others, so all of them stay in sight.
    let mut telling: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for round in 0..=ROUNDS {
        let alike = alike(names, &shown);
        if alike.is_empty() {
            break;
        }
        for places in alike {
            let mut all = places.iter().map(|&place| &*names[place].0.text);
            let first = all.next().unwrap_or_default();
            let shared = all
                .filter(|text| *text != first)
                .map(|text| common_prefix(first, text))
                .min();
            for place in places {
                let (name, room) = &names[place];
                shown[place] = match shared {
                    Some(shared) if round < ROUNDS => {
                        let telling = telling.entry(place).or_default();
                        telling.insert(shared);
                        let telling: Vec<usize> = telling.iter().copied().collect();
                        around(name, &telling, *room)
                    }
                    _ => whole(name),
                };
            }
        }
    }
    let joined = |(name, marks): Fitted| name.into_owned() + marks;
    shown.into_iter().map(joined).collect()
}

/// A name and its marks as they are shown.
type Fitted<'a> = (Cow<'a, str>, &'a str);

fn whole<'a>(name: &'a Written<'_>) -> Fitted<'a> {
    (Cow::Borrowed(&name.text), &name.marks)
}

fn short<'a>(name: &'a Written<'_>, room: usize) -> Fitted<'a> {
    if name.width() <= room {
        return whole(name);
    }
    let (text, marks) = name.shortened_apart(room);
    (Cow::Owned(text), marks)
}

/// The places of texts whose names are not the same, but shown the same.
fn alike(names: &[(Written<'_>, usize)], shown: &[Fitted]) -> Vec<Vec<usize>> {
    let mut by_shown: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, (name, _)) in shown.iter().enumerate() {
        by_shown.entry(name).or_default().push(place);
    }
    let mut alike: Vec<Vec<usize>> = by_shown.into_values().collect();
    let name = |place: usize| &names[place].0.text;
    alike.retain(|places| {
        let is_cut = places.iter().any(|&at| shown[at].0.contains(GAP));
        is_cut && places.iter().any(|&at| name(at) != name(places[0]))
    });
    alike
}

/// The number of bytes that two texts have in common at their start, up to the start of a
/// character.
fn common_prefix(one: &str, other: &str) -> usize {
    let same = one.char_indices().zip(other.chars());
    let differs = same.clone().find(|((_, a), b)| a != b);
    let shorter = one.len().min(other.len());
    differs.map_or(shorter, |((at, _), _)| at)
}

/// Shortens a text to `room` columns and keeps what stands at `places`, which are in order, and of
/// the function's own name as much as there is room for.
fn around<'a>(written: &'a Written<'_>, places: &[usize], room: usize) -> Fitted<'a> {
    // Parts of several names, side by side, would look like one.
    if written.width() <= room || of_text(&written.text) == Language::Several {
        return whole(written);
    }
    let marks = written.shown_marks(room);
    let room = room.saturating_sub(display_width(marks));
    let label = &*written.text;
    let (name, place) = written.parts();
    let left = room.saturating_sub(display_width(place));
    let is_in_name = places.last().is_some_and(|&place| place < name.len());
    let shown = if display_width(label) <= room {
        label.to_owned()
    } else if !place.is_empty() && left >= MIN_MARKED && is_in_name {
        format!("{}{place}", excerpt::of(name, places, own_name(name), left))
    } else {
        excerpt::of(label, places, own_name(name), room)
    };
    (Cow::Owned(shown), marks)
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
            let texts = names.iter().map(|name| (Written::from(name), room));
            let shown = fitted(&texts.collect::<Vec<_>>());
            let distinct: BTreeSet<&str> = shown.iter().map(AsRef::as_ref).collect();
            assert_eq!(distinct.len(), names.len(), "{shown:?}");
            for text in &shown {
                assert!(display_width(text) <= room, "{text} in {room}");
            }
        }
    }

    #[test]
    fn names_that_differ_in_their_declarations_stay_different_without_room() {
        let name = |file: &str| {
            let declaration = format!(" (src/{file}.rs:12)");
            Written {
                text: format!("parser::expression{declaration}").into(),
                declaration: declaration.len(),
                marks: " <cycle 1> [23]".into(),
            }
        };
        let names = ["additive", "assign", "assignment"].map(name);
        for room in 8..60 {
            let shown = fitted(&names.clone().map(|name| (name, room)));
            let name = |text: &String| text.replace(" <cycle 1> [23]", "").replace(" (…)", "");
            let distinct: BTreeSet<String> = shown.iter().map(name).collect();
            assert_eq!(distinct.len(), names.len(), "{shown:?}");
            assert!(
                shown.iter().all(|text| display_width(text) <= room.max(10)),
                "{room}: {shown:?}"
            );
        }
    }
}
