//! Rows of JSON by the name of their function.

use serde_json::Value;

use crate::support::cli::proftool;

pub fn json(args: &[&str]) -> Value {
    let output = proftool(args).args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{args:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The row of a function in one of a document's lists.
pub fn row<'a>(document: &'a Value, list: &str, name: &str) -> &'a Value {
    let rows = document[list].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}
