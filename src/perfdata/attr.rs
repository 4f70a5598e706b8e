//! `struct perf_event_attr`: what was asked of the kernel for one event.
//!
//! ```text
//!   0  u32 type               4  u32 size              8  u64 config
//!  16  u64 sample_period or sample_freq
//!  24  u64 sample_type       32  u64 read_format      40  u64 flags (bit field)
//!  48  u32 wakeup            52  u32 bp_type          56  u64 config1
//!  -- 64 bytes: version 0, 2009 --------------------------------------------
//!  64  u64 config2           (72)
//!  72  u64 branch_sample_type (80)
//!  80  u64 sample_regs_user  88  u32 sample_stack_user 92  u32 clockid   (96)
//!  96  u64 sample_regs_intr  (104)
//! 104  u32 aux_watermark    108  u16 sample_max_stack                     (112)
//! 112  u32 aux_sample_size  (120)   120  u64 sig_data (128)   128 u64 config3 …
//! ```
//!
//! Newer kernels append; what is appended is not read, which loses nothing that samples need.

use linux_perf_event_reader::{AttrFlags, BranchSampleFormat, Endianness, SampleFormat};

use super::cursor::Cursor;
use super::error::Flaw;

// The smallest size that a kernel ever gave it.
pub(super) const MIN_ATTR_SIZE: u64 = 64;
// Far beyond any kernel's size of it.
pub(super) const MAX_ATTR_SIZE: u64 = 4096;
// The bit of `PERF_FORMAT_LOST` in `read_format`.
pub(super) const READ_FORMAT_LOST: u64 = 1 << 4;
// The bit of `PERF_SAMPLE_BRANCH_COUNTERS` in `branch_sample_type`.
pub(super) const BRANCH_COUNTERS: u64 = 1 << 19;

/// One event's settings. Fields that the recorder's kernel did not have yet are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// The kind of event: hardware 0, software 1, tracepoint 2, cache 3, raw 4, breakpoint 5, PMUs.
    pub kind: u32,
    /// Which event of its kind.
    pub config: u64,
    /// The fixed period, or the frequency in Hz when the flags have `FREQ`.
    pub period_or_frequency: u64,
    /// The fields of samples, all bits (`PERF_SAMPLE_*`).
    pub sample_type: u64,
    /// The form of counter values in samples (`PERF_FORMAT_*`).
    pub read_format: u64,
    flags: u64,
    /// The form of branch stacks (`PERF_SAMPLE_BRANCH_*`).
    pub branch_sample_type: u64,
    /// Which user registers samples hold.
    pub sample_regs_user: u64,
    /// How many bytes of the user's stack samples hold at most.
    pub sample_stack_user: u32,
    /// The clock of all times (`CLOCK_*`), if the flags have `USE_CLOCKID`; else it is the
    /// kernel's own.
    pub clock_id: u32,
    /// Which registers at the interrupt samples hold.
    pub sample_regs_intr: u64,
    /// The limit of frames in a call chain; 0: the kernel's default.
    pub sample_max_stack: u16,
}

impl Attr {
    /// Reads an attr; of a shorter one than this kernel's the missing fields are zero.
    pub(super) fn parse(bytes: &[u8], endian: Endianness) -> Result<Attr, Flaw> {
        let mut c = Cursor::new(bytes, endian);
        let kind = c.u32("attr type")?;
        let _size = c.u32("attr size")?;
        let config = c.u64("attr config")?;
        let period_or_frequency = c.u64("attr sample_period")?;
        let sample_type = c.u64("attr sample_type")?;
        let read_format = c.u64("attr read_format")?;
        let flags = flag_bits(c.take(8, "attr flags")?, endian);
        let _wakeup_bp_type_config1 = c.take(16, "attr config1")?;
        // From here on each field may be missing: then it is zero.
        let _config2 = c.u64("").unwrap_or(0);
        let branch_sample_type = c.u64("").unwrap_or(0);
        let sample_regs_user = c.u64("").unwrap_or(0);
        let sample_stack_user = c.u32("").unwrap_or(0);
        let clock_id = c.u32("").unwrap_or(0);
        let sample_regs_intr = c.u64("").unwrap_or(0);
        let _aux_watermark = c.u32("").unwrap_or(0);
        let sample_max_stack = c.u16("").unwrap_or(0);
        Ok(Attr {
            kind,
            config,
            period_or_frequency,
            sample_type,
            read_format,
            flags,
            branch_sample_type,
            sample_regs_user,
            sample_stack_user,
            clock_id,
            sample_regs_intr,
            sample_max_stack,
        })
    }

