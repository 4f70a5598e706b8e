//! The terminal: keys in, screens out, until the user quits.
//!
//! ```text
//!   source ──latest──▶ keyboard thread ──seen and wish──▶ preparing thread
//!                        │   ▲    ▲ └─────────────────────── prepared ◀┘
//!                        ▼   │    └───── written ◀── writing thread, while a recording is written
//!                     screen keys
//! ```
//!
//! The keyboard never waits for an analysis, and nothing is drawn unless something is new.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossterm::{event, terminal as modes};
use proftool::base::printable;
use proftool::base::workers::{self, Worker, Workers};
use proftool::profile::Filter;
use proftool::sampler;
use proftool::view::flat::Sort;
use signal_hook::consts::SIGHUP;

use super::app::{Action, App};
use super::changes::Changes;
use super::draw::{self, Paint};
use super::key::Key;
use super::prepare::{Prepared, Preparer};
use super::signals::{Signals, Stops};
use super::source::{Seen, Source, Written};
use super::terminal::{Screen, Terminals};
use super::text::Shown;
use super::wish::{Resolve, Wish};

// The interval of checks for new samples while nothing is being prepared.
const LOOK: Duration = Duration::from_millis(100);
// The interval while something is being prepared.
const LOOK_OFTEN: Duration = Duration::from_millis(5);
// A screen that answers a key waits at most this long for its lines, so that it is not drawn twice.
const PATIENCE: Duration = Duration::from_millis(80);

// Preparing and drawing new samples takes at most 1/SHARE of the time, so that the profiler does
// not disturb what it measures. Keys are answered at once.
const SHARE: u32 = 20;
// However long it takes to make something, it is made again after this time.
const STALE: Duration = Duration::from_secs(10);
// The time that the keyboard thread has to end after a signal.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Options {
    pub paint: Paint,
    pub sort: Sort,
    pub half_life: Option<Duration>,
    // `None` for the event with the most samples.
    pub event: Option<String>,
    pub filter: Filter,
    // What a focus stands for; `None` where it is always taken as it is.
    pub resolve: Option<Resolve>,
    // The part of the time that was read; all, if it is empty.
    pub time: String,
    // Directories and names that are the user's own code; none to tell by debug information.
    pub own: Vec<String>,
    // What has changed since other runs, if it is compared with some.
    pub changes: Option<Arc<Changes>>,
}

// Shows what the source sees, until the user quits or a signal ends it. The caller obeys that
// signal when the source has ended.
pub fn show(source: &dyn Source, shown: &Shown, options: &Options) -> anyhow::Result<Signals> {
    let signals = Signals::watch().context("could not watch for signals")?;
    let stops = Stops::watch().context("could not watch for signals")?;
    source.set_half_life(options.half_life);
    let screen = Screen::open().context("could not use the terminal")?;
    let is_left = AtomicBool::new(false);
    let ended = workers::scope(|workers| {
        // Without it, signals are obeyed by the keyboard thread alone.
        let guard = workers.start(|| guard(source, &signals, &is_left));
        let session = Session::new(source, workers, options, shown);
        let ended = session.run(screen, shown, &signals, &stops, &is_left);
        is_left.store(true, Ordering::Relaxed);
        if let Ok(guard) = guard {
            guard.thread().unpark();
        }
        ended
    });
    source.stop();
    for line in ended? {
        // Where nobody listens nothing can be done.
        let _ = writeln!(io::stderr().lock(), "{}", printable(&line));
    }
    Ok(signals)
}

// A keyboard thread may hang: it reads for ever from a terminal that is gone, and writes for ever
// to one that is stopped. A signal ends the program even then. A terminal that is gone counts as
// SIGHUP, which is not sent to every process that uses it.
fn guard(source: &dyn Source, signals: &Signals, is_left: &AtomicBool) {
    let terminals = Terminals::now();
    while !is_left.load(Ordering::Relaxed) {
        std::thread::park_timeout(LOOK * 2);
        let is_gone = !terminals.are_there();
        if is_gone {
            signals.arrive(SIGHUP);
        }
        if !signals.has_come() {
            continue;
        }
        // Nothing will come from a terminal that is gone.
        std::thread::park_timeout(if is_gone { LOOK * 2 } else { GRACE });
        if !is_left.load(Ordering::Relaxed) {
            source.stop();
            // A thread that is held up in a write holds the lock of the output, so the screen
            // cannot be restored by a write. If the terminal is gone, it need not be.
            let _ = modes::disable_raw_mode();
            // The sampler asks the command to end meanwhile.
            std::thread::sleep(GRACE);
            signals.obey();
            return;
        }
    }
}

