//! A thread that is traced: a child until its calls are counted, and as long as it has one thread, or for a
//! moment a thread of a process that runs.
#![expect(unsafe_code, reason = "ptrace and waitpid have no safe interface")]

use std::ffi::CStr;
use std::io;
use std::ptr;

use crate::sampler::kernel::check;

/// Why a traced process has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sampler) enum Stop {
    /// It became another program.
    Exec,
    /// It came to a breakpoint, or has made a step.
    Trap,
    /// It is about to get this signal.
    Signal(i32),
    /// It has made a thread or process.
    Made,
    /// It was asked to stop, or has just been made.
    Asked,
    /// Something else, which is of no interest.
    Other,
    /// It has ended, with this status of `waitpid`.
    Ended(i32),
}

/// A thread that is traced by this thread.
#[derive(Debug)]
pub(in crate::sampler) struct Tracee {
    pid: i32,
}

impl Tracee {
    /// Begins to trace a child, which runs on. It dies when this thread does.
    pub(in crate::sampler) fn seize(pid: i32) -> io::Result<Tracee> {
        Tracee::seize_with(pid, libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL)
    }

    /// Begins to trace a thread of any process, and asks it to stop. When this thread ends, the traced
    /// one runs on.
    pub(in crate::sampler) fn interrupt(tid: i32) -> io::Result<Tracee> {
        let tracee = Tracee::seize_with(tid, 0)?;
        tracee.stop()?;
        Ok(tracee)
    }

