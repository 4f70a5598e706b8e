//! The walls of the house: the map in `src/ARCHITECTURE.md` is held against the code.
//!
//! The map is five tables of the crate's page: rooms, rooms that name only types of others, rooms in
//! rooms, packages, files with unsafe code. [`rules::check`] demands what they say, and besides that no circles between files and no
//! crowded folders. A small sound tree passes below, and each kind of violation planted into it is
//! reported with its place.

mod circles;
mod comments;
mod documents;
mod errors;
mod interface;
mod kinds;
mod layout;
mod map;
mod names;
mod rules;
mod signatures;
mod source;
mod speech;
mod threads;
mod tree;
mod types;

use tree::Tree;

#[test]
fn the_code_keeps_to_the_map() {
    let found = rules::check(&Tree::of_this_crate());
    assert!(
        found.is_empty(),
        "the code leaves the map:\n{}",
        found.join("\n")
    );
}

/// A sound house of five rooms.
fn sound() -> Tree {
    let map = "\
        # A page\n\
        \n\
        | room | owns | may import |\n\
        |---|---|---|\n\
        | `base` | numbers | std |\n\
        | `binary` | files | base |\n\
        | `view` | tables | base |\n\
        | `export` | bytes | view |\n\
        | `cli` | the command line | the library's public items |\n\
        | `main` | the start | cli, the library's public items |\n\
        \n\
        | room | names only types of |\n\
        |---|---|\n\
        | `export` | view |\n\
        \n\
        | room in a room | owns | may import of the room around it |\n\
        |---|---|---|\n\
        | `cli/top` | the screen | args |\n\
        \n\
        | package | at home in |\n\
        |---|---|\n\
        | `gimli` | binary |\n\
        | `any-how` | cli |\n\
        | `std::net` | nowhere |\n\
        \n\
        | file with unsafe code | what for |\n\
        |---|---|\n\
        | `binary/map.rs` | mapping |\n";
    Tree::new(&[
        (
            "Cargo.toml",
            "[package]\nname = \"x\"\n[dependencies]\n# a\ngimli = \"1\"\nany-how = \"1\"\n[lints]\nx = 1\n",
        ),
        ("src/ARCHITECTURE.md", map),
        (
            "src/lib.rs",
            "//! A page.\npub mod base;\npub mod binary;\npub mod export;\npub mod view;\n",
        ),
        (
            "src/base.rs",
            "//! Numbers.\n#[macro_export]\nmacro_rules! id { () => { $crate::base::Id } }\n\
             pub use crate::id as define_id;\npub struct Id;\npub enum Kind { A }\n\
             pub fn f() { use Kind::*; let _ = A; }\n",
        ),
        (
            "src/binary/mod.rs",
            "//! Files. crate::view is only named in a comment.\nmod map;\nuse crate::base::Id;\n\
             /// [`crate::view`] too.\npub fn f(_: Id) -> &'static str { \"use crate::view;\" }\n",
        ),
        (
            "src/binary/map.rs",
            "//! Mapping.\nuse super::super::base::{self, Id as Number};\nuse gimli::Reader;\n\
             fn f() { unsafe {} }\nfn g(x: X) { x.crate_map::<u8>().view::<u8>() }\n",
        ),
        (
            "src/view/mod.rs",
            "//! Tables.\nuse std::io::Write;\nmod cell;\n",
        ),
        (
            "src/view/cell.rs",
            "use super::super::base;\nuse super::Table;\n",
        ),
        (
            "src/export/mod.rs",
            "//! Bytes.\nmod json;\nuse crate::view::{Table as Rows, cell::Cell, cell::LONGEST};\n",
        ),
        (
            "src/export/json.rs",
            "use super::Rows;\nfn f(rows: &Rows) { rows.write(Cell::Nothing); g(Vec::new()) }\n\
             mod tests { use crate::view::table; }\n",
        ),
        (
            "src/main.rs",
            "//! The start.\nmod cli;\nfn main() { cli::run() }\n",
        ),
        (
            "src/cli/mod.rs",
            "//! The command line.\nmod args;\nuse any_how::Result;\nuse proftool::view::Table;\n",
        ),
        ("src/cli/args.rs", "use crate::cli::run;\n"),
        (
            "src/cli/top/mod.rs",
            "//! The screen.\nmod key;\nuse super::args::Args;\n",
        ),
        ("src/cli/top/key.rs", "use super::Page;\n"),
    ])
}

