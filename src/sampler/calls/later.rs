//! Libraries and programs that are loaded and executed later: programs report them by the bell, and
//! wait.
//!
//! glibc calls the function for debuggers when it has mapped the libraries of a `dlopen`, or has
//! relocated them (from 2.41 on), and in both cases before it runs their constructors
//! (`elf/dl-open.c`). What counts from then on counts from its first instruction. The linker's list
//! of files tells what it has loaded itself: other files may have run before.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use super::bell::{Kind, Report};
use super::counting::{Counting, LATER, RESTRICTS, reach};
use super::install::{Arrival, Stopped, open_memory};
use super::loaded::{Auxiliary, Memory};
use super::omens::Omens;
use super::place::Place;
use super::refusals::{Credentials, refuse_changing, refuse_gains};
use super::threads::has_ended;
use super::{shared_memory, start};
use crate::base::system_reason;
use crate::patch::{CallCounter, Chosen, LoadedImage};
use crate::sampler::targets::child::Child;
use crate::sampler::targets::mapped::{mappings, maps};
use crate::sampler::targets::tracee::{Stop, Tracee};

// How long apart a program is looked at that executes another, and how long it may take: others
// that load something wait meanwhile.
const APART: Duration = Duration::from_micros(50);
const PATIENCE: Duration = Duration::from_secs(1);
// The most files of the dynamic linker's list, and its most namespaces.
const LISTED: usize = 1 << 14;
// The longest path, in bytes.
const PATH: usize = 4096;

impl Counting {
    pub(in crate::sampler) fn attend(
        &mut self,
        planner: &mut CallCounter,
        child: Option<&mut Child>,
    ) {
        self.look_at_traced(planner);
        let mut report = self.bell.report();
        while let Some(waiting) = report {
            // Whatever comes now, it is not the time to count without locks.
            self.end_traced();
            match waiting.kind {
                Kind::Loads => {
                    self.loaded(waiting, planner);
                    self.bell.answer();
                }
                Kind::Execs => self.executes(waiting, planner),
                // Nobody has followed it.
                Kind::Failed => self.bell.answer(),
            }
            report = self.bell.waiting();
        }
        self.settle(child);
        self.free_lost_lock(planner);
        self.keep_limit(planner);
    }

    // Frees the lock if who has it was killed, or does not report: a signal handler may have come
    // first, and not return.
    fn free_lost_lock(&mut self, planner: &mut CallCounter) {
        let holder = self.bell.holder();
        if holder == 0 || self.bell.waiting().is_some() {
            self.held = None;
            return;
        }
        let since = self.held.filter(|(held, _)| *held == holder);
        let (_, since) = *self.held.insert(since.unwrap_or((holder, Instant::now())));
        let is_lost = since.elapsed() > PATIENCE;
        if is_lost || has_ended(holder, holder) {
            self.bell.free_from(holder);
            self.held = None;
        }
        if is_lost {
            // If it reports after all, that may mix with what others report.
            self.areas.refuse_any();
            let reason = "a thread that was about to report did not for seconds";
            planner.refused(Path::new(LATER), reason);
        }
    }

    fn loaded(&mut self, report: Report, planner: &mut CallCounter) {
        let Report { pid, thread, .. } = report;
        let Some(memory) = self.memory_of(report) else {
            self.areas.refuse_any();
            let libraries = format!("libraries of process {pid}");
            let reason = "it has another number here, or has ended";
            return planner.refused(Path::new(&libraries), reason);
        };
        let list = memory.images.iter().find(|image| image.is_program);
        let list = list.and_then(|program| planner.loader_list(program));
        let list = list.and_then(|at| LoaderList::read(thread, at));
        // It is about to load or to unload something, and reports again.
        if list.as_ref().is_some_and(|list| !list.is_settled) {
            return;
        }
        let known = self.known.insert(pid, memory.known());
        let mut news = memory.images.clone();
        if let Some(known) = &known {
            news.retain(|image| !known.contains(&(image.identity, image.span.0)));
        }
        self.heed(report, &news, planner);
        // Only the program of the process may be refused, and it counts already.
        let mut chosen = planner.choose(&news, true).unwrap_or_default();
        for chosen in &mut chosen {
            let image = news.get(chosen.image);
            let mut images = memory.images.iter();
            chosen.image = images
                .position(|it| Some(it) == image)
                .unwrap_or(usize::MAX);
        }
        if chosen.is_empty() {
            return;
        }
        let listed = |chosen: &Chosen| {
            let list = list.as_ref();
            list.is_some_and(|list| list.loaded.contains(&chosen.bias)) && !chosen.changes_code
        };
        let names: Vec<PathBuf> = { chosen.iter() }
            .filter_map(|chosen| Some(memory.images.get(chosen.image)?.path.clone()))
            .collect();
        let is_forked = known.is_none();
        let made = refuse_changing(thread).and_then(|()| {
            let stopped = Stopped::attach(pid, &mut self.left);
            let mut stopped = stopped.map_err(|error| system_reason(&error))?;
            let made =
                self.install_later(&mut stopped, memory, &chosen, &listed, is_forked, planner);
            stopped.release(&mut self.left);
            made
        });
        if let Err(reason) = made {
            for chosen in &chosen {
                self.areas.refuse(chosen.file);
            }
            for name in names {
                planner.refused(&name, &reason);
            }
        }
    }

