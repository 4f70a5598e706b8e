//! Counting from its preparation to the counts.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use super::address_space::{pages, places};
use super::install::{Arrival, Stopped};
use super::{CallPlanner, Change, StubArea};
use crate::base::system_reason;
use crate::perfdata::CallCounts;
use crate::sampler::error::Error;
use crate::sampler::status::field;
use crate::sampler::targets::child::Child;
use crate::sampler::targets::command::Command;
use crate::sampler::targets::mapped::mappings;
use crate::sampler::targets::tracee::{self, Tracee};

/// The name of the shared memory, by which readers of recordings know stubs.
const NAME: &CStr = c"proftool-calls";
/// How many places are tried for the stubs of one file.
const TRIES: usize = 64;
const SET_ID: u32 = 0o6000;

/// A program that counts its calls, or is about to.
#[derive(Debug)]
pub(in crate::sampler) struct Counting {
    shared: File,
    /// For each file the offset of its counters.
    counters: Vec<u64>,
    counts: CallCounts,
    /// What the counters had counted when the recording began.
    before: Vec<Vec<u64>>,
    /// The number of the shared memory's descriptor in the program.
    descriptor: u64,
    attached: Option<Attached>,
}

/// A process that ran before its calls were counted, and is to go on as it was.
#[derive(Debug)]
struct Attached {
    pid: i32,
    /// What restores its code, in order of address for each file.
    restores: Vec<Vec<Change>>,
}

impl Counting {
    /// Makes the memory that is shared with a command, which is to be forked after that, and has its
    /// code read.
    pub(in crate::sampler) fn prepare(
        command: &Command,
        planner: &mut dyn CallPlanner,
    ) -> Result<Counting, Error> {
        refuse_privileges(command)?;
        let refused = |reason| Error::Counting {
            action: "count the program's calls",
            reason,
        };
        // As mappings will name it.
        let program = command.code_file();
        let program = fs::canonicalize(&program).unwrap_or(program);
        planner.prepare(&program).map_err(refused)?;
        let shared = tracee::shared_memory(NAME);
        let shared = shared.map_err(Error::counting("make shared memory"))?;
        let descriptor = shared.as_raw_fd() as u64;
        Ok(Counting::with(shared, descriptor))
    }

    fn with(shared: File, descriptor: u64) -> Counting {
        Counting {
            shared,
            counters: Vec::new(),
            counts: CallCounts::default(),
            before: Vec::new(),
            descriptor,
            attached: None,
        }
    }

    /// Makes a process count its calls that runs already. All of its threads stop for that. It is as
    /// before when the value is dropped, but for the memory of the stubs, in which a thread may be.
    pub(in crate::sampler) fn attach(
        pid: i32,
        planner: &mut dyn CallPlanner,
    ) -> Result<Counting, Error> {
        let refused = |reason| Error::Counting {
            action: "count the calls of the process",
            reason,
        };
        let program = fs::canonicalize(format!("/proc/{pid}/exe"));
        let program = program.map_err(Error::counting("find the program of the process"))?;
        refuse_running(pid).map_err(refused)?;
        planner.prepare(&program).map_err(refused)?;
        let mut stopped = Stopped::attach(pid).map_err(|error| not_traced(&error))?;
        let made = Counting::make_in(&mut stopped, pid, planner);
        let released = stopped.release();
        let counting = made?;
        released.map_err(Error::counting("let the process run"))?;
        Ok(counting)
    }

    fn make_in(
        stopped: &mut Stopped,
        pid: i32,
        planner: &mut dyn CallPlanner,
    ) -> Result<Counting, Error> {
        let making = Error::counting("make memory in the process");
        let descriptor = stopped.make_shared_memory(NAME).map_err(making)?;
        let mut open = OpenOptions::new();
        let shared = { open.read(true).write(true) }.open(format!("/proc/{pid}/fd/{descriptor}"));
        let shared = shared.map_err(Error::counting("share memory with the process"))?;
        let mut counting = Counting::with(shared, descriptor);
        counting.attached = Some(Attached {
            pid,
            restores: Vec::new(),
        });
        match counting.install(stopped, planner) {
            Ok(()) => Ok(counting),
            Err(error) => {
                // It is stopped already.
                if let Some(attached) = counting.attached.take() {
                    attached.restore(stopped);
                }
                Err(error)
            }
        }
    }

