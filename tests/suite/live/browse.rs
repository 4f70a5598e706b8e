//! `proftool browse`: the screen of `top` on a recording. On a terminal tmux types, as in the tests of `top`.

use std::path::{Path, PathBuf};

use crate::support::cli::{fixture, proftool};
use crate::support::elf::Elf;
use crate::support::record::PROFTOOL;
use crate::support::repeated::repeated;
use crate::support::top::{Pane, can_drive};
use crate::support::written::{CPU_CLOCK, Recording, Taken};

/// Two processes: `first` has samples in `work` in the first second, `second` in `main` in the next one.
fn recording(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browse-{test}"));
    std::fs::create_dir_all(&directory).unwrap();
    let app = directory.join("app");
    Elf::with_functions(&[("main", 0x1000, 0x100), ("work", 0x1100, 0x100)]).write(&app);
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(1, "first");
    recording.process(2, "second");
    for task in [1, 2] {
        recording.mapping(task, app.to_str().unwrap(), (0x40_1000, 0x1000), 0x1000);
    }
    let stacks: [&[u64]; 2] = [&[0x40_1110, 0x40_1010], &[0x40_1020]];
    for index in 0..10u64 {
        let second = usize::from(index >= 6);
        recording.sample(Taken {
            task: [1, 2][second],
            time: 1_000_000_000 + index * 200_000_000,
            user: stacks[second],
            ..Taken::default()
        });
    }
    let data = directory.join("perf.data");
    recording.write(&data);
    data
}

#[test]
fn without_a_terminal_it_is_refused_in_one_sentence() {
    repeated(|| {
        let output = proftool(&["browse", &fixture("recursion")])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("browse needs a terminal"), "{said}");
        assert!(said.contains("proftool report "), "{said}");
    });
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_is_named_as_the_reason() {
    repeated(|| {
        if !can_drive() {
            return;
        }
        let data = recording("dumb");
        let command = format!("TERM=dumb {PROFTOOL} browse {}", data.display());
        let pane = Pane::new("browse-dumb", &command, (100, 24));
        pane.wait_for("cannot draw on this terminal: TERM is dumb");
    });
}

#[test]
fn a_recording_is_walked_through_and_its_time_and_threads_are_chosen() {
    repeated(|| {
        if !can_drive() {
            return;
        }
        let data = recording("walk");
        let command = format!("LC_ALL=C.UTF-8 {PROFTOOL} browse {}", data.display());
        let pane = Pane::new("browse-walk", &command, (80, 24));
        let screen = pane.wait_for("10 samples");
        assert!(
            screen.contains(" 60.00    60.00") && screen.contains("work"),
            "{screen}"
        );
        pane.keys(&["Enter"]);
        pane.wait_for("Distribution to callers");
        pane.keys(&["a"]);
        pane.wait_for("self 60.00 % of all");
        pane.keys(&["Escape"]);
        // The number of functions is on the screen beside the detail, too.
        pane.wait_for("q quit");
        pane.keys(&["t", "second", "Enter"]);
        let screen = pane.wait_for("40.00 % of all: command second");
        assert!(!screen.contains("  work"), "{screen}");
        pane.keys(&["Escape"]);
        pane.wait_for("10 samples");
        pane.keys(&["T", "0..1.1", "Enter"]);
        let screen = pane.wait_for("6 samples");
        assert!(screen.contains("time 0..1.1 s"), "{screen}");
        pane.keys(&["T", "1..0", "Enter"]);
        // It is asked for again; without an answer it stays, and all of the time is read after Escape.
        pane.wait_for("1..0  the range must end after it starts");
        pane.keys(&["Escape"]);
        pane.wait_for("q quit");
        assert!(pane.text().contains("time 0..1.1 s"));
        pane.keys(&["Escape"]);
        pane.wait_for("10 samples");
        for (key, text) in [
            ("2", "caller"),
            ("3", "nodes"),
            ("4", "cycle"),
            ("1", "by self"),
        ] {
            pane.keys(&[key]);
            pane.wait_for(text);
        }
        pane.tmux(&["resize-window", "-x", "40", "-y", "12"]);
        pane.keys(&["Enter"]);
        pane.wait_for("Esc closes");
        assert!(pane.text().lines().all(|line| line.chars().count() <= 40));
        pane.keys(&["Escape"]);
        pane.wait_for("q quit");
        pane.keys(&["q"]);
        pane.wait_for("left with 0");
        pane.is_given_back();
    });
}

#[test]
fn filters_of_the_command_line_count() {
    repeated(|| {
        if !can_drive() {
            return;
        }
        let data = recording("filters");
        let options = "--comm first --focus work";
        let command = format!(
            "LC_ALL=C.UTF-8 {PROFTOOL} browse {} {options}",
            data.display()
        );
        let pane = Pane::new("browse-filters", &command, (80, 24));
        let screen = pane.wait_for("6 samples");
        assert!(screen.contains("--comm first"), "{screen}");
        assert!(
            screen.contains("60.00 % of all: stacks with /work/"),
            "{screen}"
        );
        pane.keys(&["q"]);
        pane.wait_for("left with 0");
    });
}

#[test]
fn rows_are_modules_or_addresses_where_asked_for() {
    repeated(|| {
        if !can_drive() {
            return;
        }
        let data = recording("rows");
        let browse = |test: &str, by: &str| {
            let command = format!(
                "LC_ALL=C.UTF-8 {PROFTOOL} browse {} --by {by}",
                data.display()
            );
            Pane::new(test, &command, (80, 24))
        };
        let pane = browse("browse-modules", "module");
        let screen = pane.wait_for("by module");
        assert!(screen.contains("1 module"), "{screen}");
        assert!(screen.contains("100.00   100.00"), "{screen}");
        assert!(
            screen.contains("  app") && !screen.contains("  work"),
            "{screen}"
        );
        // Another time is read again by the same rows.
        pane.keys(&["T", "1..2", "Enter"]);
        let screen = pane.wait_for("5 samples");
        assert!(screen.contains("time 1..2 s"), "{screen}");
        assert!(
            screen.contains("  app") && !screen.contains("  work"),
            "{screen}"
        );
        // A module has no source lines.
        pane.keys(&["a"]);
        pane.wait_for("leave out --by");
        pane.keys(&["Escape"]);
        pane.wait_for("q quit");
        pane.keys(&["q"]);
        pane.wait_for("left with 0");

        let pane = browse("browse-addresses", "address");
        let screen = pane.wait_for("by address");
        for row in ["work+0x10", "main+0x20", "3 addresses"] {
            assert!(screen.contains(row), "{screen}");
        }
        pane.keys(&["q"]);
        pane.wait_for("left with 0");

        let pane = browse("browse-threads", "thread");
        pane.wait_for("proftool flat --by thread");
        pane.wait_for("left with 1");
    });
}
