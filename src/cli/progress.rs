//! A progress bar for what takes long.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

// Nothing is shown before this: most answers are there at once.
const PATIENCE: Duration = Duration::from_millis(500);

// How far the reading is, on stderr if that is a terminal.
pub struct Meter {
    started: Instant,
    terminal: bool,
    bar: Option<ProgressBar>,
}

impl Meter {
    pub fn new() -> Meter {
        Meter {
            started: Instant::now(),
            terminal: std::io::stderr().is_terminal(),
            bar: None,
        }
    }

    // Shows that `done` of `total` bytes are read; `total` is 0 where it is not known.
    pub fn show(&mut self, done: u64, total: u64) {
        if !self.terminal || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| bar(total));
        bar.set_position(done);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64) -> ProgressBar {
    let known = total > 0;
    let bar = ProgressBar::with_draw_target(known.then_some(total), ProgressDrawTarget::stderr());
    let template = if known {
        "reading {bar:30} {bytes} of {total_bytes}"
    } else {
        "reading {bytes}"
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style)
}
