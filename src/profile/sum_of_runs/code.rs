//! What the code says of calls: the same in each run of a build.

use std::collections::BTreeMap;

use super::Ids;
use crate::profile::{Builder, Call, Code, Followed, FollowedFunction, FunctionCode, FunctionId};

/// What the code of all runs says, each once.
#[derive(Debug, Default)]
pub(super) struct SummedCode {
    calls: BTreeMap<Call, u64>,
    known: BTreeMap<FunctionId, FunctionCode>,
    interrupts: Vec<FunctionId>,
    followed: Option<Followed>,
    is_partial: bool,
}

impl SummedCode {
    pub fn add(&mut self, code: &Code, ids: &Ids) {
        self.is_partial |= !code.is_whole;
        for call in code.calls() {
            let sites = call.sites;
            let call = Call {
                from: ids.functions[call.from],
                to: ids.functions[call.to],
                sites: 0,
                ..*call
            };
            let known = self.calls.entry(call).or_default();
            *known = sites.max(*known);
        }
        for (id, code) in code.functions.enumerate() {
            if let Some(code) = code {
                self.known.entry(ids.functions[id]).or_insert(*code);
            }
        }
        let interrupts = code.interrupts().iter();
        self.interrupts
            .extend(interrupts.map(|&id| ids.functions[id]));
        if let Some(followed) = &code.followed {
            let sum = self.followed.get_or_insert_default();
            let first = sum.functions.len() as u32;
            let functions = followed.functions.iter();
            sum.functions
                .extend(functions.map(|function| FollowedFunction {
                    function: function.function.map(|id| ids.functions[id]),
                    ..*function
                }));
            let calls = followed.calls.iter();
            sum.calls
                .extend(calls.map(|(from, to)| (first + from, first + to)));
            let copied = followed.copied.iter();
            sum.copied.extend(copied.map(|&id| ids.functions[id]));
        }
    }

    /// Returns the calls, which a finished profile takes.
    pub fn into_builder(self, builder: &mut Builder) -> Vec<Call> {
        for (function, code) in self.known {
            builder.code(function, code);
        }
        builder.interrupts(self.interrupts);
        if !self.is_partial {
            builder.code_is_whole();
        }
        if let Some(mut followed) = self.followed {
            followed.copied.sort_unstable();
            followed.copied.dedup();
            builder.followed(followed);
        }
        let calls = self.calls.into_iter();
        calls.map(|(call, sites)| Call { sites, ..call }).collect()
    }
}
