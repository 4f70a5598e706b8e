//! Text from outside: symbol names, command names and paths may hold any byte.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character may do harm where a person reads it: control characters (C0, DEL, C1) and
/// the marks that reorder text (bidi embeddings, overrides and isolates).
pub fn is_unsafe_char(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
        )
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `bytes` as UTF-8; what is not UTF-8 becomes `\xNN`.
///
/// ```
/// assert_eq!(proftool::base::utf8(b"bad\xffname"), "bad\\xffname");
/// ```
pub fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("writing to a String does not fail");
        }
    }
    Cow::Owned(out)
}

/// `text` as one word of a shell's command line.
///
/// ```
/// use proftool::base::shell_quoted;
/// assert_eq!(shell_quoted("a.data"), "a.data");
/// assert_eq!(shell_quoted("it's"), r"'it'\''s'");
/// ```
pub fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `text` with every unsafe character (see [`is_unsafe_char`]) as `\xNN` or `\u{NNNN}`, so that
/// it may go to a terminal.
///
/// ```
/// assert_eq!(proftool::base::printable("a\x1b[2Jb"), "a\\x1b[2Jb");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe_char) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match u32::from(c) {
            code if !is_unsafe_char(c) => out.push(char::from_u32(code).unwrap_or(c)),
            code if code <= 0xff => {
                write!(out, "\\x{code:02x}").expect("writing to a String does not fail");
            }
            code => {
                write!(out, "\\u{{{code:x}}}").expect("writing to a String does not fail");
            }
        }
    }
    Cow::Owned(out)
}
