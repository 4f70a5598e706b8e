//! Stops a program for a moment, and redirects its calls to stubs.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use super::Change;
use super::loaded::{Auxiliary, Memory};
use super::threads::{Left, PATIENCE, Threads};
use crate::sampler::targets::tracee::{Registers, SignalInfo, Stop, Tracee};

/// `int3`
const BREAKPOINT: [u8; 1] = [0xcc];
/// `syscall`
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// How much of the program's code is looked at at once.
const WINDOW: u64 = 1 << 20;
const PAGE: usize = 4096;
/// All signals but SIGTRAP: the kernel takes a program's handler away if a step must report one that is
/// blocked.
const BLOCKED: u64 = !(1 << (libc::SIGTRAP - 1));

/// A program that is stopped at a place where all it is linked with is loaded.
pub(super) struct Stopped {
    pid: i32,
    /// The thread that makes system calls.
    tracee: Tracee,
    memory: File,
    registers: Registers,
    /// The signal that this thread was about to get when it was stopped.
    signal: Option<(i32, SignalInfo)>,
    /// Signals that came to it later and cannot be blocked.
    signals: Vec<i32>,
    /// The status of `waitpid` if that thread has ended, as it was killed.
    ended: Option<i32>,
    others: Threads,
    pub(super) auxiliary: Auxiliary,
    /// Whether constructors of libraries have run already.
    pub(super) is_late: bool,
}

/// What the program came to.
pub(super) enum Arrival {
    At(Box<Stopped>),
    /// It ended before, with this status of `waitpid`.
    Ended(i32),
}

/// Where the dynamic linker stops, by its path and where it is loaded: address, and how often.
pub(super) type LoaderStops<'a> = dyn FnMut(PathBuf, u64) -> Option<(u64, u32)> + 'a;

impl Stopped {
    /// Lets a program that has just been made by `exec` run until its libraries are relocated, and no
    /// code but the dynamic linker's has run; at the latest until its entry point. If that fails, it
    /// runs on and is traced no more.
    pub(super) fn reach(tracee: Tracee, stops: &mut LoaderStops<'_>) -> io::Result<Arrival> {
        let mut breakpoints = Vec::new();
        let memory = match open_memory(tracee.pid()) {
            Ok(memory) => memory,
            Err(error) => {
                let _ = tracee.detach();
                return Err(error);
            }
        };
        let reached = run_to_start(&tracee, &memory, stops, &mut breakpoints);
        let lifted = breakpoints.iter().map(|set| set.lift(&memory));
        let lifted: io::Result<()> = lifted.collect();
        let reached = reached.and_then(|reached| match reached {
            Reached::At(registers, auxiliary) => {
                lifted?;
                tracee.set_registers(&registers)?;
                Ok(Reached::At(registers, auxiliary))
            }
            ended @ Reached::Ended(_) => Ok(ended),
        });
        match reached {
            Ok(Reached::Ended(status)) => Ok(Arrival::Ended(status)),
            Ok(Reached::At(registers, auxiliary)) => {
                let is_late =
                    registers.program_counter() == auxiliary.entry && auxiliary.loader != 0;
                Ok(Arrival::At(Box::new(Stopped {
                    pid: tracee.pid(),
                    tracee,
                    memory,
                    registers: *registers,
                    signal: None,
                    signals: Vec::new(),
                    ended: None,
                    others: Threads::default(),
                    auxiliary,
                    is_late,
                })))
            }
            Err(error) => {
                let _ = tracee.detach();
                Err(error)
            }
        }
    }

    /// Stops all threads of a process that runs. What does not stop in time is left over.
    pub(super) fn attach(pid: i32, left: &mut Left) -> io::Result<Stopped> {
        Stopped::attach_within(pid, PATIENCE, left)
    }

    /// The same, with a time within which they have to stop.
    pub(super) fn attach_within(
        pid: i32,
        patience: Duration,
        left: &mut Left,
    ) -> io::Result<Stopped> {
        let mut threads = Threads::stop(pid, patience, left)?;
        let Some((tracee, signal)) = threads.take(pid) else {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        };
        // Through this thread, as the first one may have ended.
        let mut stopped = match Stopped::of_made(pid, tracee) {
            Ok(stopped) => stopped,
            Err((tracee, error)) => {
                left.release(tracee, signal);
                threads.release(left);
                return Err(error);
            }
        };
        stopped.others = threads;
        if signal != 0 {
            match stopped.tracee.signal() {
                Ok(info) => stopped.signal = Some((signal, info)),
                Err(_) => stopped.signals.push(signal),
            }
        }
        Ok(stopped)
    }

