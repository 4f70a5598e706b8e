//! The callers and callees of all functions at once: the figures of [details](super) in one walk.
//!
//! The part of a function's total that a caller gets and the contribution of the function to that
//! caller are the same weight: that of the samples under the call, without the self weight of the
//! caller further in. So one figure for each pair of functions is enough for all details of a
//! profile.

use crate::base::{Distinct, IdVec, define_id};
use crate::profile::{FunctionId, Links, PathWeights, Profile, Selection, Step};

define_id! {
    /// A pair of functions.
    PairId
}

/// A function and one that it called, on whole stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The caller.
    pub caller: FunctionId,
    /// The callee.
    pub callee: FunctionId,
    /// The weight that the callee contributes to the caller, as in
    /// [`Rule::Strict`](super::Rule::Strict).
    pub weight: u64,
    /// Whether some stack leads from the callee to the caller and so to this call.
    pub caller_recurses: bool,
    /// Whether some stack leads from this call back to the caller.
    pub callee_recurses: bool,
    /// Whether no recorded stack has this call: one of the two functions was restored each time.
    pub inferred: bool,
    /// Whether on some stack the callee's code was inlined into the caller's.
    pub inlined: bool,
}

#[derive(Clone, Copy, Default)]
struct State {
    on_stack: u32,
    weight: u64,
    caller_recurses: bool,
    callee_recurses: bool,
    recorded: bool,
    inlined: bool,
}

// What a caller had when a call of it began.
#[derive(Clone, Copy)]
struct Call {
    pair: PairId,
    taken: u64,
    entered: u64,
}

/// Returns all pairs on the stacks of the selected samples, in order of caller and callee. Linear
/// in rows, paths and functions, apart from sorting.
///
/// ```
/// use proftool::analysis::detail::pairs;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter, FunctionId};
/// use proftool::base::Id;
///
/// // main, A, B, C, D by order of appearance
/// let text = "main;A 32\nmain;A;B 17\nmain;A;B;C 23\nmain;A;B;C;A 32\nmain;A;B;C;A;D 14\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let found = pairs::of_all(&profile, &selection);
/// let weights: Vec<_> = found.iter().map(|pair| pair.weight).collect();
/// // main → A, A → B without the inner A's 32, A → D, B → C, C → A
/// assert_eq!(weights, [118, 54, 14, 69, 46]);
/// ```
pub fn of_all(profile: &Profile, selection: &Selection) -> Vec<Pair> {
    let weights = PathWeights::of(profile, selection);
    let functions = profile.functions.len();
    let mut pairs: Distinct<PairId, (FunctionId, FunctionId)> = Distinct::default();
    let mut states: IdVec<PairId, State> = IdVec::new();
    let mut depth = IdVec::filled(0u32, functions);
    let mut entered = IdVec::filled(0u64, functions);
    let mut taken = IdVec::filled(0u64, functions);
    let mut calls: Vec<Call> = Vec::new();
    let paths = &profile.paths;
    Links::new(profile, &weights).walk(paths, |step| match step {
        Step::Enter(id) => {
            let path = &paths[id];
            if let Some(caller) = path.caller.map(|caller| &paths[caller]) {
                let pair = pairs.id_of((caller.function, path.function));
                if states.get(pair).is_none() {
                    states.push(State::default());
                }
                let state = &mut states[pair];
                state.on_stack += 1;
                state.recorded |= !path.inferred && !caller.inferred;
                state.inlined |= path.inlined;
                state.caller_recurses |= depth[path.function] > 0;
                calls.push(Call {
                    pair,
                    taken: taken[caller.function],
                    entered: entered[caller.function],
                });
            }
            depth[path.function] += 1;
            entered[path.function] += 1;
            taken[path.function] += weights.self_weight(id);
        }
        Step::Leave(id) => {
            let path = &paths[id];
            depth[path.function] -= 1;
            let caller = path.caller.map(|caller| paths[caller].function);
            if let Some((caller, call)) = caller.and_then(|caller| Some((caller, calls.pop()?))) {
                let state = &mut states[call.pair];
                state.on_stack -= 1;
                state.callee_recurses |= entered[caller] > call.entered;
                // Of equal calls in one another the outermost has all samples. Those taken in an
                // inner activation of the caller are the caller's own.
                if state.on_stack == 0 {
                    state.weight += weights.total(id) - (taken[caller] - call.taken);
                }
            }
        }
    });
    let rows = pairs.into_rows();
    let pair = |(&(caller, callee), state): (&(FunctionId, FunctionId), &State)| Pair {
        caller,
        callee,
        weight: state.weight,
        caller_recurses: state.caller_recurses,
        callee_recurses: state.callee_recurses,
        inferred: !state.recorded,
        inlined: state.inlined,
    };
    let mut pairs: Vec<Pair> = rows.iter().zip(&states).map(pair).collect();
    pairs.sort_unstable_by_key(|pair| (pair.caller, pair.callee));
    pairs
}