    /// Starts the command, and makes it count its calls before it runs.
    pub(in crate::sampler) fn start(
        &mut self,
        child: &mut Child,
        command: &Command,
        planner: &mut dyn CallPlanner,
    ) -> Result<(), Error> {
        let tracee = Tracee::seize(child.pid()).map_err(|error| not_traced(&error))?;
        let Some(tracee) = child.start_traced(command, tracee)? else {
            return Ok(());
        };
        let arrival = Stopped::reach(tracee, &mut |path: PathBuf, base: u64| {
            let stop = planner.loader_stop(&path)?;
            Some((base.wrapping_add(stop.at), stop.stops))
        });
        let mut stopped = match arrival.map_err(Error::counting("stop the program"))? {
            Arrival::At(stopped) => stopped,
            Arrival::Ended(status) => {
                child.has_ended(status);
                return Ok(());
            }
        };
        self.install(&mut stopped, planner)?;
        let released = stopped.release();
        released.map_err(Error::counting("let the program run"))
    }

    fn install(
        &mut self,
        stopped: &mut Stopped,
        planner: &mut dyn CallPlanner,
    ) -> Result<(), Error> {
        let changing = Error::counting("change the program's memory");
        let memory = stopped
            .loaded()
            .map_err(Error::counting("read the program's memory"))?;
        let chosen = planner.choose(&memory.images);
        let chosen = chosen.map_err(|reason| Error::Counting {
            action: "count the program's calls",
            reason,
        })?;
        let mut taken = memory.taken;
        let mut offset = 0;
        let mut areas = Vec::new();
        for chosen in &chosen {
            let stubs = pages((chosen.stubs * chosen.stub_size) as u64);
            let counters = pages(chosen.stubs as u64 * 8);
            areas.push((offset, stubs, counters));
            offset += stubs + counters;
        }
        let sized = self.shared.set_len(offset);
        sized.map_err(Error::counting("make room for counters"))?;
        for (number, (chosen, &(offset, stubs, counters))) in chosen.iter().zip(&areas).enumerate()
        {
            self.counters.push(offset + stubs);
            let Some(image) = memory.images.get(chosen.image).filter(|_| stubs > 0) else {
                continue;
            };
            let at = self.map(stopped, &taken, image.span, (offset, stubs, counters))?;
            taken.push((at, at + stubs + counters));
            taken.sort_unstable();
            let area = StubArea {
                stubs: at,
                counters: at + stubs,
                offset,
            };
            let plan = planner.plan(number, area);
            let written = self.shared.write_all_at(&plan.stubs, offset);
            written.map_err(Error::counting("write the stubs"))?;
            if let Some(attached) = &mut self.attached {
                let restores = plan.changes.iter().map(|change| Change {
                    old: change.new,
                    new: change.old,
                    ..*change
                });
                attached.restores.push(restores.collect());
            }
            let unchanged = stopped.change(&plan.changes);
            let unchanged = unchanged.map_err(Error::counting("change the program's code"))?;
            planner.unchanged(number, &unchanged);
        }
        let close = [self.descriptor, 0, 0, 0, 0, 0];
        stopped.call(libc::SYS_close, close).map_err(changing)?;
        self.counts = planner.counts();
        if stopped.is_late {
            self.begin_late();
        }
        Ok(())
    }

    /// Maps stubs and counters of a file into the program. Returns the address.
    fn map(
        &self,
        stopped: &mut Stopped,
        taken: &[(u64, u64)],
        span: (u64, u64),
        (offset, stubs, counters): (u64, u64, u64),
    ) -> Result<u64, Error> {
        let mapping = Error::counting("map stubs into the program");
        let mut map = |at: u64, length: u64, protection: i32, offset: u64| {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
            let flags = flags as u64;
            let arguments = [
                at,
                length,
                protection as u64,
                flags,
                self.descriptor,
                offset,
            ];
            stopped.call(libc::SYS_mmap, arguments)
        };
        let mut refused = io::Error::other("no memory is free within 2 GB of its code");
        for at in places(taken, span, stubs + counters).take(TRIES) {
            match map(at, stubs, libc::PROT_READ | libc::PROT_EXEC, offset) {
                Ok(found) if found == at => {
                    let protection = libc::PROT_READ | libc::PROT_WRITE;
                    map(at + stubs, counters, protection, offset + stubs).map_err(mapping)?;
                    return Ok(at);
                }
                // Kernels before 4.17 take the address for a wish.
                Ok(_) => {
                    let old = "kernel does not map memory at fixed addresses (Linux 4.17 does)";
                    return Err(mapping(io::Error::other(old)));
                }
                Err(error) => refused = error,
            }
            if refused.raw_os_error() != Some(libc::EEXIST) {
                break;
            }
        }
        Err(mapping(refused))
    }

