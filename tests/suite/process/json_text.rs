//! Texts from outside in JSON.

use std::fs;

use crate::support::cli::proftool;

#[test]
fn unsafe_text_is_escaped_and_can_be_read_back() {
    let name = "a\"\u{7f}\u{202e}解\u{e0041}\\z";
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/unsafe-text.folded");
    fs::write(path, format!("main;{name} 5\n")).unwrap();
    let answer = proftool(&["flat", "--format", "json", path])
        .output()
        .unwrap();
    assert!(answer.status.success());
    let text = String::from_utf8(answer.stdout).unwrap();
    let escaped = r#""a\"\u007f\u202e解\udb40\udc41\\z""#;
    assert!(text.contains(escaped), "{text}");
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["functions"][0]["name"], name);
}
