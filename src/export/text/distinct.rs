//! Texts of one column that stay different where they are shortened.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::shorten::{
    ARROW, GAP, display_width, first_columns, last_columns, shortened, shortened_call, split_remark,
};

/// How often texts that look the same are told apart further in.
const ROUNDS: usize = 16;
/// How much of what two names share stands before the place where they differ.
const SHARED: usize = 8;

/// The texts, each in the columns that there are for it: shortened, and where different names would look the same
/// with the place in which they differ. A text that nothing else tells apart is longer than its room. What stands
/// behind a name is no part of it.
pub(super) fn fitted<'t>(texts: &[(&'t str, usize)]) -> Vec<Cow<'t, str>> {
    let short = |&(text, room): &(&'t str, usize)| shortened_call(text, room);
    let mut shown: Vec<Cow<'t, str>> = texts.iter().map(short).collect();
    for round in 0..=ROUNDS {
        let mut changed = Vec::new();
        for places in alike(texts, &shown) {
            let mut all = places.iter().map(|&place| texts[place].0);
            let first = all.next().unwrap_or_default();
            let shared = all
                .filter(|text| *text != first)
                .map(|text| common_prefix(first, text));
            let shared = shared.min();
            for place in places {
                let (text, room) = texts[place];
                let text = match shared {
                    Some(shared) if round < ROUNDS => around(text, shared, room),
                    _ => Cow::Borrowed(text),
                };
                changed.push((place, text));
            }
        }
        if changed.is_empty() {
            break;
        }
        for (place, text) in changed {
            shown[place] = text;
        }
    }
    shown
}

/// The places of texts whose names are not the same, but shown the same.
fn alike(texts: &[(&str, usize)], shown: &[Cow<'_, str>]) -> Vec<Vec<usize>> {
    let mut by_shown: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, text) in shown.iter().enumerate() {
        let (name, _) = split_remark(text);
        by_shown.entry(name).or_default().push(place);
    }
    let mut alike: Vec<Vec<usize>> = by_shown.into_values().collect();
    let name = |place: usize| split_remark(texts[place].0).0;
    alike.retain(|places| {
        let is_cut = places.iter().any(|&at| shown[at].contains(GAP));
        is_cut && places.iter().any(|&at| name(at) != name(places[0]))
    });
    alike
}

/// The number of bytes that two texts have in common at their start, up to the start of a character.
fn common_prefix(one: &str, other: &str) -> usize {
    let same = one.char_indices().zip(other.chars());
    let differs = same.clone().find(|((_, a), b)| a != b);
    let shorter = one.len().min(other.len());
    differs.map_or(shorter, |((at, _), _)| at)
}

/// A text in so many columns with what stands at `place`.
fn around(text: &str, place: usize, room: usize) -> Cow<'_, str> {
    let (name, remark) = split_remark(text);
    let left = room.saturating_sub(display_width(remark));
    if !remark.is_empty() && left >= SHARED && place < name.len() {
        return Cow::Owned(format!("{}{remark}", around(name, place, left)));
    }
    if let Some((caller, callee)) = text.split_once(ARROW) {
        let half = room.saturating_sub(display_width(ARROW)) / 2;
        let start = caller.len() + ARROW.len();
        let (caller, callee) = match place < start {
            true => (
                around(caller, place.min(caller.len()), half),
                shortened(callee, half),
            ),
            false => (shortened(caller, half), around(callee, place - start, half)),
        };
        return Cow::Owned(format!("{caller}{ARROW}{callee}"));
    }
    let room = room.max(4);
    if display_width(text) <= room {
        return Cow::Borrowed(text);
    }
    let end = last_columns(text, room - 1);
    if text.len() - end.len() <= place {
        return Cow::Owned(format!("{GAP}{end}"));
    }
    let start = first_columns(text, (room - 2) / 3);
    let before = last_columns(&text[..place], SHARED.min(room / 4));
    let from = (place - before.len()).max(start.len());
    let rest = &text[from..];
    let here = room - 2 - display_width(start);
    if display_width(rest) <= here + 1 {
        return Cow::Owned(format!("{start}{GAP}{rest}"));
    }
    Cow::Owned(format!("{start}{GAP}{}{GAP}", first_columns(rest, here)))
}