    /// Reports nothing more from a process that has loaded code that may restrict its system calls,
    /// before that code runs.
    fn heed(&mut self, report: Report, news: &[LoadedImage], planner: &mut CallCounter) {
        let maps = maps(report.thread).unwrap_or_default();
        let mapped: Vec<_> = mappings(&maps).collect();
        let Ok(memory) = open_memory(report.thread) else {
            return;
        };
        let read = |at: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, at);
        if !Omens::of(news.iter(), &mut self.looked_through, &mapped, &read).filters {
            return;
        }
        planner.refused(Path::new(LATER), RESTRICTS);
        self.areas.refuse_any();
        let Ok(stopped) = Stopped::attach(report.pid, &mut self.left) else {
            return;
        };
        for change in &self.reports {
            // Another process has it elsewhere.
            let _ = stopped.change(&[change.undone()]);
        }
        stopped.release(&mut self.left);
    }

    fn install_later(
        &mut self,
        stopped: &mut Stopped,
        mut memory: Memory,
        chosen: &[Chosen],
        listed: &dyn Fn(&Chosen) -> bool,
        is_forked: bool,
        planner: &mut CallCounter,
    ) -> Result<(), String> {
        let descriptor = self.open_in(stopped)?;
        let mut made = Ok(());
        for chosen in chosen {
            let place = Place {
                stopped,
                memory: &mut memory,
                shared: &self.shared,
                descriptor,
            };
            // It has what its parent had.
            if is_forked && self.areas.counts(&place, chosen).unwrap_or(false) {
                continue;
            }
            let is_part = !listed(chosen) || !self.bell.is_open();
            made = made.and(self.install(
                stopped,
                &mut memory,
                (chosen, is_part),
                planner,
                descriptor,
            ));
        }
        let closed = self.close(stopped, descriptor);
        made.and(closed).map_err(|error| error.to_string())
    }

    pub(super) fn open_in(&self, stopped: &mut Stopped) -> Result<u64, String> {
        shared_memory::open_in(&self.shared, stopped).map_err(|error| {
            let reason = system_reason(&error);
            format!("the process cannot open the memory of the counters: {reason}")
        })
    }

    /// The memory of the process that reports; `None` if it has another number here, or has ended.
    fn memory_of(&self, report: Report) -> Option<Memory> {
        let Report { pid, thread, .. } = report;
        fs::metadata(format!("/proc/{pid}/task/{thread}")).ok()?;
        // The first thread may have ended, which shows nothing then.
        let auxiliary = Auxiliary::of(thread).ok()?;
        let memory = Memory::of(thread, auxiliary).ok()?;
        memory.shares(self.identity().ok()?).then_some(memory)
    }

    fn executes(&mut self, report: Report, planner: &mut CallCounter) {
        let may_follow = { self.follows }.then(|| self.may_follow(report));
        let path = match may_follow.flatten() {
            Some(Ok(path)) => path,
            Some(Err((path, reason))) => {
                planner.refused(&path, &reason);
                return self.bell.let_go();
            }
            None => return self.bell.let_go(),
        };
        let pid = report.pid;
        let tracee = match Tracee::seize(pid) {
            Ok(tracee) => tracee,
            Err(error) => {
                planner.refused(&path, &system_reason(&error));
                return self.bell.let_go();
            }
        };
        let credentials = Credentials::of(pid);
        self.bell.answer();
        let waited = match self.wait_for_exec(&tracee) {
            // It looks for the program in other places, or goes on without it.
            Ok(Waited::Failed(signal)) => {
                self.left.release(tracee, signal);
                return self.bell.answer();
            }
            Ok(Waited::Executed) => match credentials.refuse_more(&Credentials::of(pid)) {
                Ok(()) => self.begin_program(tracee, planner),
                Err(reason) => {
                    self.known.remove(&pid);
                    self.left.release(tracee, 0);
                    Err(reason)
                }
            },
            Ok(Waited::Ended(status)) => {
                self.left.has_ended(pid, status);
                Ok(())
            }
            Ok(Waited::Late { stands }) => {
                if stands {
                    self.left.release(tracee, 0);
                } else {
                    // It stops when it can, and is let go.
                    let _ = tracee.stop();
                    self.left.release_soon(tracee);
                }
                Err("it did not become the program that it was about to execute".into())
            }
            Err(error) => {
                self.left.release(tracee, 0);
                Err(system_reason(&error))
            }
        };
        self.bell.free();
        if let Err(reason) = waited {
            planner.refused(&path, &reason);
        }
    }

    /// The path of the program that a process is about to execute, or why it is not followed.
    /// `None` if the process is not known.
    fn may_follow(&self, report: Report) -> Option<Result<PathBuf, (PathBuf, String)>> {
        self.memory_of(report)?;
        let Report {
            pid, thread, path, ..
        } = report;
        let path = executed(pid, path)?;
        let refused = if thread == pid {
            refuse_changing(pid).and_then(|()| refuse_gains(&path))
        } else {
            Err("it is executed by another thread than the first".into())
        };
        Some(match refused {
            Ok(()) => Ok(path),
            Err(reason) => Err((path, reason)),
        })
    }

    fn wait_for_exec(&self, tracee: &Tracee) -> io::Result<Waited> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            match tracee.has_stopped()? {
                Some(Stop::Exec) => return Ok(Waited::Executed),
                Some(Stop::Ended(status)) => return Ok(Waited::Ended(status)),
                Some(Stop::Signal(signal)) => tracee.resume(signal)?,
                Some(Stop::Trap | Stop::Made | Stop::Asked | Stop::Call) => tracee.resume(0)?,
                // The whole process was stopped.
                Some(Stop::Other) => return Ok(Waited::Late { stands: true }),
                None => {}
            }
            let waiting = self.bell.waiting();
            if waiting.is_some_and(|it| it.kind == Kind::Failed && it.pid == tracee.pid()) {
                tracee.stop()?;
                return Ok(match tracee.wait()? {
                    Stop::Ended(status) => Waited::Ended(status),
                    Stop::Signal(signal) => Waited::Failed(signal),
                    _ => Waited::Failed(0),
                });
            }
            std::thread::sleep(APART);
        }
        Ok(Waited::Late { stands: false })
    }

    fn begin_program(&mut self, tracee: Tracee, planner: &mut CallCounter) -> Result<(), String> {
        let pid = tracee.pid();
        self.known.remove(&pid);
        let arrival = reach(tracee, planner, Some(start::PATIENCE), &mut self.left);
        let mut stopped = match arrival.map_err(|error| system_reason(&error))? {
            Arrival::At(stopped) => stopped,
            Arrival::Ended(status) => {
                self.left.has_ended(pid, status);
                return Ok(());
            }
        };
        let made = self.open_in(&mut stopped).and_then(|descriptor| {
            let made = self.install_program(&mut stopped, planner, descriptor);
            made.map_err(|error| error.to_string())
        });
        stopped.release(&mut self.left);
        made?;
        self.followed += 1;
        Ok(())
    }
}

