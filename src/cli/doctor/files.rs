//! Whether a program and its libraries have what stacks and names need.

use std::path::Path;
use std::sync::Arc;

use proftool::binary::{Binary, Diagnosis, Finder, InfoLocation, Libraries};
use proftool::frame_pointers::verdict::FileFrames;
use proftool::frame_pointers::{FramePointers, frame_pointers};
use proftool::view::doctor::{Check, LIBRARY, Status};

use super::super::failure::{fragment, hinted};
use super::{fine, told};

const LINES: &str = "C and C++: build with -g; Rust: debug = 1 under [profile.release] in \
    Cargo.toml";
const PACKAGE: &str = "install the debug symbols of its package; on Debian, dpkg -S FILE names the \
    package, and the debug archive has PACKAGE-dbgsym (libc6-dbg for libc)";
const PLACES: usize = 3;

// Checks a program, or a library, and briefly the libraries that it needs.
pub fn of_program(path: &Path) -> anyhow::Result<Vec<Check>> {
    let finder = Finder::default();
    let binary = finder.open_named(path).map_err(|error| {
        let reason = fragment(&error.to_string());
        hinted(format!("could not open {}: {reason}", path.display()), None)
    })?;
    let binary = Arc::new(binary);
    let libraries = Libraries::of(&binary, &finder);
    let mut checks = with_libraries(
        &binary,
        &libraries.files().skip(1).cloned().collect::<Vec<_>>(),
    );
    let name = file_name(&binary);
    for problem in &libraries.problems {
        let remedy = "install it, or set LD_LIBRARY_PATH when you run the program";
        checks.push(told(
            &name,
            "libraries",
            Status::Warn,
            problem.clone(),
            remedy,
        ));
    }
    Ok(checks)
}

pub fn with_libraries(program: &Binary, libraries: &[Arc<Binary>]) -> Vec<Check> {
    let file = |binary: &Binary| FileFrames {
        is_called: true,
        is_of_go: binary.has_distances(),
        name: file_name(binary),
        code: binary.code().map_or(0, |code| code.size()),
        frames: frame_pointers(binary),
    };
    let mut checks = of_binary(program, &file(program));
    let beside = libraries.iter();
    let mut beside: Vec<Check> = beside
        .map(|library| of_library(library, &file(library)))
        .collect();
    // What one remedy is good for stands together.
    beside.sort_by(|a, b| (b.status, &b.remedy).cmp(&(a.status, &a.remedy)));
    checks.extend(beside);
    checks
}

fn of_binary(binary: &Binary, file: &FileFrames) -> Vec<Check> {
    let name = &*file.name;
    let diagnosis = binary.diagnosis();
    let mut checks = vec![
        frames(file),
        symbols(name, &diagnosis),
        lines(name, binary, &diagnosis),
    ];
    checks.push(match binary.build_id() {
        Some(id) => fine(name, "build id", id.to_string()),
        None => told(
            name,
            "build id",
            Status::Warn,
            "there is none: proftool cannot check that a file is the one that ran, or find its \
             debug file",
            "link with -Wl,--build-id",
        ),
    });
    checks.push(debug_file(name, &diagnosis));
    let linking = match (diagnosis.is_linked, diagnosis.is_static) {
        (false, _) => "not linked: an object file or kernel module",
        (true, true) => "static: the file contains its libraries",
        (true, false) => "dynamic",
    };
    checks.push(fine(name, "linking", linking));
    for problem in binary.problems() {
        checks.push(told(
            name,
            "file",
            Status::Bad,
            problem,
            "build or install it again",
        ));
    }
    checks
}

fn frames(file: &FileFrames) -> Check {
    let name = &*file.name;
    let check = "frame pointers";
    let FramePointers {
        keeping,
        not_keeping,
        main_keeps_none,
        ..
    } = file.frames;
    let decided = file.frames.decided();
    if decided == 0 && !main_keeps_none {
        let found = "unknown: no function shows whether it keeps one";
        return noted(name, check, found.to_owned());
    }
    if !file.lacks() {
        let found = format!("kept by {keeping} of the {decided} functions that need one");
        return fine(name, check, found);
    }
    let found = if main_keeps_none {
        "main does not keep one".to_owned()
    } else {
        let share = share(file);
        format!(
            "{share} of the functions that need one do not keep it ({not_keeping} of {decided})"
        )
    };
    // What `record` sees to by itself is nothing to change.
    let found = format!("{found}; record copies its stacks and unwinds them");
    noted(name, check, found)
}

