//! Which function of one build is which of another.
//!
//! | step | equal | reported as |
//! |---|---|---|
//! | 1 | name, module and file | `linkage` where symbols are equal, else `name` |
//! | 2 | the same, where a module has another name | the same |
//! | 3 | name and module, if no other function has them | `name` |
//! | 4 | name, if no other function has it | `name` |
//! | 5 | callers and callees, with similar weights; of several such, lines or time | `guess` |
//!
//! Names are without what compilers add to clones and parts of a function, so these are one with
//! it.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Side;
use super::identity::{Identities, NO_SYMBOL, Shown};
use super::run::Run;

/// How similar callers and callees of a renamed function have to be: the cosine of their weights.
const SIMILAR: f64 = 0.9;
/// How much more similar the lines or the time of one function have to be than those of others with
/// the same callers and callees.
const CLEARLY: f64 = 0.2;
/// The part of all time below which nobody asks whether a function was renamed.
const NOTABLE: f64 = 0.002;

/// How a function was recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// By its symbol.
    Linkage,
    /// By its name.
    Name,
    /// By its callers and callees: it may be another one.
    Guess,
}

impl Match {
    /// The word for it in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Match::Linkage => "linkage",
            Match::Name => "name",
            Match::Guess => "guess",
        }
    }
}

/// A function on both sides, or on one: its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The number on each side.
    pub numbers: [Option<u32>; 2],
    /// How they were recognized as one.
    pub matched: Match,
}

/// Pairs all functions of two sides.
pub(super) fn pairs(identities: &Identities, sides: [&[Run]; 2]) -> Vec<Pair> {
    let present = sides.map(|runs| -> FxHashSet<u32> {
        runs.iter()
            .flat_map(|run| run.functions.keys().copied())
            .collect()
    });
    let mut pairs: Vec<Pair> = Vec::new();
    let mut left: [Vec<u32>; 2] = Default::default();
    for number in 0..identities.len() as u32 {
        match [0, 1].map(|side| present[side].contains(&number)) {
            [true, true] => pairs.push(Pair {
                numbers: [Some(number); 2],
                matched: same_name(identities, number, number),
            }),
            [true, false] => left[0].push(number),
            [false, true] => left[1].push(number),
            [false, false] => {}
        }
    }
    let modules = renamed_modules(identities, &left);
    let module = |side: Side, number: u32| -> &str {
        let own = &*identities.identity(number).module;
        match side {
            Side::Base => modules.get(own).copied().unwrap_or(own),
            Side::New => own,
        }
    };
    let stem = |number: u32| &*identities.identity(number).stem;
    let file = |number: u32| identities.identity(number).file.as_deref();
    join(&mut pairs, &mut left, identities, |side, number| {
        (module(side, number), stem(number), file(number))
    });
    join(&mut pairs, &mut left, identities, |side, number| {
        (module(side, number), stem(number), None)
    });
    join(&mut pairs, &mut left, identities, |_, number| {
        match stem(number) {
            // It is of one module each.
            NO_SYMBOL => (module(Side::New, number), NO_SYMBOL, None),
            name => ("", name, None),
        }
    });
    guess(&mut pairs, &mut left, sides, &|number| {
        stem(number) == NO_SYMBOL
    });
    for (side, numbers) in left.iter().enumerate() {
        for &number in numbers {
            let mut pair = Pair {
                numbers: [None; 2],
                matched: Match::Name,
            };
            pair.numbers[side] = Some(number);
            pairs.push(pair);
        }
    }
    pairs
}

fn same_name(identities: &Identities, base: u32, new: u32) -> Match {
    let base = identities.shown(Side::Base, base);
    let new = identities.shown(Side::New, new);
    let symbol = |it: &Shown| it.linkage_name.clone().unwrap_or_else(|| it.name.clone());
    match base.map(symbol) == new.map(symbol) {
        true => Match::Linkage,
        false => Match::Name,
    }
}

// Pairs what has a key that no other function of its side has.
fn join<'a>(
    pairs: &mut Vec<Pair>,
    left: &mut [Vec<u32>; 2],
    identities: &Identities,
    key: impl Fn(Side, u32) -> (&'a str, &'a str, Option<&'a str>),
) {
    let by_key = [Side::Base, Side::New].map(|side| {
        let mut by_key: FxHashMap<_, Option<u32>> = FxHashMap::default();
        for &number in &left[side as usize] {
            let only = by_key.entry(key(side, number)).or_insert(Some(number));
            if *only != Some(number) {
                *only = None;
            }
        }
        by_key
    });
    let mut found: FxHashSet<u32> = FxHashSet::default();
    for &base in &left[Side::Base as usize] {
        let key = key(Side::Base, base);
        let only = by_key
            .each_ref()
            .map(|by_key| by_key.get(&key).copied().flatten());
        if let [Some(_), Some(new)] = only {
            pairs.push(Pair {
                numbers: [Some(base), Some(new)],
                matched: same_name(identities, base, new),
            });
            found.extend([base, new]);
        }
    }
    left.iter_mut()
        .for_each(|side| side.retain(|number| !found.contains(number)));
}

