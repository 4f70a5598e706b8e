//! Tables with names of wide and combining characters.

use proftool::base::Unit;
use proftool::export::Facts;
use proftool::export::text::{self, Options};
use proftool::names::{display_width, last_columns, shortened};
use proftool::view::page::{Block, Page};
use proftool::view::table::{Branch, Cell, Column, Guide, Role, Table};
use proptest::prelude::*;

/// Writes a table of two columns of names and a figure of one digit.
fn written(names: &[(String, String)], width: usize) -> String {
    let mut table = Table::new(vec![
        Column::new("name", "function", Role::Name),
        Column::new("module", "module", Role::Name),
        Column::new("count", "n", Role::Figure),
    ]);
    for (name, module) in names {
        let guide = Guide::Tree {
            level: 2,
            steps: Vec::new(),
            branch: Branch::Last,
        };
        let branch = Cell::beside(guide, &**name);
        table
            .rows
            .push(vec![branch, Cell::Text(module.clone()), Cell::Count(7)]);
    }
    let page = Page {
        unit: Unit::Samples,
        blocks: vec![Block::Table(table)],
    };
    let options = Options {
        width,
        color: false,
    };
    let mut out = Vec::new();
    text::write(&mut out, &page, &options, &Facts).unwrap();
    String::from_utf8(out).unwrap()
}

fn name() -> impl Strategy<Value = String> {
    prop::string::string_regex("[a-c解析し한é👩🏽🇩🇪ﬁ\u{301}\u{5b8}لا☀]{0,40}").unwrap()
}

proptest! {
    #[test]
    fn all_rows_have_the_same_display_width(
        names in prop::collection::vec((name(), name()), 1..8),
        width in 60usize..120,
    ) {
        let text = written(&names, width);
        let widths: Vec<usize> = text.lines().map(display_width).collect();
        prop_assert!(widths.iter().all(|&one| one == widths[0] && one <= width), "{widths:?}\n{text}");
    }

    #[test]
    fn a_shortened_name_fits_and_keeps_its_ends(text in ".{0,60}", width in 1usize..40) {
        let short = shortened(&text, width);
        prop_assert!(display_width(&short) <= width, "{short}");
        prop_assert!(display_width(last_columns(&text, width)) <= width);
        prop_assert!(text.ends_with(last_columns(&text, width)));
    }
}

#[test]
fn wide_names_do_not_shift_their_row() {
    let names = [
        ("構文解析", "日本"),
        ("e\u{301}tat", "libc.so"),
        ("🦀🦀", "x"),
    ];
    let names = names.map(|(name, module)| (name.to_owned(), module.to_owned()));
    assert_eq!(
        written(&names, 80),
        "function    module   n\n\
         └ 構文解析  日本     7\n\
         └ e\u{301}tat      libc.so  7\n\
         └ 🦀🦀      x        7\n"
    );
}
