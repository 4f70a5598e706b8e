//! Moves registers and copies of stacks into the RAW fields of samples, before they are written,
//! and clears what programs were started with.

use super::Sample;
use super::carried::{MAGIC, TRAILER, WORD};
use crate::perfdata::Attr;
use crate::perfdata::layout::Layout;
use crate::perfdata::raw::{self, Layouts, RawRecord, arguments};
use crate::perfdata::split::HEADER_SIZE;
use crate::perfdata::split::NATIVE;
use crate::perfdata::writer::{ATTR_SIZE, WriterEvent};

#[derive(Debug)]
pub(crate) struct Mover {
    layouts: Vec<Layout>,
    events: Layouts,
    moved: Vec<u8>,
}

impl Mover {
    pub(crate) fn new(attrs: &[[u8; ATTR_SIZE]], events: &[WriterEvent]) -> Mover {
        let attrs = attrs
            .iter()
            .filter_map(|attr| Attr::parse(attr, NATIVE).ok());
        Mover {
            layouts: attrs.map(|attr| Layout::new(&attr, NATIVE)).collect(),
            events: Layouts::new(events),
            moved: Vec::new(),
        }
    }

    /// Hands out these whole records, with the copies of samples moved.
    pub(crate) fn pass_on<E>(
        &mut self,
        bytes: &[u8],
        consume: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut moved = std::mem::take(&mut self.moved);
        moved.clear();
        raw::rewrite(bytes, &mut moved, &mut |record, out| {
            self.move_copy(record, out)
        });
        let passed = consume(&moved);
        self.moved = moved;
        passed
    }

