//! Which file's code runs when a command is executed: the program itself, or what interprets it.
//!
//! ```text
//!   #!/bin/sh -e                 /bin/sh
//!   #!/usr/bin/env -S python3 -u     python3, from PATH
//!   no #!, no ELF header         /bin/sh, as the shell does it
//! ```
//!
//! execve(2), "Interpreter scripts"; env(1), `-S`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::program_search::in_path;

// The longest first line that the kernel reads.
const LINE: u64 = 256;
// How many interpreters may be scripts themselves, as in the kernel.
const DEPTH: usize = 4;

/// The file with the code of `program`. It may be missing or not be a program, which
/// shows when it is opened.
pub(in crate::sampler) fn code_file(program: &Path) -> PathBuf {
    let mut file = program.to_owned();
    for _ in 0..DEPTH {
        match interpreter(&file) {
            Some(next) => file = next,
            None => break,
        }
    }
    file
}

/// What interprets a file; `None` if it is ELF or cannot be read.
fn interpreter(file: &Path) -> Option<PathBuf> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    let mut opened = File::open(file).ok()?.take(LINE);
    opened.read_to_end(&mut start).ok()?;
    if start.starts_with(b"\x7fELF") {
        return None;
    }
    let Some(line) = start.strip_prefix(b"#!") else {
        return Some(PathBuf::from("/bin/sh"));
    };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or(line);
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty());
    let named = Path::new(OsStr::from_bytes(words.next()?));
    if named.file_name() == Some(OsStr::new("env")) {
        // Options of env, and variables that it sets, come before the command.
        let command = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
        let found = command.and_then(|word| in_path(OsStr::from_bytes(word)));
        return Some(found.unwrap_or_else(|| named.to_owned()));
    }
    Some(named.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn scripts_run_the_code_of_what_interprets_them() {
        let name = format!("proftool-interpreter-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let sh = in_path("sh".as_ref()).unwrap();
        for (text, expected) in [
            ("#!/bin/some thing\nx", Path::new("/bin/some")),
            ("#! \t/bin/some", Path::new("/bin/some")),
            ("#!/usr/bin/env -S A=b sh -e\n", &sh),
            ("#!/usr/bin/env no-such-xyz\n", Path::new("/usr/bin/env")),
            ("echo hello\n", Path::new("/bin/sh")),
            ("", Path::new("/bin/sh")),
            ("\x7fELF", &path),
            ("#!", &path),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(code_file(&path), expected, "{text:?}");
        }
        // A script that interprets itself ends all the same.
        fs::write(&path, format!("#!{}\n", path.display())).unwrap();
        assert_eq!(code_file(&path), path);
        fs::remove_file(&path).unwrap();
        assert_eq!(code_file(Path::new("/dev/null")), Path::new("/dev/null"));
    }
}