    /// Libraries have run code before: what they count is a part.
    fn begin_late(&mut self) {
        let libraries = self.counts.images.iter_mut().skip(1);
        let sites = libraries.flat_map(|image| &mut image.sites);
        sites.for_each(|site| site.is_part = true);
    }

    /// From now on is recorded: calls made before are not counted.
    pub(in crate::sampler) fn begin(&mut self) -> io::Result<()> {
        self.before = self.read()?;
        Ok(())
    }

    /// Nothing more is recorded: a process that ran before gets its code back, and what it counts later
    /// does not matter.
    pub(in crate::sampler) fn end(&mut self) {
        if let Some(attached) = self.attached.take()
            && let Ok(mut stopped) = Stopped::attach(attached.pid)
        {
            attached.restore(&mut stopped);
            // It may have ended.
            let _ = stopped.release();
        }
    }

    /// The counts, which are those since the beginning of the recording.
    pub(in crate::sampler) fn counts(&self) -> io::Result<CallCounts> {
        let mut counts = self.counts.clone();
        let counters = self.read()?;
        for (number, (image, counters)) in counts.images.iter_mut().zip(counters).enumerate() {
            let before = self
                .before
                .get(number)
                .map(Vec::as_slice)
                .unwrap_or_default();
            for (place, (site, now)) in image.sites.iter_mut().zip(counters).enumerate() {
                let before = before.get(place).copied().unwrap_or(0);
                site.calls = site.calls.map(|_| now.saturating_sub(before));
            }
        }
        Ok(counts)
    }

    fn read(&self) -> io::Result<Vec<Vec<u64>>> {
        let files = self.counts.images.iter().zip(&self.counters);
        let counters = files.map(|(image, &offset)| {
            let mut bytes = vec![0; image.sites.len() * 8];
            self.shared.read_exact_at(&mut bytes, offset)?;
            let (words, _) = bytes.as_chunks::<8>();
            Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
        });
        counters.collect()
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.end();
    }
}

impl Attached {
    /// Restores what has the changed bytes still: the process may have become another program, or may
    /// have unmapped a file.
    fn restore(self, stopped: &mut Stopped) {
        for changes in &self.restores {
            let _ = stopped.change(changes);
        }
    }
}

fn not_traced(error: &io::Error) -> Error {
    Error::NotTraced {
        reason: system_reason(error),
        scope: ptrace_scope(),
    }
}

/// Why the calls of a process that runs cannot be counted, if so.
fn refuse_running(pid: i32) -> Result<(), String> {
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
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    if is_mapped(&maps, CallCounts::MAPPING.as_bytes()) {
        let reason = "they are being counted already, or were by a recorder that was killed";
        return Err(reason.into());
    }
    Ok(())
}

/// Whether a line of `/proc/PID/maps` has this path.
fn is_mapped(maps: &[u8], path: &[u8]) -> bool {
    let mut mapped = mappings(maps);
    mapped.any(|mapped| mapped.path == path)
}

/// Under a tracer without privileges, a program does not gain any by being run.
fn refuse_privileges(command: &Command) -> Result<(), Error> {
    let program = command.program();
    let metadata = fs::metadata(program);
    let owner = fs::metadata("/proc/self").map_or(0, |own| own.uid());
    let gains = metadata.is_ok_and(|found| found.mode() & SET_ID != 0 && found.uid() != owner)
        || tracee::has_capabilities(&command.program);
    if gains && owner != 0 {
        return Err(Error::Counting {
            action: "count the program's calls",
            reason: format!(
                "{} gains privileges when it is run, and would run without them",
                std::path::Path::new(std::ffi::OsStr::from_bytes(command.program.as_bytes()))
                    .display()
            ),
        });
    }
    Ok(())
}

/// Who may trace whom (`Documentation/admin-guide/LSM/Yama.rst`).
fn ptrace_scope() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    text.trim().parse().ok()
}
