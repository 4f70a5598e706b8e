//! Records that a recorder makes itself, because the kernel has no event for them, or had it
//! before the recording began.

use linux_perf_event_reader::constants as c;

use crate::base::BuildId;
use crate::perfdata::user;

// Longer than any path that a kernel can have; a record's size has 16 bits.
const NAME_MAX: usize = 4095;

/// What identifies a record: what follows it when the events have `sample_id_all` and sample TID,
/// TIME, CPU and IDENTIFIER. All zero: before everything else.
#[derive(Clone, Copy, Debug, Default)]
struct SampleId {
    pid: i32,
    tid: i32,
    time: u64,
}

const SAMPLE_ID_SIZE: usize = 32;

/// The record that ends a pass over all buffers. Its bytes are the same in each byte order but
/// for their places.
pub const FINISHED_ROUND: [u8; 8] = if cfg!(target_endian = "little") {
    [user::FINISHED_ROUND as u8, 0, 0, 0, 0, 0, 8, 0]
} else {
    [0, 0, 0, user::FINISHED_ROUND as u8, 0, 0, 0, 8]
};

/// Where the kernel's image or one of its modules lies in memory.
///
/// The kernel reports mappings only when they are made; its own were made long before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMapping {
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

impl KernelMapping {
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
        put_name(&mut body, &self.name, NAME_MAX);
        record(c::PERF_RECORD_MMAP, c::PERF_RECORD_MISC_KERNEL, &body)
    }
}

/// What a process has mapped when the recording begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMapping {
    /// The first address.
    pub start: u64,
    /// The length in bytes.
    pub len: u64,
    /// The position in the file of what is at `start`.
    pub page_offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    pub inode: u64,
    /// The file's build id, which takes the place of device and inode.
    pub build_id: Option<BuildId>,
    /// `PROT_READ`, `PROT_WRITE`, `PROT_EXEC`.
    pub protection: u32,
    /// `MAP_SHARED` or `MAP_PRIVATE`.
    pub flags: u32,
    /// Whether it is not to be executed.
    pub data: bool,
    /// The file's path as the process has it, `//anon` for none.
    pub name: Vec<u8>,
}

impl UserMapping {
    /// The mapping as an MMAP2 record of process `pid`.
    ///
    /// ```c
    /// struct { struct perf_event_header; u32 pid, tid; u64 addr, len, pgoff;
    ///          union { struct { u32 maj, min; u64 ino, ino_generation; };
    ///                  struct { u8 build_id_size, reserved[3]; u8 build_id[20]; }; };
    ///          u32 prot, flags; char filename[]; struct sample_id; };
    /// ```
    pub fn record(&self, pid: i32) -> Vec<u8> {
        let mut body = Vec::with_capacity(192);
        let mut misc = c::PERF_RECORD_MISC_USER;
        body.extend(pid.to_ne_bytes());
        body.extend(pid.to_ne_bytes());
        for word in [self.start, self.len, self.page_offset] {
            body.extend(word.to_ne_bytes());
        }
        if let Some(build_id) = &self.build_id {
            misc |= c::PERF_RECORD_MISC_MMAP_BUILD_ID;
            let bytes = build_id.bytes();
            let bytes = &bytes[..bytes.len().min(20)];
            body.extend([bytes.len() as u8, 0, 0, 0]);
            body.extend(bytes);
            body.resize(body.len() + 20 - bytes.len(), 0);
        } else {
            body.extend(self.device.0.to_ne_bytes());
            body.extend(self.device.1.to_ne_bytes());
            body.extend(self.inode.to_ne_bytes());
            body.extend(0u64.to_ne_bytes());
        }
        if self.data {
            misc |= c::PERF_RECORD_MISC_MMAP_DATA;
        }
        body.extend(self.protection.to_ne_bytes());
        body.extend(self.flags.to_ne_bytes());
        put_name(&mut body, &self.name, NAME_MAX);
        record(c::PERF_RECORD_MMAP2, misc, &body)
    }
}

/// A COMM record: the name of a thread.
///
/// ```c
/// struct { struct perf_event_header; u32 pid, tid; char comm[]; struct sample_id; };
/// ```
pub fn comm_record(pid: i32, tid: i32, name: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(24);
    body.extend(pid.to_ne_bytes());
    body.extend(tid.to_ne_bytes());
    // The kernel's names have at most 15 bytes, those of its own threads may have more.
    put_name(&mut body, name, 63);
    record(c::PERF_RECORD_COMM, 0, &body)
}

/// A FORK record that makes `tid` a thread of process `pid`.
///
/// ```c
/// struct { struct perf_event_header; u32 pid, ppid; u32 tid, ptid; u64 time; struct sample_id; };
/// ```
pub fn thread_record(pid: i32, tid: i32) -> Vec<u8> {
    let numbers = [pid, pid, tid, pid].map(i32::to_ne_bytes);
    let body = [numbers.concat(), 0u64.to_ne_bytes().to_vec()].concat();
    record(c::PERF_RECORD_FORK, c::PERF_RECORD_MISC_FORK_EXEC, &body)
}

