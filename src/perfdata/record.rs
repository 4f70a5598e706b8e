//! Records: what a recording is made of.
//!
//! ```text
//! struct perf_event_header { u32 type; u16 misc; u16 size; }   then size - 8 bytes
//! ```
//!
//! The layouts of records that are not samples come from `linux-perf-event-reader`; what it would
//! assert or has no type for is checked and read here.

use linux_perf_event_reader::{
    CommOrExecRecord, Endianness, ForkOrExitRecord, LostRecord, Mmap2FileId, Mmap2Record,
    MmapRecord, RawData, RecordType, constants,
};

use crate::base::{BuildId, FileId};

use super::buffers::{Owner, SharedBytes};
use super::cursor::Cursor;
use super::error::Flaw;
use super::origin::Origin;
use super::sample::Sample;

/// One record, borrowed from the reader's buffers.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// The type by number, with perf's name in [`type_name`].
    pub kind: u32,
    /// The header's flags.
    pub misc: u16,
    /// Where it stands in the file (or, in compressed data, where its block does).
    pub offset: u64,
    /// Its time in nanoseconds, where it has one.
    pub time: Option<u64>,
    /// Where a record comes from that is not a sample; a sample has this among its fields.
    pub origin: Origin,
    pub body: Body<'a>,
    /// What is behind the header.
    #[cfg(feature = "record")]
    pub(super) body_bytes: &'a [u8],
    pub(super) owner: Owner<'a>,
}

impl Record<'_> {
    /// Bytes of this record, such as a copied stack, for longer than the record is there, without
    /// a copy where that can be. They keep the reader's buffer that they are in: up to a megabyte.
    pub fn share(&self, bytes: &[u8]) -> SharedBytes {
        self.owner.share(bytes)
    }

    /// Whether it speaks of the kernel, user space or a guest.
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::of_misc(self.misc)
    }
}

/// Where the processor ran when a record was made (`PERF_RECORD_MISC_CPUMODE_MASK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuMode {
    /// The record does not say.
    Unknown,
    Kernel,
    User,
    /// In the hypervisor or a virtual machine.
    Other,
}

impl CpuMode {
    fn of_misc(misc: u16) -> CpuMode {
        match misc & constants::PERF_RECORD_MISC_CPUMODE_MASK {
            constants::PERF_RECORD_MISC_KERNEL => CpuMode::Kernel,
            constants::PERF_RECORD_MISC_USER => CpuMode::User,
            constants::PERF_RECORD_MISC_HYPERVISOR
            | constants::PERF_RECORD_MISC_GUEST_KERNEL
            | constants::PERF_RECORD_MISC_GUEST_USER => CpuMode::Other,
            _ => CpuMode::Unknown,
        }
    }
}

/// What a record says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Body<'a> {
    Sample(Sample<'a>),
    /// Something was mapped (MMAP and MMAP2).
    Mapping(Mapping<'a>),
    /// A thread has a new name.
    Name {
        pid: i32,
        tid: i32,
        name: &'a [u8],
        /// Whether it came with a new program (exec).
        exec: bool,
    },
    /// A thread or process began.
    Fork(Task),
    /// A thread or process ended.
    Exit(Task),
    /// The kernel had no room for this many records.
    Lost(u64),
    /// The hardware dropped this many samples.
    LostSamples(u64),
    /// Sampling was held back, or let go again.
    Throttle {
        /// Whether it was held back.
        on: bool,
    },
    /// What an event has counted.
    Read {
        /// The process; -1 for the sum of all that was recorded, as proftool writes it.
        pid: i32,
        value: u64,
        /// The word behind it: the event's id, unless the event was asked for times.
        id: Option<u64>,
    },
    /// A thread, which [`Record::origin`] names, leaves a processor or comes to one (SWITCH and
    /// SWITCH_CPU_WIDE).
    Switch {
        out: bool,
        /// Whether it leaves although it could go on: another one has the processor now.
        preempted: bool,
    },
    /// Code appeared in or vanished from the kernel.
    KernelSymbol {
        /// The address of the first instruction.
        address: u64,
        /// Its size in bytes.
        size: u32,
        removed: bool,
        name: &'a [u8],
    },
    /// Any other record.
    Other(&'a [u8]),
}

/// `PERF_RECORD_MMAP` and `PERF_RECORD_MMAP2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// The process; -1 for the kernel.
    pub pid: i32,
    pub tid: i32,
    /// The first address.
    pub address: u64,
    /// The size in bytes.
    pub length: u64,
    /// The place in the file that the first address shows.
    pub page_offset: u64,
    /// Whether code may run there.
    pub executable: bool,
    /// The file's build ID, if the kernel recorded it.
    pub build_id: Option<BuildId>,
    /// Which file it is, if the kernel recorded that instead.
    pub file: Option<FileId>,
    pub path: &'a [u8],
}

/// `PERF_RECORD_FORK` and `PERF_RECORD_EXIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub pid: i32,
    pub parent_pid: i32,
    pub tid: i32,
    /// The thread that made it.
    pub parent_tid: i32,
}

