//! The machine code of a function that a process compiled while it ran.

use std::sync::Arc;

use super::{CodeError, MOST_INSTRUCTIONS, Syntax, plain};
use crate::base::Svma;
use crate::binary::{Finder, JitCode, JitPiece};
use crate::profile::{Callee, Listing, Origin, Position};
use crate::scan::Disassembler;

/// `kept` is the file that the recording holds, which may be below a root that is gone.
pub(super) fn listing(
    (path, kept): (&str, Option<&Arc<[u8]>>),
    places: &[u64],
    syntax: Syntax,
    finder: &Finder,
) -> Result<Listing, CodeError> {
    let own = || path.to_owned();
    let unusable = |source| CodeError::File {
        path: own(),
        source,
    };
    let code = match kept {
        Some(kept) => JitCode::parse(kept.clone()),
        None => finder.jit_code(path),
    };
    let code = code.map_err(unusable)?;
    let machine = || CodeError::Machine { path: own() };
    let mut disassembler =
        Disassembler::new(code.machine().ok_or_else(machine)?, syntax).ok_or_else(machine)?;
    let mut pieces: Vec<JitPiece> = places
        .iter()
        .filter_map(|&place| code.piece(place))
        .collect();
    pieces.sort_unstable_by_key(|piece| piece.place);
    pieces.dedup();
    let mut listing = Listing {
        file: own(),
        origin: Origin::JitDump {
            pieces: pieces.len(),
        },
        ..Listing::default()
    };
    for piece in pieces {
        let bytes = code.read(piece).map_err(unusable)?;
        listing.is_cut |= !add(&mut listing, piece, &bytes, &code, &mut disassembler);
    }
    if listing.instructions.is_empty() {
        return Err(CodeError::NoCode { path: own() });
    }
    // By id, which is cheap, to drop repetitions; then by name, as ids depend on the order in the
    // file.
    listing.lines.sort_unstable();
    listing.lines.dedup();
    let names = &listing.names;
    listing
        .lines
        .sort_unstable_by(|a, b| (&names[a.0], a.1).cmp(&(&names[b.0], b.1)));
    Ok(listing)
}

// Returns whether all instructions were added.
fn add(
    listing: &mut Listing,
    piece: JitPiece,
    bytes: &[u8],
    code: &JitCode,
    disassembler: &mut Disassembler,
) -> bool {
    // Decoded where it ran: so what it calls elsewhere is at the address that it has in memory.
    let mut found = Vec::new();
    let left = MOST_INSTRUCTIONS.saturating_sub(listing.instructions.len());
    let is_whole = disassembler.read(bytes, Svma(piece.start), left, &mut found);
    let place_of = |address: u64| address.wrapping_sub(piece.start).wrapping_add(piece.place);
    let is_inside = |address: u64| address.wrapping_sub(piece.start) < piece.size;
    for found in found {
        let branch = found.branch.map(|to| to.0);
        let is_call = found.text.starts_with("call");
        let mut instruction = plain(found);
        instruction.address = place_of(instruction.address);
        match branch {
            Some(to) if is_inside(to) => {
                // Both ends of a jump have the addresses of the list.
                let shown = instruction.text.strip_suffix(&format!("{to:x}"));
                let moved = shown.map(|before| format!("{before}{:x}", place_of(to)).into());
                instruction.text = moved.unwrap_or(instruction.text);
                instruction.jump = (!is_call).then(|| place_of(to));
            }
            Some(to) => {
                instruction.leaves = true;
                instruction.callee = code.starting_at(to).map(|name| Callee {
                    function: listing.names.intern(name),
                    offset: 0,
                });
            }
            None => {}
        }
        let line = code.dump().at(instruction.address);
        if let Some((file, line)) = line.and_then(|frame| frame.line) {
            let position = Position {
                file: listing.names.intern(file),
                line,
                inlined: None,
            };
            let known = listing
                .positions
                .iter()
                .rposition(|known| *known == position);
            let place = known.unwrap_or_else(|| {
                listing.positions.push(position);
                listing.lines.push((position.file, position.line));
                listing.positions.len() - 1
            });
            instruction.position = Some(place as u32);
        }
        listing.instructions.push(instruction);
    }
    is_whole
}
