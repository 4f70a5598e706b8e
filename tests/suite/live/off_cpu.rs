//! `proftool record --off-cpu`: how long threads waited, and on which stack. The witnesses are a
//! program that measures its own waits, and perf, which shows the switches of the same file.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::elf::Elf;
use crate::support::record::{PROFTOOL, Room, can_record, each_record, is_root, perf, stderr};
use crate::support::repeated::repeated;
use crate::support::written::{CONTEXT_SWITCHES, CPU_CLOCK, Recording, Taken};
use crate::support::{bound_to_test, compile, copy_program, directory, fixture, skipped};

const WITH_FRAME_POINTERS: [&str; 2] = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];

const WITHOUT: [&str; 1] = ["-fomit-frame-pointer"];

/// The fixture `waits`, compiled.
fn waits(room: &Room, flags: &[&str]) -> Option<PathBuf> {
    build(room, "waits", flags)
}

/// A program of the fixtures, compiled.
fn build(room: &Room, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let all = ["-O2", "-g", "-pthread", "-fno-optimize-sibling-calls"];
    let source = fixture(&format!("{name}.c"));
    compile("gcc", &[&all, flags].concat(), &source, &room.path(name))
}

/// Held while switches are recorded: of two recordings of the same software event on one processor
/// the kernel (seen with 6.18) gives the samples of one the id and the size of the other's.
static ALONE: Mutex<()> = Mutex::new(());

/// The permission to record switches, if stacks of them may be recorded here; says why not.
fn may_record_switches() -> Option<MutexGuard<'static, ()>> {
    if !can_record() || !is_root() {
        skipped("stacks of switches need the right to see the kernel");
        return None;
    }
    Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What `proftool info` says of a file.
