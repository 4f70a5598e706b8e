//! The programs whose calls are not counted, and why.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::perfdata::CallCounts;
use crate::sampler::error::Error;
use crate::sampler::status::field;
use crate::sampler::targets::command::Command;
use crate::sampler::targets::mapped::mappings;
use crate::sampler::targets::tracee;

const SET_ID: u32 = 0o6000;

/// Why the calls of a process that runs cannot be counted, if so.
pub(super) fn refuse_running(pid: i32) -> Result<(), String> {
    refuse_changing(pid)?;
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    if is_mapped(&maps, CallCounts::MAPPING.as_bytes()) {
        let reason = "they are being counted already, or were by a recorder that was killed";
        return Err(reason.into());
    }
    Ok(())
}

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

/// Whether a thread has restricted its system calls more than this process has, from which it may have
/// inherited that.
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

/// Whether a line of `/proc/PID/maps` has this path.
fn is_mapped(maps: &[u8], path: &[u8]) -> bool {
    let mut mapped = mappings(maps);
    mapped.any(|mapped| mapped.path == path)
}

/// Under a tracer without privileges, a program does not gain any by being run.
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

/// The user of this process. What root traces gains privileges as ever.
pub(super) fn own_user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

/// Who may trace whom (`Documentation/admin-guide/LSM/Yama.rst`).
pub(super) fn ptrace_scope() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    text.trim().parse().ok()
}
