//! `proftool record -p`, `-t`, `-a` and what else already runs, with perf as a witness.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::record::{
    PROFTOOL, Room, can_record, is_alive, is_root, perf, samples, samples_so_far, send, stderr,
    wait_for,
};
use crate::support::record_attach::{BURN_LONG, Running, record_samples, succeeds};
use crate::support::record_stacks::build;
use crate::support::repeated::repeated;
use crate::support::{bound_to_test, copy_program, skipped};

/// One thread works from the start, one after the other comes and goes, until it is killed.
const THREADS: &str = "\
#include <pthread.h>
volatile unsigned long sink;
__attribute__((noinline)) void steady(void) { for (int i = 0; i < 100000; i++) sink += i; }
__attribute__((noinline)) void passing(void) { for (int i = 0; i < 3000000; i++) sink ^= i; }
static void *stay(void *none) { for (;;) steady(); return none; }
static void *go(void *none) { passing(); return none; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, stay, 0);
    for (;;) {
        pthread_t some[2];
        for (int i = 0; i < 2; i++) pthread_create(&some[i], 0, go, 0);
        for (int i = 0; i < 2; i++) pthread_join(some[i], 0);
    }
    return 0;
}
";

/// What `proftool flat` says of the recording in a room.
fn flat(room: &Room) -> String {
    let output = Command::new(PROFTOOL)
        .args(["flat", "--format", "json", "--limit", "0"])
        .current_dir(&room.0)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_process_is_recorded_for_its_time_and_left_alone() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let mut target = Running::shell(BURN_LONG);
        let begin = Instant::now();
        let pid = target.pid();
        let (seconds, _, count) = record_samples(&room, 20, |seconds| {
            room.record(&["-g", "fp", "-d", seconds, "-p", &pid])
        });
        assert!(begin.elapsed() >= Duration::from_secs_f64(seconds));
        assert!(target.0.try_wait().unwrap().is_none(), "it goes on");
        assert_eq!(room.names(), ["perf.data"]);
        let program = fs::read_link(format!("/proc/{}/exe", target.pid())).unwrap();
        let path = program.to_str().unwrap();
        let file = room.path("perf.data");
        let file = file.to_str().unwrap();
        // The kernel told nothing of the mappings: they were made before.
        if let Some(script) = perf(&[
            "script",
            "--show-mmap-events",
            "-F",
            "comm,dso,ip",
            "-i",
            file,
        ]) {
            assert!(script.contains(path), "{path} is not mapped");
            let stats = perf(&["report", "--stats", "-i", file]).unwrap();
            assert!(
                stats.contains(&format!("SAMPLE events: {count:>10}")),
                "{stats}"
            );
            let names = perf(&["report", "--stdio", "--sort", "comm", "-i", file]).unwrap();
            assert!(names.contains("sh"), "{names}");
        }
        let list = Command::new(PROFTOOL)
            .args(["report", "--format", "json"])
            .current_dir(&room.0)
            .output();
        succeeds(&list.unwrap());
    });
}

#[test]
fn short_lived_threads_count_once() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = ["-O1", "-fno-omit-frame-pointer", "-pthread"];
        let Some(program) = build(&room, "threads", THREADS, &flags) else {
            return;
        };
        let target = Running::new(bound_to_test(program.to_str().unwrap()));
        for round in 0..3 {
            let pid = target.pid();
            let (seconds, _, count) = record_samples(&room, 20, |seconds| {
                room.record(&["-q", "-F", "997", "-d", seconds, "-p", &pid])
            });
            let processors = std::thread::available_parallelism().unwrap().get();
            // A pass after the end may be late by some tenths of a second on a busy machine.
            let most = 2.0 * seconds * 997.0 * processors as f64;
            assert!((count as f64) < most, "round {round}: {count} samples");
            let found = flat(&room);
            assert!(found.contains("\"steady\""), "{found}");
            assert!(found.contains("\"passing\""), "{found}");
        }
        // Of a single thread nothing else is there.
        let output = room.record(&["-q", "-d", "0.3", "-g", "fp", "-t", &target.pid()]);
        succeeds(&output);
        let found = flat(&room);
        assert!(!found.contains("\"steady\"") && !found.contains("\"passing\""));
    });
}

