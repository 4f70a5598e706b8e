//! Text from outside (symbol names, command names and paths may hold any byte), and numbers as
//! text.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character may deceive a person who reads it: control characters (C0, DEL, C1), marks
/// that reorder text (bidi embeddings, overrides and isolates), line separators, and invisible
/// characters, which make two different names look the same. The latter are those that Unicode
/// lists as `Default_Ignorable_Code_Point` (DerivedCoreProperties.txt, Unicode 16), which includes
/// soft hyphens, zero-width spaces and joiners, variation selectors and tags, and the marks of
/// interlinear annotations.
pub fn is_unsafe_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(
        c,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns the system's message for an error as part of a sentence: in lower case, without the
/// error number.
///
/// ```
/// let error = std::io::Error::from_raw_os_error(13);
/// assert_eq!(proftool::base::system_reason(&error), "permission denied");
/// ```
pub fn system_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::from("unknown error"),
    }
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

/// A whole number with commas between thousands.
///
/// ```
/// assert_eq!(proftool::base::grouped(1_234_567), "1,234,567");
/// ```
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        for (text, shown) in [
            ("ev\u{200b}il", "ev\\u{200b}il"),
            ("so\u{ad}ft", "so\\xadft"),
            ("\u{feff}main", "\\u{feff}main"),
            ("a\u{e0041}\u{e007f}", "a\\u{e0041}\\u{e007f}"),
            ("a\u{202e}b\u{2066}", "a\\u{202e}b\\u{2066}"),
            ("a\u{2064}\u{fe0f}", "a\\u{2064}\\u{fe0f}"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn letters_of_any_script_are_left_alone() {
        for text in [
            "naïve",
            "Größe",
            "関数",
            "функция",
            "דוגמה",
            "f\u{a0}g",
            "🦀",
        ] {
            assert_eq!(printable(text), text);
        }
    }
}
