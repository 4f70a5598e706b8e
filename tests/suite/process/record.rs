//! `proftool record`: commands, files, privileges and exit statuses.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::support::record::{BURN, PROFTOOL, Room, can_record, samples, stderr};
use crate::support::{skipped, write_script};

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
    fs::write(room.path("perf.data"), "PERFILE2 precious").unwrap();
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
    assert_eq!(
        fs::read(room.path("perf.data")).unwrap(),
        b"PERFILE2 precious"
    );
    assert_eq!(room.names(), ["perf.data", "plain"]);
}

#[test]
fn errors_that_only_exec_finds_are_reported() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    for (name, text) in [("no-shebang", "exit 5\n"), ("bad-shebang", "#!/no/such\n")] {
        write_script(room.path(name), text);
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
    fs::write(room.path("perf.data"), "PERFILE2 before").unwrap();
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
    fs::write(room.path("perf.data"), "PERFILE2 before").unwrap();
    assert!(room.record(&["-q", "true"]).status.success());
    assert_eq!(
        fs::read(room.path("perf.data.old")).unwrap(),
        b"PERFILE2 before"
    );
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
    for ignores in ["", "trap '' PIPE INT USR1; "] {
        let before = format!("{ignores}exec \"$@\"");
        let mut plain = Command::new("sh");
        plain.args(["-c", &before, "sh", "sh", "-c", script]);
        let mut recorded = Command::new("sh");
        recorded.args(["-c", &before, "sh", PROFTOOL, "record", "-q", "--"]);
        recorded.args(["sh", "-c", script]);
        let (plain, recorded) = (run(plain), run(recorded));
        let text = String::from_utf8_lossy(&recorded.stdout);
        assert_eq!(String::from_utf8_lossy(&plain.stdout), text, "{ignores}");
        let first_line = |output: &Output| stderr(output).lines().next().map(str::to_owned);
        assert_eq!(first_line(&plain), first_line(&recorded), "open files");
    }
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
