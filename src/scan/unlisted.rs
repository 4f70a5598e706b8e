//! Functions that no symbol and no unwind table knows, from the code that leads to them.
//!
//! ```text
//!   qsort:   call 1f           qsort is known: what it calls is a function
//!   1:       …                 its code is what control flow reaches from there,
//!            jmp 2f            up to the next known start
//!   2:       ret
//!   3:       …                 nothing leads here but a pointer: not known
//! ```
//!
//! musl is stripped as a rule, and has no unwind tables. Known on x86-64 only.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::flow::{Flow, Wants};
use super::reached::is_end;
use super::x86::Instructions;
use super::x86::ends::{After, after};
use crate::base::Svma;
use crate::binary::{Binary, Machine};

// More code is not followed, in bytes: it would take seconds.
const MOST_CODE: u64 = 4 << 20;
// How many instructions of a function are followed to find one that returns.
const STEPS: usize = 256;
// How often code that is reached from functions is made a function of its own.
const ROUNDS: usize = 8;
// Compilers align functions to it, in bytes, and pad what is before.
const ALIGNMENT: u64 = 16;

/// The code of such functions.
#[derive(Debug, Default)]
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
            returning: FxHashMap::default(),
        };
        let mut starts = follower.starts();
        for _ in 0..ROUNDS {
            let (owners, others) = follower.owners(&starts);
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

struct Instruction {
    next: u64,
    flow: Option<Flow>,
    after: After,
}

struct Follower<'a> {
    binary: &'a Binary,
    sections: &'a [(u64, Vec<u8>)],
    wants: Wants,
    /// Whether what is called returns, by its address.
    returning: FxHashMap<u64, bool>,
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
    /// by jumps, and what is called there.
    fn starts(&mut self) -> BTreeSet<u64> {
        let functions = self.binary.functions().iter();
        let mut work: Vec<u64> = functions.map(|function| function.start.0).collect();
        let mut starts: BTreeSet<u64> = BTreeSet::new();
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
                    Some(Flow::Call(to)) if to != instruction.next => Some((to, true)),
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
                if !self.goes_on(&instruction) || self.is_listed(at) != is_listed {
                    break;
                }
            }
        }
        starts
    }

    /// For each instruction that is reached from one of the starts the address of the next and that
    /// start; and the places where other functions begin: code that is reached from several, and
    /// that of tail calls.
    fn owners(&mut self, starts: &BTreeSet<u64>) -> (FxHashMap<u64, (u64, u64)>, BTreeSet<u64>) {
        let mut owners: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
        let mut others = BTreeSet::new();
        for &start in starts {
            let mut work = vec![start];
            let mut jumps = Vec::new();
            while let Some(mut at) = work.pop() {
                while (at == start || !starts.contains(&at)) && !self.is_listed(at) {
                    if let Some(&(_, owner)) = owners.get(&at) {
                        if owner != start {
                            others.insert(at);
                        }
                        break;
                    }
                    let Some(instruction) = self.read(at) else {
                        break;
                    };
                    owners.insert(at, (instruction.next, start));
                    if let Some(Flow::Jump(to)) = instruction.flow {
                        work.push(to);
                        if instruction.after == After::Jump {
                            jumps.push((at, to));
                        }
                    }
                    if !self.goes_on(&instruction) {
                        break;
                    }
                    at = instruction.next;
                }
            }
            let end = end(&owners, start);
            let is_own = |to| matches!(owners.get(&to), Some((_, owner)) if *owner == start);
            let is_tail_call = |&(at, to): &(u64, u64)| {
                let is_behind = to >= end.saturating_add(ALIGNMENT) && to % ALIGNMENT == 0;
                // Code that is split off lies elsewhere, and jumps within itself.
                (start..end).contains(&at) && (to < start || is_behind) && is_own(to)
            };
            let tail_calls = jumps.iter().filter(|jump| is_tail_call(jump));
            others.extend(tail_calls.map(|&(_, to)| to));
        }
        (owners, others)
    }

    /// Whether the next instruction follows, perhaps among others.
    fn goes_on(&mut self, instruction: &Instruction) -> bool {
        let returns = match instruction.flow {
            Some(Flow::Call(to)) => self.returns(to),
            _ => true,
        };
        returns && instruction.after == After::Next
    }

    fn returns(&mut self, callee: u64) -> bool {
        if let Some(&known) = self.returning.get(&callee) {
            return known;
        }
        let function = self.binary.function_at(Svma(callee));
        let name = function.and_then(|function| self.binary.function_name(function));
        let found = !name.is_some_and(|name| is_end(&name)) && self.reaches_return(callee);
        self.returning.insert(callee, found);
        found
    }

    /// Whether a return, or a way that is not followed, is reached from the start of a function.
    fn reaches_return(&self, start: u64) -> bool {
        let mut seen = FxHashSet::default();
        let mut work = vec![start];
        while let Some(mut at) = work.pop() {
            while seen.insert(at) {
                let instruction = self.read(at).filter(|_| seen.len() <= STEPS);
                let Some(Instruction { next, flow, after }) = instruction else {
                    return true;
                };
                match (flow, after) {
                    (_, After::Return) => return true,
                    (Some(Flow::Jump(to)), _) => work.push(to),
                    (_, After::Jump) => return true,
                    (Some(Flow::Call(to)), _) if self.returning.get(&to) == Some(&false) => break,
                    _ => {}
                }
                if after != After::Next {
                    break;
                }
                at = next;
            }
        }
        false
    }
}
