//! The walk over a stack, from the innermost frame outwards.
//!
//! A copy of the whole stack needs nothing else. A small one is joined with the kernel's chain of
//! frame pointers, which is right wherever a function keeps a frame, but not at the leaf:
//!
//! ```text
//!   leaf ─ rules ─▶ caller ─ rules ─▶ owner of the frame pointer ─ chain ─▶ … ─ chain ─▶ main
//!   └──────── in the copy ─────────┘  its return address is the chain's first
//! ```
//!
//! The rules lead from the registers to the function that owns the frame to which the frame pointer
//! points. That its frame lies further out than the copy goes does not matter: what the rules say
//! is its return address is where the kernel read the first address of the chain. From there on the
//! chain is followed as long as the rules agree that each function keeps its frame.

use super::cache::{Cache, Known};
use super::code::ProcessCode;
use super::expression::{Circumstances, Missing};
use super::last::{Dependencies, LastStacks, Step, Word};
use super::registers::Registers;
use super::row::{Cfa, Rule, UnwindRow};
use super::stack::StackCopy;
use crate::base::CodeAddress;

// The limit of frames that take no word of the stack, on top of those that take one each: these are
// interrupted frames, and even ten are many.
const INTERRUPTED_LIMIT: usize = 256;

// The most bytes between the stack pointer of code that was interrupted and the frame that the
// kernel makes on the same stack for a signal handler: registers of vector units and matrices are
// some 12 KiB.
const SIGNAL_FRAME_LIMIT: u64 = 64 << 10;

// The most operations of expressions for one stack.
const EXPRESSION_LIMIT: u32 = 1 << 16;

/// Where a walk ended, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the outermost frame: nothing called it.
    Outermost,
    /// Where the copied part of the stack ends, and the stack does not.
    Copied,
    /// Behind the frame of a signal handler that ran on a stack of its own: what it interrupted was
    /// on another one, which was not copied.
    SignalStack,
    /// At code for which there are no rules, and whose frame pointer leads nowhere.
    Unruled,
    /// Where the rules lead to impossible values.
    Broken,
    /// There were more frames than the copy could hold.
    Limit,
    /// At the end of the kernel's chain, which continues where the rules end.
    Chained,
}

/// The frames of a sample that has both a copy and a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    pub end: End,
    /// The number of innermost frames whose callers were found by rules.
    pub by_rules: usize,
    /// The number of innermost frames whose callers were found in the copy. Behind those by rules
    /// is one without rules, which a frame pointer has left; from there on rules go by what that
    /// led to. Those of the frames further out were found by frame pointers alone.
    pub by_copy: usize,
}

/// The user part of a kernel's call chain, without the program counter, and how far it was
/// followed.
struct Chain<'a> {
    addresses: &'a [u64],
    /// The index of the return address beside the frame that the frame pointer points to; `None`
    /// where the kernel has read another value of that register, so that the chain is none.
    next: Option<usize>,
}

impl Chain<'_> {
    fn next(&self) -> Option<u64> {
        self.addresses.get(self.next?).copied()
    }

    /// What is left of it, if anything of it is known to be true, or nothing else is there.
    fn rest(&self, end: End) -> Option<&[u64]> {
        let next = self.next?;
        let is_right = match end {
            // The owner of the first frame was not reached: functions between may use the register
            // for something else.
            End::Copied => next > 0,
            End::Unruled | End::Broken | End::SignalStack => true,
            End::Outermost | End::Limit | End::Chained => false,
        };
        self.addresses.get(next..).filter(|_| is_right)
    }

    /// The function was left whose frame the frame pointer pointed to, and returns there.
    fn follow(&mut self, caller: u64) {
        if let Some(expected) = self.next() {
            self.next = self.next.filter(|_| expected == caller).map(|at| at + 1);
        }
    }
}

/// Unwinds stacks, and caches the rows that it looked up, and what a thread's last stack led to.
pub struct Unwinder {
    cache: Cache,
    last: LastStacks,
}

/// A register or a return address that could not be had.
enum Stop {
    /// There is none: the frame is the outermost.
    Outermost,
    Missing,
}

