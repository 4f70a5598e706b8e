//! The machine code of a function of the running kernel.

use std::cell::OnceCell;
use std::path::Path;

use rustc_hash::FxHashSet;

use super::positions::add_positions;
use super::{CodeError, MOST_INSTRUCTIONS, Syntax, plain};
use crate::base::{Avma, Svma};
use crate::binary::{self, Binary, Finder, Kallsyms, KernelCode, KernelCodeSource, KernelFunction};
use crate::profile::{Callee, Listing, Origin};
use crate::scan::Disassembler;

const SYMBOLS: &str = "/proc/kallsyms";

// Read as far as it was asked for. Its names take long to read, also where its code can be read
// nowhere.
#[derive(Default)]
pub(super) struct Kernel {
    symbols: OnceCell<Kallsyms>,
    code: OnceCell<KernelCode>,
}

impl Kernel {
    // The addresses are those of now.
    pub fn listing(
        &self,
        addresses: &[u64],
        syntax: Syntax,
        finder: &Finder,
    ) -> Result<Listing, CodeError> {
        let symbols = self.symbols()?;
        listing(symbols, self.code(symbols, finder)?, addresses, syntax)
    }

    // The file that the running kernel was built to, if it is found, and what its addresses are
    // moved by.
    pub fn with_file<T>(&self, finder: &Finder, take: impl FnOnce(&Binary, u64) -> T) -> Option<T> {
        let code = self.code(self.symbols().ok()?, finder).ok()?;
        code.built().map(|(binary, moved)| take(binary, moved))
    }

    fn symbols(&self) -> Result<&Kallsyms, CodeError> {
        if let Some(symbols) = self.symbols.get() {
            return Ok(symbols);
        }
        let symbols = Kallsyms::read(Path::new(SYMBOLS)).map_err(|source| CodeError::File {
            path: SYMBOLS.to_owned(),
            source,
        })?;
        Ok(self.symbols.get_or_init(|| symbols))
    }

    fn code(&self, symbols: &Kallsyms, finder: &Finder) -> Result<&KernelCode, CodeError> {
        if let Some(code) = self.code.get() {
            return Ok(code);
        }
        let text = symbols.text().ok_or(CodeError::OtherKernel)?;
        let code = KernelCode::running(finder, text);
        let code = code.map_err(|source| CodeError::Kernel { source })?;
        Ok(self.code.get_or_init(|| code))
    }
}

fn listing(
    symbols: &Kallsyms,
    code: &KernelCode,
    addresses: &[u64],
    syntax: Syntax,
) -> Result<Listing, CodeError> {
    let machine = || CodeError::Machine {
        path: binary::KERNEL_MEMORY.to_owned(),
    };
    let mut disassembler =
        Disassembler::new(code.machine().ok_or_else(machine)?, syntax).ok_or_else(machine)?;
    let mut functions: Vec<KernelFunction> = (addresses.iter())
        .filter_map(|&address| symbols.at(Avma(address)))
        .collect();
    functions.sort_unstable_by_key(|function| function.start);
    functions.dedup_by_key(|function| function.start);
    let mut listing = Listing::default();
    let mut instructions = Vec::new();
    for function in functions {
        let Some((bytes, from)) = code.read(function.start, function.size) else {
            continue;
        };
        let (origin, path) = match from {
            KernelCodeSource::Memory(path) => (Origin::KernelMemory, path),
            KernelCodeSource::Built(path) => (Origin::KernelFile, path),
        };
        (listing.origin, listing.file) = (origin, path.to_string_lossy().into_owned());
        let start = Svma(function.start.0);
        listing.is_cut |= !disassembler.read(&bytes, start, MOST_INSTRUCTIONS, &mut instructions);
    }
    if instructions.is_empty() {
        return Err(CodeError::NoCode {
            path: binary::KERNEL_MEMORY.to_owned(),
        });
    }
    let listed: FxHashSet<u64> = instructions.iter().map(|found| found.at.0).collect();
    for found in instructions {
        let branch = found.branch;
        // A call is not drawn as a jump even if it stays in the listing.
        let is_call = found.text.starts_with("call");
        let jump = branch.filter(|to| listed.contains(&to.0) && !is_call);
        let mut instruction = plain(found);
        instruction.jump = jump.map(|to| to.0);
        if let (None, Some(to)) = (jump, branch) {
            instruction.leaves = true;
            instruction.callee = symbols.at(Avma(to.0)).map(|callee| Callee {
                function: listing.names.intern(callee.name),
                offset: to.0 - callee.start.0,
            });
        }
        listing.instructions.push(instruction);
    }
    if let Some((binary, moved)) = code.built() {
        let stated = |address: u64| Svma(address.wrapping_sub(moved));
        add_positions(&mut listing, &binary.lines(), stated);
    }
    Ok(listing)
}
