//! Jitdump files: written here by hand, as the specification of perf has them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use proftool::binary::{Error, Finder, JitDump, JitFrame, ProcessTimes};
use proftool::perfdata::{KeptJitDump, KeptPerfMap};

use crate::support::cli::proftool;
use crate::support::record::is_root;
use crate::support::record_calls::Running;
use crate::support::written::{CPU_CLOCK, Recording, Taken};
use crate::support::{bound_to_test, skipped};

/// A file that is being written.
struct File {
    bytes: Vec<u8>,
    swapped: bool,
}

impl File {
    fn new(swapped: bool, flags: u64) -> File {
        let mut file = File {
            bytes: Vec::new(),
            swapped,
        };
        for word in [0x4a69_5444, 1, 40, 62, 0, PID] {
            file.u32(word);
        }
        file.u64(1);
        file.u64(flags);
        file
    }

    fn u32(&mut self, value: u32) {
        let bytes = match self.swapped {
            true => value.swap_bytes(),
            false => value,
        };
        self.bytes.extend(bytes.to_ne_bytes());
    }

    fn u64(&mut self, value: u64) {
        let bytes = match self.swapped {
            true => value.swap_bytes(),
            false => value,
        };
        self.bytes.extend(bytes.to_ne_bytes());
    }

    fn head(&mut self, kind: u32, body: usize, time: u64) {
        self.u32(kind);
        self.u32(16 + body as u32);
        self.u64(time);
    }

