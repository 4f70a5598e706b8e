//! The rules that assign owners to functions.

use rustc_hash::FxHashSet;

use super::{Owner, OwnerKind};
use crate::base::Runtime;
use crate::profile::{Function, FunctionKind, ModuleId, Profile};

// The crates of Rust's standard library, and those that are part of it.
const STANDARD_CRATES: [&str; 9] = [
    "core",
    "alloc",
    "std",
    "test",
    "proc_macro",
    "panic_unwind",
    "std_detect",
    "compiler_builtins",
    "__rustc",
];
const STANDARD_NAMESPACES: [&str; 4] = ["std::", "__gnu_cxx::", "__cxxabiv1::", "__cxxabi"];
// Shared libraries that every program needs, up to the version in their names.
const RUNTIME_LIBRARIES: [&str; 12] = [
    "libc.so",
    "libc-",
    "libm.so",
    "libm-",
    "libpthread",
    "librt.so",
    "libdl.so",
    "ld-linux",
    "ld-musl",
    "libstdc++",
    "libgcc_s",
    "libc++",
];
// How a word of the names of generated functions begins that are not the user's: files of Node.js,
// packages of Java.
const LIBRARIES_OF_RUNTIMES: [&str; 6] = ["node:", "java.", "javax.", "jdk.", "sun.", "java/"];
// Code that a Java machine makes for itself, as its map of symbols names it.
const MADE_BY_JAVA: [&str; 7] = [
    "Interpreter",
    "I2C/C2I adapters",
    "vtable chunks",
    "DeoptimizationBlob",
    "ExceptionBlob",
    "SafepointBlob",
    "UncommonTrapBlob",
];
// Functions that start programs and threads.
const STARTS: [&str; 6] = [
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_csu_init",
    "start_thread",
    "clone3",
];

fn is_made_by_java(name: &str) -> bool {
    MADE_BY_JAVA.contains(&name) || name.starts_with("StubRoutines (")
}

// Whether a function starts programs or threads.
pub(super) fn is_start(function: &Function) -> bool {
    // Without the version of the symbol.
    let name = function.name.split('@').next();
    name.is_some_and(|name| STARTS.contains(&name))
}

pub(super) struct Rules<'a> {
    profile: &'a Profile,
    own: &'a [String],
    // The directories in which programs were compiled.
    workspaces: Vec<&'a str>,
    // The crates of the programs' `main`.
    crates: FxHashSet<&'a str>,
}

