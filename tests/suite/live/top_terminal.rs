//! `proftool top` gives its terminal back however it ends, and survives what a terminal can do.
//!
//! Each test makes a pseudo-terminal and reads what is written to it.

#![expect(
    unsafe_code,
    reason = "making a pseudo-terminal has no safe interface in the standard library"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::record::{PROFTOOL, can_record, send};
use crate::support::repeated::repeated;

/// Whatever is waited for comes within this time, or not at all: other tests run meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

const BURN: &str = "while :; do :; done";

/// A descriptor that was just made.
fn owned(fd: i32) -> OwnedFd {
    assert!(fd >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: it was just made, and nothing else knows of it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A terminal: the end that a person has, and the end that programs have.
struct Terminal {
    master: File,
    slave: OwnedFd,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn new() -> Terminal {
        // No other program that is started meanwhile may have these: the terminal would not go
        // away with its owner. openpty(3) cannot do that.
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        // SAFETY: no memory is passed.
        let master = owned(unsafe { libc::posix_openpt(flags) });
        // SAFETY: the descriptor is open; no memory is passed.
        let slave = owned(unsafe {
            libc::unlockpt(master.as_raw_fd());
            libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags)
        });
        let terminal = Terminal {
            master: File::from(master),
            slave,
            written: Arc::default(),
        };
        terminal.resize("30", "100");
        terminal
    }

    fn end(&self) -> Stdio {
        self.slave.try_clone().unwrap().into()
    }

    /// Runs a command here: with the terminal as its controlling one, or only in a session of its
    /// own, which no SIGHUP reaches.
    fn run(&self, controls: bool, words: &[&str]) -> Child {
        crate::support::watch();
        let mut command = Command::new("setsid");
        command.args(controls.then_some("--ctty")).args(words);
        command.env("TERM", "xterm-256color").env("PS1", "$ ");
        command.stdin(self.end()).stdout(self.end());
        let child = command.stderr(self.end()).spawn().unwrap();
        // Its copy of the master would keep the terminal alive: a test that hangs up reads itself.
        if controls {
            let mut master = self.master.try_clone().unwrap();
            let written = Arc::clone(&self.written);
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(got @ 1..) = master.read(&mut bytes) {
                    written.lock().unwrap().extend_from_slice(&bytes[..got]);
                }
            });
        }
        child
    }

    fn top(&self, controls: bool) -> Child {
        self.run(
            controls,
            &[PROFTOOL, "top", "-e", "cpu-clock:u", "sh", "-c", BURN],
        )
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits for a text behind this place of what was written; gives the place behind it.
    #[track_caller]
    fn wait_for(&self, text: &str, from: usize) -> usize {
        let begin = Instant::now();
        loop {
            let all = self.text();
            if let Some(at) = all.get(from..).and_then(|rest| rest.find(text)) {
                return from + at + text.len();
            }
            assert!(begin.elapsed() < PATIENCE, "no {text:?} in:\n{all:?}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn keys(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).unwrap();
    }

    /// All modes of the terminal, as a word.
    fn modes(&self) -> String {
        let stty = Command::new("stty").arg("-g").stdin(self.end()).output();
        String::from_utf8(stty.unwrap().stdout).unwrap()
    }

    fn resize(&self, rows: &str, columns: &str) {
        let mut stty = Command::new("stty");
        stty.args(["rows", rows, "cols", columns]).stdin(self.end());
        assert!(stty.status().unwrap().success());
    }

    /// Neither the other screen nor a hidden cursor was left.
    #[track_caller]
    fn is_given_back(&self) {
        let all = self.text();
        for (on, off) in [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h")] {
            assert!(all.rfind(on) < all.rfind(off), "{on:?} is left on");
        }
    }
}

#[track_caller]
fn status(mut child: Child) -> std::process::ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn a_signal_that_ends_it_leaves_the_terminal_as_it_was() {
    repeated(|| {
        if !can_record() {
            return;
        }
        for (name, number) in [("QUIT", 3), ("TERM", 15), ("INT", 2), ("HUP", 1)] {
            let terminal = Terminal::new();
            let before = terminal.modes();
            let top = terminal.top(true);
            terminal.wait_for("100 % =", 0);
            assert_ne!(terminal.modes(), before, "it is in raw mode");
            send(name, top.id());
            assert_eq!(status(top).signal(), Some(number));
            assert_eq!(terminal.modes(), before);
            terminal.wait_for("\x1b[?1049l", 0);
            terminal.is_given_back();
        }
    });
}

#[test]
fn a_terminal_that_goes_away_without_a_signal_ends_it() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let terminal = Terminal::new();
        let top = terminal.top(false);
        let mut written = Vec::new();
        let mut bytes = [0; 4096];
        let begin = Instant::now();
        while !String::from_utf8_lossy(&written).contains("100 % =") {
            assert!(begin.elapsed() < PATIENCE, "it draws nothing");
            let got = (&terminal.master).read(&mut bytes).unwrap();
            written.extend_from_slice(&bytes[..got]);
        }
        drop(terminal);
        let begin = Instant::now();
        let status = status(top);
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert_ne!(status.code(), Some(101), "it panicked");
        assert!(matches!(status.signal(), None | Some(1)), "{status}");
    });
}

#[test]
fn a_window_of_absurd_size_is_drawn_in_part() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let terminal = Terminal::new();
        let before = terminal.modes();
        let top = terminal.top(true);
        let place = terminal.wait_for("100 % =", 0);
        terminal.resize("65535", "65535");
        terminal.wait_for("100 % =", place);
        let size = std::fs::read_to_string(format!("/proc/{}/statm", top.id())).unwrap();
        let pages = size.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
        assert!(pages < 500 << 20 >> 12, "{pages} pages of memory");
        terminal.resize("30", "100");
        terminal.keys("q");
        assert_eq!(status(top).code(), Some(0));
        assert_eq!(terminal.modes(), before);
    });
}

#[test]
fn control_z_stops_it_and_its_command_and_fg_goes_on() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let terminal = Terminal::new();
        let shell = terminal.run(true, &["sh", "-i"]);
        let place = terminal.wait_for("$ ", 0);
        let before = terminal.modes();
        terminal.keys(&format!("{PROFTOOL} top -e cpu-clock:u sh -c '{BURN}'\r"));
        let place = terminal.wait_for("100 % =", place);
        terminal.keys("\x1a");
        let place = terminal.wait_for("\x1b[?1049l", place);
        let place = terminal.wait_for("Stopped", place);
        terminal.is_given_back();
        assert_eq!(terminal.modes(), before);
        // All of the job is stopped, the command that is sampled, too.
        terminal.keys("ps -o stat= -o args= -t $(tty) | grep '[w]hile'; echo list''ed\r");
        let end = terminal.wait_for("listed", place);
        let all = terminal.text();
        let listed = &all[place..end];
        let stopped = listed.lines().filter(|line| line.starts_with('T')).count();
        assert_eq!(stopped, 2, "{listed}");
        terminal.keys("fg\r");
        let place = terminal.wait_for("\x1b[?1049h", end);
        let place = terminal.wait_for("100 % =", place);
        assert_ne!(terminal.modes(), before, "it is in raw mode again");
        terminal.keys("q");
        let place = terminal.wait_for("\x1b[?1049l", place);
        terminal.wait_for("$ ", place);
        assert_eq!(terminal.modes(), before);
        terminal.keys("exit\r");
        status(shell);
    });
}
