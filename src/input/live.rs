//! A profile of what is being sampled, rebuilt while more samples arrive.
//!
//! ```text
//!  kernel ─▶ sampler ─▶ queue ─▶ trace ─┬▶ symbolize ─▶ Seen ─▶ the caller
//!            thread      │       reader │  looker       ▲
//!            of its own  ▼       thread ▼  thread       │ this thread
//!                     behind         History ─▶ perf.data, if it is asked for
//! ```
//!
//! The thread that empties the kernel's buffers does little else. Records wait in a queue until the
//! reader takes them. If the queue is full, samples are dropped and counted, but not the records
//! between them that state what runs and what is mapped.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::base::{CaveatKind, workers};
use crate::binary::Finder;
use crate::perfdata::Reader;
use crate::profile::Profile;
use crate::sampler::{self, History, Start, Subject, Watched, Watcher, Written};
use crate::symbolize::{Library, symbolize};
use crate::trace::{self, Moment, Unwinding};

use super::{Options, recording};

// How many bytes of records wait for the reader at most.
const QUEUE: usize = 64 << 20;
const FIRST: Duration = Duration::from_millis(250);
// Making profiles takes at most 1/SHARE of the time.
const SHARE: u32 = 4;

/// What was seen up to one moment.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Counts up from 1.
    pub number: u64,
    /// The profile.
    pub profile: Profile,
    /// How long ago the sampling began, or was reset.
    pub elapsed: Duration,
    /// Samples that were taken in since then, faded or not.
    pub samples: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Samples that were dropped because reading could not keep up.
    pub behind: u64,
    /// The number of samples whose rare stacks were merged into one.
    pub seldom: u64,
    /// How often it was reset before; 0 at first.
    pub resets: u64,
    /// The half-life with which its weights fade; `None` if all samples count in full.
    pub half_life: Option<Duration>,
    /// The time of the last record in it, in nanoseconds of the recorder's clock.
    pub until: u64,
}

impl Seen {
    /// All of a profile, as what was seen in this time without a loss.
    pub fn all_of(number: u64, profile: Profile, elapsed: Duration) -> Seen {
        let counts = profile.samples.iter().map(|sample| sample.count);
        Seen {
            number,
            samples: counts.fold(0, u64::saturating_add),
            profile,
            elapsed,
            lost: 0,
            behind: 0,
            seldom: 0,
            resets: 0,
            half_life: None,
            until: 0,
        }
    }
}

/// Something that is being sampled.
#[derive(Default)]
pub struct Live {
    queue: Mutex<Queue>,
    changed: Condvar,
    latest: Mutex<Option<Arc<Seen>>>,
    history: Mutex<Option<History>>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    behind: u64,
    half_life: Option<Duration>,
    looks: bool,
    // How many resets were requested, and how many were done.
    resets_asked: u64,
    resets: u64,
    stops: bool,
    // Nobody looks any more.
    is_alone: bool,
    // What was seen last is all that there is.
    is_over: bool,
    begun: Option<Instant>,
    // Nothing more will come.
    ended: bool,
    // All that came was taken in.
    is_read: bool,
    outcome: Option<Watched>,
    // A thread has panicked.
    is_broken: bool,
}

enum Item {
    Records(Vec<u8>),
    EndOfRound,
}

enum Work {
    Item(Item),
    // With samples faded by this half-life, or not.
    Look(Option<Duration>),
    Reset,
    End,
}