impl<'a> Rules<'a> {
    pub fn new(profile: &'a Profile, own: &'a [String]) -> Rules<'a> {
        let mut rules = Rules {
            profile,
            own,
            workspaces: Vec::new(),
            crates: FxHashSet::default(),
        };
        let modules = profile.modules.ids();
        let is_runtime = |it| Runtime::of_name(&profile.modules[it].name).is_some();
        let programs: Vec<ModuleId> = modules
            .filter(|&it| rules.is_program(it) && !is_runtime(it))
            .collect();
        for module in programs {
            let directories = profile
                .source
                .directories(module)
                .map(|it| it.trim_end_matches('/'));
            rules
                .workspaces
                .extend(directories.filter(|it| !is_foreign(it)));
        }
        for function in profile.functions.iter() {
            if let Some(name) = function.name.strip_suffix("::main")
                && rules.is_program(function.module)
                && !name.contains("::")
            {
                rules.crates.insert(name);
            }
        }
        rules
    }

    // Whether a module is a program, as far as its name says it.
    fn is_program(&self, module: ModuleId) -> bool {
        let name = &self.profile.modules[module].name;
        !name.contains(".so") && !name.starts_with('[')
    }

    pub fn owner(&self, function: &Function) -> Owner {
        let owner = self.by_rules(function);
        if self.own.is_empty() || matches!(owner.kind, OwnerKind::Kernel | OwnerKind::Mark) {
            return owner;
        }
        let path = function.declared_at.as_ref().map_or("", |line| &line.file);
        let module = &self.profile.modules[function.module];
        let is_own = |own: &String| {
            if own.contains('/') {
                is_below(path, own)
            } else {
                *own == owner.name || *own == module.name
            }
        };
        let kind = match owner.kind {
            _ if self.own.iter().any(is_own) => OwnerKind::Project,
            OwnerKind::Project => OwnerKind::Library,
            other => other,
        };
        Owner { kind, ..owner }
    }

    fn by_rules(&self, function: &Function) -> Owner {
        let module = &self.profile.modules[function.module];
        if matches!(function.kind, FunctionKind::Mark | FunctionKind::Row) {
            return owner(&function.name, OwnerKind::Mark);
        }
        if module.is_kernel() || self.profile.code.is_kernel(function.module) {
            return owner("[kernel]", OwnerKind::Kernel);
        }
        let path = function.declared_at.as_ref().map(|line| line.file.as_str());
        // A runtime's own code is not what someone wrote who runs a script with it.
        let is_runtime = Runtime::of_name(&module.name).is_some();
        let known = path.and_then(|path| self.by_path(path, function));
        match known {
            Some(known) if !(is_runtime && known.kind == OwnerKind::Project) => return known,
            _ if is_runtime => return owner(&module.name, OwnerKind::Library),
            _ => {}
        }
        let is_generated = module.name.starts_with("[generated");
        let is_library = |word: &str| LIBRARIES_OF_RUNTIMES.iter().any(|it| word.starts_with(it));
        if is_generated
            && (is_made_by_java(&function.name) || function.name.split(' ').any(is_library))
        {
            return owner("runtime", OwnerKind::Library);
        }
        if RUNTIME_LIBRARIES
            .iter()
            .any(|it| module.name.starts_with(it))
            || module.name == "[vdso]"
        {
            return owner(&module.name, OwnerKind::Standard);
        }
        // In a program of Rust `main` is made by the compiler, and calls that of the crate.
        let is_generated = function.name == "main" && !self.crates.is_empty();
        if is_generated || is_start(function) {
            return owner("start-up", OwnerKind::Standard);
        }
        self.by_name(function)
    }

    fn by_path(&self, path: &str, function: &Function) -> Option<Owner> {
        let after = |mark: &str| path.find(mark).map(|at| &path[at + mark.len()..]);
        if let Some(rest) = after("/registry/src/") {
            let package = rest.split('/').nth(1)?;
            // A program that was installed from a registry has no other workspace.
            let of_main = crate_of(&function.name).is_some_and(|it| self.crates.contains(it));
            let kind = if of_main && self.workspaces.is_empty() {
                OwnerKind::Project
            } else {
                OwnerKind::Library
            };
            return Some(owner(without_version(package), kind));
        }
        if path.contains("/git/checkouts/") {
            let name = crate_of(&function.name)?;
            return Some(owner(name, OwnerKind::Library));
        }
        let of_rust = path.starts_with("/rustc/") || path.contains("/lib/rustlib/src/rust/");
        if let Some(rest) = after("/library/").filter(|_| of_rust) {
            let name = rest.split('/').next()?;
            return Some(owner(name, OwnerKind::Standard));
        }
        if path.starts_with("/rust/deps/") || path.contains("/include/c++/") {
            return Some(owner("std", OwnerKind::Standard));
        }
        if let Some(rest) = after("/vendor/").filter(|_| crate_of(&function.name).is_some()) {
            let package = rest.split('/').next()?;
            return Some(owner(without_version(package), OwnerKind::Library));
        }
        if let Some((root, inside)) = path.split_once("/src/")
            && is_go(root)
        {
            let package = inside
                .rsplit_once('/')
                .map_or(inside, |(package, _)| package);
            return Some(owner(package, OwnerKind::Standard));
        }
        if let Some(rest) = after("/pkg/mod/") {
            let module = rest.split('@').next()?;
            return Some(owner(module, OwnerKind::Library));
        }
        if path.starts_with("/usr/lib/gcc/") {
            return Some(owner("gcc", OwnerKind::Standard));
        }
        for include in ["/usr/include/", "/usr/local/include/"] {
            if let Some(rest) = path.strip_prefix(include) {
                let (directory, _) = rest.split_once('/').unwrap_or(("libc", ""));
                let is_system = directory.contains("linux-gnu") || directory == "bits";
                return Some(if is_system || directory == "libc" {
                    owner("libc", OwnerKind::Standard)
                } else {
                    owner(directory, OwnerKind::Library)
                });
            }
        }
        let inside = self.workspaces.iter().filter(|it| is_below(path, it));
        let workspace = inside.max_by_key(|it| it.len())?;
        // Programs of one package are crates of their own, also where no sample has `main`.
        let is_program = |it: &&str| self.crates.contains(it) || is_file_of_program(path, it);
        let of_main = crate_of(&function.name).filter(is_program);
        let name = of_main.unwrap_or_else(|| part_of(path, workspace));
        Some(owner(name, OwnerKind::Project))
    }

    // The owner of a function whose declaration is not known, by its name and module.
    fn by_name(&self, function: &Function) -> Owner {
        let module = &self.profile.modules[function.module];
        let name = function.name.as_str();
        let is_program = self.is_program(function.module);
        let path = path_of(name);
        if name.contains('(') && STANDARD_NAMESPACES.iter().any(|it| path.starts_with(it)) {
            return owner("std", OwnerKind::Standard);
        }
        let linkage = function.linkage_name.as_deref();
        let is_cpp = linkage.is_some_and(|it| it.starts_with("_Z") && !it.starts_with("_ZN"))
            || name.contains('(');
        if let Some(of) = crate_of(name).filter(|_| !is_cpp) {
            let kind = match of {
                of if STANDARD_CRATES.contains(&of) => OwnerKind::Standard,
                of if self.crates.contains(of) || self.crates.is_empty() => OwnerKind::Project,
                _ => OwnerKind::Library,
            };
            let kind = match kind {
                OwnerKind::Project if !is_program && !module.name.is_empty() => OwnerKind::Library,
                other => other,
            };
            return owner(of, kind);
        }
        let kind = if is_program || module.name.starts_with("[generated") {
            OwnerKind::Project
        } else {
            OwnerKind::Library
        };
        let workspace = self.workspaces.first().filter(|_| is_program);
        let name = workspace.and_then(|it| it.rsplit('/').next());
        match (name, module.name.is_empty()) {
            (Some(name), _) => owner(name, kind),
            (None, true) => owner("program", kind),
            (None, false) => owner(&module.name, kind),
        }
    }
}

