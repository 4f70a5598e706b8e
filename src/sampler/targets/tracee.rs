//! A thread that is traced: a child until its calls are counted, and as long as it has one thread,
//! or for a moment a thread of a process that runs.
#![expect(unsafe_code, reason = "ptrace and waitpid have no safe interface")]

use std::ffi::CStr;
use std::io;
use std::ptr;

use crate::sampler::kernel::check;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sampler) enum Stop {
    Exec,
    /// It came to a breakpoint, or has made a step.
    Trap,
    Signal(i32),
    /// It has made a thread or process.
    Made,
    /// It was asked to stop, or has just been made.
    Asked,
    /// It begins or ends a system call.
    Call,
    Other,
    /// It has ended, with this status of `waitpid`.
    Ended(i32),
}

// In place of the status of a thread that is not traced any more: no end, as `Stop::Ended` has it
// otherwise.
pub(in crate::sampler) const GONE: i32 = 0x7f;

#[derive(Debug)]
pub(in crate::sampler) struct Tracee {
    pid: i32,
}

impl Tracee {
    /// Begins to trace a process until it executes a program. It runs on, also when this thread
    /// ends.
    pub(in crate::sampler) fn seize(pid: i32) -> io::Result<Tracee> {
        Tracee::seize_with(pid, libc::PTRACE_O_TRACEEXEC)
    }

    /// Begins to trace a thread of any process, and asks it to stop. When this thread ends, the
    /// traced one runs on.
    pub(in crate::sampler) fn interrupt(tid: i32) -> io::Result<Tracee> {
        let tracee = Tracee::seize_with(tid, 0)?;
        tracee.stop()?;
        Ok(tracee)
    }

    pub(in crate::sampler) fn stop(&self) -> io::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.pid, 0, 0)
    }

    fn seize_with(pid: i32, options: libc::c_int) -> io::Result<Tracee> {
        if !cfg!(target_arch = "x86_64") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let options = options | libc::PTRACE_O_TRACESYSGOOD;
        request(libc::PTRACE_SEIZE, pid, 0, options as usize)?;
        Ok(Tracee::of(pid))
    }

    /// A thread that is traced by this thread already; `None` if it is not.
    pub(in crate::sampler) fn adopt(tid: i32) -> Option<Tracee> {
        let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        let tracer = crate::sampler::status::field(&status, "TracerPid")?;
        // SAFETY: no memory is passed.
        let own = unsafe { libc::gettid() };
        (tracer.parse() == Ok(own)).then(|| Tracee::of(tid))
    }

    fn of(pid: i32) -> Tracee {
        Tracee { pid }
    }

    pub(in crate::sampler) fn pid(&self) -> i32 {
        self.pid
    }

    pub(in crate::sampler) fn wait(&self) -> io::Result<Stop> {
        loop {
            if let Some(stop) = self.waited(libc::__WALL)? {
                return Ok(stop);
            }
        }
    }

    pub(in crate::sampler) fn has_stopped(&self) -> io::Result<Option<Stop>> {
        self.waited(libc::__WALL | libc::WNOHANG)
    }

    fn waited(&self, flags: libc::c_int) -> io::Result<Option<Stop>> {
        let mut status = 0;
        loop {
            // SAFETY: the status is written to a live local; `pid` is traced by this thread and has
            // not been waited for.
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

    pub(in crate::sampler) fn resume_to_call(&self) -> io::Result<()> {
        request(libc::PTRACE_SYSCALL, self.pid, 0, 0)
    }

    // A thread that stops has left its system call. The kernel begins most calls again; some have
    // ended with EINTR, and programs take them to have been interrupted by a signal (signal(7)).
    // These get the result for which the kernel begins a call again unless a handler runs: EINTR is
    // then what a signal makes of it, however late that comes.
    pub(in crate::sampler) fn begin_call_again(&self) -> io::Result<()> {
        let registers = self.registers()?;
        match registers.begun_again(&INTERRUPTED) {
            Some(again) => self.set_registers(&again),
            None => Ok(()),
        }
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

    /// The address of what it shares with the kernel for restartable sequences (rseq(2)); `None` if
    /// it has none, or the kernel does not tell (before Linux 5.13).
    pub(in crate::sampler) fn sequences(&self) -> Option<u64> {
        let mut configuration = [0u64; 3];
        let to = ptr::from_mut(&mut configuration) as usize;
        let size = size_of_val(&configuration);
        request(GET_SEQUENCES, self.pid, size, to).ok()?;
        Some(configuration[0]).filter(|&at| at != 0)
    }

    pub(in crate::sampler) fn signal(&self) -> io::Result<SignalInfo> {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let to = info.as_mut_ptr() as usize;
        request(libc::PTRACE_GETSIGINFO, self.pid, 0, to)?;
        // SAFETY: all bits of the struct are valid values, and it is initialized.
        Ok(SignalInfo(unsafe { info.assume_init() }))
    }

    pub(in crate::sampler) fn set_signal(&self, info: &SignalInfo) -> io::Result<()> {
        let from = ptr::from_ref(&info.0) as usize;
        request(libc::PTRACE_SETSIGINFO, self.pid, 0, from)
    }

    /// Traces it no more, if it is stopped. It runs on, with a signal if that is not 0.
    pub(in crate::sampler) fn detach_with(&self, signal: i32) -> io::Result<()> {
        request(libc::PTRACE_DETACH, self.pid, 0, signal as usize)
    }

    /// Lets it run until it makes a thread or process, which is traced from its start, gets a
    /// signal, or has become another program.
    pub(in crate::sampler) fn resume_alone(&self) -> io::Result<()> {
        let stops = libc::PTRACE_O_TRACESYSGOOD
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACEEXEC;
        request(libc::PTRACE_SETOPTIONS, self.pid, 0, stops as usize)?;
        self.resume(0)
    }

    pub(in crate::sampler) fn made(&self) -> io::Result<Tracee> {
        let mut number: libc::c_ulong = 0;
        let to = ptr::from_mut(&mut number) as usize;
        request(libc::PTRACE_GETEVENTMSG, self.pid, 0, to)?;
        let pid = i32::try_from(number).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Tracee::of(pid))
    }

    #[cfg(target_arch = "x86_64")]
    pub(in crate::sampler) fn registers(&self) -> io::Result<Registers> {
        let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
        let to = registers.as_mut_ptr() as usize;
        request(libc::PTRACE_GETREGS, self.pid, 0, to)?;
        // SAFETY: all bits of the struct are valid values, and it is initialized.
        Ok(Registers(unsafe { registers.assume_init() }))
    }

    #[cfg(target_arch = "x86_64")]
    pub(in crate::sampler) fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        let from = ptr::from_ref(&registers.0) as usize;
        request(libc::PTRACE_SETREGS, self.pid, 0, from)
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(in crate::sampler) fn registers(&self) -> io::Result<Registers> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(in crate::sampler) fn set_registers(&self, _: &Registers) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

// System calls that end with EINTR when a thread stops, also if no signal has come. Those for
// sockets do so if they have a timeout.
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

// What a stop for a system call looks like (`PTRACE_O_TRACESYSGOOD`). If the tracer is killed then,
// the kernel takes it for no signal.
const CALL: i32 = libc::SIGTRAP | 0x80;
const GET_BLOCKED: libc::c_uint = 0x420a;
const SET_BLOCKED: libc::c_uint = 0x420b;
const GET_SEQUENCES: libc::c_uint = 0x420f;

/// A child or tracee of this thread that has stopped or ended and was not waited for; it still is
/// not.
pub(in crate::sampler) fn waiting() -> Option<i32> {
    let mut found = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let ends = libc::WEXITED | libc::WSTOPPED;
    let flags = ends | libc::WNOHANG | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: what is found is written to a live local.
    let got = unsafe { libc::waitid(libc::P_ALL, 0, found.as_mut_ptr(), flags) };
    // SAFETY: all bits of the struct are valid values, and it is initialized.
    let found = unsafe { found.assume_init() };
    // SAFETY: the kernel has written the fields of a child, or has left all of it zero.
    let pid = unsafe { found.si_pid() };
    (got == 0 && pid != 0).then_some(pid)
}

/// Whether two processes run in the same memory, as after `vfork`; not if the kernel does not tell.
pub(in crate::sampler) fn share_memory(one: i32, other: i32) -> bool {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: no memory is passed.
    let compared = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) };
    compared == 0
}

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
        (0, CALL) => Stop::Call,
        (0, libc::SIGTRAP) => Stop::Trap,
        (0, signal) => Stop::Signal(signal),
        _ => Stop::Other,
    }
}

