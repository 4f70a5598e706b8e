//! Machine code as text.

use std::time::SystemTime;

use crate::base::{Interner, NameId};

/// The machine code of a function as text, with the source lines that it was made from.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The path of the file that has the code.
    pub file: String,
    /// How the code in that file relates to the code that ran.
    pub origin: Origin,
    /// When that file was last written.
    pub modified: Option<SystemTime>,
    /// The instructions, in order of address.
    pub instructions: Vec<Instruction>,
    /// The source positions of instructions, each once.
    pub positions: Vec<Position>,
    /// The lines of the function itself that have code, without those of inlined functions: file
    /// and line; sorted, each once.
    pub lines: Vec<(NameId, u32)>,
    /// The texts of source files that the file's debug information has, by their names.
    pub embedded: Vec<(NameId, Box<str>)>,
    /// The names of files and functions.
    pub names: Interner,
    /// Whether the function has more code than is listed: it is too large.
    pub is_cut: bool,
}

/// How listed code relates to the code that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The file was mapped.
    #[default]
    Mapped,
    /// The memory of the running kernel; addresses are those of now.
    KernelMemory,
    /// The kernel as it was built; addresses are those that the running kernel has moved it to.
    KernelFile,
    /// Code that a process generated and wrote to a jitdump file; addresses are offsets in the
    /// file.
    JitDump {
        /// How many pieces of code of this name are listed: it was compiled as often.
        pieces: usize,
    },
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its stated address.
    pub address: u64,
    /// Its length in bytes; 1 for a byte that begins no instruction.
    pub length: u8,
    /// The instruction.
    pub text: Box<str>,
    /// The source position, as a place in [`Listing::positions`].
    pub position: Option<u32>,
    /// The instruction of the listing that it jumps to, as its address.
    pub jump: Option<u64>,
    /// What it calls, or jumps to outside of the listing.
    pub callee: Option<Callee>,
    /// Whether it calls, or leaves the function.
    pub leaves: bool,
    /// How often it did, where that was counted.
    pub calls: Option<MadeCalls>,
}

/// A number of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeCalls {
    /// The number.
    pub calls: u64,
    /// Whether there may have been more.
    pub is_least: bool,
}

/// Where a call leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    /// The function's name for people.
    pub function: NameId,
    /// How far behind its start.
    pub offset: u64,
}

/// A source position of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The path of the file as the compiler knew it.
    pub file: NameId,
    /// The line, from 1.
    pub line: u32,
    /// The function whose line it is, where it is inlined.
    pub inlined: Option<NameId>,
}

impl Listing {
    /// Returns the place of the instruction that has this byte.
    pub fn instruction_at(&self, address: u64) -> Option<usize> {
        let after = self
            .instructions
            .partition_point(|instruction| instruction.address <= address);
        let place = after.checked_sub(1)?;
        let instruction = &self.instructions[place];
        let distance = address - instruction.address;
        (distance < u64::from(instruction.length)).then_some(place)
    }

    /// Returns the source position of an instruction.
    pub fn position_of(&self, instruction: &Instruction) -> Option<&Position> {
        self.positions.get(instruction.position? as usize)
    }
}
