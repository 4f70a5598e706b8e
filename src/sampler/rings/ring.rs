//! The ring buffer through which the kernel hands out records, one for each processor.
//!
//! ```text
//!  control page │ data, a power of two of pages
//!  ─────────────┼──────────────────────────────────────────────
//!   data_head ──┼────────────────────────────┐  the kernel writes
//!   data_tail ──┼──────────┐                 ▼  up to here
//!               │ ░░░░░░░░░│record│record│rec│░░░░░░░░░░░░░░░░░
//!               │          ▲ what we have not read yet
//! ```
//!
//! Both counters only grow; their place is the remainder by the size. A record may begin at the
//! end of the buffer and go on at its start.
#![expect(unsafe_code, reason = "the buffer is memory that the kernel writes")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::perfdata::raw;
use crate::sampler::kernel;

// How many bytes are handed out before the kernel gets their room back. While a large buffer is
// written to a slow disk, the kernel can go on filling the part of it that is on the disk already.
const PORTION: usize = 1 << 20;

#[derive(Debug)]
pub(in crate::sampler) struct Ring {
    base: NonNull<u8>,
    mapped: usize,
    page: usize,
    tail: u64,
    fullest: u64,
    // Holds a record that goes around the end, so that it can be handed out whole.
    bent: Vec<u8>,
}