#[test]
fn the_recording_ends_with_its_target() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        // It ends when it is recorded, however long that takes to begin.
        let part = room.path("perf.data.part");
        let script = format!(
            "until [ -s {} ]; do sleep 0.1; done; sleep 0.3",
            part.display()
        );
        let target = Running::shell(&script);
        let output = room.record(&["-g", "fp", "-p", &target.pid()]);
        succeeds(&output);
        let text = stderr(&output);
        assert!(text.contains("Ctrl-C ends it"), "{text}");
        assert!(
            text.contains("all recorded processes have exited"),
            "{text}"
        );
    });
}

#[test]
fn a_signal_ends_the_recording_and_not_its_target() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let target = Running::shell(BURN_LONG);
        let mut command = room.command(&["-q", "-g", "fp", "-p", &target.pid()]);
        let recorder = command.stderr(Stdio::piped()).spawn().unwrap();
        let part = room.path("perf.data.part");
        wait_for("samples in the file", || samples_so_far(&part) > 10);
        send("INT", recorder.id());
        succeeds(&recorder.wait_with_output().unwrap());
        assert!(is_alive(target.0.id()));
        assert!(samples(&room.path("perf.data")) > 10);
    });
}

#[test]
fn a_command_bounds_the_recording_of_what_runs() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let target = Running::shell(BURN_LONG);
        let script = "sleep 1; exit 7";
        let output = room.record(&["-g", "fp", "-p", &target.pid(), "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
        assert!(samples(&room.path("perf.data")) > 10);
    });
}

#[test]
fn a_command_outlives_the_end_of_its_recording() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let script =
            "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.6; echo end; exit 3";
        for bound in [["-d", "0.2"], ["--max-size", "12K"]] {
            let room = Room::new();
            let mut args = vec!["-g", "fp"];
            args.extend(bound);
            args.extend(["--", "sh", "-c", script]);
            let output = room.record(&args);
            assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
            assert_eq!(output.stdout, b"end\n");
            let text = stderr(&output);
            assert!(
                text.contains("the recording has ended; the command continues"),
                "{text}"
            );
            assert!(samples(&room.path("perf.data")) > 5);
        }
    });
}