/// The frame that is being left.
struct Frame<'a, 'c> {
    registers: &'a mut Registers,
    stack: StackCopy<'a>,
    /// Whether it did not call, but was interrupted: all registers are still its own.
    is_interrupted: bool,
    fuel: &'a mut u32,
    /// Whether something was not found because it lies behind what was copied.
    is_cut: &'a mut bool,
    chain: &'a mut Chain<'c>,
    /// What the step depends on, where that is of interest: all but what the chain says.
    deps: Dependencies,
    words: &'a mut Vec<Word>,
}

impl Default for Unwinder {
    fn default() -> Unwinder {
        Unwinder::new()
    }
}

impl Unwinder {
    /// Makes an unwinder with an empty cache.
    pub fn new() -> Unwinder {
        Unwinder {
            cache: Cache::new(),
            last: LastStacks::default(),
        }
    }

    /// Appends the frames of a stack to `frames`, innermost first: at least one where the program
    /// counter is known.
    pub fn unwind<C: ProcessCode>(
        &mut self,
        code: &C,
        registers: Registers,
        stack: StackCopy<'_>,
        frames: &mut Vec<CodeAddress>,
    ) -> End {
        self.join(code, registers, stack, &[], frames).end
    }

    /// Appends the frames of a stack whose frame pointers the kernel has followed as well: `chain`
    /// has the return addresses that it found. The chain is left out if it is not certain that it
    /// belongs to the frames that the rules lead to.
    pub fn join<C: ProcessCode>(
        &mut self,
        code: &C,
        mut registers: Registers,
        stack: StackCopy<'_>,
        chain: &[u64],
        frames: &mut Vec<CodeAddress>,
    ) -> Joined {
        let first = frames.len();
        let mut chain = Chain {
            addresses: chain,
            next: (!chain.is_empty()).then_some(0),
        };
        let mut guessed = None;
        let end = self.walk(
            code,
            &mut registers,
            stack,
            &mut chain,
            frames,
            &mut guessed,
        );
        let found = frames.len() - first;
        let Some(rest) = chain.rest(end) else {
            return Joined {
                end,
                by_rules: guessed.unwrap_or(found),
                by_copy: found,
            };
        };
        let by_copy = found.saturating_sub(1);
        frames.extend(rest.iter().map(|&address| CodeAddress::Return(address)));
        Joined {
            end: End::Chained,
            by_rules: guessed.unwrap_or(by_copy).min(by_copy),
            by_copy,
        }
    }

