//! Records that a recorder makes itself, because the kernel has no event for them.

const MMAP: u32 = 1;
const LOST_SAMPLES: u32 = 13;
const FINISHED_ROUND_TYPE: u8 = 68;
const MISC_KERNEL: u16 = 1;

/// The bytes of identification that follow a record when the events have `sample_id_all` and
/// sample TID, TIME, CPU and IDENTIFIER. All zero: before everything else.
const SAMPLE_ID: [u8; 32] = [0; 32];

/// The record that ends a pass over all buffers. Its bytes are the same in each byte order but
/// for their places.
pub(super) const FINISHED_ROUND: [u8; 8] = if cfg!(target_endian = "little") {
    [FINISHED_ROUND_TYPE, 0, 0, 0, 0, 0, 8, 0]
} else {
    [0, 0, 0, FINISHED_ROUND_TYPE, 0, 0, 0, 8]
};

/// Where the kernel's image or one of its modules lies in memory.
///
/// The kernel tells of mappings only when they happen; its own happened long before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The length in bytes.
    pub len: u64,
    /// The position in the file of what is at `start`; for the kernel's image, the address of
    /// the symbol after which it is named, by which readers see how far it was moved at boot.
    pub page_offset: u64,
    /// `[kernel.kallsyms]_text`, or the path of a module.
    pub name: Vec<u8>,
}

impl Mapping {
    /// The mapping as an MMAP record of the kernel, which belongs to no process.
    ///
    /// ```c
    /// struct { struct perf_event_header { u32 type; u16 misc; u16 size; };
    ///          u32 pid, tid; u64 addr, len, pgoff; char filename[]; struct sample_id; };
    /// ```
    pub fn kernel_record(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(128);
        body.extend(u32::MAX.to_ne_bytes());
        body.extend(0u32.to_ne_bytes());
        body.extend(self.start.to_ne_bytes());
        body.extend(self.len.to_ne_bytes());
        body.extend(self.page_offset.to_ne_bytes());
        // Longer than any path that a kernel can have; a record's size has 16 bits.
        body.extend(self.name.iter().take(4095));
        body.push(0);
        body.resize(body.len().next_multiple_of(8), 0);
        record(MMAP, MISC_KERNEL, &body)
    }
}

/// A LOST_SAMPLES record: the kernel counted `lost` samples that it could not deliver and that
/// no record tells of.
///
/// ```c
/// struct { struct perf_event_header; u64 lost; struct sample_id; };
/// ```
pub fn lost_samples_record(lost: u64) -> Vec<u8> {
    record(LOST_SAMPLES, 0, &lost.to_ne_bytes())
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = 8 + body.len() + SAMPLE_ID.len();
    let size = u16::try_from(size).expect("the bodies made here are far below 64 KiB");
    let mut record = Vec::with_capacity(usize::from(size));
    record.extend(kind.to_ne_bytes());
    record.extend(misc.to_ne_bytes());
    record.extend(size.to_ne_bytes());
    record.extend(body);
    record.extend(SAMPLE_ID);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_true_and_multiples_of_eight() {
        for name in ["", "a", "[kernel.kallsyms]_text", "1234567"] {
            let record = Mapping {
                start: 0xffff_ffff_8100_0000,
                len: 0x100_0000,
                page_offset: 0,
                name: name.into(),
            }
            .kernel_record();
            assert_eq!(record.len() % 8, 0);
            let size = u16::from_ne_bytes([record[6], record[7]]);
            assert_eq!(usize::from(size), record.len());
        }
        assert_eq!(lost_samples_record(3).len(), 8 + 8 + 32);
    }
}
