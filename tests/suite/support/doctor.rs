//! What `proftool doctor` found, check by check.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::record::{PROFTOOL, stderr};

pub fn doctor(args: &[&str]) -> Output {
    let mut command = Command::new(PROFTOOL);
    command.arg("doctor").args(args).stdin(Stdio::null());
    command.output().unwrap()
}

/// The checks of a JSON answer.
pub fn checks(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", stderr(output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["schema"], "proftool/1");
    assert_eq!(answer["view"], "doctor");
    let checks = answer["checks"].as_array().unwrap().clone();
    for check in &checks {
        assert!(check["subject"].is_string() && check["check"].is_string());
        assert!(
            check["found"]
                .as_str()
                .is_some_and(|found| !found.is_empty())
        );
        let status = check["status"].as_str().unwrap();
        assert!(["ok", "note", "warn", "bad"].contains(&status), "{status}");
        // What is not as it should be can be changed.
        assert!(
            ["ok", "note"].contains(&status) || check["remedy"].is_string(),
            "{check}"
        );
    }
    checks
}

pub fn of(args: &[&str]) -> Vec<Value> {
    let mut all = vec!["--format", "json"];
    all.extend(args);
    checks(&doctor(&all))
}

/// The one check of this name about this subject: status, what was found, remedy.
pub fn one(checks: &[Value], subject: &str, check: &str) -> (String, String, String) {
    let found = checks
        .iter()
        .find(|c| c["subject"] == subject && c["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no {check} of {subject} in {checks:#?}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("found"), text("remedy"))
}
