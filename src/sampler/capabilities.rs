//! What this user may record on this machine, by its settings and by trials.
//!
//! | setting | limits |
//! |---|---|
//! | `kernel.perf_event_paranoid` | what those without privilege may sample |
//! | `kernel.kptr_restrict` | who sees the addresses of the kernel's functions |
//! | `kernel.perf_event_mlock_kb`, `ulimit -l` | how large ring buffers may be |
//! | `kernel.perf_event_max_stack` | how many frames a call chain has at most |
//! | `kernel.perf_event_max_sample_rate` | how often may be sampled |
//!
//! Settings are not everything: containers, security modules and virtual machines have restrictions
//! of their own. So events are opened for a trial, and closed before they count anything.

use std::fs::File;
use std::io::{self, Read};

use super::events::attr::{Allowed, Common, attr};
use super::events::event::EventSpec;
use super::events::rate::Rate;
use super::events::stacks::{CopySize, Stacks};
use super::kernel::{self, Who};
use super::rights::{Rights, capabilities};
use super::status::field;
use super::{host, limits};
use crate::base::system_reason;

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

/// The result of opening an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It was opened.
    Works,
    /// It was refused.
    Refused {
        /// What the system says.
        reason: String,
        /// Whether it is a matter of privilege, not of what there is.
        forbidden: bool,
    },
}

impl Trial {
    /// Whether it was opened.
    pub fn works(&self) -> bool {
        *self == Trial::Works
    }
}

/// What this user may record on this machine. Settings are `None` where they cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The rights of this process, with `kernel.perf_event_paranoid` and `kernel.kptr_restrict`.
    pub rights: Rights,
    /// `kernel.perf_event_mlock_kb`: KiB of buffers for each processor beyond the limit of locked
    /// memory.
    pub mlock_kib: Option<u64>,
    /// The limit of locked memory of this process in KiB (`ulimit -l`); `None` if there is none.
    pub locked_kib: Option<u64>,
    /// `kernel.perf_event_max_stack`, in frames.
    pub max_stack: Option<u16>,
    /// `kernel.perf_event_max_sample_rate`, in Hz.
    pub max_sample_rate: Option<u64>,
    /// The number of processors.
    pub processors: usize,
    /// Whether this process is root's, with all capabilities for recording.
    pub root: bool,
    /// Whether it has CAP_PERFMON.
    pub perfmon: bool,
    /// Whether the limits of locked memory hold for it.
    pub lock_limited: bool,
    /// Whether a seccomp filter decides on its system calls, as in containers.
    pub seccomp: bool,
    /// The clock, in programs of this user.
    pub clock: Trial,
    /// The clock, with the kernel's part of these programs.
    pub kernel: Trial,
    /// The clock, with the stack copied.
    pub copies: Trial,
    /// The processor's counter of cycles.
    pub cycles: Trial,
    /// A whole processor, all users' programs.
    pub everything: Trial,
    /// Whether the kernel shows the addresses of its functions.
    pub kernel_symbols: bool,
}

impl Capabilities {
    /// Reads the settings, and opens events for a trial.
    pub fn look() -> Capabilities {
        let clock = EventSpec::cpu_clock();
        let status = read("/proc/self/status").unwrap_or_default();
        let capabilities = capabilities(&status);
        let rights = Rights::look();
        // The kernel asks for capabilities of the machine, not of a container.
        let has = |number: u32| capabilities >> number & 1 == 1 && !rights.contained;
        Capabilities {
            mlock_kib: limits::setting("/proc/sys/kernel/perf_event_mlock_kb"),
            locked_kib: locked_kib(&read("/proc/self/limits").unwrap_or_default()),
            max_stack: limits::max_stack(),
            max_sample_rate: limits::setting("/proc/sys/kernel/perf_event_max_sample_rate"),
            processors: host::online_processors().len(),
            root: has(CAP_SYS_ADMIN),
            perfmon: has(CAP_PERFMON) || has(CAP_SYS_ADMIN),
            lock_limited: !has(CAP_IPC_LOCK),
            seccomp: field(&status, "Seccomp").is_some_and(|mode| mode != "0"),
            clock: open(&clock, false, Stacks::FramePointers, 0, -1),
            kernel: open(&clock, true, Stacks::FramePointers, 0, -1),
            copies: open(&clock, false, Stacks::Copies(CopySize::default()), 0, -1),
            cycles: open(&EventSpec::cycles(), false, Stacks::None, 0, -1),
            everything: open(&clock, true, Stacks::None, -1, 0),
            kernel_symbols: shows_addresses(),
            rights,
        }
    }