    /// Walks as far as the copy and the rules go. `guessed` becomes the number of frames before the
    /// first that was left by a frame pointer without rules, where that could be a wrong one.
    fn walk<C: ProcessCode>(
        &mut self,
        code: &C,
        registers: &mut Registers,
        stack: StackCopy<'_>,
        chain: &mut Chain<'_>,
        frames: &mut Vec<CodeAddress>,
        guessed: &mut Option<usize>,
    ) -> End {
        let Some(mut pc) = registers.program_counter() else {
            return End::Broken;
        };
        let Unwinder { cache, last } = self;
        let (last, trail) = last.begin(stack.thread, code.number());
        let is_alone = chain.addresses.is_empty();
        let arch = registers.arch();
        let first = frames.len();
        let words = stack.bytes.len() / usize::from(arch.word());
        let limit = words + chain.addresses.len() + INTERRUPTED_LIMIT;
        let mut fuel = EXPRESSION_LIMIT;
        let mut is_cut = false;
        let mut address = CodeAddress::Instruction(pc);
        // Whether the last frame was left by rules; else only a guess has led to the next.
        let mut is_ruled = true;
        let mut was_other_stack = false;
        loop {
            let room = limit.saturating_sub(frames.len() - first);
            if is_alone && last.take_over((address, registers), stack, room, frames) {
                last.keep(trail, true);
                return End::Outermost;
            }
            let known = cache.row(code, address.lookup(), arch);
            if matches!(known, Known::Unmapped) && frames.len() > first {
                return if is_ruled { End::Broken } else { End::Unruled };
            }
            if frames.len() - first >= limit {
                return End::Limit;
            }
            let before = is_alone.then(|| registers.clone());
            let (has_chain, fuel_before) = (chain.next.is_some(), fuel);
            let inner_stack_pointer = registers.stack_pointer();
            let mut frame = Frame {
                is_interrupted: matches!(address, CodeAddress::Instruction(_)),
                registers,
                stack,
                fuel: &mut fuel,
                is_cut: &mut is_cut,
                chain,
                deps: Dependencies::default(),
                words: &mut trail.words,
            };
            match known {
                Known::Row(_) => is_ruled = true,
                Known::Foreign | Known::Unruled => is_ruled = false,
                Known::Unmapped | Known::Entry => {}
            }
            if matches!(known, Known::Unruled) && has_chain {
                guessed.get_or_insert(frames.len() - first);
            }
            let (caller, is_signal_frame) = frame.leave_as(known);
            let mut deps = frame.deps;
            // What a handler returns to was put there by the kernel; nothing there has called.
            let found = if is_signal_frame {
                CodeAddress::Instruction(pc)
            } else {
                address
            };
            frames.push(found);
            if let Some(before) = before {
                deps.has_others |= fuel != fuel_before;
                deps.words = trail.words.len();
                trail.steps.push(Step {
                    before,
                    address,
                    frame: found,
                    deps,
                });
            }
            let pointers = inner_stack_pointer.zip(registers.stack_pointer());
            was_other_stack |= is_signal_frame && pointers.is_some_and(are_of_two_stacks);
            pc = match caller {
                Ok(0) | Err(Stop::Missing) if !is_ruled => return End::Unruled,
                Ok(0) | Err(Stop::Outermost) => {
                    if is_alone {
                        last.keep(trail, false);
                    }
                    return End::Outermost;
                }
                Ok(pc) => pc,
                Err(Stop::Missing) if was_other_stack => return End::SignalStack,
                Err(Stop::Missing) if is_cut => return End::Copied,
                Err(Stop::Missing) => return End::Broken,
            };
            address = if is_signal_frame {
                CodeAddress::Instruction(pc)
            } else {
                CodeAddress::Return(pc)
            };
        }
    }
}

/// Whether the stack pointers of a signal handler, and of what it has interrupted, are of different
/// stacks.
fn are_of_two_stacks((inner, outer): (u64, u64)) -> bool {
    let bytes = outer.checked_sub(inner);
    bytes.is_none_or(|bytes| bytes > SIGNAL_FRAME_LIMIT)
}

impl Frame<'_, '_> {
    /// Makes the registers those of the caller by what is known of the code; returns where the
    /// caller goes on, and whether this was the frame of a signal handler.
    fn leave_as(&mut self, known: Known<'_>) -> (Result<u64, Stop>, bool) {
        match known {
            Known::Row(row) => (self.leave(row), row.is_signal_frame),
            Known::Unruled => (self.leave_by_frame_pointer(), false),
            Known::Entry => (Err(Stop::Outermost), false),
            Known::Unmapped | Known::Foreign => (Err(Stop::Missing), false),
        }
    }

