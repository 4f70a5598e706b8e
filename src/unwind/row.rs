//! One row of a function's table: where the caller's registers are, from one instruction on.

use gimli::{
    CfaRule, EndianSlice, LittleEndian, RegisterRule, UnwindSection, UnwindTableRow, constants,
};

use super::arch::Arch;
use super::expression::Expression;
use crate::binary::GoStack;

/// How the canonical frame address is found: the stack pointer as it was before the call.
///
/// ```text
///   rsp ─▶ [local][rbx][rbp][ra] ◀─ CFA    CFA = rsp + 32; ra = [CFA − 8]; rbp = [CFA − 16]
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cfa {
    /// `CFA = register + offset`
    Register {
        /// Its number in DWARF.
        register: u8,
        /// What to add, in bytes.
        offset: i64,
    },
    /// `CFA = expression`
    Expression(Expression),
}

/// How a register of the caller is found. One without a rule has not changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// It is lost; the return address of a function that nothing called.
    Undefined,
    /// `r = [CFA + offset]`
    Saved(i64),
    /// `r = [CFA + offset]` if `r = CFA + offset`, else it has not changed: of the frame pointer
    /// where the function's own is known to be there once it is set.
    SavedIfPointed(i64),
    /// `r = [CFA + offset]`; none if `rax = 0`, as in the first code of a new thread, which nothing
    /// called: that is what the system call that made it returns there.
    SavedInParent(i64),
    /// `r = CFA + offset`
    Value(i64),
    /// `r = other`
    Register(u8),
    /// `r = [expression]`
    SavedAt(Expression),
    /// `r = expression`
    ValueOf(Expression),
}

/// A row, reduced to the registers that stacks need. Registers have DWARF's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnwindRow {
    /// How the CFA is found.
    pub cfa: Cfa,
    /// The register whose rule finds the return address.
    pub return_address: u8,
    /// Whether this is the code that a signal handler returns to: its caller was interrupted and
    /// did not call.
    pub is_signal_frame: bool,
    /// The rules of registers that have changed, by register.
    pub rules: Box<[(u8, Rule)]>,
    pub(super) reads_registers: bool,
}

impl UnwindRow {
    /// Takes over what gimli has found. `None` when the row leans on what is not understood here.
    pub(super) fn new<'a, S: UnwindSection<EndianSlice<'a, LittleEndian>>>(
        row: &UnwindTableRow<usize>,
        (return_address, is_signal_frame): (gimli::Register, bool),
        section: &S,
        arch: Arch,
    ) -> Option<UnwindRow> {
        let expression = |expression: &gimli::UnwindExpression<usize>| {
            let bytes = expression.get(section).ok()?.0;
            Expression::new(bytes.slice(), arch)
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Register {
                register: arch.of_dwarf(register.0)?,
                offset: *offset,
            },
            CfaRule::Expression(bytes) => Cfa::Expression(expression(bytes)?),
        };
        let mut rules = Vec::new();
        for (register, rule) in row.registers() {
            let Some(register) = arch.of_dwarf(register.0) else {
                continue;
            };
            let rule = match rule {
                RegisterRule::SameValue => continue,
                RegisterRule::Undefined => Rule::Undefined,
                RegisterRule::Offset(offset) => Rule::Saved(*offset),
                RegisterRule::ValOffset(offset) => Rule::Value(*offset),
                // A value that is in a register of no use here is lost.
                RegisterRule::Register(other) => {
                    let other = arch.of_dwarf(other.0);
                    other.map_or(Rule::Undefined, Rule::Register)
                }
                RegisterRule::Expression(bytes) => Rule::SavedAt(expression(bytes)?),
                RegisterRule::ValExpression(bytes) => Rule::ValueOf(expression(bytes)?),
                RegisterRule::Architectural | RegisterRule::Constant(_) => continue,
            };
            rules.push((register, rule));
        }
        rules.sort_unstable_by_key(|(register, _)| *register);
        let reads_registers = rules.iter().any(|(_, rule)| {
            matches!(
                rule,
                Rule::Register(_) | Rule::SavedAt(_) | Rule::ValueOf(_)
            )
        });
        Some(UnwindRow {
            cfa,
            return_address: arch.of_dwarf(return_address.0)?,
            is_signal_frame,
            rules: rules.into(),
            reads_registers,
        })
    }

