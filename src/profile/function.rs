//! Functions and the modules they live in.

use super::Line;
use crate::base::{BROKEN, KERNEL, Language, TRUNCATED, define_id};

define_id! {
    /// A row of [`Profile::modules`](super::Profile::modules).
    pub ModuleId
}

define_id! {
    /// A row of [`Profile::functions`](super::Profile::functions).
    pub FunctionId
}

/// The home of functions: an executable, a library, the kernel, generated code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// The short name: the last part of the path, or a name in brackets.
    pub name: String,
    /// The full path, or the name again where there is no file.
    pub path: String,
}

impl Module {
    /// Whether it is the kernel itself.
    pub fn is_kernel(&self) -> bool {
        self.name == KERNEL
    }
}

/// The name of a module as it stands behind that of a function, ` [libc.so.6]`; empty for none. The
/// names of modules without a file have brackets of their own: `[kernel]`.
pub fn in_brackets(module: &str) -> String {
    match module {
        "" => String::new(),
        _ if module.starts_with('[') => format!(" {module}"),
        _ => format!(" [{module}]"),
    }
}

/// How much is known about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FunctionKind {
    /// It has a name from symbols or debug information.
    Named,
    /// Code without a name; its address distinguishes it.
    Unknown,
    /// Not code but a mark in a stack: `[truncated]`, `[no address]`.
    Mark,
    /// Not a function but a row of another kind: see [`RowKind`](super::RowKind).
    Row,
}

/// A function: an identity (module and start), for which the name is only a label. Two local
/// functions of one name are two rows; one function with several symbols is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name for people, demangled, with parameters and template arguments.
    pub name: String,
    /// The name in the symbol table, where it differs.
    pub linkage_name: Option<Box<str>>,
    /// The source position of its declaration, if the debug information has one. Functions that
    /// share a name are distinguished by it.
    pub declared_at: Option<Box<Line>>,
    /// Where it lives.
    pub module: ModuleId,
    /// The stated address of its first instruction, where it has one.
    pub address: Option<u64>,
    /// How much is known about it.
    pub kind: FunctionKind,
    /// What its name is written in.
    pub language: Language,
}

impl Function {
    /// A function of this name, of which nothing else is known.
    pub fn named(name: impl Into<String>, module: ModuleId) -> Function {
        Function {
            name: name.into(),
            linkage_name: None,
            declared_at: None,
            module,
            address: None,
            kind: FunctionKind::Named,
            language: Language::Unknown,
        }
    }

    /// Whether it is the mark of a cut stack, [`TRUNCATED`] or [`BROKEN`], which stands for the
    /// unknown outer callers.
    pub fn is_cut_mark(&self) -> bool {
        self.kind == FunctionKind::Mark && [TRUNCATED, BROKEN].contains(&&*self.name)
    }
}
