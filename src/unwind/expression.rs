//! Expressions of DWARF, as rules for unwinding use them: they compute an address or a value from
//! registers and from the stack.

use std::fmt;

use gimli::{EndianSlice, LittleEndian, Operation};

use super::arch::Arch;
use super::registers::Registers;
use super::stack::StackCopy;

// The longest expression that is kept, in bytes. Those of compilers have ten or so.
const LENGTH_LIMIT: usize = 1 << 10;
// The most values on the stack of an expression.
const DEPTH: usize = 32;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// An expression.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Expression(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    /// `DW_OP_bregN offset`, and `DW_OP_deref` where it is followed by that: nearly all.
    Register {
        slot: u8,
        offset: i64,
        deref: bool,
    },
    Bytes(Box<[u8]>),
}

/// What an expression is evaluated with.
#[derive(Clone, Copy)]
pub(super) struct Circumstances<'a> {
    pub(super) registers: &'a Registers,
    pub(super) stack: StackCopy<'a>,
    /// What stands on the expression's stack at its beginning: the CFA, except where it is the
    /// CFA that is computed.
    pub(super) first: Option<u64>,
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Memory behind the copied part of the stack.
    Memory,
    /// Anything else: other memory, an unknown register, an invalid expression.
    Value,
}

impl Expression {
    /// Takes an expression over; `None` when it is too long.
    pub(super) fn new(bytes: &[u8], arch: Arch) -> Option<Expression> {
        if bytes.len() > LENGTH_LIMIT {
            return None;
        }
        let form = short(bytes, arch).unwrap_or_else(|| Form::Bytes(bytes.into()));
        Some(Expression(form))
    }

    /// The register that the expression begins with.
    pub(super) fn base(&self) -> Option<u8> {
        match &self.0 {
            Form::Register { slot, .. } => Some(*slot),
            Form::Bytes(_) => None,
        }
    }

    /// The value. Each operation takes one of `fuel`.
    pub(super) fn value(&self, with: Circumstances<'_>, fuel: &mut u32) -> Result<u64, Missing> {
        let arch = with.registers.arch();
        match &self.0 {
            &Form::Register {
                slot,
                offset,
                deref,
            } => {
                *fuel = fuel.checked_sub(1).ok_or(Missing::Value)?;
                let register = with.registers.get(slot).ok_or(Missing::Value)?;
                let address = arch.wrap(register.wrapping_add_signed(offset));
                if deref {
                    read(with.stack, address, arch.word())
                } else {
                    Ok(address)
                }
            }
            Form::Bytes(bytes) => evaluate(bytes, with, fuel),
        }
    }
}

fn short(bytes: &[u8], arch: Arch) -> Option<Form> {
    let mut rest = EndianSlice::new(bytes, LittleEndian);
    let first = Operation::parse(&mut rest, encoding(arch)).ok()?;
    let Operation::RegisterOffset {
        register, offset, ..
    } = first
    else {
        return None;
    };
    let slot = arch.of_dwarf(register.0)?;
    let deref = !rest.is_empty();
    if deref {
        let second = Operation::parse(&mut rest, encoding(arch)).ok()?;
        let is_word = matches!(
            second,
            Operation::Deref { size, space: false, .. } if size == arch.word()
        );
        if !is_word || !rest.is_empty() {
            return None;
        }
    }
    Some(Form::Register {
        slot,
        offset,
        deref,
    })
}

fn encoding(arch: Arch) -> gimli::Encoding {
    gimli::Encoding {
        address_size: arch.word(),
        format: gimli::Format::Dwarf32,
        version: 5,
    }
}

fn read(stack: StackCopy<'_>, address: u64, size: u8) -> Result<u64, Missing> {
    stack.read(address, size).ok_or({
        if stack.is_cut_before(address) {
            Missing::Memory
        } else {
            Missing::Value
        }
    })
}

/// The values that an expression works on.
struct Values {
    values: [u64; DEPTH],
    count: usize,
}

