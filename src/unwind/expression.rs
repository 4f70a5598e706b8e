//! Expressions of DWARF, as rules for unwinding use them: they compute an address or a value from
//! registers and from the stack.

use std::fmt;

use gimli::{
    EndianSlice, Evaluation, EvaluationResult, EvaluationStorage, LittleEndian, Location,
    Operation, Piece, Value,
};

use super::arch::Arch;
use super::registers::Registers;
use super::stack::StackCopy;

// The longest expression that is kept, in bytes. Those of compilers have ten or so.
const LENGTH_LIMIT: usize = 1 << 10;
// The most values on the stack of an expression.
const DEPTH: usize = 32;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

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

    /// The value. Each operation takes one of `fuel`, or one for each of its bytes.
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

/// Memory for an evaluation, of fixed size.
struct Storage;

impl<'a> EvaluationStorage<Slice<'a>> for Storage {
    type Stack = [Value; DEPTH];
    type ExpressionStack = [(Slice<'a>, Slice<'a>); 0];
    type Result = [Piece<Slice<'a>>; 1];
}

fn evaluate(bytes: &[u8], with: Circumstances<'_>, fuel: &mut u32) -> Result<u64, Missing> {
    // Rules have no loops: no operation is needed twice.
    let most = bytes.len() as u32;
    *fuel = fuel.checked_sub(most).ok_or(Missing::Value)?;
    let arch = with.registers.arch();
    let slice = EndianSlice::new(bytes, LittleEndian);
    let mut evaluation = Evaluation::<_, Storage>::new_in(slice, encoding(arch));
    evaluation.set_max_iterations(most);
    if let Some(first) = with.first {
        evaluation.set_initial_value(first);
    }
    let mut result = evaluation.evaluate();
    loop {
        result = match result.map_err(|_| Missing::Value)? {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory {
                address,
                size: size @ (1 | 2 | 4 | 8),
                space: None,
                ..
            } => {
                let value = read(with.stack, address, size)?;
                evaluation.resume_with_memory(Value::Generic(value))
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let slot = arch.of_dwarf(register.0).ok_or(Missing::Value)?;
                let register = with.registers.get(slot).ok_or(Missing::Value)?;
                evaluation.resume_with_register(Value::Generic(register))
            }
            // Objects, frames of functions and types are not in rules.
            _ => return Err(Missing::Value),
        };
    }
    match *evaluation.as_result() {
        [
            Piece {
                location: Location::Address { address },
                ..
            },
        ] => Ok(address),
        _ => Err(Missing::Value),
    }
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
                thread: 1,
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