/// What the checker says when `path` of the sound tree is changed from `old` to `new`.
fn planted(path: &str, old: &str, new: &str) -> Vec<String> {
    let mut tree = sound();
    tree.edit(path, old, new);
    rules::check(&tree)
}

/// Adds a line at the end of `path` and expects to be told `message`, and nothing else.
#[track_caller]
fn line_is_told(path: &str, line: &str, message: &str) {
    let mut tree = sound();
    tree.append(path, &format!("{line}\n"));
    assert_eq!(rules::check(&tree), [message]);
}

#[test]
fn a_sound_tree_passes() {
    assert_eq!(rules::check(&sound()), Vec::<String>::new());
}

#[test]
fn an_import_that_the_map_does_not_allow_is_reported() {
    let told = "src/view/cell.rs:3: `view` may not import `binary`";
    line_is_told("src/view/cell.rs", "use crate::binary::f;", told);
    line_is_told("src/view/cell.rs", "use super::super::binary;", told);
    line_is_told("src/view/cell.rs", "use super::super::{binary::f};", told);
    line_is_told(
        "src/view/cell.rs",
        "use crate::{base::Id, binary::f};",
        told,
    );
    line_is_told("src/view/cell.rs", "fn g() { crate::binary::f(0) }", told);
    line_is_told(
        "src/view/cell.rs",
        "fn g() { v(&[crate::binary::X]) }",
        told,
    );
    line_is_told("src/view/cell.rs", "fn g() { m!(crate::binary::X) }", told);
    line_is_told("src/view/cell.rs", "type T = Vec<crate::binary::X>;", told);
    line_is_told("src/view/cell.rs", "pub use crate::binary;", told);
    line_is_told(
        "src/view/cell.rs",
        "mod a { use super::super::super::binary::f; }",
        told,
    );
    line_is_told(
        "src/view/cell.rs",
        "fn g() { for _ in 0..crate::binary::N {} }",
        told,
    );
}

#[test]
fn a_path_around_the_map_is_reported() {
    line_is_told(
        "src/view/cell.rs",
        "use crate as root;",
        "src/view/cell.rs:3: the crate's root is imported; import from a room",
    );
    line_is_told(
        "src/view/cell.rs",
        "use crate::kitchen::Knife;",
        "src/view/cell.rs:3: `crate::kitchen` is no room of the map",
    );
    line_is_told(
        "src/view/cell.rs",
        "use proftool::binary::f;",
        "src/view/cell.rs:3: a room of the library imports with `crate::`, not `proftool::`",
    );
    line_is_told(
        "src/view/cell.rs",
        "use super::super::super::binary;",
        "src/view/cell.rs:3: `super` leaves the crate",
    );
}

#[test]
fn rooms_and_rows_of_the_map_must_match() {
    let mut tree = sound();
    tree.add("src/attic/mod.rs", "//! Old things.\n");
    assert_eq!(
        rules::check(&tree),
        ["src/attic: no row of the map in src/ARCHITECTURE.md"]
    );
    let mut tree = sound();
    tree.remove("src/view/");
    assert_eq!(
        rules::check(&tree),
        ["src/ARCHITECTURE.md: the map has a room `view`, but src/ has not"]
    );
    assert_eq!(
        planted("src/lib.rs", "pub mod view;\n", ""),
        ["src/lib.rs: the room `view` is not declared by `pub mod view;`"]
    );
    assert_eq!(
        planted("src/lib.rs", "pub mod view;", "mod view;"),
        ["src/lib.rs: the room `view` is not declared by `pub mod view;`"]
    );
}

