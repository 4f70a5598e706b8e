//! Pictures of what has changed: colours and titles are what the runs tell, and nothing else is
//! coloured.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::support::cli::proftool;
use crate::support::{directory, ran};

/// Eight runs as folded stacks, each of these with its weight and some noise.
fn runs(name: &str, side: &str, stacks: &[(&str, u64)]) -> Vec<PathBuf> {
    let place = directory(&format!("compare-picture-{name}-{side}"));
    let write = |number: u64| {
        let file = place.join(format!("{number}.folded"));
        let line = |(place, (stack, weight)): (u64, &(&str, u64))| {
            let noise = (number + place) * 7 % 5;
            format!("{stack} {}\n", weight + noise)
        };
        let lines: String = (0..).zip(stacks).map(line).collect();
        fs::write(&file, lines).unwrap();
        file
    };
    (0..8).map(write).collect()
}

const BASE: [(&str, u64); 7] = [
    ("main;parse;lex<a>", 2000),
    ("main;parse", 300),
    ("main;emit", 5000),
    ("main;scan", 900),
    ("main;old", 300),
    ("main;load", 1000),
    ("main;[truncated]", 50),
];
const NEW: [(&str, u64); 7] = [
    ("main;parse;lex<a>", 2100),
    ("main;parse", 300),
    ("main;emit", 5000),
    ("main;scan", 700),
    ("main;emit;fresh", 800),
    ("main;load", 1000),
    ("main;[truncated]", 50),
];

fn drawn(name: &str, new: &[(&str, u64)], format: &str) -> String {
    let mut command = proftool(&["compare", "--format", format]);
    command.arg("--base").args(runs(name, "base", &BASE));
    command.arg("--new").args(runs(name, "new", new));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

/// The class and the title of each frame.
fn frames(picture: &str) -> Vec<(&str, &str)> {
    let area = between(picture, "<g id=\"frames\"", "\n</g>\n");
    let lines = area.lines().filter(|line| line.contains("<rect "));
    lines
        .map(|line| {
            let class = between(line, "<rect class=\"", "\"");
            (class, between(line, "<title>", "</title>"))
        })
        .collect()
}

/// Every element ends, in the order that XML asks for.
fn assert_well_formed(picture: &str) {
    let (before, rest) = picture.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (within, script) = rest.split_once("<script><![CDATA[").unwrap();
    let (_, after) = script.split_once("]]></script>").unwrap();
    let text = [before, within, after].concat();
    let mut open = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        assert!(!text.contains('>') && !text.contains("& "), "{part}");
        let name = tag.split_whitespace().next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') || name.starts_with('?') => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn frames_have_the_colour_and_the_words_of_their_verdict() {
    let picture = drawn("changed", &NEW, "svg");
    assert_well_formed(&picture);
    let frames = frames(&picture);
    let frame = |name: &str| {
        let mut found = frames
            .iter()
            .filter(|(_, title)| title.starts_with(&format!("{name}: ")));
        let frame = found.next().unwrap_or_else(|| panic!("{name}: {frames:?}"));
        assert!(found.next().is_none());
        *frame
    };
    let color = |class: &str| between(&picture, &format!("\n.{class} {{ fill: "), ";").to_owned();
    // Its own weight, what it calls, nothing, less, only new.
    for (name, class) in [
        ("lex&lt;a&gt;", "m1"),
        ("parse", "m2"),
        ("main", "m2"),
        ("emit", "m2"),
        ("load", "m0"),
        ("scan", "m3"),
        ("fresh", "m1"),
        ("[truncated]", "mark"),
    ] {
        let found = frame(name).0;
        assert_eq!(found.trim_end_matches('b'), class, "{name}");
    }
    assert_eq!(
        ["m0", "m1", "m3"].map(color),
        ["#d6d6d6", "#f26d5b", "#62a3ee"]
    );
    let (_, lex) = frame("lex&lt;a&gt;");
    assert!(
        lex.starts_with("lex&lt;a&gt;: self 2,002 to 2,102 a run, +5.0 % (+9"),
        "{lex}"
    );
    assert!(lex.contains("): worse; here 21.1"), "{lex}");
    let (_, parse) = frame("parse");
    assert!(parse.starts_with("parse: total 2,3"), "{parse}");
    let (_, load) = frame("load");
    assert!(load.contains("): same; here 10."), "{load}");
    let (_, scan) = frame("scan");
    assert!(
        scan.contains(", -22.2 % (-2") && scan.contains("): better;"),
        "{scan}"
    );
    let (_, fresh) = frame("fresh");
    assert!(
        fresh.starts_with("fresh: self 0 to 80") && fresh.contains("): new;"),
        "{fresh}"
    );
    let (_, mark) = frame("[truncated]");
    assert!(mark.starts_with("[truncated]: 0."), "{mark}");
    // What is gone has no frame.
    assert!(!frames.iter().any(|(_, title)| title.starts_with("old")));
    assert!(
        picture.contains(">Only in base (total a run): old 302</text>"),
        "{picture}"
    );
}

#[test]
fn nothing_is_coloured_where_nothing_has_changed() {
    let picture = drawn("same", &BASE, "svg");
    for (class, title) in frames(&picture) {
        assert!(["m0", "m0b", "mark"].contains(&class), "{class} {title}");
        assert!(class == "mark" || title.contains("): same;"), "{title}");
    }
    assert!(!picture.contains("Only in base"), "{picture}");
}

#[test]
fn a_page_has_the_tables_and_the_picture_and_asks_for_nothing() {
    let page = drawn("page", &NEW, "html");
    let without = page.replace("http://www.w3.org/", "");
    for request in ["http:", "https:", " src=", " href=", "@import", "fetch("] {
        assert!(!without.contains(request), "{request}");
    }
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    let script = between(&page, "<script>", "</script>");
    let style = between(&page, "<style>", "</style>");
    let expected = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    );
    assert_eq!(policy, expected);
    assert!(page.contains("<p>all: 9,"), "the sentence of the text");
    assert!(page.contains("<td class=\"name\">lex</td>"));
    assert_eq!(frames(&page).len(), 8);
}

#[test]
fn the_picture_of_a_page_takes_its_width_there() {
    let page = drawn("browser", &NEW, "html");
    let place = directory("compare-picture-browser");
    let file = place.join("it.html");
    fs::write(&file, page).unwrap();
    let Some(output) = ran(Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--window-size=900,700")
        .arg(format!("--user-data-dir={}", place.join("user").display()))
        .arg(format!("file://{}", file.display())))
    else {
        return;
    };
    let page = String::from_utf8(output.stdout).unwrap();
    let root = between(&page, "<svg ", ">");
    let width: f64 = between(root, " width=\"", "\"").parse().unwrap();
    assert!((800.0..900.0).contains(&width), "{root}");
    // The script lays it out: it adds the search, and the widest frame takes the whole width.
    assert!(page.contains("placeholder=\"Search: regex, key /\""));
    let area = between(&page, "<g id=\"frames\"", "<g id=\"foot\"");
    let main = area.split("<g ").find(|it| it.contains("<title>main: "));
    let frame = between(main.unwrap(), "<rect ", ">");
    let wide: f64 = between(frame, " width=\"", "\"").parse().unwrap();
    assert!((wide - (width - 20.0)).abs() < 0.01, "{frame}");
}