/// Samples a subject, in a thread of its own, and lets `view` look at it. When `view` returns, the
/// sampling ends, and with it the command; when the sampling ends first, `view` may go on looking.
/// A profile is rebuilt every `interval`, or less often if that takes more than a quarter of the
/// time.
///
/// Signals are only held back in the thread that samples: others may wait for them.
///
/// # Errors
///
/// Those of [`sampler::watch`].
pub fn watch(
    (sampling, subject, bounds): (&sampler::Options, Subject<'_>, &sampler::Bounds),
    reading: &Options,
    interval: Duration,
    notes: &mut (dyn FnMut(sampler::Note) + Send),
    view: impl FnOnce(&Live),
) -> Result<Watched, sampler::Error> {
    let finder = Finder::new(reading.symfs.as_deref());
    let library = recording::library(reading, finder);
    let (live, library) = (&Live::default(), &library);
    workers::scope(|workers| {
        // All threads are there before anything is started. Where there is nothing to read or to
        // look at, the other ends of their channels are dropped.
        let (heads, head) = mpsc::channel();
        let (moments, to_see) = mpsc::channel();
        let (goes, go) = mpsc::channel();
        let read = move || {
            if let Ok(head) = head.recv() {
                let _guard = Guard(live);
                read(live, library, head, &moments);
            }
        };
        let look = move || {
            if go.recv().is_ok() {
                let _guard = Guard(live);
                look(live, library, interval, &to_see);
            }
        };
        let (begins, begun) = mpsc::channel();
        let sample = move || {
            let _guard = Guard(live);
            let mut audience = Audience { live, begins };
            let watched = sampler::watch(sampling, subject, bounds, &mut audience, notes);
            let mut queue = live.queue();
            queue.ended = true;
            queue.outcome = watched.as_ref().ok().copied();
            drop(queue);
            live.changed.notify_all();
            watched
        };
        let no_thread = || sampler::Error::NoThread;
        workers.start(read).map_err(|_| no_thread())?;
        workers.start(look).map_err(|_| no_thread())?;
        let sampler = workers.start(sample).map_err(|_| no_thread())?;
        // Where it does not begin, the other end is dropped.
        if let Ok(Start {
            head,
            records,
            history,
        }) = begun.recv()
        {
            *live.history.lock().expect("no thread panics") = Some(history);
            let is_alone = heads.send((head, records)).is_err() || goes.send(()).is_err();
            debug_assert!(!is_alone, "both wait");
            let _guard = Guard(live);
            view(live);
            live.leave();
        }
        sampler.join().expect("the sampler does not panic")
    })
}

impl Live {
    /// What was seen last; `None` in the first moments.
    pub fn latest(&self) -> Option<Arc<Seen>> {
        self.latest.lock().expect("no thread panics").clone()
    }

    /// Sets the time in which the weights of samples halve; with `None` they do not fade.
    pub fn set_half_life(&self, half_life: Option<Duration>) {
        self.queue().half_life = half_life;
    }

    /// Forgets all samples so far. The next profile may still be older: see [`Seen::resets`].
    pub fn reset(&self) {
        let mut queue = self.queue();
        queue.resets_asked += 1;
        queue.behind = 0;
        drop(queue);
        self.changed.notify_all();
    }

    /// Writes a perf.data file of the samples that `seen` counts, none of them faded.
    ///
    /// # Errors
    ///
    /// If the file cannot be written. What was at `path` is then still there.
    pub fn write(&self, seen: &Seen, path: &Path) -> Result<Written, sampler::Error> {
        // What is written of does not change, and the reader goes on meanwhile.
        let history = self.history.lock().expect("no thread panics").clone();
        match history {
            Some(history) => history.write(path, seen.until),
            // Nothing is seen before it begins.
            None => Err(sampler::Error::Ended),
        }
    }

    /// How the sampling ended, if it has and all of its samples were read.
    pub fn outcome(&self) -> Option<Watched> {
        let queue = self.queue();
        queue.outcome.filter(|_| queue.is_over)
    }

    /// Whether it has ended because of a fault of its own, and nothing more will come.
    pub fn is_broken(&self) -> bool {
        self.queue().is_broken
    }

    /// Ends the sampling, and with it the command.
    pub fn stop(&self) {
        self.queue().stops = true;
        self.changed.notify_all();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no thread panics")
    }

    fn work(&self) -> Work {
        let mut queue = self.queue();
        loop {
            if queue.resets < queue.resets_asked {
                return Work::Reset;
            }
            if std::mem::take(&mut queue.looks) {
                return Work::Look(queue.half_life);
            }
            if let Some(item) = queue.items.pop_front() {
                if let Item::Records(records) = &item {
                    queue.bytes -= records.len();
                }
                return Work::Item(item);
            }
            if queue.ended {
                return Work::End;
            }
            queue = self.changed.wait(queue).expect("no thread panics");
        }
    }

    // Waits for so long, or until all that came was taken in. Tells whether somebody looks.
    fn pause(&self, most: Duration) -> bool {
        let queue = self.queue();
        let waits = |queue: &mut Queue| !queue.is_read && !queue.is_alone;
        let waited = self.changed.wait_timeout_while(queue, most, waits);
        let (queue, _) = waited.expect("no thread panics");
        !queue.is_alone
    }

    fn leave(&self) {
        let mut queue = self.queue();
        queue.stops = true;
        queue.is_alone = true;
        drop(queue);
        self.changed.notify_all();
    }

    fn ask(&self) {
        self.queue().looks = true;
        self.changed.notify_all();
    }
}

// Nobody may wait for a thread that has panicked; the panic goes on when all have ended.
struct Guard<'a>(&'a Live);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = match self.0.queue.lock() {
                Ok(queue) => queue,
                Err(poisoned) => poisoned.into_inner(),
            };
            queue.is_broken = true;
            queue.stops = true;
            queue.ended = true;
            queue.is_read = true;
            drop(queue);
            self.0.changed.notify_all();
        }
    }
}