fn info(file: &Path) -> String {
    let output = Command::new(PROFTOOL).arg("info").arg(file).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// Whether somebody else recorded switches at the same time; says that the test is skipped.
fn is_disturbed(file: &Path) -> bool {
    let foreign = info(file).contains("of an event that the file does not define");
    if foreign {
        skipped("somebody else on this machine records switches");
    }
    foreign
}

/// What the program says that each way to wait took, in nanoseconds.
fn measured(output: &Output) -> BTreeMap<String, u64> {
    assert!(output.status.success(), "{}", stderr(output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let line = |line: &str| {
        let (name, time) = line.split_once(' ').unwrap();
        (name.to_owned(), time.parse().unwrap())
    };
    let all: BTreeMap<String, u64> = text.lines().map(line).collect();
    assert_eq!(all.len(), 7, "{text}");
    all
}

/// The name and total of each function for an event, and the name of the event.
fn totals(file: &Path, args: &[&str]) -> (String, BTreeMap<String, u64>) {
    let output = Command::new(PROFTOOL)
        .args(["flat", "--format", "json", "--limit", "0", "--min", "0"])
        .args(args)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut totals = BTreeMap::new();
    for row in json["functions"].as_array().unwrap() {
        // GCC's copies: `nap_outer.constprop.0`.
        let name = row["name"].as_str().unwrap().split('.').next().unwrap();
        *totals.entry(name.to_owned()).or_insert(0) += row["total"].as_u64().unwrap();
    }
    totals.insert("all".into(), json["total"].as_u64().unwrap());
    (json["event"]["name"].as_str().unwrap().to_owned(), totals)
}

fn off_cpu(file: &Path) -> BTreeMap<String, u64> {
    totals(file, &["--event", "off-cpu"]).1
}

/// Each way's time off the processor is what the program measured, within two percent; time for
/// which it could have run and did not is in what it measured too.
#[track_caller]
fn agrees(file: &Path, measured: &BTreeMap<String, u64>, ways: &[&str]) {
    agrees_of(file, &[], measured, ways);
}

/// The same of the samples that pass a filter.
#[track_caller]
fn agrees_of(file: &Path, filter: &[&str], measured: &BTreeMap<String, u64>, ways: &[&str]) {
    if is_disturbed(file) {
        return;
    }
    let of = |event| totals(file, &[&["--event", event], filter].concat()).1;
    let (off, preempted) = (of("off-cpu"), of("preempted"));
    for way in ways {
        let time = measured[*way];
        let function = format!("{way}_outer");
        let blocked = off.get(&function).copied().unwrap_or(0);
        let all = blocked + preempted.get(&function).copied().unwrap_or(0);
        let percent = |part: u64| 100.0 * part as f64 / time as f64;
        assert!(
            (98.0..=100.0).contains(&percent(all)) && blocked <= time,
            "{function} measured {time} ns, off the processor {:.2} %, of which blocked {:.2} %",
            percent(all),
            percent(blocked)
        );
    }
}

/// Until when the recorder says that it went on, which perf does not show: the time of the last record
/// LOST_SAMPLES of no samples.
fn end(file: &Path) -> u64 {
    let mut last = 0;
    each_record(file, |kind, record| {
        // The header, the number of samples, PID and TID, TIME.
        if kind == 13 && record.len() == 48 && record[8..24] == [0; 16] {
            last = last.max(u64::from_ne_bytes(record[24..32].try_into().unwrap()));
        }
    });
    last
}

/// Nanoseconds blocked and preempted, by the switches in a file as perf shows them.
fn by_perf(file: &Path) -> Option<(u64, u64)> {
    let script = perf(&[
        "script",
        // Also if it belongs to somebody else.
        "-f",
        "--ns",
        "--show-switch-events",
        "--show-task-events",
        "-F",
        "pid,tid,time,event",
        "-i",
        file.to_str().unwrap(),
    ])?;
    let mut left: BTreeMap<i32, (u64, bool)> = BTreeMap::new();
    let mut ended = Vec::new();
    let mut processes: BTreeMap<i32, i32> = BTreeMap::new();
    let (mut blocked, mut preempted, mut last) = (0, 0, end(file));
    for line in script.lines() {
        // `16140/16142 11946.266152000: PERF_RECORD_SWITCH IN`.
        let Some((task, rest)) = line.trim().split_once(' ') else {
            continue;
        };
        let ids = task.split_once('/');
        let ids = ids.and_then(|(pid, tid)| Some((pid.parse().ok()?, tid.parse().ok()?)));
        let Some(((pid, tid), (time, what))) = ids.zip(rest.trim().split_once(": ")) else {
            continue;
        };
        processes.insert(tid, pid);
        let time: u64 = time.replace('.', "").parse().unwrap();
        last = last.max(time);
        let other = |name: &str| {
            let (_, numbers) = what.split_once(name)?;
            let (_, tid) = numbers.split_once(')')?.0.split_once(':')?;
            tid.parse::<i32>().ok()
        };
        if what.contains("PERF_RECORD_COMM exec") {
            // A thread that executes a program is the only one left, and takes the number of its process.
            left.retain(|other, _| *other == tid || processes.get(other) != Some(&pid));
            ended.retain(|&ended| ended != tid);
        } else if let Some(tid) = other("PERF_RECORD_EXIT(") {
            ended.push(tid);
            left.remove(&tid);
        } else if let Some(tid) = other("PERF_RECORD_FORK(") {
            ended.retain(|&ended| ended != tid);
        } else if what.starts_with("context-switches") {
            // It runs, as it is about to leave: where it came back is not recorded. The kernel
            // stops events one by one at the end, and those of switches before their samples.
            left.remove(&tid);
        } else if !what.contains("SWITCH") || tid <= 0 || ended.contains(&tid) {
            continue;
        } else if what.contains(" OUT") {
            left.insert(tid, (time, what.contains("preempt")));
        } else if let Some((since, could)) = left.remove(&tid) {
            *(if could { &mut preempted } else { &mut blocked }) += time - since;
        }
    }
    for (since, could) in left.into_values() {
        *(if could { &mut preempted } else { &mut blocked }) += last - since;
    }
    Some((blocked, preempted))
}

#[track_caller]
fn is_as_perf_says(file: &Path) {
    if is_disturbed(file) {
        return;
    }
    let Some(expected) = by_perf(file) else {
        return;
    };
    let all = |event| without_names(file, &["--event", event]);
    let told = (all("off-cpu"), all("preempted"));
    if told != expected {
        // It is rare, and only the file tells why.
        let kept = directory("off-cpu-differs").join("perf.data");
        fs::copy(file, &kept).unwrap();
        panic!("{told:?} is not {expected:?}: {}", kept.display());
    }
}

/// The time of all samples that pass a filter. Programs are looked for where there are none: of a
/// whole machine, compilers may be among them, whose names take minutes.
fn without_names(file: &Path, filter: &[&str]) -> u64 {
    let nowhere = file.parent().unwrap().to_str().unwrap();
    let bare = ["--symfs", nowhere, "--no-repair", "--no-inline"];
    totals(file, &[&bare, filter].concat()).1["all"]
}

#[test]
fn waits_last_as_long_as_the_program_measures() {
    repeated(|| {
        let Some(_alone) = may_record_switches() else {
            return;
        };
        // Where the C library keeps no frame pointers its callers are lost; those of the callers not.
        let found_by_frame_pointers = ["nap", "lock", "pipe", "poll", "epoll"];
        let all = ["nap", "lock", "pipe", "poll", "epoll", "cond"];
        let ways: [(&[&str], &str, &[&str]); 4] = [
            (&WITH_FRAME_POINTERS, "fp", &found_by_frame_pointers),
            (&WITH_FRAME_POINTERS, "auto", &all),
            (&WITH_FRAME_POINTERS, "dwarf", &all),
            (&WITHOUT, "dwarf", &all),
        ];
        for (flags, stacks, ways) in ways {
            let room = Room::new();
            let Some(program) = waits(&room, flags) else {
                return;
            };
            let program = program.to_str().unwrap();
            let output = room.record(&["--off-cpu", "-g", stacks, program]);
            let file = room.path("perf.data");
            agrees(&file, &measured(&output), ways);
            is_as_perf_says(&file);
            // Nothing of it was off the processor when the recording began, nothing is doubtful.
            let info = info(&file);
            assert!(!info.contains("off-CPU"), "{info}");
            // The burning takes a fifteenth of the time; it is what is shown unless asked otherwise.
            let (event, totals) = totals(&file, &[]);
            assert!(
                !event.contains("off") && event != "context-switches",
                "{event}"
            );
            assert!(totals.contains_key("burn"), "{totals:?}");
            let burnt = off_cpu(&file).get("burn").copied();
            assert_eq!(burnt, None, "burning is no wait");
        }
    });
}

#[test]
fn waits_of_the_whole_machine_exclude_idle_time() {
    repeated(|| {
        let Some(_alone) = may_record_switches() else {
            return;
        };
        let room = Room::new();
        let Some(program) = waits(&room, &WITH_FRAME_POINTERS) else {
            return;
        };
        // There may be others like it on the machine: other tests.
        let own = room.path("waits-of-all");
        fs::rename(program, &own).unwrap();
        let program = own.to_str().unwrap();
        let output = room.record(&["--off-cpu", "-a", "-g", "fp", "-d", "20", "--", program]);
        let file = room.path("perf.data");
        let lost = stderr(&output).contains("were lost");
        if lost {
            return skipped("the machine is too busy: records were lost");
        }
        let ways = ["nap", "lock", "pipe", "poll", "epoll"];
        let filter = ["--comm", "waits-of-all", "--no-repair"];
        agrees_of(&file, &filter, &measured(&output), &ways);
        is_as_perf_says(&file);
        let idle = ["--event", "off-cpu", "--comm", "swapper"];
        assert_eq!(without_names(&file, &idle), 0);
    });
}

#[test]
fn a_process_that_runs_already_is_followed_from_the_beginning() {
    repeated(|| {
        let Some(_alone) = may_record_switches() else {
            return;
        };
        let room = Room::new();
        let Some(program) = waits(&room, &WITH_FRAME_POINTERS) else {
            return;
        };
        let file = room.path("perf.data");
        // On a busy machine the program may not nap when the recording begins, but wait for a processor.
        let naps = (0..5).any(|_| {
            let mut running = bound_to_test(program.to_str().unwrap())
                .arg("8")
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            sleep(Duration::from_millis(100));
            let pid = running.id().to_string();
            let output = room.record(&["--off-cpu", "-g", "fp", "-d", "0.9", "-p", &pid]);
            let _ = running.kill();
            running.wait().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            !info(&file).contains("off-CPU when the recording began")
        });
        assert!(naps, "{}", info(&file));
        // Its naps of a fifth of a second, and the one in which the recording began, of which the stack is
        // not known.
        let off = off_cpu(&file);
        let nap = off["nap_outer"];
        assert!((300_000_000..900_000_000).contains(&nap), "{nap}");
        assert!(off["[blocked before the recording]"] > 0);
    });
}

/// Two threads that wait for each other and one that waits for both.
#[test]
fn blocked_threads_are_off_cpu_for_the_whole_recording() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let room = Room::new();
        let Some(program) = build(&room, "deadlock", &WITH_FRAME_POINTERS) else {
            return;
        };
        let file = room.path("perf.data");
        let file = file.as_path();
        // They begin to hang in it.
        let program = program.to_str().unwrap();
        let output = room.record(&["--off-cpu", "-d", "2", "timeout", "4", program]);
        assert!(stderr(&output).contains("the command continues"));
        if is_disturbed(file) {
            return;
        }
        // A busy machine takes a while until they do.
        let args = [
            "--event", "off-cpu", "--comm", "deadlock", "--time", "1..1.5",
        ];
        assert_eq!(totals(file, &args).1["all"], 3 * 500_000_000);

        // They hang already.
        let mut running = bound_to_test(program).stdout(Stdio::piped()).spawn();
        let running = running.as_mut().unwrap();
        let mut line = [0; 8];
        running
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut line)
            .unwrap();
        sleep(Duration::from_millis(50));
        let pid = running.id().to_string();
        let begin = Instant::now();
        let output = room.record(&["--off-cpu", "-d", "1", "-p", &pid]);
        let most = 3 * begin.elapsed().as_nanos() as u64;
        let _ = running.kill();
        running.wait().unwrap();
        assert!(
            stderr(&output).contains("no thread ran"),
            "{}",
            stderr(&output)
        );
        let off = off_cpu(file);
        let all = off["all"];
        assert!((2_990_000_000..most).contains(&all), "{all} of {most}");
        assert_eq!(off["[blocked before the recording]"], all);
        assert!(info(file).contains("3 threads were already blocked"));
    });
}

