//! The walk over a stack, from the innermost frame outwards.

use super::cache::{Cache, Known};
use super::code::ProcessCode;
use super::expression::{Circumstances, Missing};
use super::registers::Registers;
use super::row::{Cfa, Rule, UnwindRow};
use super::stack::StackCopy;
use crate::base::CodeAddress;

/// The limit of frames that take no word of the stack, on top of those that take one each: these
/// are interrupted frames, and even ten are many.
const INTERRUPTED_LIMIT: usize = 256;

/// The most operations of expressions for one stack.
const EXPRESSION_LIMIT: u32 = 1 << 16;

/// Where a walk ended, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the outermost frame: nothing called it.
    Outermost,
    /// Where the copied part of the stack ends, and the stack does not.
    Copied,
    /// At code for which there are no rules, and whose frame pointer leads nowhere.
    Unruled,
    /// Where the rules lead to nothing that can be.
    Broken,
    /// There were more frames than the copy could hold.
    Limit,
}

/// Unwinds stacks, and caches the rows that it looked up.
pub struct Unwinder {
    cache: Cache,
}

/// A register or a return address that could not be had.
enum Stop {
    /// There is none: the frame is the outermost.
    Outermost,
    /// It is missing.
    Missing,
}

/// The frame that is being left.
struct Frame<'a> {
    registers: &'a mut Registers,
    stack: StackCopy<'a>,
    /// Whether it did not call, but was interrupted: all registers are still its own.
    is_interrupted: bool,
    fuel: &'a mut u32,
    /// Whether something was not found because it lies behind what was copied.
    is_cut: &'a mut bool,
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
        }
    }

    /// Appends the frames of a stack to `frames`, innermost first: at least one where the program
    /// counter is known.
    pub fn unwind<C: ProcessCode>(
        &mut self,
        code: &C,
        mut registers: Registers,
        stack: StackCopy<'_>,
        frames: &mut Vec<CodeAddress>,
    ) -> End {
        let Some(mut pc) = registers.program_counter() else {
            return End::Broken;
        };
        let arch = registers.arch();
        let first = frames.len();
        let limit = stack.bytes.len() / usize::from(arch.word()) + INTERRUPTED_LIMIT;
        let mut fuel = EXPRESSION_LIMIT;
        let mut is_cut = false;
        let mut address = CodeAddress::Instruction(pc);
        // Whether the last frame was left by rules; else only a guess has led to the next.
        let mut is_ruled = true;
        loop {
            let known = self.cache.row(code, address.lookup(), arch);
            if matches!(known, Known::Unmapped) && frames.len() > first {
                return if is_ruled { End::Broken } else { End::Unruled };
            }
            if frames.len() - first >= limit {
                return End::Limit;
            }
            let mut frame = Frame {
                is_interrupted: matches!(address, CodeAddress::Instruction(_)),
                registers: &mut registers,
                stack,
                fuel: &mut fuel,
                is_cut: &mut is_cut,
            };
            let (caller, is_signal_frame) = match known {
                Known::Row(row) => {
                    is_ruled = true;
                    (frame.leave(row), row.is_signal_frame)
                }
                Known::Unmapped => (Err(Stop::Missing), false),
                Known::Foreign => {
                    is_ruled = false;
                    (Err(Stop::Missing), false)
                }
                Known::Entry => (Err(Stop::Outermost), false),
                Known::Unruled => {
                    is_ruled = false;
                    (frame.leave_by_frame_pointer(), false)
                }
            };
            // What a handler returns to was put there by the kernel; nothing there has called.
            frames.push(if is_signal_frame {
                CodeAddress::Instruction(pc)
            } else {
                address
            });
            pc = match caller {
                Ok(0) | Err(Stop::Missing) if !is_ruled => return End::Unruled,
                Ok(0) | Err(Stop::Outermost) => return End::Outermost,
                Ok(pc) => pc,
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

impl Frame<'_> {
    /// Makes the registers those of the caller; returns where the caller goes on.
    fn leave(&mut self, row: &UnwindRow) -> Result<u64, Stop> {
        let arch = self.registers.arch();
        let cfa = match &row.cfa {
            Cfa::Register { register, offset } => {
                let register = self.registers.get(*register).ok_or(Stop::Missing)?;
                arch.wrap(register.wrapping_add_signed(*offset))
            }
            Cfa::Expression(expression) => {
                let with = Circumstances {
                    registers: self.registers,
                    stack: self.stack,
                    first: None,
                };
                let value = expression.value(with, self.fuel);
                self.had(value).ok_or(Stop::Missing)?
            }
        };
        let return_rule = row.rule(row.return_address);
        if matches!(return_rule, Some(Rule::Undefined)) {
            return Err(Stop::Outermost);
        }
        // Without a rule the return address is still in its register, which only the innermost
        // frame may leave it in: a call overwrites it.
        let untouched = return_rule.is_none();
        if untouched && (arch.pushes_return_address() || !self.is_interrupted) {
            return Err(Stop::Missing);
        }
        // A function may have taken it off the stack into another register, as vfork does.
        let is_saved = !untouched && !matches!(return_rule, Some(Rule::Register(_)));
        // The stack of an interrupted program may be another one.
        let stack_pointer = self.registers.stack_pointer();
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
        let own = row.reads_registers.then(|| self.registers.clone());
        self.registers.set(arch.stack_pointer(), cfa);
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
            let value = self.value(rule, cfa, own.as_ref());
            match self.had(value) {
                Some(value) => self.registers.set(*register, value),
                None => self.registers.forget(*register),
            }
        }
        if is_elsewhere && self.registers.stack_pointer() < stack_pointer {
            return Err(Stop::Missing);
        }
        let caller = self.registers.get(row.return_address);
        let caller = arch.plain_return_address(caller.ok_or(Stop::Missing)?);
        self.registers.set(arch.program_counter(), caller);
        Ok(caller)
    }

    /// The value of a register of the caller; `own` are the frame's registers, where a rule needs
    /// them.
    fn value(&mut self, rule: &Rule, cfa: u64, own: Option<&Registers>) -> Result<u64, Missing> {
        let arch = self.registers.arch();
        let registers = own.unwrap_or(self.registers);
        let with = Circumstances {
            registers,
            stack: self.stack,
            first: Some(cfa),
        };
        match rule {
            Rule::Undefined => Err(Missing::Value),
            Rule::Saved(offset) => self.read(arch.wrap(cfa.wrapping_add_signed(*offset))),
            Rule::Value(offset) => Ok(arch.wrap(cfa.wrapping_add_signed(*offset))),
            Rule::Register(other) => registers.get(*other).ok_or(Missing::Value),
            Rule::SavedAt(expression) => {
                let address = expression.value(with, self.fuel)?;
                self.read(address)
            }
            Rule::ValueOf(expression) => expression.value(with, self.fuel),
        }
    }

    /// Goes by the frame pointer, which code without rules may keep: it leads to where the caller's
    /// was saved, next to the return address. A value that is outside of the copy, or leads inwards,
    /// is rejected.
    fn leave_by_frame_pointer(&mut self) -> Result<u64, Stop> {
        use super::Arch::{Riscv32, Riscv64};
        let arch = self.registers.arch();
        let word = u64::from(arch.word());
        let pointer = self.registers.get(arch.frame_pointer());
        let sp = self.registers.stack_pointer();
        let (Some(pointer), Some(sp)) = (pointer, sp) else {
            return Err(Stop::Missing);
        };
        // RISC-V's points behind the two words, others' to the first of them.
        let (saved, caller) = match arch {
            Riscv64 | Riscv32 => (pointer.checked_sub(2 * word), pointer.checked_sub(word)),
            _ => (Some(pointer), pointer.checked_add(word)),
        };
        let (Some(saved), Some(caller)) = (saved, caller) else {
            return Err(Stop::Missing);
        };
        if saved < sp || saved % word != 0 {
            return Err(Stop::Missing);
        }
        let outer = self.stack.read(saved, arch.word()).ok_or(Stop::Missing)?;
        let caller = self.stack.read(caller, arch.word()).ok_or(Stop::Missing)?;
        let caller = arch.plain_return_address(caller);
        self.registers.set(arch.frame_pointer(), outer);
        let cfa = arch.wrap(saved.wrapping_add(2 * word));
        self.registers.set(arch.stack_pointer(), cfa);
        self.registers.set(arch.program_counter(), caller);
        Ok(caller)
    }

    /// A word of the stack.
    fn read(&self, address: u64) -> Result<u64, Missing> {
        let word = self.stack.read(address, self.registers.arch().word());
        word.ok_or(if self.stack.is_cut_before(address) {
            Missing::Memory
        } else {
            Missing::Value
        })
    }

    /// A value, if it was found; that it lies behind what was copied is noted.
    fn had(&mut self, value: Result<u64, Missing>) -> Option<u64> {
        *self.is_cut |= value == Err(Missing::Memory);
        value.ok()
    }
}
