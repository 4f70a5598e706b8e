//! Copies of stacks without the room that their stacks do not fill.
//!
//! The kernel reserves room for the requested number of bytes in each sample, and fills what there
//! is of the stack. The rest is whatever was in the buffer before:
//!
//! ```text
//!   from the kernel  … REGS_USER STACK_USER {room, bytes ├── filled ──┤├── rest ──┤, filled}
//!   in the file      … REGS_USER STACK_USER {filled + 8, ├── filled ──┤├ 8 ┤, filled}
//! ```
//!
//! So a copy takes what the stack has, whatever was requested, and a recorder can ask for much. A
//! copy that is not full ends where the stack does: one word more than was filled keeps it so. A
//! copy that is full goes on, for all that a reader knows.
//!
//! What the program was started with is replaced by zeros ([`arguments`]), and so is the rest.

use super::{Layouts, NATIVE, RawRecord, arguments};
use crate::perfdata::Attr;
use crate::perfdata::layout::Layout;
use crate::perfdata::sample::Sample;
use crate::perfdata::split::HEADER_SIZE;
use crate::perfdata::writer::WriterEvent;

const WORD: usize = 8;

#[derive(Debug)]
pub(crate) struct Trimmer {
    layouts: Vec<Layout>,
    events: Layouts,
    trimmed: Vec<u8>,
    most: usize,
    shortened: u64,
    /// Whether what the program was started with stays, for who takes it out later.
    keeps_arguments: bool,
}

impl Trimmer {
    pub(crate) fn new(events: &[WriterEvent]) -> Trimmer {
        let attrs = events.iter().map(WriterEvent::settings);
        Trimmer {
            layouts: attrs.map(|attr: Attr| Layout::new(&attr, NATIVE)).collect(),
            events: Layouts::new(events),
            trimmed: Vec::new(),
            most: usize::MAX,
            shortened: 0,
            keeps_arguments: false,
        }
    }

    /// One that leaves what the program was started with where it is.
    pub(crate) fn keeping_arguments(self, keeps_arguments: bool) -> Trimmer {
        Trimmer {
            keeps_arguments,
            ..self
        }
    }

    pub(crate) fn clear_arguments(&mut self) {
        self.keeps_arguments = false;
    }

    /// Keeps at most this many bytes of each copy from now on, a multiple of 8 but not 0.
    pub(crate) fn keep(&mut self, most: usize) {
        self.most = most;
    }

    pub(crate) fn shortened(&self) -> u64 {
        self.shortened
    }

    /// Hands out these whole records, with the copies of samples trimmed.
    pub(crate) fn pass_on<E>(
        &mut self,
        bytes: &[u8],
        consume: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut trimmed = std::mem::take(&mut self.trimmed);
        trimmed.clear();
        self.append(bytes, &mut trimmed);
        let passed = consume(&trimmed);
        self.trimmed = trimmed;
        passed
    }

    /// Appends these whole records, with the copies of samples trimmed.
    pub(crate) fn append(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        super::rewrite(bytes, out, &mut |record, out| self.trim(record, out));
    }