#[test]
fn a_time_range_counts_the_parts_of_intervals_in_it() {
    repeated(|| {
        let Some(_alone) = may_record_switches() else {
            return;
        };
        let room = Room::new();
        let Some(program) = waits(&room, &WITH_FRAME_POINTERS) else {
            return;
        };
        let program = program.to_str().unwrap();
        for stacks in ["fp", "dwarf"] {
            let output = room.record(&["--off-cpu", "-g", stacks, program]);
            assert!(output.status.success(), "{}", stderr(&output));
            let file = room.path("perf.data");
            let whole = off_cpu(&file);
            let part = |time| totals(&file, &["--event", "off-cpu", "--time", time]).1;
            // A nap begins in the one part and ends in the other.
            let (first, second) = (part("0..0.3"), part("0.3.."));
            for function in ["nap_outer", "poll_outer", "all"] {
                assert!(first[function] > 0 && second[function] > 0, "{function}");
                let sum = first[function] + second[function];
                assert_eq!(sum, whole[function], "{stacks}: {function}");
            }
            assert!(first["nap_outer"] <= 300_000_000);
            let inner = part("0.31..0.32");
            assert!(inner["poll_outer"] <= 10_000_000, "{inner:?}");
        }
    });
}

#[test]
fn without_privilege_waits_are_known_by_thread() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        let level = paranoid.ok().and_then(|text| text.trim().parse().ok());
        if !is_root() || level.is_none_or(|level: i32| level != 2) {
            return skipped(
                "needs root, to be somebody without privilege, and perf_event_paranoid=2",
            );
        }
        let room = Room::new();
        let Some(program) = waits(&room, &WITH_FRAME_POINTERS) else {
            return;
        };
        // The tested program may lie where nobody may go.
        let proftool = room.path("proftool");
        copy_program(PROFTOOL, &proftool);
        let output = Command::new(&proftool)
            .args(["record", "--off-cpu", program.to_str().unwrap()])
            .current_dir(&room.0)
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        let told = stderr(&output);
        assert!(told.contains("by thread, without stacks"), "{told}");
        assert!(
            told.contains("sysctl kernel.perf_event_paranoid=1"),
            "{told}"
        );
        let measured = measured(&output);
        let file = room.path("perf.data");
        is_as_perf_says(&file);
        let off = off_cpu(&file);
        assert_eq!(off["[off-CPU, no stack]"], off["all"]);
        let waited: u64 = measured.values().sum::<u64>() - measured["burn"];
        assert!(off["all"] >= waited / 100 * 98, "{off:?} {measured:?}");
        let info = info(&file);
        assert!(info.contains("off-CPU intervals without a stack"), "{info}");
        assert!(info.contains("perf_event_paranoid=1"), "{info}");
    });
}