    pub(crate) fn flags(&self) -> AttrFlags {
        AttrFlags::from_bits_truncate(self.flags)
    }

    #[cfg(test)]
    pub(crate) fn set_flags(&mut self, flags: AttrFlags) {
        self.flags = flags.bits();
    }

    /// Whether a recorder has moved the copy of the user's stack into the RAW field of samples,
    /// where only who knows of it looks. The attr still states the registers and the size.
    pub(super) fn carries_copy(&self) -> bool {
        let format = self.sample_format();
        let is_stated = self.sample_regs_user != 0 && self.sample_stack_user != 0;
        is_stated
            && format.contains(SampleFormat::RAW)
            && !format.intersects(SampleFormat::REGS_USER | SampleFormat::STACK_USER)
    }

    pub(crate) fn sample_format(&self) -> SampleFormat {
        SampleFormat::from_bits_truncate(self.sample_type)
    }

    pub(crate) fn branch_format(&self) -> BranchSampleFormat {
        BranchSampleFormat::from_bits_truncate(self.branch_sample_type)
    }

    /// How precise the instruction pointer was asked to be: 0 to 3 (`p`, `pp`, `ppp`).
    pub fn precise_ip(&self) -> u8 {
        ((self.flags >> 15) & 3) as u8
    }

    /// Returns whether the kernel records when threads leave and enter a processor.
    pub fn records_switches(&self) -> bool {
        self.flags().contains(AttrFlags::CONTEXT_SWITCH)
    }

    /// The period of each sample where it is fixed.
    pub fn fixed_period(&self) -> Option<u64> {
        (!self.flags().contains(AttrFlags::FREQ) && self.period_or_frequency > 0)
            .then_some(self.period_or_frequency)
    }
}

#[cfg(feature = "record")]
impl Attr {
    pub(crate) fn inherits(&self) -> bool {
        self.flags().contains(AttrFlags::INHERIT)
    }

    pub(crate) fn excludes_kernel(&self) -> bool {
        self.flags().contains(AttrFlags::EXCLUDE_KERNEL)
    }

    /// Returns whether the kernel chooses the periods, so that a number of samples a second comes.
    pub(crate) fn has_frequency(&self) -> bool {
        self.flags().contains(AttrFlags::FREQ)
    }
}

// The 64 flag bits in the order that a little-endian machine gives them. Compilers for big-endian
// machines lay bit fields out from the other end of each byte, so there every byte is mirrored; the
// two bits of `precise_ip` are then in the wrong order as well.
fn flag_bits(bytes: &[u8], endian: Endianness) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(&bytes[..8]);
    match endian {
        Endianness::LittleEndian => u64::from_le_bytes(array),
        Endianness::BigEndian => {
            let bits = u64::from_le_bytes(array.map(u8::reverse_bits));
            let precise = (bits >> 15) & 3;
            let swapped = (precise >> 1) | ((precise & 1) << 1);
            (bits & !(3 << 15)) | (swapped << 15)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_endian_flags_are_mirrored_in_each_byte() {
        // disabled (bit 0), comm (bit 9), precise_ip = 2 (bits 15 and 16)
        let little: u64 = 1 | 1 << 9 | 2 << 15;
        let mut big = little & !(3 << 15) | 1 << 15;
        big = u64::from_le_bytes(big.to_le_bytes().map(u8::reverse_bits));
        assert_eq!(flag_bits(&big.to_le_bytes(), Endianness::BigEndian), little);
    }
}
