//! How `record -g auto` chooses: by what the program's functions keep. With `--off-cpu` the
//! libraries in which threads wait count as well, and unknown code counts against frame pointers: a
//! wait is useless without the function that waits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proftool::base::grouped;
use proftool::binary::{Binary, Finder, Libraries};
use proftool::frame_pointers::frame_pointers;
use proftool::frame_pointers::verdict::{self, FileFrames, Time, Verdict};
use proftool::input::{SampledProgram, sampled_programs};
use proftool::sampler::{CopySize, Options, Process, Stacks, Target};

// Running processes that are looked at.
const PROCESSES: usize = 16;
// Libraries of a running process that are looked at.
const LIBRARIES: usize = 64;

// A larger recording is not read again to find the program that has most of its samples.
const READ_AGAIN: u64 = 256 << 20;

#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub time: Time,
    // The largest copies of stacks that can be recorded of it.
    pub largest: CopySize,
    // Whether copies are unwound while they are recorded.
    pub unwinds: bool,
}

// Returns how to record the stacks of a program, and one line that says why.
pub fn choose(program: &Path, wanted: Wanted) -> (Stacks, String) {
    let finder = Finder::default();
    let name = program.file_name().unwrap_or_default().display();
    let binary = match finder.open_named(program) {
        Ok(binary) => Arc::new(binary),
        Err(error) => {
            return unknown(&format!("{name} could not be read: {error}"), wanted);
        }
    };
    let files = verdict::of_program(&Libraries::of(&binary, &finder));
    told(&files, &name.to_string(), wanted)
}

// One line after a command was recorded by [`choose`], if another program than the one that was
// judged has most of the samples: whether the choice fits it.
pub fn after(
    recording: &Path,
    bytes: u64,
    judged: &Path,
    (options, time): (&Options, Time),
) -> Option<String> {
    if bytes > READ_AGAIN {
        return None;
    }
    let sampled = sampled_programs(recording).ok()?;
    let top = sampled.programs.first()?;
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if real(&top.path) == real(judged) {
        return None;
    }
    let share = share(top, sampled.samples);
    let chosen = options.stacks;
    let text = match (judge_sampled(top, time), chosen) {
        (Some((Stacks::Copies(_), lack)), chosen)
            if chosen.follow_pointers() && Stacks::can_copy() =>
        {
            format!("{share}; {lack}: record with -g dwarf")
        }
        (Some((Stacks::Copies(_), lack)), chosen) if chosen.follow_pointers() => {
            format!("{share}; {lack}")
        }
        (Some((fitting, keep)), Stacks::Copies(_))
            if fitting.follow_pointers() && !options.unwinds =>
        {
            format!("{share}; {keep}: -g fp is enough")
        }
        (Some((Stacks::Copies(_), lack)), _) => format!("{share}; {lack}, too"),
        (Some((_, keep)), _) => format!("{share}; {keep}"),
        (None, _) => format!("{share}; it is not known whether it keeps frame pointers"),
    };
    Some(text)
}

pub fn share(program: &SampledProgram, samples: u64) -> String {
    let name = program.path.file_name().unwrap_or_default().display();
    let percent = program.samples as f64 / samples.max(1) as f64 * 100.0;
    format!("{name} has {percent:.1} % of {} samples", grouped(samples))
}

// `None` if its code does not show it, or its file is not there or not known to be the build that
// ran.
pub fn judge_sampled(program: &SampledProgram, time: Time) -> Option<(Stacks, String)> {
    let finder = Finder::default();
    let binary = Arc::new(finder.open_named(&program.path).ok()?);
    if program.build_id.is_some() && binary.build_id() != program.build_id.as_ref() {
        return None;
    }
    let files = verdict::of_program(&Libraries::of(&binary, &finder));
    match verdict::judge(&files, time) {
        Verdict::Copies { file } => Some((
            Stacks::Copies(CopySize::default()),
            lack(&files, file, time),
        )),
        Verdict::FramePointers { beside } => {
            Some((Stacks::frame_pointers(), kept(&files, &beside)))
        }
        Verdict::Unknown => None,
    }
}

// How to record the stacks of what already runs, by the files that are mapped in it. A single
// process without frame pointers decides for all.
pub fn choose_running(target: &Target, wanted: Wanted) -> (Stacks, String) {
    let everybody;
    let pids: &[i32] = match (target, wanted.time) {
        (Target::Processes(pids) | Target::Threads(pids), _) => pids,
        (_, Time::OnCpu) => &[],
        // Anyone who runs now or later may wait; the C library is mostly the same for all.
        (_, Time::OffCpu) => {
            everybody = target.processes();
            &everybody
        }
    };
    let mut chosen = None;
    // Kernel threads have no files and do not count.
    for files in pids
        .iter()
        .filter_map(|&pid| of_process(pid))
        .take(PROCESSES)
    {
        let name = files
            .first()
            .map_or(String::new(), |file| file.name.clone());
        let choice = told(&files, &name, wanted);
        if matches!(choice.0, Stacks::Copies(_)) {
            return choice;
        }
        chosen = chosen.or(Some(choice));
    }
    chosen.unwrap_or_else(|| match wanted.time {
        // Programs of all kinds.
        Time::OnCpu if wanted.unwinds && Stacks::can_copy() && pids.is_empty() => {
            copies("right for any program", wanted)
        }
        Time::OnCpu => {
            let why = "call stacks: frame pointers (override with -g dwarf)";
            (Stacks::frame_pointers(), why.to_owned())
        }
        Time::OffCpu => unknown(
            "it is not known whether what waits keeps frame pointers",
            wanted,
        ),
    })
}

