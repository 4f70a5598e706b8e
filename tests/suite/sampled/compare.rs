//! `proftool compare --runs` of a program that is built twice.

use std::process::Command;

use serde_json::Value;

use crate::support::record::{PROFTOOL, Room, can_record, stderr};
use crate::support::repeated::repeated;
use crate::support::{compile, fixture};

#[test]
fn the_function_that_got_twice_the_work_is_the_one_that_is_named() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let build = |name: &str, rounds: &str| {
            let flags = ["-O2", "-g", "-fno-omit-frame-pointer", rounds];
            compile("gcc", &flags, &fixture("rounds.c"), &room.0.join(name))
        };
        let builds = [build("old", "-DROUNDS=1000"), build("new", "-DROUNDS=2000")];
        if builds.contains(&None) {
            return;
        }
        let mut compare = Command::new(PROFTOOL);
        compare.args(["compare", "--runs", "5", "--format", "json", "--"]);
        compare.args(["./old", ":::", "./new"]);
        let output = compare.current_dir(&room.0).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["runs"], serde_json::json!({"base": 5, "new": 5}));
        let functions = told["functions"].as_array().unwrap();
        let of = |name: &str| functions.iter().find(|it| it["name"] == name).unwrap();
        let hash = of("hash");
        assert_eq!(hash["verdict"], "worse", "{hash}");
        // How long a round takes depends on where the loop is in memory, too.
        let base = hash["base"]["self"].as_f64().unwrap();
        let ends = ["low", "high"].map(|end| hash["change"][end].as_f64().unwrap());
        assert!(ends[0] > 0.5 * base && ends[1] < 2.0 * base, "{hash}");
        for name in ["mix", "fold"] {
            let it = of(name);
            assert!(
                ["same", "undecided"].contains(&it["verdict"].as_str().unwrap()),
                "{it}"
            );
        }
    });
}
