//! `PERF_RECORD_SAMPLE`: every field that a kernel can put into a sample.
//!
//! ```text
//! u64 id                                  IDENTIFIER
//! u64 ip                                  IP
//! u32 pid, tid                            TID
//! u64 time                                TIME
//! u64 addr                                ADDR
//! u64 id                                  ID
//! u64 stream_id                           STREAM_ID
//! u32 cpu, res                            CPU
//! u64 period                              PERIOD
//! struct read_format                      READ
//! u64 nr; u64 ips[nr]                     CALLCHAIN
//! u32 size; char data[size]               RAW        (padded to 8)
//! u64 nr; [u64 hw_idx;] { u64 from, to, flags }[nr]; [u64 counters[nr]]   BRANCH_STACK
//! u64 abi; u64 regs[popcount(mask)]       REGS_USER  (no registers where abi is 0)
//! u64 size; char data[size]; u64 dyn      STACK_USER (size alone where it is 0)
//! u64 weight                              WEIGHT or WEIGHT_STRUCT
//! u64 data_src                            DATA_SRC
//! u64 transaction                         TRANSACTION
//! u64 abi; u64 regs[popcount(mask)]       REGS_INTR
//! u64 phys_addr                           PHYS_ADDR
//! u64 cgroup                              CGROUP
//! u64 data_page_size                      DATA_PAGE_SIZE
//! u64 code_page_size                      CODE_PAGE_SIZE
//! u64 size; char data[size]               AUX
//! ```
//!
//! The order is that of `perf_output_sample` in the kernel, which is not that of the bits.

mod carried;
#[cfg(feature = "record")]
mod mover;
pub(crate) mod unwound;

#[cfg(feature = "record")]
pub(crate) use mover::Mover;

use linux_perf_event_reader::{BranchSampleFormat, SampleFormat};

use crate::perfdata::attr::{BRANCH_COUNTERS, READ_FORMAT_LOST};
use crate::perfdata::cursor::{Cursor, Words};
use crate::perfdata::error::Flaw;
use crate::perfdata::layout::Layout;
use linux_perf_event_reader::constants::{
    PERF_CONTEXT_USER, PERF_FORMAT_GROUP, PERF_FORMAT_ID, PERF_FORMAT_TOTAL_TIME_ENABLED,
    PERF_FORMAT_TOTAL_TIME_RUNNING,
};

/// What is used of one sample. Fields that the event did not ask for are `None`.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    /// The index of the event in [`Reader::events`](super::Reader::events).
    pub event: usize,
    /// The kernel's id of the event instance.
    pub id: Option<u64>,
    pub ip: Option<u64>,
    /// The process; -1 where the kernel does not know.
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    /// Nanoseconds of the recording's clock.
    pub time: Option<u64>,
    pub cpu: Option<u32>,
    /// How many events this sample stands for.
    pub period: Option<u64>,
    /// Values of counters.
    pub read: Option<ReadValues<'a>>,
    /// The call chain from the innermost frame outwards, context markers included.
    pub callchain: Option<Words<'a>>,
    /// Raw data of a tracepoint or PMU.
    pub raw: Option<&'a [u8]>,
    /// The last branches, newest first.
    pub branches: Option<BranchStack<'a>>,
    pub user_registers: Option<Registers<'a>>,
    /// A copy of the user's stack, from the stack pointer upwards, only its valid part.
    pub user_stack: Option<&'a [u8]>,
    /// How many bytes of the user stack were to be copied: the requested number, or less if the
    /// record had no room for it.
    pub user_stack_room: u64,
    /// Whether the chain has what was found in a copy of the stack, which was then dropped.
    pub is_unwound: bool,
}

/// Values of one counter, or of all counters of a group.
#[derive(Clone, Copy, Debug)]
pub struct ReadValues<'a> {
    /// Whether this is a group's.
    pub group: bool,
    has_id: bool,
    stride: usize,
    words: Words<'a>,
}

