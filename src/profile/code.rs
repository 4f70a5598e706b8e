//! The calls in the code of the modules, whether they happened or not.

use crate::base::IdVec;

use super::{FunctionId, ModuleId};

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

    /// Whether executing the place leads from one function to the other. Taking a pointer does not,
    /// as it may never be used.
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

/// What is known of a single function from its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCode {
    /// Its size in bytes; 0 where it is not known.
    pub size: u64,
    /// Whether only its name is known: no file that was looked at defines it.
    pub imported: bool,
    /// Calls in it whose callees are known only at run time.
    pub indirect_calls: u64,
    /// Jumps in it that may be tail calls, or the tables of switches.
    pub indirect_jumps: u64,
    /// Those of these jumps that certainly go through the table of a switch.
    pub switch_jumps: u64,
    /// Words of initialized data that hold its address: it may be called through them. They are
    /// counted only where all code is read: see [`Code::is_whole`].
    pub pointers_in_data: u64,
    /// Whether its address may be known where no pointer to it was found: other files can look it
    /// up by name, or the file computes addresses from distances.
    pub can_be_found: bool,
    /// Whether it picks the function that is called under its name (a GNU indirect function): a
    /// call of it is one of a function whose address it takes.
    pub picks: bool,
    /// Whether a program starts in it.
    pub is_entry: bool,
}

impl FunctionCode {
    /// Whether it calls, or jumps to, a function that is known only at run time.
    pub fn calls_indirectly(&self) -> bool {
        self.indirect_calls > 0 || self.indirect_jumps > self.switch_jumps
    }

    pub(super) fn with_copy(self, other: FunctionCode) -> FunctionCode {
        FunctionCode {
            size: self.size.saturating_add(other.size),
            imported: self.imported && other.imported,
            indirect_calls: self.indirect_calls.saturating_add(other.indirect_calls),
            indirect_jumps: self.indirect_jumps.saturating_add(other.indirect_jumps),
            switch_jumps: self.switch_jumps.saturating_add(other.switch_jumps),
            pointers_in_data: self.pointers_in_data.saturating_add(other.pointers_in_data),
            can_be_found: self.can_be_found || other.can_be_found,
            picks: self.picks || other.picks,
            is_entry: self.is_entry || other.is_entry,
        }
    }
}

/// A function whose code was followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowedFunction {
    /// The function, if samples show it; several of these may be copies of one.
    pub function: Option<FunctionId>,
    /// Whether it makes calls whose callees are known only at run time.
    pub calls_unknown: bool,
    /// Whether some of its code was not read.
    pub is_unread: bool,
}

/// The code that the functions of samples lead to, as far as it was followed: far enough to find
/// out which of them lead to calls whose callees are known only at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// The functions.
    pub functions: Vec<FollowedFunction>,
    /// Which calls which in its code: caller and callee, by their places among the functions.
    pub calls: Vec<(u32, u32)>,
    /// Functions of samples that may have copies in code that was not followed.
    pub copied: Vec<FunctionId>,
}

/// What was found in the code of the modules; empty if it was not read.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// In order of caller, callee and kind, each once.
    calls: Vec<Call>,
    /// For each function what its code says; `None` for those whose code was not looked at, and for
    /// those beyond the last row.
    pub functions: IdVec<FunctionId, Option<FunctionCode>>,
    /// Whether all functions and calls of the files with samples are here, as far as the files
    /// could be read; if not, only those between functions that samples show.
    pub is_whole: bool,
    /// Where the code of the functions of samples leads, if that was found out.
    pub followed: Option<Followed>,
    /// In order, each once.
    kernel: Vec<ModuleId>,
    /// In order, each once.
    interrupts: Vec<FunctionId>,
}

impl Code {
    /// The calls, in order of caller, callee and kind, each once.
    #[inline]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Adds calls, in any order. The places of equal calls are added up.
    pub fn add_calls(&mut self, calls: impl IntoIterator<Item = Call>) {
        self.calls.extend(calls);
        self.calls.sort_unstable();
        self.calls.dedup_by(|next, sum| {
            let same = (next.from, next.to, next.kind) == (sum.from, sum.to, sum.kind);
            if same {
                sum.sites = sum.sites.saturating_add(next.sites);
            }
            same
        });
    }

    /// Whether the module is the kernel's: none of its functions calls one of a program.
    #[inline]
    pub fn is_kernel(&self, module: ModuleId) -> bool {
        self.kernel.binary_search(&module).is_ok()
    }

    /// Notes that a module is the kernel's.
    pub fn add_kernel(&mut self, module: ModuleId) {
        if let Err(place) = self.kernel.binary_search(&module) {
            self.kernel.insert(place, module);
        }
    }

    /// The functions that are entered by interrupting whatever runs, in order of id: nothing calls
    /// them.
    #[inline]
    pub fn interrupts(&self) -> &[FunctionId] {
        &self.interrupts
    }

    /// Whether the function is entered by interrupting whatever runs.
    #[inline]
    pub fn is_interrupt(&self, function: FunctionId) -> bool {
        self.interrupts.binary_search(&function).is_ok()
    }

    /// Notes which functions are entered by interrupting whatever runs, in any order.
    pub fn set_interrupts(&mut self, mut functions: Vec<FunctionId>) {
        functions.sort_unstable();
        functions.dedup();
        self.interrupts = functions;
    }

    /// What holds for rows by other things than functions: which modules are the kernel's.
    pub(super) fn of_kernel(&self) -> Code {
        Code {
            kernel: self.kernel.clone(),
            ..Code::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_in_order_and_equal_ones_are_added_up() {
        let call = |from, to, kind, sites| Call {
            from: FunctionId::new(from),
            to: FunctionId::new(to),
            kind,
            sites,
        };
        let mut code = Code::default();
        code.add_calls([
            call(2, 1, CallKind::Call, 3),
            call(0, 1, CallKind::Tail, 1),
            call(0, 1, CallKind::Call, u64::MAX),
        ]);
        code.add_calls([call(0, 1, CallKind::Call, 5), call(2, 1, CallKind::Call, 4)]);
        let expected = [
            call(0, 1, CallKind::Call, u64::MAX),
            call(0, 1, CallKind::Tail, 1),
            call(2, 1, CallKind::Call, 7),
        ];
        assert_eq!(code.calls(), expected);
    }

    #[test]
    fn modules_and_interrupts_are_found_in_whichever_order_they_came() {
        let mut code = Code::default();
        for id in [5, 1, 3, 1] {
            code.add_kernel(ModuleId::new(id));
        }
        let kernel = (0..6).filter(|&id| code.is_kernel(ModuleId::new(id)));
        assert_eq!(kernel.collect::<Vec<_>>(), [1, 3, 5]);
        code.set_interrupts([4, 0, 4, 2].map(FunctionId::new).to_vec());
        assert_eq!(code.interrupts(), [0, 2, 4].map(FunctionId::new));
        assert!(code.is_interrupt(FunctionId::new(2)) && !code.is_interrupt(FunctionId::new(3)));
    }
}
