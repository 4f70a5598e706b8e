//! What this process may see of the kernel and of other processes.
//!
//! Who may see what, in Linux 6.18:
//!
//! | what | who |
//! |---|---|
//! | samples of the kernel | `perf_event_paranoid` ≤ 1, or CAP_PERFMON |
//! | its symbols (`/proc/kallsyms`), `kptr_restrict` 0 | `perf_event_paranoid` ≤ 1, or CAP_SYSLOG |
//! | its symbols, `kptr_restrict` 1 | CAP_SYSLOG |
//! | its symbols, `kptr_restrict` 2 | nobody |
//! | what other users' processes have mapped | CAP_SYS_PTRACE; in newer kernels CAP_PERFMON too |
//!
//! Capabilities that were given in a user namespace, such as those of root in some containers, have
//! no effect on what the kernel allows here.

use std::fs;
use std::path::PathBuf;

use super::limits;
use super::status::field;
use crate::base::utf8;

const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYSLOG: u32 = 34;

/// The rights of this process, and the settings that they depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// `kernel.perf_event_paranoid`, if it can be read.
    pub paranoid: Option<i32>,
    /// `kernel.kptr_restrict`, if it can be read.
    pub kptr_restrict: Option<i32>,
    /// Whether this process has CAP_SYSLOG.
    pub syslog: bool,
    /// Whether this process has CAP_SYS_PTRACE.
    pub ptrace: bool,
    /// Whether it is in a user namespace other than the machine's first.
    pub contained: bool,
    /// The running program, to which capabilities can be given; `None` if its path cannot be read.
    pub program: Option<PathBuf>,
}

impl Rights {
    /// Looks at this process and the settings.
    pub fn look() -> Rights {
        let status = fs::read("/proc/self/status").unwrap_or_default();
        let has = |number| capabilities(&utf8(&status)) >> number & 1 == 1;
        let users = fs::read("/proc/self/uid_map").unwrap_or_default();
        let users = utf8(&users);
        let everybody = ["0", "0", "4294967295"];
        Rights {
            paranoid: limits::paranoid(),
            kptr_restrict: limits::setting("/proc/sys/kernel/kptr_restrict"),
            syslog: has(CAP_SYSLOG),
            ptrace: has(CAP_SYS_PTRACE),
            contained: !users.is_empty() && !users.split_whitespace().eq(everybody),
            program: std::env::current_exe().ok(),
        }
    }
}

/// The number of this process's group, to which the files of tracefs can be given: they are not for
/// everybody, whatever the mode of its directory.
pub(super) fn group() -> u32 {
    let status = fs::read("/proc/self/status").unwrap_or_default();
    let status = utf8(&status);
    let real = field(&status, "Gid").and_then(|groups| groups.split_whitespace().next());
    real.and_then(|group| group.parse().ok())
        .unwrap_or_default()
}

pub(super) fn capabilities(status: &str) -> u64 {
    let word = field(status, "CapEff");
    let bits = word.and_then(|word| u64::from_str_radix(word, 16).ok());
    bits.unwrap_or(0)
}
