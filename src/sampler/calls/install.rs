//! Stops a program for a moment, and redirects its calls to stubs.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::detour::Detour;
use super::loaded::{Auxiliary, Memory};
use super::omens::{Known, Omens};
use super::refusals::is_restricted;
use super::start::{LoaderStops, Reached, run_to_start};
use super::threads::{Left, PATIENCE, Threads, is_pending};
use crate::patch::{Change, LoadedImage};
use crate::sampler::targets::mapped::{mappings, maps};
use crate::sampler::targets::tracee::{Registers, SignalInfo, Stop, Tracee};

// How much of the program's code is looked at at once.
const WINDOW: u64 = 1 << 20;
const PAGE: usize = 4096;

/// A program that is stopped at a place where all it is linked with is loaded.
pub(super) struct Stopped {
    pid: i32,
    tracee: Tracee,
    memory: File,
    registers: Registers,
    /// Where it makes system calls, if it has left that.
    detour: Option<OnDetour>,
    /// The signal that this thread was about to get when it was stopped.
    signal: Option<(i32, SignalInfo)>,
    signals: Vec<i32>,
    /// The status of `waitpid` if that thread has ended, as it was killed.
    ended: Option<i32>,
    others: Threads,
    pub(super) auxiliary: Auxiliary,
    /// Whether constructors of libraries have run already.
    pub(super) is_late: bool,
}

struct OnDetour {
    detour: Detour,
    mask: u64,
    /// Whether it has left the place where it stood.
    has_begun: bool,
}

pub(super) enum Arrival {
    At(Box<Stopped>),
    /// It ended before, with this status of `waitpid`.
    Ended(i32),
}

impl Stopped {
    /// Lets a program that has just been made by `exec` run until its libraries are relocated, and
    /// no code but the dynamic linker's has run; at the latest until its entry point. If that
    /// fails, or takes longer than a time that is stated, it runs on and is traced no more.
    pub(super) fn reach(
        tracee: Tracee,
        stops: &mut LoaderStops<'_>,
        patience: Option<Duration>,
        left: &mut Left,
    ) -> io::Result<Arrival> {
        let memory = match open_memory(tracee.pid()) {
            Ok(memory) => memory,
            Err(error) => {
                left.release(tracee, 0);
                return Err(error);
            }
        };
        let reached = run_to_start(&tracee, &memory, stops, patience);
        match reached {
            Ok(Reached::Ended(status)) => Ok(Arrival::Ended(status)),
            Ok(Reached::At(registers, auxiliary)) => {
                let is_late =
                    registers.program_counter() == auxiliary.entry && auxiliary.loader != 0;
                Ok(Arrival::At(Box::new(Stopped {
                    is_late,
                    ..Stopped::new(tracee.pid(), tracee, memory, *registers, auxiliary)
                })))
            }
            Err(error) => {
                left.release(tracee, 0);
                Err(error)
            }
        }
    }

    /// Stops all threads of a process that runs. What does not stop in time is left over.
    pub(super) fn attach(pid: i32, left: &mut Left) -> io::Result<Stopped> {
        Stopped::attach_within(pid, PATIENCE, left)
    }

    /// Stops all threads of a process that runs, within this time.
    pub(super) fn attach_within(
        pid: i32,
        patience: Duration,
        left: &mut Left,
    ) -> io::Result<Stopped> {
        let mut threads = Threads::stop(pid, patience, left)?;
        let Some((tracee, signal)) = threads.take(pid) else {
            threads.release(left);
            return Err(io::Error::other("all of its threads wait in the kernel"));
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
            Ok((memory, auxiliary, registers)) => {
                Ok(Stopped::new(pid, tracee, memory, registers, auxiliary))
            }
            Err(error) => Err((tracee, error)),
        }
    }

    fn new(
        pid: i32,
        tracee: Tracee,
        memory: File,
        registers: Registers,
        auxiliary: Auxiliary,
    ) -> Stopped {
        Stopped {
            pid,
            tracee,
            memory,
            registers,
            detour: None,
            signal: None,
            signals: Vec::new(),
            ended: None,
            others: Threads::default(),
            auxiliary,
            is_late: false,
        }
    }

    fn opened(tracee: &Tracee) -> io::Result<(File, Auxiliary, Registers)> {
        let tid = tracee.pid();
        Ok((open_memory(tid)?, Auxiliary::of(tid)?, tracee.registers()?))
    }

    pub(super) fn go_on_at(&mut self, at: u64) -> io::Result<()> {
        self.come_back()?;
        self.registers = self.registers.at(at);
        self.tracee.set_registers(&self.registers)
    }

