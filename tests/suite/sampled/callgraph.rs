//! `proftool callgraph` with samples: weights and origins of arcs.

use serde_json::Value;

use crate::support::callgraph::{POINTERS, WITH_FRAMES, compile, directory, document, run};
use crate::support::repeated::repeated;
use crate::support::skipped;

#[test]
fn samples_give_weights_and_origins_to_the_arcs_of_the_code() {
    repeated(|| {
        let directory = directory("with");
        let Some(program) = compile(&directory, POINTERS, &WITH_FRAMES) else {
            return;
        };
        let recording = directory.join("perf.data");
        let [path, file] = [&program, &recording].map(|path| path.to_str().unwrap());
        let recorded = run(&["record", "-F", "499", "-g", "fp", "-o", file, "--", path]);
        if !recorded.status.success() {
            let said = String::from_utf8_lossy(&recorded.stderr);
            skipped(&format!("nothing can be recorded here: {said}"));
            return;
        }
        let document = document(&program, &["--with", file]);
        let functions = document["functions"].as_array().unwrap();
        let number = |value: &Value| value.as_u64().unwrap();
        let name = |index: &Value| functions[number(index) as usize]["name"].as_str().unwrap();
        let pairs = document["pairs"].as_array().unwrap();
        let find = |from: &str, to: &str| {
            let found = pairs
                .iter()
                .find(|arc| name(&arc["from"]) == from && name(&arc["to"]) == to);
            let found = found.unwrap_or_else(|| panic!("{from} -> {to}: {document}"));
            let origin = found["origin"].as_str().unwrap();
            (origin, number(&found["sites"]), number(&found["weight"]))
        };
        let total = number(&document["total"]);
        let (origin, sites, weight) = find("main", "middle");
        assert!((origin, sites) == ("both", 1) && weight > total / 4 && weight < total);
        assert_eq!(find("middle", "burn").0, "both");
        let (origin, sites, weight) = find("main", "by_pointer");
        assert!((origin, sites) == ("pointer", 0) && weight > total / 4 && weight < total);
        assert_eq!(find("main", "never"), ("code", 1, 0));
        let burn = functions.iter().find(|f| f["name"] == "burn").unwrap();
        assert!(number(&burn["total"]) > total * 9 / 10 && burn["self"] != 0);
        let coverage = &document["coverage"];
        assert!(number(&coverage["touched_functions"]) >= 4);
        assert!(number(&coverage["only_observed"]) >= 1);

        // What cannot be is told.
        let other = run(&["callgraph", "/bin/ls", "--with", file]);
        let said = String::from_utf8(other.stderr).unwrap();
        assert!(said.contains("has no samples in /bin/ls"), "{said}");
        let drawing = run(&["callgraph", path, "--with", file, "--format", "dot"]);
        let drawing = String::from_utf8(drawing.stdout).unwrap();
        assert!(drawing.starts_with("digraph {") && drawing.contains("style=dashed"));
    });
}