/// Reads the fields of a record that is not a sample. `fields` has no `struct sample_id` any more.
pub(super) fn parse_fields<'a>(
    kind: RecordType,
    misc: u16,
    fields: &'a [u8],
    endian: Endianness,
) -> Result<Body<'a>, Flaw> {
    match endian {
        Endianness::LittleEndian => parse::<byteorder::LittleEndian>(kind, misc, fields, endian),
        Endianness::BigEndian => parse::<byteorder::BigEndian>(kind, misc, fields, endian),
    }
}

fn parse<'a, T: byteorder::ByteOrder>(
    kind: RecordType,
    misc: u16,
    fields: &'a [u8],
    endian: Endianness,
) -> Result<Body<'a>, Flaw> {
    let too_short = Flaw::Short {
        what: "the record",
        needed: least_size(kind) as u64 + 8,
        left: fields.len() as u64 + 8,
    };
    let is_whole = fields.len() >= least_size(kind);
    let whole = is_whole.then_some(()).ok_or(too_short);
    let short = |_: std::io::Error| too_short;
    let data = RawData::Single(fields);
    Ok(match kind {
        RecordType::MMAP => {
            let m = MmapRecord::parse::<T>(data, misc).map_err(short)?;
            Body::Mapping(Mapping {
                pid: m.pid,
                tid: m.tid,
                address: m.address,
                length: m.length,
                page_offset: m.page_offset,
                executable: m.is_executable,
                build_id: None,
                file: None,
                path: single(m.path),
            })
        }
        RecordType::MMAP2 => {
            // A build id has at most 20 bytes, which the parser asserts. With more it is something
            // else: the mapping is still good.
            let is_too_long = fields.get(32).is_some_and(|&len| len > 20);
            let kept = if is_too_long {
                misc & !constants::PERF_RECORD_MISC_MMAP_BUILD_ID
            } else {
                misc
            };
            let m = Mmap2Record::parse::<T>(data, kept).map_err(short)?;
            Body::Mapping(Mapping {
                pid: m.pid,
                tid: m.tid,
                address: m.address,
                length: m.length,
                page_offset: m.page_offset,
                executable: misc & constants::PERF_RECORD_MISC_MMAP_DATA == 0,
                build_id: match &m.file_id {
                    Mmap2FileId::BuildId(bytes) => BuildId::new(bytes),
                    Mmap2FileId::InodeAndVersion(_) => None,
                },
                file: match m.file_id {
                    // What is no file has no inode.
                    Mmap2FileId::InodeAndVersion(file) if file.inode != 0 => Some(FileId {
                        device: (file.major, file.minor),
                        inode: file.inode,
                        // The kernel's is a u32, too.
                        generation: file.inode_generation as u32,
                    }),
                    _ => None,
                },
                path: single(m.path),
            })
        }
        RecordType::COMM => {
            let comm = CommOrExecRecord::parse::<T>(data, misc).map_err(short)?;
            Body::Name {
                pid: comm.pid,
                tid: comm.tid,
                name: single(comm.name),
                exec: comm.is_execve,
            }
        }
        RecordType::FORK | RecordType::EXIT => {
            let t = ForkOrExitRecord::parse::<T>(data).map_err(short)?;
            let task = Task {
                pid: t.pid,
                parent_pid: t.ppid,
                tid: t.tid,
                parent_tid: t.ptid,
            };
            match kind {
                RecordType::FORK => Body::Fork(task),
                _ => Body::Exit(task),
            }
        }
        RecordType::LOST => Body::Lost(LostRecord::parse::<T>(data).map_err(short)?.count),
        RecordType::LOST_SAMPLES => {
            Body::LostSamples(Cursor::new(fields, endian).u64("the count of lost samples")?)
        }
        RecordType::THROTTLE | RecordType::UNTHROTTLE => {
            whole?;
            Body::Throttle {
                on: kind == RecordType::THROTTLE,
            }
        }
        RecordType::READ => {
            whole?;
            let mut c = Cursor::new(fields, endian);
            let pid = c.u32("the process")? as i32;
            let _tid = c.u32("the thread")?;
            Body::Read {
                pid,
                value: c.u64("the count")?,
                id: c.u64("the event's id").ok(),
            }
        }
        RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => {
            whole?;
            Body::Switch {
                out: misc & constants::PERF_RECORD_MISC_SWITCH_OUT != 0,
                preempted: misc & constants::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0,
            }
        }
        RecordType::KSYMBOL => {
            let mut c = Cursor::new(fields, endian);
            let address = c.u64("the symbol's address")?;
            let size = c.u32("the symbol's size")?;
            let _kind = c.u16("the symbol's type")?;
            let flags = c.u16("the symbol's flags")?;
            Body::KernelSymbol {
                address,
                size,
                removed: flags & 1 != 0,
                name: c.text(),
            }
        }
        RecordType::CGROUP => {
            Cursor::new(fields, endian).u64("the cgroup's id")?;
            Body::Other(fields)
        }
        RecordType::NAMESPACES => {
            let mut c = Cursor::new(fields, endian);
            c.take(8, "the thread")?;
            let count = c.u64("the number of namespaces")?;
            c.words(count.saturating_mul(2), "the list of namespaces")?;
            Body::Other(fields)
        }
        _ => {
            whole?;
            Body::Other(fields)
        }
    })
}