impl Ring {
    /// Maps the buffer of `event` with `pages` pages of data, which must be a power of two.
    pub(in crate::sampler) fn map(event: BorrowedFd<'_>, pages: usize) -> io::Result<Ring> {
        debug_assert!(pages.is_power_of_two());
        let page = kernel::page_size();
        let mapped = pages
            .checked_add(1)
            .and_then(|pages| pages.checked_mul(page))
            .ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: with a null hint and without MAP_FIXED the kernel chooses a place where nothing
        // is mapped, so no memory of this program is touched.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring {
            base: NonNull::new(address.cast()).ok_or(io::ErrorKind::Other)?,
            mapped,
            page,
            tail: 0,
            fullest: 0,
            bent: Vec::new(),
        })
    }

    pub(in crate::sampler) fn size(&self) -> u64 {
        (self.mapped - self.page) as u64
    }

    pub(in crate::sampler) fn fullest(&self) -> u64 {
        self.fullest
    }

    /// Hands out what the kernel has written since the last time, in slices of whole records, and
    /// frees the room of each portion before the next one is taken. What the kernel writes
    /// meanwhile is for the next time. Gives the number of bytes. After an error of `consume` the
    /// records that it was given are still in the buffer.
    pub(in crate::sampler) fn drain<E>(
        &mut self,
        consume: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let head = self.counters().0.load(Ordering::Acquire);
        let waiting = head.wrapping_sub(self.tail);
        self.fullest = self.fullest.max(waiting);
        let mut bytes = 0;
        loop {
            let portion = self.portion(head, consume)?;
            if portion == 0 {
                return Ok(bytes);
            }
            bytes += portion;
        }
    }

    /// Hands out records between the tail and `head`, [`PORTION`] bytes at most in one or two
    /// slices of whole records, then frees their room. Gives the number of bytes.
    fn portion<E>(
        &mut self,
        head: u64,
        consume: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let size = self.mapped - self.page;
        let len = head.wrapping_sub(self.tail);
        if len == 0 || len > size as u64 {
            return Ok(0);
        }
        let mut len = len as usize;
        let start = (self.tail % size as u64) as usize;
        // SAFETY: the mapping has the control page and then `size` bytes; [start, start + first)
        // lies inside it. The kernel wrote these bytes before it moved `data_head` (acquired
        // above), and since the mapping is writable it does not overwrite them before `data_tail`
        // passes them, which happens below when the slices are gone. Nothing else in this process
        // has the address.
        let (first, second) = unsafe {
            let data = self.base.as_ptr().add(self.page);
            let first = len.min(size - start);
            (
                slice::from_raw_parts(data.add(start), first),
                slice::from_raw_parts(data, len - first),
            )
        };
        if first.len() > PORTION {
            len = match raw::whole(&first[..PORTION]) {
                // No record is that large, so it is not the kernel's. It is passed on whole.
                0 => first.len(),
                whole => whole,
            };
            consume(&first[..len])?;
        } else if second.is_empty() {
            consume(first)?;
        } else {
            let whole = raw::whole(first);
            if whole > 0 {
                consume(&first[..whole])?;
            }
            let mut missing = 0;
            if whole < first.len() {
                // Records are aligned to 8 bytes, so a header never goes around the end.
                let wanted = raw::stated_size(&first[whole..]).unwrap_or(0);
                missing = wanted.saturating_sub(first.len() - whole).min(second.len());
                self.bent.clear();
                self.bent.extend_from_slice(&first[whole..]);
                self.bent.extend_from_slice(&second[..missing]);
                consume(&self.bent)?;
            }
            // What stands at the start of the buffer is the next portion.
            len = first.len() + missing;
        }
        self.tail = self.tail.wrapping_add(len as u64);
        self.counters().1.store(self.tail, Ordering::Release);
        Ok(len as u64)
    }

    fn counters(&self) -> (&AtomicU64, &AtomicU64) {
        let control = self.base.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: the control page is mapped for as long as `self` lives and page-aligned, so
        // both fields are valid and aligned to 8. The kernel and this process only touch them
        // as whole words, and this process only through these atomics.
        unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*control).data_head),
                AtomicU64::from_ptr(&raw mut (*control).data_tail),
            )
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped, and every slice of it has ended with its borrow.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of `size` bytes that no kernel writes.
    fn ring(size: usize) -> Ring {
        let page = kernel::page_size();
        let mapped = page + size;
        // SAFETY: anonymous memory at a place that the kernel chooses; it is this ring's alone.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(address, libc::MAP_FAILED);
        Ring {
            base: NonNull::new(address.cast()).unwrap(),
            mapped,
            page,
            tail: 0,
            fullest: 0,
            bent: Vec::new(),
        }
    }

    /// Writes as the kernel does: bytes first, then the head.
    fn write(ring: &Ring, bytes: &[u8]) {
        let head = ring.counters().0.load(Ordering::Relaxed);
        let size = (ring.mapped - ring.page) as u64;
        for (i, byte) in (head..).zip(bytes) {
            // SAFETY: the place is inside the mapping, and no slice of it is alive.
            unsafe { *ring.base.as_ptr().add(ring.page + (i % size) as usize) = *byte };
        }
        let head = head + bytes.len() as u64;
        ring.counters().0.store(head, Ordering::Release);
    }

    #[test]
    fn records_arrive_once_and_whole_and_free_their_space() {
        let mut ring = ring(4 << 20);
        let mut written = Vec::new();
        let mut read = Vec::new();
        let mut number = 0u64;
        // Records of many sizes, which go around the end at different places.
        for turn in 0..12u64 {
            let mut records = Vec::new();
            while records.len() < 2_500_000 {
                number += 1;
                let size = 16 + number * 5_704 % 60_000 / 8 * 8;
                let mut record = vec![number as u8; size as usize];
                record[6..8].copy_from_slice(&(size as u16).to_ne_bytes());
                records.extend(record);
            }
            write(&ring, &records);
            written.extend(records);
            let mut portions = 0;
            let bytes = ring.drain(&mut |records: &[u8]| {
                assert_eq!(raw::whole(records), records.len());
                assert!(records.len() <= PORTION);
                read.extend_from_slice(records);
                portions += 1;
                Ok::<(), ()>(())
            });
            assert!(bytes.unwrap() >= 2_500_000, "turn {turn}");
            assert!(portions > 2);
            let (head, tail) = ring.counters();
            assert_eq!(head.load(Ordering::Relaxed), tail.load(Ordering::Relaxed));
        }
        assert!(read == written);
        assert_eq!(ring.drain(&mut |_| Err(())), Ok(0));
        assert!((2_500_000..ring.size()).contains(&ring.fullest()));
    }

    #[test]
    fn records_that_were_not_taken_stay() {
        let mut ring = ring(4 << 20);
        let mut record = vec![7; 32];
        record[6..8].copy_from_slice(&32u16.to_ne_bytes());
        write(&ring, &record);
        assert_eq!(ring.drain(&mut |_| Err("full")), Err("full"));
        let mut read = Vec::new();
        let taken = ring.drain(&mut |records: &[u8]| {
            read.extend_from_slice(records);
            Ok::<(), ()>(())
        });
        assert_eq!((taken, read), (Ok(32), record));
    }
}
