//! Whether the stacks of a program can be found by frame pointers: it and its libraries together.
//!
//! One function without a frame pointer that uses the register for something else cuts the stack of
//! everything that it calls. So nearly all functions of the files that do the work have to keep
//! one:
//!
//! ```text
//!   app        90 KB of code   keeps them      the program itself, before all
//!   libapp.so  2 MB            keeps them      a library that carries the work: larger than the
//!                                              program by far, or the program has next to nothing
//!   libc.so.6  1.4 MB          keeps none      the language's runtime, called for a short while
//! ```
//!
//! A runtime library without frame pointers does not decide: on most distributions no program could
//! then be recorded by frame pointers. Samples in it may lack callers, which is reported.
//!
//! Off-CPU time is different: nearly every wait is a system call in the C library, so the innermost
//! frame in user space is one of its functions. Without frame pointers there, the function that
//! waits is missing from the stack. So each library through which a thread may wait decides.

use std::path::Path;

use super::functions::{FramePointers, frame_pointers};
use crate::binary::Libraries;
use crate::scan;

// The share of functions without frame pointers that is borne. Programs that are compiled with them
// have below 0.1 %; Rust programs that are not have 5 % and more, as the standard library comes
// compiled with them.
const BORNE: f64 = 0.01;
// The share of functions without frame pointers that is borne where fewer than `BORNE` cut
// stacks: the others only hide their callers. Some hundred functions of Go's runtime are written by
// hand, which is 2 % of a small program.
const HIDING: f64 = 0.05;
// A program with fewer functions than this that tell something has its work done by libraries.
const LAUNCHER: u64 = 4;
// Its code is not larger than this, in bytes.
const LAUNCHER_CODE: u64 = 64 << 10;
// How many times the program's code a library has that carries its work.
const LARGER: u64 = 16;
// The most libraries that are looked at.
const LIBRARIES: usize = 64;

// Runtime libraries of C, which every program has.
const OF_C: [&str; 14] = [
    "libc.",
    "libm.",
    "libmvec.",
    "ld-",
    "ld.",
    "libpthread.",
    "libdl.",
    "librt.",
    "libresolv.",
    "libutil.",
    "libgcc_s.",
    "libatomic.",
    "libanl.",
    "libnsl.",
];
// Libraries in which no thread waits: mathematics, and what loads, throws and counts. The dynamic
// linker of musl is its C library too.
const WITHOUT_WAITS: [&str; 6] = ["libm.", "libmvec.", "libgcc_s.", "libatomic.", "ld-", "ld."];
// The file name of musl, as it is mapped.
const MUSL: &str = "ld-musl";
const OF_CPP: [&str; 3] = ["libstdc++.", "libc++.", "libc++abi."];

/// A file of a program, and what its functions keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFrames {
    /// The name of the file, without directories.
    pub name: String,
    /// The bytes of its code.
    pub code: u64,
    /// What its functions keep.
    pub frames: FramePointers,
    /// Whether the program itself calls it, as far as is known.
    pub is_called: bool,
    /// Whether it is a Go program: assembly of Go's libraries keeps no frame pointer, in frames of
    /// up to some hundred bytes.
    pub is_of_go: bool,
}

impl FileFrames {
    /// Whether it is of the C library, which calls the program back rarely, and with small frames.
    pub fn is_c_runtime(&self) -> bool {
        is_of(self, &OF_C)
    }

    /// Whether too many of its functions keep none.
    pub fn lacks(&self) -> bool {
        let passes = |share: Option<f64>, borne: f64| share.is_some_and(|share| share > borne);
        self.frames.main_keeps_none
            || passes(self.frames.cutting(), BORNE)
            || passes(self.frames.lacking(), HIDING)
    }
}

/// How the stacks of a program can be found. Indices are those of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// By frame pointers. In these files samples may lack callers.
    FramePointers {
        /// Libraries that do not carry the work and keep none.
        beside: Vec<usize>,
    },
    /// Not by frame pointers, because of this file.
    Copies {
        /// The file that keeps none.
        file: usize,
    },
    /// Nothing is known of the program's own functions.
    Unknown,
}

/// Which time of threads is recorded, and so where the innermost frames of the stacks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Time on a processor: anywhere in the program and its libraries.
    OnCpu,
    /// Off-CPU time as well: most waits begin in the C library.
    OffCpu,
}

/// Looks at a program and its libraries, the program first. If it keeps no frame pointers itself,
/// its libraries are not read, as the verdict no longer depends on them.
pub fn of_program(libraries: &Libraries) -> Vec<FileFrames> {
    let mut files: Vec<FileFrames> = Vec::new();
    let called = called(libraries);
    for (index, binary) in libraries.files().take(LIBRARIES).enumerate() {
        let name = binary.path().file_name().unwrap_or_default();
        files.push(FileFrames {
            name: name.to_string_lossy().into_owned(),
            code: binary.code().map_or(0, |code| code.size()),
            frames: frame_pointers(binary),
            is_called: called.get(index).copied().unwrap_or(true),
            is_of_go: binary.has_distances(),
        });
        if files.len() == 1 && files[0].lacks() {
            break;
        }
    }
    files
}

