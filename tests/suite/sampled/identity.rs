//! A function that was cloned and inlined into its clone, recorded.

use crate::support::repair;
use crate::support::repeated::repeated;

#[test]
fn a_function_inlined_into_its_clone_is_no_cycle() {
    repeated(|| {
        let Some(data) = repair::recording("clone", "clones.c", &["-O2"]) else {
            return;
        };
        let json = repair::proftool(&["cycles", "--format", "json"], &data);
        let cycles: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(cycles["cycles"].as_array().unwrap().is_empty(), "{cycles}");
        let recursive = cycles["recursive"].as_array().unwrap();
        let names: Vec<&str> = recursive
            .iter()
            .filter_map(|f| f["name"].as_str())
            .collect();
        assert_eq!(names, ["depth"], "{cycles}");
    });
}
