//! Which source files are shown, and to whom.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proftool::base::{CaveatKind, Caveats};
use proftool::input::{Audience, SourceFiles, SourceOptions};
use proftool::profile::NoSource;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceChoice {
    // Those in this directory first.
    Directory(PathBuf),
    // All that can be read.
    All,
}

// A directory of the name `all` is `./all`. Every other text names a directory.
pub fn choice(text: &str) -> Result<SourceChoice, String> {
    Ok(match text {
        "all" => SourceChoice::All,
        directory => SourceChoice::Directory(directory.into()),
    })
}

pub fn files(
    choice: Option<&SourceChoice>,
    symfs: Option<&Path>,
    audience: Audience,
) -> SourceFiles {
    let directory = choice.and_then(|choice| match choice {
        SourceChoice::Directory(directory) => Some(&**directory),
        SourceChoice::All => None,
    });
    SourceFiles::new(&SourceOptions {
        directory,
        symfs,
        audience,
        takes_all: choice == Some(&SourceChoice::All),
    })
}

// Who reads a document for programs, and what a shell writes to a file, is not known.
pub fn audience(is_page: bool) -> Audience {
    let out = std::io::stdout();
    let file = out.as_fd().try_clone_to_owned().map(std::fs::File::from);
    let metadata = file.and_then(|file| file.metadata());
    let is_file = !out.is_terminal() && metadata.is_ok_and(|it| it.is_file());
    if is_page && !is_file {
        Audience::Screen
    } else {
        Audience::File
    }
}

// These caveats, and one of the source files that were left out.
pub fn with_left_out(caveats: &Caveats, left_out: &BTreeMap<String, NoSource>) -> Caveats {
    let mut caveats = caveats.clone();
    for (file, why) in left_out {
        let detail = format!("{file} ({})", why.reason());
        caveats.add_detail(CaveatKind::SourcesLeftOut, 1, detail);
    }
    caveats
}

pub fn owner(input: &Path) -> Option<u32> {
    std::fs::metadata(input).ok().map(|input| input.uid())
}
