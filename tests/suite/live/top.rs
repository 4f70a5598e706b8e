//! `proftool top`, on a real terminal and without one. On a terminal tmux types, and what stands in its
//! pane is read.
//!
//! There are tests of two kinds. A replayed recording (the example `top_replay`) shows the same figures
//! each time and needs no permission to sample: it holds the view. The command itself samples a program
//! that works by known shares ([`SHARES`]): it holds what is sampled, ends and exit statuses. [`drive`]
//! walks through the views of either. What keys and pictures do is held without a terminal beside the
//! code, in `src/cli/top/tests`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::cli::fixture;
use crate::support::record::{PROFTOOL, Room, can_record};
use crate::support::record_stacks::build;
use crate::support::repeated::repeated;
use crate::support::shares::near;
use crate::support::top::{PATIENCE, Pane, can_drive};
use crate::support::{copy_program, skipped};

/// What is run, and what is known of it.
struct Watched<'a> {
    /// The command line, for a shell.
    command: &'a str,
    /// The function with the largest self weight.
    hottest: &'a str,
}

/// The program that shows a recording as `proftool top` shows what runs.
fn replay() -> Option<PathBuf> {
    // Beside the folder of the tests is that of the examples, which `cargo test` builds, too, but
    // `cargo test --test suite` does not.
    let this = std::env::current_exe().unwrap();
    let program = this.ancestors().nth(2).unwrap().join("examples/top_replay");
    if !program.is_file() {
        skipped("the example top_replay is not built");
        return None;
    }
    Some(program)
}

/// Walks through the views of what is watched.
fn drive(name: &str, watched: &Watched) {
    let pane = Pane::new(name, watched.command, (80, 24));
    let hottest = watched.hottest;
    pane.wait_for("100 % = ");
    let screen = pane.wait_for(hottest);
    assert!(screen.starts_with("100 % = "), "{screen}");
    assert!(
        screen.contains(" 1 flat  2 graph  3 tree  4 cycles "),
        "{screen}"
    );
    let heading = screen
        .lines()
        .find(|line| line.starts_with("self %  total %"));
    assert!(heading.is_some(), "{screen}");

    pane.keys(&["Enter"]);
    pane.wait_for("self  children");
    pane.wait_for(hottest);
    pane.keys(&["BSpace"]);
    pane.wait_for("self %  total %");
    pane.keys(&["3"]);
    pane.wait_for("e hot path");
    pane.wait_for("collapse: ");
    pane.keys(&["4"]);
    pane.wait_for("member or call");
    pane.keys(&["?"]);
    pane.wait_for("VIEWS");
    pane.keys(&["Escape"]);
    pane.wait("the help should be gone", |screen| {
        !screen.contains("VIEWS")
    });
    pane.keys(&["1", "/"]);
    pane.keys(&["-l", hottest]);
    pane.wait_for(&format!("lines with: {hottest}"));
    pane.keys(&["Enter"]);
    pane.wait_for(&format!("lines with /{hottest}/"));
    // Alone: what comes right behind it would be a key with Alt.
    pane.keys(&["Escape"]);
    pane.wait("the filter should be gone", |screen| {
        !screen.contains("lines with /")
    });
    pane.keys(&["p"]);
    pane.wait_for("PAUSED");
    pane.keys(&["p"]);

    // Every size can be drawn, and drawn again.
    for (width, height) in [(60, 12), (20, 5), (2, 2), (120, 40)] {
        let (width, height) = (width.to_string(), height.to_string());
        pane.tmux(&["resize-window", "-x", &width, "-y", &height]);
        std::thread::sleep(Duration::from_millis(200));
    }
    pane.wait_for("w write");
    pane.keys(&["q"]);
    pane.wait_for("left with 0");
    pane.is_given_back();
}

#[test]
fn a_replayed_recording_can_be_browsed() {
    repeated(|| {
        let Some(program) = can_drive().then(replay).flatten() else {
            return;
        };
        let program = program.display();
        // It does not end by itself: nothing is paused that has ended.
        let command = format!("{program} {} 100000 0.3", fixture("recursion"));
        let watched = Watched {
            command: &command,
            hottest: "b",
        };
        drive("walk", &watched);
    });
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    repeated(|| {
        let Some(program) = can_drive().then(replay).flatten() else {
            return;
        };
        let command = format!("{} {} 100", program.display(), fixture("recursion"));
        for (name, key, status) in [("c", "C-c", "0"), ("term", "", "143")] {
            let pane = Pane::new(name, &command, (80, 24));
            pane.wait_for("100 % = ");
            match key {
                "" => {
                    let sent = Command::new("kill").arg(pane.child()).status().unwrap();
                    assert!(sent.success());
                }
                key => pane.keys(&[key]),
            }
            pane.wait_for(&format!("left with {status}"));
            pane.is_given_back();
        }
    });
}

