//! Ending a recording early: which processes get a signal, and which one.

use std::time::{Duration, Instant};

use crate::sampler::signals::{self, Signals};
use crate::sampler::targets::child::Child;
use crate::sampler::targets::descendants;

/// How long the command is waited for before it is asked harder.
const GRACE: Duration = Duration::from_secs(2);
/// Signals closer together than this are one: `timeout` sends to the process and to its group.
const ONCE_MORE: Duration = Duration::from_millis(500);

/// How far the ending has come.
///
/// ```text
/// Running ── signal to us alone ──▶ Asked ── 2 s, or once more ──▶ Killed
///    └────── from the terminal ──▶ Awaited ── 2 s ──▶ Asked
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Running,
    /// It has the signal itself and is waited for.
    Awaited,
    Asked,
    Killed,
}

/// The ending of a recording by signals to the recorder.
#[derive(Debug, Default)]
pub(in crate::sampler) struct Stop {
    stage: Stage,
    began: Option<Instant>,
    since: Option<Instant>,
}

impl Stop {
    /// Whether there was a signal to end.
    pub(in crate::sampler) fn began(&self) -> bool {
        self.began.is_some()
    }

    /// Asks the command to end, as a signal to this process does.
    pub(in crate::sampler) fn ask(&mut self, child: &mut Child) {
        if !self.began() {
            self.began = Some(Instant::now());
            self.enter(Stage::Asked, child);
        }
    }

    /// Does what signals and time demand; tells whether the command has ended. Where there is no
    /// command, whether there was a signal to end.
    pub(in crate::sampler) fn attend(
        &mut self,
        child: Option<&mut Child>,
        signals: &Signals,
    ) -> bool {
        let Some(child) = child else {
            let mut arrived = std::iter::from_fn(|| signals.next());
            if !self.began() && arrived.any(|signal| ends(signal.number)) {
                self.began = Some(Instant::now());
            }
            return self.began();
        };
        while let Some(signal) = signals.next() {
            if !ends(signal.number) {
                continue;
            }
            match self.began {
                None => {
                    self.began = Some(Instant::now());
                    if signal.from_terminal {
                        self.enter(Stage::Awaited, child);
                    } else {
                        self.enter(Stage::Asked, child);
                    }
                }
                Some(began) if began.elapsed() > ONCE_MORE => self.enter(Stage::Killed, child),
                Some(_) => {}
            }
        }
        if self.since.is_some_and(|since| since.elapsed() > GRACE) {
            match self.stage {
                Stage::Awaited => self.enter(Stage::Asked, child),
                Stage::Asked => self.enter(Stage::Killed, child),
                Stage::Running | Stage::Killed => {}
            }
        }
        child.ended().is_some()
    }

    fn enter(&mut self, stage: Stage, child: &mut Child) {
        let number = match stage {
            Stage::Asked => Some(libc::SIGTERM),
            Stage::Killed => Some(libc::SIGKILL),
            Stage::Running | Stage::Awaited => None,
        };
        if let Some(number) = number
            && child.ended().is_none()
        {
            // The command first: what it starts after the signal is up to it, and a shell
            // that sees its program die would go on with the next.
            let others = descendants::of(child.pid());
            child.signal(number);
            for pid in others {
                signals::send(pid, number);
            }
        }
        self.stage = stage;
        self.since = Some(Instant::now());
    }
}

/// Whether a signal asks the recorder to end.
fn ends(number: i32) -> bool {
    matches!(number, libc::SIGINT | libc::SIGTERM | libc::SIGHUP)
}
