//! The text of source files, or why there is none.

use std::time::SystemTime;

/// Why the text of a source file is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoSource {
    /// There is no such regular file that can be read, or it is too large.
    NotFound,
    /// It is in `/proc`, `/sys` or `/dev`, which have no sources.
    OfSystem,
    /// It is not below a directory of the compilation, or only by a symbolic link.
    Outside,
    /// Only its owner can read it, and nothing shows that it is source.
    Private,
    /// The owner of the program cannot read it.
    NotOfOwner,
    /// It is not what was compiled: its MD5 is another one, or it has too few lines.
    Changed,
}

impl NoSource {
    /// Returns the reason, as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            NoSource::NotFound => "The source file was not found.",
            NoSource::OfSystem => "The file is not shown: it is in /proc, /sys or /dev.",
            NoSource::Outside => {
                "The file is not shown: it is outside the directories of the compilation."
            }
            NoSource::Private => {
                "The file is not shown: only its owner can read it, and it is not known to be \
                 source."
            }
            NoSource::NotOfOwner => {
                "The file is not shown: the owner of the program cannot read it."
            }
            NoSource::Changed => "The file is not shown: it is not the text that was compiled.",
        }
    }

    /// Returns the reason in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            NoSource::NotFound => "not found",
            NoSource::OfSystem => "in /proc, /sys or /dev",
            NoSource::Outside => "outside the directories of the compilation",
            NoSource::Private => "private",
            NoSource::NotOfOwner => "private to another user than the program's owner",
            NoSource::Changed => "changed since it was compiled",
        }
    }
}

/// A source file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Where it was found.
    pub path: String,
    /// When it was last written.
    pub modified: Option<SystemTime>,
    /// Whether it is not that file but a text in the debug information of the program at `path`.
    pub is_embedded: bool,
    text: String,
    /// Where each line begins.
    starts: Vec<u32>,
}

impl SourceText {
    /// The lines of a text, which is at most 4 GiB long; what is beyond is left out.
    ///
    /// ```
    /// use proftool::profile::SourceText;
    /// let source = SourceText::new("a.c".into(), None, "int x;\r\nint y;\n".into());
    /// assert_eq!((source.line(1), source.line(2)), (Some("int x;"), Some("int y;")));
    /// assert_eq!((source.line(0), source.line(3), source.lines()), (None, None, 2));
    /// ```
    pub fn new(path: String, modified: Option<SystemTime>, text: String) -> SourceText {
        let mut starts = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let Ok(at) = u32::try_from(start) else { break };
            starts.push(at);
            start += line.len();
        }
        SourceText {
            path,
            modified,
            is_embedded: false,
            text,
            starts,
        }
    }

    /// The lines of a text that the debug information of a program has.
    pub fn embedded(program: String, text: String) -> SourceText {
        SourceText {
            is_embedded: true,
            ..SourceText::new(program, None, text)
        }
    }

    /// Returns a line by its number, from 1, without its end.
    pub fn line(&self, number: u32) -> Option<&str> {
        let place = (number as usize).checked_sub(1)?;
        let start = *self.starts.get(place)? as usize;
        let rest = &self.text[start..];
        let line = rest.split('\n').next()?;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// Returns the number of lines.
    pub fn lines(&self) -> usize {
        self.starts.len()
    }
}
