//! The input of a compiler or a linker, from its arguments.
//!
//! ```text
//! rustc --crate-name serde … src/lib.rs                   rustc serde
//! rustc --crate-name build_script_build … syn-2.0/build.rs  rustc syn-2.0/build.rs
//! cc1 -quiet … lib/parse.c -dumpbase parse.c …            cc1 lib/parse.c
//! ld … -o app …                                           ld app
//! ```
//!
//! The arguments of other programs are not kept, as they may contain secrets.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::base::utf8;

// The longest name that is kept, in bytes. Paths of sources are shorter.
const NAME_MAX: usize = 200;

// Options, without their dashes, with a value after them that is no source, whatever it ends in.
const WITH_VALUE: [&str; 22] = [
    "o",
    "MF",
    "MT",
    "MQ",
    "I",
    "D",
    "U",
    "include",
    "imacros",
    "isystem",
    "iquote",
    "idirafter",
    "dumpbase",
    "dumpbase-ext",
    "dumpdir",
    "auxbase",
    "auxbase-strip",
    "main-file-name",
    "dependency-file",
    "include-pch",
    "fdebug-compilation-dir",
    "T",
];

const SOURCES: [&str; 26] = [
    "c", "cc", "cpp", "cxx", "c++", "C", "cp", "CPP", "ii", "i", "m", "mm", "h", "hpp", "cu", "f",
    "F", "f90", "F90", "f95", "s", "S", "sx", "ll", "bc", "adb",
];

const COMPILERS: [&str; 18] = [
    "cc1",
    "cc1plus",
    "cc1obj",
    "cc1objplus",
    "f951",
    "gnat1",
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "gfortran",
    "as",
    "icx",
    "icpx",
    "nvcc",
    "tcc",
];

const LINKERS: [&str; 9] = [
    "ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold", "lld", "mold", "collect2", "lto1",
];

/// Names what a process does whose arguments these are, each ended by a zero; `None` if it is no
/// compiler or linker, or does not say.
pub(in crate::sampler) fn job_name(arguments: &[u8]) -> Option<String> {
    let mut arguments = arguments.split(|&byte| byte == 0).map(utf8);
    let program = arguments.next()?;
    let program = Path::new(program.as_ref())
        .file_name()?
        .to_str()?
        .to_owned();
    let arguments: Vec<_> = arguments.collect();
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let tool = tool(&program);
    let what = if matches!(tool, "rustc" | "rustdoc" | "clippy-driver") {
        rust_crate(&arguments)
    } else if LINKERS.contains(&tool) {
        value_of("o", &arguments).map(str::to_owned)
    } else if COMPILERS.contains(&tool) {
        sources(&arguments).or_else(|| value_of("o", &arguments).map(str::to_owned))
    } else {
        None
    };
    let mut name = format!("{program} {}", what?);
    while name.len() > NAME_MAX {
        name.pop();
    }
    Some(name)
}

/// The name of a tool without the machine that it is for and its version: `gcc` of
/// `x86_64-linux-gnu-gcc-12`.
fn tool(program: &str) -> &str {
    let is_version = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let name = match program.rsplit_once('-') {
        Some((name, version)) if is_version(version) => name,
        _ => program,
    };
    match name.rsplit_once('-') {
        Some((_, tool)) if COMPILERS.contains(&tool) || LINKERS.contains(&tool) => tool,
        _ => name,
    }
}

/// What follows an option, which is named without its dashes, as a word of its own or after `=`.
fn value_of<'a>(option: &str, arguments: &[&'a str]) -> Option<&'a str> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let name = argument.strip_prefix('-').map(without_dashes);
        match name.and_then(|name| name.strip_prefix(option)) {
            Some("") => return arguments.next().copied().filter(|value| !value.is_empty()),
            Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
            _ => {}
        }
    }
    None
}

fn without_dashes(option: &str) -> &str {
    option.trim_start_matches('-')
}

