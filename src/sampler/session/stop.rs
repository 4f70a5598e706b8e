//! Ending a recording early: what a signal to the recorder does to it, and to the command.
//!
//! ```text
//! Running ── from the terminal, which the command got, too ──▶ Awaited ──▶ Over ── once more
//!    └────── to the recorder alone: SIGTERM to the command ─────▲
//! ```

use std::time::{Duration, Instant};

use crate::sampler::signals::{self, Arrived, Sender, Signals};
use crate::sampler::targets::child::Child;
use crate::sampler::targets::descendants;

// Signals closer together than this are one: `timeout` sends to the process and to its group.
const ONCE_MORE: Duration = Duration::from_millis(500);
// How long the command is waited for before that is said.
const SILENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(in crate::sampler) struct Stop {
    began: Option<Instant>,
    /// The signal that came once more.
    over: Option<i32>,
    was_said: bool,
}

impl Stop {
    pub(in crate::sampler) fn began(&self) -> bool {
        self.began.is_some()
    }

    /// The signal that ends the recorder, whether or not the command has ended.
    pub(in crate::sampler) fn over(&self) -> Option<i32> {
        self.over
    }

    /// Whether the command has been waited for so long that this should be said; true once.
    pub(in crate::sampler) fn is_to_be_said(&mut self) -> bool {
        let is_long = self.began.is_some_and(|began| began.elapsed() > SILENCE);
        is_long && !std::mem::replace(&mut self.was_said, true)
    }

    /// Asks the command and what it has started to end.
    pub(in crate::sampler) fn ask(&mut self, child: &mut Child) {
        self.began.get_or_insert_with(Instant::now);
        // The command first: what it starts after the signal is up to it, and a shell that sees its
        // program die would go on with the next.
        let others = descendants::of(child.pid());
        child.signal(libc::SIGTERM);
        for pid in others {
            signals::send(pid, libc::SIGTERM);
        }
    }

    /// Does what signals demand; tells whether the recording is over.
    pub(in crate::sampler) fn attend(
        &mut self,
        mut child: Option<&mut Child>,
        signals: &Signals,
    ) -> bool {
        while let Some(signal) = signals.next() {
            match &mut child {
                Some(child) => self.pass_on(signal, child),
                None => self.began = self.began.or_else(|| Some(Instant::now())),
            }
        }
        match child {
            Some(child) => self.over.is_some() || child.ended().is_some(),
            None => self.began(),
        }
    }

    fn pass_on(&mut self, signal: Arrived, child: &mut Child) {
        let ends = matches!(signal.number, libc::SIGINT | libc::SIGTERM | libc::SIGHUP);
        match signal.sender {
            // It signals its own process group, which is the recorder's, too.
            Sender::Process(pid) if child.pid() == pid => return,
            Sender::Process(pid) if descendants::of(child.pid()).contains(&pid) => return,
            Sender::Process(_) if !ends => return child.signal(signal.number),
            // A time limit that the recorder was started with.
            Sender::Kernel if !signal.is_of_terminal() => return child.signal(signal.number),
            Sender::Process(_) | Sender::Kernel => {}
        }
        match self.began {
            Some(began) if began.elapsed() > ONCE_MORE => self.over = Some(signal.number),
            Some(_) => {}
            None => {
                self.began = Some(Instant::now());
                if signal.sender != Sender::Kernel {
                    child.signal(libc::SIGTERM);
                }
            }
        }
    }
}
