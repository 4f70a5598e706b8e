//! A terminal of its own, driven by tmux.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{bound_to_test, skipped};

/// Whatever is waited for comes within this time, or not at all.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A terminal of its own, gone at the end.
pub struct Pane {
    socket: String,
    server: Child,
}

impl Pane {
    /// Runs a command line in a terminal of this size. When it has ended, what it left is told there.
    pub fn new(name: &str, command: &str, size: (u16, u16)) -> Pane {
        let socket = format!("proftool-{name}-{}", std::process::id());
        // In the foreground it ends with the test, and what runs in it loses its terminal.
        let server = bound_to_test("tmux")
            .args(["-D", "-f", "/dev/null", "-L", &socket])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pane = Pane { socket, server };
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let line =
            format!("{command}; echo left with $?; stty -a | grep -o ' icanon'; exec sleep 60");
        let geometry = ["new-session", "-d", "-x", &width, "-y", &height];
        let session = [&geometry[..], &["sh", "-c", &line]].concat();
        let end = Instant::now() + PATIENCE;
        while !pane.client(&session).status.success() {
            assert!(Instant::now() < end, "tmux does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        pane
    }

    /// Asks the server, which it does not start.
    fn client(&self, args: &[&str]) -> Output {
        Command::new("tmux")
            .args(["-N", "-L", &self.socket])
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    pub fn tmux(&self, args: &[&str]) -> String {
        String::from_utf8_lossy(&self.client(args).stdout).into_owned()
    }

    /// The process that the shell in it has started.
    pub fn child(&self) -> String {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        let children = std::fs::read_to_string(children).unwrap();
        children.split_whitespace().next().unwrap().to_owned()
    }

    pub fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if is_so(&text) {
                return text;
            }
            assert!(Instant::now() < end, "{what}, but the screen is:\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(&format!("{text:?} should be there"), |screen| {
            screen.contains(text)
        })
    }

    /// The terminal is as it was before: what is typed is seen, so is the cursor, and the screen is
    /// the one of before.
    #[track_caller]
    pub fn is_given_back(&self) {
        self.wait_for("icanon");
        let format = "#{alternate_on} #{cursor_flag}";
        let modes = self.tmux(&["display-message", "-p", format]);
        assert_eq!(modes.trim(), "0 1");
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Whether the test can run here; says why it cannot.
pub fn can_drive() -> bool {
    let tmux = Command::new("tmux").arg("-V").output();
    let is_there = tmux.is_ok_and(|output| output.status.success());
    if !is_there {
        skipped("there is no tmux");
    }
    is_there
}