    /// Returns the place of the code.
    fn load(&mut self, time: u64, name: &str, start: u64, size: u64, index: u64) -> u64 {
        self.head(0, 40 + name.len() + 1 + size as usize, time);
        self.u32(PID);
        self.u32(PID);
        for word in [start, start, size, index] {
            self.u64(word);
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        let place = self.bytes.len() as u64;
        self.bytes.extend(vec![0x90; size as usize]);
        place
    }

    /// Replaces code at a place.
    fn code(&mut self, place: u64, bytes: &[u8]) {
        let place = place as usize;
        self.bytes[place..place + bytes.len()].copy_from_slice(bytes);
    }

    fn moved(&mut self, time: u64, from: u64, to: u64, size: u64, index: u64) {
        self.head(1, 48, time);
        self.u32(PID);
        self.u32(PID);
        for word in [to, from, to, size, index] {
            self.u64(word);
        }
    }

    fn lines(&mut self, start: u64, lines: &[(u64, u32, &[u8])]) {
        let names: usize = lines.iter().map(|(.., file)| 16 + file.len() + 1).sum();
        self.head(2, 16 + names, 0);
        self.u64(start);
        self.u64(lines.len() as u64);
        for (at, line, file) in lines {
            self.u64(*at);
            self.u32(*line);
            self.u32(0);
            self.bytes.extend(*file);
            self.bytes.push(0);
        }
    }

    fn dump(&self) -> JitDump {
        JitDump::parse(&self.bytes).unwrap()
    }
}

const PID: u32 = 77;

/// Two functions at one address one after the other, one of them moved later.
fn sample(swapped: bool) -> (File, [u64; 2]) {
    let mut file = File::new(swapped, 0);
    let old = file.load(100, "Old.run", 0x1000, 0x20, 0);
    file.lines(
        0x1000,
        &[
            (0x1000, 10, b"a.js"),
            (0x1008, 20, b"\xff"),
            (0x1010, 30, b"b.js"),
        ],
    );
    // Unwinding information lies between them.
    file.head(4, 24, 150);
    file.bytes.extend([0; 24]);
    let new = file.load(200, "JS:*new a.js:1:2", 0x1000, 0x20, 1);
    file.moved(300, 0x1000, 0x5000, 0x20, 1);
    file.head(3, 0, 400);
    (file, [old, new])
}

#[test]
fn code_at_one_address_is_distinguished_by_time_and_moved_code_keeps_its_place() {
    for swapped in [false, true] {
        let (file, [old, new]) = sample(swapped);
        let dump = file.dump();
        assert!(dump.has_clock() && dump.problems().is_empty());
        let changes: Vec<_> = dump.changes().iter().collect();
        let what = changes.iter().map(|c| (c.time, c.start, c.place));
        let expected = [(100, 0x1000, old), (200, 0x1000, new), (300, 0x5000, new)];
        assert_eq!(what.collect::<Vec<_>>(), expected);
        assert_eq!(changes[2].moved_from, Some(0x1000));
        let name = |place| dump.at(place).map(|frame| frame.name);
        assert_eq!(name(old + 0x1f), Some("Old.run"));
        assert_eq!(name(old + 0x20), None);
        assert_eq!(name(new), Some("JS:new a.js:1:2"));
    }
}

#[test]
fn lines_are_those_of_the_next_load_of_their_address() {
    let (file, [old, new]) = sample(false);
    let dump = file.dump();
    let line = |place| dump.at(place).and_then(|frame: JitFrame<'_>| frame.line);
    assert_eq!(line(old), None);
    assert_eq!(line(new), Some(("a.js", 10)));
    assert_eq!(line(new + 0xf), Some(("a.js", 20)));
    assert_eq!(line(new + 0x10), Some(("b.js", 30)));

    let mut other = File::new(false, 0);
    other.lines(0x2000, &[(0x2000, 1, b"a.js")]);
    let place = other.load(1, "f", 0x1000, 8, 0);
    assert_eq!(other.dump().at(place).unwrap().line, None);
}

#[test]
fn lines_that_count_from_an_elf_header_are_moved_back() {
    let mut file = File::new(false, 0);
    file.lines(0x1000, &[(0x1040, 1, b"a.js"), (0x1050, 2, b"\xff")]);
    let place = file.load(1, "f", 0x1000, 0x20, 0);
    let dump = file.dump();
    assert_eq!(dump.at(place + 0xf).unwrap().line, Some(("a.js", 1)));
    assert_eq!(dump.at(place + 0x10).unwrap().line, Some(("a.js", 2)));
}

#[test]
fn damaged_file_names_are_left_out() {
    for bad in [&b"a\0b"[..], b"\x01\x02", b"\xfe\xfe"] {
        let mut file = File::new(false, 0);
        file.lines(0x1000, &[(0x1000, 1, bad), (0x1004, 2, b"c.js")]);
        let place = file.load(1, "f", 0x1000, 8, 0);
        let dump = file.dump();
        assert_eq!(dump.at(place).unwrap().line, None, "{bad:?}");
        assert_eq!(dump.problems().len(), 1, "{bad:?}");
    }
}

#[test]
fn a_cut_file_is_read_to_its_last_whole_record() {
    let (file, [old, _]) = sample(false);
    for length in 40..file.bytes.len() {
        let dump = JitDump::parse(&file.bytes[..length]).unwrap();
        let is_there = dump.at(old).is_some();
        assert_eq!(is_there, length as u64 >= old + 0x20, "{length}");
    }
    for length in 0..40 {
        assert!(JitDump::parse(&file.bytes[..length]).is_err());
    }
}

#[test]
fn other_files_and_clocks_are_recognized() {
    assert!(!File::new(false, 1).dump().has_clock());
    let other = JitDump::parse(&[0; 64]);
    assert!(matches!(other, Err(Error::Malformed { .. })), "{other:?}");
    let is_dump = |path: &str| JitDump::is_named_so(std::path::Path::new(path));
    assert!(is_dump("/tmp/jit-77.dump"));
    assert!(!is_dump("/tmp/jit-.dump") && !is_dump("/tmp/jit-77.dump.old"));
    assert!(!is_dump("/tmp/xjit-77.dump") && !is_dump("/tmp/jit-7x.dump"));
}

#[test]
fn with_any_changed_bytes_the_result_is_consistent() {
    let (file, _) = sample(false);
    for at in 0..file.bytes.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = file.bytes.clone();
            bytes[at] = value;
            let Ok(dump) = JitDump::parse(&bytes) else {
                continue;
            };
            for change in dump.changes() {
                assert!(change.start.checked_add(change.size).is_some());
                assert!(dump.at(change.place).is_some(), "{at} {value}");
            }
            let size = bytes.len() as u64;
            for place in [0, size, u64::MAX] {
                assert!(dump.at(place).is_none());
            }
        }
    }
}

