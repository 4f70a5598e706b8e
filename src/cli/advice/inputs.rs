//! What can be done about a file that cannot be shown.

use std::io;
use std::path::Path;

use proftool::base::shell_quoted;
use proftool::binary;
use proftool::input::{Error, Reason};

/// Returns what can be done about a file that could not be opened. `show` is the command that shows a
/// file, up to the file's name: `proftool detail parse`.
pub fn on_error(error: &Error, show: &str) -> Option<String> {
    let file = &error.path;
    let path = shell_quoted(&file.to_string_lossy());
    Some(match &error.reason {
        Reason::Io { source } if source.kind() == io::ErrorKind::NotFound => {
            let mut part = file.as_os_str().to_owned();
            part.push(".part");
            if Path::new(&part).is_file() {
                format!(
                    "there is an unfinished recording: {show} {}",
                    shell_quoted(&part.to_string_lossy())
                )
            } else {
                "make a recording: proftool record -- COMMAND".into()
            }
        }
        Reason::NotRegular { kind: "a pipe" } => {
            format!("read it from standard input: {show} - < {path}")
        }
        Reason::Program => format!(
            "record it (proftool record -- {path}), or show the calls in its code (proftool callgraph \
             {path})"
        ),
        Reason::Compressed { format: "gzip" } => {
            format!("decompress it: gzip -dc {path} | {show} -")
        }
        Reason::Compressed { .. } => format!("decompress it: zstd -dc {path} | {show} -"),
        Reason::Binary {
            source: binary::Error::NotElf,
        } => "an ELF program or shared library is needed".into(),
        Reason::NoTimes { .. } => "leave out --time".into(),
        Reason::NoProgram => "name the program: --binary PROGRAM".into(),
        Reason::Gmon { .. } => "name the program that made it: --binary PROGRAM".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_quotes_the_file_for_a_shell() {
        let advice = |path: &str, reason| {
            let path = path.into();
            on_error(&Error { path, reason }, "proftool flat").unwrap()
        };
        let of_program = advice("my app", Reason::Program);
        assert!(
            of_program.contains("proftool record -- 'my app'"),
            "{of_program}"
        );
        let of_gmon = advice("gmon.out", Reason::NoProgram);
        assert!(of_gmon.contains("--binary PROGRAM"), "{of_gmon}");
    }

    #[test]
    fn advice_repeats_the_command_that_ran() {
        let error = Error {
            path: "a b.gz".into(),
            reason: Reason::Compressed { format: "gzip" },
        };
        let advice = on_error(&error, "proftool detail parse");
        let command = "decompress it: gzip -dc 'a b.gz' | proftool detail parse -";
        assert_eq!(advice.as_deref(), Some(command));
    }
}
