//! How `record -g auto` chooses: by what the program's functions keep.

use std::path::Path;
use std::sync::Arc;

use proftool::binary::{Finder, Libraries};
use proftool::sampler::{CopySize, Stacks};
use proftool::scan::keeping::{self, FileFrames, Judgement};

/// How to record the stacks of a program, and one line that says why.
pub fn choose(program: &Path) -> (Stacks, String) {
    let finder = Finder::default();
    let name = program.file_name().unwrap_or_default().display();
    let binary = match finder.open_named(program) {
        Ok(binary) => Arc::new(binary),
        Err(error) => {
            let why = format!("stacks by frame pointers: {name} could not be read ({error})");
            return (Stacks::FramePointers, why);
        }
    };
    let files = keeping::of_program(&Libraries::of(&binary, &finder));
    match keeping::judge(&files) {
        Judgement::Copies { file } if Stacks::can_copy() => {
            let size = CopySize::default();
            let why = format!(
                "stacks by copies of {size} (dwarf): {} (choose: -g fp, -g dwarf,BYTES)",
                lack(&files[file])
            );
            (Stacks::Copies(size), why)
        }
        Judgement::Copies { file } => (
            Stacks::FramePointers,
            format!(
                "stacks by frame pointers, and cut: {}, and the kernel copies no stacks on this \
                 machine",
                lack(&files[file])
            ),
        ),
        Judgement::FramePointers { beside } => (Stacks::FramePointers, keep(&files, &beside)),
        Judgement::Unknown => (
            Stacks::FramePointers,
            format!("stacks by frame pointers: whether {name} keeps them cannot be told"),
        ),
    }
}

fn lack(file: &FileFrames) -> String {
    let share = file.frames.lacking().unwrap_or(0.0) * 100.0;
    let digits = usize::from(share < 9.95);
    let name = &file.name;
    format!("{share:.digits$} % of {name}'s functions keep no frame pointer")
}

fn keep(files: &[FileFrames], beside: &[usize]) -> String {
    let name = files.first().map_or("", |file| &file.name);
    let libraries = files.len().saturating_sub(1);
    if beside.is_empty() {
        let with = match libraries {
            0 => String::new(),
            1 => " and its library".to_owned(),
            n => format!(" and its {n} libraries"),
        };
        let verb = if libraries == 0 { "keeps" } else { "keep" };
        return format!("stacks by frame pointers: {name}{with} {verb} them");
    }
    let names: Vec<&str> = beside.iter().map(|&i| &*files[i].name).collect();
    let (told, verb) = match names.as_slice() {
        [one] => ((*one).to_owned(), "does"),
        [one, two] => (format!("{one} and {two}"), "do"),
        _ => (format!("{} of its libraries", names.len()), "do"),
    };
    format!(
        "stacks by frame pointers: {name} keeps them; {told} {verb} not, samples there may lack \
         callers"
    )
}