enum Done {
    Prepared(Box<Prepared>),
    Written(PathBuf, Result<Written, String>),
}

enum Preparing<'scope> {
    // A thread of its own, so that keys are answered while a large tree is arranged.
    Thread(Worker<'scope, ()>, Sender<(Arc<Seen>, Wish)>),
    // The keyboard thread: no other can be made.
    Keyboard(Box<Preparer>),
}

struct Session<'scope, 'env> {
    source: &'env dyn Source,
    shown: &'env Shown,
    workers: Workers<'scope, 'env>,
    app: App,
    paint: Paint,
    done: Receiver<Done>,
    finished: Sender<Done>,
    // For which moment and wish something is being made, and since when.
    busy: Option<Instant>,
    // When what is new may be made again.
    rested: Instant,
    // The moment and the revision that were asked for last.
    asked: Option<(Arc<Seen>, u64)>,
    preparing: Preparing<'scope>,
    writing: Option<Worker<'scope, ()>>,
    told: Vec<String>,
}

impl<'scope, 'env> Session<'scope, 'env> {
    fn new(
        source: &'env dyn Source,
        workers: Workers<'scope, 'env>,
        options: &Options,
        shown: &'env Shown,
    ) -> Session<'scope, 'env> {
        let (jobs, waiting) = mpsc::channel::<(Arc<Seen>, Wish)>();
        let (finished, done) = mpsc::channel();
        let prepared = finished.clone();
        let preparing = workers.start(move || {
            let mut preparer = Preparer::default();
            for (seen, wish) in waiting {
                let made = prepared_by(&mut preparer, &seen, &wish, (source, shown));
                if prepared.send(made).is_err() {
                    return;
                }
            }
        });
        let preparing = match preparing {
            Ok(thread) => Preparing::Thread(thread, jobs),
            Err(_) => Preparing::Keyboard(Box::default()),
        };
        let mut app = App::new(options.sort, options.half_life);
        app.wish.event = options.event.clone();
        app.wish.focus = options.filter.focus.clone();
        app.wish.resolve = options.resolve;
        app.read_time(&options.time);
        app.wish.own = options.own.clone().into();
        app.wish.changes = options.changes.clone();
        // Keys change the focus; the other filters stay as the options set them.
        app.wish.base = Arc::new(Filter {
            focus: None,
            ..options.filter.clone()
        });
        app.state = source.state();
        Session {
            source,
            shown,
            workers,
            app,
            paint: options.paint,
            done,
            finished,
            busy: None,
            rested: Instant::now(),
            asked: None,
            preparing,
            writing: None,
            told: Vec::new(),
        }
    }

    // Returns what is to be printed after the screen is closed.
    fn run(
        mut self,
        mut screen: Screen,
        shown: &Shown,
        signals: &Signals,
        stops: &Stops,
        is_left: &AtomicBool,
    ) -> anyhow::Result<Vec<String>> {
        let mut is_new = true;
        while !signals.has_come() {
            let has_written = self.writing.as_ref().is_some_and(Worker::is_finished);
            let attended = stops.attend(&mut screen);
            is_new |= attended.context("could not use the terminal")?;
            is_new |= self.look();
            is_new |= self.take();
            // A thread that is gone without a word has panicked, and given the terminal back.
            let is_gone = matches!(&self.preparing, Preparing::Thread(it, _) if it.is_finished());
            if is_gone || has_written && self.writing.is_some() {
                break;
            }
            self.ask();
            let waits = self.busy.is_some_and(|since| since.elapsed() < PATIENCE);
            if is_new && !waits {
                self.draw(&mut screen, shown)?;
                is_new = false;
            }
            let patience = if self.busy.is_some() || is_new {
                LOOK_OFTEN
            } else {
                LOOK
            };
            if !poll(patience)? {
                continue;
            }
            is_new = true;
            let event = event::read().context("could not read from the terminal")?;
            let Some(key) = Key::of(&event) else {
                continue;
            };
            match self.app.key(key) {
                Action::Nothing => {}
                Action::Quit => break,
                Action::Reset => self.source.reset(),
                Action::HalfLife(half_life) => self.source.set_half_life(half_life),
                Action::Write(path) => self.write(path),
                Action::Repaint => screen.clear().context("could not use the terminal")?,
                Action::Suspend => sampler::stop_job(),
                Action::Time(range) => match self.source.set_time(&range) {
                    Ok(()) => self.app.read_time(&range),
                    Err(why) => self.app.refuse_time(range, why),
                },
            }
        }
        drop(screen);
        is_left.store(true, Ordering::Relaxed);
        // A recording is always written to its end.
        if let Some(writing) = self.writing.take() {
            let is_whole = writing.join().is_ok();
            self.take();
            anyhow::ensure!(is_whole, "the recording is incomplete");
        }
        Ok(self.told)
    }

