//! The machine code of a function of a profile, read again from where it is kept.
//!
//! ```text
//!   a mapped file                         the file, found again by path and build
//!   the kernel                            its memory, else a vmlinux of its build
//!   code that a process generated         the jitdump file, in the recording or where it was
//! ```

mod claims;
mod file;
mod generated;
mod kernel;
mod positions;

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use self::kernel::Kernel;
use super::Options;
use super::source_files::SourceClaim;
use crate::binary::{self, Binary, Finder};
use crate::profile::{FunctionId, Instruction, Listing, ModuleId, Profile};
use crate::scan::{Disassembled, Unlisted};

pub use crate::scan::Syntax;

/// Why the machine code of a function cannot be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The file cannot be used.
    #[error("{path}: {source}")]
    File {
        /// The path that the profile has.
        path: String,
        /// Why.
        source: binary::Error,
    },
    /// The file has no function at these addresses.
    #[error("{path} has no code of it")]
    NoCode {
        /// The path that the profile has.
        path: String,
    },
    /// The instructions are those of another machine.
    #[error("{path}: only x86 code can be disassembled")]
    Machine {
        /// The path that the profile has.
        path: String,
    },
    /// The kernel's code can be read nowhere.
    #[error("no vmlinux of the running kernel was found, and /proc/kcore cannot be read: {source}")]
    Kernel {
        /// Why its memory cannot be read.
        source: binary::Error,
    },
    /// The running kernel is not known to be the one that was recorded.
    #[error(
        "nothing shows that the running kernel is the one that was recorded, at known addresses"
    )]
    OtherKernel,
    /// The code was in the memory of a process, or the kernel's, and is kept nowhere.
    #[error(
        "this code was generated while the program ran, and the recording has only its names; a \
         jitdump file whose times are those of CLOCK_MONOTONIC would have the code"
    )]
    NotKept,
    /// The profile has no addresses of it.
    #[error("its addresses in a program or library are not known")]
    NoAddresses,
}

// The most instructions of one function that are listed.
const MOST_INSTRUCTIONS: usize = 1 << 20;

/// Reads the machine code of functions of a profile. What is opened for one function stays open for
/// the next: the tables of a large file, or the names of the kernel, take longer than a function.
pub struct MachineCode<'a> {
    profile: &'a Profile,
    syntax: Syntax,
    options: &'a Options,
    finder: Finder,
    files: RefCell<FxHashMap<ModuleId, Rc<Binary>>>,
    unlisted: RefCell<FxHashMap<ModuleId, Rc<Unlisted>>>,
    kernel: Kernel,
    // What is said of source files, by module and path.
    claims: RefCell<FxHashMap<(ModuleId, String), SourceClaim>>,
}

impl<'a> MachineCode<'a> {
    /// Reads code of this profile, which was read with these options, in a syntax.
    pub fn new(profile: &'a Profile, syntax: Syntax, options: &'a Options) -> MachineCode<'a> {
        MachineCode {
            profile,
            syntax,
            options,
            finder: Finder::new(options.symfs.as_deref()),
            files: RefCell::default(),
            unlisted: RefCell::default(),
            kernel: Kernel::default(),
            claims: RefCell::default(),
        }
    }

    /// Lists the machine code of a function: the code at its start and at these stated addresses,
    /// which is read from the file of its module, from the kernel, or from a jitdump file. Names of
    /// what it calls and the source positions are those of the file.
    ///
    /// # Errors
    ///
    /// When the function has no code in a file, the file cannot be used, the code is kept nowhere,
    /// or the instructions of its machine cannot be written.
    pub fn listing(
        &self,
        function: FunctionId,
        addresses: impl Iterator<Item = u64>,
    ) -> Result<Listing, CodeError> {
        let module = self.profile.functions[function].module;
        let addresses: Vec<u64> = addresses.collect();
        match Keeper::of(self.profile, module) {
            Keeper::Generated => Err(CodeError::NotKept),
            Keeper::Kernel if addresses.is_empty() => Err(CodeError::OtherKernel),
            _ if addresses.is_empty() => Err(CodeError::NoAddresses),
            Keeper::Kernel => self.kernel.listing(&addresses, self.syntax, &self.finder),
            Keeper::JitDump => {
                let path = &self.profile.modules[module].path;
                let kept = self.profile.generated_code.get(&module);
                generated::listing((path, kept), &addresses, self.syntax, &self.finder)
            }
            Keeper::File => {
                let start = self.profile.functions[function].address;
                let addresses = start.into_iter().chain(addresses);
                file::listing(self, module, addresses, None)
            }
        }
    }

    /// Lists the instructions of a function, and of what is inlined into it, where it is inlined
    /// itself into the code at these stated addresses; of programs and libraries.
    ///
    /// # Errors
    ///
    /// As [`MachineCode::listing`].
    pub fn inlined(
        &self,
        function: FunctionId,
        addresses: impl Iterator<Item = u64>,
    ) -> Result<Listing, CodeError> {
        let function = &self.profile.functions[function];
        match Keeper::of(self.profile, function.module) {
            Keeper::File => file::listing(self, function.module, addresses, Some(&function.name)),
            _ => Err(CodeError::NotKept),
        }
    }

    fn file(&self, module: ModuleId) -> Result<Rc<Binary>, binary::Error> {
        if let Some(binary) = self.files.borrow().get(&module) {
            return Ok(binary.clone());
        }
        let build_id = self.profile.build_ids.get(module).and_then(Option::as_ref);
        let path = self.profile.modules[module].path.clone();
        let binary = Rc::new(self.finder.find(path, build_id)?);
        self.files.borrow_mut().insert(module, binary.clone());
        Ok(binary)
    }

    fn unlisted(&self, module: ModuleId, binary: &Binary) -> Rc<Unlisted> {
        let mut known = self.unlisted.borrow_mut();
        let found = known.entry(module);
        found
            .or_insert_with(|| Rc::new(Unlisted::find(binary)))
            .clone()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    File,
    Kernel,
    JitDump,
    // Nothing: it was generated.
    Generated,
}

impl Keeper {
    fn of(profile: &Profile, id: ModuleId) -> Keeper {
        let module = &profile.modules[id];
        let is_kernel = profile.code.is_kernel(id) || module.is_kernel();
        let is_generated = module.name.starts_with("[generated ");
        let is_dump = binary::JitDump::is_named_so(module.path.as_ref());
        match () {
            () if is_generated && is_dump => Keeper::JitDump,
            () if is_generated => Keeper::Generated,
            // Modules have files, and the image has a name in brackets; so has what they make.
            () if is_kernel && !module.is_kernel() && module.name.starts_with("[bpf") => {
                Keeper::Generated
            }
            () if is_kernel => Keeper::Kernel,
            () => Keeper::File,
        }
    }
}

fn plain(found: Disassembled) -> Instruction {
    Instruction {
        address: found.at.0,
        length: found.length,
        text: found.text.into(),
        position: None,
        jump: None,
        callee: None,
        leaves: false,
        calls: None,
    }
}
