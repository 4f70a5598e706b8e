//! The programs whose calls are not counted, and why.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::sampler::error::Error;
use crate::sampler::status::field;
use crate::sampler::targets::command::Command;
use crate::sampler::targets::tracee;

const SET_ID: u32 = 0o6000;

/// Why memory cannot be mapped into a process, if so.
pub(super) fn refuse_changing(pid: i32) -> Result<(), String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = |name| field(&status, name).and_then(|value| value.parse::<u64>().ok());
    if let Some(tracer) = number("TracerPid").filter(|&tracer| tracer != 0) {
        return Err(format!("process {tracer} traces it"));
    }
    if number("Seccomp").is_some_and(|mode| mode != 0) {
        let reason =
            "it runs under seccomp, which may forbid the system calls that map the counters";
        return Err(reason.into());
    }
    let users = field(&status, "Uid").unwrap_or_default();
    let mut users = users.split_ascii_whitespace();
    let real = users.next();
    if users.any(|user| Some(user) != real) {
        return Err("it runs with the rights of another user (set-user-ID)".into());
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    users: String,
    groups: String,
    capabilities: u64,
}

impl Credentials {
    pub(super) fn of(pid: i32) -> Credentials {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let text = |name| field(&status, name).unwrap_or_default().to_owned();
        Credentials {
            users: text("Uid"),
            groups: text("Gid"),
            // What is not known may be all.
            capabilities: u64::from_str_radix(&text("CapEff"), 16).unwrap_or(u64::MAX),
        }
    }

    /// Why a process must not be changed that has these rights now, if so: whoever had the former
    /// ones can write the memory of the stubs.
    pub(super) fn refuse_more(&self, now: &Credentials) -> Result<(), String> {
        let has_more = now.capabilities & !self.capabilities != 0;
        if has_more || (&now.users, &now.groups) != (&self.users, &self.groups) {
            return Err("it has gained privileges, and would share code with others".into());
        }
        Ok(())
    }
}

/// Whether a thread has restricted its system calls more than this process has, from which it may
/// have inherited that.
pub(super) fn is_restricted(thread: i32) -> bool {
    // The mode, and the number of filters (from Linux 5.9 on).
    let restrictions = |thread: &str| -> Option<[u64; 2]> {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        let number = |name| field(&status, name).and_then(|value| value.parse().ok());
        Some([number("Seccomp")?, number("Seccomp_filters").unwrap_or(0)])
    };
    let own = restrictions("thread-self");
    restrictions(&thread.to_string())
        .zip(own)
        .is_some_and(|(other, own)| other.iter().zip(own).any(|(other, own)| *other > own))
}

// Under a tracer without privileges, a program does not gain any by being run.
pub(super) fn refuse_privileges(command: &Command) -> Result<(), Error> {
    let program = Path::new(std::ffi::OsStr::from_bytes(command.program.as_bytes()));
    refuse_gains(program).map_err(|reason| Error::Counting {
        action: "count the program's calls",
        reason,
    })
}

/// Why a program must not be executed under a tracer, if so.
pub(super) fn refuse_gains(program: &Path) -> Result<(), String> {
    let owner = own_user();
    if owner == 0 {
        return Ok(());
    }
    let metadata = fs::metadata(program);
    let has_capabilities = CString::new(program.as_os_str().as_bytes())
        .is_ok_and(|program| tracee::has_capabilities(&program));
    if metadata.is_ok_and(|found| found.mode() & SET_ID != 0 && found.uid() != owner)
        || has_capabilities
    {
        return Err(format!(
            "{} gains privileges when it is run, and would run without them",
            program.display()
        ));
    }
    Ok(())
}

// The user of this process. What root traces gains privileges as ever.
pub(super) fn own_user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

/// Who may trace whom (`Documentation/admin-guide/LSM/Yama.rst`).
pub(super) fn ptrace_scope() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    text.trim().parse().ok()
}
