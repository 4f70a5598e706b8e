//! Signals that can be polled: they wait in a descriptor instead of interrupting.
#![expect(unsafe_code, reason = "signal masks have no safe interface")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use super::kernel::check;

// What a process group can be sent and what ends who does not expect it: a command that signals its
// own group signals the recorder, too. To these come the real-time signals.
const ENDS: [i32; 12] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGSTKFLT,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
];

// What the recorder holds back for itself.
const OWN: [i32; 2] = [libc::SIGCHLD, libc::SIGXFSZ];

// Whether this process was started to ignore SIGPIPE, which Rust programs do in any case.
static IGNORED_PIPE: AtomicBool = AtomicBool::new(false);

/// Looks at it before Rust's own start changes it.
#[used]
// SAFETY: the C library calls the functions of this section once, before `main`, and this one needs
// nothing that is set up later.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        IGNORED_PIPE.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    }
    look
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// The kernel, as the terminal does when Ctrl-C is pressed: all processes of the foreground get
    /// it.
    Kernel,
    /// A process with this number, or 0 if it is not seen here.
    Process(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) number: i32,
    pub(super) sender: Sender,
}

impl Arrived {
    /// Whether the kernel sends it to all processes of a terminal.
    pub(super) fn is_of_terminal(self) -> bool {
        matches!(self.number, libc::SIGINT | libc::SIGQUIT | libc::SIGHUP)
    }
}

/// What this process did with signals before, for the command to have the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inherited {
    mask: libc::sigset_t,
    ignores_child: bool,
    ignores_interrupt: bool,
}

impl Inherited {
    /// Gives this process the signals of the one that started it. Safe after `fork`.
    pub(super) fn restore(&self) {
        if !IGNORED_PIPE.load(Ordering::Relaxed) {
            set_disposition(libc::SIGPIPE, libc::SIG_DFL);
        }
        for (number, was_ignored) in [
            (libc::SIGCHLD, self.ignores_child),
            (libc::SIGINT, self.ignores_interrupt),
        ] {
            if was_ignored {
                set_disposition(number, libc::SIG_IGN);
            }
        }
        set_mask(&self.mask);
    }
}

/// Signals that end a process, and CHLD, held back while the value lives. So is XFSZ, for a file
/// that grows too large to be an error and not the end.
#[derive(Debug)]
pub(super) struct Signals {
    fd: OwnedFd,
    held: libc::sigset_t,
    inherited: Inherited,
}

impl Signals {
    // Holds the signals back from this thread on. Signals that the process was started to ignore
    // (`nohup`) stay ignored, except SIGINT that a process sends: a shell without job control
    // starts what is in the background so, and `kill -INT` is to end it.
    pub(super) fn hold() -> io::Result<Signals> {
        Signals::hold_and_hear(true)
    }

    /// Holds the same signals back, but those to end are for other threads to hear.
    pub(super) fn hold_for_others() -> io::Result<Signals> {
        Signals::hold_and_hear(false)
    }

    fn hold_and_hear(hears_ends: bool) -> io::Result<Signals> {
        let ignores_child = is_ignored(libc::SIGCHLD);
        let ignores_interrupt = hears_ends && is_ignored(libc::SIGINT);
        let mut held = empty_set();
        let mut heard = empty_set();
        let ends = ENDS.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
        let ends = ends.map(|number| (number, hears_ends));
        for (number, is_heard) in ends.chain(OWN.map(|number| (number, true))) {
            let is_needed = number == libc::SIGCHLD || number == libc::SIGINT && ignores_interrupt;
            if !is_needed && is_ignored(number) {
                continue;
            }
            // SAFETY: initialized sets and a signal that exists.
            unsafe {
                libc::sigaddset(&mut held, number);
                if is_heard {
                    libc::sigaddset(&mut heard, number);
                }
            }
        }
        let mut mask = empty_set();
        // SAFETY: both pointers are to live, initialized sets.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &held, &mut mask) };
        if ignores_child {
            // Or else the command's exit status would be thrown away.
            set_disposition(libc::SIGCHLD, libc::SIG_DFL);
        }
        if ignores_interrupt {
            set_disposition(libc::SIGINT, libc::SIG_DFL);
        }
        let inherited = Inherited {
            mask,
            ignores_child,
            ignores_interrupt,
        };
        // SAFETY: -1 asks for a new descriptor; the set is live and initialized.
        let fd =
            check(unsafe { libc::signalfd(-1, &heard, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })
                .inspect_err(|_| set_mask(&mask))?;
        Ok(Signals {
            // SAFETY: the kernel has just made `fd` for us, and nothing else knows of it.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            held,
            inherited,
        })
    }

    /// From now on signals to end are no more for other threads to hear.
    pub(super) fn hear_ends(&self) {
        // SAFETY: the descriptor is a signalfd, the set is live and initialized; what is heard
        // stays as it is if this fails.
        unsafe { libc::signalfd(self.fd.as_raw_fd(), &self.held, 0) };
    }

    pub(super) fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// The next signal that is to end or to reach somebody, if one has arrived.
    pub(super) fn next(&self) -> Option<Arrived> {
        loop {
            let signal = self.read()?;
            let was_ignored = signal.number == libc::SIGINT && self.inherited.ignores_interrupt;
            let is_dropped = was_ignored && signal.sender == Sender::Kernel;
            if !is_dropped && !OWN.contains(&signal.number) {
                return Some(signal);
            }
        }
    }

    fn read(&self) -> Option<Arrived> {
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
        let number = i32::try_from(info.ssi_signo).ok()?;
        // Codes of signals that processes send are not above 0, and SI_TIMER is among them.
        let is_sent = info.ssi_code <= 0 && info.ssi_code != libc::SI_TIMER;
        let sender = match is_sent {
            true => Sender::Process(info.ssi_pid.cast_signed()),
            false => Sender::Kernel,
        };
        Some(Arrived { number, sender })
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
        while self.read().is_some() {}
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

// Sends a signal to a process that is not waited for yet, so that its number is still its own.
pub(super) fn send(pid: i32, number: i32) {
    // SAFETY: no memory is passed. A process that has just ended is not an error.
    unsafe { libc::kill(pid, number) };
}

pub(super) fn send_to_thread(pid: i32, tid: i32, number: i32) {
    // SAFETY: no memory is passed. A thread that has just ended is not an error.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, number) };
}