impl ReadValues<'_> {
    /// Id (where it was asked for) and value of each counter.
    pub fn counters(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let words = self.words.iter();
        let values = words.clone().step_by(self.stride);
        let ids = words
            .skip(1)
            .step_by(self.stride)
            .map(Some)
            .chain(std::iter::repeat(None));
        values.zip(ids).map(|(value, id)| {
            let id = if self.has_id { id } else { None };
            (id, value)
        })
    }
}

/// The last branches that the processor took.
#[derive(Clone, Copy, Debug)]
pub struct BranchStack<'a> {
    words: Words<'a>,
}

impl BranchStack<'_> {
    /// From, to and flags of each branch, newest first.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let from = self.words.iter().step_by(3);
        let to = self.words.iter().skip(1).step_by(3);
        let flags = self.words.iter().skip(2).step_by(3);
        from.zip(to).zip(flags).map(|((f, t), flags)| (f, t, flags))
    }
}

/// Registers of a task.
#[derive(Clone, Copy, Debug)]
pub struct Registers<'a> {
    /// 32-bit task 1, 64-bit task 2.
    pub abi: u64,
    /// Which registers: bits by perf's number of the register.
    pub mask: u64,
    /// Their values in order of number.
    pub values: Words<'a>,
}

impl<'a> Sample<'a> {
    pub(super) fn parse(body: &'a [u8], event: usize, layout: &Layout) -> Result<Self, Flaw> {
        use SampleFormat as F;
        let total = body.len();
        let attr = &layout.attr;
        let format = attr.sample_format();
        let mut c = Cursor::new(body, layout.endian);
        // The fields are in the kernel's order, not in that of their bits: see PERF_RECORD_SAMPLE
        // in perf_event_open(2).
        macro_rules! field {
            ($bit:expr, $name:literal) => {
                if format.contains($bit) {
                    Some(c.u64($name)?)
                } else {
                    None
                }
            };
        }
        let identifier = field!(F::IDENTIFIER, "identifier");
        let ip = field!(F::IP, "ip");
        let (mut pid, mut tid) = (None, None);
        if format.contains(F::TID) {
            pid = Some(c.i32("pid")?);
            tid = Some(c.i32("tid")?);
        }
        let time = field!(F::TIME, "time");
        field!(F::ADDR, "addr");
        let id = identifier.or(field!(F::ID, "id"));
        field!(F::STREAM_ID, "stream id");
        let mut cpu = None;
        if format.contains(F::CPU) {
            cpu = Some(c.u32("cpu")?);
            c.u32("cpu")?;
        }
        let period = field!(F::PERIOD, "period");
        let mut read = None;
        if format.contains(F::READ) {
            read = Some(read_values(&mut c, attr.read_format)?);
        }
        let mut callchain = None;
        if format.contains(F::CALLCHAIN) {
            let count = c.u64("call chain")?;
            callchain = Some(c.words(count, "call chain")?);
        }
        let mut raw = None;
        if format.contains(F::RAW) {
            let size = c.u32("raw data")?;
            raw = Some(c.take(u64::from(size), "raw data")?);
            // The kernel pads size and data together to 8 bytes. A file whose size leaves the
            // padding out is read all the same.
            let misaligned = (total - c.left()) % 8;
            if misaligned > 0 {
                c.take(8 - misaligned as u64, "padding of raw data")?;
            }
        }
        let mut branches = None;
        if format.contains(F::BRANCH_STACK) {
            let count = c.u64("branch stack")?;
            if attr.branch_format().contains(BranchSampleFormat::HW_INDEX) {
                c.u64("branch stack")?;
            }
            let words = c.words(count.saturating_mul(3), "branch stack")?;
            branches = Some(BranchStack { words });
            if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
                c.words(count, "branch counters")?;
            }
        }
        let mut user_registers = None;
        if format.contains(F::REGS_USER) {
            user_registers = registers(&mut c, attr.sample_regs_user)?;
        }
        let mut user_stack = None;
        let mut user_stack_room = 0;
        if format.contains(F::STACK_USER) {
            let size = c.u64("user stack")?;
            user_stack_room = size;
            // Without a copy (kernel threads, no room) the number of valid bytes is missing as
            // well.
            if size > 0 {
                let bytes = c.take(size, "user stack")?;
                let valid = c.u64("user stack")?;
                let valid = usize::try_from(valid).ok().and_then(|n| bytes.get(..n));
                user_stack = Some(valid.ok_or(Flaw::Fact(
                    "more of the user stack is valid than there is of it",
                ))?);
            }
        }
        if attr.carries_copy()
            && let Some(carried) =
                raw.and_then(|raw| carried::split(raw, attr.sample_regs_user, layout.endian))
        {
            raw = Some(carried.own);
            user_registers = Some(carried.registers);
            user_stack = Some(carried.stack);
            user_stack_room = attr.sample_stack_user.into();
        }
        let is_unwound = format.contains(F::REGS_USER | F::STACK_USER)
            && user_registers.is_none()
            && user_stack.is_none()
            && callchain.is_some_and(|chain| chain.iter().any(|word| word == PERF_CONTEXT_USER));
        // Nothing behind the stack is used, but a sample without it is damaged.
        if format.intersects(F::WEIGHT | F::WEIGHT_STRUCT) {
            c.u64("weight")?;
        }
        field!(F::DATA_SRC, "data source");
        field!(F::TRANSACTION, "transaction");
        if format.contains(F::REGS_INTR) {
            registers(&mut c, attr.sample_regs_intr)?;
        }
        field!(F::PHYS_ADDR, "physical address");
        field!(F::CGROUP, "cgroup");
        field!(F::DATA_PAGE_SIZE, "data page size");
        field!(F::CODE_PAGE_SIZE, "code page size");
        if format.contains(F::AUX) {
            let size = c.u64("aux data")?;
            c.take(size, "aux data")?;
        }
        Ok(Sample {
            event,
            id,
            ip,
            pid,
            tid,
            time,
            cpu,
            period,
            read,
            callchain,
            raw,
            branches,
            user_registers,
            user_stack,
            user_stack_room,
            is_unwound,
        })
    }
}