    /// Makes the registers those of the caller; returns where the caller goes on.
    ///
    /// ```text
    ///   CFA = by the row            sp = CFA
    ///   r   = by its rule, from the registers of before
    ///   ra  = by its rule; without one its register, if the frame is the innermost (not on x86)
    /// ```
    fn leave(&mut self, row: &UnwindRow) -> Result<u64, Stop> {
        let arch = self.registers.arch();
        let return_rule = row.rule(row.return_address);
        match return_rule {
            Some(Rule::Undefined) => return Err(Stop::Outermost),
            Some(Rule::SavedInParent(_)) => match self.get(arch.result()) {
                Some(0) => return Err(Stop::Outermost),
                Some(_) => {}
                None => return Err(Stop::Missing),
            },
            _ => {}
        }
        let is_at_pointer = row.keeps_frame_at_pointer(arch);
        let cfa = match &row.cfa {
            Cfa::Register { register, offset } => {
                let register = self.get(*register);
                register.map(|register| arch.wrap(register.wrapping_add_signed(*offset)))
            }
            Cfa::Expression(expression) => {
                let with = Circumstances {
                    registers: self.registers,
                    stack: self.stack,
                    first: None,
                };
                let value = expression.value(with, self.fuel);
                self.had(value)
            }
        };
        let cfa = match cfa {
            Some(cfa) => cfa,
            None if is_at_pointer => return self.leave_by_chain(row),
            None => return Err(Stop::Missing),
        };
        // Without a rule the return address is still in its register, which only the innermost
        // frame may leave it in: a call overwrites it.
        let untouched = return_rule.is_none();
        if untouched && (arch.pushes_return_address() || !self.is_interrupted) {
            return Err(Stop::Missing);
        }
        // A function may have taken it off the stack into another register, as vfork does.
        let is_saved = !untouched && !matches!(return_rule, Some(Rule::Register(_)));
        // The stack of an interrupted program may be another one.
        let stack_pointer = self.get(arch.stack_pointer());
        let least = if is_saved { arch.word() } else { 0 };
        let grows = |sp: u64| {
            let growth = cfa.checked_sub(sp);
            growth.is_some_and(|growth| growth >= u64::from(least))
        };
        // glibc's longjmp takes its buffer for the CFA, and says by a rule where the stack will be.
        let is_elsewhere = !row.is_signal_frame && !stack_pointer.is_some_and(grows);
        if is_elsewhere && row.rule(arch.stack_pointer()).is_none() {
            return Err(Stop::Missing);
        }
        self.deps.has_others |= is_elsewhere;
        self.deps.returns = 1 << row.return_address;
        let own = row.reads_registers.then(|| self.registers.clone());
        let frame_pointer = self.registers.get(arch.frame_pointer());
        self.set(arch.stack_pointer(), cfa);
        for (register, rule) in &row.rules {
            // What was saved below the stack pointer has been taken off the stack: the register
            // has its value again. Compilers do not always say so at the end of a function.
            if let (Rule::Saved(offset), Some(sp)) = (rule, stack_pointer)
                && !is_elsewhere
                && arch.wrap(cfa.wrapping_add_signed(*offset)) < sp
                && *register != arch.program_counter()
            {
                continue;
            }
            let value = self.value((*register, rule), cfa, own.as_ref());
            match self.had(value) {
                Some(value) => self.set(*register, value),
                None => {
                    self.deps.sets |= 1 << *register;
                    self.registers.forget(*register);
                }
            }
        }
        if is_elsewhere && self.registers.stack_pointer() < stack_pointer {
            return Err(Stop::Missing);
        }
        let found = self.registers.get(row.return_address);
        let is_chained = is_at_pointer
            || frame_pointer.is_some_and(|pointer| row.keeps_frame_at(cfa, pointer, arch));
        let caller = match found {
            Some(caller) => arch.plain_return_address(caller),
            None => self
                .chain
                .next()
                .filter(|_| is_chained)
                .ok_or(Stop::Missing)?,
        };
        if is_chained {
            self.chain.follow(caller);
        } else if self.registers.get(arch.frame_pointer()) != frame_pointer {
            // What the kernel took for a frame pointer was something else.
            self.chain.next = None;
        }
        self.set(arch.program_counter(), caller);
        Ok(caller)
    }

    /// Leaves a function that keeps its frame, whose frame lies behind what was copied:
    ///
    /// ```text
    ///   ra = chain's next     sp, and registers with a rule, are not known
    /// ```
    fn leave_by_chain(&mut self, row: &UnwindRow) -> Result<u64, Stop> {
        let arch = self.registers.arch();
        let caller = self.chain.next().ok_or(Stop::Missing)?;
        for (register, _) in &row.rules {
            self.registers.forget(*register);
        }
        self.registers.forget(arch.stack_pointer());
        self.registers.set(arch.program_counter(), caller);
        self.chain.follow(caller);
        Ok(caller)
    }