#[test]
fn a_map_with_a_circle_is_reported() {
    assert_eq!(
        planted(
            "src/ARCHITECTURE.md",
            "| numbers | std |",
            "| numbers | view |"
        ),
        ["src/ARCHITECTURE.md: `base` may import `view`, which is not above it in the map"]
    );
    assert_eq!(
        planted(
            "src/ARCHITECTURE.md",
            "| tables | base |",
            "| tables | base garden |"
        ),
        ["src/ARCHITECTURE.md: `view` may import `garden`, which is not above it in the map"]
    );
}

#[test]
fn computing_in_a_room_that_arranges_is_reported() {
    let told = |line: usize, path: &str| {
        format!(
            "src/export/json.rs:{line}: `export` names `{path}`, which is no type; it arranges what was computed"
        )
    };
    for (line, path) in [
        ("use crate::view::cell;", "crate::view::cell"),
        ("use crate::view::cell::wide;", "crate::view::cell::wide"),
        (
            "use crate::view::cell::{self, Cell};",
            "crate::view::cell::self",
        ),
        ("use super::super::view;", "super::super::view"),
        ("use crate::view as seen;", "crate::view"),
        ("use super::Rows::of;", "super::Rows::of"),
        ("fn g() { Rows::of(0) }", "Rows::of"),
        ("fn g() { h(Rows::of) }", "Rows::of"),
        (
            "fn g() { crate::view::Table::of(0) }",
            "crate::view::Table::of",
        ),
        ("fn g() { super::Rows::of(0) }", "super::Rows::of"),
        ("fn g() { m!(super::Rows::of(0)) }", "super::Rows::of"),
    ] {
        line_is_told("src/export/json.rs", line, &told(4, path));
    }
    assert_eq!(
        planted(
            "src/ARCHITECTURE.md",
            "| `export` | view |\n",
            "| `export` | view binary |\n"
        ),
        ["src/ARCHITECTURE.md: `export` names types of `binary`, which it may not import"]
    );
}

#[test]
fn a_package_in_a_wrong_room_is_reported() {
    let told = "src/view/cell.rs:3: `gimli` is not at home in `view`";
    line_is_told("src/view/cell.rs", "use gimli::Dwarf;", told);
    line_is_told("src/view/cell.rs", "use gimli;", told);
    line_is_told("src/view/cell.rs", "use {gimli::Dwarf, std::fmt};", told);
    line_is_told("src/view/cell.rs", "fn g() { ::gimli::f() }", told);
    line_is_told("src/view/cell.rs", "fn g<T: gimli::Reader>() {}", told);
    line_is_told("src/view/cell.rs", "extern crate gimli;", told);
    line_is_told(
        "src/binary/mod.rs",
        "fn h() { any_how::f() }",
        "src/binary/mod.rs:6: `any-how` is not at home in `binary`",
    );
    line_is_told(
        "src/cli/args.rs",
        "use std::{io, net::TcpStream};",
        "src/cli/args.rs:2: `std::net` is not at home in `cli`",
    );
}

#[test]
fn packages_and_the_rows_of_the_map_must_match() {
    assert_eq!(
        planted("Cargo.toml", "# a\n", "petgraph = \"1\"\n"),
        ["Cargo.toml: `petgraph` has no row in the map in src/ARCHITECTURE.md"]
    );
    assert_eq!(
        planted("Cargo.toml", "gimli = \"1\"\n", ""),
        ["src/ARCHITECTURE.md: the map has a package `gimli`, but Cargo.toml has not"]
    );
    assert_eq!(
        planted(
            "src/ARCHITECTURE.md",
            "| `gimli` | binary |",
            "| `gimli` | cellar |"
        ),
        [
            "src/ARCHITECTURE.md: `gimli` is at home in `cellar`, which is no room of the map",
            "src/binary/map.rs:3: `gimli` is not at home in `binary`"
        ]
    );
}

#[test]
fn unsafe_code_outside_the_listed_files_is_reported() {
    let told = "src/view/cell.rs:3: unsafe code in a file that the map does not list for it";
    line_is_told("src/view/cell.rs", "fn g() { unsafe { h() } }", told);
    line_is_told("src/view/cell.rs", "unsafe impl Send for X {}", told);
    line_is_told("src/view/cell.rs", "m! { unsafe {} }", told);
    assert_eq!(
        planted("src/binary/map.rs", "unsafe {}", "{}"),
        ["src/ARCHITECTURE.md: the map lists src/binary/map.rs for unsafe code, but there is none"]
    );
}

