//! The command as a child process: made, held before its `exec`, released, waited for.
//!
//! ```text
//!   this process                    the child
//!   ────────────                    ─────────
//!   fork ─────────────────────────▶ wait for a byte
//!   open events on it                  ┊
//!   write a byte ─────────────────▶ exec ──▶ the command (and the events are on)
//!   read: end of file ◀──────────────┘ └─ failed: write errno, exit
//! ```
//!
//! When this process dies before the byte is written, the child reads the end of the pipe and exits
//! without having run anything. When it dies later (SIGKILL cannot be handled), the kernel sends
//! the command a SIGTERM: a command that was started to be recorded does not outlive the recorder,
//! but may clean up.
#![expect(
    unsafe_code,
    reason = "fork, exec and wait with a step in between have no safe interface"
)]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use super::command::Command;
use super::command_error::CommandError;
use super::tracee::{Stop, Tracee};
use crate::sampler::kernel::check;
use crate::sampler::signals::{self, Inherited};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited by itself with this status.
    Exited(u8),
    /// It died of this signal.
    Signalled(i32),
}

impl Ending {
    /// The status as a shell reports it: 128 plus the number for a signal.
    ///
    /// ```
    /// use proftool::sampler::Ending;
    /// assert_eq!(Ending::Signalled(11).status(), 139);
    /// assert_eq!(Ending::Exited(3).status(), 3);
    /// ```
    pub fn status(self) -> u8 {
        match self {
            Ending::Exited(status) => status,
            Ending::Signalled(number) => 128u8.saturating_add(number as u8),
        }
    }

    /// The name of the signal that killed it, if one did and the signal has a common name.
    pub fn signal_name(self) -> Option<&'static str> {
        let Ending::Signalled(number) = self else {
            return None;
        };
        Some(match number {
            libc::SIGHUP => "SIGHUP",
            libc::SIGINT => "SIGINT",
            libc::SIGQUIT => "SIGQUIT",
            libc::SIGILL => "SIGILL, illegal instruction",
            libc::SIGTRAP => "SIGTRAP",
            libc::SIGABRT => "SIGABRT, aborted",
            libc::SIGBUS => "SIGBUS, bus error",
            libc::SIGFPE => "SIGFPE, arithmetic error",
            libc::SIGKILL => "SIGKILL, killed",
            libc::SIGSEGV => "SIGSEGV, segmentation fault",
            libc::SIGPIPE => "SIGPIPE, broken pipe",
            libc::SIGALRM => "SIGALRM",
            libc::SIGTERM => "SIGTERM, terminated",
            libc::SIGUSR1 => "SIGUSR1",
            libc::SIGUSR2 => "SIGUSR2",
            libc::SIGXCPU => "SIGXCPU, processor time used up",
            libc::SIGXFSZ => "SIGXFSZ, file too large",
            libc::SIGSYS => "SIGSYS, forbidden system call",
            _ => return None,
        })
    }
}

/// A process that is not waited for yet. Dropping it kills it if it has not become the command.
#[derive(Debug)]
pub(in crate::sampler) struct Child {
    pid: i32,
    go: Option<File>,
    failure: File,
    ended: Option<Ending>,
    /// Whether its status went to somebody who traces it, and has not been told yet.
    is_status_elsewhere: bool,
}