/// Samples at these times and addresses of a process that wrote a jitdump: `Calc.sum` is compiled
/// twice, and `Calc.mul` takes the place of its first code. The rows are names and samples.
fn rows(test: &str, has_clock: bool) -> (Vec<(String, u64)>, String) {
    rows_of(&recorded(test, has_clock).0)
}

fn rows_of(data: &Path) -> (Vec<(String, u64)>, String) {
    let mut command = proftool(&["flat", "--format", "json", "--min", "0"]);
    let output = command.arg(data).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["functions"].as_array().unwrap().iter();
    // The callers are missing on all of these stacks: a mark has their total.
    let rows = rows.filter(|row| row["name"] != "[broken stack]");
    let rows = rows.map(|row| {
        let name = row["name"].as_str().unwrap().to_owned();
        (name, row["self"].as_u64().unwrap())
    });
    (rows.collect(), json["caveats"].to_string())
}

/// The same as a recording, and the places of the three pieces of code in the jitdump.
fn recorded(test: &str, has_clock: bool) -> (PathBuf, [u64; 3]) {
    let directory = directory(test);
    let (file, places) = calc();
    let dump = directory.join(format!("jit-{PID}.dump"));
    std::fs::write(&dump, &file.bytes).unwrap();
    let data = directory.join("perf.data");
    recording_of(dump.to_str().unwrap(), has_clock).write(&data);
    (data, places)
}

fn directory(test: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// The jitdump of that process, and the places of the code in it.
fn calc() -> (File, [u64; 3]) {
    let mut file = File::new(false, 0);
    let sum = file.load(100, "Calc.sum", 0x1000, 0x20, 0);
    let again = file.load(200, "Calc.sum", 0x2000, 0x20, 1);
    file.lines(0x1000, &[(0x1000, 7, b"Calc.java"), (0x1018, 9, b"\xff")]);
    let mul = file.load(300, "Calc.mul", 0x1000, 0x20, 2);
    // At 0x1008: jumps four bytes behind itself. At 0x1010: calls 0x2000, where only Calc.sum began. At
    // 0x1018: calls 0x1000, where two functions did.
    file.code(mul + 8, &[0xeb, 0x02]);
    file.code(mul + 0x10, &[0xe8, 0xeb, 0x0f, 0, 0]);
    file.code(mul + 0x18, &[0xe8, 0xe3, 0xff, 0xff, 0xff]);
    (file, [sum, again, mul])
}

/// The samples of that process, which mapped the jitdump by this path.
fn recording_of(dump: &str, has_clock: bool) -> Recording {
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], has_clock);
    let task = PID as i32;
    recording.process(task, "java");
    recording.mapping(task, dump, (0x9000, 0x1000), 0);
    recording.mapping(task, "//anon", (0x1000, 0x2000), 0);
    for (time, address) in [
        (150, 0x1008),
        (160, 0x1010),
        (250, 0x2008),
        (260, 0x2010),
        (270, 0x2018),
        (350, 0x1008),
        (360, 0x1010),
        (370, 0x1018),
        (380, 0x101c),
    ] {
        recording.sample(Taken {
            task,
            time,
            user: &[address],
            ..Taken::default()
        });
    }
    recording
}

/// What annotate says of a function of such a recording.
fn annotated(test: &str, has_clock: bool, function: &str) -> (serde_json::Value, String, [u64; 3]) {
    let (data, places) = recorded(test, has_clock);
    let (json, page) = listed(&data, function);
    (json, page, places)
}

