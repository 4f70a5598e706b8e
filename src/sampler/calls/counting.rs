//! Counting from its preparation to the counts.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::areas::Areas;
use super::bell::Bell;
use super::given_up::GivenUp;
use super::install::{Arrival, Stopped};
use super::limit::Limit;
use super::loaded::Memory;
use super::omens::{Known, Omens};
use super::place::Place;
use super::refusals::{ptrace_scope, refuse_changing, refuse_privileges};
use super::threads::{Left, living};
use super::traced::{Traced, Unlocked};
use super::{agent, shared_memory};
use crate::base::system_reason;
use crate::patch::{Adding, CallCounter, Change, Chosen, FileIdentity};
use crate::perfdata::{CallCounts, CountedAgent};
use crate::sampler::error::Error;
use crate::sampler::output::tally::Began;
use crate::sampler::targets::child::Child;
use crate::sampler::targets::command::Command;
use crate::sampler::targets::tracee::Tracee;

// What is not counted where nothing is reported.
pub(super) const LATER: &str = "what is loaded later";
pub(super) const RESTRICTS: &str =
    "the program may restrict its system calls (seccomp), and reports would take some";
// The bytes of the agent's code, and those of the bell behind it.
const AGENT: (u64, u64) = (CountedAgent::SIZE, 4096);

#[derive(Debug)]
pub(in crate::sampler) struct Counting {
    pub(super) shared: File,
    pub(super) bell: Bell,
    pub(super) areas: Areas,
    counts: CallCounts,
    before: Vec<Vec<u64>>,
    /// The number of the shared memory's descriptor in the program until that counts.
    descriptor: u64,
    attached: Option<Attached>,
    pub(super) follows: bool,
    pub(super) followed: u64,
    pub(super) agents: Vec<CountedAgent>,
    pub(super) reports: Vec<Change>,
    pub(super) omens: Omens,
    pub(super) looked_through: Known,
    /// Who has the lock of the bell without a report, and since when.
    pub(super) held: Option<(i32, Instant)>,
    pub(super) limit: Option<Limit>,
    pub(super) given_up: GivenUp,
    /// The program, while it is traced and counts without locks.
    pub(super) traced: Option<Traced>,
    pub(super) unlocked: Option<Unlocked>,
    /// The files that processes had mapped when they were looked at last, each with its address.
    pub(super) known: FxHashMap<i32, Vec<(FileIdentity, u64)>>,
    pub(super) left: Left,
}

#[derive(Debug)]
struct Attached {
    pid: i32,
    /// What restores its code, in order of address for each file.
    restores: Vec<Vec<Change>>,
}

impl Counting {
    /// Makes the memory that is shared with a command, which is to be forked after that, and has
    /// its code read.
    pub(in crate::sampler) fn prepare(
        command: &Command,
        planner: &mut CallCounter,
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
        let shared = shared_memory::make();
        let shared = shared.map_err(Error::counting("make shared memory"))?;
        let descriptor = shared.as_raw_fd() as u64;
        let mut counting = Counting::with(shared, descriptor)?;
        counting.follows = planner.follows_exec;
        Ok(counting)
    }

    fn with(shared: File, descriptor: u64) -> Result<Counting, Error> {
        let making = Error::counting("make shared memory");
        shared.write_all_at(&agent::code(), 0).map_err(&making)?;
        let bell = Bell::hang(&shared).map_err(&making)?;
        Ok(Counting {
            shared,
            bell,
            areas: Areas::behind(AGENT.0 + AGENT.1),
            counts: CallCounts::default(),
            before: Vec::new(),
            descriptor,
            attached: None,
            follows: false,
            followed: 0,
            agents: Vec::new(),
            reports: Vec::new(),
            omens: Omens::default(),
            looked_through: Known::default(),
            held: None,
            limit: None,
            given_up: GivenUp::default(),
            traced: None,
            unlocked: None,
            known: FxHashMap::default(),
            left: Left::default(),
        })
    }