#[test]
fn module_names_without_meaning_are_reported() {
    line_is_told(
        "src/view/mod.rs",
        "mod util;",
        "src/view/mod.rs:4: `util` names no idea; name what the module owns",
    );
    let mut tree = sound();
    tree.add("src/view/helpers.rs", "\n");
    assert_eq!(
        rules::check(&tree),
        ["src/view/helpers.rs: `helpers` names no idea; name what the module owns"]
    );
}

#[test]
fn glob_imports_of_modules_are_reported() {
    let told = "src/view/cell.rs:3: glob import; name what is used";
    line_is_told("src/view/cell.rs", "use crate::base::*;", told);
    line_is_told(
        "src/view/cell.rs",
        "pub use crate::base::{Id, id::*};",
        told,
    );
    line_is_told("src/view/cell.rs", "mod cells { use super::*; }", told);
    line_is_told("src/view/cell.rs", "use std::io::prelude::*;", told);
}

#[test]
fn tests_beside_the_code_may_import_what_they_test() {
    let mut tree = sound();
    tree.append("src/view/cell.rs", "mod tests { use super::*; }\n");
    assert_eq!(rules::check(&tree), Vec::<String>::new());
    line_is_told(
        "src/view/cell.rs",
        "mod tests { use super::super::*; }",
        "src/view/cell.rs:3: glob import; name what is used",
    );
}

#[test]
fn the_command_line_lives_in_the_binary_and_sees_what_a_user_sees() {
    let undeclared = planted("src/main.rs", "mod cli;\n", "");
    assert_eq!(undeclared, ["src/main.rs: `mod cli;` is missing"]);
    line_is_told(
        "src/lib.rs",
        "mod cli;",
        "src/lib.rs: `cli` is declared here too; the command line belongs to the binary",
    );
    line_is_told(
        "src/cli/args.rs",
        "use crate::binary::f;",
        "src/cli/args.rs:2: `cli` may not import `crate::binary`; use `proftool::`",
    );
    line_is_told(
        "src/cli/args.rs",
        "use super::super::view;",
        "src/cli/args.rs:2: `cli` may not import `crate::view`; use `proftool::`",
    );
    line_is_told(
        "src/cli/args.rs",
        "use proftool::cellar::Wine;",
        "src/cli/args.rs:2: `proftool::cellar` is no room of the map",
    );
}

#[test]
fn text_of_the_library_that_names_options_or_commands_is_reported() {
    let told = |word: &str| {
        format!(
            "src/view/cell.rs:3: a text names `{word}`; the library states facts, `cli` words advice"
        )
    };
    for (line, word) in [
        ("const A: &str = \"to see all: --limit 0\";", "--limit"),
        ("const A: &str = \"(-F 499)\";", "-F"),
        ("const A: &str = \"-g dwarf\";", "-g"),
        ("const A: &str = \"level\\n-z3\";", "-z3"),
        ("const A: &str = r\"link with -Wl,x\";", "-Wl"),
        ("fn g() { m!(\"{} --symfs={x}\") }", "--symfs"),
        ("#[error(\"leave --time out\")] struct E;", "--time"),
        ("const A: &str = \"as root: sysctl a.b=1\";", "sysctl"),
        ("const A: &[u8] = b\"see: proftool report\";", "proftool "),
        (
            "const A: &str = \"see: proftool \\\n    report\";",
            "proftool ",
        ),
        ("const A: [&str; 2] = [\"proftool\", \"flat\"];", "proftool"),
        ("mod a { fn f() { g(\"ulimit\") } }", "ulimit"),
        (
            "#[test_only] mod b { fn f() { g(\"setcap x\") } }",
            "setcap",
        ),
    ] {
        line_is_told("src/view/cell.rs", line, &told(word));
    }
}

