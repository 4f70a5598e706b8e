//! `proftool record -e`: groups, modifiers, tracepoints; what the events count, held against what
//! the kernel counts for the program itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::record::{PROFTOOL, Room, can_record, is_root, perf, stderr};
use crate::support::record_events::{FAULTS, SPIN, json, path, program, record_faults, weight};
use crate::support::{copy_program, skipped};

#[test]
fn an_invalid_event_is_reported_in_one_line_with_valid_ones() {
    let room = Room::new();
    let cases = [
        (
            "cycles:z",
            "there is no modifier 'z'; those that exist are: u (user space)",
        ),
        ("{cycles,cs", "a group ends with }"),
        (
            "nopmu/event=1/",
            "there is no PMU \"nopmu\"; those that exist are: ",
        ),
        ("software/event=1/", "there is no term \"event\""),
        (
            "cpu-clock,cycels",
            "unknown event \"cycels\"; did you mean cycles?",
        ),
    ];
    for (events, told) in cases {
        let output = room.record(&["-e", events, "true"]);
        assert_eq!(output.status.code(), Some(2), "{events}");
        let said = stderr(&output);
        assert!(
            said.lines().next().unwrap().contains(told),
            "{events}: {said}"
        );
        assert!(room.names().is_empty());
    }
}

#[test]
fn tracepoints_come_with_their_fields() {
    if !can_record() {
        return;
    }
    if !is_root() {
        return skipped("only root records tracepoints");
    }
    let room = Room::new();
    let events = "cpu-clock,{sched:sched_switch,cs}";
    let output = room.record(&[
        "-g",
        "fp",
        "-e",
        events,
        "sh",
        "-c",
        "sleep 0.01; sleep 0.01",
    ]);
    let said = stderr(&output);
    if !output.status.success() && said.contains("tracefs") {
        return skipped(&said);
    }
    assert!(output.status.success(), "{said}");
    let (switches, unit) = weight(&room, "sched:sched_switch");
    assert!(switches >= 3.0, "{switches} {unit}");
    let Some(script) = perf(&["script", "-i", &path(&room), "-F", "comm,event,trace"]) else {
        return;
    };
    let mut switched = script
        .lines()
        .filter(|line| line.contains("sched:sched_switch:"));
    assert!(switched.all(|line| line.contains("prev_comm=") && line.contains("next_pid=")));
    assert!(script.contains("prev_comm=sleep"), "{script}");
}

