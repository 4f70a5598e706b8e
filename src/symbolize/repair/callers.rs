//! The calls of a file in reverse: the callers of each function.

use crate::base::IdVec;
use crate::scan::{CallKind, Callee, Calls, CodeFunctionId};

/// All calls of a file, from callees to callers.
pub(super) struct Callers {
    /// The starts of functions that may be entered from anywhere, sorted: their addresses are taken
    /// by code or data, or nothing in the file is known to call them.
    entered: Vec<u64>,
    /// The starts of callee and caller, and the stated address of the call, `None` for a jump;
    /// sorted.
    calls: Vec<(u64, u64, Option<u64>)>,
    /// The addresses of all functions, sorted.
    pub(super) functions: Vec<u64>,
}

impl Callers {
    /// `exported` are the addresses by which other files find functions.
    pub(super) fn of(calls: &Calls, exported: impl Iterator<Item = u64>) -> Callers {
        let start = |id: CodeFunctionId| calls.functions[id].symbol.start.0;
        let mut callers = Callers {
            entered: exported.collect(),
            functions: calls.functions.ids().map(start).collect(),
            calls: Vec::with_capacity(calls.sites.len()),
        };
        let mut is_called = IdVec::filled(false, calls.functions.len());
        for site in &calls.sites {
            let Callee::Function(callee) = site.callee else {
                continue;
            };
            let at = match site.kind {
                CallKind::Pointer => {
                    callers.entered.push(start(callee));
                    continue;
                }
                CallKind::Tail => None,
                CallKind::Call | CallKind::Import => Some(site.at.0),
            };
            is_called[callee] |= site.caller != callee;
            callers.calls.push((start(callee), start(site.caller), at));
        }
        for jump in &calls.inside_jumps {
            is_called[jump.callee] = true;
            let call = (start(jump.callee), start(jump.caller), None);
            callers.calls.push(call);
        }
        for (id, function) in calls.functions.enumerate() {
            // A part goes with its function. What nothing calls is dead, or reached in a way that
            // is not seen: by an address in a form of its own.
            let is_reached = is_called[id] || function.part_of.is_some();
            if function.pointers_in_data > 0 || !is_reached {
                callers.entered.push(start(id));
            }
        }
        callers.functions.sort_unstable();
        callers.entered.sort_unstable();
        callers.calls.sort_unstable();
        callers
    }

    /// The bytes that [`Callers::read`] reads, all numbers little-endian:
    ///
    /// ```text
    ///   entered, functions   number: u64; u64 each
    ///   calls                number: u64; callee, caller: u64, call: u64 (all ones for a jump)
    /// ```
    pub(super) fn written(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut push = |number: u64| bytes.extend(number.to_le_bytes());
        for list in [&self.entered, &self.functions] {
            push(list.len() as u64);
            list.iter().for_each(|&start| push(start));
        }
        push(self.calls.len() as u64);
        for &(callee, caller, call) in &self.calls {
            for number in [callee, caller, call.unwrap_or(u64::MAX)] {
                push(number);
            }
        }
        bytes
    }

    /// The calls in these bytes; `None` if they hold something else, or too little.
    pub(super) fn read(bytes: &[u8]) -> Option<Callers> {
        let (words, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let mut rest = words;
        let mut take = |length: usize| {
            let (number, behind) = rest.split_first()?;
            let number = usize::try_from(u64::from_le_bytes(*number)).ok()?;
            let (taken, behind) = behind.split_at_checked(number.checked_mul(length)?)?;
            rest = behind;
            Some(taken)
        };
        let numbers =
            |words: &[[u8; 8]]| words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let (entered, functions, calls) = (take(1)?, take(1)?, take(3)?);
        let (calls, _) = calls.as_chunks::<3>();
        let calls = calls.iter().map(|&call| {
            let [callee, caller, call] = call.map(u64::from_le_bytes);
            (callee, caller, Some(call).filter(|&call| call != u64::MAX))
        });
        let callers = Callers {
            entered: numbers(entered),
            functions: numbers(functions),
            calls: calls.collect(),
        };
        let is_sorted = callers.entered.is_sorted()
            && callers.functions.is_sorted()
            && callers.calls.is_sorted();
        is_sorted.then_some(callers)
    }

    pub(super) fn may_be_entered(&self, start: u64) -> bool {
        self.entered.binary_search(&start).is_ok()
    }

    pub(super) fn of_function(&self, start: u64) -> impl Iterator<Item = (u64, Option<u64>)> {
        let from = self.calls.partition_point(|&(callee, ..)| callee < start);
        let calls = self
            .calls
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(move |&&(callee, ..)| callee == start);
        calls.map(|&(_, caller, at)| (caller, at))
    }
}
