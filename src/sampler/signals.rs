//! Signals that can be polled: they wait in a descriptor instead of interrupting.
#![expect(unsafe_code, reason = "signal masks have no safe interface")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::kernel::check;

/// A signal that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) number: i32,
    /// Whether the kernel itself sent it, as the terminal does to all of its foreground
    /// processes when Ctrl-C is pressed.
    pub(super) from_terminal: bool,
}

/// What this process did with signals before, for the command to have the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inherited {
    mask: libc::sigset_t,
    ignores_child: bool,
}

impl Inherited {
    /// Gives this process the signals of the one that started it. Safe after `fork`.
    pub(super) fn restore(&self) {
        // Rust programs ignore SIGPIPE from the start; the command must not.
        set_disposition(libc::SIGPIPE, libc::SIG_DFL);
        if self.ignores_child {
            set_disposition(libc::SIGCHLD, libc::SIG_IGN);
        }
        set_mask(&self.mask);
    }
}

/// INT, TERM, HUP and CHLD, held back while the value lives. So is XFSZ, for a file that grows
/// too large to be an error and not the end.
#[derive(Debug)]
pub(super) struct Signals {
    fd: OwnedFd,
    inherited: Inherited,
}

impl Signals {
    /// Holds the signals back from this thread on. Signals that the process was started to
    /// ignore (`nohup`) stay ignored.
    pub(super) fn hold() -> io::Result<Signals> {
        Signals::hold_and_hear(true)
    }

    /// The same, but signals to end are for other threads to hear.
    pub(super) fn hold_for_others() -> io::Result<Signals> {
        Signals::hold_and_hear(false)
    }

    fn hold_and_hear(hears_ends: bool) -> io::Result<Signals> {
        let ignores_child = is_ignored(libc::SIGCHLD);
        if ignores_child {
            // Or else the command's exit status would be thrown away.
            set_disposition(libc::SIGCHLD, libc::SIG_DFL);
        }
        let mut held = empty_set();
        let mut heard = empty_set();
        for number in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGCHLD,
            libc::SIGXFSZ,
        ] {
            if is_ignored(number) {
                continue;
            }
            let is_end = !matches!(number, libc::SIGCHLD | libc::SIGXFSZ);
            // SAFETY: initialized sets and a signal that exists.
            unsafe {
                libc::sigaddset(&mut held, number);
                if hears_ends || !is_end {
                    libc::sigaddset(&mut heard, number);
                }
            }
        }
        let mut mask = empty_set();
        // SAFETY: both pointers are to live, initialized sets.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &held, &mut mask) };
        let inherited = Inherited {
            mask,
            ignores_child,
        };
        // SAFETY: -1 asks for a new descriptor; the set is live and initialized.
        let fd =
            check(unsafe { libc::signalfd(-1, &heard, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })
                .inspect_err(|_| set_mask(&mask))?;
        Ok(Signals {
            // SAFETY: the kernel has just made `fd` for us, and nothing else knows of it.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            inherited,
        })
    }

    /// What the process did with signals before.
    pub(super) fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// The next signal that has arrived, if any.
    pub(super) fn next(&self) -> Option<Arrived> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        // SAFETY: the kernel writes at most the size of the live local.
        let got = unsafe {
            libc::read(
                self.fd.as_raw_fd(),
                info.as_mut_ptr().cast(),
                mem::size_of::<libc::signalfd_siginfo>(),
            )
        };
        if usize::try_from(got) != Ok(mem::size_of::<libc::signalfd_siginfo>()) {
            return None;
        }
        // SAFETY: all of it was zeroed and then written; it consists of integers only.
        let info = unsafe { info.assume_init() };
        Some(Arrived {
            number: i32::try_from(info.ssi_signo).ok()?,
            from_terminal: info.ssi_code == libc::SI_KERNEL,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What still waits was meant for the recording that has ended.
        while self.next().is_some() {}
        set_mask(&self.inherited.mask);
    }
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: sigemptyset initializes the set to which the pointer leads.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the new set is live and initialized, the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

fn set_disposition(number: i32, to: libc::sighandler_t) {
    // SAFETY: only SIG_DFL and SIG_IGN are passed: no code of ours runs in a signal.
    unsafe { libc::signal(number, to) };
}

fn is_ignored(number: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given; the old one is written to a live local, which was zeroed
    // and has only integers in it.
    unsafe {
        libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Stops this process until it is continued, as SIGTSTP does to a process that does not handle it:
/// not at all where nobody could continue it (an orphaned process group).
pub fn stop_until_continued() {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    let mut default = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros is a valid action, SIG_DFL without flags; both are live locals, and the
    // action that was there before is put back as the kernel gave it. Of a signal that exists this
    // does not fail.
    unsafe {
        (*default.as_mut_ptr()).sa_sigaction = libc::SIG_DFL;
        if libc::sigaction(libc::SIGTSTP, default.as_ptr(), before.as_mut_ptr()) == 0 {
            libc::raise(libc::SIGTSTP);
            libc::sigaction(libc::SIGTSTP, before.as_ptr(), std::ptr::null_mut());
        }
    }
}

/// Sends SIGTSTP to all processes of this one's job (its process group), as a terminal does when
/// Ctrl-Z is pressed.
pub fn stop_job() {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(0, libc::SIGTSTP) };
}

/// Sends a signal to a process that is not waited for yet, so that its number is still its own.
pub(super) fn send(pid: i32, number: i32) {
    // SAFETY: no memory is passed. A process that has just ended is not an error.
    unsafe { libc::kill(pid, number) };
}

/// Sends a signal to a thread of a process.
pub(super) fn send_to_thread(pid: i32, tid: i32, number: i32) {
    // SAFETY: no memory is passed. A thread that has just ended is not an error.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, number) };
}
