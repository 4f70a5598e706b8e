//! `proftool record`: signals, and a recorder that is killed.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::support::bound_to_test;
use crate::support::record::{
    PROFTOOL, Room, can_record, is_alive, perf, samples, samples_so_far, send, stderr, wait_for,
};
use crate::support::repeated::repeated;

/// What a shell does to have a hundred samples or more, and to say then that it is ready.
const BURN_FIRST: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; touch ready";

const BURN_LONG: &str = "while :; do :; done";

/// Starts a recording of a shell that writes its number and runs this script; gives both numbers when
/// the script has made the file `ready`.
fn start_burning(room: &Room, script: &str) -> (std::process::Child, u32) {
    let script = format!("echo $$ > pid; {script}");
    let recorder = room
        .command(&["-q", "--", "sh", "-c", &script])
        .stderr(fs::File::create(room.path("said")).unwrap())
        .spawn()
        .unwrap();
    let mut pid = None;
    wait_for("the command's number", || {
        pid = fs::read_to_string(room.path("pid"))
            .ok()
            .and_then(|text| text.trim().parse().ok());
        pid.is_some()
    });
    wait_for("samples", || room.path("ready").exists());
    (recorder, pid.unwrap())
}

#[test]
fn a_recorder_that_is_killed_leaves_a_readable_file_and_no_command() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let script = format!("{BURN_FIRST}; {BURN_LONG}");
        let (mut recorder, pid) = start_burning(&room, &script);
        let part = room.path("perf.data.part");
        wait_for("samples in the file", || samples_so_far(&part) > 50);
        send("KILL", recorder.id());
        recorder.wait().unwrap();
        assert_eq!(room.names(), ["perf.data.part", "pid", "ready", "said"]);
        let count = samples(&part);
        assert!(count > 50, "{count} samples");
        wait_for("the end of the command", || !is_alive(pid));
        if let Some(stats) = perf(&["report", "--stats", "-i", part.to_str().unwrap()]) {
            assert!(stats.contains(&format!(" {count} ")), "{stats}");
        }
        // The next recording leaves it alone, and says so.
        let output = room.record(&["-e", "cpu-clock", "true"]);
        assert!(stderr(&output).contains("proftool report perf.data.part"));
        let names = ["perf.data", "perf.data.part", "pid", "ready", "said"];
        assert_eq!(room.names(), names);
    });
}

/// What a shell does to note its signals in a file `got`, and to end with status 5 when `end` is there, or after
/// a minute or so.
fn notes() -> String {
    format!(
        "for s in HUP INT TERM USR1; do trap \"echo $s >> got\" $s; done; {BURN_FIRST}; \
         until [ -e end ] || [ $i -gt 9000000 ]; do i=$((i+1)); done; exit 5"
    )
}

fn got(room: &Room) -> String {
    fs::read_to_string(room.path("got")).unwrap_or_default()
}

#[test]
fn a_signal_to_the_recorder_asks_the_command_to_end_and_waits_for_it() {
    repeated(|| {
        if !can_record() {
            return;
        }
        for signal in ["INT", "TERM", "HUP"] {
            let room = Room::new();
            let script = format!("sh -c 'echo $$ > inner; exec sleep 60' & {}", notes());
            let (mut recorder, pid) = start_burning(&room, &script);
            send(signal, recorder.id());
            wait_for("the signal", || got(&room) == "TERM\n");
            let said = || fs::read_to_string(room.path("said")).unwrap();
            let awaits = format!("waiting for the command to end (process {pid})");
            wait_for("a word to the user", || said().contains(&awaits));
            assert!(recorder.try_wait().unwrap().is_none() && is_alive(pid));
            fs::write(room.path("end"), "").unwrap();
            assert_eq!(recorder.wait().unwrap().code(), Some(5), "{signal}");
            assert_eq!(said().matches(&awaits).count(), 1, "{}", said());
            assert_eq!(got(&room), "TERM\n", "{signal}");
            let inner = fs::read_to_string(room.path("inner")).unwrap();
            let inner = inner.trim().parse().unwrap();
            assert!(is_alive(inner), "what the command started gets nothing");
            send("KILL", inner);
            assert!(samples(&room.path("perf.data")) > 50, "{signal}");
        }
    });
}

#[test]
fn a_second_signal_ends_the_recorder_and_not_the_command() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let (mut recorder, pid) = start_burning(&room, &notes());
        send("TERM", recorder.id());
        wait_for("the signal", || got(&room) == "TERM\n");
        // The command has it from the recorder, for which two signals within half a second are one.
        sleep(Duration::from_millis(800));
        send("INT", recorder.id());
        assert_eq!(recorder.wait().unwrap().code(), Some(130));
        assert!(samples(&room.path("perf.data")) > 50);
        wait_for("the signal as it ends", || got(&room) == "TERM\nTERM\n");
        fs::write(room.path("end"), "").unwrap();
        wait_for("the end of the command", || !is_alive(pid));
    });
}

#[test]
fn what_a_command_sends_to_its_own_group_does_not_end_the_recorder() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let until = |what: &str| format!("until {what}; do sleep 0.05; done");
        let sends = [
            "trap '' TERM USR1".to_owned(),
            until("[ -e ready ]"),
            "kill -TERM 0".to_owned(),
            until("grep -q TERM got"),
            "kill -USR1 0".to_owned(),
            until("grep -q USR1 got"),
            "touch end".to_owned(),
        ];
        let script = format!("({}) 2>/dev/null & {}", sends.join("; "), notes());
        let mut command = room.command(&["-q", "--", "sh", "-c", &script]);
        // A group of their own, or else the tests are in it.
        let status = command.process_group(0).status().unwrap();
        assert_eq!((status.code(), &*got(&room)), (Some(5), "TERM\nUSR1\n"));
        assert!(samples(&room.path("perf.data")) > 50);
    });
}

#[test]
fn a_signal_that_is_not_to_end_reaches_the_command() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let (mut recorder, _) = start_burning(&room, &notes());
        send("USR1", recorder.id());
        wait_for("the signal", || got(&room) == "USR1\n");
        fs::write(room.path("end"), "").unwrap();
        assert_eq!(recorder.wait().unwrap().code(), Some(5));
    });
}

#[test]
fn an_interrupt_that_a_process_sends_ends_a_recorder_in_the_background_of_a_script() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        // Without job control a shell lets what is in the background ignore SIGINT.
        // The recorder's file is there when it waits for signals.
        let script = "\"$@\" & until [ -s perf.data.part ]; do sleep 0.1; done; sleep 0.5; \
                      kill -INT $!; wait $!";
        let mut target = bound_to_test("sleep").arg("60").spawn().unwrap();
        let pid = target.id().to_string();
        let words = ["-c", script, "sh", PROFTOOL, "record", "-q", "-p", &pid];
        let status = Command::new("sh").args(words).current_dir(&room.0).status();
        assert_eq!(status.unwrap().code(), Some(0));
        // If it did not hear, it ended with its target.
        assert!(target.try_wait().unwrap().is_none());
        target.kill().unwrap();
    });
}