    /// What a register becomes by its rule. `own`: what all were before, if that may be needed.
    fn value(
        &mut self,
        (register, rule): (u8, &Rule),
        cfa: u64,
        own: Option<&Registers>,
    ) -> Result<u64, Missing> {
        let arch = self.registers.arch();
        match rule {
            Rule::Undefined => Err(Missing::Value),
            Rule::Saved(offset) | Rule::SavedInParent(offset) => {
                self.read(register, arch.wrap(cfa.wrapping_add_signed(*offset)))
            }
            Rule::SavedIfPointed(offset) => {
                let place = arch.wrap(cfa.wrapping_add_signed(*offset));
                let pointer = self.before(arch.frame_pointer(), own);
                let pointer = pointer.ok_or(Missing::Value)?;
                if pointer == place {
                    self.read(register, place)
                } else {
                    Ok(pointer)
                }
            }
            Rule::Value(offset) => Ok(arch.wrap(cfa.wrapping_add_signed(*offset))),
            Rule::Register(other) => self.before(*other, own).ok_or(Missing::Value),
            Rule::SavedAt(expression) | Rule::ValueOf(expression) => {
                let with = Circumstances {
                    registers: own.unwrap_or(self.registers),
                    stack: self.stack,
                    first: Some(cfa),
                };
                let value = expression.value(with, self.fuel)?;
                match rule {
                    Rule::SavedAt(_) => self.read(register, value),
                    _ => Ok(value),
                }
            }
        }
    }

    /// A register, on which the step depends.
    fn get(&mut self, register: u8) -> Option<u64> {
        self.before(register, None)
    }

    /// A register as it was before the step, which `own` has if any may have been set.
    fn before(&mut self, register: u8, own: Option<&Registers>) -> Option<u64> {
        self.deps.uses |= 1 << register;
        self.deps.has_others |= own.is_none() && self.deps.sets >> register & 1 != 0;
        own.unwrap_or(self.registers).get(register)
    }

    fn set(&mut self, register: u8, value: u64) {
        self.deps.sets |= 1 << register;
        self.registers.set(register, value);
    }

    /// Goes by the frame pointer, which code without rules may keep:
    ///
    /// ```text
    ///   fp ─▶ [caller's fp][ra] ◀─ CFA    x86, AArch64: fp = [fp]; ra = [fp + 8]; CFA = fp + 16
    ///   [caller's fp][ra] ◀─ fp, CFA      RISC-V: fp = [fp − 16]; ra = [fp − 8]; CFA = fp
    /// ```
    fn leave_by_frame_pointer(&mut self) -> Result<u64, Stop> {
        // A value that is outside of the copy, or leads inwards, is rejected.
        let arch = self.registers.arch();
        let word = u64::from(arch.word());
        let pointer = self.get(arch.frame_pointer());
        let sp = self.get(arch.stack_pointer());
        let (Some(pointer), Some(sp)) = (pointer, sp) else {
            return Err(Stop::Missing);
        };
        let (saved, caller) = arch.frame_record();
        let saved = pointer.checked_add_signed(saved);
        let caller = pointer.checked_add_signed(caller);
        let (Some(saved), Some(caller)) = (saved, caller) else {
            return Err(Stop::Missing);
        };
        if saved < sp || saved % word != 0 {
            return Err(Stop::Missing);
        }
        let outer = self.word(arch.frame_pointer(), saved);
        let outer = outer.ok_or(Stop::Missing)?;
        let caller = self.word(arch.program_counter(), caller);
        let caller = arch.plain_return_address(caller.ok_or(Stop::Missing)?);
        self.deps.returns = 1 << arch.program_counter();
        self.chain.follow(caller);
        self.set(arch.frame_pointer(), outer);
        let cfa = arch.wrap(saved.wrapping_add(2 * word));
        self.set(arch.stack_pointer(), cfa);
        self.set(arch.program_counter(), caller);
        Ok(caller)
    }

    /// A word of the stack, which is to become this register.
    fn read(&mut self, register: u8, address: u64) -> Result<u64, Missing> {
        let stack = self.stack;
        self.word(register, address).ok_or_else(|| {
            if stack.is_cut_before(address) {
                Missing::Memory
            } else {
                Missing::Value
            }
        })
    }

    /// The same of the copy, wherever it ends.
    fn word(&mut self, register: u8, address: u64) -> Option<u64> {
        let value = self.stack.read(address, self.registers.arch().word());
        let Some(value) = value else {
            self.deps.has_others = true;
            return None;
        };
        self.words.push(Word {
            register,
            address,
            value,
        });
        Some(value)
    }

    /// A value, if it was found; that it lies behind what was copied is noted.
    fn had(&mut self, value: Result<u64, Missing>) -> Option<u64> {
        *self.is_cut |= value == Err(Missing::Memory);
        value.ok()
    }
}
