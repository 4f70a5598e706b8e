//! The four kinds of tests keep to what their pages say.
//!
//! ```text
//! pure       no process, no clock        never repeated
//! process    no clock                    never repeated
//! sampled, live                          each test as a whole is `repeated`
//! ```

use std::path::Path;

use super::tree::Tree;

/// What a kind of tests may not name.
const WALLS: [(&str, &[&str]); 2] = [
    (
        "pure",
        &["Command", "Instant", "SystemTime", "sleep", "repeated"],
    ),
    ("process", &["Instant", "SystemTime", "repeated"]),
];

/// Each word of the code outside comments, with the number of its line.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines.flat_map(|(index, line)| {
        let code = line.split("//").next().unwrap_or_default();
        let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(move |word| (index + 1, word))
    })
}

/// The lines of tests whose body is not one repeated whole.
fn unrepeated(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |index: &usize| lines[*index].trim() == "#[test]";
    let tests = (0..lines.len()).filter(is_test);
    let body = |test: usize| (test..lines.len()).find(|&index| lines[index].starts_with("fn "));
    let bodies = tests.filter_map(body);
    let alone = bodies.filter(|&begin| {
        let body = lines[begin + 1..].iter().take_while(|line| **line != "}");
        let outer: Vec<&str> = body
            .filter(|line| !line.starts_with("     "))
            .copied()
            .collect();
        outer.first() != Some(&"    repeated(|| {") || outer.last() != Some(&"    });")
    });
    alone.map(|begin| begin + 1).collect()
}

/// What breaks a wall, with its place.
fn broken(tree: &Tree) -> Vec<String> {
    let mut told = Vec::new();
    for (file, text) in &tree.files {
        let Some(inner) = file.strip_prefix("tests/suite/") else {
            continue;
        };
        // The rules of these walls name what they forbid.
        if inner.starts_with("pure/architecture") {
            continue;
        }
        let kind = inner.split('/').next().unwrap_or_default();
        let wall = WALLS.iter().find(|(name, _)| *name == kind);
        let forbidden = wall.map_or(&[][..], |(_, forbidden)| forbidden);
        for (line, word) in words(text) {
            if forbidden.contains(&word) {
                told.push(format!("{file}:{line}: a {kind} test names `{word}`"));
            }
        }
        if matches!(kind, "sampled" | "live") {
            let alone = unrepeated(text);
            told.extend(
                alone
                    .iter()
                    .map(|line| format!("{file}:{line}: not `repeated`")),
            );
        }
    }
    told
}

#[test]
fn tests_keep_to_their_kind() {
    let mut tree = Tree::new(&[]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    tree.read_all(root, Path::new("tests/suite"));
    assert_eq!(broken(&tree), Vec::<String>::new());
}

#[test]
fn a_test_that_leaves_its_kind_is_reported() {
    let once = "#[test]\nfn f() {\n    g();\n}\n";
    let whole = "#[test]\nfn f() {\n    repeated(|| {\n        g();\n    });\n}\n";
    let part = "#[test]\nfn f() {\n    repeated(|| {\n        g();\n    });\n    g();\n}\n";
    let told = |file: &str, text: &str| broken(&Tree::new(&[(file, text)]));
    let clock = "use std::time::Instant; // Command\n";
    let file = "tests/suite/pure/a.rs";
    assert_eq!(
        told(file, clock),
        [format!("{file}:1: a pure test names `Instant`")]
    );
    assert_eq!(told(file, once), Vec::<String>::new());
    let file = "tests/suite/process/a.rs";
    assert_eq!(
        told(file, whole),
        [format!("{file}:3: a process test names `repeated`")]
    );
    for file in ["tests/suite/sampled/a.rs", "tests/suite/live/a.rs"] {
        assert_eq!(told(file, once), [format!("{file}:2: not `repeated`")]);
        assert_eq!(told(file, part), [format!("{file}:2: not `repeated`")]);
        assert_eq!(told(file, whole), Vec::<String>::new());
    }
}
