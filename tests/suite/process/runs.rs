//! Several recordings of a program in one view.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::cli::proftool;
use crate::support::directory;
use crate::support::record::{Room, can_record, stderr};
use crate::support::record_stacks::{NESTED, build};

/// Folded stacks, one file a run.
fn folded(name: &str, runs: &[&str]) -> Vec<PathBuf> {
    let place = directory(&format!("runs-{name}"));
    let write = |(number, stacks): (usize, &&str)| {
        let file = place.join(format!("{number}.folded"));
        fs::write(&file, stacks).unwrap();
        file
    };
    runs.iter().enumerate().map(write).collect()
}

fn document(args: &[&str], files: &[impl AsRef<Path>]) -> Value {
    let mut command = proftool(args);
    command.args(["--format", "json", "--limit", "0", "--min", "0"]);
    command.args(files.iter().map(AsRef::as_ref));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Names and two figures of the rows of a list.
fn figures(document: &Value, list: &str, keys: [&str; 2]) -> Vec<(String, u64, u64)> {
    let rows = document[list].as_array().unwrap().iter();
    let figure = |row: &Value, key: &str| row[key].as_u64().unwrap();
    let row = |row: &Value| {
        let name = row["name"].as_str().unwrap_or_default().to_owned();
        (name, figure(row, keys[0]), figure(row, keys[1]))
    };
    let mut rows: Vec<_> = rows.map(row).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn weights_of_runs_are_added_up() {
    let files = folded(
        "added",
        &["main;a 2\nmain;b 3\n", "main;a;c 5\n", "main;b 1\n"],
    );
    let flat = document(&["flat"], &files);
    let rows = figures(&flat, "functions", ["self", "total"]);
    let expected = [("a", 2, 7), ("b", 4, 4), ("c", 5, 5), ("main", 0, 11)];
    assert_eq!(
        rows,
        expected.map(|(name, own, total)| (name.to_owned(), own, total))
    );
    let of_one = document(&["flat"], &files[..1]);
    let rows = figures(&of_one, "functions", ["self", "total"]);
    assert_eq!(rows[0], ("a".into(), 2, 2));
}

/// Each view of a recording that is read twice has twice its figures, and no function twice.
#[test]
fn a_recording_that_is_read_twice_has_twice_the_weight_in_every_view() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    if build(
        &room,
        "nested",
        NESTED,
        &["-O1", "-g", "-fno-omit-frame-pointer"],
    )
    .is_none()
    {
        return;
    }
    let output = room.record(&["-e", "cpu-clock:u", "--", "./nested"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let file = room.path("perf.data");
    for (view, list, keys) in [
        (&["flat"][..], "functions", ["self", "total"]),
        (&["flat", "--by", "line"], "functions", ["self", "total"]),
        (&["report"], "by_total", ["self", "total"]),
        (&["graph"], "functions", ["self", "children"]),
    ] {
        let once = figures(&document(view, &[&file]), list, keys);
        let twice = figures(&document(view, &[&file, &file]), list, keys);
        assert!(!once.is_empty());
        let doubled = once.into_iter();
        let doubled: Vec<_> = doubled.map(|(name, a, b)| (name, 2 * a, 2 * b)).collect();
        assert_eq!(twice, doubled, "{view:?}");
    }
}

#[test]
fn intervals_of_several_runs_are_those_between_them() {
    let files = folded(
        "intervals",
        &["m;a 2\nm;b 2\n", "m;a 1\nm;b 3\n", "m;a 3\nm;b 1\n"],
    );
    for view in ["flat", "report"] {
        let told = document(&[view, "--ci"], &files);
        let rows = figures(&told, "functions", ["self", "self_half_width"]);
        // 4.30 · √(3/2 · (0 + 1 + 1))
        assert_eq!(rows[0], ("a".into(), 6, 7), "{view}");
    }
    let text = proftool(&["report", "--ci"]).args(&files).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("by runs") && text.contains("in 3 runs"),
        "{text}"
    );
    let single = proftool(&["report", "--ci"])
        .arg(&files[0])
        .output()
        .unwrap();
    assert!(stderr(&single).contains("several runs"), "{single:?}");
}

#[test]
fn a_further_command_names_all_files() {
    let files = folded("named", &["main;a 2\n", "main;a 3\n"]);
    let output = proftool(&["report"]).args(&files).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, next) = text.split_once("next:").unwrap();
    for file in &files {
        assert!(next.contains(file.to_str().unwrap()), "{next}");
    }
}
