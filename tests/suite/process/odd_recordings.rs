//! Recordings that are whole and unusual: one absurd period, call stacks of which a part was not asked
//! for.

use std::path::Path;

use crate::support::cli::proftool;
use crate::support::record::Room;
use crate::support::written::{
    CPU_CLOCK, EXCLUDE_CALLCHAIN_KERNEL, EXCLUDE_CALLCHAIN_USER, Recording, Taken,
};

const PID: i32 = 77;
const PROGRAM: u64 = 0x1000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const MS: u64 = 1_000_000;

/// A recording of a clock, of a program whose file is missing and of two functions of the kernel.
fn recording(flags: u64) -> Recording {
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true).with_flags(flags);
    recording.process(PID, "program");
    recording.mapping(PID, "/nowhere/program", (PROGRAM, 0x1000), 0);
    recording.kernel_function("entry", KERNEL, 0x100);
    recording.kernel_function("reads", KERNEL + 0x100, 0x100);
    recording
}

fn sample(time: u64) -> Taken<'static> {
    Taken {
        task: PID,
        time,
        period: Some(MS),
        user: &[PROGRAM + 0x10, PROGRAM + 0x104],
        ..Taken::default()
    }
}

/// Both outputs of a command on this recording, lines joined.
fn said(arguments: &[&str], data: &Path) -> String {
    let output = proftool(arguments).arg(data).output().unwrap();
    let both = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&both).replace("\n      ", " ")
}

/// The weights of a function: self, total.
fn weights(data: &Path, name: &str) -> Option<(u64, u64)> {
    weights_by("function", data, name)
}

/// Those of a row of this kind.
fn weights_by(kind: &str, data: &Path, name: &str) -> Option<(u64, u64)> {
    let output = proftool(&["flat", "--format", "json", "--by", kind])
        .arg(data)
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["functions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name)?;
    Some((row["self"].as_u64()?, row["total"].as_u64()?))
}

/// Records are taken several at a time. What the mapping changes is behind some of them only.
#[test]
fn equal_stacks_before_and_behind_a_new_mapping_are_of_two_files() {
    let room = Room::new();
    let mut recording = recording(0);
    (1..=10).for_each(|time| recording.sample(sample(time * MS)));
    recording.mapping(PID, "/nowhere/other", (PROGRAM, 0x1000), 0);
    recording.mapped_at(7 * MS + 1);
    let data = room.path("perf.data");
    recording.write(&data);
    let of = |name| weights_by("module", &data, name);
    assert_eq!(of("program"), Some((7 * MS, 7 * MS)));
    assert_eq!(of("other"), Some((3 * MS, 3 * MS)));
}

#[test]
fn every_view_notes_a_period_far_above_the_others() {
    let room = Room::new();
    let mut recording = recording(0);
    (1..=1000).for_each(|time| recording.sample(sample(time * MS)));
    recording.sample(Taken {
        period: Some(1 << 60),
        kernel: &[KERNEL + 0x110],
        ..sample(1001 * MS)
    });
    let data = room.path("perf.data");
    recording.write(&data);
    assert_eq!(weights(&data, "reads"), Some((1 << 60, 1 << 60)));
    let note = "1 sample with a period far above those of the others: cpu-clock: \
                1152921504606.847 ms, 100.0 % of the total; each of the others 1.000 ms on average";
    let (svg, html) = (room.path("a.svg"), room.path("a.html"));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    for view in [
        &["flat"][..],
        &["flat", "--format", "json"],
        &["report"],
        &["tree"],
        &["graph"],
        &["cycles"],
        &["detail", "reads"],
        &["annotate", "reads", "--asm"],
        &["export", "--to", "svg", "-o", &path(&svg)],
        &["export", "--to", "html", "-o", &path(&html)],
    ] {
        let said = said(view, &data);
        assert!(said.contains(note), "{view:?}: {said}");
    }
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains(note), "no note on the page");
}

