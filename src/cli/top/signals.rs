//! The signals that end the live screen, stop it and let it go on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proftool::sampler;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use super::terminal::Screen;

// The signals that ask for an end.
#[derive(Debug)]
pub struct Signals {
    arrived: Arc<AtomicUsize>,
    watched: Vec<signal_hook::SigId>,
}

impl Signals {
    // Waits for them from now on, instead of being ended.
    pub fn watch() -> io::Result<Signals> {
        let arrived = Arc::new(AtomicUsize::new(0));
        let mut watched = Vec::new();
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let flag = Arc::clone(&arrived);
            let number = usize::try_from(signal).unwrap_or(0);
            watched.push(signal_hook::flag::register_usize(signal, flag, number)?);
        }
        Ok(Signals { arrived, watched })
    }

    /// Acts as if this signal had come, unless one has.
    pub fn arrive(&self, signal: i32) {
        let number = usize::try_from(signal).unwrap_or(0);
        let (first, relaxed) = (0, Ordering::Relaxed);
        // If one has come it is the one to obey.
        let _ = self
            .arrived
            .compare_exchange(first, number, relaxed, relaxed);
    }

    pub fn has_come(&self) -> bool {
        self.arrived.load(Ordering::Relaxed) != 0
    }

    // Ends the process by the signal that has come, as if nobody had waited for it.
    pub fn obey(&self) {
        let signal = i32::try_from(self.arrived.load(Ordering::Relaxed)).unwrap_or(0);
        if signal != 0 {
            // Of a signal that was registered this does not fail.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.watched.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

// The signals that stop a job and let it go on, as Ctrl-Z and `fg` send them.
#[derive(Debug)]
pub struct Stops {
    stop: Arc<AtomicBool>,
    go_on: Arc<AtomicBool>,
    watched: Vec<signal_hook::SigId>,
}

impl Stops {
    pub fn watch() -> io::Result<Stops> {
        let stop = Arc::new(AtomicBool::new(false));
        let go_on = Arc::new(AtomicBool::new(false));
        let flags = [(SIGTSTP, &stop), (SIGCONT, &go_on)];
        let watched =
            flags.map(|(signal, flag)| signal_hook::flag::register(signal, Arc::clone(flag)));
        let watched = watched.into_iter().collect::<io::Result<_>>()?;
        Ok(Stops {
            stop,
            go_on,
            watched,
        })
    }

    // Says whether the screen is to be drawn again. A command that was started is of the same job:
    // Ctrl-Z stops it, too, and time goes on for neither of them.
    pub fn attend(&self, screen: &mut Screen) -> io::Result<bool> {
        let is_asked = self.stop.swap(false, Ordering::Relaxed);
        if is_asked {
            screen.leave();
            sampler::stop_until_continued();
        }
        // SIGSTOP cannot be caught, so the terminal may have other modes now.
        let was_away = self.go_on.swap(false, Ordering::Relaxed) || is_asked;
        if was_away {
            screen.enter()?;
        }
        Ok(was_away)
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        for id in self.watched.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
