//! `proftool record`: commands, files, signals, privileges, and perf as a witness of the file.
//!
//! What this machine forbids is said on stderr as `skipped: …`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{self, copy_program, skipped};

pub(crate) const PROFTOOL: &str = env!("CARGO_BIN_EXE_proftool");
/// A shell loop that burns processor time for about half a second or more.
const BURN: &str = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
const BURN_LONG: &str = "while :; do :; done";

/// A directory of its own for each test, removed at the end.
pub(crate) struct Room(pub(crate) PathBuf);

impl Room {
    pub(crate) fn new() -> Room {
        support::watch();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("proftool-record-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Room(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// `proftool record ARGS…` in this directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        // Signals that this process ignores, as behind `&` of a script, would stay ignored.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,QUIT,TERM,HUP");
        command
            .args([PROFTOOL, "record"])
            .args(args)
            .current_dir(&self.0);
        command.stdin(Stdio::null()).env("PROFTOOL_CONFIG", "");
        command
    }

    pub(crate) fn record(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine lets us record; says why the test is skipped if it does not.
pub(crate) fn can_record() -> bool {
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
pub(crate) fn perf(args: &[&str]) -> Option<String> {
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

/// The samples in a file, counted by its records' headers.
pub(crate) fn samples(path: &Path) -> usize {
    let file = fs::read(path).unwrap();
    let word = |at: usize| u64::from_ne_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    assert_eq!(&file[..8], b"PERFILE2");
    let (start, size) = (word(40), word(48));
    let mut at = start;
    let mut count = 0;
    while at < start + size {
        let kind = u32::from_ne_bytes(file[at..at + 4].try_into().unwrap());
        let size = u16::from_ne_bytes(file[at + 6..at + 8].try_into().unwrap());
        assert!(size >= 8, "a record of size {size} at {at}");
        count += usize::from(kind == 9);
        at += usize::from(size);
    }
    assert_eq!(at, start + size, "the data ends with a whole record");
    count
}

pub(crate) fn is_alive(pid: u32) -> bool {
    // A zombie is not alive: its command line is empty.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

pub(crate) fn wait_for(what: &str, mut happens: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happens() {
        assert!(start.elapsed() < Duration::from_secs(20), "waiting: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Starts a recording of a shell that writes its number and burns; gives both numbers.
fn start_burning(room: &Room, script: &str) -> (std::process::Child, u32) {
    let script = format!("echo $$ > pid; {script}");
    let recorder = room
        .command(&["-q", "--", "sh", "-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pid = None;
    wait_for("the command's number", || {
        pid = fs::read_to_string(room.path("pid"))
            .ok()
            .and_then(|text| text.trim().parse().ok());
        pid.is_some()
    });
    sleep(Duration::from_millis(700));
    (recorder, pid.unwrap())
}

pub(crate) fn send(signal: &str, pid: u32) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{signal} {pid}")])
        .status();
    assert!(status.unwrap().success());
}

/// Whether this process is root's: only root can give privileges up.
pub(crate) fn is_root() -> bool {
    // The owner of our own process directory is our user.
    fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    })
}

#[test]
fn the_exit_status_is_the_commands_own() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    for (script, status) in [("exit 0", 0), ("exit 3", 3), ("kill -SEGV $$", 139)] {
        let output = room.record(&["-q", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    }
    let output = room.record(&["-q", "sh", "-c", "kill -SEGV $$"]);
    let text = "the command was killed by signal 11 (SIGSEGV, segmentation fault)";
    assert!(stderr(&output).contains(text), "{}", stderr(&output));
}

#[test]
fn a_command_that_cannot_be_run_is_reported_and_leaves_no_file() {
    let room = Room::new();
    fs::write(room.path("plain"), "hello").unwrap();
    fs::write(room.path("perf.data"), "precious").unwrap();
    let cases: [(&[&str], i32, &str); 4] = [
        (
            &["./no-such-program"],
            127,
            "program not found: ./no-such-program: no such file or directory",
        ),
        (
            &["no-such-program"],
            127,
            "program not found: no-such-program",
        ),
        (&["./plain"], 126, "cannot run ./plain: permission denied"),
        (&["/tmp"], 126, "cannot run /tmp: is a directory"),
    ];
    for (command, status, message) in cases {
        let output = room.record(command);
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(stderr(&output), format!("proftool: {message}\n"));
    }
    assert_eq!(fs::read(room.path("perf.data")).unwrap(), b"precious");
    assert_eq!(room.names(), ["perf.data", "plain"]);
}

#[test]
fn errors_that_only_exec_finds_are_reported() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    for (name, text) in [("no-shebang", "exit 5\n"), ("bad-shebang", "#!/no/such\n")] {
        fs::write(room.path(name), text).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(room.path(name), mode).unwrap();
    }
    let output = room.record(&["-q", "-o", "a", "./no-shebang"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let output = room.record(&["-q", "-o", "b", "./bad-shebang"]);
    assert_eq!(output.status.code(), Some(126));
    let text = "cannot run ./bad-shebang: the interpreter that it names is missing";
    assert!(stderr(&output).contains(text), "{}", stderr(&output));
    assert_eq!(room.names(), ["a", "bad-shebang", "no-shebang"]);
}

#[test]
fn wrong_usage_is_reported_with_similar_names() {
    let room = Room::new();
    assert_eq!(room.record(&[]).status.code(), Some(2));
    let output = room.record(&["-e", "cpu-clok", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean cpu-clock"));
    let output = room.record(&["-F", "999999999", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("perf_event_max_sample_rate"));
    assert!(stderr(&output).contains("\nhint: use -F "));
    assert!(room.names().is_empty());
}

#[test]
fn options_may_be_glued_and_come_before_the_command_only() {
    let room = Room::new();
    // An option that does not exist is no command, and what follows the command is its own.
    let output = room.record(&["--no-such-option", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let output = room.record(&["-o", "-", "true"]);
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("hint: name a file: -o FILE"));
    if !can_record() {
        return;
    }
    let output = room.record(&["-F99", "-ecpu-clock", "-oglued.data", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(room.names(), ["glued.data"]);
}

#[test]
fn an_output_that_cannot_be_made_is_named_and_the_command_not_run() {
    let room = Room::new();
    fs::create_dir(room.path("directory")).unwrap();
    let target = room.path("ran");
    for (output, reason) in [
        ("directory", "could not write directory: it is a directory"),
        (
            "no/dir/out",
            "could not write no/dir/out: no such file or directory",
        ),
        ("/dev/null", "could not write /dev/null: it is a device"),
    ] {
        let result = room.record(&["-o", output, "touch", target.to_str().unwrap()]);
        assert_eq!(result.status.code(), Some(125));
        assert!(stderr(&result).contains(reason), "{}", stderr(&result));
    }
    assert_eq!(room.names(), ["directory"]);
}

#[test]
fn the_file_is_private_and_the_old_one_kept() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    fs::write(room.path("perf.data"), "before").unwrap();
    for umask in ["000", "777"] {
        let script = format!("umask {umask}; exec {PROFTOOL} record -q true");
        let status = Command::new("sh")
            .args(["-c", &script])
            .current_dir(&room.0)
            .status();
        assert!(status.unwrap().success());
        let mode = fs::metadata(room.path("perf.data")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o7777, 0o600, "umask {umask}");
        assert_eq!(room.names(), ["perf.data", "perf.data.old"]);
    }
    let room = Room::new();
    fs::write(room.path("perf.data"), "before").unwrap();
    assert!(room.record(&["-q", "true"]).status.success());
    assert_eq!(fs::read(room.path("perf.data.old")).unwrap(), b"before");
}

#[test]
fn the_command_keeps_its_input_output_and_signals() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let script = "cat; grep -E 'SigBlk|SigIgn' /proc/self/status; ls /proc/self/fd | wc -l >&2";
    let run = |mut command: Command| {
        let mut child = command
            .current_dir(&room.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"in\n").unwrap();
        child.wait_with_output().unwrap()
    };
    let mut plain = Command::new("sh");
    plain.args(["-c", script]);
    let mut recorded = Command::new(PROFTOOL);
    recorded.args(["record", "-q", "--", "sh", "-c", script]);
    let (plain, recorded) = (run(plain), run(recorded));
    assert_eq!(plain.stdout, recorded.stdout);
    let first_line = |output: &Output| stderr(output).lines().next().map(str::to_owned);
    assert_eq!(first_line(&plain), first_line(&recorded), "open files");
}

#[test]
fn perf_reads_the_same_samples_from_the_file() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let output = room.record(&["-e", "cpu-clock,page-faults", "--", "sh", "-c", BURN]);
    assert!(output.status.success(), "{}", stderr(&output));
    let file = room.path("perf.data");
    let count = samples(&file);
    let line = format!("proftool: {count} samples in perf.data (");
    assert!(stderr(&output).contains(&line), "{}", stderr(&output));
    assert!(count > 100, "{count} samples");
    let file = file.to_str().unwrap();
    let Some(stats) = perf(&["report", "--stats", "-i", file]) else {
        return;
    };
    let counted = |line: &str| -> usize {
        let after = line.split("SAMPLE events:").nth(1).unwrap();
        after.split_whitespace().next().unwrap().parse().unwrap()
    };
    let total = stats.lines().find(|line| line.contains("SAMPLE events:"));
    assert_eq!(counted(total.unwrap()), count, "{stats}");
    let script = perf(&["script", "-F", "comm,event,ip,sym", "-i", file]).unwrap();
    let heads = script.lines().filter(|line| line.starts_with("sh")).count();
    assert_eq!(heads, count);
    let events = perf(&["evlist", "-i", file]).unwrap();
    let user = if stderr(&output).contains("user space only") {
        ":u"
    } else {
        ""
    };
    assert_eq!(events, format!("cpu-clock{user}\npage-faults{user}\n"));
    let build_ids = perf(&["buildid-list", "-i", file]).unwrap();
    assert!(build_ids.contains("libc.so"), "{build_ids}");
    let header = perf(&["report", "--header-only", "-i", file]).unwrap();
    for feature in ["hostname", "os release", "arch", "nrcpus online", "cmdline"] {
        assert!(header.contains(&format!("# {feature} : ")), "{header}");
    }
    let complaints = Command::new("perf")
        .args(["report", "--stdio", "-i", file])
        .output();
    assert_eq!(stderr(&complaints.unwrap()), "");
}

#[test]
fn a_recorder_that_is_killed_leaves_a_readable_file_and_no_command() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let (mut recorder, pid) = start_burning(&room, BURN_LONG);
    send("KILL", recorder.id());
    recorder.wait().unwrap();
    assert_eq!(room.names(), ["perf.data.part", "pid"]);
    let count = samples(&room.path("perf.data.part"));
    assert!(count > 50, "{count} samples");
    wait_for("the end of the command", || !is_alive(pid));
    let part = room.path("perf.data.part");
    if let Some(stats) = perf(&["report", "--stats", "-i", part.to_str().unwrap()]) {
        assert!(stats.contains(&format!(" {count} ")), "{stats}");
    }
    // The next recording leaves it alone, and says so.
    let output = room.record(&["-e", "cpu-clock", "true"]);
    assert!(stderr(&output).contains("proftool report perf.data.part"));
    assert_eq!(room.names(), ["perf.data", "perf.data.part", "pid"]);
}

#[test]
fn signals_end_the_recording_and_all_that_was_started() {
    if !can_record() {
        return;
    }
    for signal in ["INT", "TERM", "HUP"] {
        let room = Room::new();
        let script = format!("sh -c 'echo $$ > inner; {BURN_LONG}'; {BURN_LONG}");
        let (mut recorder, pid) = start_burning(&room, &script);
        let inner = fs::read_to_string(room.path("inner")).unwrap();
        send(signal, recorder.id());
        let status = recorder.wait().unwrap();
        assert_eq!(status.code(), Some(143), "{signal}");
        assert!(!is_alive(pid));
        let inner = inner.trim().parse().unwrap();
        wait_for("the end of the inner command", || !is_alive(inner));
        assert!(samples(&room.path("perf.data")) > 50, "{signal}");
    }
}

#[test]
fn a_command_that_ignores_signals_is_killed() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let (mut recorder, pid) = start_burning(&room, &format!("trap '' TERM; {BURN_LONG}"));
    send("TERM", recorder.id());
    assert_eq!(recorder.wait().unwrap().code(), Some(137));
    assert!(!is_alive(pid));
    assert!(samples(&room.path("perf.data")) > 50);
}

#[test]
fn signals_that_were_ignored_from_the_start_stay_ignored() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let script = "trap '' HUP; \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", PROFTOOL, "record", "-q", "sh", "-c"])
        .arg("kill -HUP $PPID; kill -HUP $$; sleep 0.3; echo survived")
        .current_dir(&room.0)
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"survived\n", "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_full_disk_is_reported_and_the_command_continues() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    // A limit of the file's size is met like a full disk, and needs no privilege.
    // More than one write: what was written before the disk was full stays.
    let burn = BURN.replace("400000", "1600000");
    let script = format!("ulimit -f 32; exec {PROFTOOL} record -g fp sh -c '{burn}; echo done'");
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&room.0)
        .output();
    let Ok(output) = output else {
        skipped("there is no bash");
        return;
    };
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert_eq!(output.stdout, b"done\n");
    assert!(
        text.contains("could not write perf.data: file too large"),
        "{text}"
    );
    assert!(
        text.contains("hint: proftool report perf.data.part"),
        "{text}"
    );
    assert!(samples(&room.path("perf.data.part")) > 10);
}

#[test]
fn few_descriptors_are_enough_or_the_limit_is_reported() {
    if !can_record() {
        return;
    }
    const EVENTS: &str = "-e cpu-clock,task-clock,page-faults,minor-faults";
    let room = Room::new();
    let run = |limit: u32| {
        let script = format!("ulimit -n {limit}; exec {PROFTOOL} record -q true");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(&room.0);
        command.output().unwrap()
    };
    let output = run(8);
    assert_ne!(output.status.code(), Some(101));
    if output.status.code() == Some(125) {
        assert!(
            stderr(&output).contains("too many open files"),
            "{}",
            stderr(&output)
        );
    }
    // A soft limit alone is raised, and is the old one for the command.
    let script = format!("ulimit -S -n 10; exec {PROFTOOL} record -q {EVENTS} sh -c 'ulimit -n'");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&room.0)
        .output();
    let output = output.unwrap();
    assert_eq!(output.stdout, b"10\n", "{}", stderr(&output));
}

#[test]
fn many_processes_are_recorded_to_the_end() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let script = "i=0; while [ $i -lt 300 ]; do /bin/true & i=$((i+1)); done; wait";
    let output = room.record(&["-q", "--", "sh", "-c", script]);
    assert!(output.status.success(), "{}", stderr(&output));
    samples(&room.path("perf.data"));
}

#[test]
fn without_privilege_user_space_is_recorded() {
    if !is_root() || !can_record() {
        skipped("only root can give privileges up");
        return;
    }
    let room = Room::new();
    // The tested program may lie where nobody may go.
    let program = room.path("proftool");
    copy_program(PROFTOOL, &program);
    let output = Command::new(&program)
        .args(["record", "-e", "cpu-clock", "sh", "-c", BURN])
        .current_dir(&room.0)
        .gid(65534)
        .uid(65534)
        .output()
        .unwrap();
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let paranoid: i32 = paranoid.trim().parse().unwrap();
    let text = stderr(&output);
    if output.status.success() {
        assert!(samples(&room.path("perf.data")) > 50);
        let told = text.contains("recording user space only");
        assert_eq!(told, paranoid >= 2, "{text}");
    } else {
        assert!(paranoid > 2, "{text}");
        assert!(text.contains(&format!("perf_event_paranoid is {paranoid}")));
        assert!(text.contains("\nhint: "), "{text}");
    }
}

#[test]
fn no_samples_is_a_warning() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    // A sample every thousand seconds.
    let output = room.record(&["-c", "1000000000000", "-e", "cpu-clock", "true"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("warning: no samples were recorded"));
    assert!(stderr(&output).contains("\nhint: "));
    assert_eq!(samples(&room.path("perf.data")), 0);
}