#[test]
fn a_delay_leaves_out_the_beginning() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let script = "sleep 0.5; (while :; do :; done) & sleep 2; kill $!; exit 4";
        let output = room.record(&["-q", "-g", "fp", "-D", "700", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        // What the command had started before the recording began is recorded too.
        assert!(samples(&room.path("perf.data")) > 20);
        let output = room.record(&["-q", "-g", "fp", "-D", "5000", "true"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(stderr(&output).contains("the target ended before the recording began"));
    });
}

#[test]
fn the_whole_machine_is_recorded_with_the_names_of_what_ran_before() {
    repeated(|| {
        let room = Room::new();
        let target = Running::shell(BURN_LONG);
        let forks = "i=0; while [ $i -lt 50 ]; do /bin/true; i=$((i+1)); done";
        let output = room.record(&["-q", "-a", "--", "sh", "-c", forks]);
        if !output.status.success() {
            let text = stderr(&output);
            assert!(text.contains("whole processors"), "{text}");
            skipped(&text);
            return;
        }
        let file = room.path("perf.data");
        assert!(samples(&file) > 5);
        if let Some(script) = perf(&["script", "-F", "comm,pid", "-i", file.to_str().unwrap()]) {
            let pid = target.pid();
            let own = script
                .lines()
                .filter(|line| line.trim_end().ends_with(&pid));
            let names: Vec<&str> = own.map(|line| line.trim()).collect();
            assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("sh ")));
        }
        let output = room.record(&["-q", "-C", "0", "-d", "0.2"]);
        succeeds(&output);
        let output = room.record(&["-q", "-C", "8000", "-d", "0.2"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(stderr(&output).contains("there is no processor 8000; online: 0"));
        let output = room.record(&["-q", "--cgroup", "no/such", "-d", "0.2"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(stderr(&output).contains("could not record the control group no/such"));
    });
}

#[test]
fn without_privilege_only_own_processes_are_recorded() {
    repeated(|| {
        if !is_root() || !can_record() {
            skipped("only root can give privileges up");
            return;
        }
        let room = Room::new();
        // The tested program may lie where nobody may go.
        let program = room.path("proftool");
        copy_program(PROFTOOL, &program);
        let unprivileged = |program: &str, args: &[&str]| {
            let mut command = bound_to_test(program);
            command
                .args(args)
                .current_dir(&room.0)
                .gid(65534)
                .uid(65534);
            command
        };
        let record = |args: &[&str]| {
            let all = [&["record", "-g", "fp"], args].concat();
            let output = unprivileged(program.to_str().unwrap(), &all).output();
            output.unwrap()
        };
        let own = Running::new(unprivileged("sh", &["-c", BURN_LONG]));
        let other = Running::shell(BURN_LONG);
        let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
        let paranoid: i32 = paranoid.trim().parse().unwrap();
        if paranoid <= 2 {
            record_samples(&room, 10, |seconds| {
                record(&["-d", seconds, "-p", &own.pid()])
            });
            let output = record(&["-d", "0.4", "-p", &other.pid()]);
            assert_eq!(output.status.code(), Some(125));
            let text = stderr(&output);
            assert!(text.contains("which belongs to user 0"), "{text}");
            assert!(
                text.contains("\nhint: record it as its user or as root"),
                "{text}"
            );
        }
        let output = record(&["-d", "0.4", "-a"]);
        if paranoid > 0 {
            assert_eq!(output.status.code(), Some(125));
            let text = stderr(&output);
            assert!(
                text.contains(&format!("perf_event_paranoid is {paranoid}")),
                "{text}"
            );
            assert!(
                text.contains("or sysctl kernel.perf_event_paranoid=0"),
                "{text}"
            );
        }
    });
}

#[test]
fn too_few_descriptors_for_many_threads_are_reported() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let target = Running::shell(BURN_LONG);
        let pid = target.pid();
        let script = format!("ulimit -n 8; exec {PROFTOOL} record -q -g fp -d 0.1 -p {pid}");
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(&room.0)
            .output()
            .unwrap();
        if !output.status.success() {
            let text = stderr(&output);
            assert!(text.contains("too many open files"), "{text}");
            assert!(text.contains("ulimit -Hn"), "{text}");
        }
        assert!(is_alive(target.0.id()));
    });
}

#[test]
fn a_program_of_a_container_has_its_names() {
    repeated(|| {
        if !can_record() || !is_root() {
            return skipped("not root");
        }
        let room = Room::new();
        let source = "volatile unsigned long sink;\n\
        __attribute__((noinline)) void in_container(void) { for (;;) sink++; }\n\
        int main(void) { in_container(); }\n";
        let Some(program) = build(&room, "contained", source, &["-O1"]) else {
            return;
        };
        let inside = room.path("inside");
        fs::create_dir(&inside).unwrap();
        // Nobody else sees what is mounted there.
        let script =
            "mount -t tmpfs none \"$1\" && cp \"$0\" \"$1/contained\" && exec \"$1/contained\"";
        let mut command = bound_to_test("unshare");
        command
            .args(["-m", "sh", "-c", script])
            .arg(&program)
            .arg(&inside);
        let mut target = Running::new(command);
        let runs = format!("/proc/{}/exe", target.pid());
        let mut has_ended = false;
        wait_for("the program of the container", || {
            has_ended = target.0.try_wait().unwrap().is_some();
            has_ended || fs::read_link(&runs).is_ok_and(|path| path.ends_with("contained"))
        });
        if has_ended {
            return skipped("no mount namespaces here");
        }
        assert!(!inside.join("contained").exists());
        let pid = target.pid();
        record_samples(&room, 10, |seconds| {
            room.record(&["-q", "-d", seconds, "-p", &pid])
        });
        assert!(flat(&room).contains("in_container"), "{}", flat(&room));
    });
}