    /// Makes a process count its calls that runs already. All of its threads stop for that. It is
    /// as before when the value is dropped, except for the memory of the stubs, in which a thread
    /// may be.
    pub(in crate::sampler) fn attach(
        pid: i32,
        planner: &mut CallCounter,
    ) -> Result<Counting, Error> {
        let refused = |reason| Error::Counting {
            action: "count the calls of the process",
            reason,
        };
        let thread = living(pid);
        let program = fs::canonicalize(format!("/proc/{thread}/exe"));
        let program = program.map_err(Error::counting("find the program of the process"))?;
        refuse_changing(thread).map_err(refused)?;
        planner.prepare(&program).map_err(refused)?;
        let mut left = Left::default();
        let stopped = Stopped::attach(pid, &mut left);
        let mut stopped = stopped.map_err(|error| not_traced(&error))?;
        let made = Counting::make_in(&mut stopped, planner);
        stopped.release(&mut left);
        let mut counting = made?;
        counting.left = left;
        Ok(counting)
    }

    fn make_in(stopped: &mut Stopped, planner: &mut CallCounter) -> Result<Counting, Error> {
        let pid = stopped.pid();
        let shared = shared_memory::share_with(stopped);
        let (shared, descriptor) =
            shared.map_err(Error::counting("share memory with the process"))?;
        let mut counting = Counting::with(shared, descriptor)?;
        counting.attached = Some(Attached {
            pid,
            restores: Vec::new(),
        });
        let made = counting.install_program(stopped, planner, descriptor);
        match made.and_then(|()| counting.watch(pid, planner)) {
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

    pub(in crate::sampler) fn start(
        &mut self,
        child: &mut Child,
        command: &Command,
        planner: &mut CallCounter,
    ) -> Result<(), Error> {
        let tracee = Tracee::seize(child.pid()).map_err(|error| not_traced(&error))?;
        let Some(tracee) = child.start_traced(command, tracee)? else {
            return Ok(());
        };
        let mut stopped = match reach(tracee, planner, None, &mut self.left)
            .map_err(Error::counting("stop the program"))?
        {
            Arrival::At(stopped) => stopped,
            Arrival::Ended(status) => {
                child.has_ended(status);
                return Ok(());
            }
        };
        self.areas.count_alone();
        self.install_program(&mut stopped, planner, self.descriptor)?;
        self.watch(stopped.pid(), planner)?;
        self.go_on(stopped);
        self.settle(Some(child));
        Ok(())
    }

    /// Makes a program count of which nothing has run yet, or all of whose threads stand still.
    pub(super) fn install_program(
        &mut self,
        stopped: &mut Stopped,
        planner: &mut CallCounter,
        descriptor: u64,
    ) -> Result<(), Error> {
        let memory = stopped.loaded();
        let mut memory = memory.map_err(Error::counting("read the program's memory"))?;
        let chosen = planner.choose(&memory.images, false);
        let chosen = chosen.map_err(|reason| Error::Counting {
            action: "count the program's calls",
            reason,
        })?;
        // Libraries have run code before.
        let is_late = stopped.is_late;
        for chosen in &chosen {
            let image = memory.images.get(chosen.image);
            let is_part = is_late && image.is_some_and(|image| !image.is_program);
            self.install(stopped, &mut memory, (chosen, is_part), planner, descriptor)?;
        }
        self.listen(stopped, &mut memory, planner, descriptor)?;
        self.known.insert(stopped.pid(), memory.known());
        self.close(stopped, descriptor)
    }

    /// Makes a file count. Libraries may have run code before (`is_part`).
    pub(super) fn install(
        &mut self,
        stopped: &mut Stopped,
        memory: &mut Memory,
        (chosen, is_part): (&Chosen, bool),
        planner: &mut CallCounter,
        descriptor: u64,
    ) -> Result<(), Error> {
        let pid = stopped.pid();
        let mut place = Place {
            stopped,
            memory,
            shared: &self.shared,
            descriptor,
        };
        let changes = self.areas.install(&mut place, chosen, is_part, planner)?;
        self.will_restore(pid, &changes);
        Ok(())
    }

    pub(super) fn close(&self, stopped: &mut Stopped, descriptor: u64) -> Result<(), Error> {
        let closed = shared_memory::close(stopped, descriptor);
        closed.map_err(Error::counting("change the program's memory"))
    }

    fn will_restore(&mut self, pid: i32, changes: &[Change]) {
        if let Some(attached) = self
            .attached
            .as_mut()
            .filter(|attached| attached.pid == pid)
        {
            let restores = changes.iter().map(Change::undone);
            attached.restores.push(restores.collect());
        }
    }

    fn listen(
        &mut self,
        stopped: &mut Stopped,
        memory: &mut Memory,
        planner: &mut CallCounter,
        descriptor: u64,
    ) -> Result<(), Error> {
        let omens = stopped.omens(memory.images.iter(), &mut self.looked_through);
        self.omens = omens.map_err(Error::counting("read the program's code"))?;
        let loader = memory.images.iter().find(|image| image.is_loader);
        let Some(loader) = loader.cloned() else {
            // It loads nothing, and its system calls are its own.
            return Ok(());
        };
        if self.omens.filters {
            // A report takes system calls.
            if planner.loads_later() || self.follows {
                planner.refused(Path::new(LATER), RESTRICTS);
            }
            return Ok(());
        }
        let on_loads = { planner.loads_later() }
            .then(|| planner.loader_stop(&loader.path))
            .flatten()
            .map(|stop| stopped.auxiliary.loader.wrapping_add(stop.at));
        // What is traced reports it, too.
        let hears_execs = self.follows || self.areas.adding() != Adding::Together;
        let mut images = memory.images.iter().filter(|_| hears_execs);
        let on_execs = images.find_map(|image| {
            let name = image.path.file_name()?.to_str()?;
            name.starts_with("libc.so").then_some(())?;
            planner.function(image, "execve")
        });
        if on_loads.is_none() && on_execs.is_none() {
            return Ok(());
        }
        let mut place = Place {
            stopped,
            memory,
            shared: &self.shared,
            descriptor,
        };
        let code = place.map_near(loader.span, 0, AGENT)?;
        place
            .check(&[(code, 0), (code + AGENT.0, AGENT.0)])
            .map_err(Error::counting("map stubs into the program"))?;
        let changing = Error::counting("change the program's code");
        let first = |at: u64| {
            let mut bytes = [0; 16];
            place.stopped.read(at, &mut bytes).map(|()| bytes)
        };
        let begin = on_loads;
        let on_loads = match on_loads {
            Some(at) => agent::on_loads(at, &first(at).map_err(&changing)?, code),
            None => None,
        };
        let on_execs = match on_execs {
            Some(at) => agent::on_execs(at, &first(at).map_err(&changing)?, code),
            None => None,
        };
        if on_loads.is_none() && planner.loads_later() {
            let reason = format!("the dynamic linker {} is not known", loader.path.display());
            planner.refused(Path::new(LATER), &reason);
        }
        let stands = stopped.program_counter();
        if let (Some(change), Some(begin)) = (&on_loads, begin)
            && (begin..=change.at).contains(&stands)
        {
            // It stands in the function, which does nothing, and there is nothing to report.
            stopped
                .go_on_at(code + agent::returns())
                .map_err(&changing)?;
        }
        let mut changes: Vec<Change> = on_loads.into_iter().chain(on_execs).collect();
        changes.sort_unstable_by_key(|change| change.at);
        self.bell.listen();
        self.bell.hear_execs(hears_execs);
        stopped.change(&changes).map_err(changing)?;
        self.will_restore(stopped.pid(), &changes);
        self.reports.extend(&changes);
        // Without address space randomization, processes of a program have it at the same place.
        let agent = CountedAgent {
            at: code,
            on_loads: on_loads.map_or(0, |change| change.at),
            on_execs: on_execs.map_or(0, |change| change.at),
        };
        if !self.agents.contains(&agent) {
            self.agents.push(agent);
        }
        Ok(())
    }

    fn watch(&mut self, pid: i32, planner: &CallCounter) -> Result<(), Error> {
        if let Some(most) = planner.limit {
            let locks = self.areas.adding() == Adding::Together;
            let limit = Limit::begin(pid, most, locks);
            let action = "measure the processor time of the program";
            self.limit = Some(limit.map_err(Error::counting(action))?);
            self.given_up.begin(pid);
        }
        Ok(())
    }

    /// How long it takes until [`Counting::attend`] has something to do again, if nothing is heard
    /// until then.
    pub(in crate::sampler) fn quiet(&self) -> Option<Duration> {
        let due = self.limit.as_ref().map(Limit::due);
        [due, self.bell.quiet()].into_iter().flatten().min()
    }

    pub(in crate::sampler) fn heard(&self) -> BorrowedFd<'_> {
        self.bell.heard()
    }

    /// From now on is recorded: calls made before are not counted.
    pub(in crate::sampler) fn begin(&mut self) -> io::Result<()> {
        self.before = self.areas.read(&self.shared)?;
        Ok(())
    }

    /// Nothing more is recorded: a process that ran before gets its code back, and what is counted
    /// later does not matter.
    pub(in crate::sampler) fn end(&mut self) {
        self.bell.close();
        self.leave_traced();
        if let Some(attached) = self.attached.take()
            && let Ok(mut stopped) = Stopped::attach(attached.pid, &mut self.left)
        {
            attached.restore(&mut stopped);
            stopped.release(&mut self.left);
        }
    }

    /// Looks after processes that were stopped and have not gone on yet; also when nothing more is
    /// recorded.
    pub(in crate::sampler) fn settle(&mut self, child: Option<&mut Child>) {
        let traced = self.traced.as_ref().map(Traced::numbers);
        self.left.settle(child, &traced.unwrap_or_default());
    }

    pub(in crate::sampler) fn note_began(&mut self, began: &[Began]) {
        if let Some(unlocked) = &mut self.unlocked {
            unlocked.note_began(began);
        }
    }

    pub(in crate::sampler) fn conclude(&mut self, planner: &mut CallCounter) {
        if self.bell.was_left() {
            self.areas.refuse_any();
            let reason = "a process waited for 20 seconds without an answer";
            planner.refused(Path::new(LATER), reason);
        }
        if let Some(unlocked) = self.unlocked.as_ref().filter(|it| it.has_untraced()) {
            self.areas.refuse_any();
            let process = format!("full in process {}", unlocked.pid);
            let reason = "it has made threads or processes that cannot be traced (CLONE_UNTRACED) \
                and shared counters with others, so counts are lower bounds";
            planner.refused(Path::new(&process), reason);
        }
        self.counts = planner.counts(&self.areas.installed());
        self.counts.followed = self.followed;
        self.counts.agents = self.agents.clone();
    }

    pub(in crate::sampler) fn followed(&self) -> u64 {
        self.followed
    }

    pub(in crate::sampler) fn counts(&self) -> io::Result<CallCounts> {
        let mut counts = self.counts.clone();
        let counters = self.areas.read(&self.shared)?;
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

    pub(super) fn identity(&self) -> io::Result<FileIdentity> {
        shared_memory::identity(&self.shared)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.end();
    }
}

impl Attached {
    // Restores what has the changed bytes still: the process may have become another program, or
    // may have unmapped a file.
    fn restore(self, stopped: &mut Stopped) {
        for changes in &self.restores {
            let _ = stopped.change(changes);
        }
    }
}

/// Lets a program run until all that it is linked with is loaded.
pub(super) fn reach(
    tracee: Tracee,
    planner: &mut CallCounter,
    patience: Option<Duration>,
    left: &mut Left,
) -> io::Result<Arrival> {
    let mut stops = |path: PathBuf, base: u64| {
        let stop = planner.loader_stop(&path)?;
        Some((base.wrapping_add(stop.at), stop.stops))
    };
    Stopped::reach(tracee, &mut stops, patience, left)
}

fn not_traced(error: &io::Error) -> Error {
    Error::NotTraced {
        reason: system_reason(error),
        scope: ptrace_scope(),
    }
}
