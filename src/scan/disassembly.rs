//! Instructions of x86 as text.
//!
//! The text is that of `objdump -d`, with one space or more between mnemonic and operands; what
//! objdump adds in angle brackets and behind a `#` is left out. Where assemblers know several names
//! of an instruction, or a prefix does nothing, the two can differ.

use iced_x86::{
    Code, Decoder, DecoderOptions, Formatter, GasFormatter, Instruction, IntelFormatter,
    MemorySizeOptions, Mnemonic, OpKind, Register,
};

use crate::base::Svma;
use crate::binary::Machine;

/// How instructions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// AT&T: `mov %rsp,%rbp`.
    #[default]
    Att,
    /// Intel: `mov rbp,rsp`.
    Intel,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disassembled {
    pub at: Svma,
    /// Its length in bytes; 1 for a byte that begins no instruction.
    pub length: u8,
    pub text: String,
    /// Where a direct jump or call leads.
    pub branch: Option<Svma>,
}

// The column of the first operand, as objdump has it.
const OPERANDS: u32 = 7;

/// Writes instructions of one machine in one syntax.
pub struct Disassembler {
    bits: u32,
    formatter: Box<dyn Formatter>,
}

impl Disassembler {
    /// For a machine; `None` for those whose instructions cannot be written here.
    pub fn new(machine: Machine, syntax: Syntax) -> Option<Disassembler> {
        let bits = match machine {
            Machine::X86_64 => 64,
            Machine::X86 => 32,
            _ => return None,
        };
        let mut formatter: Box<dyn Formatter> = match syntax {
            Syntax::Att => Box::new(GasFormatter::new()),
            Syntax::Intel => Box::new(IntelFormatter::new()),
        };
        let options = formatter.options_mut();
        options.set_uppercase_hex(false);
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_small_hex_numbers_in_decimal(false);
        options.set_uppercase_keywords(true);
        options.set_memory_size_options(MemorySizeOptions::Always);
        options.set_show_zero_displacements(true);
        options.set_rip_relative_addresses(true);
        options.set_branch_leading_zeros(false);
        options.set_show_branch_size(false);
        options.set_space_after_operand_separator(false);
        options.set_first_operand_char_index(OPERANDS);
        Some(Disassembler { bits, formatter })
    }

    /// Puts the instructions of this code, whose first byte is at `start`, behind `out`, up to this
    /// number. Returns whether all were put there.
    pub fn read(
        &mut self,
        bytes: &[u8],
        start: Svma,
        limit: usize,
        out: &mut Vec<Disassembled>,
    ) -> bool {
        let mut decoder = Decoder::with_ip(self.bits, bytes, start.0, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut index = 0;
        while index < bytes.len() {
            if out.len() >= limit {
                return false;
            }
            let at = start.0.wrapping_add(index as u64);
            decoder.set_ip(at);
            if decoder.set_position(index).is_err() {
                return false;
            }
            decoder.decode_out(&mut instruction);
            let is_valid = instruction.code() != Code::INVALID;
            // Behind a byte that begins no instruction the next one may, so decoding goes on
            // there, as objdump does.
            let length = if is_valid {
                instruction.len().max(1)
            } else {
                1
            };
            let mut text = String::new();
            let mut branch = None;
            if is_valid {
                branch = target(&instruction).map(Svma);
                self.write(&instruction, branch, &mut text);
            } else {
                text.push_str("(bad)");
            }
            out.push(Disassembled {
                at: Svma(at),
                length: length as u8,
                text,
                branch,
            });
            index += length;
        }
        true
    }

    fn write(&mut self, instruction: &Instruction, branch: Option<Svma>, text: &mut String) {
        let Some(target) = branch else {
            // A scale belongs to an index; the formatter shows it without one, too.
            let has_index = instruction.memory_index() != Register::None;
            let options = self.formatter.options_mut();
            options.set_always_show_scale(has_index);
            options.set_always_show_segment_register(instruction.is_string_instruction());
            // Both operands of a multiplication are written, also if they are the same.
            options.set_use_pseudo_ops(instruction.mnemonic() != Mnemonic::Imul);
            self.formatter.format(instruction, text);
            without_size(text);
            without_one(instruction, text);
            let is_wide = instruction.code() == Code::Mov_r64_imm64;
            if is_wide && let Some(operands) = text.strip_prefix("mov    ") {
                *text = format!("movabs {operands}");
            }
            return;
        };
        // The target is an address, which stands as in a list of symbols.
        self.formatter.format_mnemonic(instruction, text);
        without_size(text);
        let width = (OPERANDS as usize - 1).max(text.len());
        let mnemonic = std::mem::take(text);
        *text = format!("{mnemonic:<width$} {:x}", target.0);
    }
}

// Mnemonics with a size that can be no other in 64-bit code: assemblers leave it out by now.
const SIZED: [&str; 6] = ["callq", "jmpq", "retq", "leaveq", "pushq", "popq"];

fn without_size(text: &mut String) {
    let place = |name: &&str| {
        let at = text.find(*name)?;
        let is_word = at == 0 || text[..at].ends_with(' ');
        let rest = &text[at + name.len()..];
        let ends = rest.is_empty() || rest.starts_with(' ');
        (is_word && ends).then_some(at + name.len() - 1)
    };
    if let Some(at) = SIZED.iter().find_map(place) {
        text.remove(at);
        if at + 1 < OPERANDS as usize && text[at..].starts_with(' ') {
            text.insert(at, ' ');
        }
    }
}

// Takes the operand away that shifts by one do not encode.
fn without_one(instruction: &Instruction, text: &mut String) {
    let is_shift = matches!(
        instruction.mnemonic(),
        Mnemonic::Rcl
            | Mnemonic::Rcr
            | Mnemonic::Rol
            | Mnemonic::Ror
            | Mnemonic::Sal
            | Mnemonic::Sar
            | Mnemonic::Shl
            | Mnemonic::Shr
    );
    // The names of these forms end like this: `Shr_rm64_1`.
    if is_shift && format!("{:?}", instruction.code()).ends_with("_1") {
        *text = text.replace("$0x1,", "").replace(",0x1", ",1");
    }
}

fn target(instruction: &Instruction) -> Option<u64> {
    let is_near = matches!(
        instruction.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    is_near.then(|| instruction.near_branch_target())
}