// The crate's name. Those of build scripts are all alike, so their source stands for them.
fn rust_crate(arguments: &[&str]) -> Option<String> {
    let name = value_of("crate-name", arguments);
    let is_source = |argument: &&&str| argument.ends_with(".rs") && !argument.starts_with('-');
    let source = arguments.iter().find(is_source);
    match (name, source) {
        (Some(name), Some(source)) if name.starts_with("build_script_") => Some(end_of(source)),
        (Some("___"), _) | (None, None) => None,
        (Some(name), _) => Some(name.to_owned()),
        (None, Some(source)) => Some(end_of(source)),
    }
}

fn end_of(path: &str) -> String {
    let mut parts = Path::new(path).iter().rev().map(OsStr::as_bytes).map(utf8);
    let file = parts.next().unwrap_or_default();
    match parts.next() {
        Some(folder) => format!("{folder}/{file}"),
        None => file.into_owned(),
    }
}

/// The source; the first if there are several, and how many more.
fn sources(arguments: &[&str]) -> Option<String> {
    let mut found: Vec<&str> = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix('-') {
            Some(option) if WITH_VALUE.contains(&option) => _ = arguments.next(),
            Some(_) => {}
            None if is_source(argument) && !found.contains(argument) => found.push(argument),
            None => {}
        }
    }
    match found.len() {
        0 => None,
        1 => Some(found[0].to_owned()),
        more => Some(format!("{} and {} more", found[0], more - 1)),
    }
}

/// Whether it is the name of a source. What compilers pass on to each other is not.
fn is_source(argument: &str) -> bool {
    let extension = Path::new(argument).extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| SOURCES.contains(&extension))
        && !argument.starts_with("/tmp/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_named(command: &str, expected: Option<&str>) {
        let arguments = command.replace(' ', "\0") + "\0";
        assert_eq!(job_name(arguments.as_bytes()).as_deref(), expected);
    }

    #[test]
    fn a_crate_is_named_and_a_build_script_by_its_folder() {
        is_named(
            "/usr/bin/rustc --crate-name serde --edition=2021 /r/serde-1/src/lib.rs -C opt-level=3",
            Some("rustc serde"),
        );
        is_named(
            "rustc --crate-name build_script_build --edition=2021 /r/syn-2.0.1/build.rs",
            Some("rustc syn-2.0.1/build.rs"),
        );
        is_named("rustc -vV", None);
        is_named("rustc - --crate-name ___ --print=file-names", None);
        is_named("rustc src/main.rs", Some("rustc src/main.rs"));
    }

    #[test]
    fn a_compiler_is_named_with_its_source() {
        is_named(
            "/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet -MD a.d -include conf.h lib/parse.c \
             -dumpbase parse.c -dumpbase-ext .c -o /tmp/cc1.s",
            Some("cc1 lib/parse.c"),
        );
        is_named(
            "/usr/lib/llvm-14/bin/clang -cc1 -main-file-name x.cpp -D X=a.c -o x.o -x c++ \
             src/x.cpp",
            Some("clang src/x.cpp"),
        );
        is_named(
            "x86_64-linux-gnu-gcc-12 -c a.c",
            Some("x86_64-linux-gnu-gcc-12 a.c"),
        );
        is_named("gcc a.c b.c c.c -o app", Some("gcc a.c and 2 more"));
        is_named("gcc a.o b.o -o app", Some("gcc app"));
        is_named("as --64 -o parse.o /tmp/ccq.s", Some("as parse.o"));
        is_named("gcc --version", None);
    }

    #[test]
    fn a_linker_is_named_with_what_it_makes() {
        is_named("/usr/bin/ld -pie -o app a.o", Some("ld app"));
        is_named("collect2 -pie -o app a.o", Some("collect2 app"));
    }

    #[test]
    fn of_other_programs_nothing_is_kept() {
        is_named("curl -u me:secret -o page.c example.c", None);
        is_named("", None);
        is_named("/", None);
    }
}