#[test]
fn periods_of_one_clock_that_are_equal_have_no_note() {
    let room = Room::new();
    let mut recording = recording(0);
    (1..=1000).for_each(|time| recording.sample(sample(time * MS)));
    let data = room.path("perf.data");
    recording.write(&data);
    let said = said(&["flat"], &data);
    assert!(!said.contains("far above"), "{said}");
}

#[test]
fn the_text_of_perf_script_has_the_note_on_periods_too() {
    let room = Room::new();
    let record = |period: u64| {
        format!("program 77 1.0: {period} cpu-clock: \n\t1010 work+0x10 (/nowhere/program)\n\n")
    };
    let text = record(MS).repeat(100) + &record(1 << 60);
    let path = room.path("text");
    std::fs::write(&path, text).unwrap();
    let said = said(&["flat"], &path);
    assert!(said.contains("1 sample with a period far above"), "{said}");
}

#[test]
fn time_in_the_kernel_stays_there_where_call_stacks_are_of_user_space_only() {
    let room = Room::new();
    let mut recording = recording(EXCLUDE_CALLCHAIN_KERNEL);
    recording.sample(sample(MS));
    // The same stack in user space each time.
    for (place, time) in [(0x110, 2), (0x10, 3), (0x114, 4)] {
        recording.sample(Taken {
            ip: Some(KERNEL + place),
            ..sample(time * MS)
        });
    }
    let data = room.path("perf.data");
    recording.write(&data);
    assert_eq!(weights(&data, "reads"), Some((2 * MS, 2 * MS)));
    assert_eq!(weights(&data, "entry"), Some((MS, MS)));
    let said = said(&["tree", "--min", "0"], &data);
    assert!(said.contains("call stacks of user space only"), "{said}");
    for frame in ["↳ program+0x10", "├ reads", "└ entry"] {
        assert!(said.contains(frame), "{frame}: {said}");
    }
}

#[test]
fn stacks_of_the_kernel_only_are_not_broken() {
    let room = Room::new();
    let mut recording = recording(EXCLUDE_CALLCHAIN_USER);
    for time in 1..=100 {
        recording.sample(Taken {
            user: &[],
            ip: Some(PROGRAM + 0x10),
            ..sample(time * MS)
        });
        recording.sample(Taken {
            user: &[],
            kernel: &[KERNEL + 0x110, KERNEL + 0x10],
            ..sample(time * MS + 1)
        });
    }
    let data = room.path("perf.data");
    recording.write(&data);
    assert_eq!(weights(&data, "reads"), Some((100 * MS, 100 * MS)));
    assert_eq!(weights(&data, "entry"), Some((0, 100 * MS)));
    let said = said(&["flat"], &data);
    assert!(said.contains("call stacks of the kernel only"), "{said}");
    for wrong in ["broken", "frame pointers led", "one or two frames"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
}

/// There may be thousands of them.
#[test]
fn an_address_without_a_name_has_no_fields_that_say_nothing() {
    let room = Room::new();
    let data = room.path("addresses.data");
    let mut recording = recording(0);
    recording.sample(Taken {
        kernel: &[KERNEL],
        ..sample(1)
    });
    recording.write(&data);
    for view in ["flat", "graph"] {
        let output = proftool(&[view, "--format", "json", "--min", "0"]);
        let output = { output }.arg(&data).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let row = |name: &str| {
            let mut rows = json["functions"].as_array().unwrap().iter();
            let row = rows.find(|row| row["name"] == name);
            row.unwrap_or_else(|| panic!("{view}: {name}: {json}"))
        };
        let (named, nameless) = (row("entry"), row("program+0x10"));
        assert_eq!(named["linkage_name"], "entry", "{view}");
        assert_eq!(nameless["linkage_name"], serde_json::Value::Null, "{view}");
        let has_declaration = |row: &serde_json::Value| row.get("decl_file").is_some();
        assert!(has_declaration(named), "{view}");
        assert!(!has_declaration(nameless), "{view}");
    }
}
