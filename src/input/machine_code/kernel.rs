//! The machine code of a function of the running kernel.

use std::path::Path;

use rustc_hash::FxHashSet;

use super::positions::add_positions;
use super::{CodeError, MOST_INSTRUCTIONS, Syntax, plain};
use crate::base::{Avma, Svma};
use crate::binary::{self, Finder, Kallsyms, KernelCode, KernelCodeSource, KernelFunction};
use crate::profile::{Callee, Listing, Origin};
use crate::scan::Disassembler;

/// Where the kernel lists its symbols.
const SYMBOLS: &str = "/proc/kallsyms";

/// Lists the functions of the running kernel that have these addresses of now.
pub(super) fn listing(
    addresses: &[u64],
    syntax: Syntax,
    finder: &Finder,
) -> Result<Listing, CodeError> {
    let path = || SYMBOLS.to_owned();
    let file = |source| CodeError::File {
        path: path(),
        source,
    };
    let symbols = Kallsyms::read(Path::new(SYMBOLS)).map_err(file)?;
    let text = symbols.text().ok_or(CodeError::OtherKernel)?;
    let code = KernelCode::running(finder, text).map_err(|source| CodeError::Kernel { source })?;
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
