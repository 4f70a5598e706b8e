//! A page of the memory that is shared with programs, mapped into this process.
#![expect(
    unsafe_code,
    reason = "the page is memory that programs write; mmap, futex and lseek have no safe interface"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The first bytes of a file from `from` to `to` that were written, and where they end; `None` if
/// there are none. What is around them is zero.
pub(super) fn written(file: &File, from: u64, to: u64) -> io::Result<Option<(u64, u64)>> {
    let seek = |at: u64, whence| {
        let at = i64::try_from(at).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: no memory is passed. Nobody uses the position of the descriptor.
        let found = unsafe { libc::lseek(file.as_raw_fd(), at, whence) };
        u64::try_from(found).map_err(|_| io::Error::last_os_error())
    };
    let start = match seek(from, libc::SEEK_DATA) {
        Ok(start) if start < to => start,
        Err(error) if error.raw_os_error() != Some(libc::ENXIO) => return Err(error),
        _ => return Ok(None),
    };
    let end = seek(start, libc::SEEK_HOLE)?;
    Ok(Some((start, end.min(to))))
}

pub(super) const SIZE: usize = 4096;

#[derive(Debug)]
pub(super) struct Page(NonNull<u8>);

// SAFETY: the page stays mapped while the value lives, and is only touched by atomic operations.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Maps the page at this offset of the memory, which must have it.
    pub(super) fn map(shared: &File, offset: u64) -> io::Result<Page> {
        let wrong = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let offset = i64::try_from(offset).map_err(wrong)?;
        // SAFETY: with a null hint and without MAP_FIXED the kernel chooses a place where nothing
        // is mapped, so no memory of this program is touched.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                shared.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(address.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Page(page))
    }

    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at < SIZE && at.is_multiple_of(4));
        // SAFETY: the offset is inside the page and a multiple of four, the page is mapped as long
        // as `self` lives, and is only touched by atomic operations.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().add(at).cast()) }
    }

    pub(super) fn long_word(&self, at: usize) -> &AtomicU64 {
        assert!(at < SIZE && at.is_multiple_of(8));
        // SAFETY: as above, with a multiple of eight.
        unsafe { AtomicU64::from_ptr(self.0.as_ptr().add(at).cast()) }
    }

    pub(super) fn wake(&self, at: usize) {
        let word = self.word(at).as_ptr();
        // SAFETY: the word is mapped, and the kernel reads nothing else.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Waits until a word has another value, at times without reason.
    pub(super) fn wait(&self, at: usize, value: u32) {
        let word = self.word(at).as_ptr();
        let forever = ptr::null::<libc::timespec>();
        // SAFETY: the word is mapped, and the kernel reads nothing else.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, forever) };
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), SIZE) };
    }
}