// What comes goes into the queue.
struct Audience<'a> {
    live: &'a Live,
    begins: Sender<Start>,
}

impl Watcher for Audience<'_> {
    fn begin(&mut self, start: Start) {
        self.live.queue().begun = Some(Instant::now());
        // Somebody waits for it.
        let _ = self.begins.send(start);
    }

    fn records(&mut self, records: &[u8]) {
        let mut queue = self.live.queue();
        let mut records = records.to_vec();
        if queue.bytes + records.len() > QUEUE {
            let (others, samples) = sampler::samples_apart(&records);
            queue.behind += samples;
            records = others;
        }
        if !records.is_empty() {
            queue.bytes += records.len();
            queue.items.push_back(Item::Records(records));
        }
    }

    fn end_round(&mut self) -> ControlFlow<()> {
        let mut queue = self.live.queue();
        queue.items.push_back(Item::EndOfRound);
        let stops = queue.stops;
        drop(queue);
        self.live.changed.notify_all();
        if stops {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

// A moment, how often it was reset before, and the half-life with which it fades.
type Looked = (Moment, u64, Option<Duration>);

fn read(
    live: &Live,
    library: &Library,
    (head, records): (Vec<u8>, Vec<u8>),
    moments: &Sender<Looked>,
) {
    let Ok(head) = Reader::from_bytes(head) else {
        return;
    };
    let history = |act: &dyn Fn(&mut History)| {
        let mut history = live.history.lock().expect("no thread panics");
        history.as_mut().map(act).unwrap_or_default();
    };
    let unwinding = Unwinding {
        rules: library,
        workers: library.workers(),
    };
    let mut on_hit = |_: &trace::Image| ();
    workers::scope(|workers| {
        let mut trace = trace::LiveTrace::new(head, workers, unwinding, Some(library), &mut on_hit);
        trace.append(records);
        let mut faded = Instant::now();
        loop {
            match live.work() {
                Work::Item(Item::Records(records)) => {
                    history(&|history| history.append(&records));
                    trace.append(records);
                }
                Work::Item(Item::EndOfRound) => {
                    history(&History::end_round);
                    trace.end_round();
                    // By the clock, not by rounds: these take longer on a busy machine.
                    let passed = std::mem::replace(&mut faded, Instant::now()).elapsed();
                    let half_life = live.queue().half_life;
                    if let Some(half_life) = half_life {
                        trace.fade((-passed.as_secs_f64() / half_life.as_secs_f64()).exp2());
                    }
                }
                Work::Look(half_life) => {
                    let moment = trace.look(half_life.is_some());
                    let resets = live.queue().resets;
                    if moments.send((moment, resets, half_life)).is_err() {
                        return;
                    }
                }
                Work::Reset => {
                    // The history is cut at the same time, so that a recording that is written
                    // later has the same samples as the view.
                    let until = trace.reset();
                    history(&|history| history.reset(until));
                    let mut queue = live.queue();
                    queue.begun = Some(Instant::now());
                    queue.resets += 1;
                }
                Work::End => {
                    trace.finish();
                    live.queue().is_read = true;
                    live.changed.notify_all();
                    let half_life = live.queue().half_life;
                    let moment = trace.look(half_life.is_some());
                    let _ = moments.send((moment, live.queue().resets, half_life));
                    return;
                }
            }
        }
    });
}

// Makes a profile each interval, and the last one when the reader has ended.
fn look(live: &Live, library: &Library, interval: Duration, moments: &Receiver<Looked>) {
    let mut pause = FIRST.min(interval);
    let mut number = 0;
    while live.pause(pause) {
        let start = Instant::now();
        live.ask();
        let Ok((moment, resets, half_life)) = moments.recv() else {
            break;
        };
        let queue = live.queue();
        let behind = queue.behind;
        let elapsed = queue.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        drop(queue);
        let mut profile = symbolize(&moment.trace, library);
        library.forget_others(&moment.trace);
        profile.about = recording::about(&moment.trace.recording);
        number += 1;
        let seen = Seen {
            number,
            lost: profile.caveats.count(CaveatKind::Lost),
            profile,
            elapsed,
            samples: moment.samples,
            behind,
            seldom: moment.seldom,
            resets,
            half_life,
            until: moment.until,
        };
        let is_empty = seen.samples == 0;
        *live.latest.lock().expect("no thread panics") = Some(Arc::new(seen));
        let usual = if is_empty {
            FIRST.min(interval)
        } else {
            interval
        };
        pause = usual.max(start.elapsed() * SHARE);
    }
    live.queue().is_over = true;
}
