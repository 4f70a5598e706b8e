//! Calls, jumps and taken addresses of x86.
//!
//! Nearly all instructions are of few shapes. Those are read here with two tables, of which one
//! gives what follows an opcode and the other what a ModRM byte means (see [`quick`]); everything
//! else is left to iced-x86, one instruction at a time, so that the answer is its answer.

// Why there are two decoders: with iced-x86 alone, even if it is asked first whether an instruction
// leads anywhere, `callgraph` takes 5 % more processor time for libLLVM and 15 % for cc1, and
// `graph` 5 % for a recording of a small program and 14 % for one of gcc (medians of five pairs,
// release with thin LTO). The tables go when that is below 3 %.

pub(super) mod call_forms;
mod careful;
pub(super) mod certain;
pub(super) mod effects;
pub(super) mod ends;
mod quick;
mod shape;
#[cfg(test)]
mod tests;

use self::careful::{Careful, Read};
use super::flow::{Flow, Step, Wants};

/// Decodes 64-bit code that lies at address `start`, and puts everything that it refers to behind
/// `steps`. Returns the number of bytes that are no instructions; after one of those decoding goes
/// on at the next.
pub(super) fn walk(bytes: &[u8], start: u64, wants: &Wants, steps: &mut Vec<Step>) -> u64 {
    // Most jumps stay in the stretch: behind its first byte, before its end.
    let inside = if wants.unlinked {
        0
    } else {
        bytes.len() as u64
    };
    let stays = |to: u64| to != start && to.wrapping_sub(start) < inside;
    let mut instructions = Instructions::new(bytes, start);
    let mut undecoded = 0;
    let mut index = 0;
    while index < bytes.len() {
        let at = start.wrapping_add(index as u64);
        let Some(read) = instructions.read(index, wants) else {
            undecoded += 1;
            index += 1;
            continue;
        };
        index = index.wrapping_add(usize::from(read.length));
        if let Some((Flow::Jump(to), _)) = read.refers
            && stays(to)
        {
            continue;
        }
        push(at, read, steps);
    }
    undecoded
}

pub(super) struct Instructions<'a> {
    bytes: &'a [u8],
    start: u64,
    careful: Option<Careful<'a>>,
}

impl<'a> Instructions<'a> {
    pub(super) fn new(bytes: &'a [u8], start: u64) -> Instructions<'a> {
        Instructions {
            bytes,
            start,
            careful: None,
        }
    }

    /// The instruction at this index of the bytes; `None` if no valid one begins there.
    #[inline(always)]
    pub(super) fn read(&mut self, index: usize, wants: &Wants) -> Option<Read> {
        let rest = self.bytes.get(index..).filter(|rest| !rest.is_empty())?;
        let at = self.start.wrapping_add(index as u64);
        let padded;
        let window = match rest.first_chunk::<16>() {
            Some(window) => window,
            None => {
                padded = pad(rest);
                &padded
            }
        };
        let read =
            quick::read(window, at, wants).filter(|read| usize::from(read.length) <= rest.len());
        if read.is_some() {
            return read;
        }
        let careful = { &mut self.careful };
        let careful = careful.get_or_insert_with(|| Careful::new(64, self.bytes, self.start));
        careful.read(index, wants)
    }
}

/// [`walk`] for 32-bit code.
pub(super) fn walk_32(bytes: &[u8], start: u64, wants: &Wants, steps: &mut Vec<Step>) -> u64 {
    let mut careful = Careful::new(32, bytes, start);
    let mut undecoded = 0;
    let mut index = 0;
    while index < bytes.len() {
        match careful.read(index, wants) {
            Some(read) => {
                push(start.wrapping_add(index as u64), read, steps);
                index += usize::from(read.length);
            }
            None => {
                undecoded += 1;
                index += 1;
            }
        }
    }
    undecoded
}

fn push(at: u64, read: Read, steps: &mut Vec<Step>) {
    if let Some((flow, back)) = read.refers {
        let end = at.wrapping_add(u64::from(read.length));
        steps.push(Step {
            at,
            length: read.length,
            flow,
            field: end.wrapping_sub(u64::from(back)),
        });
    }
}

#[cold]
fn pad(rest: &[u8]) -> [u8; 16] {
    let mut padded = [0; 16];
    for (to, from) in padded.iter_mut().zip(rest) {
        *to = *from;
    }
    padded
}