/// `struct read_format`:
///
/// ```text
/// one counter:  u64 value; [time_enabled;] [time_running;] [id;] [lost]
/// a group:      u64 nr; [time_enabled;] [time_running;] { u64 value; [id;] [lost] }[nr]
/// ```
fn read_values<'a>(c: &mut Cursor<'a>, format: u64) -> Result<ReadValues<'a>, Flaw> {
    const WHAT: &str = "counter values";
    let group = format & PERF_FORMAT_GROUP != 0;
    let has_id = format & PERF_FORMAT_ID != 0;
    let per_value = 1 + u64::from(has_id) + u64::from(format & READ_FORMAT_LOST != 0);
    let times = u64::from(format & PERF_FORMAT_TOTAL_TIME_ENABLED != 0)
        + u64::from(format & PERF_FORMAT_TOTAL_TIME_RUNNING != 0);
    let words = if group {
        let count = c.u64(WHAT)?;
        c.words(times, WHAT)?;
        c.words(count.saturating_mul(per_value), WHAT)?
    } else {
        let value = c.words(1, WHAT)?;
        c.words(times + per_value - 1, WHAT)?;
        return Ok(ReadValues {
            group,
            has_id: false,
            stride: 1,
            words: value,
        });
    };
    Ok(ReadValues {
        group,
        has_id,
        stride: per_value as usize,
        words,
    })
}

fn registers<'a>(c: &mut Cursor<'a>, mask: u64) -> Result<Option<Registers<'a>>, Flaw> {
    let abi = c.u64("registers")?;
    if abi == 0 {
        return Ok(None);
    }
    let values = c.words(u64::from(mask.count_ones()), "registers")?;
    Ok(Some(Registers { abi, mask, values }))
}