    /// Appends a sample with no room to spare, without what the program was started with; `None`
    /// for anything that is not a sample with a copy, of which nothing is appended.
    fn trim(&mut self, record: RawRecord<'_>, out: &mut Vec<u8>) -> Option<()> {
        if !record.is_sample() {
            return None;
        }
        let body = record.body();
        let (event, _) = self.events.event(record)?;
        let sample = Sample::parse(body, event, self.layouts.get(event)?).ok()?;
        let stack = sample.user_stack?;
        let room = usize::try_from(sample.user_stack_room).ok()?;
        let start = stack.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
        let is_shortened = stack.len() > self.most;
        let stack = stack.get(..self.most).unwrap_or(stack);
        let filled = stack.len().next_multiple_of(WORD);
        let trimmed = room.min(if is_shortened { filled } else { filled + WORD });
        let behind = body.get(start + room + WORD..)?;
        let head = body.get(..start.checked_sub(WORD)?)?;
        let whole = HEADER_SIZE + start + trimmed + WORD + behind.len();
        // The header ends with the size of the record.
        let (kind, size) = (record.bytes().get(..6)?, u16::try_from(whole).ok()?);
        let begin = out.len();
        out.extend_from_slice(kind);
        out.extend_from_slice(&size.to_ne_bytes());
        out.extend_from_slice(head);
        out.extend_from_slice(&(trimmed as u64).to_ne_bytes());
        let copy = out.len();
        out.extend_from_slice(stack);
        if let Some(registers) = sample.user_registers.filter(|_| !self.keeps_arguments) {
            arguments::clear(&mut out[copy..], &registers);
        }
        out.resize(begin + HEADER_SIZE + start + trimmed, 0);
        out.extend_from_slice(&(stack.len() as u64).to_ne_bytes());
        out.extend_from_slice(behind);
        self.shortened += u64::from(is_shortened);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::raw::oracle;
    use crate::perfdata::writer::ATTR_SIZE;
    use linux_perf_event_reader::SampleFormat;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::convert::Infallible;

    /// An attr that asks for these fields, with ids and a group's values in its samples.
    fn attr(format: SampleFormat) -> [u8; ATTR_SIZE] {
        let mut attr = [0; ATTR_SIZE];
        attr[4..8].copy_from_slice(&(ATTR_SIZE as u32).to_ne_bytes());
        attr[24..32].copy_from_slice(&format.bits().to_ne_bytes());
        // GROUP and ID.
        attr[32..40].copy_from_slice(&0xcu64.to_ne_bytes());
        attr[80..88].copy_from_slice(&0xf4_01c2u64.to_ne_bytes());
        attr
    }

    proptest! {
        #[test]
        fn a_trimmed_copy_is_read_as_it_was_up_to_what_is_kept(
            fields in any::<u16>(),
            unfilled in 0usize..60,
            kept in 1usize..6,
            values in oracle::values(),
        ) {
            use SampleFormat as F;
            let format = F::from_bits_truncate(u64::from(fields) & 0x7ff)
                | F::IDENTIFIER | F::REGS_USER | F::STACK_USER;
            let attr = attr(format);
            let events = [WriterEvent {
                name: "clock".into(),
                attr,
                ids: vec![values.word(F::IDENTIFIER)],
            }];
            let layout = Layout::new(&Attr::parse(&attr, NATIVE).unwrap(), NATIVE);
            let parse = |record: &[u8]| {
                let sample = Sample::parse(&record[HEADER_SIZE..], 0, &layout).unwrap();
                let registers = sample.user_registers.unwrap();
                (
                    (sample.ip, sample.tid, sample.time, sample.cpu, sample.period),
                    sample.callchain.map(|chain| chain.bytes().to_vec()),
                    sample.raw.map(<[u8]>::to_vec),
                    (registers.abi, registers.values.bytes().to_vec()),
                    sample.user_stack.map(<[u8]>::to_vec),
                    sample.user_stack_room,
                )
            };
            let mut record = values.sample(&Attr::parse(&attr, NATIVE).unwrap());
            let room = parse(&record).5 as usize;
            let filled = room.saturating_sub(unfilled);
            if room > 0 {
                let last = record.len() - WORD;
                record[last..].copy_from_slice(&(filled as u64).to_ne_bytes());
            }
            let before = parse(&record);

            let other = oracle::record(1, 0, &[0; 16]);
            let records = [&other[..], &record, &other[..], &[7; 5]].concat();
            let mut trimmer = Trimmer::new(&events);
            trimmer.keep(kept * WORD);
            let mut passed = Vec::new();
            let result = trimmer.pass_on(&records, &mut |bytes| {
                passed.extend_from_slice(bytes);
                Ok::<(), Infallible>(())
            });
            let Ok(()) = result;
            prop_assert!(passed.len() <= records.len());
            prop_assert!(passed.ends_with(&[7; 5]));
            let parts: Vec<RawRecord> = crate::perfdata::raw::records(&passed).collect();
            prop_assert_eq!(parts.len(), 3);
            prop_assert_eq!((parts[0].bytes(), parts[2].bytes()), (&other[..], &other[..]));

            let after = parse(parts[1].bytes());
            let same = |of: &(_, _, _, _, _, _)| {
                let (fixed, chain, raw, registers, ..): &(_, _, _, _, Option<Vec<u8>>, u64) = of;
                let (chain, raw) = (Option::<Vec<u8>>::clone(chain), Option::<Vec<u8>>::clone(raw));
                (*fixed, chain, raw, <(u64, Vec<u8>)>::clone(registers))
            };
            prop_assert_eq!(same(&before), same(&after));
            let (Some(whole), Some(part)) = (before.4, after.4) else {
                prop_assert_eq!(room, 0);
                return Ok(());
            };
            prop_assert_eq!(&whole[..whole.len().min(kept * WORD)], &part[..]);
            // Whether the stack goes on is read as before, unless it was shortened.
            let is_full = part.len() as u64 >= after.5;
            let was_full = filled >= room;
            let is_shortened = part.len() < whole.len();
            prop_assert_eq!(is_full, was_full || is_shortened);
            prop_assert_eq!(trimmer.shortened(), u64::from(is_shortened));
            prop_assert!(after.5 <= (part.len() as u64).next_multiple_of(8) + 8);
        }
    }
}
