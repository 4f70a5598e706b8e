//! Recordings that were written, in words.

use proftool::base::shell_quoted;
use proftool::view::number;

use super::source::Written;

pub fn written(file: &str, written: Result<Written, String>) -> String {
    match written {
        Err(why) => format!("could not write {file}: {why}"),
        Ok(written) => {
            let note = written
                .note
                .map_or(String::new(), |note| format!("; {note}"));
            format!(
                "wrote {file}: {}, {}{note}; see: proftool report {}",
                samples(written.samples),
                size(written.bytes),
                shell_quoted(file)
            )
        }
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", number::grouped(bytes / 1000)),
        _ => format!("{} MB", number::grouped(bytes / 1_000_000)),
    }
}

pub fn samples(count: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} sample{plural}", number::grouped(count))
}