fn single(data: RawData<'_>) -> &[u8] {
    match data {
        RawData::Single(bytes) | RawData::Split(bytes, _) => bytes,
    }
}

pub(super) fn least_size(kind: RecordType) -> usize {
    use constants as c;
    match kind.0 {
        c::PERF_RECORD_MMAP => 32,
        c::PERF_RECORD_MMAP2 => 64,
        c::PERF_RECORD_COMM => 8,
        c::PERF_RECORD_EXIT | c::PERF_RECORD_FORK => 24,
        c::PERF_RECORD_LOST | c::PERF_RECORD_READ => 16,
        c::PERF_RECORD_THROTTLE | c::PERF_RECORD_UNTHROTTLE => 24,
        c::PERF_RECORD_AUX => 24,
        c::PERF_RECORD_ITRACE_START | c::PERF_RECORD_LOST_SAMPLES => 8,
        c::PERF_RECORD_SWITCH_CPU_WIDE => 8,
        c::PERF_RECORD_NAMESPACES => 16,
        c::PERF_RECORD_KSYMBOL => 16,
        c::PERF_RECORD_BPF_EVENT => 16,
        c::PERF_RECORD_CGROUP => 8,
        c::PERF_RECORD_TEXT_POKE => 12,
        c::PERF_RECORD_AUX_OUTPUT_HW_ID => 8,
        _ => user_type(kind.0).map_or(0, |(_, least)| least),
    }
}

/// Records that perf itself writes, by number from 64: name and least size behind the header.
const USER_TYPES: [(&str, usize); 20] = [
    ("ATTR", 64),
    ("EVENT_TYPE", 8),
    ("TRACING_DATA", 4),
    ("BUILD_ID", 28),
    ("FINISHED_ROUND", 0),
    ("ID_INDEX", 8),
    ("AUXTRACE_INFO", 8),
    ("AUXTRACE", 40),
    ("AUXTRACE_ERROR", 40),
    ("THREAD_MAP", 8),
    ("CPU_MAP", 2),
    ("STAT_CONFIG", 8),
    ("STAT", 16),
    ("STAT_ROUND", 16),
    ("EVENT_UPDATE", 16),
    ("TIME_CONV", 24),
    ("FEATURE", 8),
    ("COMPRESSED", 1),
    ("FINISHED_INIT", 0),
    ("COMPRESSED2", 8),
];

fn user_type(number: u32) -> Option<(&'static str, usize)> {
    let index = number.checked_sub(constants::PERF_RECORD_USER_TYPE_START)?;
    USER_TYPES.get(usize::try_from(index).ok()?).copied()
}

/// perf's name of a record type; `None` for one that is not known.
///
/// ```
/// use proftool::perfdata::type_name;
/// assert_eq!(type_name(9), Some("SAMPLE"));
/// assert_eq!(type_name(71), Some("AUXTRACE"));
/// assert_eq!(type_name(50), None);
/// ```
pub fn type_name(number: u32) -> Option<&'static str> {
    const KERNEL: [&str; 21] = [
        "MMAP",
        "LOST",
        "COMM",
        "EXIT",
        "THROTTLE",
        "UNTHROTTLE",
        "FORK",
        "READ",
        "SAMPLE",
        "MMAP2",
        "AUX",
        "ITRACE_START",
        "LOST_SAMPLES",
        "SWITCH",
        "SWITCH_CPU_WIDE",
        "NAMESPACES",
        "KSYMBOL",
        "BPF_EVENT",
        "CGROUP",
        "TEXT_POKE",
        "AUX_OUTPUT_HW_ID",
    ];
    let kernel = usize::try_from(number).ok()?.checked_sub(1)?;
    KERNEL
        .get(kernel)
        .copied()
        .or_else(|| user_type(number).map(|(name, _)| name))
}

/// `NAME (number)`, or the number alone.
pub(super) fn describe_type(number: u32) -> String {
    match type_name(number) {
        Some(name) => format!("{name} ({number})"),
        None => format!("type {number}"),
    }
}