/// For each file of a program, whether the program calls it; true where that is not known. `java`
/// is linked with a library for archives that it does not call itself.
pub fn called(libraries: &Libraries) -> Vec<bool> {
    let mut files = libraries.files();
    let small = files.next().filter(|program| {
        let code = program.code().map_or(0, |code| code.size());
        code <= LAUNCHER_CODE
    });
    let calls = small.and_then(|program| scan::calls(program, None).ok());
    let Some(calls) = calls else {
        return vec![true; files.count() + 1];
    };
    let definitions: Vec<_> = calls
        .imports
        .iter()
        .filter_map(|name| Some(libraries.definition(name)?.0.path().to_owned()))
        .collect();
    let is_called = |path: &Path| definitions.iter().any(|definition| definition == path);
    let rest = files.map(|library| is_called(library.path()));
    std::iter::once(true).chain(rest).collect()
}

/// Decides how the stacks of samples of this time are best found. `files` has the program first.
///
/// ```
/// use proftool::frame_pointers::FramePointers;
/// use proftool::frame_pointers::verdict::{FileFrames, Verdict, Time, judge};
/// let file = |name: &str, code, keeping, not_keeping| FileFrames {
///     name: name.into(),
///     code,
///     frames: FramePointers {
///         keeping,
///         not_keeping,
///         cutting: not_keeping / 2,
///         ..Default::default()
///     },
///     is_called: true,
///     is_of_go: false,
/// };
/// let app = file("app", 90_000, 300, 0);
/// let libc = file("libc.so.6", 1_400_000, 50, 950);
/// let beside = vec![1];
/// let files = [app, libc.clone()];
/// assert_eq!(judge(&files, Time::OnCpu), Verdict::FramePointers { beside });
/// assert_eq!(judge(&files, Time::OffCpu), Verdict::Copies { file: 1 });
/// let stripped = file("app", 90_000, 50, 250);
/// assert_eq!(judge(&[stripped, libc], Time::OnCpu), Verdict::Copies { file: 0 });
/// ```
pub fn judge(files: &[FileFrames], time: Time) -> Verdict {
    let judgement = judge_on_cpu(files);
    let is_copies = matches!(judgement, Verdict::Copies { .. });
    if time == Time::OnCpu || is_copies {
        return judgement;
    }
    let waits =
        |library: &FileFrames| library.name.starts_with(MUSL) || !is_of(library, &WITHOUT_WAITS);
    let is_c_library = |library: &FileFrames| is_of(library, &["libc.", MUSL]);
    // The C library is named where it is one of several.
    (1..)
        .zip(files.iter().skip(1))
        .filter(|(_, library)| library.lacks() && waits(library))
        .min_by_key(|(index, library)| (!is_c_library(library), *index))
        .map_or(judgement, |(file, _)| Verdict::Copies { file })
}

fn is_of(library: &FileFrames, names: &[&str]) -> bool {
    names.iter().any(|name| library.name.starts_with(name))
}