#[test]
fn it_ends_with_its_terminal() {
    repeated(|| {
        let Some(program) = can_drive().then(replay).flatten() else {
            return;
        };
        let command = format!("{} {} 100", program.display(), fixture("recursion"));
        let pane = Pane::new("gone", &command, (80, 24));
        pane.wait_for("100 % = ");
        let child = pane.child();
        drop(pane);
        let end = Instant::now() + PATIENCE;
        let process = Path::new("/proc").join(child);
        while process.is_dir() {
            assert!(Instant::now() < end, "it goes on without a terminal");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

#[test]
fn a_recording_can_be_written_and_is_named_again_at_the_end() {
    repeated(|| {
        let Some(program) = can_drive().then(replay).flatten() else {
            return;
        };
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("top.written");
        let _ = std::fs::remove_file(&file);
        let command = format!("{} {} 2 0.2", program.display(), fixture("recursion"));
        let pane = Pane::new("write", &command, (200, 24));
        pane.wait_for("the recording is over");
        pane.keys(&["w"]);
        pane.wait_for("write to: perf.data");
        pane.keys(&["-l", &file.display().to_string()]);
        pane.keys(&["Enter"]);
        let told = format!("see: proftool report {}", file.display());
        pane.wait_for(&told);
        assert!(file.is_file());
        pane.keys(&["q"]);
        pane.wait_for("left with 0");
        pane.wait_for(&told);
    });
}

#[test]
fn figures_from_before_a_reset_are_labelled() {
    repeated(|| {
        let Some(program) = can_drive().then(replay).flatten() else {
            return;
        };
        let gate = Path::new(env!("CARGO_TARGET_TMPDIR")).join("top.gate");
        let _ = std::fs::remove_file(&gate);
        let command = format!(
            "{} {} 8 0.1 {}",
            program.display(),
            fixture("recursion"),
            gate.display()
        );
        let pane = Pane::new("reset", &command, (120, 24));
        let first = |screen: &str| screen.lines().next().unwrap_or_default().to_owned();
        pane.wait_for("since the start");
        pane.keys(&["z"]);
        let screen = pane.wait_for("resetting …, until then 100 % = ");
        assert!(!first(&screen).contains("since"), "{screen}");
        pane.keys(&["w"]);
        pane.wait_for("before the reset are not kept");
        // The old figures stay until now, however long that took.
        std::fs::write(&gate, "").unwrap();
        let screen = pane.wait_for("since the reset");
        assert!(first(&screen).starts_with("100 % = "), "{screen}");
        pane.keys(&["q"]);
        pane.wait_for("left with 0");
    });
}

#[test]
fn without_a_terminal_tables_are_printed() {
    repeated(|| {
        let Some(program) = replay() else {
            return;
        };
        let output = Command::new(program)
            .args([&fixture("recursion"), "2", "0.2"])
            .output()
            .unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains(
                "100 samples (folded stacks: unit not stated, taken as\nsamples)\n\
             self %  total %  self  total  function\n"
            ),
            "{text}"
        );
        assert!(text.ends_with("\nthe recording is over\n"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    });
}

/// Works by known shares, for ever: `most` takes three quarters of the time.
const SHARES: &str = "\
#include <time.h>
volatile unsigned long sink;
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void most(void) { double end = now() + 0.03; while (now() < end) for (int i = 0; i < 50000; i++) sink += i; }
__attribute__((noinline)) void least(void) { double end = now() + 0.01; while (now() < end) for (int i = 0; i < 50000; i++) sink += i; }
int main(void) { for (;;) { most(); least(); } }
";

fn shares(room: &Room) -> Option<PathBuf> {
    if !can_record() {
        return None;
    }
    build(room, "shares", SHARES, &["-O1", "-fno-omit-frame-pointer"])
}

#[test]
fn a_running_program_can_be_browsed() {
    repeated(|| {
        let room = Room::new();
        let Some(program) = can_drive().then(|| shares(&room)).flatten() else {
            return;
        };
        let command = format!("{PROFTOOL} top -e cpu-clock:u {}", program.display());
        let watched = Watched {
            command: &command,
            hottest: "most",
        };
        drive("live", &watched);
    });
}

#[test]
fn a_signal_ends_top_and_all_that_it_started() {
    repeated(|| {
        let room = Room::new();
        let Some(program) = can_drive().then(|| shares(&room)).flatten() else {
            return;
        };
        let ways = [("", "0"), ("TERM", "143"), ("HUP", "129"), ("INT", "130")];
        let program_of = |signal: &str| program.with_file_name(format!("shares-{signal}"));
        for (signal, _) in ways {
            copy_program(&program, program_of(signal));
        }
        let end_by = |signal: &str, status: &str| {
            let program = program_of(signal);
            // What the command starts has to end, too.
            let script = format!("{} & wait", program.display());
            let command = format!("{PROFTOOL} top -e cpu-clock:u sh -c '{script}'");
            let is_running = || {
                let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
                let mut programs =
                    processes.filter_map(|entry| entry.path().join("exe").read_link().ok());
                programs.any(|path| path == program)
            };
            // A signal goes to any thread that does not hold it back: several times, to be sure.
            for round in 0..4 {
                let name = format!("shares-{signal}-{round}");
                let pane = Pane::new(&name, &command, (80, 24));
                pane.wait_for("most");
                assert!(is_running());
                match signal {
                    "" => pane.keys(&["C-c"]),
                    signal => {
                        let kill = ["-s", signal, &pane.child()].map(str::to_owned);
                        assert!(Command::new("kill").args(kill).status().unwrap().success());
                    }
                }
                pane.wait_for(&format!("left with {status}"));
                pane.is_given_back();
                let end = Instant::now() + PATIENCE;
                while is_running() {
                    assert!(Instant::now() < end, "after {signal} the command goes on");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        };
        // All four at once: most of it is waiting for a screen.
        std::thread::scope(|scope| {
            for (signal, status) in ways {
                let end_by = &end_by;
                scope.spawn(move || end_by(signal, status));
            }
        });
    });
}

#[test]
fn a_running_program_is_printed_and_its_time_is_kept() {
    repeated(|| {
        let room = Room::new();
        let Some(program) = shares(&room) else {
            return;
        };
        let output = Command::new(PROFTOOL)
            .args(["top", "-e", "cpu-clock:u", "-d", "4", "--interval", "1"])
            .arg(&program)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let tables = text.matches("self %  total %").count();
        assert!(tables >= 2, "{text}");
        assert!(text.trim_end().ends_with("the duration is over"), "{text}");
        // The command was asked to end.
        assert_eq!(output.status.code(), Some(143), "{text}");
        assert!(!text.contains(": 0 samples"), "{text}");
        let last = text.rsplit("self %").next().unwrap();
        let (before, _) = text.rsplit_once(" samples of cpu-clock").expect(&text);
        let samples = before.rsplit(' ').next().unwrap().replace(',', "");
        let samples: u64 = samples.parse().expect(&text);
        let share = |function: &str| -> f64 {
            // The heading may have "at most".
            let total = last.lines().find_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let is_it = words.contains(&function);
                words.get(1).filter(|_| is_it)?.parse().ok()
            });
            total.unwrap_or_else(|| panic!("{text}"))
        };
        // At most one turn of 40 ms is not whole.
        let points = 1.0 + 100.0 * 30.0 / samples as f64;
        for (function, percent) in [("most", 75.0), ("least", 25.0)] {
            let part = (share(function) * samples as f64 / 100.0).round() as u64;
            assert!(near(part, samples, percent, points), "{text}");
        }
    });
}

#[test]
fn tables_wait_for_samples_and_name_other_events() {
    repeated(|| {
        if !can_record() {
            return;
        }
        // It sleeps before it works.
        let work = "sleep 1.2; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.4";
        let printed = |args: &[&str]| {
            let output = Command::new(PROFTOOL)
                .args(["top", "-g", "fp", "-e", "cpu-clock:u", "--interval", "0.3"])
                .args(args)
                .args(["--", "sh", "-c", work])
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            // Long lines are wrapped.
            let text = String::from_utf8(output.stdout).unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let text = printed(&[]);
        assert!(!text.contains(": 0 samples"), "{text}");
        assert!(text.contains(" of cpu-clock"), "{text}");
        assert!(!text.contains("also: "), "{text}");
        let text = printed(&["--off-cpu"]);
        let others = text.rsplit(" also: ").next().unwrap();
        assert!(others.starts_with("off-cpu "), "{text}");
        assert!(
            others.contains(" (choose: --show off-cpu) self %"),
            "{text}"
        );
        let text = printed(&["--off-cpu", "--show", "off-cpu"]);
        assert!(text.contains(" off-CPU, in "), "{text}");
        assert!(text.contains("also: cpu-clock"), "{text}");
    });
}

#[test]
fn a_missing_target_is_reported_in_one_line() {
    repeated(|| {
        for (args, status) in [
            (&["-p", "999999999"][..], 125),
            (&["--", "./no-such-program"][..], 127),
            (&["-t", "999999999"][..], 125),
        ] {
            let output = Command::new(PROFTOOL)
                .arg("top")
                .args(args)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(status), "{args:?}");
            let told = String::from_utf8(output.stderr).unwrap();
            assert!(told.starts_with("proftool: "), "{told}");
            assert!(told.lines().count() <= 2, "{told}");
        }
    });
}
