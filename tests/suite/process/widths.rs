//! No line of a page is wider than the terminal.

use std::fs;

use proftool::names::display_width;
use serde_json::Value;

use crate::support::call_sites::recorded;
use crate::support::cli::{fixture, proftool};
use crate::support::directory;

const WIDTHS: [usize; 5] = [40, 60, 80, 100, 160];

/// The pages about a profile. `FUNCTION` stands for its hottest function.
const PAGES: [&[&str]; 15] = [
    &["report"],
    &["info"],
    &["flat", "--min", "0", "--limit", "0"],
    &["flat", "--sort", "total", "--by", "module"],
    &["flat", "--by", "crate"],
    &["tree"],
    &[
        "tree",
        "--unfold",
        "--collapse",
        "none",
        "--min",
        "0",
        "--limit",
        "400",
    ],
    &["tree", "--collapse", "full", "--min", "0", "--limit", "400"],
    &["tree", "--bottom-up", "--min", "0", "--limit", "400"],
    &["tree", "--root", "FUNCTION"],
    &["graph", "--min", "0", "--limit", "40"],
    &["cycles"],
    &["detail", "FUNCTION"],
    &["annotate", "FUNCTION"],
    &["annotate", "FUNCTION", "--asm"],
];

/// What is wider than a terminal and rightly so: a word that stands alone on its line, as it is to be copied. Paths and
/// values of options in commands are such words.
fn is_one_word(line: &str) -> bool {
    let marks = ["note: ", "hint: "];
    let line = marks
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .unwrap_or(line);
    let word = line.trim();
    !word.strip_suffix(" \\").unwrap_or(word).contains(' ')
}

/// What is wrong with a page in this width; `None` where there is no such page about the file.
fn overlong(args: &[&str], width: usize) -> Option<Vec<String>> {
    let mut command = proftool(args);
    let output = command.env("COLUMNS", width.to_string()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let is_wide = |line: &&str| display_width(line) > width && !is_one_word(line);
    let wide = text.lines().filter(is_wide);
    let wide = wide
        .map(|line| format!("{width}: {args:?}: {line}"))
        .collect();
    output.status.success().then_some(wide)
}

/// Checks all pages about a profile; returns the number of those that there are.
fn check(file: &str) -> usize {
    let hottest = proftool(&["flat", file, "--limit", "1", "--format", "json"]);
    let hottest: Value = serde_json::from_slice(&{ hottest }.output().unwrap().stdout).unwrap();
    let hottest = hottest["functions"][0]["label"].as_str().unwrap();
    let mut wrong = Vec::new();
    let mut pages = 0;
    for page in PAGES {
        let page = page
            .iter()
            .map(|&arg| if arg == "FUNCTION" { hottest } else { arg });
        let page: Vec<&str> = page.chain([file]).collect();
        for (number, width) in WIDTHS.into_iter().enumerate() {
            let Some(wide) = overlong(&page, width) else {
                break;
            };
            pages += usize::from(number == 0);
            wrong.extend(wide);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} lines are too wide:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    pages
}

/// Stacks that branch at each of `depth` levels, the names of one level after the other.
fn branching(depth: usize, name: impl Fn(usize) -> String, weight: u64) -> String {
    let mut stack = "main".to_owned();
    let mut text = String::new();
    for level in 0..depth {
        stack.push_str(&format!(";{}", name(level)));
        text.push_str(&format!(
            "{stack} {weight}\n{stack};leaf_{level} {weight}\n"
        ));
    }
    text
}

#[test]
fn pages_of_fixtures_keep_to_the_width() {
    for name in ["cut", "names", "hostile"] {
        assert!(check(&fixture(name)) >= 13, "{name}");
    }
}

#[test]
fn pages_of_deep_and_recursive_stacks_keep_to_the_width() {
    let directory = directory("widths-deep");
    let deep = |level| format!("parser_{level}::visitor::Walker<Node>::walk_expression_{level}");
    let recursive = |level: usize| ["even", "odd", "rest::<Node>::even"][level % 3].to_owned();
    for (name, text) in [
        ("deep", branching(60, deep, 5)),
        ("recursive", branching(40, recursive, 5)),
    ] {
        let file = directory.join(format!("{name}.folded"));
        fs::write(&file, text).unwrap();
        assert!(check(file.to_str().unwrap()) >= 13, "{name}");
    }
}

#[test]
fn pages_of_wide_names_and_large_counts_keep_to_the_width() {
    let name = |level: usize| {
        let names = [
            "構文解析器::式を評価する",
            "入力を読む::バッファ付き読み込み",
            "état::préparer",
        ];
        format!("{}_{}", names[level % 3], level % 7)
    };
    let file = directory("widths-wide").join("wide.folded");
    fs::write(&file, branching(30, name, 123_456_789_012_345_678)).unwrap();
    assert!(check(file.to_str().unwrap()) >= 13);
}

#[test]
fn pages_of_a_recording_keep_to_the_width() {
    let Some((_, recording)) = recorded("widths", "-O1") else {
        return;
    };
    assert_eq!(check(recording.to_str().unwrap()), PAGES.len());
}
