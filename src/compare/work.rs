//! How much a run did.

use crate::names::short_name;
use crate::profile::{Counts, Filter, Profile};

/// Calls of a function, or the weight of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The function or the event.
    pub name: String,
    /// The number, which is not 0.
    pub amount: u64,
}

impl Work {
    /// The calls of the functions of this name, if all were counted, else the weight of the event;
    /// `None` where there is neither.
    pub fn of(profile: &Profile, name: &str) -> Option<Work> {
        let counts = profile.counts.as_ref();
        let calls = counts.and_then(|counts| calls(profile, counts, name));
        let amount = calls.or_else(|| match profile.events_named(name)[..] {
            [event] => Some(profile.select(event, &Filter::default()).total()),
            _ => None,
        });
        let name = name.to_owned();
        let amount = amount.filter(|amount| *amount > 0)?;
        Some(Work { name, amount })
    }
}

fn calls(profile: &Profile, counts: &Counts, name: &str) -> Option<u64> {
    let functions = profile.functions.enumerate();
    let named = functions.filter(|(_, it)| it.name == name || short_name(it) == name);
    let named: Vec<_> = named.map(|(id, _)| id).collect();
    let are_whole = named.iter().all(|id| counts.has_all_of(*id));
    let calls = counts.calls().iter();
    let calls = calls.filter(|call| named.contains(&call.to));
    (are_whole && !named.is_empty()).then(|| calls.map(|call| call.calls).sum())
}