    /// A process in which one thread has just been made and stands still.
    pub(super) fn of_made(pid: i32, tracee: Tracee) -> Result<Stopped, (Tracee, io::Error)> {
        match Stopped::opened(&tracee) {
            Ok((memory, auxiliary, registers)) => Ok(Stopped {
                pid,
                tracee,
                memory,
                registers,
                signal: None,
                signals: Vec::new(),
                ended: None,
                others: Threads::default(),
                auxiliary,
                is_late: false,
            }),
            Err(error) => Err((tracee, error)),
        }
    }

    fn opened(tracee: &Tracee) -> io::Result<(File, Auxiliary, Registers)> {
        let tid = tracee.pid();
        Ok((open_memory(tid)?, Auxiliary::of(tid)?, tracee.registers()?))
    }

    /// Lets the instruction at this address be executed, if it is the next.
    pub(super) fn step_over(&mut self, at: u64) -> io::Result<()> {
        while self.registers.program_counter() == at {
            self.step()?;
            self.registers = self.tracee.registers()?;
        }
        Ok(())
    }

    /// Executes one instruction. Signals wait, with all that comes with them.
    fn step(&mut self) -> io::Result<()> {
        let blocked = self.tracee.blocked()?;
        self.tracee.block(BLOCKED)?;
        while !self.try_step()? {}
        self.tracee.block(blocked)
    }

    /// Executes one instruction, or takes a signal. Returns whether it was an instruction.
    fn try_step(&mut self) -> io::Result<bool> {
        self.tracee.step()?;
        match self.tracee.wait()? {
            Stop::Trap => return Ok(true),
            // It comes before the instruction, and is given when all is done.
            Stop::Signal(signal) => self.signals.push(signal),
            Stop::Ended(status) => {
                self.ended = Some(status);
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Stop::Exec | Stop::Made | Stop::Asked | Stop::Other => {}
        }
        Ok(false)
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// A thread of it that has not ended: its `/proc` shows what the process has.
    pub(super) fn thread(&self) -> i32 {
        self.tracee.pid()
    }

    /// Reads its memory.
    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, at)
    }

    /// What is in its memory.
    pub(super) fn loaded(&self) -> io::Result<Memory> {
        Memory::of(self.tracee.pid(), self.auxiliary)
    }

    /// Makes a system call in its place.
    pub(super) fn call(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        self.call_with(number, arguments, b"")
    }

