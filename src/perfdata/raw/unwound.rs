//! Chains that the recorder has unwound, written; read they are in
//! [`unwound`](crate::perfdata::sample::unwound).

use linux_perf_event_reader::constants::{PERF_CONTEXT_MAX, PERF_CONTEXT_USER};

use super::arguments;
use crate::base::{CallerBy, CaveatKind, CodeAddress};
use crate::perfdata::record::Record;
use crate::perfdata::sample::Sample;
use crate::perfdata::sample::unwound::ENDS;
use crate::perfdata::split::HEADER_SIZE;

/// The words for the frames of user space at the end of a chain.
#[derive(Debug, Default)]
pub(crate) struct UserFrames {
    words: Vec<u64>,
    caller_by: Option<CallerBy>,
    /// Whether they cannot be written so: a word would be taken for a marker, or an order for none.
    has_data: bool,
}

impl UserFrames {
    /// The words, unless an address among them would be taken for a marker.
    pub(crate) fn words(&self) -> Option<&[u64]> {
        (!self.has_data).then_some(&self.words)
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
        (self.caller_by, self.has_data) = (None, false);
    }

    /// Adds the next frame outwards.
    pub(crate) fn push(&mut self, address: CodeAddress, caller_by: CallerBy) {
        let (is_first, last) = (self.words.is_empty(), self.caller_by.replace(caller_by));
        let is_new = last.unwrap_or(CallerBy::Rules) != caller_by;
        let turns = match caller_by {
            CallerBy::Copy if is_new => 2,
            CallerBy::FramePointer if is_new => 3,
            _ => 0,
        };
        let is_interrupted = matches!(address, CodeAddress::Instruction(_));
        let marks = match turns {
            0 => usize::from(is_interrupted),
            turns => turns + usize::from(is_interrupted && !is_first) * 2,
        };
        // Nothing is found by rules, or in a copy, behind what a frame pointer led to.
        self.has_data |= turns == 0 && is_new;
        let word = address.recorded();
        self.has_data |= word >= PERF_CONTEXT_MAX;
        self.words
            .extend(std::iter::repeat_n(PERF_CONTEXT_USER, marks));
        self.words.push(word);
    }

    /// Ends the frames before the outermost.
    pub(crate) fn end(&mut self, why: CaveatKind) {
        let place = ENDS.iter().position(|&end| end == why);
        self.has_data |= place.is_none();
        let marks = place.map_or(0, |place| place + 1);
        self.words
            .extend(std::iter::repeat_n(PERF_CONTEXT_USER, marks));
    }
}

/// Appends a record as it was read.
pub(crate) fn append(record: &Record<'_>, out: &mut Vec<u8>) {
    // It was as large, and its size has 16 bits.
    append_header(record, (record.body_bytes.len() + HEADER_SIZE) as u16, out);
    out.extend_from_slice(record.body_bytes);
}

/// Appends a sample with its copy as it was read, without what the program was started with.
pub(crate) fn append_copy(record: &Record<'_>, sample: &Sample<'_>, out: &mut Vec<u8>) {
    let copy = out.len() + HEADER_SIZE;
    append(record, out);
    if let (Some(stack), Some(registers)) = (sample.user_stack, &sample.user_registers)
        && let Some(at) = place(record, stack)
        && let Some(stack) = out.get_mut(copy + at..copy + at + stack.len())
    {
        arguments::clear(stack, registers);
    }
}

/// Where bytes of a record are in it, behind its header.
fn place(record: &Record<'_>, bytes: &[u8]) -> Option<usize> {
    let (bytes, all) = (bytes.as_ptr().addr(), record.body_bytes.as_ptr().addr());
    bytes.checked_sub(all)
}

fn append_header(record: &Record<'_>, size: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&record.kind.to_ne_bytes());
    out.extend_from_slice(&record.misc.to_ne_bytes());
    out.extend_from_slice(&size.to_ne_bytes());
}