// Modules of the base side under their names on the new side: those with the most functions in
// common. `./old` and `./new` are such.
fn renamed_modules<'a>(
    identities: &'a Identities,
    left: &[Vec<u32>; 2],
) -> FxHashMap<&'a str, &'a str> {
    let mut homes: FxHashMap<&str, FxHashSet<&str>> = FxHashMap::default();
    for &number in &left[Side::New as usize] {
        let identity = identities.identity(number);
        homes
            .entry(&identity.stem)
            .or_default()
            .insert(&identity.module);
    }
    let mut common: FxHashMap<(&str, &str), usize> = FxHashMap::default();
    for &number in &left[Side::Base as usize] {
        let identity = identities.identity(number);
        for new in homes.get(&*identity.stem).into_iter().flatten() {
            *common.entry((&identity.module, new)).or_default() += 1;
        }
    }
    let mut common: Vec<_> = common.into_iter().collect();
    common.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
    let (mut renamed, mut taken) = (FxHashMap::default(), FxHashSet::default());
    for ((base, new), _) in common {
        if base != new && !renamed.contains_key(base) && taken.insert(new) {
            renamed.insert(base, new);
        }
    }
    renamed
}

// Pairs functions that only one side has by whom they call and who calls them.
fn guess(
    pairs: &mut Vec<Pair>,
    left: &mut [Vec<u32>; 2],
    sides: [&[Run]; 2],
    has_no_name: &dyn Fn(u32) -> bool,
) {
    let mut places: [FxHashMap<u32, usize>; 2] = Default::default();
    for (place, pair) in pairs.iter().enumerate() {
        for (side, number) in pair.numbers.iter().enumerate() {
            if let Some(number) = *number {
                places[side].insert(number, place);
            }
        }
    }
    let signatures = [0, 1].map(|side| {
        let whole: f64 = sides[side].iter().map(|run| run.total).sum();
        let mut signatures: FxHashMap<u32, Signature> = FxHashMap::default();
        for run in sides[side] {
            for (&number, figures) in &run.functions {
                if !places[side].contains_key(&number) && !has_no_name(number) {
                    let signature = signatures.entry(number).or_default();
                    signature.total += figures.total / whole;
                    signature.add(Neighbour::Itself, figures.own);
                }
            }
            for (&(number, line), weight) in &run.lines {
                if let Some(signature) = signatures.get_mut(&number) {
                    *signature.lines.entry(line).or_default() += weight;
                }
            }
            for (&(from, to), arc) in &run.arcs {
                if let (Some(signature), Some(&place)) =
                    (signatures.get_mut(&to), places[side].get(&from))
                {
                    signature.add(Neighbour::Caller(place), arc.through);
                }
                if let (Some(signature), Some(&place)) =
                    (signatures.get_mut(&from), places[side].get(&to))
                {
                    signature.add(Neighbour::Callee(place), arc.through);
                }
            }
        }
        signatures.retain(|_, it| it.total >= NOTABLE && it.has_caller());
        let mut signatures: Vec<_> = signatures.into_iter().collect();
        signatures.sort_by_key(|(number, _)| *number);
        signatures
    });
    let best = |one: &Signature, others: &[(u32, Signature)]| {
        let similar = others.iter().filter(|(_, it)| one.has_place_of(it));
        let similar = similar.map(|(number, it)| (*number, one.likeness(it)));
        let mut similar: Vec<(u32, f64)> = similar.collect();
        similar.sort_by(|a, b| b.1.total_cmp(&a.1));
        // Leaves of one caller have the same place.
        match similar[..] {
            [(only, _)] => Some(only),
            [(best, most), (_, next), ..] if most - next >= CLEARLY => Some(best),
            _ => None,
        }
    };
    let [bases, news] = &signatures;
    for (base, signature) in bases {
        let Some(new) = best(signature, news) else {
            continue;
        };
        let back = news.iter().find(|(number, _)| *number == new);
        if back.and_then(|(_, it)| best(it, bases)) == Some(*base) {
            pairs.push(Pair {
                numbers: [Some(*base), Some(new)],
                matched: Match::Guess,
            });
            left.iter_mut()
                .for_each(|side| side.retain(|it| it != base && *it != new));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Neighbour {
    Itself,
    Caller(usize),
    Callee(usize),
}

// What a function is known by without its name.
#[derive(Clone, Debug, Default)]
struct Signature {
    /// As a part of all time.
    total: f64,
    /// The weights that it shares with others, which are places among pairs.
    weights: FxHashMap<Neighbour, f64>,
    /// Its own weight by line, counted from the declaration.
    lines: FxHashMap<i64, f64>,
}

impl Signature {
    fn add(&mut self, neighbour: Neighbour, weight: f64) {
        *self.weights.entry(neighbour).or_default() += weight;
    }

    fn has_caller(&self) -> bool {
        let mut neighbours = self.weights.keys();
        neighbours.any(|it| matches!(it, Neighbour::Caller(_)))
    }

    // Whether callers and callees are those of the other; a caller has to be.
    fn has_place_of(&self, other: &Signature) -> bool {
        let mut common = (self.weights.keys()).filter(|it| other.weights.contains_key(it));
        let has_caller = common.any(|it| matches!(it, Neighbour::Caller(_)));
        has_caller && cosine(&self.weights, &other.weights) >= SIMILAR
    }

    // From 0 to 1: by where in the function samples are, or by its time where that is not known.
    fn likeness(&self, other: &Signature) -> f64 {
        match self.lines.is_empty() || other.lines.is_empty() {
            false => cosine(&self.lines, &other.lines),
            true => self.total.min(other.total) / self.total.max(other.total),
        }
    }
}

fn cosine<K: Eq + Hash>(one: &FxHashMap<K, f64>, other: &FxHashMap<K, f64>) -> f64 {
    let common = one.iter().filter_map(|(key, a)| Some(a * other.get(key)?));
    let product: f64 = common.sum();
    let length = |it: &FxHashMap<K, f64>| it.values().map(|it| it * it).sum::<f64>().sqrt();
    product / (length(one) * length(other)).max(f64::MIN_POSITIVE)
}
