//! The page of recursion: ranges of totals as in the flat profile, and lines that keep to the width.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::cli::proftool;

fn written(name: &str, stacks: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cycles-page");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join(name);
    std::fs::write(&path, stacks).unwrap();
    path
}

fn run(args: &[&str]) -> String {
    let output = proftool(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(&[args, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn totals_of_cycles_and_drawings_are_the_ranges_of_the_flat_profile() {
    let stacks = "[truncated];even;odd;even;f;f 70\nmain;a;odd;even 20\nmain;b 5\n\
                  main;a;f;f 3\n[truncated];b 2\n";
    let file = written("cut.folded", stacks);
    let file = file.to_str().unwrap();
    let flat = json(&["flat", file]);
    let of = |name: &Value, keys: [&str; 3]| {
        let rows = flat["functions"].as_array().unwrap().iter();
        let row = rows.clone().find(|row| row["label"] == *name).unwrap();
        keys.map(|key| row[key].clone())
    };
    let keys = ["total_max", "total_max_reason", "total_limit"];
    let cycles = json(&["cycles", file]);
    let members = cycles["cycles"][0]["figures"].as_array().unwrap();
    let recursive = cycles["recursive"].as_array().unwrap();
    assert_eq!((members.len(), recursive.len()), (2, 1));
    for row in members.iter().chain(recursive) {
        let here = keys.map(|key| row[key].clone());
        assert_eq!(here, of(&row["label"], keys));
        assert!(row["total_limit"].as_u64() > row["total"].as_u64(), "{row}");
    }
    assert_eq!(cycles["cycles"][0]["total_limit"], 92);
    let dot = run(&["graph", file, "--format", "dot", "--ranges"]);
    assert!(dot.contains("main\\n28.00%, at most 100.00%"), "{dot}");
    let collapsed = run(&["export", file, "--to", "dot", "--collapse", "full"]);
    assert!(collapsed.contains("main\\n28.00%\\n"), "{collapsed}");
    for drawing in [&dot, &collapsed] {
        assert!(drawing.contains("[truncated]\\n72.00%\\n"), "{drawing}");
    }
    let page = run(&["cycles", file, "--ranges"]);
    assert!(
        page.contains("90.00 % of the total, at most ? 92.00 %"),
        "{page}"
    );
    // Nothing is cut here, so that there is nothing to be unsure of.
    let whole = written("whole.folded", "main;even;odd;even 20\nmain;f;f 3\n");
    for args in [["cycles", "text"], ["graph", "dot"]] {
        let whole = whole.to_str().unwrap();
        let page = run(&[args[0], whole, "--ranges", "--format", args[1]]);
        assert!(!page.contains("at most"), "{page}");
    }
}

#[test]
fn long_names_keep_their_arrow_within_the_width() {
    let [even, odd] = ["even", "odd"].map(|name| format!("{name}_{}", "x".repeat(150)));
    let stacks = format!("main;{even};{odd};{even};{odd} 20\nmain;{odd} 3\n");
    let file = written("long.folded", &stacks);
    for width in ["60", "100"] {
        let mut command = proftool(&["cycles", file.to_str().unwrap()]);
        let output = command.env("COLUMNS", width).output().unwrap();
        let page = String::from_utf8(output.stdout).unwrap();
        let wide = page
            .lines()
            .find(|line| line.chars().count() > width.parse().unwrap());
        assert_eq!(wide, None, "{page}");
        let line = page
            .lines()
            .find(|line| line.starts_with("removing "))
            .unwrap();
        let (from, to) = line.split_once(" → ").unwrap();
        assert!(
            from.starts_with("removing even_xx") && from.contains("…"),
            "{line}"
        );
        assert!(to.starts_with("odd_xx") && to.contains("…"), "{line}");
    }
}

#[test]
fn rows_of_a_table_name_both_ends_of_a_call_as_the_linker_does() {
    let file = written("ends.folded", "main;even;odd;even;odd 20\n");
    let table = run(&["cycles", file.to_str().unwrap(), "--format", "csv"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split(',').collect()).collect();
    let place = |key: &str| rows[0].iter().position(|it| *it == key).unwrap();
    let ends = ["row", "caller_linkage_name", "linkage_name"].map(place);
    let named: Vec<[&str; 3]> = rows[1..].iter().map(|row| ends.map(|at| row[at])).collect();
    let expected = [
        ["member", "", "even"],
        ["member", "", "odd"],
        ["entry", "main", "even"],
        ["inside", "even", "odd"],
        ["inside", "odd", "even"],
        ["cut", "even", "odd"],
    ];
    assert_eq!(named, expected);
    assert_eq!(
        rows[0][rows[0].len() - 4..],
        [
            "caller_linkage_name",
            "caller_address",
            "linkage_name",
            "address"
        ]
    );
}
