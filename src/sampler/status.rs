//! The lines of `/proc/PID/status` and files like it.

/// The value of a line `name:  value`.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim())
}
