//! The command to record: found before anything is started.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::command_error::CommandError;
use super::interpreter;
use super::program_search::{locate, search_path};

/// A program that was found, with its arguments and environment.
///
/// ```
/// use proftool::sampler::Command;
/// assert!(Command::find(&["true".into()]).is_ok());
/// assert!(Command::find(&["./no-such-program".into()]).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    pub(in crate::sampler) words: Vec<OsString>,
    pub(in crate::sampler) program: CString,
    pub(in crate::sampler) arguments: Vec<CString>,
    /// How a shell would run the file if it is a script that names no interpreter.
    pub(in crate::sampler) as_script: Vec<CString>,
    pub(in crate::sampler) environment: Vec<CString>,
    pub(in crate::sampler) is_silent: bool,
}

impl Command {
    /// Takes its standard input away and discards its standard output and standard error, as the
    /// terminal is in use.
    pub fn silent(self) -> Command {
        Command {
            is_silent: true,
            ..self
        }
    }

    /// Finds the program of a command as a shell does: a name with a slash is a path, another
    /// one is looked for in `PATH`.
    ///
    /// # Errors
    ///
    /// If there is no such program, or none that is an executable file.
    pub fn find(words: &[OsString]) -> Result<Command, CommandError> {
        let name = words
            .first()
            .filter(|name| !name.is_empty())
            .ok_or_else(|| CommandError::Unusable {
                problem: "it is empty".into(),
            })?;
        let program = c_string(locate(name, &search_path())?.as_os_str())?;
        let arguments = words
            .iter()
            .map(|word| c_string(word))
            .collect::<Result<Vec<_>, _>>()?;
        let mut as_script = vec![c"/bin/sh".to_owned(), program.clone()];
        as_script.extend(arguments.iter().skip(1).cloned());
        let environment = std::env::vars_os()
            .filter_map(|(mut key, value)| {
                key.push("=");
                key.push(value);
                CString::new(key.as_bytes()).ok()
            })
            .collect();
        Ok(Command {
            words: words.to_vec(),
            program,
            arguments,
            as_script,
            environment,
            is_silent: false,
        })
    }

    /// The file that was found.
    pub fn program(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.program.as_bytes()))
    }

    /// The file whose code will run: the program, or the interpreter of a script.
    pub fn code_file(&self) -> PathBuf {
        interpreter::code_file(self.program())
    }

    pub(in crate::sampler) fn name(&self) -> String {
        self.words
            .first()
            .map(|word| word.display().to_string())
            .unwrap_or_default()
    }

    /// What the system's refusal to run the program means. It was there when it was looked for.
    pub(in crate::sampler) fn refused(&self, error: &io::Error) -> CommandError {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "the interpreter that it names is missing".to_owned(),
            _ => crate::base::system_reason(error),
        };
        CommandError::NotExecutable {
            program: self.name(),
            reason,
        }
    }
}

fn c_string(text: &OsStr) -> Result<CString, CommandError> {
    CString::new(text.as_bytes()).map_err(|_| CommandError::Unusable {
        problem: format!("{} has a zero byte in it", text.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Command::find(&words).unwrap_err().to_string()
    }

    #[test]
    fn a_command_that_cannot_be_run_is_named() {
        assert_eq!(
            failure(&["no-such-program-xyz"]),
            "program not found: no-such-program-xyz"
        );
        assert_eq!(
            failure(&["./no-such"]),
            "program not found: ./no-such: no such file or directory"
        );
        assert_eq!(failure(&["/"]), "cannot run /: is a directory");
        assert_eq!(
            failure(&["/dev/null"]),
            "cannot run /dev/null: permission denied"
        );
        assert_eq!(failure(&[""]), "not a command: it is empty");
    }
}
