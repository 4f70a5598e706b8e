//! Functions that no symbol and no unwind table knows, from the code that leads to them.
//!
//! ```text
//!   qsort:   call 1f           qsort is known: what it calls is a function
//!   1:       …                 its code is what control flow reaches from there,
//!            jmp 2f            up to the next known start
//!   2:       ret
//!   3:       …                 nothing leads here but a pointer: not known
//!
//!   f:       call *%rdx        what is called may never return, and another function may
//!            …                 follow: this is code of f only if it leads back into f
//! ```
//!
//! musl is stripped as a rule, and has no unwind tables. Known on x86-64 only.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::flow::{Flow, Wants};
use super::x86::Instructions;
use super::x86::ends::{After, after};
use crate::base::Svma;
use crate::binary::{Binary, Machine};

// More code is not followed, in bytes: it would take seconds.
const MOST_CODE: u64 = 4 << 20;
// How many instructions are followed to find whether a function returns, or code comes back.
const STEPS: usize = 256;
// How often code that is reached from functions is made a function of its own.
const ROUNDS: usize = 8;
// In how many places of a function it may be in doubt whether it goes on there.
const MOST_DOUBTS: usize = 256;
// Compilers align functions to it, in bytes, and pad what is before.
const ALIGNMENT: u64 = 16;

/// The code of such functions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Unlisted {
    /// Stretches of code, in order: the first address, the one behind the last, and the start of
    /// the function.
    stretches: Vec<(u64, u64, u64)>,
}

impl Unlisted {
    /// Follows the code of a file.
    pub fn find(binary: &Binary) -> Unlisted {
        let code = (binary.machine() == Some(Machine::X86_64)).then(|| binary.code().ok());
        let Some(code) = code.flatten().filter(|code| code.size() <= MOST_CODE) else {
            return Unlisted::default();
        };
        let mut sections = Vec::new();
        for (start, size) in code.sections() {
            let mut bytes = Vec::new();
            let piece = code.piece(start, Svma(start.0.saturating_add(size)));
            if piece.is_some_and(|piece| code.read(piece, &mut bytes).is_ok()) {
                sections.push((start.0, bytes));
            }
        }
        let mut follower = Follower {
            binary,
            sections: &sections,
            wants: Wants::default(),
            returning: FxHashSet::default(),
        };
        let (entered, called) = follower.starts();
        follower.prove_returns(&called);
        let mut starts = entered.clone();
        for _ in 0..ROUNDS {
            let (owners, others) = follower.owners(&starts, &entered);
            if others.is_empty() {
                return Unlisted::of(owners);
            }
            starts.extend(others);
        }
        Unlisted::default()
    }

    fn of(owners: FxHashMap<u64, (u64, u64)>) -> Unlisted {
        let mut code: Vec<(u64, u64, u64)> = owners
            .into_iter()
            .map(|(at, (next, function))| (at, next, function))
            .collect();
        code.sort_unstable();
        code.dedup_by(|later, before| {
            let goes_on = later.2 == before.2 && later.0 <= before.1;
            if goes_on {
                before.1 = before.1.max(later.1);
            }
            goes_on
        });
        Unlisted { stretches: code }
    }

    /// The start of the function that has the code at an address.
    pub fn function_at(&self, at: Svma) -> Option<Svma> {
        let after = self.stretches.partition_point(|&(from, ..)| from <= at.0);
        let &(_, to, function) = self.stretches.get(after.checked_sub(1)?)?;
        (at.0 < to).then_some(Svma(function))
    }

    /// The code of the function that starts here, in order: the first address of each stretch and
    /// the one behind its last.
    pub fn stretches_of(&self, start: Svma) -> impl Iterator<Item = (Svma, Svma)> {
        let all = self.stretches.iter();
        let own = all.filter(move |&&(.., function)| function == start.0);
        own.map(|&(from, to, _)| (Svma(from), Svma(to)))
    }
}

/// Where the code of a function ends that lies at its start, without gaps but for padding.
fn end(owners: &FxHashMap<u64, (u64, u64)>, start: u64) -> u64 {
    let is_own = |at: &u64| matches!(owners.get(at), Some((_, owner)) if *owner == start);
    let mut end = start;
    while let Some(at) = (end..end.saturating_add(ALIGNMENT)).find(is_own) {
        end = owners[&at].0;
    }
    end
}

/// The code that is reached from the start of a function.
struct Own<'o> {
    owners: &'o FxHashMap<u64, (u64, u64)>,
    start: u64,
    /// Of what lies at its start.
    end: u64,
    /// Where the next function begins.
    limit: u64,
}

// An instruction that does not only go on to the next one: its address, where it turns to, itself
// if nowhere, and whether nothing follows.
type Turn = (u64, u64, bool);

