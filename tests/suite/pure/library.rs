//! The library as a program meets it first.

use std::fmt::Write;

use proftool::input;

/// The example of the library's page, with its lines in a text.
fn hottest_functions(path: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    let profile = input::open(path)?;
    for function in profile.hottest(10) {
        let (own, total) = (function.self_weight, function.total);
        writeln!(text, "{own:>5} {total:>5} {}", function.name)?;
    }
    for caveat in profile.caveats.iter() {
        writeln!(text, "note: {caveat}")?;
    }
    Ok(text)
}

#[test]
fn a_short_program_prints_the_hottest_functions() {
    let expected = "   40    45 b\n   25    55 a\n   25    33 c\n    8     8 d\n    2   100 main\n";
    assert_eq!(
        hottest_functions("fixtures/recursion.folded").unwrap(),
        expected
    );
}

#[test]
fn what_is_not_known_is_printed_with_it() {
    let text = hottest_functions("fixtures/bad-lines.folded").unwrap();
    let notes: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("note: "))
        .collect();
    assert!(!notes.is_empty(), "{text}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let error = hottest_functions("no-such-file").unwrap_err().to_string();
    assert!(error.contains("no-such-file"), "{error}");
}