    /// The row of a stub of a linkage table, for which not all linkers write rules.
    ///
    /// ```text
    ///   x86, lazy binding   0: jmp *slot    CFA = rsp + 8     ra = [CFA − 8]
    ///                       6: push number  CFA = rsp + 8
    ///                      11: jmp first    CFA = rsp + 16    behind the number
    ///   AArch64, RISC-V                     CFA = sp          ra = x30, x1
    /// ```
    ///
    /// Other stubs of x86 have no instruction as far in as byte 11.
    pub(super) fn of_stub(arch: Arch) -> Option<UnwindRow> {
        let saved = -i64::from(arch.word());
        let x86 = |sp: gimli::DwOp, pc: gimli::DwOp, shift: gimli::DwOp, return_address: u8| {
            // CFA = sp + word + (pc & 15 >= 11) << log2(word)
            let bytes = [
                sp.0,
                arch.word(),
                pc.0,
                0,
                constants::DW_OP_lit15.0,
                constants::DW_OP_and.0,
                constants::DW_OP_lit11.0,
                constants::DW_OP_ge.0,
                shift.0,
                constants::DW_OP_shl.0,
                constants::DW_OP_plus.0,
            ];
            let rules = [(return_address, Rule::Saved(saved))];
            Some((
                Cfa::Expression(Expression::new(&bytes, arch)?),
                return_address,
                rules.into(),
            ))
        };
        let in_register = |return_address| {
            let register = arch.stack_pointer();
            let cfa = Cfa::Register {
                register,
                offset: 0,
            };
            Some((cfa, return_address, Box::default()))
        };
        let (cfa, return_address, rules) = match arch {
            Arch::X86_64 => x86(
                constants::DW_OP_breg7,
                constants::DW_OP_breg16,
                constants::DW_OP_lit3,
                16,
            ),
            Arch::X86 => x86(
                constants::DW_OP_breg4,
                constants::DW_OP_breg8,
                constants::DW_OP_lit2,
                8,
            ),
            Arch::Aarch64 => in_register(30),
            Arch::Riscv64 | Arch::Riscv32 => in_register(1),
        }?;
        Some(UnwindRow {
            cfa,
            return_address,
            is_signal_frame: false,
            rules,
            reads_registers: false,
        })
    }

    /// The row of code that returns from a signal handler: what was interrupted goes on with the
    /// registers that the kernel has saved above the stack pointer. musl has no rules for its own.
    ///
    /// ```text
    ///   x86-64    rsp + 40    [r8]…[r15][rdi][rsi][rbp][rbx][rdx][rax][rcx][rsp][rip]
    ///   AArch64   sp + 312    [x0]…[x30][sp][pc]
    ///
    ///   CFA = [sp + where sp is]   r = [sp + where r is]
    /// ```
    pub(super) fn of_signal_return(arch: Arch) -> Option<UnwindRow> {
        // Behind the flags, the link and the stack of `struct ucontext`.
        const X86_64: [u8; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16];
        let (first, saved): (i64, Vec<u8>) = match arch {
            Arch::X86_64 => (40, X86_64.into()),
            // Behind `siginfo` (128), all of `ucontext` up to its registers (176), and the address
            // of a fault (8).
            Arch::Aarch64 => (312, (0..=arch.program_counter()).collect()),
            Arch::X86 | Arch::Riscv64 | Arch::Riscv32 => return None,
        };
        let mut rules = Vec::new();
        let mut cfa = None;
        for (&register, place) in saved.iter().zip(0..) {
            let offset = first + 8 * place;
            // A signed number in groups of seven bits; 14 are enough.
            let mut at = vec![
                constants::DW_OP_breg0.0 + arch.stack_pointer(),
                (offset & 0x7f) as u8 | 0x80,
                (offset >> 7) as u8,
            ];
            if register == arch.stack_pointer() {
                at.push(constants::DW_OP_deref.0);
                cfa = Expression::new(&at, arch).map(Cfa::Expression);
            } else {
                rules.push((register, Rule::SavedAt(Expression::new(&at, arch)?)));
            }
        }
        rules.sort_unstable_by_key(|(register, _)| *register);
        Some(UnwindRow {
            cfa: cfa?,
            return_address: arch.program_counter(),
            is_signal_frame: true,
            rules: rules.into(),
            reads_registers: true,
        })
    }