#[test]
fn recordings_of_perf_have_waits_too() {
    repeated(|| {
        let Some(_alone) = may_record_switches() else {
            return;
        };
        let room = Room::new();
        let Some(program) = waits(&room, &WITH_FRAME_POINTERS) else {
            return;
        };
        for event in ["context-switches", "sched:sched_switch"] {
            let file = room.path("by-perf.data");
            let output = Command::new("perf")
                .args([
                    "record",
                    "-q",
                    "-N",
                    "-c1",
                    "-g",
                    "--switch-events",
                    "-e",
                    event,
                    "-o",
                ])
                .arg(&file)
                .arg(&program)
                .output();
            let Some(output) = output.ok().filter(|output| output.status.success()) else {
                skipped(&format!("perf record -e {event}"));
                continue;
            };
            agrees(&file, &measured(&output), &["nap", "pipe", "poll", "epoll"]);
            is_as_perf_says(&file);
            assert_eq!(totals(&file, &[]).0, event);
        }
    });
}

#[test]
fn the_report_of_waits_leads_with_where_the_program_waits() {
    repeated(|| {
        const APP: u64 = 0x40_1000;
        const LIBRARY: u64 = 0x70_1000;
        const KERNEL: u64 = 0xffff_ffff_8100_0000;
        let room = Room::new();
        let (app, library) = (room.path("app"), room.path("libwait.so"));
        Elf::with_functions(&[
            ("main", 0x1000, 0x100),
            ("take_lock", 0x1100, 0x100),
            ("fetch", 0x1200, 0x100),
        ])
        .write(&app);
        Elf::with_functions(&[("mutex_lock", 0x1000, 0x100), ("read", 0x1100, 0x100)])
            .write(&library);
        let events = [
            ("cpu-clock", CPU_CLOCK),
            ("context-switches", CONTEXT_SWITCHES),
        ];
        let mut recording = Recording::new(&events, true);
        recording.process(1, "app");
        for (path, start) in [(&app, APP), (&library, LIBRARY)] {
            recording.mapping(1, path.to_str().unwrap(), (start, 0x1000), 0x1000);
        }
        // Each wait ends in the same two functions of the kernel.
        let kernel = [KERNEL + 0x10, KERNEL + 0x1010];
        let waits: [(&[u64], u64); 2] = [
            (&[LIBRARY + 8, APP + 0x108, APP + 8], 300),
            (&[LIBRARY + 0x108, APP + 0x208, APP + 8], 100),
        ];
        let mut time = 1_000_000_000;
        for (user, milliseconds) in waits {
            let sample = Taken {
                task: 1,
                user,
                ..Taken::default()
            };
            recording.sample(Taken { time, ..sample });
            time += 1_000_000;
            recording.sample(Taken {
                event: 1,
                time,
                kernel: &kernel,
                ..sample
            });
            recording.switch(1, time, true);
            time += milliseconds * 1_000_000;
            recording.switch(1, time, false);
        }
        let data = room.path("perf.data");
        recording.write(&data);
        assert_eq!(off_cpu(&data)["all"], 400_000_000);
        let mut command = Command::new(PROFTOOL);
        command.args(["report", "--event", "off-cpu"]).arg(&data);
        let output = command.output().unwrap();
        let page = String::from_utf8(output.stdout).unwrap();
        let (_, table) = page
            .split_once("Innermost user-space functions")
            .expect(&page);
        let rows: Vec<&str> = table.lines().skip(2).take(2).collect();
        for (row, cells) in rows.iter().zip([
            ["75.00", "mutex_lock", "libwait.so", "take_lock"],
            ["25.00", "read", "libwait.so", "fetch"],
        ]) {
            let words: Vec<&str> = row.split_whitespace().collect();
            assert!(cells.iter().all(|cell| words.contains(cell)), "{page}");
        }
        let by_self = page.find("by self");
        assert_eq!(by_self, None, "the scheduler has all of it: {page}");
    });
}