#[test]
fn marks_beside_names_that_are_no_values_are_reported() {
    for (line, mark) in [
        ("const A: &str = \" \u{2192} \";", "→"),
        ("fn g() -> char { '⋯' }", "⋯"),
        ("fn g() -> char { '\\u{2502}' }", "│"),
        ("fn g() { m!(\"{name} <cycle {n}>\") }", "<cycle"),
        ("const A: [&str; 2] = [\" *\", \" (inlined)\"];", "(inlined"),
    ] {
        let told = format!(
            "src/view/cell.rs:3: a text has `{mark}`; only `export` and `cli` write marks and lines"
        );
        line_is_told("src/view/cell.rs", line, &told);
    }
    let mut tree = sound();
    let accepted = [
        "/// `a → b`",
        "const A: &str = \"[truncated] -> {f}<T> (2)\";",
        "#[cfg(test)] mod tests { const A: &str = \"a → b (inlined)\"; }",
    ];
    tree.append("src/view/cell.rs", &format!("{}\n", accepted.join("\n")));
    for file in ["src/export/json.rs", "src/cli/args.rs"] {
        tree.append(file, "const B: &str = \"a → b\";\n");
    }
    assert_eq!(rules::check(&tree), Vec::<String>::new());
}

#[test]
fn threads_that_are_made_elsewhere_are_reported() {
    for (line, path) in [
        ("fn f() { std::thread::spawn(g); }", "std::thread::spawn"),
        ("use std::thread::{self, Builder};", "std::thread::Builder"),
        ("fn f() { thread::scope(|s| ()) }", "thread::scope"),
        ("use std::thread as other;", "std::thread"),
        (
            "struct S<'s, 'e>(&'s thread::Scope<'s, 'e>);",
            "thread::Scope",
        ),
        ("fn f() { bar.enable_steady_tick(t) }", "enable_steady_tick"),
    ] {
        let told = format!("src/cli/args.rs:2: `{path}`; only src/base/workers.rs makes threads");
        line_is_told("src/cli/args.rs", line, &told);
    }
    let mut tree = sound();
    for line in [
        "use std::thread;",
        "fn f() { thread::sleep(t); thread::available_parallelism() }",
        "fn g() { workers::scope(|workers| workers.start(f)) }",
    ] {
        tree.append("src/cli/args.rs", &format!("{line}\n"));
    }
    assert_eq!(rules::check(&tree), Vec::<String>::new());
}

#[test]
fn text_that_only_looks_like_an_option_is_accepted() {
    let mut tree = sound();
    for line in [
        "/// As `perf record -F 99` has it; see `proftool record --help`.",
        "// proftool report --limit 0",
        "const A: &str = \"a - b, 1-a, x--y, r--p, -1, --, ->, build-id, perf.data-old\";",
        "const B: &str = \"proftool/1\";",
        "#[cfg(test)] mod tests { const A: &str = \"proftool flat --limit 0\"; }",
        "#[cfg(test)]\nfn a() { f(\"sysctl\") }",
    ] {
        tree.append("src/view/cell.rs", &format!("{line}\n"));
    }
    let args = "const A: &str = \"proftool flat --limit 0\";\n";
    tree.append("src/cli/args.rs", args);
    assert_eq!(rules::check(&tree), Vec::<String>::new());
}

#[test]
fn a_file_with_too_many_lines_is_reported() {
    let mut tree = sound();
    tree.append("src/view/cell.rs", &"\n".repeat(598));
    assert_eq!(rules::check(&tree), Vec::<String>::new());
    tree.append("src/view/cell.rs", "\n");
    assert_eq!(
        rules::check(&tree),
        ["src/view/cell.rs: 601 lines, above 600: look for the second idea"]
    );
}

#[test]
fn a_room_without_its_page_is_reported() {
    assert_eq!(
        planted("src/view/mod.rs", "//! Tables.\n", ""),
        ["src/view/mod.rs: the room's page (`//!`) is missing"]
    );
}

#[test]
fn a_violation_in_this_crate_would_be_reported() {
    let mut tree = Tree::of_this_crate();
    tree.append("src/base/mod.rs", "use crate::profile::Profile;\n");
    tree.append("src/view/flat.rs", "fn f() { Summary::of(0, 0) }\n");
    let cut = "fn f() { crate::analysis::cut::by_function(0, 0) }\n";
    tree.append("src/view/graph/page.rs", cut);
    let found = rules::check(&tree);
    for expected in [
        "`base` may not import `profile`",
        "`view` names `Summary::of`, which is no type; it arranges what was computed",
        "`view` names `crate::analysis::cut::by_function`, which is no type; it arranges what was computed",
    ] {
        assert!(
            found.iter().any(|told| told.ends_with(expected)),
            "{found:?}"
        );
    }
}

