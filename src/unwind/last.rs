//! The last stack of each thread, whose outer frames are most often those of the next.
//!
//! ```text
//!   last   main ─▶ a ─▶ b ─▶ c ─▶ d
//!   now    main ─▶ a ─▶ b ─▶ e ─▶ f ─▶ g
//!          └─ taken over ─┘
//! ```
//!
//! Of each step outwards is kept what the rest of the walk depends on: registers that it uses
//! before it sets them, and words of the stack that become such registers, or addresses to return
//! to. Where these are equal, the rest is equal. Most steps depend on the stack pointer and one
//! word; what a counter in a register is, which a function saves for its caller, does not matter.

use rustc_hash::FxHashMap;

use super::registers::{Registers, bits};
use super::stack::StackCopy;
use crate::base::CodeAddress;

// More threads than this are forgotten, all at once.
const THREADS: usize = 64;

// The most steps that are kept of a stack.
const STEPS: usize = 4096;

/// A step, as the walk makes it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) before: Registers,
    /// What was looked up, to be left.
    pub(super) address: CodeAddress,
    /// The frame that it has become.
    pub(super) frame: CodeAddress,
    pub(super) deps: Dependencies,
}

/// What a step depends on. Sets of registers have a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dependencies {
    /// Registers of before that decide where it leads.
    pub(super) uses: u64,
    /// Registers that are others after it.
    pub(super) sets: u64,
    /// The one of after it that has the address to return to; none in the outermost frame.
    pub(super) returns: u64,
    /// Whether it depends on anything else.
    pub(super) has_others: bool,
    /// Where its words end among those of all steps.
    pub(super) words: usize,
}

/// A word of the stack that becomes a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) register: u8,
    pub(super) address: u64,
    pub(super) value: u64,
}

/// The steps of a walk so far, innermost first.
#[derive(Debug, Default)]
pub(super) struct Trail {
    pub(super) steps: Vec<Step>,
    pub(super) words: Vec<Word>,
}

/// A step, as it is kept.
#[derive(Debug)]
struct Kept {
    address: CodeAddress,
    frame: CodeAddress,
    stack_pointer: u64,
    /// The registers on which it and those behind it depend.
    live: u64,
    /// Where the values of these, and the words on which it depends, end among those of all steps.
    values: usize,
    words: usize,
}

/// A stack that was walked to its outermost frame, which comes first.
#[derive(Debug, Default)]
pub(super) struct LastStack {
    /// The number of the process's memory.
    code: u32,
    steps: Vec<Kept>,
    values: Vec<u64>,
    words: Vec<(u64, u64)>,
    /// What lies further out than the walk is now: this many steps.
    outer: usize,
}

impl LastStack {
    /// Begins a walk.
    fn begin(&mut self, code: u32) {
        if self.code != code {
            self.code = code;
            self.truncate(0);
        }
        self.outer = self.steps.len();
    }

    fn truncate(&mut self, steps: usize) {
        self.steps.truncate(steps);
        let last = self.steps.last();
        self.values.truncate(last.map_or(0, |step| step.values));
        self.words.truncate(last.map_or(0, |step| step.words));
    }

    fn from(&self, step: usize) -> (usize, usize) {
        let inner = step.checked_sub(1).and_then(|step| self.steps.get(step));
        inner.map_or((0, 0), |step| (step.values, step.words))
    }

    /// Appends the frames from `address` to the outermost, at most `limit`, if they are known.
    pub(super) fn take_over(
        &mut self,
        (address, registers): (CodeAddress, &Registers),
        stack: StackCopy<'_>,
        limit: usize,
        frames: &mut Vec<CodeAddress>,
    ) -> bool {
        let Some(place) = registers.stack_pointer() else {
            return false;
        };
        let (inner, step) = loop {
            let Some(inner) = self.outer.checked_sub(1) else {
                return false;
            };
            match self.steps.get(inner) {
                Some(step) if step.stack_pointer < place => self.outer = inner,
                Some(step) if step.stack_pointer == place => break (inner, step),
                _ => return false,
            }
        };
        let values = self.values.get(self.from(inner).0..step.values);
        let mut live = bits(step.live).zip(values.unwrap_or_default());
        if step.address != address
            || self.outer > limit
            || !live.all(|(register, value)| registers.get(register) == Some(*value))
        {
            return false;
        }
        let word = registers.arch().word();
        for number in (0..=inner).rev() {
            let words = self.from(number).1..self.steps[number].words;
            let mut words = self.words.get(words).unwrap_or_default().iter();
            if words.any(|&(address, value)| stack.read(address, word) != Some(value)) {
                // Nothing that is further in leads on.
                self.outer = number;
                return false;
            }
        }
        let taken = self.steps.iter().take(self.outer).rev();
        frames.extend(taken.map(|step| step.frame));
        true
    }

    /// Keeps the steps that have led to those that were taken over, or to the outermost frame.
    /// `is_taken`: whether they were.
    pub(super) fn keep(&mut self, trail: &Trail, is_taken: bool) {
        self.truncate(if is_taken { self.outer } else { 0 });
        let mut live = self.steps.last().map_or(0, |step| step.live);
        for (number, step) in trail.steps.iter().enumerate().rev() {
            let deps = step.deps;
            let Some(stack_pointer) = step.before.stack_pointer() else {
                return;
            };
            if deps.has_others || self.steps.len() >= STEPS {
                return;
            }
            let wanted = live | deps.returns;
            live = (wanted & !deps.sets) | deps.uses;
            if bits(live).any(|register| step.before.get(register).is_none()) {
                return;
            }
            let values = bits(live).filter_map(|register| step.before.get(register));
            self.values.extend(values);
            let from = number
                .checked_sub(1)
                .and_then(|inner| trail.steps.get(inner));
            let from = from.map_or(0, |inner| inner.deps.words);
            let words = trail.words.get(from..deps.words).unwrap_or_default().iter();
            let words = words.filter(|word| wanted >> word.register & 1 != 0);
            self.words
                .extend(words.map(|word| (word.address, word.value)));
            self.steps.push(Kept {
                address: step.address,
                frame: step.frame,
                stack_pointer,
                live,
                values: self.values.len(),
                words: self.words.len(),
            });
        }
    }
}

/// The last stacks of all threads.
#[derive(Default)]
pub(super) struct LastStacks {
    threads: FxHashMap<i32, LastStack>,
    trail: Trail,
}

impl LastStacks {
    /// That of a thread, for a walk in this memory, and room for the steps of it.
    pub(super) fn begin(&mut self, thread: i32, code: u32) -> (&mut LastStack, &mut Trail) {
        let LastStacks { threads, trail } = self;
        if threads.len() >= THREADS && !threads.contains_key(&thread) {
            threads.clear();
        }
        let last = threads.entry(thread).or_default();
        last.begin(code);
        trail.steps.clear();
        trail.words.clear();
        (last, trail)
    }
}