/// Appends a sample without its registers and its copy: the user's part of its chain becomes
/// `user`. `None`, with nothing appended, where it has no registers, or no room for so many frames.
pub(crate) fn append_sample(
    record: &Record<'_>,
    sample: &Sample<'_>,
    user: &[u64],
    out: &mut Vec<u8>,
) -> Option<()> {
    const WORD: usize = 8;
    let body = record.body_bytes;
    let (chain, registers) = (sample.callchain?, sample.user_registers?.values.bytes());
    let kernel = chain.iter().take_while(|&word| word != PERF_CONTEXT_USER);
    let kernel = kernel.count();
    // Each has a word before it: the number of words, or what kind of registers they are.
    let chain_at = place(record, chain.bytes())?.checked_sub(WORD)?;
    let registers_at = place(record, registers)?.checked_sub(WORD)?;
    let copy_at = registers_at + WORD + registers.len();
    let room = usize::try_from(sample.user_stack_room).ok()?;
    let copy = if room > 0 { WORD + room + WORD } else { WORD };
    let before = body.get(..chain_at)?;
    let between = body.get(chain_at + WORD + chain.bytes().len()..registers_at)?;
    let behind = body.get(copy_at + copy..)?;
    let words = 1 + kernel + user.len() + 2;
    let size = HEADER_SIZE + before.len() + between.len() + behind.len() + words * WORD;
    out.reserve(size);
    append_header(record, u16::try_from(size).ok()?, out);
    out.extend_from_slice(before);
    out.extend_from_slice(&((kernel + user.len()) as u64).to_ne_bytes());
    out.extend_from_slice(chain.first(kernel).bytes());
    for word in user {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.extend_from_slice(between);
    out.extend_from_slice(&[0; 2 * WORD]);
    out.extend_from_slice(behind);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::NATIVE;
    use super::*;
    use crate::perfdata::Attr;
    use crate::perfdata::buffers::Owner;
    use crate::perfdata::layout::Layout;
    use crate::perfdata::origin::Origin;
    use crate::perfdata::raw::oracle;
    use crate::perfdata::record::Body;
    use crate::perfdata::sample::unwound;
    use linux_perf_event_reader::SampleFormat;
    use linux_perf_event_reader::constants::PERF_CONTEXT_KERNEL;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn frames_of(chain: &[u64]) -> (Vec<(CodeAddress, CallerBy)>, Option<CaveatKind>) {
        let bytes: Vec<u8> = chain.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut c = crate::perfdata::cursor::Cursor::new(&bytes, NATIVE);
        let words = c.words(chain.len() as u64, "").unwrap();
        let mut found = Vec::new();
        let end = unwound::frames(words, |address, caller_by| found.push((address, caller_by)));
        (found, end)
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(
            addresses in vec((1..PERF_CONTEXT_MAX, any::<bool>()), 1..20),
            (rules, copy) in (0usize..20, 0usize..20),
            end in proptest::option::of(0..ENDS.len()),
        ) {
            let number = addresses.iter().enumerate();
            let expected: Vec<_> = number.map(|(number, &(address, is_interrupted))| {
                let caller_by = match number {
                    _ if number < rules => CallerBy::Rules,
                    _ if number < rules + copy => CallerBy::Copy,
                    _ => CallerBy::FramePointer,
                };
                let address = if is_interrupted || number == 0 {
                    CodeAddress::Instruction(address)
                } else {
                    CodeAddress::Return(address)
                };
                (address, caller_by)
            }).collect();
            let end = end.map(|end| ENDS[end]);
            let mut user = UserFrames::default();
            expected.iter().for_each(|&(address, caller_by)| user.push(address, caller_by));
            end.iter().for_each(|&end| user.end(end));
            let chain = [&[PERF_CONTEXT_KERNEL, 7, 8], user.words().unwrap()].concat();
            prop_assert_eq!(frames_of(&chain), (expected, end));
        }

        #[test]
        fn a_sample_without_its_copy_is_otherwise_as_it_was(
            fields in any::<u16>(),
            user in vec(1..PERF_CONTEXT_MAX, 0..5),
            values in oracle::values(),
        ) {
            use SampleFormat as F;
            let format = F::from_bits_truncate(u64::from(fields) & 0x7ff)
                | F::IDENTIFIER | F::CALLCHAIN | F::REGS_USER | F::STACK_USER;
            let mut attr = [0; 128];
            attr[4..8].copy_from_slice(&128u32.to_ne_bytes());
            attr[24..32].copy_from_slice(&format.bits().to_ne_bytes());
            attr[80..88].copy_from_slice(&0xf4_01c2u64.to_ne_bytes());
            let attr = Attr::parse(&attr, NATIVE).unwrap();
            let layout = Layout::new(&attr, NATIVE);
            let before = values.sample(&attr);
            let parse = |record| Sample::parse(record, 0, &layout).unwrap();
            let sample = parse(&before[HEADER_SIZE..]);
            let record = Record {
                kind: 9,
                misc: 2,
                offset: 0,
                time: None,
                origin: Origin::default(),
                body: Body::Sample(sample.clone()),
                body_bytes: &before[HEADER_SIZE..],
                owner: Owner(None),
            };
            let mut frames = UserFrames::default();
            for (number, &address) in user.iter().enumerate() {
                let address = match number {
                    0 => CodeAddress::Instruction(address),
                    _ => CodeAddress::Return(address),
                };
                frames.push(address, CallerBy::Rules);
            }
            let words = frames.words().unwrap();
            let mut out = Vec::new();
            prop_assert!(append_sample(&record, &sample, words, &mut out).is_some());
            let size = u16::from_ne_bytes([out[6], out[7]]);
            prop_assert_eq!((usize::from(size), &out[..4]), (out.len(), &9u32.to_ne_bytes()[..]));
            let after = parse(&out[HEADER_SIZE..]);
            let fixed = |it: &Sample<'_>| {
                let raw = it.raw.map(<[u8]>::to_vec);
                ((it.id, it.ip, it.pid, it.tid, it.time, it.cpu, it.period), raw)
            };
            prop_assert_eq!(fixed(&sample), fixed(&after));
            prop_assert!(after.user_registers.is_none() && after.user_stack.is_none());
            let chain = after.callchain.unwrap().iter();
            let kernel = sample.callchain.unwrap().iter();
            let kernel = kernel.take_while(|&word| word != PERF_CONTEXT_USER);
            prop_assert!(chain.eq(kernel.chain(words.iter().copied())));
            prop_assert_eq!(after.is_unwound, !user.is_empty());
        }
    }

    #[test]
    fn what_looks_like_a_marker_is_not_written() {
        let mut user = UserFrames::default();
        user.push(CodeAddress::Instruction(1), CallerBy::FramePointer);
        user.push(
            CodeAddress::Return(PERF_CONTEXT_KERNEL),
            CallerBy::FramePointer,
        );
        assert_eq!(user.words(), None);
        user.clear();
        user.push(CodeAddress::Instruction(1), CallerBy::FramePointer);
        let marks = [PERF_CONTEXT_USER; 3];
        assert_eq!(user.words(), Some(&[&marks[..], &[1]].concat()[..]));
    }
}
