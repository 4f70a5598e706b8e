//! The work in chunks of functions, on all processors.

use std::num::NonZeroUsize;
use std::thread;

use super::file_tables::FileTables;
use super::flow::{Flow, Step, Wants};
use super::resolve::{Kind, Lot, Resolved, Resolver, Site, Stretch, Target};
use super::riscv::Width;
use super::switch_tables::{MappedCode, SwitchJumps};
use super::{CodeFunctionId, aarch64, part_names, register_values, riscv, x86};
use crate::base::{Svma, parallel};
use crate::binary::{CodePiece, Machine, SlotTarget};

// The bytes that a worker comes back for, about a millisecond of work; they stay in the cache of
// its processor.
const CHUNK: u64 = 256 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Undecided {
    pub(super) calls: u64,
    pub(super) jumps: u64,
    pub(super) switches: u64,
}

#[derive(Debug, Default)]
pub(super) struct ChunkCalls {
    pub(super) sites: Vec<Site>,
    pub(super) undecided: Vec<(CodeFunctionId, Undecided)>,
    pub(super) astray: u64,
    /// Direct jumps out of a function to where no function starts: from which function, where the
    /// jump is, and its target.
    pub(super) inside_jumps: Vec<(CodeFunctionId, Svma, Svma)>,
    pub(super) self_jumps: Vec<(CodeFunctionId, Svma)>,
    pub(super) undecoded: u64,
    pub(super) decoded: u64,
    pub(super) problem: Option<String>,
}

// The most bytes between stretches of code that are read together: where few functions are chosen,
// what is between them is not read.
const GAP: u64 = 4 << 10;

// The longest stretch in which registers are followed, in bytes.
const FOLLOWED: usize = 256 << 10;

pub(super) struct Scan<'a> {
    pub(super) tables: &'a FileTables<'a>,
    pub(super) resolver: &'a Resolver<'a>,
    pub(super) wants: Wants,
}

impl<'a> Scan<'a> {
    pub(super) fn new(tables: &'a FileTables<'a>, resolver: &'a Resolver<'a>) -> Scan<'a> {
        let binary = tables.binary;
        Scan {
            tables,
            resolver,
            wants: Wants {
                addresses: if binary.is_linked() {
                    tables.code.range()
                } else {
                    0..=u64::MAX
                },
                immediates: binary.is_fixed() || !binary.is_linked(),
                unlinked: !binary.is_linked(),
            },
        }
    }
}

/// Scans stretches of code, which are in order of address; the answers are in their order. One
/// worker does something else first.
pub(super) fn scan<T>(
    scan: &Scan,
    lots: &[Lot],
    workers: Option<NonZeroUsize>,
    first: impl FnOnce() -> T,
) -> (T, Vec<ChunkCalls>) {
    let chunks = chunks(lots);
    let available = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let workers = workers.unwrap_or_else(available);
    parallel::map_after(workers, first, &chunks, Vec::new, |buffer, chunk| {
        scan_chunk(scan, chunk, buffer)
    })
}

fn chunks<'a, 'b>(lots: &'a [Lot<'b>]) -> Vec<&'a [Lot<'b>]> {
    let mut chunks = Vec::new();
    let mut rest = lots;
    while let [first, others @ ..] = rest {
        let mut end = first.end();
        let fits = |lot: &&Lot| {
            let before = lot.piece.offset.0.checked_sub(first.piece.offset.0);
            let is_near = lot.piece.offset.0.saturating_sub(end) <= GAP;
            end = end.max(lot.end());
            is_near && before.is_some_and(|before| before.saturating_add(lot.piece.length) <= CHUNK)
        };
        let more = others.iter().take_while(fits).count();
        let (chunk, after) = rest.split_at(more + 1);
        chunks.push(chunk);
        rest = after;
    }
    chunks
}

fn span(lots: &[Lot]) -> Option<CodePiece> {
    let offset = lots.first()?.piece.offset;
    let end = lots.iter().map(Lot::end).max()?;
    let length = end.saturating_sub(offset.0);
    Some(CodePiece { offset, length })
}