#[derive(Clone, Copy)]
pub(in crate::sampler) struct SignalInfo(libc::siginfo_t);

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Registers(libc::user_regs_struct);

#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
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

    /// Those with which the kernel begins one of these system calls again, if it was interrupted.
    fn begun_again(mut self, calls: &[i64]) -> Option<Registers> {
        // Of errno.h in the kernel; no program sees it.
        const ERESTARTNOHAND: i64 = 514;
        let registers = &mut self.0;
        let is_interrupted = registers.rax == i64::from(-libc::EINTR).cast_unsigned();
        if !is_interrupted || !calls.contains(&registers.orig_rax.cast_signed()) {
            return None;
        }
        registers.rax = (-ERESTARTNOHAND).cast_unsigned();
        Some(self)
    }

    /// Those with which a system call begins again that the kernel would have restarted or
    /// continued on the way back (`ERESTARTSYS` and those behind it).
    pub(in crate::sampler) fn restarted(mut self) -> Registers {
        let registers = &mut self.0;
        let is_call = registers.orig_rax.cast_signed() >= 0;
        if is_call && matches!(registers.rax.cast_signed(), -514..=-512 | -516) {
            registers.rip = registers.rip.wrapping_sub(2);
            registers.rax = registers.orig_rax;
        }
        self
    }

    pub(in crate::sampler) fn stack(&self) -> u64 {
        self.0.rsp
    }

    /// Those with which the thread is in no system call.
    pub(in crate::sampler) fn without_call(mut self) -> Registers {
        self.0.orig_rax = u64::MAX;
        self
    }

    /// Those that a system call takes or changes: rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11.
    pub(in crate::sampler) fn of_calls(&self) -> [u64; 9] {
        let it = &self.0;
        [
            it.rax, it.rcx, it.rdx, it.rsi, it.rdi, it.r8, it.r9, it.r10, it.r11,
        ]
    }

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

    fn begun_again(self, _: &[i64]) -> Option<Registers> {
        None
    }

    pub(in crate::sampler) fn stack(&self) -> u64 {
        0
    }

    pub(in crate::sampler) fn without_call(self) -> Registers {
        self
    }

    pub(in crate::sampler) fn restarted(self) -> Registers {
        self
    }

    pub(in crate::sampler) fn of_calls(&self) -> [u64; 9] {
        [0; 9]
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
    // user_regs_struct at `data`, which is the address of a live one, GETSIGINFO and SETSIGINFO do
    // so with a siginfo_t, GETEVENTMSG writes one unsigned long, and the two for blocked signals
    // and the one for restartable sequences write or read at most as many bytes as `address`
    // states; the others touch no memory of ours.
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
