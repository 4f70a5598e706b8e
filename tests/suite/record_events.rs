//! `proftool record -e`: groups, modifiers, tracepoints; what the events count, held against what
//! the kernel counts for the program itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::record::{PROFTOOL, Room, can_record, is_root, perf, stderr};
use crate::support::{compile_text, copy_program, skipped};

/// Touches pages in its threads and children; prints how often it faulted, all together.
const FAULTS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *unused) {
    volatile unsigned long sum = 0;
    size_t size = 8 << 20;
    for (int turn = 0; turn < 12; turn++) {
        for (long i = 0; i < 1500000; i++) sum += i * i;
        char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, size, MADV_NOHUGEPAGE);
        for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
        munmap(memory, size);
        for (long i = 0; i < 1500000; i++) sum += i * i;
    }
    return unused;
}
int main(void) {
    pthread_t threads[2];
    if (fork() == 0) { work(0); _exit(0); }
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    work(0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    wait(0);
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    printf("%ld\n", self.ru_minflt + children.ru_minflt);
    return 0;
}
"#;

/// Builds `program` from C; `None`, and why the test is skipped, where nothing can be built or
/// recorded.
pub fn program(room: &Room, text: &str) -> Option<PathBuf> {
    if !can_record() {
        return None;
    }
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-pthread"];
    compile_text("gcc", &flags, text, &room.path("program"))
}

/// Records the program with `args`. Gives the faults that it counted itself, and what was said.
fn record_faults(room: &Room, args: &[&str]) -> (f64, String) {
    let output = room.record(&[args, &["./program"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let counted = String::from_utf8_lossy(&output.stdout).trim().parse();
    (counted.unwrap(), stderr(&output))
}

fn json(room: &Room, args: &[&str]) -> serde_json::Value {
    let output = Command::new(PROFTOOL)
        .args(args)
        .args(["--format", "json", "perf.data"])
        .current_dir(&room.0)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The weight of all samples of an event, and what it is counted in.
fn weight(room: &Room, event: &str) -> (f64, String) {
    let answer = json(room, &["flat", "--event", event]);
    let text = answer.to_string();
    let total = answer["total"].as_f64();
    let unit = answer["event"]["unit"].as_str();
    (total.expect(&text), unit.expect(&text).to_owned())
}

/// Whether the kernel lets threads inherit a group that is read (Linux 6.12).
fn inherits_groups(said: &str) -> bool {
    let inherits = !said.contains("before Linux 6.12");
    if !inherits {
        skipped("this kernel does not let threads inherit groups that are read");
    }
    inherits
}

#[test]
fn the_leader_of_a_group_has_the_counts_of_all_threads() {
    let room = Room::new();
    if program(&room, FAULTS).is_none() {
        return;
    }
    let (counted, said) = record_faults(&room, &["-g", "fp", "-e", "{cpu-clock,page-faults}:S"]);
    if !inherits_groups(&said) {
        return;
    }
    let (faults, unit) = weight(&room, "page-faults");
    assert_eq!(unit, "page-faults");
    // What comes after a thread's last sample, and before the exec, is not read.
    let share = faults / counted;
    assert!((0.85..=1.0).contains(&share), "{faults} of {counted}");
    let (clock, unit) = weight(&room, "cpu-clock");
    assert!(unit == "ns" && clock > 50e6, "{clock} {unit}");
    // Only the leader has samples; all of them are perf's too.
    let Some(script) = perf(&["script", "-i", &path(&room), "-F", "event,period"]) else {
        return;
    };
    assert!(script.contains("cpu-clock") && script.contains("page-faults"));
    let listed = perf(&["evlist", "-g", "-i", &path(&room)]).unwrap();
    assert_eq!(listed.trim(), "{cpu-clock,page-faults}");
    let report = perf(&["report", "--group", "--stdio", "-i", &path(&room)]).unwrap();
    assert!(report.contains("anon group { cpu-clock, page-faults }"));
}

#[test]
fn three_events_have_their_own_units_in_each_report() {
    let room = Room::new();
    if program(&room, FAULTS).is_none() {
        return;
    }
    let events = "{cpu-clock,page-faults},context-switches";
    let (counted, _) = record_faults(&room, &["-g", "fp", "-c", "100", "-e", "page-faults"]);
    let (faults, unit) = weight(&room, "page-faults");
    assert_eq!(unit, "page-faults");
    // What comes after the last sample of a thread on a processor is not told.
    let share = faults / counted;
    assert!((0.9..=1.0).contains(&share), "{faults} of {counted}");
    record_faults(&room, &["-q", "-g", "fp", "-e", events]);
    for (event, unit) in [
        ("cpu-clock", "ns"),
        ("page-faults", "page-faults"),
        ("context-switches", "context-switches"),
    ] {
        let (weight, counted_in) = weight(&room, event);
        assert_eq!(counted_in, unit);
        assert!(weight > 0.0, "{event}");
    }
    for command in ["report", "flat", "tree"] {
        let output = Command::new(PROFTOOL)
            .args([command, "--event", "page-faults", "perf.data"])
            .current_dir(&room.0)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("of page-faults"),
            "{command}: {text}"
        );
    }
    if let Some(listed) = perf(&["evlist", "-g", "-i", &path(&room)]) {
        assert_eq!(listed.trim(), "{cpu-clock,page-faults}\ncontext-switches");
    }
}

#[test]
fn groups_on_processors_count_from_the_start() {
    let room = Room::new();
    if program(&room, FAULTS).is_none() {
        return;
    }
    if !is_root() {
        return skipped("only root records whole processors");
    }
    let args = ["-a", "-g", "fp", "-e", "{cpu-clock,page-faults}:S"];
    let (counted, _) = record_faults(&room, &args);
    let (faults, _) = weight(&room, "page-faults");
    assert!(faults > counted * 0.9, "{faults} of {counted} and others'");
}

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

fn path(room: &Room) -> String {
    room.path("perf.data").display().to_string()
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
    // A word that follows is the command.
    let output = room.record(&["-z", "3", "./x"]);
    assert_eq!(output.status.code(), Some(127));
    let said = stderr(&output);
    assert!(
        said.contains("program not found: 3\nhint: write the level without a space: -z3\n"),
        "{said}"
    );
    // What comes after the command is the command's.
    let output = room.record(&["-q", "-o", "other", "echo", "-z3"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "-z3\n");
}

#[test]
fn a_compressed_recording_of_a_killed_recorder_can_be_read() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let mut recorder = room
        .command(&["-z", "-q", "sh", "-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let samples = || {
        let output = Command::new(PROFTOOL)
            .args(["flat", "--format", "json", "perf.data.part"])
            .current_dir(&room.0)
            .output()
            .unwrap();
        let answer: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        let samples = answer.and_then(|answer| answer["samples"].as_u64());
        (samples.unwrap_or(0), output)
    };
    while samples().0 <= 100 {
        std::thread::sleep(Duration::from_millis(100));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let (samples, output) = samples();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(samples > 100, "{}", stderr(&output));
}

const SPIN: &str = include_str!("../../fixtures/programs/spin.c");

/// How near the estimate is to the truth is measured by `scripts/compare_slow_down.py`.
#[test]
fn the_costs_of_a_recording_are_reported_with_an_estimate_of_the_slow_down() {
    let room = Room::new();
    if program(&room, SPIN).is_none() {
        return;
    }
    let output = room.record(&["-v", "-g", "fp", "-F", "9973", "./program"]);
    let said = stderr(&output);
    if said.contains("above the limit") {
        return skipped(&said);
    }
    for part in ["the recorder used ", " buffers of ", " bytes per sample"] {
        assert!(said.contains(part), "{said}");
    }
    let share = said.split("≈ ").last();
    let share = share.and_then(|rest| rest.split(' ').next());
    let share: f64 = share.expect(&said).parse().expect(&said);
    assert!(share > 0.0 && share.is_finite(), "{said}");
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
