//! Call sites of a recording have the lines of the source.

use std::collections::BTreeSet;

use crate::support::call_sites::{recorded, source};
use crate::support::cli::proftool;
use crate::support::repeated::repeated;

#[test]
fn recorded_calls_have_the_lines_of_the_source() {
    repeated(|| {
        let Some((_, recording)) = recorded("lines-of-source", "-O1") else {
            return;
        };
        let text = std::fs::read_to_string(source()).unwrap();
        let text: Vec<&str> = text.lines().collect();
        let recording = recording.to_str().unwrap();
        let detail = |function: &str, option: &str| -> serde_json::Value {
            let args = ["detail", function, recording, "--format", "json", option];
            let output = proftool(&args).output().unwrap();
            serde_json::from_slice(&output.stdout).unwrap()
        };
        // The prologues of functions have no frame yet, and stand for little.
        for function in ["descend", "even", "odd", "leaf", "spin"] {
            let answer = detail(function, "--min=5");
            let mut seen = BTreeSet::new();
            for (side, end) in [("call_sites", "callee"), ("called_from", "caller")] {
                for row in answer[side].as_array().unwrap() {
                    let other = row[end].as_str().unwrap();
                    if row["module"] == answer["function"]["module"] {
                        let callee = if end == "callee" { other } else { function };
                        let line = text[row["line"].as_u64().unwrap() as usize - 1];
                        assert!(line.contains(&format!("{callee}(")), "{callee} in {line}");
                        assert!(row["file"].as_str().unwrap().ends_with("recurse.c"));
                        assert_eq!(row["inlined"], callee == "spin", "{function} {row}");
                        seen.insert((side, other));
                    }
                }
            }
            let expected: &[&str] = match function {
                "descend" => &["even"],
                "even" => &["leaf", "odd", "spin"],
                "odd" => &["even", "leaf", "spin"],
                "leaf" => &["spin"],
                _ => &[],
            };
            for callee in expected {
                assert!(
                    seen.contains(&("call_sites", callee)),
                    "{function} {seen:?}"
                );
            }
        }
        // Without debug information's frames there are no lines, and a page does not pretend.
        let answer = detail("even", "--no-inline");
        assert!(answer["call_sites"].as_array().unwrap().len() > 1);
        let lines = answer["call_sites"].as_array().unwrap().iter();
        assert!(lines.map(|row| &row["line"]).all(|line| line.is_null()));
        let page = proftool(&["detail", "even", recording, "--no-inline"]);
        let page = { page }.output().unwrap().stdout;
        assert!(!String::from_utf8(page).unwrap().contains("Source lines"));
    });
}