    /// Makes shared memory in its place. Returns the number of the descriptor there.
    pub(super) fn make_shared_memory(&mut self, name: &CStr) -> io::Result<u64> {
        let at = self.auxiliary.entry.wrapping_add(SYSCALL.len() as u64);
        let flags = u64::from(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        let arguments = [at, flags, 0, 0, 0, 0];
        self.call_with(libc::SYS_memfd_create, arguments, name.to_bytes_with_nul())
    }

    /// Opens a file in its place. Returns the number of the descriptor there.
    pub(super) fn open(&mut self, path: &CStr) -> io::Result<u64> {
        let at = self.auxiliary.entry.wrapping_add(SYSCALL.len() as u64);
        let kind = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
        let flags = (libc::O_RDWR | kind) as u64;
        let folder = libc::AT_FDCWD as u64;
        let arguments = [folder, at, flags, 0, 0, 0];
        self.call_with(libc::SYS_openat, arguments, path.to_bytes_with_nul())
    }

    /// Makes a system call that finds some bytes behind its instruction. Both are for a moment where the
    /// program begins: no thread runs.
    fn call_with(&mut self, number: i64, arguments: [u64; 6], bytes: &[u8]) -> io::Result<u64> {
        let at = self.auxiliary.entry;
        let code = [&SYSCALL[..], bytes].concat();
        let mut saved = vec![0; code.len()];
        self.memory.read_exact_at(&mut saved, at)?;
        self.memory.write_all_at(&code, at)?;
        let made = self.step_through(at, number, arguments);
        self.memory.write_all_at(&saved, at)?;
        self.tracee.set_registers(&self.registers)?;
        made
    }

    fn step_through(&mut self, at: u64, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        let registers = self.registers.at(at);
        self.tracee
            .set_registers(&registers.calling(number, arguments))?;
        self.step()?;
        self.tracee.registers()?.result()
    }

    /// Makes changes, which are in order of address. Returns the numbers of sites at which memory has
    /// other bytes than those that were to be changed, and that are left as they are.
    pub(super) fn change(&self, changes: &[Change]) -> io::Result<Vec<usize>> {
        change(&self.memory, changes)
    }

    /// Lets a program run that has one thread, until it makes another one or a process, or gets a signal.
    /// If that is not possible, it is still stopped.
    pub(super) fn stay(self: Box<Self>) -> Result<Tracee, Box<Stopped>> {
        let has_signal = self.signal.is_some() || !self.signals.is_empty();
        let is_alone = self.others.is_empty() && !has_signal && self.ended.is_none();
        if is_alone && self.tracee.resume_alone().is_ok() {
            return Ok(self.tracee);
        }
        Err(self)
    }

    /// The thread, which stands still, unless it has ended.
    pub(super) fn into_thread(self) -> Option<Tracee> {
        let tid = self.tracee.pid();
        for signal in self.signals {
            crate::sampler::signals::send_to_thread(self.pid, tid, signal);
        }
        self.ended.is_none().then_some(self.tracee)
    }

    /// Lets the program run. It is traced no more.
    pub(super) fn release(self, left: &mut Left) {
        let tid = self.tracee.pid();
        match (self.ended, self.signal) {
            (Some(status), _) => left.has_ended(tid, status),
            (None, Some((signal, info))) => {
                // It stands where it got it, or behind a step, which ends with a signal as well.
                let _ = self.tracee.set_signal(&info);
                left.release(self.tracee, signal);
            }
            (None, None) => left.release(self.tracee, 0),
        }
        self.others.release(left);
        for signal in self.signals {
            crate::sampler::signals::send_to_thread(self.pid, tid, signal);
        }
    }
}

/// Where a program came to.
enum Reached {
    At(Box<Registers>, Auxiliary),
    /// It ended before, with this status of `waitpid`.
    Ended(i32),
}

pub(super) fn open_memory(pid: i32) -> io::Result<File> {
    let mut open = OpenOptions::new();
    { open.read(true).write(true) }.open(format!("/proc/{pid}/mem"))
}

fn run_to_start(
    tracee: &Tracee,
    memory: &File,
    stops: &mut LoaderStops<'_>,
    breakpoints: &mut Vec<Breakpoint>,
) -> io::Result<Reached> {
    let auxiliary = Auxiliary::of(tracee.pid())?;
    let at_exec = Memory::of(tracee.pid(), auxiliary)?;
    let loader = at_exec.images.into_iter().find(|image| image.is_loader);
    let loader = loader.and_then(|image| stops(image.path, auxiliary.loader));
    let entry = auxiliary.entry;
    breakpoints.push(Breakpoint::set(memory, entry)?);
    let mut left = 0;
    let hook = match loader {
        Some((at, count)) => {
            left = count;
            let hook = Breakpoint::set(memory, at)?;
            breakpoints.push(hook);
            Some(hook)
        }
        None => None,
    };
    loop {
        if let Some(status) = next(tracee)? {
            return Ok(Reached::Ended(status));
        }
        let registers = tracee.registers()?;
        let at = registers.program_counter().wrapping_sub(1);
        match &hook {
            Some(hook) if at == hook.at => {
                left = left.saturating_sub(1);
                if left == 0 {
                    return Ok(Reached::At(Box::new(registers.at(at)), auxiliary));
                }
                hook.lift(memory)?;
                tracee.set_registers(&registers.at(at))?;
                tracee.step()?;
                if let Stop::Ended(status) = tracee.wait()? {
                    return Ok(Reached::Ended(status));
                }
                memory.write_all_at(&BREAKPOINT, hook.at)?;
            }
            _ if at == entry => return Ok(Reached::At(Box::new(registers.at(at)), auxiliary)),
            _ => {}
        }
    }
}

/// Lets the program run until it comes to a breakpoint. Returns its status if it ends.
fn next(tracee: &Tracee) -> io::Result<Option<i32>> {
    let mut signal = 0;
    loop {
        tracee.resume(signal)?;
        signal = match tracee.wait()? {
            Stop::Trap => return Ok(None),
            Stop::Ended(status) => return Ok(Some(status)),
            Stop::Signal(signal) => signal,
            Stop::Exec | Stop::Made | Stop::Asked | Stop::Other => 0,
        };
    }
}

/// An instruction that stops the program.
#[derive(Clone, Copy, Debug)]
struct Breakpoint {
    at: u64,
    saved: [u8; 1],
}

impl Breakpoint {
    fn set(memory: &File, at: u64) -> io::Result<Breakpoint> {
        let mut saved = BREAKPOINT;
        memory.read_exact_at(&mut saved, at)?;
        memory.write_all_at(&BREAKPOINT, at)?;
        Ok(Breakpoint { at, saved })
    }

