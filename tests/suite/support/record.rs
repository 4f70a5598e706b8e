//! `proftool record` in a directory of its own, and what to check of its file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{self, bound_to_test, skipped};

pub const PROFTOOL: &str = env!("CARGO_BIN_EXE_proftool");

/// A shell loop that burns processor time for about half a second or more.
pub const BURN: &str = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";

/// A directory of its own for each test, removed at the end.
pub struct Room(pub(crate) PathBuf);

impl Room {
    pub fn new() -> Room {
        support::watch();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("proftool-record-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Room(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// `proftool record ARGS…` in this directory.
    pub fn command(&self, args: &[&str]) -> Command {
        // Signals that this process ignores, as behind `&` of a script, would stay ignored.
        let mut command = bound_to_test("env");
        command.arg("--default-signal=INT,QUIT,TERM,HUP");
        command
            .args([PROFTOOL, "record"])
            .args(args)
            .current_dir(&self.0);
        command.stdin(Stdio::null()).env("PROFTOOL_CONFIG", "");
        command
    }

    pub fn record(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A shell's command that goes on until its recording has ended.
pub const UNTIL_RECORDED: &str = "while [ ! -e perf.data ]; do :; done";

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine lets us record; says why the test is skipped if it does not.
pub fn can_record() -> bool {
    support::watch();
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| {
        let output = Room::new().record(&["-q", "-e", "cpu-clock", "true"]);
        (!output.status.success()).then(|| stderr(&output))
    });
    if let Some(why_not) = why_not {
        skipped(&format!("recording is not possible: {why_not}"));
    }
    why_not.is_none()
}

/// What perf says; `None`, and why the test is skipped, where it is not installed.
pub fn perf(args: &[&str]) -> Option<String> {
    match Command::new("perf").args(args).output() {
        Ok(output) => {
            assert!(
                output.status.success(),
                "perf {args:?}: {}",
                stderr(&output)
            );
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            skipped(&format!("perf cannot be run: {error}"));
            None
        }
    }
}

/// Calls with each record of a file: its kind and all its bytes, the header included.
pub fn each_record(path: &Path, mut with: impl FnMut(u32, &[u8])) {
    let file = fs::read(path).unwrap();
    let word = |at: usize| u64::from_ne_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    assert_eq!(&file[..8], b"PERFILE2");
    let (start, size) = (word(40), word(48));
    let mut at = start;
    while at < start + size {
        let kind = u32::from_ne_bytes(file[at..at + 4].try_into().unwrap());
        let size = u16::from_ne_bytes(file[at + 6..at + 8].try_into().unwrap());
        assert!(size >= 8, "a record of size {size} at {at}");
        let end = at + usize::from(size);
        with(kind, &file[at..end]);
        at = end;
    }
    assert_eq!(at, start + size, "the data ends with a whole record");
}

/// The number of samples in a file.
pub fn samples(path: &Path) -> usize {
    let mut count = 0;
    each_record(path, |kind, _| count += usize::from(kind == 9));
    count
}

/// The number of samples in a file that is being written; 0 before it has a header.
pub fn samples_so_far(path: &Path) -> usize {
    let has_header = fs::metadata(path).is_ok_and(|file| file.len() > 104);
    if has_header { samples(path) } else { 0 }
}

pub fn is_alive(pid: u32) -> bool {
    // A zombie is not alive: its command line is empty.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

pub fn send(signal: &str, pid: u32) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{signal} {pid}")])
        .status();
    assert!(status.unwrap().success());
}

/// Whether this process is root's: only root can give privileges up.
pub fn is_root() -> bool {
    // The owner of our own process directory is our user.
    fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    })
}

/// Waits for an event, which comes soon or never.
pub fn wait_for(what: &str, mut happens: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happens() {
        assert!(start.elapsed() < Duration::from_secs(20), "waiting: {what}");
        sleep(Duration::from_millis(20));
    }
}
