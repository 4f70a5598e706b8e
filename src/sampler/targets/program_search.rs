//! Finding programs as a shell does.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::command_error::CommandError;

// Where programs are looked for when `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn refused(program: &str, error: &io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => CommandError::NotFound {
            program: program.to_owned(),
        },
        io::ErrorKind::NotFound => CommandError::NotFound {
            program: format!("{program}: no such file or directory"),
        },
        _ => CommandError::NotExecutable {
            program: program.to_owned(),
            reason: crate::base::system_reason(error),
        },
    }
}

/// The program of this name in `PATH`; a name with a slash is a path.
pub(super) fn in_path(name: &OsStr) -> Option<PathBuf> {
    locate(name, &search_path()).ok()
}

pub(super) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into())
}

pub(super) fn locate(name: &OsStr, path: &OsStr) -> Result<PathBuf, CommandError> {
    let shown = name.display().to_string();
    if name.as_bytes().contains(&b'/') {
        executable(Path::new(name)).map_err(|error| refused(&shown, &error))?;
        return Ok(PathBuf::from(name));
    }
    let mut refusal = None;
    for directory in std::env::split_paths(path) {
        // An empty entry is the current directory.
        let candidate = Path::new(".").join(directory).join(name);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    let error = refusal.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(refused(&shown, &error))
}

// Whether there is an executable file at `path`. What the permission bits do not tell (access
// lists, a missing interpreter), `exec` will.
fn executable(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else if metadata.permissions().mode() & 0o111 == 0 {
        Err(io::ErrorKind::PermissionDenied.into())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_searched_in_order() {
        let found = locate("sh".as_ref(), "/nowhere:/bin:/usr/bin".as_ref()).unwrap();
        assert_eq!(found, Path::new("/bin/sh"));
        let error = locate("null".as_ref(), "/nowhere:/dev".as_ref()).unwrap_err();
        assert!(matches!(error, CommandError::NotExecutable { .. }));
    }
}