    /// The maximum size of each processor's buffer in KiB, a power of two; `None` if there is no
    /// limit.
    pub fn ring_kib(&self) -> Option<u64> {
        if !self.lock_limited {
            return None;
        }
        let processors = self.processors.max(1) as u64;
        let each = self
            .mlock_kib?
            .saturating_add(self.locked_kib? / processors);
        // The page before the data counts too.
        let page = kernel::page_size() as u64 / 1024;
        Some(match each.saturating_sub(page) {
            0 => 0,
            kib => 1 << kib.ilog2(),
        })
    }
}

/// Whether a process can be sampled by this user: the clock, without the kernel's part.
pub(super) fn try_process(pid: i32) -> Trial {
    open(
        &EventSpec::cpu_clock(),
        false,
        Stacks::FramePointers,
        pid,
        -1,
    )
}

/// Opens an event, which never begins to count, and closes it.
fn open(event: &EventSpec, with_kernel: bool, stacks: Stacks, pid: i32, cpu: i32) -> Trial {
    // What newer kernels added is not what is tried here.
    let allowed = Allowed {
        kernel: with_kernel,
        inherited_reads: false,
        lost: false,
        build_id: false,
        kernel_code: false,
        clock: false,
    };
    let common = Common {
        rate: Rate::Frequency(99),
        rate_chosen: false,
        stacks,
        unwinds: false,
        max_stack: 0,
        allowed,
        watermark: 4096,
        at_once: true,
        inherit: true,
    };
    let mut attr = attr(event, 0, &common, false);
    attr.set_disabled(1);
    let who = match pid {
        -1 => Who::Everyone,
        pid => Who::Task(pid),
    };
    match kernel::open_event(&attr, who, cpu, None) {
        Ok(_) => Trial::Works,
        Err(error) => Trial::Refused {
            forbidden: matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)),
            reason: system_reason(&error),
        },
    }
}

pub(super) fn permits(pid: i32) -> bool {
    let trial = open(&EventSpec::cpu_clock(), false, Stacks::None, pid, -1);
    !matches!(trial, Trial::Refused { forbidden, .. } if forbidden)
}

// The limit of locked memory in /proc/PID/limits, which has bytes or `unlimited`.
fn locked_kib(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    let bytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(bytes / 1024)
}

// Whether /proc/kallsyms has addresses: where they are hidden, all are zero.
fn shows_addresses() -> bool {
    let mut start = [0; 4096];
    let file = File::open("/proc/kallsyms");
    let Ok(length) = file.and_then(|mut file| file.read(&mut start)) else {
        return false;
    };
    let digits = start[..length].split(|byte| *byte == b'\n');
    digits
        .filter_map(|line| line.split(|byte| *byte == b' ').next())
        .any(|address| address.len() >= 8 && address.iter().any(|digit| *digit != b'0'))
}

fn read(path: &str) -> io::Result<String> {
    std::fs::read(path).map(|bytes| crate::base::utf8(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_locked_memory_may_be_absent() {
        let limits =
            "Limit   Soft Limit  Hard Limit  Units\nMax locked memory  8388608  8388608  bytes\n";
        assert_eq!(locked_kib(limits), Some(8192));
        assert_eq!(
            locked_kib("Max locked memory  unlimited  unlimited  bytes"),
            None
        );
        assert_eq!(locked_kib(""), None);
    }

    #[test]
    fn buffers_share_the_limit_of_locked_memory() {
        let mut machine = Capabilities::look();
        machine.lock_limited = true;
        machine.mlock_kib = Some(516);
        machine.processors = 2;
        machine.locked_kib = Some(8192);
        assert_eq!(machine.ring_kib(), Some(4096));
        machine.locked_kib = Some(0);
        assert_eq!(machine.ring_kib(), Some(512));
        machine.mlock_kib = Some(0);
        assert_eq!(machine.ring_kib(), Some(0));
        machine.lock_limited = false;
        assert_eq!(machine.ring_kib(), None);
    }
}
