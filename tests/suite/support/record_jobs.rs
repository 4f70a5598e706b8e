//! The commands of a recording.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::support::record::{PROFTOOL, Room, stderr};

/// The weight of each command of a recording.
pub fn commands(room: &Room, args: &[&str]) -> BTreeMap<String, u64> {
    let mut report = Command::new(PROFTOOL);
    report.args(["report", "--format", "json"]).args(args);
    let output = report.current_dir(&room.0).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let commands = report["commands"].as_array().unwrap().iter();
    let weights = commands.map(|command| {
        let name = command["name"].as_str().unwrap().to_owned();
        (name, command["weight"].as_u64().unwrap())
    });
    weights.collect()
}