fn noted(name: &str, check: &'static str, found: String) -> Check {
    Check {
        status: Status::Note,
        ..fine(name, check, found)
    }
}

fn share(file: &FileFrames) -> String {
    let percent = file.frames.lacking().unwrap_or(0.0) * 100.0;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$} %")
}

fn symbols(name: &str, diagnosis: &Diagnosis) -> Check {
    match diagnosis.symbols {
        InfoLocation::Here => fine(name, "symbols", "in the file"),
        InfoLocation::DebugFile => fine(name, "symbols", "stripped; in its debug file"),
        InfoLocation::Nowhere if diagnosis.mini_symbols => fine(
            name,
            "symbols",
            "stripped; compressed names in .gnu_debugdata",
        ),
        InfoLocation::Nowhere => {
            let found = if diagnosis.exports {
                "stripped: only exported functions have names"
            } else {
                "stripped: functions have no names"
            };
            let remedy =
                format!("do not strip it (no -s, no strip; Cargo: strip = false), or {PACKAGE}");
            told(name, "symbols", Status::Bad, found, remedy)
        }
    }
}

fn lines(name: &str, program: &Binary, diagnosis: &Diagnosis) -> Check {
    let found = match diagnosis.lines {
        InfoLocation::Here if diagnosis.is_split => {
            "in the file; the rest of the debug information is in .dwo files, and inlined calls \
             are shown only while those files are where they were built"
        }
        InfoLocation::Here => "in the file",
        InfoLocation::DebugFile => "in its debug file",
        InfoLocation::Nowhere => {
            let found = "none: source lines and inlined calls are not shown";
            return told(name, "line tables", Status::Warn, found, LINES);
        }
    };
    match program.lines().units_with_functions() {
        (_, 0) => fine(name, "line tables", found),
        (all, bare) => {
            let found = format!(
                "{found}; {bare} of {all} compilation units have line tables only: inlined \
                 functions have unqualified names and no declaration line"
            );
            told(name, "line tables", Status::Warn, found, LINES)
        }
    }
}

fn debug_file(name: &str, diagnosis: &Diagnosis) -> Check {
    let check = "debug file";
    if let Some(path) = &diagnosis.debug_file {
        return fine(name, check, format!("found: {}", path.display()));
    }
    if diagnosis.lines == InfoLocation::Here {
        return fine(name, check, "not needed");
    }
    let mut found = "not found".to_owned();
    for (i, path) in diagnosis.looked.iter().take(PLACES).enumerate() {
        found.push_str(if i == 0 { "; searched " } else { ", " });
        found.push_str(&path.display().to_string());
    }
    let more = diagnosis.looked.len().saturating_sub(PLACES);
    if more > 0 {
        found.push_str(&format!(" and {more} more paths"));
    }
    told(name, check, Status::Warn, found, PACKAGE)
}

fn of_library(library: &Binary, file: &FileFrames) -> Check {
    let diagnosis = library.diagnosis();
    let nameless = diagnosis.symbols == InfoLocation::Nowhere && !diagnosis.mini_symbols;
    let mut found = match file.frames.lacking() {
        // What is to be changed there is something else.
        _ if nameless => String::new(),
        None => "frame pointers unknown".to_owned(),
        Some(_) if file.lacks() => format!("{} of functions keep no frame pointer", share(file)),
        Some(_) => "keeps frame pointers".to_owned(),
    };
    found.push_str(match diagnosis.symbols {
        InfoLocation::Here => "; symbols: in the file",
        InfoLocation::DebugFile => "; symbols: in its debug file",
        InfoLocation::Nowhere if diagnosis.mini_symbols => "; symbols: compressed, in the file",
        InfoLocation::Nowhere if diagnosis.exports => "; symbols: exported functions only",
        InfoLocation::Nowhere => "; symbols: none",
    });
    found.push_str(match diagnosis.lines {
        InfoLocation::Here => "; source lines: in the file",
        InfoLocation::DebugFile => "; source lines: in its debug file",
        InfoLocation::Nowhere => "; source lines: none",
    });
    if library.build_id().is_none() {
        found.push_str("; build ID: none");
    }
    let check = fine(&file.name, LIBRARY, found.trim_start_matches("; "));
    if !nameless {
        return check;
    }
    Check {
        status: Status::Warn,
        remedy: Some(PACKAGE.to_owned()),
        ..check
    }
}

fn file_name(binary: &Binary) -> String {
    let path = binary.path();
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
