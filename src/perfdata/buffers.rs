//! Buffers of bytes with records, each kept as long as a record in it waits.

use std::rc::Rc;

/// How many buffers are kept for use again. As many come free at once as were filled before records
/// were handed out; memory that is given back and taken again costs a page fault for each page.
const FREE: usize = 16;

/// Bytes with records.
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// The place of the first byte in the file; of the COMPRESSED record for what grew from one.
    pub(super) offset: u64,
    pub(super) compressed: bool,
}

impl Buffer {
    /// The place in the file of the byte at `position`.
    pub(super) fn place(&self, position: usize) -> u64 {
        if self.compressed {
            self.offset
        } else {
            self.offset + position as u64
        }
    }
}

/// The buffers in use: each with the number of records in it that wait.
#[derive(Default)]
pub(super) struct Buffers {
    slots: Vec<(Option<Rc<Buffer>>, usize)>,
    /// Slots that are in use no more, and memory of buffers.
    empty_slots: Vec<u32>,
    free: Vec<Vec<u8>>,
    /// The bytes of all buffers in use.
    held: u64,
}

impl Buffers {
    /// An empty vector, one that was used before where there is one.
    pub(super) fn empty(&mut self) -> Vec<u8> {
        let mut bytes = self.free.pop().unwrap_or_default();
        bytes.clear();
        bytes
    }

    pub(super) fn add(&mut self, buffer: Buffer) -> (u32, Rc<Buffer>) {
        self.held += buffer.bytes.capacity() as u64;
        let buffer = Rc::new(buffer);
        // Counted as waiting until `done` is called for it.
        let row = (Some(buffer.clone()), 1);
        let slot = match self.empty_slots.pop() {
            Some(slot) => {
                self.slots[slot as usize] = row;
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 buffers");
                self.slots.push(row);
                slot
            }
        };
        (slot, buffer)
    }

    /// The buffer of a record that waits.
    pub(super) fn of(&self, slot: u32) -> Option<&Rc<Buffer>> {
        self.slots[slot as usize].0.as_ref()
    }

    pub(super) fn wait(&mut self, slot: u32) {
        self.slots[slot as usize].1 += 1;
    }

    /// One record less waits in `slot`.
    pub(super) fn done(&mut self, slot: u32) {
        let (buffer, waiting) = &mut self.slots[slot as usize];
        *waiting -= 1;
        if *waiting > 0 {
            return;
        }
        let buffer = buffer.take();
        self.empty_slots.push(slot);
        let capacity = buffer.as_ref().map_or(0, |buffer| buffer.bytes.capacity());
        self.held = self.held.saturating_sub(capacity as u64);
        if let Some(Ok(buffer)) = buffer.map(Rc::try_unwrap)
            && self.free.len() < FREE
        {
            self.free.push(buffer.bytes);
        }
    }

    /// The number of bytes in use. One record that waits keeps its whole buffer.
    pub(super) fn held(&self) -> u64 {
        self.held
    }
}