/// Where `file:line` stands that opens a file by a path in a room whose files an input may name.
fn opened_elsewhere(tree: &Tree) -> Vec<String> {
    // They read only what the kernel shows under paths that are written there.
    let fixed = ["src/binary/host/vdso.rs", "src/symbolize/host.rs"];
    let rooms = [
        "src/binary/",
        "src/symbolize/",
        "src/trace/",
        "src/scan/",
        "src/frame_pointers/",
        "src/unwind/",
    ];
    let ways = [
        "File::open",
        "OpenOptions",
        "fs::read(",
        "read_to_string(",
        "read_dir(",
    ];
    let mut told = Vec::new();
    for (file, text) in tree.sources() {
        let is_named =
            rooms.iter().any(|room| file.starts_with(room)) || file.ends_with("elf_notes.rs");
        if !is_named || fixed.contains(&file) {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            // The numbers of processes are no names that an input gives.
            let is_proc = line.contains("read_dir(\"/proc\")");
            if !is_comment && !is_proc && ways.iter().any(|way| line.contains(way)) {
                told.push(format!(
                    "{file}:{}: opens a file; use `crate::files`",
                    number + 1
                ));
            }
        }
    }
    told
}

#[test]
fn what_an_input_names_is_opened_by_one_room() {
    assert_eq!(
        opened_elsewhere(&Tree::of_this_crate()),
        Vec::<String>::new()
    );
    let mut tree = Tree::of_this_crate();
    tree.append(
        "src/scan/mod.rs",
        "fn f() { let _ = std::fs::File::open(\"x\"); }\n",
    );
    let told = opened_elsewhere(&tree);
    assert!(
        matches!(&told[..], [one] if one.starts_with("src/scan/mod.rs:")),
        "{told:?}"
    );
}

/// Where `file:line` stands that reads something of a process whole whose length the process decides, or opens
/// its descriptors or files by a name.
fn read_whole_of_processes(tree: &Tree) -> Vec<String> {
    let short = [
        "auxv",
        "stat\"",
        "status\"",
        "comm\"",
        "children\"",
        "/task",
        "/mem\"",
    ];
    let ways = [
        "fs::read(",
        "read_to_string(",
        "File::open",
        ".open(",
        "canonicalize(",
    ];
    let mut told = Vec::new();
    for (file, text) in tree.sources() {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let is_process = line.contains("\"/proc/{");
            let is_opened = ways.iter().any(|way| line.contains(way));
            // The program, by the name that the kernel has for it.
            let is_program = line.contains("canonicalize(format!(\"/proc/{thread}/exe\"))");
            let is_short = short.iter().any(|name| line.contains(name)) || is_program;
            if is_process && is_opened && !is_short {
                told.push(format!(
                    "{file}:{}: use `files::read_list` or `open_link`",
                    number + 1
                ));
            }
        }
    }
    told
}

#[test]
fn what_a_process_shows_of_itself_is_read_up_to_a_length() {
    let mut tree = Tree::of_this_crate();
    assert_eq!(read_whole_of_processes(&tree), Vec::<String>::new());
    tree.append(
        "src/sampler/mod.rs",
        "fn f(pid: i32) { let _ = std::fs::read(format!(\"/proc/{pid}/maps\")); }\n",
    );
    let told = read_whole_of_processes(&tree);
    assert!(
        matches!(&told[..], [one] if one.starts_with("src/sampler/mod.rs:")),
        "{told:?}"
    );
}

#[test]
fn a_map_without_its_tables_is_reported() {
    assert_eq!(
        rules::check(&Tree::new(&[("src/ARCHITECTURE.md", "# A page\n")])),
        ["src/ARCHITECTURE.md: no table with the heads `room`, `owns`, `may import`"]
    );
}