/// As nobody: what is refused is told with what would allow it.
#[test]
fn without_privilege_each_refusal_names_its_setting() {
    if !is_root() {
        return skipped("only root can become nobody");
    }
    if !can_record() {
        return;
    }
    let room = Room::new();
    let program = room.path("proftool");
    // The tested program may lie where nobody may go.
    copy_program(PROFTOOL, &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let record = |events: &str| {
        let output = Command::new(&program)
            .args(["record", "-g", "fp", "-e", events, "true"])
            .current_dir(&room.0)
            .gid(65534)
            .uid(65534)
            .output()
            .unwrap();
        (output.status.success(), stderr(&output))
    };
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let paranoid: i32 = paranoid.trim().parse().unwrap();
    if !(2..3).contains(&paranoid) {
        return skipped(&format!("kernel.perf_event_paranoid is {paranoid}, not 2"));
    }
    let (works, said) = record("{cpu-clock,page-faults}:S");
    assert!(
        works && said.contains("kernel.perf_event_paranoid"),
        "{said}"
    );
    let (works, said) = record("{cpu-clock:k,cs}");
    assert!(
        !works && said.contains("perf_event_paranoid is 2"),
        "{said}"
    );
    let tracefs = Path::new("/sys/kernel/tracing");
    let closed = fs::metadata(tracefs).is_ok_and(|m| m.permissions().mode() & 0o005 == 0);
    if !closed || fs::metadata(tracefs.join("events")).is_err() {
        return skipped("tracefs is not there, or open to everybody");
    }
    let (works, said) = record("sched:sched_switch");
    assert!(
        !works && said.contains("/sys/kernel/tracing cannot be read"),
        "{said}"
    );
    assert!(said.contains("remount,mode=750,gid="), "{said}");
}

/// How many samples the recorder says that it has written.
fn samples_told(said: &str) -> usize {
    let line = said.lines().find(|line| line.contains(" samples in "));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.expect(said).parse().unwrap()
}

#[test]
fn a_compressed_recording_has_the_same_samples() {
    let room = Room::new();
    if program(&room, FAULTS).is_none() {
        return;
    }
    for how in ["fp", "dwarf"] {
        let mut sizes = Vec::new();
        for compression in [&[][..], &["-z"], &["--compression-level=9"]] {
            let args = [compression, &["-F", "4999", "-g", how]].concat();
            let (_, said) = record_faults(&room, &args);
            let told = samples_told(&said);
            let answer = json(&room, &["flat"]);
            assert_eq!(answer["samples"], told, "{how} {compression:?}: {said}");
            let file = fs::read(room.path("perf.data")).unwrap();
            sizes.push(file.len() / told);
            // Bit 27 of the features.
            assert_eq!(file[72 + 3] & 8 != 0, !compression.is_empty());
            let args = ["script", "-i", &path(&room), "-F", "period,event"];
            let Some(script) = perf(&args) else { continue };
            let lines = script
                .lines()
                .filter_map(|line| line.split_whitespace().next());
            let periods: Vec<u64> = lines.filter_map(|word| word.parse().ok()).collect();
            assert_eq!(periods.len(), told, "{how} {compression:?}");
            assert_eq!(answer["total"], periods.iter().sum::<u64>());
        }
        assert!(
            sizes[1] * 3 < sizes[0] && sizes[2] * 3 < sizes[0],
            "{sizes:?}"
        );
    }
}

#[test]
fn a_level_of_compression_is_joined_to_its_option() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let is_compressed = |args: &[&str]| {
        let spin = [
            "sh",
            "-c",
            "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done",
        ];
        let output = room.record(&[args, &["-g", "fp"], &spin].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        // Bit 27 of the features.
        fs::read(room.path("perf.data")).unwrap()[72 + 3] & 8 != 0
    };
    for args in [
        &["-z"][..],
        &["-z3"],
        &["-z=3"],
        &["-qz19"],
        &["--compression-level"],
        &["--compression-level=3"],
        &["-o", "perf.data", "-z3"],
    ] {
        assert!(is_compressed(args), "{args:?}");
    }
    assert!(!is_compressed(&[]));
    for level in ["-z0", "-z99", "-z=99", "--compression-level=23"] {
        let output = room.record(&[level, "true"]);
        assert_eq!(output.status.code(), Some(2), "{level}");
        let said = stderr(&output);
        assert!(said.contains("is not in 1..=22"), "{level}: {said}");
    }
    // A word that follows is the command, but for a way to record stacks.
    for (option, word, hint) in [
        ("-z", "3", "write the level without a space: -z3"),
        (
            "-g",
            "dwraf",
            "ways to record stacks with -g: auto, fp, dwarf, none",
        ),
    ] {
        let output = room.record(&[option, word, "./x"]);
        assert_eq!(output.status.code(), Some(127));
        let said = stderr(&output);
        let expected = format!("program not found: {word}\nhint: {hint}\n");
        assert!(said.contains(&expected), "{said}");
    }
    // What comes after the command is the command's.
    let output = room.record(&["-q", "-o", "other", "echo", "-z3"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "-z3\n");
}

#[test]
fn events_that_never_interrupt_have_no_estimate() {
    let room = Room::new();
    if program(&room, SPIN).is_none() {
        return;
    }
    let output = room.record(&["-v", "-g", "fp", "-e", "page-faults", "./program"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains('≈'), "{said}");
    assert!(said.contains("the recorder used "), "{said}");
    let output = room.record(&["-q", "-v", "./program"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Where hundreds of threads want to run, the recorder has to have its turn; the command has what
/// it has without being recorded.
#[test]
fn the_recorder_has_priority_and_the_command_does_not() {
    if !can_record() {
        return;
    }
    if !is_root() {
        return skipped("only root may go before others");
    }
    let room = Room::new();
    // The 19th field is how nice a process is.
    let script = "sleep 0.5; cut -d' ' -f19 /proc/self/stat /proc/$PPID/stat";
    let nice = |args: &[&str]| -> Vec<i32> {
        let output = room.record(&[args, &["-q", "sh", "-c", script]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines()
            .map(|line| line.parse().expect(&text))
            .collect()
    };
    let plain = Command::new("sh").args(["-c", script]).output().unwrap();
    let plain = String::from_utf8_lossy(&plain.stdout).into_owned();
    let own: i32 = plain.lines().next().unwrap().parse().unwrap();
    let recorded = nice(&[]);
    if recorded[1] == own {
        return skipped("this root may not go before others");
    }
    assert_eq!(recorded, [own, own.min(-10)]);
    // What takes long is done when there is time.
    assert_eq!(nice(&["-z=19"]), [own, own]);
}