/// Whether a directory is called as Go's installations are: `/usr/local/go`, or `go-1.19` and
/// `go1.21.3` anywhere. `~/go` holds what its user wrote.
fn is_go(root: &str) -> bool {
    let (around, name) = root.rsplit_once('/').unwrap_or(("", root));
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    match name.strip_prefix("go") {
        Some("") => matches!(around, "/usr/local" | "/usr/lib" | "/opt"),
        Some(version) => version.chars().all(is_version),
        None => false,
    }
}

fn owner(name: &str, kind: OwnerKind) -> Owner {
    Owner {
        name: name.to_owned(),
        kind,
    }
}

// No project is compiled in the directory of a package, or of a toolchain.
fn is_foreign(directory: &str) -> bool {
    directory.is_empty()
        || directory == "/"
        || directory.contains("/registry/src/")
        || directory.contains("/git/checkouts/")
        || directory.starts_with("/rustc/")
        || directory.starts_with("/usr/src/glibc")
        || directory.contains("/lib/rustlib/")
}

fn is_below(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

// The package, which is the directory around `src`; else the first directory below the workspace;
// else the workspace.
fn part_of<'p>(path: &'p str, workspace: &'p str) -> &'p str {
    let last = |path: &'p str| path.trim_end_matches('/').rsplit('/').next();
    let inside = path
        .get(workspace.trim_end_matches('/').len()..)
        .unwrap_or_default();
    for sources in ["/src/", "/tests/", "/examples/", "/benches/"] {
        if let Some(at) = inside.rfind(sources) {
            let before = &path[..path.len() - inside.len() + at];
            return last(before).unwrap_or(before);
        }
    }
    match inside.trim_start_matches('/').split_once('/') {
        Some((directory, _)) if !matches!(directory, "." | "..") => directory,
        _ => last(workspace).unwrap_or(workspace),
    }
}

// Whether a source file is where Cargo expects a program with this name: `src/bin/load-test.rs` for
// `load_test`.
fn is_file_of_program(path: &str, name: &str) -> bool {
    ["/src/bin/", "/examples/", "/tests/", "/benches/"]
        .iter()
        .filter_map(|it| path.rsplit_once(it))
        .filter_map(|(_, inside)| inside.split('/').next())
        .any(|it| it.strip_suffix(".rs").unwrap_or(it).replace('-', "_") == name)
}

// `mio` of `mio-1.0.3`.
fn without_version(package: &str) -> &str {
    let version = package.match_indices('-');
    let is_version =
        |(at, _): &(usize, &str)| package[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let at = { version }.find(is_version).map(|(at, _)| at);
    at.map_or(package, |at| &package[..at])
}

// A name of C++ has the return type before it.
fn path_of(name: &str) -> &str {
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in name.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && at > start => break,
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &name[start..]
}

// The first segment of a name, where it has segments: `app` of `<app::Item as b::C>::f`.
fn crate_of(name: &str) -> Option<&str> {
    let mut rest = name;
    for mark in ["<", "&", "mut ", "dyn ", "[", "*const ", "*mut "] {
        rest = rest.strip_prefix(mark).unwrap_or(rest);
    }
    let (first, _) = rest.split_once("::")?;
    let is_word = first.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_word && !first.is_empty()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::is_made_by_java;

    #[test]
    fn a_method_whose_name_begins_as_javas_own_code_is_the_users() {
        assert!(is_made_by_java("Interpreter") && is_made_by_java("StubRoutines (1)"));
        for own in [
            "void Interpreter.run()",
            "InterpreterLoop",
            "StubRoutines.make",
        ] {
            assert!(!is_made_by_java(own), "{own}");
        }
    }
}