// The choice where the code cannot be asked, and the reason.
fn unknown(reason: &str, wanted: Wanted) -> (Stacks, String) {
    match wanted.time {
        Time::OffCpu if Stacks::can_copy() => copies(reason, wanted),
        _ => (
            Stacks::frame_pointers(),
            format!("call stacks: frame pointers ({reason})"),
        ),
    }
}

fn copies(reason: &str, wanted: Wanted) -> (Stacks, String) {
    let largest = wanted.largest;
    let how = match wanted.time {
        _ if wanted.unwinds => "unwound while it records".to_owned(),
        // The smallest copies do not shrink any more.
        Time::OnCpu if largest <= CopySize::default() => format!("whole stacks up to {largest}"),
        Time::OnCpu => format!(
            "whole stacks up to {largest}, less above {} MB/s",
            Options::COPIED_PER_SECOND / 1_000_000
        ),
        Time::OffCpu => format!("{largest} per sample, compressed"),
    };
    let why = format!("call stacks: DWARF, {how} ({reason}; override with -g fp)");
    (Stacks::Copies(largest), why)
}

// The program of a process, and the libraries that it has mapped.
fn of_process(pid: i32) -> Option<Vec<FileFrames>> {
    let finder = Finder::default();
    let process = Process::look(pid).ok()?;
    let stated = |path: &Path| finder.open_stated(process.root.as_deref(), path);
    let program = process.program.as_ref()?;
    // The link to the program leads to it even when its file is gone.
    let own = PathBuf::from(format!("/proc/{pid}/exe"));
    let binary = stated(program).or_else(|_| finder.open_named(&own)).ok()?;
    let file = |path: &Path, binary: &Binary| FileFrames {
        name: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        code: binary.code().map_or(0, |code| code.size()),
        frames: frame_pointers(binary),
        is_called: true,
        is_of_go: binary.has_distances(),
    };
    let mut files = vec![file(program, &binary)];
    let libraries = process
        .files
        .iter()
        .filter(|library| library.path != *program && !library.deleted);
    files.extend(libraries.take(LIBRARIES).filter_map(|library| {
        let binary = stated(&library.path).ok()?;
        Some(file(&library.path, &binary))
    }));
    Some(files)
}

fn told(files: &[FileFrames], name: &str, wanted: Wanted) -> (Stacks, String) {
    let time = wanted.time;
    match verdict::judge(files, time) {
        Verdict::Copies { file } if Stacks::can_copy() => copies(&lack(files, file, time), wanted),
        Verdict::Copies { file } => (
            Stacks::FramePointers,
            format!(
                "call stacks: frame pointers ({}, but the kernel copies no stacks on this machine, \
                 so they are incomplete)",
                lack(files, file, time)
            ),
        ),
        Verdict::FramePointers { beside } => {
            let (stacks, how) = by_pointers(files, &beside);
            (
                stacks,
                format!("call stacks: {how} ({})", kept(files, &beside)),
            )
        }
        Verdict::Unknown => unknown(
            &format!("{name} has no code that shows if it keeps them"),
            wanted,
        ),
    }
}

// How to follow frame pointers if these libraries keep none, in words as well.
fn by_pointers(files: &[FileFrames], beside: &[usize]) -> (Stacks, String) {
    let calls_back = beside.iter().any(|&library| !files[library].is_c_runtime());
    let is_of_go = files.first().is_some_and(|file| file.is_of_go);
    if (calls_back || is_of_go) && Stacks::can_copy() {
        let size = CopySize::TOP_WITH_LIBRARIES;
        let how = format!("frame pointers, {size} of the stack per sample");
        return (Stacks::Joined(size), how);
    }
    (Stacks::frame_pointers(), "frame pointers".to_owned())
}

// What one of the files lacks, and why that matters if only waits depend on it.
fn lack(files: &[FileFrames], index: usize, time: Time) -> String {
    let file = &files[index];
    let name = &file.name;
    let share = file.frames.lacking().unwrap_or(0.0) * 100.0;
    let digits = usize::from(share < 9.95);
    let on_cpu = verdict::judge(files, Time::OnCpu);
    let for_waits = time == Time::OffCpu && on_cpu != Verdict::Copies { file: index };
    // A library that is linked into the program may be what keeps none, however the program was
    // built.
    let keep_none = format!("{share:.digits$} % of {name}'s functions keep no frame pointer");
    if for_waits {
        format!("threads wait in {name}: {keep_none}")
    } else if file.frames.main_keeps_none && share <= 50.0 {
        format!("{name}'s main keeps no frame pointer")
    } else {
        keep_none
    }
}

fn kept(files: &[FileFrames], beside: &[usize]) -> String {
    let name = files.first().map_or("", |file| &file.name);
    let libraries = files.len().saturating_sub(1);
    if beside.is_empty() {
        let with = match libraries {
            0 => String::new(),
            1 => " and its library".to_owned(),
            n => format!(" and its {n} libraries"),
        };
        let verb = if libraries == 0 { "keeps" } else { "keep" };
        return format!("{name}{with} {verb} frame pointers");
    }
    let names: Vec<&str> = beside.iter().map(|&i| &*files[i].name).collect();
    let (told, verb) = match names.as_slice() {
        [one] => ((*one).to_owned(), "does"),
        [one, two] => (format!("{one} and {two}"), "do"),
        _ => (format!("{} of its libraries", names.len()), "do"),
    };
    format!("{name} keeps frame pointers; {told} {verb} not")
}
