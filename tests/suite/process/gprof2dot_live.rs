//! gprof2dot itself, where it is installed: random call graphs with cycles give the same times. Many
//! more of them are in `scripts/compare_gprof2dot.py`, which is run here with a few.

use std::path::Path;
use std::process::Command;

use crate::support::skipped;

#[test]
fn random_graphs_give_the_times_of_gprof2dot() {
    crate::support::watch();
    let module = Command::new("python3")
        .args(["-c", "import gprof2dot"])
        .output();
    if !module.is_ok_and(|output| output.status.success()) {
        skipped("gprof2dot is not installed");
        return;
    }
    // Beside the folder of the tests is that of the examples, which `cargo test` builds, too, but
    // not where one test is named.
    let this = std::env::current_exe().unwrap();
    let estimate = this.ancestors().nth(2).unwrap().join("examples/estimate");
    if !estimate.is_file() {
        skipped(&format!("{} is not built", estimate.display()));
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/compare_gprof2dot.py");
    let output = Command::new("python3")
        .arg("-B")
        .arg(script)
        .args(["100", "3"])
        .env("ESTIMATE", estimate)
        .output()
        .unwrap();
    let [told, complaints] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{told}{complaints}");
    assert!(told.starts_with("100 graphs, "), "{told}");
    assert!(told.contains(": 0 different\n"), "{told}");
}