fn scan_chunk(scan: &Scan, lots: &[Lot], buffer: &mut Vec<u8>) -> ChunkCalls {
    let mut found = ChunkCalls::default();
    let Some(span) = span(lots) else { return found };
    let code = match scan.tables.code.read(span, buffer) {
        Ok(code) => code,
        Err(error) => {
            found.problem = Some(error.to_string());
            return found;
        }
    };
    let mut steps = Vec::new();
    for lot in lots {
        let from = lot.piece.offset.0.wrapping_sub(span.offset.0) as usize;
        let bytes = code
            .get(from..)
            .unwrap_or_default()
            .get(..lot.piece.length as usize)
            .unwrap_or_default();
        let own = lot.symbol.start.0..lot.symbol.start.0.saturating_add(lot.symbol.size);
        let mut undecided = Undecided::default();
        let mut switches = None;
        let undecoded = scan_lot(scan, lot, bytes, &mut steps, |step, resolved| {
            // Jumps within the function's own bytes are most of all jumps, and lead nowhere else.
            if let (Resolved::Within | Resolved::Site(Kind::Back, _), Flow::Jump(to)) =
                (resolved, step.flow)
                && !own.contains(&to)
            {
                let jump = (lot.caller, Svma(step.at), Svma(to));
                found.inside_jumps.push(jump);
            }
            match resolved {
                Resolved::Site(kind, target) => found.sites.push(Site {
                    at: step.at,
                    length: step.length,
                    kind,
                    is_jump: matches!(step.flow, Flow::Jump(_) | Flow::JumpSlot(_)),
                    caller: lot.caller,
                    target,
                }),
                Resolved::Within => {
                    let is_self_jump = match step.flow {
                        Flow::Jump(to) => to == own.start,
                        Flow::JumpSlot(_) | Flow::JumpUnknown => true,
                        _ => false,
                    };
                    if is_self_jump {
                        found.self_jumps.push((lot.caller, Svma(step.at)));
                    }
                }
                Resolved::Astray => found.astray += 1,
                Resolved::UnknownCall => undecided.calls += 1,
                Resolved::UnknownJump => {
                    let switches = switches.get_or_insert_with(|| switch_jumps(scan, lot, bytes));
                    let is_inside = |to| to != own.start && own.contains(&to);
                    undecided.jumps += 1;
                    undecided.switches += u64::from(switches.has(step.at, &is_inside));
                }
            }
        });
        found.undecoded += undecoded;
        found.decoded += bytes.len() as u64 - undecoded;
        if undecided != Undecided::default() {
            found.undecided.push((lot.caller, undecided));
        }
    }
    found
}

fn switch_jumps<'a>(scan: &'a Scan, lot: &Lot, bytes: &'a [u8]) -> SwitchJumps<'a> {
    SwitchJumps::of(MappedCode {
        binary: scan.tables.binary,
        slots: scan.tables.slots(),
        machine: scan.tables.code.machine,
        bytes,
        start: lot.start,
    })
}

/// Tells what each instruction refers to. `steps` is for these. Returns the number of bytes that
/// are no instructions.
pub(super) fn scan_lot(
    scan: &Scan,
    lot: &Lot,
    bytes: &[u8],
    steps: &mut Vec<Step>,
    mut tell: impl FnMut(&Step, Resolved),
) -> u64 {
    let stretch = &Stretch {
        caller: lot.caller,
        symbol: lot.symbol,
        bytes,
        start: lot.start,
    };
    let undecoded = walk(
        scan.tables.code.machine,
        bytes,
        lot.start,
        &scan.wants,
        steps,
    );
    follow_registers(scan, stretch, steps);
    for step in steps.drain(..) {
        tell(&step, scan.resolver.resolve(stretch, &step));
    }
    undecoded
}

