//! How `record -g auto` chooses: by what the program's functions keep.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proftool::binary::{Binary, Finder, Libraries};
use proftool::sampler::{CopySize, Process, Stacks, Target};
use proftool::scan::frame_pointers::frame_pointers;
use proftool::scan::keeping::{self, FileFrames, Judgement};

/// The most running processes that are looked at.
const PROCESSES: usize = 16;
/// The most libraries of a running process that are looked at.
const LIBRARIES: usize = 64;

/// How to record the stacks of a program, and one line that says why.
pub fn choose(program: &Path) -> (Stacks, String) {
    let finder = Finder::default();
    let name = program.file_name().unwrap_or_default().display();
    let binary = match finder.open_named(program) {
        Ok(binary) => Arc::new(binary),
        Err(error) => {
            let why = format!("call stacks: frame pointers ({name} could not be read: {error})");
            return (Stacks::FramePointers, why);
        }
    };
    let files = keeping::of_program(&Libraries::of(&binary, &finder));
    told(&files, &name.to_string())
}

/// How to record the stacks of what already runs, by the files that are mapped in it. A single
/// process without frame pointers decides for all.
pub fn choose_running(target: &Target) -> (Stacks, String) {
    let pids: &[i32] = match target {
        Target::Processes(pids) | Target::Threads(pids) => pids,
        _ => &[],
    };
    let mut chosen = None;
    for &pid in pids.iter().take(PROCESSES) {
        let Some(files) = of_process(pid) else {
            continue;
        };
        let name = files
            .first()
            .map_or(String::new(), |file| file.name.clone());
        let choice = told(&files, &name);
        if matches!(choice.0, Stacks::Copies(_)) {
            return choice;
        }
        chosen = chosen.or(Some(choice));
    }
    let why = "call stacks: frame pointers (override with -g dwarf)";
    chosen.unwrap_or((Stacks::FramePointers, why.to_owned()))
}

/// The program of a process, and the libraries that it has mapped.
fn of_process(pid: i32) -> Option<Vec<FileFrames>> {
    let finder = Finder::default();
    let process = Process::look(pid).ok()?;
    let here = |path: &Path| match &process.root {
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_owned(),
    };
    let program = process.program.as_ref()?;
    // The link to the program leads to it even when its file is gone.
    let own = PathBuf::from(format!("/proc/{pid}/exe"));
    let opened = finder.open_named(&here(program));
    let binary = opened.or_else(|_| finder.open_named(&own)).ok()?;
    let file = |path: &Path, binary: &Binary| FileFrames {
        name: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        code: binary.code().map_or(0, |code| code.size()),
        frames: frame_pointers(binary),
        is_called: true,
    };
    let mut files = vec![file(program, &binary)];
    let libraries = process
        .files
        .iter()
        .filter(|library| library.path != *program && !library.deleted);
    files.extend(libraries.take(LIBRARIES).filter_map(|library| {
        let binary = finder.open_named(&here(&library.path)).ok()?;
        Some(file(&library.path, &binary))
    }));
    Some(files)
}

fn told(files: &[FileFrames], name: &str) -> (Stacks, String) {
    match keeping::judge(files) {
        Judgement::Copies { file } if Stacks::can_copy() => {
            let size = CopySize::default();
            let why = format!(
                "call stacks: DWARF, {size} per sample ({}; override with -g fp)",
                lack(&files[file])
            );
            (Stacks::Copies(size), why)
        }
        Judgement::Copies { file } => (
            Stacks::FramePointers,
            format!(
                "call stacks: frame pointers ({}, but the kernel copies no stacks on this machine, \
                 so they are incomplete)",
                lack(&files[file])
            ),
        ),
        Judgement::FramePointers { beside } => (Stacks::FramePointers, keep(files, &beside)),
        Judgement::Unknown => (
            Stacks::FramePointers,
            format!("call stacks: frame pointers ({name} has no code that shows if it keeps them)"),
        ),
    }
}

fn lack(file: &FileFrames) -> String {
    let share = file.frames.lacking().unwrap_or(0.0) * 100.0;
    let digits = usize::from(share < 9.95);
    let name = &file.name;
    match share > 50.0 {
        true => format!("{name} is built without frame pointers"),
        false => format!("{share:.digits$} % of {name}'s functions keep no frame pointer"),
    }
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
        return format!("call stacks: frame pointers ({name}{with} {verb} them)");
    }
    let names: Vec<&str> = beside.iter().map(|&i| &*files[i].name).collect();
    let (told, verb) = match names.as_slice() {
        [one] => ((*one).to_owned(), "does"),
        [one, two] => (format!("{one} and {two}"), "do"),
        _ => (format!("{} of its libraries", names.len()), "do"),
    };
    format!(
        "call stacks: frame pointers ({name} keeps them; {told} {verb} not, so callers may be \
         missing there)"
    )
}