fn judge_on_cpu(files: &[FileFrames]) -> Verdict {
    let Some((program, libraries)) = files.split_first() else {
        return Verdict::Unknown;
    };
    if program.lacks() {
        return Verdict::Copies { file: 0 };
    }
    let launcher = program.frames.decided() < LAUNCHER;
    // What a launcher starts is the largest library that it calls. Others are larger than it, too.
    let largest = libraries
        .iter()
        .filter(|library| library.is_called)
        .filter(|library| !is_of(library, &OF_C) && library.code > program.code)
        .map(|library| library.code)
        .max();
    let carries = |library: &FileFrames| {
        let larger = library.code > program.code.saturating_mul(LARGER);
        !is_of(library, &OF_C)
            && if launcher {
                library.is_called && Some(library.code) == largest
            } else {
                larger && !is_of(library, &OF_CPP)
            }
    };
    let lacking = || (1..).zip(libraries).filter(|(_, library)| library.lacks());
    if let Some((file, _)) = lacking().find(|(_, library)| carries(library)) {
        return Verdict::Copies { file };
    }
    if program.frames.decided() == 0 && !libraries.iter().any(carries) {
        return Verdict::Unknown;
    }
    Verdict::FramePointers {
        beside: lacking().map(|(index, _)| index).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, code: u64, keeping: u64, not_keeping: u64) -> FileFrames {
        FileFrames {
            name: name.into(),
            code,
            frames: FramePointers {
                keeping,
                not_keeping,
                cutting: not_keeping / 2,
                undecided: 5,
                main_keeps_none: false,
            },
            is_called: true,
            is_of_go: false,
        }
    }

    #[test]
    fn a_library_decides_only_if_it_does_the_work() {
        let libc = file("libc.so.6", 1_400_000, 50, 950);
        let cpp = file("libstdc++.so.6", 1_300_000, 30, 900);
        let python = file("libpython3.11.so.1.0", 2_500_000, 0, 900);
        let app = file("app", 30_000, 60, 0);
        let large = file("app", 900_000, 900, 0);
        let beside = |beside: &[usize]| Verdict::FramePointers {
            beside: beside.to_vec(),
        };
        let files = [app.clone(), cpp.clone(), libc.clone()];
        assert_eq!(judge(&files, Time::OnCpu), beside(&[1, 2]));
        let files = [app, python.clone(), libc.clone()];
        assert_eq!(judge(&files, Time::OnCpu), Verdict::Copies { file: 1 });
        let files = [large, python.clone(), libc.clone()];
        assert_eq!(judge(&files, Time::OnCpu), beside(&[1, 2]));
        // A program of one function that calls the interpreter.
        let launcher = file("python3", 400, 1, 0);
        let files = [launcher.clone(), libc.clone(), python];
        assert_eq!(judge(&files, Time::OnCpu), Verdict::Copies { file: 2 });
        let kept = file("libpython3.11.so.1.0", 2_500_000, 900, 0);
        assert_eq!(judge(&[launcher.clone(), kept], Time::OnCpu), beside(&[]));
        assert_eq!(
            judge(&[launcher, cpp, libc], Time::OnCpu),
            Verdict::Copies { file: 1 }
        );
    }

    #[test]
    fn every_library_in_which_threads_wait_decides_for_off_cpu_time() {
        let app = file("app", 90_000, 300, 0);
        let libc = file("libc.so.6", 1_400_000, 50, 950);
        let kept = file("libc.so.6", 1_400_000, 950, 5);
        let libm = file("libm.so.6", 900_000, 5, 500);
        let musl = file("ld-musl-x86_64.so.1", 600_000, 5, 500);
        let linker = file("ld-linux-x86-64.so.2", 150_000, 5, 300);
        let cpp = file("libstdc++.so.6", 1_300_000, 30, 900);
        let nothing = file("app", 400, 0, 0);
        let waits = |files: &[&FileFrames]| {
            let files: Vec<FileFrames> = files.iter().map(|&file| file.clone()).collect();
            judge(&files, Time::OffCpu)
        };
        let beside = |beside: &[usize]| Verdict::FramePointers {
            beside: beside.to_vec(),
        };
        assert_eq!(waits(&[&app, &cpp, &libc]), Verdict::Copies { file: 2 });
        assert_eq!(waits(&[&app, &cpp, &kept]), Verdict::Copies { file: 1 });
        assert_eq!(waits(&[&app, &libm, &linker, &kept]), beside(&[1, 2]));
        assert_eq!(waits(&[&app, &musl]), Verdict::Copies { file: 1 });
        assert_eq!(waits(&[&nothing, &libc]), Verdict::Copies { file: 1 });
        assert_eq!(waits(&[&nothing, &kept]), Verdict::Unknown);
        assert_eq!(waits(&[&libc, &app]), Verdict::Copies { file: 0 });
        assert_eq!(waits(&[]), Verdict::Unknown);
    }

    #[test]
    fn a_launcher_is_judged_by_the_largest_library_that_it_calls() {
        let launcher = file("java", 400, 1, 0);
        let jli = file("libjli.so", 50_000, 90, 0);
        let zlib = FileFrames {
            is_called: false,
            is_of_go: false,
            ..file("libz.so.1", 100_000, 0, 90)
        };
        let beside = |beside: &[usize]| Verdict::FramePointers {
            beside: beside.to_vec(),
        };
        let files = [launcher.clone(), zlib.clone(), jli.clone()];
        assert_eq!(judge(&files, Time::OnCpu), beside(&[1]));
        // Of a process it is known that the virtual machine is there, and is the largest.
        let machine = file("libjvm.so", 12_000_000, 1000, 0);
        let zlib = FileFrames {
            is_called: true,
            is_of_go: false,
            ..zlib
        };
        assert_eq!(
            judge(&[launcher, zlib, jli, machine], Time::OnCpu),
            beside(&[1])
        );
    }

    #[test]
    fn functions_that_only_hide_their_callers_have_a_higher_limit() {
        let with = |not_keeping, cutting| {
            let mut file = file("app", 900_000, 1000 - not_keeping, not_keeping);
            file.frames.cutting = cutting;
            file.lacks()
        };
        assert!(!with(20, 9));
        assert!(with(20, 11));
        assert!(with(51, 0));
    }

    #[test]
    fn a_program_whose_code_shows_nothing_is_not_judged() {
        let nothing = file("app", 400, 0, 0);
        let libc = file("libc.so.6", 1_400_000, 50, 950);
        assert_eq!(judge(&[nothing, libc], Time::OnCpu), Verdict::Unknown);
        assert_eq!(judge(&[], Time::OnCpu), Verdict::Unknown);
    }

    #[test]
    fn a_few_hand_written_functions_are_tolerated() {
        let app = file("app", 2_700_000, 1745, 3);
        assert_eq!(
            judge(&[app], Time::OnCpu),
            Verdict::FramePointers { beside: vec![] }
        );
        let app = file("app", 300_000, 423, 31);
        assert_eq!(judge(&[app], Time::OnCpu), Verdict::Copies { file: 0 });
    }
}