    // Says whether there is something to draw at once.
    fn look(&mut self) -> bool {
        let state = self.source.state();
        let has_ended = state != self.app.state;
        self.app.state = state;
        let before = self.app.latest().map(|seen| seen.number);
        self.app.see(self.source.latest());
        let is_newer = self.app.latest().map(|seen| seen.number) != before;
        has_ended || is_newer && self.app.is_paused()
    }

    // Says whether anything was done.
    fn take(&mut self) -> bool {
        let mut any = false;
        loop {
            match self.done.try_recv() {
                Ok(done) => {
                    self.accept(done);
                    any = true;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return any,
            }
        }
    }

    fn accept(&mut self, done: Done) {
        match done {
            Done::Prepared(prepared) => {
                if let Some(since) = self.busy.take() {
                    self.rested = Instant::now() + (since.elapsed() * SHARE).min(STALE);
                }
                self.app.receive(*prepared);
            }
            Done::Written(path, written) => {
                self.writing = None;
                self.app.written(&path, written);
                self.told.extend(self.app.message.clone());
            }
        }
    }

    // Asks for what is not there yet, unless something is being made.
    fn ask(&mut self) {
        if self.busy.is_some() {
            return;
        }
        let Some(seen) = self.app.current() else {
            return;
        };
        let revision = self.app.wish.revision;
        if let Some((last, asked)) = &self.asked
            && *asked == revision
        {
            // The first figures after a reset are waited for.
            let is_begun_anew = last.resets != seen.resets;
            let may_rest = !is_begun_anew && Instant::now() < self.rested;
            if last.number == seen.number || may_rest {
                return;
            }
        }
        let asking = (Arc::clone(seen), revision);
        let (seen, wish) = (Arc::clone(seen), self.app.wish.clone());
        let began = Instant::now();
        let is_asked = match &mut self.preparing {
            Preparing::Thread(_, jobs) => jobs.send((seen, wish)).is_ok(),
            Preparing::Keyboard(preparer) => {
                let made = prepared_by(preparer, &seen, &wish, (self.source, self.shown));
                self.finished.send(made).is_ok()
            }
        };
        if is_asked {
            self.busy = Some(began);
            self.asked = Some(asking);
        }
    }

    fn write(&mut self, path: PathBuf) {
        if self.writing.is_some() {
            self.app.message = Some("another recording is being written".into());
            return;
        }
        let Some(seen) = self.app.current().cloned() else {
            return;
        };
        self.app.message = Some(format!("writing {} …", path.display()));
        let (source, finished) = (self.source, self.finished.clone());
        let writing = self.workers.start(move || {
            let written = source.write(&seen, &path);
            // Who does not wait for it any more does not miss it.
            let _ = finished.send(Done::Written(path, written));
        });
        match writing {
            Ok(thread) => self.writing = Some(thread),
            Err(write) => write(),
        }
    }

    fn draw(&mut self, screen: &mut Screen, shown: &Shown) -> anyhow::Result<()> {
        let app = &mut self.app;
        let paint = self.paint;
        let drawn = screen.draw(|frame| {
            app.resize(draw::room(frame.area()));
            app.widen(usize::from(frame.area().width));
            draw::draw(app, shown, paint, frame.buffer_mut());
        });
        drawn.context("could not write on the terminal")?;
        Ok(())
    }
}

fn prepared_by(
    preparer: &mut Preparer,
    seen: &Arc<Seen>,
    wish: &Wish,
    (source, shown): (&dyn Source, &Shown),
) -> Done {
    let mut made = Box::new(preparer.prepare(seen, wish));
    made.page = preparer.page(seen, wish, (source, &shown.situation));
    Done::Prepared(made)
}

// Whether the terminal has an event within this time.
fn poll(patience: Duration) -> anyhow::Result<bool> {
    match event::poll(patience) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        polled => polled.context("could not read from the terminal"),
    }
}