/// Puts what the code refers to behind `steps`. Returns the number of bytes that are no
/// instructions.
pub(super) fn walk(
    machine: Machine,
    bytes: &[u8],
    start: u64,
    wants: &Wants,
    steps: &mut Vec<Step>,
) -> u64 {
    match machine {
        Machine::X86_64 => x86::walk(bytes, start, wants, steps),
        Machine::X86 => x86::walk_32(bytes, start, wants, steps),
        Machine::Aarch64 => aarch64::walk(bytes, start, wants, steps),
        Machine::Riscv64 => riscv::walk(Width::Bits64, bytes, start, wants, steps),
        Machine::Riscv32 => riscv::walk(Width::Bits32, bytes, start, wants, steps),
    }
}

fn follow_registers(scan: &Scan, stretch: &Stretch, steps: &mut [Step]) {
    let Stretch { bytes, start, .. } = *stretch;
    // The conditions go from cheap to expensive. Following registers decodes every instruction in
    // full, which is the slow part of a scan, and few stretches need it.
    if scan.wants.unlinked || bytes.len() > FOLLOWED {
        return;
    }
    let followed = candidates(scan.tables.code.machine, stretch, steps);
    if followed == 0 || !may_tell(scan, stretch, steps, followed) || !is_whole(scan, stretch) {
        return;
    }
    let end = start.saturating_add(bytes.len() as u64);
    let is_function = |to: u64| match scan.resolver.target(SlotTarget::Address(Svma(to))) {
        Some(Target::Import(_)) => true,
        Some(Target::Function(id)) => id != stretch.caller && scan.tables.is_named(to),
        None => false,
    };
    let mut leaving = steps.iter().filter_map(|step| match step.flow {
        Flow::Jump(to) => Some(to).filter(|to| !(start..end).contains(to)),
        _ => None,
    });
    // A jump to anything else may lead to a part of this function that is elsewhere, and that may
    // jump back with other values in registers.
    if !leaving.all(is_function) {
        return;
    }
    let (effects, kept) = match scan.tables.code.machine {
        Machine::X86_64 => (
            x86::effects::read(bytes, start, followed),
            x86::effects::KEPT,
        ),
        Machine::X86 => return,
        Machine::Aarch64 => (Some(aarch64::effects(bytes, start)), 0),
        Machine::Riscv64 => (riscv::effects(Width::Bits64, bytes, start), 0),
        Machine::Riscv32 => (riscv::effects(Width::Bits32, bytes, start), 0),
    };
    let Some(effects) = effects else { return };
    let place = register_values::FollowedCode {
        end,
        kept,
        followed,
    };
    register_values::decide(&effects, &place, steps);
}

fn candidates(machine: Machine, stretch: &Stretch, steps: &[Step]) -> u32 {
    if machine == Machine::X86_64 {
        return x86::effects::candidates(stretch.bytes, stretch.start, steps);
    }
    let unknown = |flow: Flow| matches!(flow, Flow::CallUnknown | Flow::JumpUnknown);
    let loads = |flow: Flow| matches!(flow, Flow::LoadSlot(_) | Flow::Address(_));
    let both =
        steps.iter().any(|step| unknown(step.flow)) && steps.iter().any(|step| loads(step.flow));
    if both { u32::MAX } else { 0 }
}

fn may_tell(scan: &Scan, stretch: &Stretch, steps: &[Step], followed: u32) -> bool {
    if scan.tables.code.machine != Machine::X86_64 {
        return true;
    }
    let tells = |flow: Flow| match flow {
        Flow::LoadSlot(slot) => scan.resolver.slot_leads(slot),
        _ => true,
    };
    x86::certain::may_be(stretch.bytes, stretch.start, steps, followed, &tells)
}

// Whether a stretch is all of a function, and no part that was moved out of one: what has no name
// might be such a part.
fn is_whole(scan: &Scan, stretch: &Stretch) -> bool {
    let Stretch { symbol, bytes, .. } = *stretch;
    let whole = stretch.start == symbol.start.0
        && bytes.len() as u64 == symbol.end().0.saturating_sub(symbol.start.0);
    let name = scan.tables.binary.function_name(symbol);
    let parts = || scan.tables.split_functions();
    whole && name.is_some_and(|name| part_names::whole(&name) == name && !parts().contains(&*name))
}
