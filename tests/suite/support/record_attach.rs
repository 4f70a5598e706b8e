//! Programs that run while they are recorded.

use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::bound_to_test;
use crate::support::record::{Room, samples, stderr};

pub const BURN_LONG: &str = "while :; do :; done";

/// A program that runs, killed at the end.
pub struct Running(pub(crate) Child);

impl Running {
    pub fn new(mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let running = Running(command.spawn().unwrap());
        sleep(Duration::from_millis(200));
        running
    }

    pub fn shell(script: &str) -> Running {
        let mut command = bound_to_test("sh");
        command.args(["-c", script]);
        Running::new(command)
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Records for half a second, or for longer where others have most of the machine, until this many
/// samples are in `perf.data`. `record` is given the seconds. Returns these, what it printed, and the
/// number of samples.
pub fn record_samples(
    room: &Room,
    least: usize,
    record: impl Fn(&str) -> Output,
) -> (f64, Output, usize) {
    let mut seconds = 0.5;
    loop {
        let output = record(&seconds.to_string());
        succeeds(&output);
        let count = samples(&room.path("perf.data"));
        if count >= least {
            return (seconds, output, count);
        }
        assert!(seconds < 8.0, "{count} samples in {seconds} s");
        seconds *= 4.0;
    }
}

#[track_caller]
pub fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}
