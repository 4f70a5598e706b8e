//! The copied part of a user stack.

/// Bytes of a task's stack, from the stack pointer upwards.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// The number of the thread. Any will do: what is known of others makes it faster only.
    pub thread: i32,
    /// The address of the first byte: the stack pointer.
    pub start: u64,
    /// What could be copied.
    pub bytes: &'a [u8],
    /// Whether no more than this was to be copied: the stack goes on behind it, perhaps.
    pub is_full: bool,
}

impl StackCopy<'_> {
    /// The little-endian number of `size` bytes (1, 2, 4 or 8) at an address.
    pub(super) fn read(&self, address: u64, size: u8) -> Option<u64> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        if size == 8 {
            let bytes = self.bytes.get(from..)?.first_chunk::<8>()?;
            return Some(u64::from_le_bytes(*bytes));
        }
        let bytes = self.bytes.get(from..from.checked_add(usize::from(size))?)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// Whether an address lies behind what was copied, where more would have been copied if that
    /// had been asked for.
    pub(super) fn is_cut_before(&self, address: u64) -> bool {
        self.is_full && address >= self.start && self.read(address, 1).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_copied_is_read() {
        let stack = StackCopy {
            thread: 1,
            start: 0x1000,
            bytes: &[1, 2, 3, 4, 5, 6, 7, 8, 9],
            is_full: true,
        };
        assert_eq!(stack.read(0x1001, 8), Some(0x0908_0706_0504_0302));
        assert_eq!(stack.read(0x1002, 8), None);
        assert_eq!(stack.read(0x1005, 4), Some(0x0908_0706));
        assert_eq!(stack.read(0xfff, 4), None);
        assert_eq!(stack.read(u64::MAX, 8), None);
        assert!(stack.is_cut_before(0x1009) && !stack.is_cut_before(0xff0));
    }
}
