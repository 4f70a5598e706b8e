//! `flat --by crate` of a program whose shares are known by construction.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::record::{PROFTOOL, Room, can_record, stderr};
use crate::support::repeated::repeated;
use crate::support::shares::near;
use crate::support::{ran, skipped};

/// Percent of the time: each crate measures its own processor time and stops when it has had its
/// part (`fixtures/programs/shares`).
const SHARES: [(&str, f64); 3] = [("alpha", 50.0), ("beta", 30.0), ("shares", 20.0)];

/// Compiles the crates of `shares` one by one, as cargo does.
fn build(room: &Room) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs/shares");
    let crates: [(&str, &str, &[&str]); 3] = [
        ("alpha", "rlib", &[]),
        ("beta", "rlib", &["alpha"]),
        ("shares", "bin", &["alpha", "beta"]),
    ];
    for (name, kind, needed) in crates {
        let mut rustc = Command::new("rustc");
        rustc.args([
            "--edition",
            "2024",
            "-O",
            "-g",
            "-L",
            ".",
            "--crate-type",
            kind,
        ]);
        for name in needed {
            rustc.args(["--extern", name]);
        }
        rustc.arg(sources.join(name).with_extension("rs"));
        let output = rustc.current_dir(&room.0).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn each_crate_is_charged_with_its_own_time() {
    repeated(|| {
        if ran(Command::new("rustc").arg("--version")).is_none() {
            skipped("rustc cannot be run");
            return;
        }
        if !can_record() {
            return;
        }
        let room = Room::new();
        build(&room);
        let output = room.record(&["-q", "-e", "cpu-clock:u", "-F", "2000", "--", "./shares"]);
        assert!(output.status.success(), "{}", stderr(&output));

        let mut flat = Command::new(PROFTOOL);
        flat.args(["flat", "--by", "crate", "--format", "json"]);
        let output = flat.current_dir(&room.0).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let total = told["total"].as_f64().unwrap();
        let samples = told["samples"].as_u64().unwrap();
        let rows = told["owners"].as_array().unwrap().iter();
        let found: BTreeMap<&str, f64> = rows
            .map(|row| {
                let weight = row["weight"].as_f64().unwrap();
                (row["name"].as_str().unwrap(), 100.0 * weight / total)
            })
            .collect();
        // Each clock is read about once in a millisecond.
        for (name, share) in SHARES {
            let charged = found.get(name).copied().unwrap_or(0.0);
            let part = (charged * samples as f64 / 100.0).round() as u64;
            assert!(
                near(part, samples, share, 1.0),
                "{name}: {charged} of {samples} samples, not {share}: {found:?}"
            );
        }
        let all: f64 = found.values().sum();
        assert!((all - 100.0).abs() < 0.01, "{all}: {found:?}");
    });
}