    fn lift(&self, memory: &File) -> io::Result<()> {
        memory.write_all_at(&self.saved, self.at)
    }
}

/// Whole pages are read, changed and written: one system call for each change would take seconds in
/// a large program.
pub(super) fn change(memory: &File, changes: &[Change]) -> io::Result<Vec<usize>> {
    let mut unchanged = Vec::new();
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let start = first.at & !(PAGE as u64 - 1);
        let end = |change: &Change| change.at.saturating_add(u64::from(change.length));
        // Between two mappings there may be nothing to read: a page without changes ends the window.
        let mut last = first.at / PAGE as u64;
        let count = rest.iter().take_while(|change| {
            let fits = end(change).saturating_sub(start) <= WINDOW
                && change.at / PAGE as u64 <= last.saturating_add(1);
            last = end(change).saturating_sub(1) / PAGE as u64;
            fits
        });
        let count = count.count().max(1);
        let (window, after) = rest.split_at(count);
        rest = after;
        let length = window.last().map_or(0, end).saturating_sub(start);
        let length = length.min(2 * WINDOW).next_multiple_of(PAGE as u64);
        let mut bytes = vec![0; length as usize];
        memory.read_exact_at(&mut bytes, start)?;
        let mut changed = vec![false; bytes.len() / PAGE];
        for change in window {
            let from = change.at.saturating_sub(start) as usize;
            let size = usize::from(change.length).min(change.old.len());
            let place = bytes.get_mut(from..from.saturating_add(size));
            match (place, change.old.get(..size), change.new.get(..size)) {
                (Some(place), Some(old), Some(new)) if place == old => place.copy_from_slice(new),
                _ => {
                    unchanged.push(change.site);
                    continue;
                }
            }
            for page in from / PAGE..=(from + size.saturating_sub(1)) / PAGE {
                if let Some(changed) = changed.get_mut(page) {
                    *changed = true;
                }
            }
        }
        let mut at = start;
        for run in changed.chunk_by(|a, b| a == b) {
            let size = run.len() * PAGE;
            if run.first() == Some(&true) {
                let from = (at - start) as usize;
                let pages = bytes.get(from..from + size).unwrap_or_default();
                memory.write_all_at(pages, at)?;
            }
            at += size as u64;
        }
    }
    Ok(unchanged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::calls::shared_memory;

    fn at(at: u64, old: u8, new: u8, site: usize) -> Change {
        Change {
            at,
            length: 5,
            old: [old; 8],
            new: [new; 8],
            site,
        }
    }

    #[test]
    fn only_what_is_as_expected_is_changed() {
        let file = shared_memory::make().unwrap();
        let before: Vec<u8> = (0..4 * WINDOW).map(|at| (at / 4096) as u8).collect();
        file.write_all_at(&before, 0).unwrap();
        // One over the border of two pages, one in memory that is different, one far away.
        let page = |number: u64| number * 4096;
        let mut over = at(page(7) - 2, 6, 0xaa, 0);
        over.old = [6, 6, 7, 7, 7, 0, 0, 0];
        let far = at(page(900) + 17, 900u64 as u8, 0xbb, 2);
        let unchanged = change(&file, &[over, at(page(9), 1, 0xcc, 1), far]).unwrap();
        assert_eq!(unchanged, [1]);
        let mut after = vec![0; before.len()];
        file.read_exact_at(&mut after, 0).unwrap();
        let changed: Vec<usize> = (0..after.len())
            .filter(|&i| after[i] != before[i])
            .collect();
        let first = page(7) as usize - 2;
        let far = page(900) as usize + 17;
        let expected: Vec<usize> = (first..first + 5).chain(far..far + 5).collect();
        assert_eq!(changed, expected);
    }
}