    pub(super) fn program_counter(&self) -> u64 {
        self.registers.program_counter()
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    // A thread of it that has not ended: its `/proc` shows what the process has.
    pub(super) fn thread(&self) -> i32 {
        self.tracee.pid()
    }

    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, at)
    }

    pub(super) fn omens<'a>(
        &self,
        images: impl Iterator<Item = &'a LoadedImage>,
        known: &mut Known,
    ) -> io::Result<Omens> {
        let maps = maps(self.tracee.pid())?;
        let mapped: Vec<_> = mappings(&maps).collect();
        let read = |at: u64, bytes: &mut [u8]| self.read(at, bytes);
        Ok(Omens::of(images, known, &mapped, &read))
    }

    pub(super) fn loaded(&self) -> io::Result<Memory> {
        Memory::of(self.tracee.pid(), self.auxiliary)
    }

    /// Makes a system call in its place.
    pub(super) fn call(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        let detour = self.detour()?;
        let registers = self.registers.at(detour.at).calling(number, arguments);
        self.tracee.set_registers(&registers)?;
        self.begin_detour()?;
        // It begins, and ends.
        self.next_call(detour)?;
        self.next_call(detour)?;
        self.tracee.registers()?.result()
    }

    /// Makes shared memory in its place. Returns the number of the descriptor there.
    pub(super) fn make_shared_memory(&mut self, name: &CStr) -> io::Result<u64> {
        let at = self.text(name)?;
        let flags = u64::from(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        let arguments = [at, flags, 0, 0, 0, 0];
        self.call(libc::SYS_memfd_create, arguments)
    }

    /// Opens a file in its place. Returns the number of the descriptor there.
    pub(super) fn open(&mut self, path: &CStr) -> io::Result<u64> {
        let at = self.text(path)?;
        let kind = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
        let flags = (libc::O_RDWR | kind) as u64;
        let folder = libc::AT_FDCWD as u64;
        let arguments = [folder, at, flags, 0, 0, 0];
        self.call(libc::SYS_openat, arguments)
    }

    fn text(&mut self, text: &CStr) -> io::Result<u64> {
        let bytes = text.to_bytes_with_nul();
        let at = self.detour()?.text(bytes);
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.memory.write_all_at(bytes, at)?;
        Ok(at)
    }

    fn detour(&mut self) -> io::Result<Detour> {
        if let Some(on) = &self.detour {
            return Ok(on.detour);
        }
        if is_restricted(self.tracee.pid()) {
            let restricted = "it has restricted its system calls (seccomp)";
            return Err(io::Error::other(restricted));
        }
        let read = |at: u64, bytes: &mut [u8]| self.memory.read_exact_at(bytes, at);
        let detour = Detour::find(self.tracee.pid(), &read)?;
        let full = "there is no room for a few instructions behind its code";
        let detour = detour.ok_or_else(|| io::Error::other(full))?;
        if let Some(at) = self.end_of_sequence() {
            // It begins again there, as after every interruption.
            self.registers = self.registers.at(at);
        }
        let mask = self.tracee.blocked()?;
        let code = Detour::code(mask, &self.registers.restarted());
        self.memory.write_all_at(&code, detour.at)?;
        self.detour = Some(OnDetour {
            detour,
            mask,
            has_begun: false,
        });
        Ok(detour)
    }

    // Where it goes on if it is in a restartable sequence that ends when it is interrupted
    // (rseq(2)). The kernel does not see that it is in one when it comes back.
    fn end_of_sequence(&self) -> Option<u64> {
        let word = |at: u64| {
            let mut bytes = [0; 8];
            self.read(at, &mut bytes)
                .ok()
                .map(|()| u64::from_le_bytes(bytes))
        };
        // struct rseq: two numbers of the processor, the address of the sequence.
        let sequence = word(self.tracee.sequences()?.checked_add(8)?)?;
        let sequence = Some(sequence).filter(|&at| at != 0)?;
        // struct rseq_cs: version and flags, start, length, where it goes on.
        let field = |at| word(sequence.checked_add(at)?);
        let (start, length, end) = (field(8)?, field(16)?, field(24)?);
        let inside = self.registers.program_counter().wrapping_sub(start);
        (inside < length).then_some(end)
    }

    /// From now on signals wait, and one that it was about to get comes again.
    fn begin_detour(&mut self) -> io::Result<()> {
        let Some(on) = self.detour.as_mut().filter(|on| !on.has_begun) else {
            return Ok(());
        };
        self.tracee.block(!0)?;
        on.has_begun = true;
        if let Some((signal, _)) = &self.signal {
            crate::sampler::signals::send_to_thread(self.pid, self.tracee.pid(), *signal);
        }
        Ok(())
    }

    /// Lets it run to the begin or end of the call on its detour.
    fn next_call(&mut self, detour: Detour) -> io::Result<()> {
        loop {
            self.tracee.resume_to_call()?;
            match self.tracee.wait()? {
                Stop::Call if self.tracee.registers()?.program_counter() == detour.behind() => {
                    return Ok(());
                }
                // It cannot be blocked, and is given when all is done.
                Stop::Signal(signal) => self.signals.push(signal),
                Stop::Ended(status) => return Err(self.has_ended(status)),
                _ => {}
            }
        }
    }

    fn has_ended(&mut self, status: i32) -> io::Error {
        self.ended = Some(status);
        io::Error::from_raw_os_error(libc::ESRCH)
    }

    /// Brings it back to where it stood, with the signals that wait for it.
    fn come_back(&mut self) -> io::Result<()> {
        let Some(on) = self.detour.take() else {
            return Ok(());
        };
        if on.has_begun && self.ended.is_none() {
            // Of the signals that wait only the one comes that it was about to get: others keep
            // what they were sent with.
            let before = self.signal.take();
            let waiting = before
                .as_ref()
                .map_or(on.mask, |(signal, _)| !(1 << (signal - 1)));
            self.tracee.block(waiting)?;
            // The kernel begins interrupted calls again only behind a stop of this kind.
            self.tracee.stop()?;
            self.tracee.resume(0)?;
            let mut stop = self.tracee.wait()?;
            self.tracee.set_registers(&self.registers)?;
            let thread = self.tracee.pid();
            let comes = |before: &Option<(i32, SignalInfo)>| {
                before
                    .as_ref()
                    .is_some_and(|(signal, _)| is_pending(thread, *signal))
            };
            while stop == Stop::Asked && comes(&before) {
                self.tracee.resume(0)?;
                stop = self.tracee.wait()?;
            }
            match stop {
                Stop::Ended(status) => return Err(self.has_ended(status)),
                Stop::Signal(_) | Stop::Trap => {
                    let signal = super::threads::signal(stop);
                    // What has come again comes with what it came with first.
                    let first = before.filter(|(before, _)| *before == signal);
                    let info = first.map_or_else(|| self.tracee.signal(), |(_, info)| Ok(info))?;
                    self.signal = Some((signal, info));
                }
                _ => {}
            }
            self.tracee.block(on.mask)?;
        }
        self.memory.write_all_at(&Detour::unused(), on.detour.at)
    }

    /// Makes changes, which are in order of address. Returns the numbers of sites at which memory
    /// has other bytes than those that were to be changed, and that are left as they are.
    pub(super) fn change(&self, changes: &[Change]) -> io::Result<Vec<usize>> {
        change(&self.memory, changes)
    }

    /// Lets a program run that has one thread, until it makes another one or a process, or gets a
    /// signal. If that is not possible, it is still stopped.
    pub(super) fn stay(mut self: Box<Self>) -> Result<Tracee, Box<Stopped>> {
        // If that fails, it was killed.
        let _ = self.come_back();
        let has_signal = self.signal.is_some() || !self.signals.is_empty();
        let is_alone = self.others.is_empty() && !has_signal && self.ended.is_none();
        if is_alone && self.tracee.resume_alone().is_ok() {
            return Ok(self.tracee);
        }
        Err(self)
    }

    /// The thread, which stands still, and the signal that it is about to get, or 0; `None` if it
    /// has ended.
    pub(super) fn into_thread(mut self) -> Option<(Tracee, i32)> {
        let _ = self.come_back();
        let tid = self.tracee.pid();
        for signal in self.signals {
            crate::sampler::signals::send_to_thread(self.pid, tid, signal);
        }
        let signal = self.signal.map_or(0, |(signal, info)| {
            let _ = self.tracee.set_signal(&info);
            signal
        });
        self.ended.is_none().then_some((self.tracee, signal))
    }

    pub(super) fn release(mut self, left: &mut Left) {
        // If that fails, it was killed.
        let _ = self.come_back();
        let tid = self.tracee.pid();
        self.others.release(left);
        match (self.ended, self.signal) {
            (Some(status), _) => left.has_ended(tid, status),
            (None, Some((signal, info))) => {
                // It stands where it got it.
                let _ = self.tracee.set_signal(&info);
                left.release(self.tracee, signal);
            }
            (None, None) => left.release(self.tracee, 0),
        }
        for signal in self.signals {
            crate::sampler::signals::send_to_thread(self.pid, tid, signal);
        }
    }
}

pub(super) fn open_memory(pid: i32) -> io::Result<File> {
    let mut open = OpenOptions::new();
    { open.read(true).write(true) }.open(format!("/proc/{pid}/mem"))
}

// Whole pages are read, changed and written: one system call for each change would take seconds in
// a large program.
pub(super) fn change(memory: &File, changes: &[Change]) -> io::Result<Vec<usize>> {
    let mut unchanged = Vec::new();
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let start = first.at & !(PAGE as u64 - 1);
        let end = |change: &Change| change.at.saturating_add(u64::from(change.length));
        // Between two mappings there may be nothing to read: a page without changes ends the
        // window.
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
