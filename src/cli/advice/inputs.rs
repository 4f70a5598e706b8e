//! What can be done about a file that cannot be shown.

use std::io;
use std::path::Path;

use proftool::base::shell_quoted;
use proftool::binary;
use proftool::input::Error;

/// Returns what can be done about a file that could not be opened.
pub fn on_error(error: &Error, file: &Path) -> Option<String> {
    let path = shell_quoted(&file.to_string_lossy());
    Some(match error {
        Error::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut part = file.as_os_str().to_owned();
            part.push(".part");
            if Path::new(&part).is_file() {
                format!(
                    "there is an unfinished recording: proftool report {}",
                    shell_quoted(&part.to_string_lossy())
                )
            } else {
                "make a recording: proftool record -- COMMAND".into()
            }
        }
        Error::NotRegular("a pipe") => {
            format!("read it from standard input: proftool report - < {path}")
        }
        Error::Program => format!(
            "record it (proftool record -- {path}), or show the calls in its code (proftool callgraph \
             {path})"
        ),
        Error::Compressed("gzip") => format!("decompress it: gzip -dc {path} | proftool report -"),
        Error::Compressed(_) => format!("decompress it: zstd -dc {path} | proftool report -"),
        Error::Binary(binary::Error::NotElf) => "an ELF program or shared library is needed".into(),
        Error::NoTimes(_) => "leave out --time".into(),
        Error::NoProgram => "name the program: --binary PROGRAM".into(),
        Error::Gmon(_) => "name the program that made it: --binary PROGRAM".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_quotes_the_file_for_a_shell() {
        let advice = on_error(&Error::Program, Path::new("my app")).unwrap();
        assert!(advice.contains("proftool record -- 'my app'"), "{advice}");
        let advice = on_error(&Error::NoProgram, Path::new("gmon.out")).unwrap();
        assert!(advice.contains("--binary PROGRAM"), "{advice}");
    }
}