    /// The row of an address of a Go program, by how far the stack has grown there; `None` in a
    /// function that changes to another stack.
    ///
    /// ```text
    ///   rsp ─▶ [growth bytes … rbp][ra] ◀─ CFA   CFA = rsp + growth + 8     ra = [CFA − 8]
    ///                                            rbp = [CFA − 16] if rbp = CFA − 16
    /// ```
    ///
    /// Go has no rules of DWARF for its own code, or such as leave the frame pointer out. When a
    /// function saves that, its table does not tell.
    pub(super) fn of_go(arch: Arch, stack: &GoStack) -> Option<UnwindRow> {
        let word = i64::from(arch.word());
        let growth = i64::from(stack.growth?);
        let return_address = arch.program_counter();
        let mut rules = Vec::new();
        if growth >= word && !stack.is_outermost {
            rules.push((arch.frame_pointer(), Rule::SavedIfPointed(-2 * word)));
        }
        rules.push(if stack.is_outermost {
            (return_address, Rule::Undefined)
        } else {
            (return_address, Rule::Saved(-word))
        });
        Some(UnwindRow {
            cfa: Cfa::Register {
                register: arch.stack_pointer(),
                offset: growth.saturating_add(word),
            },
            return_address,
            is_signal_frame: false,
            rules: rules.into(),
            reads_registers: false,
        })
    }

    /// The row behind a system call that may have made a thread, by the row before the call:
    /// `ra = [CFA + offset]` becomes that unless `rax = 0`. `None` if the return address is not on
    /// the stack there.
    pub(super) fn behind_system_call(mut self) -> Option<UnwindRow> {
        let mut rules = self.rules.iter_mut();
        let (_, rule) = rules.find(|(register, _)| *register == self.return_address)?;
        let Rule::Saved(at) = *rule else {
            return None;
        };
        *rule = Rule::SavedInParent(at);
        Some(self)
    }

    /// Whether the function keeps a frame to which the frame pointer points, at this address and
    /// with this CFA: the caller's frame pointer and the return address are where who follows frame
    /// pointers looks for them.
    pub(super) fn keeps_frame_at(&self, cfa: u64, frame_pointer: u64, arch: Arch) -> bool {
        let is_saved_at = |register: u8, place: i64| {
            let place = arch.wrap(frame_pointer.wrapping_add_signed(place));
            let saved = self.rule(register);
            let is_place = |at: i64| arch.wrap(cfa.wrapping_add_signed(at)) == place;
            matches!(saved, Some(Rule::Saved(at) | Rule::SavedIfPointed(at)) if is_place(*at))
        };
        let (pointer, caller) = arch.frame_record();
        is_saved_at(arch.frame_pointer(), pointer) && is_saved_at(self.return_address, caller)
    }

    /// Whether that is so wherever the frame pointer points: the CFA is found by it.
    pub(super) fn keeps_frame_at_pointer(&self, arch: Arch) -> bool {
        let frame_pointer = arch.frame_pointer();
        match &self.cfa {
            Cfa::Register { register, offset } if *register == frame_pointer => {
                self.keeps_frame_at(offset.cast_unsigned(), 0, arch)
            }
            // GCC aligns the stack of some functions so: it pushes the return address again.
            Cfa::Expression(cfa) if cfa.base() == Some(frame_pointer) => {
                let saved = self.rule(frame_pointer);
                matches!(saved, Some(Rule::SavedAt(at)) if at.base() == Some(frame_pointer))
            }
            _ => false,
        }
    }

    /// The rule of a register, if it has changed.
    pub fn rule(&self, register: u8) -> Option<&Rule> {
        let found = self.rules.iter().find(|(number, _)| *number == register);
        found.map(|(_, rule)| rule)
    }
}