fn listed(data: &Path, function: &str) -> (serde_json::Value, String) {
    let output = |format: &[&str]| {
        let mut command = proftool(&["annotate", function, "--asm", "--all"]);
        let output = command.args(format).arg(data).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let json = serde_json::from_str(&output(&["--format", "json"])).unwrap();
    (json, output(&[]))
}

/// The figures of instructions with samples: offset from `start`, self weight.
fn weighted(json: &serde_json::Value, start: u64) -> Vec<(u64, u64)> {
    let rows = json["code"]["instructions"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["self"].as_u64() > Some(0));
    rows.map(|row| {
        let address = row["address"].as_u64().unwrap();
        (address - start, row["self"].as_u64().unwrap())
    })
    .collect()
}

#[test]
fn generated_code_is_listed_from_the_jitdump_by_its_place_there() {
    let (json, page, [.., mul]) = annotated("jit-code", true, "Calc.mul");
    assert_eq!(
        weighted(&json, mul),
        [(8, 1), (0x10, 1), (0x18, 2)],
        "{page}"
    );
    let row = |offset: u64| {
        let mut rows = json["code"]["instructions"].as_array().unwrap().iter();
        rows.find(|row| row["address"] == mul + offset).unwrap()
    };
    assert_eq!(row(8)["text"], format!("jmp    {:x}", mul + 12));
    assert_eq!(row(0x10)["callee"], "Calc.sum");
    assert_eq!(row(0x18)["callee"], serde_json::Value::Null);
    assert_eq!(
        (&row(8)["line"], &row(0x18)["line"]),
        (&7.into(), &9.into())
    );
    assert!(page.contains("offsets in this file."), "{page}");
}

#[test]
fn a_method_compiled_again_is_listed_as_often_as_it_was_sampled() {
    let (json, page, [sum, again, _]) = annotated("jit-code-again", true, "Calc.sum");
    let expected = [(0x8, 1), (0x10, 1)];
    let later = [0x8, 0x10, 0x18].map(|offset| (again - sum + offset, 1));
    assert_eq!(
        weighted(&json, sum),
        [&expected[..], &later].concat(),
        "{page}"
    );
    assert!(page.contains("2 pieces of code"), "{page}");
}

#[test]
fn generated_code_that_nothing_keeps_is_said_to_be_lost() {
    let (_, page, _) = annotated("jit-code-lost", false, "Calc.sum");
    let page = page.replace('\n', " ");
    assert!(page.contains("the recording has only its names"), "{page}");
    assert!(page.contains("--perf-prof"), "{page}");
}

#[test]
fn a_method_compiled_again_is_one_row_and_reused_addresses_are_resolved_by_time() {
    let (rows, caveats) = rows("jit-timed", true);
    let expected = [("Calc.sum".to_owned(), 5), ("Calc.mul".to_owned(), 4)];
    assert_eq!(rows, expected, "{caveats}");
    assert_eq!(caveats.matches("reused").count(), 0, "{caveats}");
}

/// The file that was kept of the process.
fn kept(bytes: Vec<u8>, left_out: u64) -> KeptJitDump {
    KeptJitDump {
        pid: PID as i32,
        path: IN_CONTAINER.to_owned(),
        bytes: bytes.into(),
        left_out,
    }
}

const IN_CONTAINER: &str = "/nowhere/jit-1.dump";

#[test]
fn a_jitdump_that_the_recorder_kept_is_read_for_its_process() {
    let data = directory("jit-kept").join("perf.data");
    let of_another = KeptJitDump {
        pid: 5,
        ..kept(File::new(false, 0).bytes, 0)
    };
    for has_clock in [true, false] {
        let dumps = [of_another.clone(), kept(calc().0.bytes, 0)];
        recording_of(IN_CONTAINER, has_clock)
            .write_with(&data, |features| features.jit_dumps(&dumps));
        let kept = rows_of(&data);
        assert!(!kept.1.contains("bad-jitdump"), "{}", kept.1);
        assert_eq!(kept.0, rows("jit-not-kept", has_clock).0);
    }
}

#[test]
fn the_code_of_a_jitdump_that_the_recorder_kept_is_listed() {
    let data = directory("jit-kept-code").join("perf.data");
    let (file, [.., mul]) = calc();
    let dumps = [kept(file.bytes, 0)];
    recording_of(IN_CONTAINER, true).write_with(&data, |features| features.jit_dumps(&dumps));
    let (json, page) = listed(&data, "Calc.mul");
    assert_eq!(
        weighted(&json, mul),
        [(8, 1), (0x10, 1), (0x18, 2)],
        "{page}"
    );
    let (expected, ..) = annotated("jit-not-kept-code", true, "Calc.mul");
    assert_eq!(
        json["code"]["instructions"],
        expected["code"]["instructions"]
    );
}

#[test]
fn a_jitdump_that_was_too_large_to_keep_is_reported() {
    let data = directory("jit-too-large").join("perf.data");
    for (bytes, note) in [
        (
            calc().0.bytes,
            "too large to keep: its last 5000 bytes were left out",
        ),
        (Vec::new(), "it has 5000 bytes, too many to keep"),
    ] {
        let has_names = !bytes.is_empty();
        let dumps = [kept(bytes, 5000)];
        recording_of(IN_CONTAINER, true).write_with(&data, |features| features.jit_dumps(&dumps));
        let (rows, caveats) = rows_of(&data);
        assert_eq!(rows.iter().any(|row| row.0 == "Calc.sum"), has_names);
        assert!(
            caveats.contains(&format!("{IN_CONTAINER}: {note}")),
            "{caveats}"
        );
    }
}

#[test]
fn a_perf_map_that_was_too_large_to_keep_is_reported_once() {
    let data = directory("map-too-large").join("perf.data");
    for (left_out, expected) in [(0, 0), (5000, 1)] {
        let map = KeptPerfMap {
            pid: PID as i32,
            lines: b"1000 10 first\n".to_vec(),
            left_out,
        };
        recording_of("/nowhere/else", true)
            .write_with(&data, |features| features.perf_maps(&[map]));
        let (rows, caveats) = rows_of(&data);
        assert!(rows.contains(&("first".to_owned(), 2)), "{rows:?}");
        let note = format!("process {PID}: its last 5000 bytes were left out");
        assert_eq!(caveats.matches(&note).count(), expected, "{caveats}");
    }
}

#[test]
fn the_jitdump_of_a_container_is_found_while_its_process_lives() {
    if !is_root() {
        return skipped("needs root, for namespaces");
    }
    let directory = directory("jit-living");
    let source = directory.join("dump");
    std::fs::write(&source, &calc().0.bytes).unwrap();
    let script = "cat < \"$0\" > \"$1/jit-1.dump\" && echo ready && read line";
    let inner = directory.join("inner");
    std::fs::create_dir_all(&inner).unwrap();
    let mount = format!("mount -t tmpfs none \"$1\" && {script}");
    let probe = Command::new("unshare").args(["--mount", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        return skipped("no namespaces here");
    }
    let mut command = bound_to_test("unshare");
    command.args(["--mount", "sh", "-c", &mount]);
    let target = Running::start(command.arg(&source).arg(&inner));
    let pid: i32 = target.pid().parse().unwrap();
    let path = inner.join("jit-1.dump");
    let read = |pid| Finder::default().jit_dump(&path, pid, ProcessTimes::default());
    assert_eq!(read(pid).unwrap().changes().len(), 3);
    let earlier = ProcessTimes {
        seen: Some(UNIX_EPOCH),
        ..ProcessTimes::default()
    };
    let of_earlier = Finder::default().jit_dump(&path, pid, earlier);
    assert!(matches!(of_earlier, Err(Error::NotFound)), "{of_earlier:?}");
    target.end();
    assert!(matches!(read(pid), Err(Error::NotFound)));
}

#[test]
fn without_a_common_clock_reused_addresses_are_ambiguous() {
    let (rows, caveats) = rows("jit-untimed", false);
    let named = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.1);
    // Only the code at 0x2000 is certainly of one method.
    assert_eq!(named("Calc.sum"), Some(3), "{rows:?} {caveats}");
    assert_eq!(named("Calc.mul"), None, "{rows:?} {caveats}");
    assert!(
        caveats.contains("6 samples at addresses reused"),
        "{caveats}"
    );
    assert!(caveats.contains("another clock"), "{caveats}");
}

/// A time namespace shifts the times in the file. Two functions were at one address, so without times it
/// is not known which of them ran; a third has an address of its own.
#[test]
fn times_of_another_time_namespace_are_not_used() {
    const SECOND: u64 = 1_000_000_000;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("jit-namespace");
    std::fs::create_dir_all(&folder).unwrap();
    let dump = folder.join(format!("jit-{PID}.dump"));
    let data = folder.join("perf.data");
    let task = PID as i32;
    let begin = 100 * SECOND;
    for (shift, fits) in [
        (0, true),
        (SECOND as i64, false),
        (5000 * SECOND as i64, false),
        (-(SECOND as i64), false),
        (-90 * SECOND as i64, false),
    ] {
        let mut file = File::new(false, 0);
        let listed = |time: u64| begin.saturating_add_signed(shift) + time;
        file.load(listed(SECOND / 100), "first", 0x1000, 0x20, 0);
        file.load(listed(SECOND / 50), "alone", 0x2000, 0x20, 1);
        file.load(listed(SECOND / 2), "second", 0x1000, 0x20, 2);
        std::fs::write(&dump, &file.bytes).unwrap();
        let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
        recording.process(task, "java");
        recording.mapping(task, dump.to_str().unwrap(), (0x9000, 0x1000), 0);
        recording.mapped_at(begin);
        recording.mapping(task, "//anon", (0x1000, 0x2000), 0);
        recording.mapped_at(begin);
        for (time, address) in [
            (SECOND / 10, 0x1008),
            (SECOND / 5, 0x2008),
            (SECOND * 3 / 5, 0x1008),
        ] {
            recording.sample(Taken {
                task,
                time: begin + time,
                user: &[address],
                ..Taken::default()
            });
        }
        recording.exit(task, begin + SECOND * 4 / 5);
        recording.write(&data);
        let (rows, caveats) = rows_of(&data);
        let own = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.1);
        let expected = if fits { Some(1) } else { None };
        assert_eq!(own("first"), expected, "{shift}: {rows:?}");
        assert_eq!(own("second"), expected, "{shift}: {rows:?}");
        assert_eq!(own("alone"), Some(1), "{shift}: {rows:?} {caveats}");
        let is_noted = caveats.contains("jit-other-time");
        assert_eq!(is_noted, !fits, "{shift}: {caveats}");
        assert!(!caveats.contains("perf record -k mono"), "{caveats}");
    }
}