/// A LOST_SAMPLES record: the kernel counted `lost` samples that it could not deliver and that no
/// record reports.
///
/// ```c
/// struct { struct perf_event_header; u64 lost; struct sample_id; };
/// ```
pub fn lost_samples_record(lost: u64) -> Vec<u8> {
    record(c::PERF_RECORD_LOST_SAMPLES, 0, &lost.to_ne_bytes())
}

/// A record that states that the recording lasted until `time`: LOST_SAMPLES with 0 samples. It is
/// needed where nothing else was recorded at the end.
pub fn time_record(time: u64) -> Vec<u8> {
    let id = SampleId {
        time,
        ..SampleId::default()
    };
    record_with(c::PERF_RECORD_LOST_SAMPLES, 0, &0u64.to_ne_bytes(), &id)
}

/// A SWITCH record of a thread that was off the processor when the recording began. Its time is 0.
///
/// ```c
/// struct { struct perf_event_header; struct sample_id; };
/// ```
pub fn blocked_record(pid: i32, tid: i32) -> Vec<u8> {
    let id = SampleId { pid, tid, time: 0 };
    record_with(
        c::PERF_RECORD_SWITCH,
        c::PERF_RECORD_MISC_SWITCH_OUT,
        &[],
        &id,
    )
}

/// A READ record: at `time` the event of `id` had counted `value`, in everything that is recorded,
/// since the READ record before. The kernel writes such records of single threads.
///
/// ```c
/// struct { struct perf_event_header; u32 pid, tid; u64 value, id; [u64 lost;] struct sample_id; };
/// ```
pub fn count_record(time: u64, id: u64, value: u64, lost: Option<u64>) -> Vec<u8> {
    let mut body = [u8::MAX; 8].to_vec();
    for word in [Some(value), Some(id), lost].into_iter().flatten() {
        body.extend(word.to_ne_bytes());
    }
    let id = SampleId {
        time,
        ..SampleId::default()
    };
    record_with(c::PERF_RECORD_READ, 0, &body, &id)
}

/// A string that ends with zero and fills whole words.
fn put_name(body: &mut Vec<u8>, name: &[u8], most: usize) {
    body.extend(name.iter().take(most));
    body.push(0);
    body.resize(body.len().next_multiple_of(8), 0);
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    record_with(kind, misc, body, &SampleId::default())
}

fn record_with(kind: u32, misc: u16, body: &[u8], id: &SampleId) -> Vec<u8> {
    let size = 8 + body.len() + SAMPLE_ID_SIZE;
    let size = u16::try_from(size).expect("the bodies made here are far below 64 KiB");
    let mut record = Vec::with_capacity(usize::from(size));
    record.extend(kind.to_ne_bytes());
    record.extend(misc.to_ne_bytes());
    record.extend(size.to_ne_bytes());
    record.extend(body);
    record.extend(id.pid.to_ne_bytes());
    record.extend(id.tid.to_ne_bytes());
    record.extend(id.time.to_ne_bytes());
    // Processor and identifier.
    record.extend([0; 16]);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_sizes_are_correct_multiples_of_eight() {
        for name in ["", "a", "[kernel.kallsyms]_text", "1234567"] {
            let record = KernelMapping {
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
        assert_eq!(comm_record(1, 1, b"seven67").len(), 8 + 8 + 8 + 32);
        assert_eq!(comm_record(1, 1, b"eight678").len(), 8 + 8 + 16 + 32);
        assert_eq!(thread_record(1, 2).len(), 8 + 24 + 32);
        assert_eq!(time_record(9).len(), 8 + 8 + 32);
        assert_eq!(blocked_record(1, 2).len(), 8 + 32);
        assert_eq!(count_record(9, 1, 2, None).len(), 8 + 24 + 32);
        assert_eq!(count_record(9, 1, 2, Some(0)).len(), 8 + 32 + 32);
    }

    #[test]
    fn a_build_id_takes_the_place_of_device_and_inode() {
        let mut mapping = UserMapping {
            start: 0x1000,
            len: 0x2000,
            page_offset: 0x3000,
            device: (8, 1),
            inode: 77,
            build_id: None,
            protection: 5,
            flags: 2,
            data: false,
            name: b"/usr/bin/prog".to_vec(),
        };
        let by_inode = mapping.record(9);
        mapping.build_id = BuildId::new(&[0xab; 16]);
        let by_build = mapping.record(9);
        assert_eq!(by_inode.len(), by_build.len());
        assert_eq!(by_inode[48..56], 77u64.to_ne_bytes());
        assert_eq!(by_build[40..44], [16, 0, 0, 0]);
        assert_eq!(by_build[44..64], [[0xab; 16].as_slice(), &[0; 4]].concat());
        assert_eq!(by_build[64..72], by_inode[64..72]);
        assert_eq!(&by_inode[72..86], b"/usr/bin/prog\0");
        assert_eq!(by_build[4..6], (2 | 1u16 << 14).to_ne_bytes());
    }
}