impl Own<'_> {
    fn has(&self, at: u64) -> bool {
        matches!(self.owners.get(&at), Some((_, owner)) if *owner == self.start)
    }

    fn is_tail_call(&self, &(at, to, is_plain): &Turn, turns: &[Turn]) -> bool {
        let is_here = |at: &u64| (self.start..self.limit).contains(at);
        let is_behind = to >= self.end.saturating_add(ALIGNMENT) && to % ALIGNMENT == 0;
        is_here(&at)
            && self.has(to)
            && if is_here(&to) {
                is_plain && at < self.end && is_behind && !self.comes_back(to, self.end, turns)
            } else {
                !self.comes_back(to, self.limit, turns)
            }
    }

    /// Whether code leads into the middle of what lies from the start to an end: a compiler has
    /// split it off, as it does with little code. Functions lead to starts only.
    fn comes_back(&self, from: u64, end: u64, turns: &[Turn]) -> bool {
        let mut seen = FxHashSet::default();
        let mut work = vec![from];
        while let Some(mut at) = work.pop() {
            while self.has(at) && at != self.start {
                if (self.start..end).contains(&at) {
                    return true;
                }
                if !seen.insert(at) {
                    break;
                }
                if seen.len() > STEPS {
                    return false;
                }
                let place = turns.partition_point(|turn| turn.0 < at);
                if let Some(&(_, to, is_last)) = turns.get(place).filter(|turn| turn.0 == at) {
                    work.push(to);
                    if is_last {
                        break;
                    }
                }
                at = self.owners[&at].0;
            }
        }
        false
    }
}

struct Instruction {
    next: u64,
    flow: Option<Flow>,
    after: After,
}

struct Follower<'a> {
    binary: &'a Binary,
    sections: &'a [(u64, Vec<u8>)],
    wants: Wants,
    /// The functions of which a return is reached for certain.
    returning: FxHashSet<u64>,
}

/// Code that is reached from one place of a function.
#[derive(Debug, Default)]
struct Part {
    /// The address of each instruction, and of the next.
    code: FxHashMap<u64, u64>,
    turns: Vec<Turn>,
    /// What stands behind calls that may never return.
    doubts: Vec<u64>,
    /// Where it leads into code of other functions that is no start.
    others: Vec<u64>,
    /// Whether it leads into the function's code behind its start.
    comes_back: bool,
}

/// Whether the next instruction follows, perhaps among others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GoesOn {
    Yes,
    /// If what is called returns.
    Perhaps,
    No,
}