    /// Appends a sample without its copy, which is at the end of its RAW field instead; `None` for
    /// what is no whole sample, of which nothing is appended.
    fn move_copy(&self, record: RawRecord<'_>, out: &mut Vec<u8>) -> Option<()> {
        if !record.is_sample() {
            return None;
        }
        let body = record.bytes().get(HEADER_SIZE..)?;
        let (event, _) = self.events.event(record)?;
        let sample = Sample::parse(body, event, self.layouts.get(event)?).ok()?;
        let chain = sample.callchain?.bytes();
        let head = chain.as_ptr_range().end.addr() - body.as_ptr().addr();
        let own = sample.raw.unwrap_or_default();
        // The size of the field is a word's half, and the whole field ends at a word.
        let own_room = (4 + own.len()).next_multiple_of(WORD) - 4;
        let mut size = own_room;
        if let (Some(registers), Some(stack)) = (sample.user_registers, sample.user_stack) {
            size += registers.values.bytes().len();
            size += stack.len().next_multiple_of(WORD) + TRAILER;
        }
        let whole = HEADER_SIZE + head + 4 + size;
        // The header ends with the size of the record.
        let (kind, record_size) = (record.bytes().get(..6)?, u16::try_from(whole).ok()?);
        let begin = out.len();
        out.extend_from_slice(kind);
        out.extend_from_slice(&record_size.to_ne_bytes());
        out.extend_from_slice(&body[..head]);
        out.extend_from_slice(&(size as u32).to_ne_bytes());
        out.extend_from_slice(own);
        out.resize(begin + HEADER_SIZE + head + 4 + own_room, 0);
        if let (Some(registers), Some(stack)) = (sample.user_registers, sample.user_stack) {
            out.extend_from_slice(registers.values.bytes());
            let copy = out.len();
            out.extend_from_slice(stack);
            arguments::clear(&mut out[copy..], &registers);
            out.resize(begin + whole - TRAILER, 0);
            out.extend_from_slice(&MAGIC.to_ne_bytes());
            out.extend_from_slice(&(registers.abi as u16).to_ne_bytes());
            out.extend_from_slice(&(stack.len() as u16).to_ne_bytes());
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::carried;
    use super::*;
    use crate::perfdata::raw::oracle;
    use linux_perf_event_reader::SampleFormat;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    const REGISTERS: u64 = 0xf4_01c2;

    /// An attr that asks for these fields, with ids and a group's values in its samples.
    fn attr(format: SampleFormat, stack: u32) -> [u8; ATTR_SIZE] {
        let mut attr = [0; ATTR_SIZE];
        attr[4..8].copy_from_slice(&(ATTR_SIZE as u32).to_ne_bytes());
        attr[24..32].copy_from_slice(&format.bits().to_ne_bytes());
        // GROUP and ID.
        attr[32..40].copy_from_slice(&0xcu64.to_ne_bytes());
        attr[80..88].copy_from_slice(&REGISTERS.to_ne_bytes());
        attr[88..92].copy_from_slice(&stack.to_ne_bytes());
        attr
    }

    proptest! {
        #[test]
        fn a_moved_copy_is_read_as_it_was(
            fields in any::<u16>(),
            is_tracepoint in any::<bool>(),
            values in oracle::values(),
        ) {
            use SampleFormat as F;
            let any = F::from_bits_truncate(u64::from(fields) & 0x1ff);
            let one_word = any | F::IDENTIFIER | F::CALLCHAIN;
            let own = if is_tracepoint { one_word | F::RAW } else { one_word };
            let asked = attr(own | F::REGS_USER | F::STACK_USER, 64);
            let written = attr(own | F::RAW, 64);
            let parse = |attr: &[u8; ATTR_SIZE]| Attr::parse(attr, NATIVE).unwrap();
            let record = values.sample(&parse(&asked));
            let events = [WriterEvent {
                name: "clock".into(),
                attr: written,
                ids: vec![values.word(F::IDENTIFIER)],
            }];
            let mut mover = Mover::new(&[asked], &events);
            let other = oracle::record(1, 0, &[0; 16]);
            let records = [&other[..], &record, &other[..]].concat();
            let mut moved = Vec::new();
            let passed = mover.pass_on(&records, &mut |bytes| {
                moved.extend_from_slice(bytes);
                Ok::<(), std::convert::Infallible>(())
            });
            let Ok(()) = passed;
            prop_assert!(moved.len() <= records.len());
            let parts: Vec<RawRecord> = raw::records(&moved).collect();
            prop_assert_eq!(parts.len(), 3);
            prop_assert_eq!(parts[0].bytes(), &other[..]);
            prop_assert_eq!(parts[2].bytes(), &other[..]);

            let layouts = [&asked, &written].map(|attr| Layout::new(&parse(attr), NATIVE));
            let before = Sample::parse(&record[HEADER_SIZE..], 0, &layouts[0]).unwrap();
            let after = Sample::parse(&parts[1].bytes()[HEADER_SIZE..], 0, &layouts[1]).unwrap();
            let words = |sample: &Sample| {
                let registers = sample.user_registers.unwrap();
                (registers.abi, registers.mask, registers.values.bytes().to_vec())
            };
            let chain = |sample: &Sample| sample.callchain.unwrap().bytes().to_vec();
            let fixed = |sample: &Sample| {
                (sample.ip, sample.tid, sample.time, sample.cpu, sample.period)
            };
            prop_assert_eq!(fixed(&before), fixed(&after));
            prop_assert_eq!(chain(&before), chain(&after));
            if let Some(stack) = before.user_stack {
                prop_assert_eq!(Some(stack), after.user_stack);
                prop_assert_eq!(words(&before), words(&after));
                prop_assert_eq!(after.user_stack_room, 64);
            }
            if is_tracepoint {
                prop_assert_eq!(before.raw, after.raw);
            }
        }

        #[test]
        fn what_was_not_moved_is_not_taken_apart(
            raw in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let has_trailer = raw.len() >= TRAILER
                && raw[raw.len() - TRAILER..][..4] == MAGIC.to_ne_bytes();
            prop_assert_eq!(carried::split(&raw, REGISTERS, NATIVE).is_some(), has_trailer);
        }
    }
}