    /// Asks it to stop.
    pub(in crate::sampler) fn stop(&self) -> io::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.pid, 0, 0)
    }

    fn seize_with(pid: i32, options: libc::c_int) -> io::Result<Tracee> {
        if !cfg!(target_arch = "x86_64") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        request(libc::PTRACE_SEIZE, pid, 0, options as usize)?;
        Ok(Tracee { pid })
    }

    pub(in crate::sampler) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until it stops or ends.
    pub(in crate::sampler) fn wait(&self) -> io::Result<Stop> {
        loop {
            if let Some(stop) = self.waited(libc::__WALL)? {
                return Ok(stop);
            }
        }
    }

    /// Whether it has stopped or ended.
    pub(in crate::sampler) fn has_stopped(&self) -> io::Result<Option<Stop>> {
        self.waited(libc::__WALL | libc::WNOHANG)
    }

    fn waited(&self, flags: libc::c_int) -> io::Result<Option<Stop>> {
        let mut status = 0;
        loop {
            // SAFETY: the status is written to a live local; `pid` is traced by this thread and has not
            // been waited for.
            let got = check(unsafe { libc::waitpid(self.pid, &mut status, flags) });
            match got {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(0) => return Ok(None),
                Ok(_) => break,
            }
        }
        Ok(Some(stop(status)))
    }

    /// Lets it run on, with a signal if that is not 0.
    pub(in crate::sampler) fn resume(&self, signal: i32) -> io::Result<()> {
        request(libc::PTRACE_CONT, self.pid, 0, signal as usize)
    }

    /// Makes it begin a system call again that was interrupted when it was asked to stop. The kernel does
    /// that for most, and programs take the others to have been interrupted by a signal (signal(7)).
    /// Without effect if there is a signal for it.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::sampler) fn begin_call_again(&self) -> io::Result<()> {
        let mut registers = self.registers()?.0;
        let is_interrupted = registers.rax == i64::from(-libc::EINTR).cast_unsigned();
        let number = registers.orig_rax.cast_signed();
        if !is_interrupted || !INTERRUPTED.contains(&number) || has_signal(self.pid) {
            return Ok(());
        }
        // The instruction is two bytes long.
        registers.rip = registers.rip.wrapping_sub(2);
        registers.rax = registers.orig_rax;
        registers.orig_rax = u64::MAX;
        self.set_registers(&Registers(registers))
    }

    /// Calls are counted on x86-64 only.
    #[cfg(not(target_arch = "x86_64"))]
    pub(in crate::sampler) fn begin_call_again(&self) -> io::Result<()> {
        Ok(())
    }

    /// The signals that do not reach it, as a set of bits.
    pub(in crate::sampler) fn blocked(&self) -> io::Result<u64> {
        let mut blocked = 0u64;
        let to = ptr::from_mut(&mut blocked) as usize;
        request(GET_BLOCKED, self.pid, size_of::<u64>(), to)?;
        Ok(blocked)
    }

    /// Sets the signals that do not reach it but wait.
    pub(in crate::sampler) fn block(&self, signals: u64) -> io::Result<()> {
        let from = ptr::from_ref(&signals) as usize;
        request(SET_BLOCKED, self.pid, size_of::<u64>(), from)
    }

    /// What came with the signal that it is about to get.
    pub(in crate::sampler) fn signal(&self) -> io::Result<SignalInfo> {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let to = info.as_mut_ptr() as usize;
        request(libc::PTRACE_GETSIGINFO, self.pid, 0, to)?;
        // SAFETY: all bits of the struct are valid values, and it is initialized.
        Ok(SignalInfo(unsafe { info.assume_init() }))
    }

    /// Sets what comes with the signal with which it is resumed.
    pub(in crate::sampler) fn set_signal(&self, info: &SignalInfo) -> io::Result<()> {
        let from = ptr::from_ref(&info.0) as usize;
        request(libc::PTRACE_SETSIGINFO, self.pid, 0, from)
    }

    /// Lets it execute one instruction.
    pub(in crate::sampler) fn step(&self) -> io::Result<()> {
        request(libc::PTRACE_SINGLESTEP, self.pid, 0, 0)
    }

    /// Traces it no more, if it is stopped. It runs on.
    pub(in crate::sampler) fn detach(&self) -> io::Result<()> {
        self.detach_with(0)
    }

    /// The same, with a signal if that is not 0.
    pub(in crate::sampler) fn detach_with(&self, signal: i32) -> io::Result<()> {
        request(libc::PTRACE_DETACH, self.pid, 0, signal as usize)
    }

    /// Lets it run until it makes a thread or process, which is traced from its start, gets a signal, or has
    /// become another program. It does not die when this thread does.
    pub(in crate::sampler) fn resume_alone(&self) -> io::Result<()> {
        let stops = libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACEEXEC;
        request(libc::PTRACE_SETOPTIONS, self.pid, 0, stops as usize)?;
        self.resume(0)
    }

    /// The thread or process that it has just made.
    pub(in crate::sampler) fn made(&self) -> io::Result<Tracee> {
        let mut number: libc::c_ulong = 0;
        let to = ptr::from_mut(&mut number) as usize;
        request(libc::PTRACE_GETEVENTMSG, self.pid, 0, to)?;
        let pid = i32::try_from(number).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Tracee { pid })
    }

    /// Its registers, while it is stopped.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::sampler) fn registers(&self) -> io::Result<Registers> {
        let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
        let to = registers.as_mut_ptr() as usize;
        request(libc::PTRACE_GETREGS, self.pid, 0, to)?;
        // SAFETY: all bits of the struct are valid values, and it is initialized.
        Ok(Registers(unsafe { registers.assume_init() }))
    }

    /// Sets its registers, while it is stopped.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::sampler) fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        let from = ptr::from_ref(&registers.0) as usize;
        request(libc::PTRACE_SETREGS, self.pid, 0, from)
    }

    /// Its registers, while it is stopped.
    #[cfg(not(target_arch = "x86_64"))]
    pub(in crate::sampler) fn registers(&self) -> io::Result<Registers> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets its registers, while it is stopped.
    #[cfg(not(target_arch = "x86_64"))]
    pub(in crate::sampler) fn set_registers(&self, _: &Registers) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// System calls that end with EINTR when a thread stops, also if no signal has come. Those for sockets
/// do so if they have a timeout.
#[cfg(target_arch = "x86_64")]
const INTERRUPTED: [i64; 18] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_write,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
];

const GET_BLOCKED: libc::c_uint = 0x420a;
const SET_BLOCKED: libc::c_uint = 0x420b;