impl Follower<'_> {
    fn read(&self, at: u64) -> Option<Instruction> {
        let behind = self.sections.partition_point(|(start, _)| *start <= at);
        let (start, bytes) = self.sections.get(behind.checked_sub(1)?)?;
        let index = usize::try_from(at - start).ok()?;
        let read = Instructions::new(bytes, *start).read(index, &self.wants)?;
        let length = usize::from(read.length);
        Some(Instruction {
            next: at.saturating_add(length as u64),
            flow: read.refers.map(|(flow, _)| flow),
            after: after(bytes.get(index..index + length)?),
        })
    }

    fn is_listed(&self, at: u64) -> bool {
        self.binary.function_at(Svma(at)).is_some()
    }

    /// Where control flow from the functions of the file enters code that is of none, by calls and
    /// by turns; and all that is called.
    fn starts(&self) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let functions = self.binary.functions().iter();
        let mut work: Vec<u64> = functions.map(|function| function.start.0).collect();
        let (mut starts, mut called) = (BTreeSet::new(), BTreeSet::new());
        let entry = self.binary.entry().map(|entry| entry.0);
        starts.extend(entry.filter(|&entry| !self.is_listed(entry)));
        work.extend(&starts);
        let mut seen = FxHashSet::default();
        while let Some(mut at) = work.pop() {
            let is_listed = self.is_listed(at);
            while seen.insert(at)
                && let Some(instruction) = self.read(at)
            {
                let target = match instruction.flow {
                    // What calls the next instruction asks for its own address.
                    Some(Flow::Call(to)) if to != instruction.next => {
                        called.insert(to);
                        Some((to, true))
                    }
                    Some(Flow::Jump(to)) => Some((to, is_listed)),
                    _ => None,
                };
                if let Some((to, is_entered)) = target {
                    work.push(to);
                    if is_entered && !self.is_listed(to) {
                        starts.insert(to);
                    }
                }
                at = instruction.next;
                if instruction.after != After::Next || self.is_listed(at) != is_listed {
                    break;
                }
            }
        }
        (starts, called)
    }

    /// For each instruction that is reached from one of the starts the address of the next and that
    /// start; and the places where other functions begin: code that is reached from several, and
    /// that of tail calls.
    fn owners(
        &self,
        starts: &BTreeSet<u64>,
        entered: &BTreeSet<u64>,
    ) -> (FxHashMap<u64, (u64, u64)>, BTreeSet<u64>) {
        let mut owners: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
        let mut others = BTreeSet::new();
        for &start in starts {
            let mut turns: Vec<Turn> = Vec::new();
            let mut take = |part: Part, owners: &mut FxHashMap<u64, (u64, u64)>| {
                owners.extend(part.code.iter().map(|(&at, &next)| (at, (next, start))));
                turns.extend(part.turns);
                others.extend(part.others);
            };
            let mut sure = self.part(start, start, starts, &owners);
            let doubts = std::mem::take(&mut sure.doubts);
            take(sure, &mut owners);
            let mut parts = self.doubtful(start, doubts, starts, &owners);
            // Where what follows a call is of the function, so is what leads to the call.
            while let Some(place) = parts.iter().position(|part| {
                let is_own =
                    |doubt: &u64| matches!(owners.get(doubt), Some((_, of)) if *of == start);
                part.comes_back || part.doubts.iter().any(is_own)
            }) {
                take(parts.swap_remove(place), &mut owners);
            }
            turns.sort_unstable();
            turns.dedup();
            let code = Own {
                owners: &owners,
                start,
                end: end(&owners, start),
                limit: self.next_start(entered, start),
            };
            let tail_calls = turns.iter().filter(|jump| code.is_tail_call(jump, &turns));
            others.extend(tail_calls.map(|&(_, to, _)| to));
        }
        (owners, others)
    }

    /// What may be reached from places where it is in doubt whether a function goes on.
    fn doubtful(
        &self,
        start: u64,
        mut doubts: Vec<u64>,
        starts: &BTreeSet<u64>,
        owners: &FxHashMap<u64, (u64, u64)>,
    ) -> Vec<Part> {
        let mut seen = FxHashSet::default();
        let mut parts = Vec::new();
        while let Some(doubt) = doubts.pop() {
            let is_new = seen.len() < MOST_DOUBTS && seen.insert(doubt);
            if is_new && !owners.contains_key(&doubt) && !starts.contains(&doubt) {
                let part = self.part(doubt, start, starts, owners);
                doubts.extend(&part.doubts);
                parts.push(part);
            }
        }
        parts
    }

    /// Follows the code of the function at `start` from a place of it.
    fn part(
        &self,
        from: u64,
        start: u64,
        starts: &BTreeSet<u64>,
        owners: &FxHashMap<u64, (u64, u64)>,
    ) -> Part {
        let mut part = Part::default();
        let mut work = vec![from];
        while let Some(mut at) = work.pop() {
            while (at == start || !starts.contains(&at)) && !self.is_listed(at) {
                if let Some(&(_, owner)) = owners.get(&at) {
                    match owner == start {
                        true => part.comes_back |= at != start,
                        false => part.others.push(at),
                    }
                    break;
                }
                if part.code.contains_key(&at) {
                    break;
                }
                let Some(instruction) = self.read(at) else {
                    break;
                };
                part.code.insert(at, instruction.next);
                let goes_on = self.goes_on(&instruction);
                let jump = match instruction.flow {
                    Some(Flow::Jump(to)) => Some(to),
                    _ => None,
                };
                work.extend(jump);
                let is_last = goes_on == GoesOn::No;
                if jump.is_some() || is_last {
                    part.turns.push((at, jump.unwrap_or(at), is_last));
                }
                match goes_on {
                    GoesOn::Yes => at = instruction.next,
                    GoesOn::Perhaps => {
                        part.doubts.push(instruction.next);
                        break;
                    }
                    GoesOn::No => break,
                }
            }
        }
        part
    }

    /// The first start of a function behind this one, listed or entered.
    fn next_start(&self, entered: &BTreeSet<u64>, start: u64) -> u64 {
        let listed = self.binary.functions();
        let place = listed.partition_point(|function| function.start.0 <= start);
        let listed = listed.get(place).map(|function| function.start.0);
        let entered = entered.range(start.saturating_add(1)..).next().copied();
        listed.into_iter().chain(entered).min().unwrap_or(u64::MAX)
    }

    fn goes_on(&self, instruction: &Instruction) -> GoesOn {
        match (instruction.after, instruction.flow) {
            (After::Next, Some(Flow::Call(to)))
                if to == instruction.next || self.returning.contains(&to) =>
            {
                GoesOn::Yes
            }
            (After::Next, Some(Flow::Call(_) | Flow::CallSlot(_) | Flow::CallUnknown)) => {
                GoesOn::Perhaps
            }
            (After::Next, _) => GoesOn::Yes,
            _ => GoesOn::No,
        }
    }

    /// Finds out of which functions a return is reached past none but calls of such functions.
    fn prove_returns(&mut self, called: &BTreeSet<u64>) {
        loop {
            let others = called
                .iter()
                .filter(|callee| !self.returning.contains(callee));
            let proven = others
                .copied()
                .filter(|&callee| self.reaches_return(callee));
            let proven: Vec<u64> = proven.collect();
            if proven.is_empty() {
                return;
            }
            self.returning.extend(proven);
        }
    }

    fn reaches_return(&self, start: u64) -> bool {
        let mut seen = FxHashSet::default();
        let mut work = vec![start];
        while let Some(mut at) = work.pop() {
            while seen.insert(at) && seen.len() <= STEPS {
                let Some(instruction) = self.read(at) else {
                    break;
                };
                if instruction.after == After::Return {
                    return true;
                }
                if let Some(Flow::Jump(to)) = instruction.flow {
                    work.push(to);
                }
                if self.goes_on(&instruction) != GoesOn::Yes {
                    break;
                }
                at = instruction.next;
            }
        }
        false
    }
}
