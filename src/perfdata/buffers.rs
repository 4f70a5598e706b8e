//! Buffers of bytes with records, each kept as long as a record in it waits, or bytes of it are
//! shared.

use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex};

// How many buffers are kept for use again. As many come free at once as were filled before records
// were handed out; memory that is given back and taken again costs a page fault for each page.
const FREE: usize = 16;

type Free = Arc<Mutex<Vec<Vec<u8>>>>;

#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// The place of the first byte in the file; of the COMPRESSED record for what grew from one.
    offset: u64,
    pub(super) compressed: bool,
    /// Where its memory goes in the end.
    free: Option<Free>,
}

impl Buffer {
    pub(super) fn of_file(bytes: Vec<u8>, offset: u64) -> Buffer {
        Buffer {
            bytes,
            offset,
            compressed: false,
            free: None,
        }
    }

    pub(super) fn decompressed(bytes: Vec<u8>, offset: u64) -> Buffer {
        let mut buffer = Buffer::of_file(bytes, offset);
        buffer.compressed = true;
        buffer
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn place(&self, position: usize) -> u64 {
        if self.compressed {
            self.offset
        } else {
            self.offset + position as u64
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(free) = &self.free else {
            return;
        };
        if let Ok(mut free) = free.lock()
            && free.len() < FREE
        {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// The buffer that a record is in; none for one that comes from disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a>(pub(super) Option<&'a Arc<Buffer>>);

impl Owner<'_> {
    /// Bytes of the record, which stay when it is gone. What is in no buffer is copied.
    pub(super) fn share(self, bytes: &[u8]) -> SharedBytes {
        self.within(bytes).unwrap_or_else(|| SharedBytes {
            range: 0..bytes.len(),
            buffer: Arc::new(Buffer::of_file(bytes.to_vec(), 0)),
        })
    }

    fn within(self, bytes: &[u8]) -> Option<SharedBytes> {
        let buffer = self.0?;
        let all = buffer.bytes();
        let start = bytes.as_ptr().addr().checked_sub(all.as_ptr().addr())?;
        let range = start..start.checked_add(bytes.len())?;
        (range.end <= all.len()).then(|| SharedBytes {
            buffer: buffer.clone(),
            range,
        })
    }
}

/// Bytes of a record that stay when it is gone: [`Record::share`](super::Record::share).
#[derive(Clone, Debug)]
pub struct SharedBytes {
    buffer: Arc<Buffer>,
    range: Range<usize>,
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer
            .bytes
            .get(self.range.clone())
            .unwrap_or_default()
    }
}

/// The buffers in use: each with the number of records in it that wait.
#[derive(Default)]
pub(super) struct Buffers {
    slots: Vec<(Option<Arc<Buffer>>, usize)>,
    empty_slots: Vec<u32>,
    free: Free,
    held: u64,
}

impl Buffers {
    pub(super) fn empty(&mut self) -> Vec<u8> {
        let free = self.free.lock().ok().and_then(|mut free| free.pop());
        let mut bytes = free.unwrap_or_default();
        bytes.clear();
        bytes
    }

    pub(super) fn add(&mut self, mut buffer: Buffer) -> (u32, Arc<Buffer>) {
        self.held += buffer.bytes.capacity() as u64;
        buffer.free = Some(self.free.clone());
        let buffer = Arc::new(buffer);
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

    pub(super) fn of(&self, slot: u32) -> Option<&Arc<Buffer>> {
        self.slots[slot as usize].0.as_ref()
    }

    pub(super) fn wait(&mut self, slot: u32) {
        self.slots[slot as usize].1 += 1;
    }

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
    }

    /// The number of bytes in use. One record that waits keeps its whole buffer.
    pub(super) fn held(&self) -> u64 {
        self.held
    }
}