impl Child {
    /// Makes the process, which waits for [`Child::start`].
    pub(in crate::sampler) fn fork(command: &Command, inherited: Inherited) -> io::Result<Child> {
        let (wait, go) = pipe()?;
        let (failure, failed) = pipe()?;
        // All memory that the child needs is made before: another thread may hold the allocator's
        // lock at the moment of the fork, and nobody would ever release it in the child.
        let arguments = pointers(&command.arguments);
        let as_script = pointers(&command.as_script);
        let environment = pointers(&command.environment);
        let program = command.program.as_ptr();
        let null = if command.is_silent {
            Some(
                OpenOptions::new()
                    .read(true)
                    .write(true)
                    .open("/dev/null")?,
            )
        } else {
            None
        };
        // SAFETY: getpid and fork touch no memory of ours. Between fork and exec or _exit the
        // child calls only functions that are safe in a signal handler (prctl, getppid, dup2, read,
        // signal, sigmask, execve, write, _exit), does not allocate, unwind or return, and the
        // arrays end with a null pointer and point at strings that live in `command`.
        let pid = unsafe {
            let parent = libc::getpid();
            let pid = check(libc::fork())?;
            if pid == 0 {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong);
                if libc::getppid() != parent {
                    libc::_exit(125);
                }
                // The child's copies of the other ends; without this it would wait for itself.
                libc::close(go.as_raw_fd());
                libc::close(failure.as_raw_fd());
                let mut byte = 0u8;
                loop {
                    let got = libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1);
                    if got == 1 {
                        break;
                    }
                    if got == 0 || *libc::__errno_location() != libc::EINTR {
                        libc::_exit(125);
                    }
                }
                if let Some(null) = &null {
                    for standard in 0..=2 {
                        libc::dup2(null.as_raw_fd(), standard);
                    }
                }
                inherited.restore();
                libc::execve(program, arguments.as_ptr(), environment.as_ptr());
                let mut errno = *libc::__errno_location();
                if errno == libc::ENOEXEC {
                    libc::execve(
                        c"/bin/sh".as_ptr(),
                        as_script.as_ptr(),
                        environment.as_ptr(),
                    );
                    errno = *libc::__errno_location();
                }
                let size = size_of::<libc::c_int>();
                libc::write(failed.as_raw_fd(), (&raw const errno).cast(), size);
                libc::_exit(127);
            }
            pid
        };
        Ok(Child {
            pid,
            go: Some(File::from(go)),
            failure: File::from(failure),
            ended: None,
            is_status_elsewhere: false,
        })
    }

    pub(in crate::sampler) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets it run, and returns when it has become the command, or why `exec` failed.
    pub(in crate::sampler) fn start(&mut self, command: &Command) -> Result<(), CommandError> {
        let told = self.tell();
        self.begun(command, told)
    }

    /// [`Child::start`] under a tracer, which has stopped it then; `None` if it has ended.
    pub(in crate::sampler) fn start_traced(
        &mut self,
        command: &Command,
        tracee: Tracee,
    ) -> Result<Option<Tracee>, CommandError> {
        let told = self.tell();
        // A signal stops it, too.
        let is_stopped = loop {
            let next = match tracee.wait() {
                Ok(Stop::Exec) => break true,
                Ok(Stop::Ended(status)) => {
                    self.has_ended(status);
                    break false;
                }
                Ok(Stop::Signal(signal)) => tracee.resume(signal),
                Ok(Stop::Trap | Stop::Made | Stop::Asked | Stop::Call | Stop::Other) => {
                    tracee.resume(0)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = next {
                return Err(command.refused(&error));
            }
        };
        self.begun(command, told)?;
        Ok(is_stopped.then_some(tracee))
    }

    /// Takes note of how it ended, as `waitpid` has said it to somebody else.
    pub(in crate::sampler) fn has_ended(&mut self, status: i32) {
        if let Some(ending) = ending(status)
            && (self.ended.is_none() || self.is_status_elsewhere)
        {
            self.ended = Some(ending);
            self.is_status_elsewhere = false;
        }
    }

    fn tell(&mut self) -> io::Result<()> {
        match self.go.take() {
            Some(mut go) => go.write_all(&[1]),
            None => Ok(()),
        }
    }

    /// Waits until it has become the command, or says why not.
    fn begun(&mut self, command: &Command, told: io::Result<()>) -> Result<(), CommandError> {
        let mut errno = [0; size_of::<libc::c_int>()];
        let failed = self.failure.read_exact(&mut errno).is_ok();
        match (failed, told) {
            (true, _) => {
                let errno = libc::c_int::from_ne_bytes(errno);
                Err(command.refused(&io::Error::from_raw_os_error(errno)))
            }
            // Killed while it was waiting: that is how the command ended, as `wait` will tell.
            (false, Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(command.refused(&error))
            }
            (false, _) => Ok(()),
        }
    }

    pub(in crate::sampler) fn ended(&mut self) -> Option<Ending> {
        if self.ended.is_none() {
            self.ended = self.wait(libc::WNOHANG);
        }
        self.ended
    }

    pub(in crate::sampler) fn signal(&mut self, number: i32) {
        if self.ended().is_none() {
            signals::send(self.pid, number);
        }
    }

    fn wait(&mut self, flags: libc::c_int) -> Option<Ending> {
        if flags & libc::WNOHANG != 0 && !self.has_ended_by_now() {
            return None;
        }
        let mut status = 0;
        // SAFETY: the status is written to a live local; `pid` is our child and not waited for
        // yet, so the number still belongs to it.
        let got = check(unsafe { libc::waitpid(self.pid, &mut status, flags) });
        match got {
            Ok(0) => None,
            Ok(_) => ending(status),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(_) => {
                self.is_status_elsewhere = true;
                Some(Ending::Exited(0))
            }
        }
    }

    /// Whether it has ended, as far as can be known without waiting for it. That it has stopped is
    /// for who traces it.
    fn has_ended_by_now(&self) -> bool {
        let mut found = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let pid = self.pid.cast_unsigned();
        // SAFETY: what is found is written to a live local; `pid` is our child and not waited for
        // yet, and is not waited for by this.
        let got = unsafe { libc::waitid(libc::P_PID, pid, found.as_mut_ptr(), flags) };
        // SAFETY: all bits of the struct are valid values, and it is initialized.
        let found = unsafe { found.assume_init() };
        // An error is one for who waits, too.
        let ends = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
        got == -1 || ends.contains(&found.si_code)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.go.is_some() && self.ended().is_none() {
            signals::send(self.pid, libc::SIGKILL);
            while self.ended.is_none() {
                self.ended = self.wait(0);
            }
        }
    }
}

/// What a status of `waitpid` says of how a process ended; `None` if it has only stopped.
fn ending(status: i32) -> Option<Ending> {
    if libc::WIFSIGNALED(status) {
        return Some(Ending::Signalled(libc::WTERMSIG(status)));
    }
    libc::WIFEXITED(status).then(|| Ending::Exited(libc::WEXITSTATUS(status) as u8))
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// The addresses of `strings`, ended with null, as exec wants them.
fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let mut pointers: Vec<_> = strings.iter().map(|string| string.as_ptr()).collect();
    pointers.push(ptr::null());
    pointers
}