/// Whether a signal waits for a thread that it does not block.
#[cfg(target_arch = "x86_64")]
fn has_signal(tid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let signals = |name| {
        let value = crate::sampler::status::field(&status, name);
        value.and_then(|value| u64::from_str_radix(value.trim(), 16).ok())
    };
    let [own, of_process, blocked] = ["SigPnd", "ShdPnd", "SigBlk"].map(signals);
    let waiting = own
        .zip(of_process)
        .map(|(own, of_process)| own | of_process);
    // What is not known may be.
    waiting
        .zip(blocked)
        .is_none_or(|(waiting, blocked)| waiting & !blocked != 0)
}

/// What a status of `waitpid` says.
fn stop(status: libc::c_int) -> Stop {
    if libc::WIFSIGNALED(status) || libc::WIFEXITED(status) {
        return Stop::Ended(status);
    }
    match (status >> 16, libc::WSTOPSIG(status)) {
        (libc::PTRACE_EVENT_EXEC, _) => Stop::Exec,
        (libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK, _) => {
            Stop::Made
        }
        // Other signals mean that the whole process was stopped.
        (libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => Stop::Asked,
        (0, libc::SIGTRAP) => Stop::Trap,
        (0, signal) => Stop::Signal(signal),
        _ => Stop::Other,
    }
}

/// What comes with a signal: who has sent it, and more.
#[derive(Clone, Copy)]
pub(in crate::sampler) struct SignalInfo(libc::siginfo_t);

/// The registers of a traced process.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(in crate::sampler) struct Registers(libc::user_regs_struct);

/// The registers of a traced process.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub(in crate::sampler) struct Registers;

#[cfg(target_arch = "x86_64")]
impl Registers {
    pub(in crate::sampler) fn program_counter(&self) -> u64 {
        self.0.rip
    }

    /// The base of the segment `gs`, which is 0 unless a program has a use for it.
    pub(in crate::sampler) fn segment(&self) -> u64 {
        self.0.gs_base
    }

    pub(in crate::sampler) fn set_segment(&mut self, base: u64) {
        self.0.gs_base = base;
    }

    pub(in crate::sampler) fn at(mut self, program_counter: u64) -> Registers {
        self.0.rip = program_counter;
        self
    }

    /// The registers with which the instruction `syscall` makes this system call.
    pub(in crate::sampler) fn calling(mut self, number: i64, arguments: [u64; 6]) -> Registers {
        let registers = &mut self.0;
        [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ] = arguments;
        registers.rax = number.cast_unsigned();
        // It is in no system call that would have to be restarted.
        registers.orig_rax = u64::MAX;
        self
    }

    /// What a system call returned.
    pub(in crate::sampler) fn result(&self) -> io::Result<u64> {
        let result = self.0.rax.cast_signed();
        match i32::try_from(result.wrapping_neg()) {
            Ok(errno @ 1..=4095) => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(result.cast_unsigned()),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Registers {
    pub(in crate::sampler) fn program_counter(&self) -> u64 {
        0
    }

    pub(in crate::sampler) fn segment(&self) -> u64 {
        0
    }

    pub(in crate::sampler) fn set_segment(&mut self, _: u64) {}

    pub(in crate::sampler) fn at(self, _: u64) -> Registers {
        self
    }

    pub(in crate::sampler) fn calling(self, _: i64, _: [u64; 6]) -> Registers {
        self
    }

    pub(in crate::sampler) fn result(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn request(request: libc::c_uint, pid: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: of the requests that are made here, GETREGS writes and SETREGS reads one
    // user_regs_struct at `data`, which is the address of a live one, GETSIGINFO and SETSIGINFO do so
    // with a siginfo_t, GETEVENTMSG writes one unsigned long, and the two for blocked signals write and
    // read the eight bytes that `address` states; the others touch no memory of ours.
    let done = unsafe { libc::ptrace(request, pid, address, data) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether the file at this path gives who runs it capabilities.
pub(in crate::sampler) fn has_capabilities(path: &CStr) -> bool {
    let name = c"security.capability";
    // SAFETY: both are strings that end with zero; with a size of 0 nothing is written.
    let size = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), ptr::null_mut(), 0) };
    size > 0
}
