//! The machine code of a function of an ELF file.

use rustc_hash::{FxHashMap, FxHashSet};

use super::positions::{add_positions, inlined_at};
use super::{CodeError, MOST_INSTRUCTIONS, MachineCode};
use crate::base::Svma;
use crate::binary::{self, Binary, Code, FunctionSymbol, demangle};
use crate::profile::{Callee, Instruction, Listing, MadeCalls, ModuleId};
use crate::scan::{Destination, Disassembled, Disassembler, FileTables, Single};

// In bytes: of x86, other machines have shorter ones.
const LONGEST: u64 = 15;

pub(super) fn listing(
    reader: &MachineCode<'_>,
    module: ModuleId,
    addresses: impl Iterator<Item = u64>,
    inlined: Option<&str>,
) -> Result<Listing, CodeError> {
    let profile = reader.profile;
    let path = || profile.modules[module].path.clone();
    let unusable = |source| match source {
        binary::Error::UnknownMachine { .. } => CodeError::Machine { path: path() },
        source => CodeError::File {
            path: path(),
            source,
        },
    };
    let binary = reader.file(module).map_err(unusable)?;
    let addresses: Vec<Svma> = addresses.map(Svma).collect();
    let symbols = symbols(&binary, &addresses);
    let code = binary.code().map_err(unusable)?;
    let disassembler = Disassembler::new(code.machine, reader.syntax)
        .ok_or_else(|| CodeError::Machine { path: path() })?;
    let listed = symbols.iter().flat_map(|&place| binary.stretches_of(place));
    let mut stretches: Vec<(Svma, Svma)> = listed.map(|it| (it.start, it.end)).collect();
    let is_unlisted = |&&at: &&Svma| binary.function_at(at).is_none();
    for &at in addresses.iter().filter(is_unlisted) {
        let unlisted = reader.unlisted(module, &binary);
        let start = unlisted.function_at(at);
        stretches.extend(start.into_iter().flat_map(|it| unlisted.stretches_of(it)));
    }
    stretches.sort_unstable();
    stretches.dedup();
    let read = read(&code, &stretches, disassembler);
    let (mut instructions, is_cut) = read.map_err(unusable)?;
    if let Some(name) = inlined {
        let lines = binary.lines();
        let mut is_of = inlined_at(&lines, name);
        instructions.retain(|found| is_of(found.at));
    }
    if instructions.is_empty() {
        return Err(CodeError::NoCode { path: path() });
    }
    let mut listing = Listing {
        file: binary.path().to_string_lossy().into_owned(),
        modified: binary.modified(),
        is_cut,
        ..Listing::default()
    };
    let counted = profile.counts.as_ref();
    let calls = Calls::of(&binary, &symbols).map_err(unusable)?;
    let listed: FxHashSet<u64> = instructions.iter().map(|found| found.at.0).collect();
    for found in instructions {
        // A jump within the listing is an arrow, unless it is a call of a listed function, by
        // itself or by another: then its callee is named.
        let inside = |to: &Svma| listed.contains(&to.0);
        let jump = found
            .branch
            .filter(inside)
            .filter(|_| !calls.is_call(&found));
        let callee = match jump {
            Some(_) => None,
            None => calls.callee(&found, &mut listing),
        };
        listing.instructions.push(Instruction {
            address: found.at.0,
            length: found.length,
            text: found.text.into(),
            position: None,
            jump: jump.map(|to| to.0),
            callee,
            leaves: calls.sites.contains_key(&found.at.0),
            calls: counted.and_then(|counts| {
                let site = counts.at(module, found.at.0)?;
                Some(MadeCalls {
                    calls: site.calls,
                    is_least: site.is_least,
                })
            }),
        });
    }
    if reader.options.inlines {
        add_positions(&mut listing, &binary.lines(), Svma);
    }
    if inlined.is_some() {
        // They are those of the function around it.
        listing.lines.clear();
    }
    Ok(listing)
}

// The functions of the file that have these addresses, by their place among all, in order.
fn symbols(binary: &Binary, addresses: &[Svma]) -> Vec<usize> {
    let all = binary.functions();
    let place = |&at: &Svma| {
        let start = binary.function_at(at)?.start;
        let place = all.partition_point(|symbol| symbol.start < start);
        all.get(place).map(|_| place)
    };
    let mut symbols: Vec<usize> = addresses.iter().filter_map(place).collect();
    symbols.sort_unstable();
    symbols.dedup();
    symbols
}

fn read(
    code: &Code,
    stretches: &[(Svma, Svma)],
    mut disassembler: Disassembler,
) -> Result<(Vec<Disassembled>, bool), binary::Error> {
    let (mut instructions, mut buffer) = (Vec::new(), Vec::new());
    for &(start, end) in stretches {
        let Some(mut piece) = code.piece(start, end) else {
            continue;
        };
        let left = (MOST_INSTRUCTIONS - instructions.len()) as u64;
        let is_cut = piece.length > left * LONGEST;
        piece.length = piece.length.min(left * LONGEST);
        if piece.length == 0 {
            return Ok((instructions, true));
        }
        let bytes = code.read(piece, &mut buffer)?;
        let is_whole = disassembler.read(bytes, start, MOST_INSTRUCTIONS, &mut instructions);
        if is_cut || !is_whole {
            return Ok((instructions, true));
        }
    }
    Ok((instructions, false))
}

struct Calls<'b> {
    binary: &'b Binary,
    // By address of the instruction.
    sites: FxHashMap<u64, (Destination, bool)>,
}

impl<'b> Calls<'b> {
    fn of(binary: &'b Binary, symbols: &[usize]) -> Result<Calls<'b>, binary::Error> {
        let tables = FileTables::read(binary)?;
        let single = Single::new(&tables);
        let mut sites = FxHashMap::default();
        for &place in symbols {
            let start = binary.functions().get(place).map(|symbol| symbol.start);
            let exits = start.and_then(|start| single.leaving(start));
            for site in exits.map(|exits| exits.sites).unwrap_or_default() {
                let is_call = site.kind == crate::scan::LeavingKind::Call;
                sites.insert(site.at.0, (site.to, is_call));
            }
        }
        Ok(Calls { binary, sites })
    }

    fn is_call(&self, instruction: &Disassembled) -> bool {
        let site = self.sites.get(&instruction.at.0);
        site.is_some_and(|&(_, is_call)| is_call)
    }

    fn callee(&self, instruction: &Disassembled, listing: &mut Listing) -> Option<Callee> {
        let site = self.sites.get(&instruction.at.0);
        let mut named = |name: &str, offset| {
            Some(Callee {
                function: listing.names.intern(&demangle(name)),
                offset,
            })
        };
        if let Some((Destination::Import(name), _)) = site {
            return named(name, 0);
        }
        let at = match (instruction.branch, site) {
            (Some(to), _) => to,
            (None, Some(&(Destination::Function(to), _))) => to,
            _ => return None,
        };
        let symbol: &FunctionSymbol = self.binary.function_at(at)?;
        let name = self.binary.function_name(symbol);
        match name {
            Some(name) => named(&name, at.0 - symbol.start.0),
            None => named(&format!("{:#x}", symbol.start), at.0 - symbol.start.0),
        }
    }
}