impl Values {
    fn push(&mut self, value: u64) -> Result<(), Missing> {
        let place = self.values.get_mut(self.count).ok_or(Missing::Value)?;
        *place = value;
        self.count += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, Missing> {
        self.count = self.count.checked_sub(1).ok_or(Missing::Value)?;
        self.values.get(self.count).copied().ok_or(Missing::Value)
    }

    /// The value `index` places below the top.
    fn pick(&self, index: u8) -> Result<u64, Missing> {
        let below = usize::from(index).saturating_add(1);
        let at = self.count.checked_sub(below).ok_or(Missing::Value)?;
        self.values.get(at).copied().ok_or(Missing::Value)
    }
}

fn evaluate(bytes: &[u8], with: Circumstances<'_>, fuel: &mut u32) -> Result<u64, Missing> {
    let arch = with.registers.arch();
    let all: Slice<'_> = EndianSlice::new(bytes, LittleEndian);
    let mut rest = all;
    let mut values = Values {
        values: [0; DEPTH],
        count: 0,
    };
    if let Some(first) = with.first {
        values.push(first)?;
    }
    while !rest.is_empty() {
        *fuel = fuel.checked_sub(1).ok_or(Missing::Value)?;
        let operation = Operation::parse(&mut rest, encoding(arch)).map_err(|_| Missing::Value)?;
        match operation {
            Operation::Bra { target } => {
                if values.pop()? != 0 {
                    rest = jump(bytes, rest, target)?;
                }
            }
            Operation::Skip { target } => rest = jump(bytes, rest, target)?,
            operation => apply(operation, with, &mut values)?,
        }
    }
    values.pop()
}

/// The rest of an expression behind a jump by `target` bytes from the start of `rest`.
fn jump<'a>(bytes: &'a [u8], rest: Slice<'_>, target: i16) -> Result<Slice<'a>, Missing> {
    let here = bytes.len().saturating_sub(rest.len());
    let there = here.checked_add_signed(isize::from(target));
    let rest = there.and_then(|there| bytes.get(there..));
    Ok(EndianSlice::new(rest.ok_or(Missing::Value)?, LittleEndian))
}

fn apply(
    operation: Operation<Slice<'_>>,
    with: Circumstances<'_>,
    values: &mut Values,
) -> Result<(), Missing> {
    let arch = with.registers.arch();
    let width = u32::from(arch.word()) * 8;
    // Numbers are compared, divided and shifted as signed ones of the architecture's width.
    let signed = |value: u64| match width {
        64 => value.cast_signed(),
        _ => i64::from((value as u32).cast_signed()),
    };
    let value = match operation {
        Operation::Deref { size, space, .. } => {
            let address = values.pop()?;
            if space || !matches!(size, 1 | 2 | 4 | 8) {
                return Err(Missing::Value);
            }
            read(with.stack, address, size)?
        }
        Operation::Drop => {
            values.pop()?;
            return Ok(());
        }
        Operation::Pick { index } => values.pick(index)?,
        Operation::Swap => {
            let (top, second) = (values.pop()?, values.pop()?);
            values.push(top)?;
            second
        }
        Operation::Rot => {
            let (top, second, third) = (values.pop()?, values.pop()?, values.pop()?);
            values.push(top)?;
            values.push(third)?;
            second
        }
        Operation::Abs => signed(values.pop()?).unsigned_abs(),
        Operation::Neg => values.pop()?.wrapping_neg(),
        Operation::Not => !values.pop()?,
        Operation::PlusConstant { value } => values.pop()?.wrapping_add(value),
        Operation::UnsignedConstant { value } => value,
        Operation::SignedConstant { value } => value.cast_unsigned(),
        Operation::RegisterOffset {
            register, offset, ..
        } => {
            let slot = arch.of_dwarf(register.0).ok_or(Missing::Value)?;
            let register = with.registers.get(slot).ok_or(Missing::Value)?;
            register.wrapping_add_signed(offset)
        }
        Operation::Nop => return Ok(()),
        operation => {
            let (right, left) = (values.pop()?, values.pop()?);
            match operation {
                Operation::And => left & right,
                Operation::Or => left | right,
                Operation::Xor => left ^ right,
                Operation::Plus => left.wrapping_add(right),
                Operation::Minus => left.wrapping_sub(right),
                Operation::Mul => left.wrapping_mul(right),
                Operation::Div => {
                    let quotient = signed(left).checked_div(signed(right));
                    quotient.ok_or(Missing::Value)?.cast_unsigned()
                }
                Operation::Mod => left.checked_rem(right).ok_or(Missing::Value)?,
                Operation::Shl if right < u64::from(width) => left << right,
                Operation::Shr if right < u64::from(width) => left >> right,
                Operation::Shl | Operation::Shr => 0,
                Operation::Shra => {
                    let by = right.min(u64::from(width - 1));
                    (signed(left) >> by).cast_unsigned()
                }
                Operation::Eq => u64::from(signed(left) == signed(right)),
                Operation::Ne => u64::from(signed(left) != signed(right)),
                Operation::Ge => u64::from(signed(left) >= signed(right)),
                Operation::Gt => u64::from(signed(left) > signed(right)),
                Operation::Le => u64::from(signed(left) <= signed(right)),
                Operation::Lt => u64::from(signed(left) < signed(right)),
                // Operations on objects, frames of functions and types: not in rules.
                _ => return Err(Missing::Value),
            }
        }
    };
    values.push(arch.wrap(value))
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Register {
                slot,
                offset,
                deref,
            } => {
                let deref = if *deref { " deref" } else { "" };
                write!(f, "breg{slot} {offset}{deref}")
            }
            Form::Bytes(bytes) => write!(f, "{bytes:02x?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::constants as op;

    fn value(bytes: &[u8], first: Option<u64>) -> Result<u64, Missing> {
        let memory: Vec<u8> = (0..64).collect();
        let registers = Registers::unknown(Arch::X86_64)
            .with(7, 0x1000)
            .at(0x40_000b);
        let with = Circumstances {
            registers: &registers,
            stack: StackCopy {
                start: 0x1000,
                bytes: &memory,
                is_full: true,
            },
            first,
        };
        let expression = Expression::new(bytes, Arch::X86_64).expect("a short one");
        expression.value(with, &mut 1000)
    }

    #[test]
    fn a_shift_by_more_than_all_bits_keeps_the_sign() {
        // DW_OP_const1u 1; DW_OP_const1u 63; DW_OP_shl; DW_OP_const1u 100; DW_OP_shra
        let (put, shl, shra) = (op::DW_OP_const1u.0, op::DW_OP_shl.0, op::DW_OP_shra.0);
        let bytes = [put, 1, put, 63, shl, put, 100, shra];
        assert_eq!(value(&bytes, None), Ok(u64::MAX));
    }

    #[test]
    fn a_saved_stack_pointer_is_read_from_memory() {
        // As the frame of a signal handler's caller has it: DW_OP_breg7 8; DW_OP_deref.
        let bytes = [op::DW_OP_breg7.0, 8, op::DW_OP_deref.0];
        assert_eq!(value(&bytes, None), Ok(0x0f0e_0d0c_0b0a_0908));
        assert_eq!(value(&bytes[..2], None), Ok(0x1008));
        let beyond = [op::DW_OP_breg7.0, 0x80, 0x01, op::DW_OP_deref.0];
        assert_eq!(value(&beyond, None), Err(Missing::Memory));
    }

    #[test]
    fn the_rule_of_a_stub_depends_on_the_position_in_it() {
        // What linkers write for .plt: CFA = rsp + 8 + ((rip & 15) >= 11) << 3.
        let bytes = [
            op::DW_OP_breg7.0,
            8,
            op::DW_OP_breg16.0,
            0,
            op::DW_OP_lit15.0,
            op::DW_OP_and.0,
            op::DW_OP_lit11.0,
            op::DW_OP_ge.0,
            op::DW_OP_lit3.0,
            op::DW_OP_shl.0,
            op::DW_OP_plus.0,
        ];
        assert_eq!(value(&bytes, None), Ok(0x1010));
    }

    #[test]
    fn loops_and_nonsense_terminate() {
        // DW_OP_skip -3: for ever.
        assert_eq!(
            value(&[op::DW_OP_skip.0, 0xfd, 0xff], Some(1)),
            Err(Missing::Value)
        );
        assert_eq!(value(&[op::DW_OP_drop.0], None), Err(Missing::Value));
        assert_eq!(value(&[op::DW_OP_lit0.0; 40], None), Err(Missing::Value));
        assert_eq!(value(&[], None), Err(Missing::Value));
        let division = [op::DW_OP_lit1.0, op::DW_OP_lit0.0, op::DW_OP_div.0];
        assert_eq!(value(&division, None), Err(Missing::Value));
        assert_eq!(value(&[op::DW_OP_lit5.0], Some(7)), Ok(5));
        assert!(Expression::new(&[0; 2000], Arch::X86_64).is_none());
    }
}
