//! What users of the library see, with violations planted into the sound tree.

use super::tree::Tree;
use super::{planted, rules, sound};

/// The sound tree with a package before 1.0, and this text in place of `src/binary/map.rs`.
fn with_unstable(text: &str) -> Tree {
    let mut tree = sound();
    tree.edit(
        "Cargo.toml",
        "gimli = \"1\"",
        "gimli = { version = \"0.34\" }",
    );
    let text = format!("//! Mapping.\nfn unsafe_code() {{ unsafe {{}} }}\n{text}\n");
    tree.add("src/binary/map.rs", &text);
    tree
}

#[test]
fn a_type_of_an_unstable_package_in_a_public_signature_is_reported() {
    let public = [
        ("pub fn f(_: gimli::Reader) {}", "f"),
        ("use gimli::Reader;\npub fn f() -> Option<Reader> {}", "f"),
        (
            "use gimli::{self, read::Reader as R};\npub fn f<T: R>() {}",
            "f",
        ),
        ("use gimli as g;\npub fn f(_: &[g::Reader]) {}", "f"),
        (
            "type Slice = gimli::Slice;\ntype Two = [Slice; 2];\npub fn f(_: Two) {}",
            "f",
        ),
        ("pub struct S { a: u8, pub b: gimli::Reader }", "S"),
        ("pub struct S(u8, pub gimli::Reader);", "S"),
        ("pub struct S<T: gimli::Reader>(T);", "S"),
        ("pub enum E { A { of: gimli::Error } }", "E"),
        ("pub type T = gimli::Error;", "T"),
        ("pub const C: gimli::DwTag = f();", "C"),
        ("pub trait T { fn f(&self) -> gimli::Error; }", "T::f"),
        (
            "pub struct S;\nimpl S { pub const fn f() -> gimli::Error {} }",
            "S::f",
        ),
        (
            "pub struct S;\nimpl<T: X> From<gimli::Error> for S {}",
            "impl … for S",
        ),
        (
            "pub struct S;\nimpl Iterator for S { type Item = gimli::Unit; }",
            "S::Item",
        ),
        ("pub use gimli::Reader;", "use"),
    ];
    for (text, shown) in public {
        let mut tree = with_unstable(text);
        tree.edit("src/binary/mod.rs", "mod map;", "pub mod map;");
        let report = rules::check(&tree);
        let message = format!("public `{shown}` names a type of `gimli`, which is before 1.0");
        assert_eq!(report.len(), 1, "{text}: {report:?}");
        assert!(report[0].contains(&message), "{text}: {report:?}");
    }
}

#[test]
fn what_is_private_may_use_unstable_packages() {
    let private = [
        "use gimli::Reader;\nfn f(_: Reader) {}",
        "pub(crate) fn f(_: gimli::Reader) {}",
        "pub fn f() { gimli::f() }",
        "pub struct S { a: gimli::Reader, pub(super) b: gimli::Reader, pub c: u8 }",
        "pub struct S(pub u8, gimli::Reader);",
        "struct S;\nimpl S { pub fn f() -> gimli::Error {} }",
        "pub struct S;\nimpl S { fn f() -> gimli::Error {} }",
        "pub const C: u8 = gimli::C;",
        "mod tests { pub fn f() -> gimli::Error {} }",
    ];
    for text in private {
        let mut tree = with_unstable(text);
        tree.edit("src/binary/mod.rs", "mod map;", "pub mod map;");
        assert_eq!(rules::check(&tree), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn an_item_is_public_where_it_is_handed_on() {
    let text = "pub struct S;\nimpl S { pub fn f() -> gimli::Error {} }";
    let mut tree = with_unstable(text);
    assert_eq!(
        rules::check(&tree),
        Vec::<String>::new(),
        "in a private file"
    );
    tree.append("src/binary/mod.rs", "pub(crate) use map::S;\n");
    assert_eq!(
        rules::check(&tree),
        Vec::<String>::new(),
        "for the crate only"
    );
    let message = "src/binary/map.rs:4: public `S::f` names a type of `gimli`, which is before 1.0";
    // Whoever adds to a type from elsewhere adds to what users see.
    for head in [
        "use super::super::base::Id;\nimpl Id",
        "impl super::super::base::Id",
    ] {
        let tree = with_unstable(&format!("{head} {{ pub fn f() -> gimli::Error {{}} }}"));
        let report = rules::check(&tree);
        assert_eq!(report.len(), 1, "{head}: {report:?}");
        assert!(report[0].contains("public `Id::f`"), "{head}: {report:?}");
    }
    for line in ["pub use map::S;\n", "pub use self::map::S as Other;\n"] {
        let mut tree = with_unstable(text);
        tree.append("src/binary/mod.rs", line);
        assert_eq!(rules::check(&tree), [message], "{line}");
    }
}

#[test]
fn stable_packages_may_be_in_signatures() {
    let report = planted(
        "src/binary/mod.rs",
        "mod map;",
        "mod map;\npub use gimli::Reader;",
    );
    assert_eq!(report, Vec::<String>::new());
}

#[test]
fn an_error_that_is_a_tuple_is_reported() {
    let head = "#[derive(Debug, thiserror::Error)]\n#[non_exhaustive]\n";
    let report = |text: &str| {
        let mut tree = sound();
        tree.append("src/view/cell.rs", &format!("{head}{text}\n"));
        rules::check(&tree)
    };
    let message = |line: usize, name: &str| {
        format!("src/view/cell.rs:{line}: the error `{name}` is a tuple; give its fields names")
    };
    assert_eq!(
        report("pub enum Error { A(u8), B { at: u8 }, C, #[error(\"{0}\")]\nD(#[from] E) }"),
        [message(5, "Error::A"), message(6, "Error::D")]
    );
    assert_eq!(report("pub struct Error(u8);"), [message(5, "Error")]);
    let none = Vec::<String>::new();
    assert_eq!(report("pub struct Error { at: u8 }\nstruct S(u8);"), none);
    assert_eq!(report("pub enum Error { A { at: (u8, u8) }, B }"), none);
}
