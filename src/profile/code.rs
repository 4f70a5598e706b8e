//! What the code of the modules says of calls, whether they happened or not.

use crate::base::IdVec;

use super::FunctionId;

/// How a function refers to another one in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// It calls it.
    Call,
    /// It jumps to it: the callee returns to the caller's caller.
    Tail,
    /// It calls it, or jumps to it, by name; the dynamic linker resolves the name.
    Import,
    /// It contains a copy of the callee's code.
    Inlined,
    /// It takes its address, and may call it or have it called.
    Pointer,
}

impl CallKind {
    /// All kinds, in their order.
    pub const ALL: [CallKind; 5] = [
        CallKind::Call,
        CallKind::Tail,
        CallKind::Import,
        CallKind::Inlined,
        CallKind::Pointer,
    ];

    /// Its name, as formats have it.
    pub fn name(self) -> &'static str {
        match self {
            CallKind::Call => "call",
            CallKind::Tail => "tail",
            CallKind::Import => "import",
            CallKind::Inlined => "inlined",
            CallKind::Pointer => "pointer",
        }
    }

    /// Whether going through the place gets from one function to the other: a pointer that is
    /// taken may never be used.
    pub fn is_call(self) -> bool {
        self != CallKind::Pointer
    }
}

/// Places of one kind in the code of a function that refer to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// The function that the code is in; an inlined one where the code is a copy of its.
    pub from: FunctionId,
    /// The function that it refers to.
    pub to: FunctionId,
    /// How.
    pub kind: CallKind,
    /// The number of places.
    pub sites: u64,
}

/// What the code of a function says of it alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCode {
    /// Its size in bytes; 0 where it is not known.
    pub size: u64,
    /// Whether only its name is known: no file that was looked at defines it.
    pub imported: bool,
    /// Calls in it whose callees only a run can tell.
    pub indirect_calls: u64,
    /// Jumps in it that may be tail calls, or the tables of switches.
    pub indirect_jumps: u64,
    /// Words of initialized data that hold its address: it may be called through them.
    pub pointers_in_data: u64,
}

/// What was found in the code of the modules; empty where nobody looked.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The calls, in order of caller, callee and kind, each once.
    pub calls: Vec<Call>,
    /// A row for each function; `None` for those whose code was not looked at.
    pub functions: IdVec<FunctionId, Option<FunctionCode>>,
}
