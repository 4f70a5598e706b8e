//! A recorder that is killed at any moment leaves programs as they are alone.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::record::{Room, can_record};
use crate::support::record_calls::{TRACED, built};
use crate::support::repeated::repeated;

/// The process that traces another; `None` if there is none, `Err` if the other has ended.
fn tracer(pid: u32) -> Result<Option<i32>, ()> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(drop)?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    let tracer = line.and_then(|line| line.trim().parse().ok()).ok_or(())?;
    Ok(Some(tracer).filter(|&tracer| tracer != 0))
}

fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Kills a recorder at a moment after it has begun to trace a process.
fn kill_while_it_traces(mut recorder: Child, pid: u32, after: Duration) {
    while tracer(pid) == Ok(None) && recorder.try_wait().unwrap().is_none() {}
    spin(after);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
}

#[test]
fn a_process_goes_on_whose_recorder_is_killed_while_it_installs() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let text = r#"
        #include <pthread.h>
        #include <unistd.h>
        static void *works(void *none) { for (int i = 0; i < 300; i++) { many(3000); usleep(100); } return none; }
        int main(void) {
            pthread_t threads[3];
            for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, works, 0);
            for (int i = 0; i < 300; i++) many(30000);
            for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
            puts("done");
            return 7;
        }"#;
        let Some(program) = built(&room, &[TRACED, text].concat(), &[], "prog") else {
            return;
        };
        for trial in 0..40 {
            let mut running = Command::new(&program);
            let running = running.stdout(Stdio::piped()).spawn().unwrap();
            let pid = running.id();
            let options = [
                "record",
                "--counts",
                "-e",
                "cpu-clock",
                "-o",
                "out.data",
                "-p",
            ];
            let mut command = room.command(&options[1..]);
            command.arg(pid.to_string()).stderr(Stdio::null());
            kill_while_it_traces(
                command.spawn().unwrap(),
                pid,
                Duration::from_micros(trial * trial * 60),
            );
            let output = running.wait_with_output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(7),
                "{trial}: {:?}",
                output.status
            );
            assert_eq!(output.stdout, b"done\n", "{trial}");
        }
    });
}

#[test]
fn children_go_on_whose_recorder_is_killed_as_they_are_executed() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        // The command gets a SIGTERM when its recorder dies.
        let text = r#"
        #include <signal.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            int status = 0;
            many(20000);
            if (argc < 3) return 7;
            signal(SIGTERM, SIG_IGN);
            for (int i = 0; i < 1; i++) {
                if (!fork()) { execl(argv[0], argv[0], argv[1], (char *)0); _exit(9); }
                wait(&status);
                if (status != 7 << 8) break;
            }
            FILE *done = fopen(argv[1], "w");
            fprintf(done, "%x\n", status);
            return fclose(done);
        }"#;
        let Some(program) = built(&room, &[TRACED, text].concat(), &[], "prog") else {
            return;
        };
        // Together: a child waits for an answer of the recorder for a while.
        std::thread::scope(|scope| {
            for trial in 0..8 {
                let (room, program) = (&room, &program);
                scope.spawn(move || kill_as_a_child_executes(room, program, trial));
            }
        });
    });
}

fn kill_as_a_child_executes(room: &Room, program: &Path, trial: u64) {
    let done = room.path(&format!("done{trial}"));
    let output = format!("out{trial}.data");
    let options = [
        "--counts",
        "--follow-exec",
        "-e",
        "cpu-clock",
        "-o",
        &output,
        "--",
    ];
    let mut command = room.command(&options);
    command
        .arg(program)
        .arg(&done)
        .arg("first")
        .stderr(Stdio::null());
    let mut recorder = command.spawn().unwrap();
    let first = only_child(recorder.id(), || recorder.try_wait().unwrap().is_some());
    let second = first.and_then(|first| only_child(first, || tracer(first).is_err()));
    // As it becomes a program.
    while second.is_some_and(|second| tracer(second) == Ok(None) && !has_ended(second)) {}
    spin(Duration::from_micros(trial * trial * 300));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    while first.is_some_and(|first| tracer(first).is_ok() && !has_ended(first)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = fs::read_to_string(&done);
    assert_eq!(status.unwrap(), "700\n", "{trial}");
}

/// Waits for the child of a process; `None` if that has ended.
fn only_child(of: u32, mut has_ended: impl FnMut() -> bool) -> Option<u32> {
    let children = format!("/proc/{of}/task/{of}/children");
    while !has_ended() {
        let list = fs::read_to_string(&children).unwrap_or_default();
        let child = { list.split_whitespace() }.find_map(|pid| pid.parse().ok());
        if child.is_some() {
            return child;
        }
    }
    None
}

/// Whether a process is only still listed.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_none_or(|rest| rest.starts_with('Z'))
}
