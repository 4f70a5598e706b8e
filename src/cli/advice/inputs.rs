//! What can be done about a file that cannot be shown.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proftool::base::shell_quoted;
use proftool::binary;
use proftool::input::{Error, Reason};

// `show` is the command that shows a file, up to the file's name: `proftool detail parse`.
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
        Reason::Io { source } if source.kind() == io::ErrorKind::PermissionDenied => {
            return on_refusal(file, show);
        }
        Reason::NotRegular { kind: "a pipe" } => {
            format!("read it from standard input: {show} - < {path}")
        }
        Reason::Program => format!(
            "record it (proftool record -- {path}), or show the calls in its code (proftool \
             callgraph {path})"
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

const ROOT: u32 = 0;

// `None` for root, to whom nothing more can be permitted.
fn user() -> Option<u32> {
    let user = fs::metadata("/proc/self").ok()?.uid();
    (user != ROOT).then_some(user)
}

// Any file that this user may not read; `show` as in [`on_error`].
pub fn as_root(file: &Path, show: &str) -> Option<String> {
    let path = shell_quoted(&file.to_string_lossy());
    user().map(|_| format!("run as root: {show} {path}"))
}

fn on_refusal(file: &Path, show: &str) -> Option<String> {
    let user = user()?;
    let path = shell_quoted(&file.to_string_lossy());
    let as_root = as_root(file, show)?;
    let owner = fs::metadata(file).map(|file| file.uid());
    Some(match owner {
        Ok(owner) if owner == user => format!("permit it: chmod u+r {path}"),
        Ok(ROOT) => format!("it belongs to root: sudo chown $USER {path}, or {as_root}"),
        Ok(_) => format!("it belongs to another user: {as_root}"),
        Err(_) => match closed_directory(file) {
            Some(directory) => format!(
                "this user may not enter {}: {as_root}",
                shell_quoted(&directory.to_string_lossy())
            ),
            None => as_root,
        },
    })
}

// A directory of the path that this user may not enter; `None` for one that only a link leads to.
fn closed_directory(file: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(file).ok()?;
    let is_hidden = |path: &&Path| {
        let status = fs::symlink_metadata(path);
        status.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let below = whole.ancestors().filter(is_hidden).last()?;
    below.parent().map(Path::to_owned)
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
