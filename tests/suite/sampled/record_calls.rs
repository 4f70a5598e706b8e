//! Samples of a program whose calls are counted.

use serde_json::Value;

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_calls::{answer, built};
use crate::support::repeated::repeated;

#[test]
fn samples_in_stubs_are_those_of_their_callers() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let text = "__attribute__((noipa)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n\
        int main(void) { return fib(32) == 0; }\n";
        for stacks in ["fp", "dwarf"] {
            let room = Room::new();
            let Some(program) = built(&room, text, &["-fno-omit-frame-pointer"], "prog") else {
                return;
            };
            let program = program.to_str().unwrap();
            let options = [
                "--counts",
                "-g",
                stacks,
                "-F",
                "4999",
                "-e",
                "cpu-clock:u",
                "-o",
                "out.data",
            ];
            let output = room.record(&[&options[..], &["--", program]].concat());
            assert!(output.status.success(), "{}", stderr(&output));
            let mut total = 0;
            let folded = answer(&room, &["export", "out.data", "--to", "folded"]);
            for line in String::from_utf8(folded.stdout).unwrap().lines() {
                let (stack, weight) = line.rsplit_once(' ').unwrap();
                let weight: u64 = weight.parse().unwrap();
                total += weight;
                assert!(
                    !stack.contains("memfd") && !stack.contains("unmapped"),
                    "{stackline}",
                    stackline = stack
                );
                if stack.contains("fib") {
                    assert!(
                        stack.contains("main;fib") || !stack.contains("main"),
                        "{stack}"
                    );
                }
            }
            assert!(total > 0);
            let listed = answer(&room, &["flat", "out.data", "--format", "json"]);
            let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
            let names: Vec<_> = listed["functions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| &it["name"])
                .collect();
            assert!(
                !names
                    .iter()
                    .any(|name| name.as_str().unwrap().contains("[generated")),
                "{names:?}"
            );
        }
    });
}