#[test]
fn no_stack_begins_in_generated_code() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("jit-root");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("perf.data");
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(PID as i32, "java");
    recording.mapping(PID as i32, "//anon", (0x1000, 0x1000), 0);
    for (time, user) in [[0x1010, 0x1104].as_slice(), &[0x1018, 0x1104], &[0x1020]]
        .iter()
        .enumerate()
    {
        recording.sample(Taken {
            task: PID as i32,
            time: time as u64 + 1,
            user,
            ..Taken::default()
        });
    }
    recording.write(&path);
    let answer = |arguments: &[&str]| {
        let output = proftool(arguments).arg(&path).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let json: serde_json::Value =
        serde_json::from_str(&answer(&["report", "--format", "json"])).unwrap();
    assert_eq!(json["quality"]["broken"]["samples"], 3, "{json}");
    // The screen has the remedy alone.
    let screen = answer(&["report"]);
    assert!(
        screen.contains("For better stacks: run java with"),
        "{screen}"
    );
    let text = answer(&["report", "--full"]).replace("\n      ", " ");
    let note = "3 samples where frame pointers led nowhere: to no caller, or to an address that is \
                unmapped or follows no call: code in no file\nhint: run java with \
                -XX:+PreserveFramePointer";
    assert!(text.contains(note), "{text}");
    // Copied stacks would end there, too.
    assert!(!text.contains("-g dwarf"), "{text}");
    let callers = answer(&["graph"]);
    assert!(!callers.contains("<spontaneous>"), "{callers}");
}
