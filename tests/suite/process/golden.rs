//! What the views print for the fixtures.

use crate::support::cli::{fixture, proftool};
use crate::support::golden::holds;

/// View and format, with the arguments that ask for them.
const OUTPUTS: [(&str, &[&str]); 12] = [
    ("flat.txt", &["flat"]),
    ("flat.json", &["flat", "--format", "json"]),
    ("flat.csv", &["flat", "--format", "csv"]),
    ("tree.txt", &["tree"]),
    ("tree.json", &["tree", "--format", "json"]),
    ("bottom-up.txt", &["tree", "--bottom-up"]),
    ("graph.txt", &["graph", "--min", "0"]),
    ("graph.csv", &["graph", "--format", "csv"]),
    ("graph.dot", &["graph", "--format", "dot"]),
    ("cycles.txt", &["cycles"]),
    ("report.txt", &["report"]),
    ("export.folded", &["export", "--to", "folded"]),
];

#[test]
fn fixtures_give_the_golden_outputs() {
    let mut wrong = Vec::new();
    for name in ["recursion", "cut", "names", "hostile", "bad-lines"] {
        for (output, args) in OUTPUTS {
            let file = fixture(name);
            let args = [args, &[file.as_str()]].concat();
            let answer = proftool(&args).env("COLUMNS", "80").output().unwrap();
            assert!(answer.status.success(), "{args:?}");
            let golden = format!("{name}.{output}");
            if !holds(&golden, &answer.stdout) {
                wrong.push(golden);
            }
        }
    }
    assert!(wrong.is_empty(), "not as in tests/golden: {wrong:?}");
}