enum Waited {
    Executed,
    /// It did not execute anything; it is stopped, and about to get this signal, or 0.
    Failed(i32),
    Ended(i32),
    // It has done neither for a while, or was stopped by a signal. Somebody may never execute what
    // was announced: a signal handler may come first, and not return.
    Late {
        stands: bool,
    },
}

fn executed(pid: i32, at: u64) -> Option<PathBuf> {
    let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = Vec::new();
    // Behind the path there may be nothing, but its page is there.
    while !bytes.contains(&0) && bytes.len() < PATH {
        let from = at.checked_add(bytes.len() as u64)?;
        let mut piece = vec![0; (4096 - from % 4096) as usize];
        memory.read_exact_at(&mut piece, from).ok()?;
        bytes.extend(piece);
    }
    let end = bytes.iter().position(|&byte| byte == 0)?;
    bytes.truncate(end);
    let path = PathBuf::from(OsString::from_vec(bytes));
    if let Ok(own) = path.strip_prefix("/proc/self") {
        return Some(PathBuf::from(format!("/proc/{pid}")).join(own));
    }
    let from = if path.is_absolute() { "root" } else { "cwd" };
    let inside = path.strip_prefix("/").unwrap_or(&path);
    Some(
        fs::read_link(format!("/proc/{pid}/{from}"))
            .ok()?
            .join(inside),
    )
}

/// What the dynamic linker has loaded in a process (`struct r_debug`).
#[derive(Debug, Default)]
struct LoaderList {
    /// What is added to the addresses that files state.
    loaded: FxHashSet<u64>,
    is_settled: bool,
}

impl LoaderList {
    /// Reads it; at the address `at` is its address.
    fn read(pid: i32, at: u64) -> Option<LoaderList> {
        let memory = fs::File::open(Path::new("/proc").join(format!("{pid}/mem"))).ok()?;
        let words = |at: u64| -> Option<[u64; 6]> {
            let mut bytes = [0; 48];
            memory.read_exact_at(&mut bytes, at).ok()?;
            let (words, _) = bytes.as_chunks::<8>();
            let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
            Some(std::array::from_fn(|_| words.next().unwrap_or(0)))
        };
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, at).ok()?;
        let mut list = LoaderList {
            is_settled: true,
            ..LoaderList::default()
        };
        let mut namespace = u64::from_le_bytes(bytes);
        let mut left = LISTED;
        // The version, the first file, the function for debuggers, the state, where the linker is,
        // and from version 2 on the next namespace.
        while namespace != 0 && left > 0 {
            left -= 1;
            let [version, mut file, _, state, _, next] = words(namespace)?;
            list.is_settled &= state as u32 == 0;
            while file != 0 && left > 0 {
                left -= 1;
                // What is added to addresses, the name, the dynamic section, the next file.
                let [bias, _, _, following, ..] = words(file)?;
                list.loaded.insert(bias);
                file = following;
            }
            namespace = if version as u32 >= 2 { next } else { 0 };
        }
        Some(list)
    }
}
