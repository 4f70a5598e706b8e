//! Circles between files, folders of too many, and rooms in rooms, planted into the sound tree.

use super::tree::Tree;
use super::{planted, rules, sound};

/// A tree of one room, `view`, of these files with these lines.
fn room_of_files(files: &[(&str, &str)]) -> Tree {
    let mut tree = sound();
    tree.add("src/view/number.rs", "use crate::base::Id;\n");
    for (path, text) in files {
        tree.add(path, text);
    }
    tree
}

#[test]
fn files_that_name_each_other_are_reported() {
    let report = |files: &[(&str, &str)]| rules::check(&room_of_files(files));
    let circle = [
        (
            "src/view/row.rs",
            "use super::cell::Cell;\npub struct Row;\n",
        ),
        (
            "src/view/cell.rs",
            "use super::row::Row;\npub struct Cell;\n",
        ),
    ];
    let message = "src/view/cell.rs -> src/view/row.rs: files name each other in a circle";
    assert_eq!(report(&circle), [message]);
    // A name that the page hands on is its file's, and a path in code is an arrow as well.
    let handed_on = [
        (
            "src/view/mod.rs",
            "//! Tables.\nmod cell;\nmod row;\npub use row::Row;\n",
        ),
        (
            "src/view/row.rs",
            "pub struct Row;\nfn f() { super::cell::g() }\n",
        ),
        ("src/view/cell.rs", "use crate::view::Row;\n"),
    ];
    assert_eq!(report(&handed_on), [message]);
    let of_three = [
        ("src/view/row.rs", "use super::cell::Cell;\n"),
        ("src/view/cell.rs", "use super::deep::leaf::Leaf;\n"),
        ("src/view/deep/leaf.rs", "use crate::view::row::Row;\n"),
    ];
    let message = "src/view/cell.rs -> src/view/deep/leaf.rs -> src/view/row.rs: \
                   files name each other in a circle";
    assert_eq!(report(&of_three), [message]);
}

#[test]
fn a_page_and_its_files_form_no_circle() {
    let report = |files: &[(&str, &str)]| rules::check(&room_of_files(files));
    let page = [
        (
            "src/view/mod.rs",
            "//! Tables.\nmod cell;\nmod row;\nuse self::cell::Cell;\npub struct Table;\n",
        ),
        ("src/view/cell.rs", "use super::Table;\n"),
        (
            "src/view/row.rs",
            "use super::cell::Cell;\nuse super::Table;\n",
        ),
    ];
    assert_eq!(report(&page), Vec::<String>::new());
    // Tests may name what they like.
    let tested = [
        ("src/view/row.rs", "use super::cell::Cell;\n"),
        (
            "src/view/cell.rs",
            "pub struct Cell;\nmod tests {\n    use crate::view::row::Row;\n}\n",
        ),
    ];
    assert_eq!(report(&tested), Vec::<String>::new());
}

#[test]
fn a_folder_of_too_many_files_is_reported() {
    let files = |count: usize| {
        let mut tree = sound();
        // There are two already.
        for number in 2..count {
            tree.add(&format!("src/view/row{number}.rs"), "//! A row.\n");
            tree.add(&format!("src/view/deep/row{number}.rs"), "//! A row.\n");
        }
        rules::check(&tree)
    };
    assert_eq!(files(25), Vec::<String>::new());
    let report = files(26);
    assert_eq!(
        report,
        ["src/view: 26 files, above 25: look for a folder's worth of them"]
    );
}

#[test]
fn a_room_in_a_room_keeps_to_its_row() {
    let report = |files: &[(&str, &str)]| rules::check(&room_of_files(files));
    let other = [
        ("src/cli/flat.rs", "use super::top::Page;\n"),
        ("src/cli/top/key.rs", "use super::super::flat::Flat;\n"),
    ];
    let message = "src/cli/top/key.rs:1: `cli/top` may not import `cli::flat::Flat`";
    assert_eq!(report(&other), [message]);
    let inside = [("src/cli/flat.rs", "\nuse crate::cli::top::key::Key;\n")];
    let message = "src/cli/flat.rs:2: of `cli/top` only its page may be named";
    assert_eq!(report(&inside), [message]);
}

#[test]
fn a_row_that_allows_what_nobody_does_is_reported() {
    let map = "src/ARCHITECTURE.md";
    assert_eq!(
        planted(map, "| tables | base |", "| tables | base binary |"),
        ["src/ARCHITECTURE.md: `view` may import `binary`, but does not"]
    );
    assert_eq!(
        planted(map, "| the screen | args |", "| the screen | args mode |"),
        ["src/ARCHITECTURE.md: `cli/top` may import `mode`, but does not"]
    );
    assert_eq!(
        planted(map, "| `gimli` | binary |", "| `gimli` | binary, view |"),
        ["src/ARCHITECTURE.md: `gimli` is at home in `view`, which does not name it"]
    );
}
