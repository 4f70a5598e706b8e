//! What this process may see of the kernel and of others, and what would let it see more.
//!
//! Who sees what, in Linux 6.18:
//!
//! | what | who |
//! |---|---|
//! | samples of the kernel | `perf_event_paranoid` ≤ 1, or CAP_PERFMON |
//! | names of its functions (`/proc/kallsyms`), `kptr_restrict` 0 | `perf_event_paranoid` ≤ 1, or CAP_SYSLOG |
//! | the same, `kptr_restrict` 1 | CAP_SYSLOG |
//! | the same, `kptr_restrict` 2 | nobody |
//! | what other users' processes have mapped | CAP_SYS_PTRACE; in newer kernels CAP_PERFMON too |
//!
//! Capabilities in a user namespace, as of root in some containers, are none towards the kernel.

use std::fs;

use super::limits;
use super::status::field;
use crate::base::{shell_quoted, utf8};

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
    /// The program to which capabilities can be given, quoted for a shell.
    pub program: String,
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
            program: match std::env::current_exe() {
                Ok(path) => shell_quoted(&path.to_string_lossy()),
                Err(_) => "$(command -v proftool)".to_owned(),
            },
        }
    }

    /// Returns the command that gives this program capabilities, for root to run.
    pub fn setcap(&self, capabilities: &str) -> String {
        format!("setcap {capabilities}=ep {}", self.program)
    }

    /// Returns how to record the kernel, and with the names of its functions.
    pub fn to_see_the_kernel(&self) -> String {
        let settings = self.settings().unwrap_or_else(|| "run as root".to_owned());
        if self.contained {
            return format!("outside of this container (user namespace), as root: {settings}");
        }
        match self.kptr_restrict {
            // Nobody sees the names until this is changed.
            Some(2..) => format!("run as root, or as root: {settings}"),
            _ => {
                let setcap = self.setcap("cap_perfmon,cap_syslog");
                format!("run as root, or as root: {setcap}, or {settings}")
            }
        }
    }

    /// Returns how to get the names of the kernel's functions, which are hidden now.
    pub fn to_name_the_kernel(&self) -> String {
        let elsewhere = || {
            "the settings allow them; a container or security module hides them: record outside of it"
                .to_owned()
        };
        let has_syslog = self.syslog && !self.contained;
        match (has_syslog, self.kptr_restrict) {
            (true, Some(2..)) => "as root: sysctl kernel.kptr_restrict=0".to_owned(),
            (true, _) => elsewhere(),
            (false, kptr) => match self.settings() {
                None => elsewhere(),
                Some(settings) if self.contained => {
                    format!("outside of this container (user namespace), as root: {settings}")
                }
                Some(settings) if kptr.is_some_and(|level| level >= 2) => {
                    format!("as root: {settings}")
                }
                Some(settings) => {
                    let setcap = self.setcap("cap_perfmon,cap_syslog");
                    format!("as root: {setcap}, or {settings}")
                }
            },
        }
    }

    /// The settings with which anybody sees the kernel's functions, where they are not so already.
    fn settings(&self) -> Option<String> {
        let mut settings = Vec::new();
        if self.paranoid.is_none_or(|level| level > 1) {
            settings.push("kernel.perf_event_paranoid=1".to_owned());
        }
        if self.kptr_restrict.is_some_and(|level| level > 0) {
            settings.push("kernel.kptr_restrict=0".to_owned());
        }
        (!settings.is_empty()).then(|| format!("sysctl {}", settings.join(" ")))
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

/// The effective capabilities in /proc/PID/status.
pub(super) fn capabilities(status: &str) -> u64 {
    let word = field(status, "CapEff");
    let bits = word.and_then(|word| u64::from_str_radix(word, 16).ok());
    bits.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(paranoid: i32, kptr_restrict: i32, syslog: bool) -> Rights {
        Rights {
            paranoid: Some(paranoid),
            kptr_restrict: Some(kptr_restrict),
            syslog,
            ptrace: false,
            contained: false,
            program: "/usr/bin/proftool".to_owned(),
        }
    }

    #[test]
    fn what_is_set_already_is_not_advised() {
        let setcap = "setcap cap_perfmon,cap_syslog=ep /usr/bin/proftool";
        for (state, expected) in [
            (
                (2, 0, false),
                format!("as root: {setcap}, or sysctl kernel.perf_event_paranoid=1"),
            ),
            (
                (1, 1, false),
                format!("as root: {setcap}, or sysctl kernel.kptr_restrict=0"),
            ),
            (
                (2, 1, false),
                format!(
                    "as root: {setcap}, or sysctl kernel.perf_event_paranoid=1 \
                     kernel.kptr_restrict=0"
                ),
            ),
            (
                (1, 2, false),
                "as root: sysctl kernel.kptr_restrict=0".to_owned(),
            ),
            (
                (2, 2, true),
                "as root: sysctl kernel.kptr_restrict=0".to_owned(),
            ),
        ] {
            let (paranoid, kptr, syslog) = state;
            let told = rights(paranoid, kptr, syslog).to_name_the_kernel();
            assert_eq!(told, expected, "{state:?}");
        }
        for hidden_elsewhere in [rights(1, 0, false), rights(2, 1, true)] {
            let told = hidden_elsewhere.to_name_the_kernel();
            assert!(told.contains("container or security module"), "{told}");
        }
    }

    #[test]
    fn capabilities_of_a_container_do_not_count() {
        let contained = Rights {
            contained: true,
            ..rights(2, 0, true)
        };
        for told in [
            contained.to_see_the_kernel(),
            contained.to_name_the_kernel(),
        ] {
            assert!(told.starts_with("outside of this container"), "{told}");
            assert!(
                told.ends_with("sysctl kernel.perf_event_paranoid=1"),
                "{told}"
            );
        }
    }
}
