//! Registers and a copy of the stack in the RAW field of a sample.
//!
//! perf and samply unwind a copy wherever a sample has one, and append what they find to the chain
//! of frame pointers: a file with both shows each stack twice in their views. So a recorder that
//! takes a small copy beside the chain moves it to where they do not look:
//!
//! ```text
//!   from the kernel  … CALLCHAIN [RAW] REGS_USER STACK_USER {room, bytes, valid}
//!   in the file      … CALLCHAIN RAW {[the event's own data] registers, valid bytes, abi, size}
//! ```
//!
//! The attr in the file asks for RAW alone, but still states which registers there are and how many
//! bytes were to be copied; without the bits of `sample_type` nobody else reads these two fields. A
//! moved sample is never larger than it was.

use linux_perf_event_reader::{Endianness, SampleFormat};

use super::Attr;
use super::cursor::Cursor;
use super::layout::Layout;
use super::raw::{Layouts, NATIVE, RawRecord, records};
use super::sample::{Registers, Sample};
use super::split::HEADER_SIZE;
use super::writer::{ATTR_SIZE, EventDescription};

/// Ends the field: a magic number, the ABI of the registers, and how many bytes of the stack there
/// are before it. So what is not of this form is told apart.
const MAGIC: u32 = 0x6b74_7350;
const TRAILER: usize = 8;
const WORD: usize = 8;

/// What a sample carries.
pub(super) struct Carried<'a> {
    /// The event's own data.
    pub(super) own: &'a [u8],
    pub(super) registers: Registers<'a>,
    pub(super) stack: &'a [u8],
}

/// Whether samples of an event with this attr carry a copy of the stack, from a recorder that has
/// moved it.
pub(super) fn is_in(attr: &Attr) -> bool {
    let format = attr.sample_format();
    let has_fields = attr.sample_regs_user != 0 && attr.sample_stack_user != 0;
    has_fields
        && format.contains(SampleFormat::RAW)
        && !format.intersects(SampleFormat::REGS_USER | SampleFormat::STACK_USER)
}

/// Takes what was moved into this field, with these registers, out of it; `None` where nothing was.
pub(super) fn split(raw: &[u8], mask: u64, endian: Endianness) -> Option<Carried<'_>> {
    let (rest, trailer) = raw.split_at_checked(raw.len().checked_sub(TRAILER)?)?;
    let mut c = Cursor::new(trailer, endian);
    if c.u32("").ok()? != MAGIC {
        return None;
    }
    let (abi, size) = (c.u16("").ok()?, c.u16("").ok()?);
    let size = usize::from(size);
    let begin = rest.len().checked_sub(size.next_multiple_of(WORD))?;
    let (rest, stack) = rest.split_at_checked(begin)?;
    let registers = mask.count_ones() as usize * WORD;
    let (own, registers) = rest.split_at_checked(rest.len().checked_sub(registers)?)?;
    let mut c = Cursor::new(registers, endian);
    Some(Carried {
        own,
        registers: Registers {
            abi: u64::from(abi),
            mask,
            values: c.words(u64::from(mask.count_ones()), "").ok()?,
        },
        stack: stack.get(..size)?,
    })
}

/// Moves the copies of a recording's samples.
#[derive(Debug)]
pub(crate) struct Mover {
    /// What the kernel writes for each event.
    layouts: Vec<Layout>,
    /// The events of ids.
    events: Layouts,
    /// Records whose copies were moved.
    moved: Vec<u8>,
}

impl Mover {
    /// A mover of samples that the kernel writes for these attrs, one for each event.
    pub(crate) fn new(attrs: &[[u8; ATTR_SIZE]], events: &[EventDescription]) -> Mover {
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
    ///
    /// # Errors
    ///
    /// Those of `consume`.
    pub(crate) fn pass_on<E>(
        &mut self,
        bytes: &[u8],
        consume: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.moved.clear();
        let mut end = 0;
        for record in records(bytes) {
            end += record.bytes().len();
            if self.move_copy(record).is_none() {
                self.moved.extend_from_slice(record.bytes());
            }
        }
        // What is damaged is passed on as it is, as anywhere.
        self.moved
            .extend_from_slice(bytes.get(end..).unwrap_or_default());
        consume(&self.moved)
    }

    /// Appends a sample without its copy, which is at the end of its RAW field instead; `None` for
    /// what is no whole sample, of which nothing is appended.
    fn move_copy(&mut self, record: RawRecord<'_>) -> Option<()> {
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
        let out = &mut self.moved;
        let begin = out.len();
        out.extend_from_slice(kind);
        out.extend_from_slice(&record_size.to_ne_bytes());
        out.extend_from_slice(&body[..head]);
        out.extend_from_slice(&(size as u32).to_ne_bytes());
        out.extend_from_slice(own);
        out.resize(begin + HEADER_SIZE + head + 4 + own_room, 0);
        if let (Some(registers), Some(stack)) = (sample.user_registers, sample.user_stack) {
            out.extend_from_slice(registers.values.bytes());
            out.extend_from_slice(stack);
            out.resize(begin + whole - TRAILER, 0);
            out.extend_from_slice(&MAGIC.to_ne_bytes());
            out.extend_from_slice(&(registers.abi as u16).to_ne_bytes());
            out.extend_from_slice(&(stack.len() as u16).to_ne_bytes());
        }
        Some(())
    }
}
