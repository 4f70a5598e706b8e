//! A page stays small enough for an e-mail, however many functions there are and however long their names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support;
use crate::support::html::{data, flat_rows, json, numbers, proftool, unpacked};

/// The most that a page takes.
const MOST: usize = 5_000_000;

/// A directory with stacks of three functions each, of which no two stacks have one in common, and their page.
/// Names have this length.
fn page_of(name: &str, functions: usize, length: usize) -> (PathBuf, Value) {
    let directory = support::directory(name);
    let mut stacks = String::new();
    for number in 0..functions {
        // Where a name differs from the others is in its middle, and it cannot be packed well.
        let mut middle = String::new();
        let mut state = number as u64 + 1;
        while middle.len() + 8 < length {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            write!(middle, "t_{:x}_", state >> 33).unwrap();
        }
        let separator = if number % 3 == 0 { "main;" } else { ";" };
        write!(stacks, "{separator}f{middle}g").unwrap();
        if number % 3 == 2 || number + 1 == functions {
            writeln!(stacks, " {}", 1 + number % 97).unwrap();
        }
    }
    std::fs::write(directory.join("stacks.folded"), stacks).unwrap();
    let page = proftool(&["export", "--to", "html", "stacks.folded"], &directory);
    assert!(page.len() < MOST, "{} bytes", page.len());
    (directory, data(&String::from_utf8(page).unwrap()))
}

/// Self weights and totals of the rows of a page.
fn weights(event: &Value) -> Vec<(u64, u64)> {
    let own = numbers(&event["flat"]["self_weights"]).into_iter();
    own.zip(numbers(&event["flat"]["totals"])).collect()
}

fn wanted(directory: &Path) -> Vec<(u64, u64)> {
    let rows = flat_rows(&json(&["flat", "stacks.folded"], directory));
    rows.into_iter().map(|row| (row.2, row.3)).collect()
}

#[test]
fn long_names_are_shortened_where_a_page_would_be_too_large() {
    let (directory, data) = page_of("html-long-names", 2_500, 2200);
    let event = &data["events"][0];
    // All functions are there with all figures, and names stay different.
    assert_eq!(weights(event), wanted(&directory));
    assert_eq!(event["flat"]["left_out"], 0);
    assert!(event["graph"].is_object() && event["pairs"].is_string());
    let names = data["functions"]["names"].as_array().unwrap();
    let shortened = numbers(&data["functions"]["shortened"]);
    assert_eq!(shortened.len(), 2_500);
    for &place in &shortened {
        let name = names[place as usize].as_str().unwrap();
        assert!(
            name.ends_with(&format!("g #{place}")) && name.contains('…'),
            "{name}"
        );
    }
}

#[test]
fn the_lightest_functions_are_left_out_where_a_page_would_be_too_large() {
    let (directory, data) = page_of("html-many-names", 30_000, 120);
    let event = &data["events"][0];
    let flat = &event["flat"];
    let least = flat["left_out_most"].as_u64().unwrap();
    let all = wanted(&directory);
    let shown = weights(event);
    assert!(shown.len() > 5000, "{} functions", shown.len());
    assert_eq!(
        shown.len() as u64 + flat["left_out"].as_u64().unwrap(),
        all.len() as u64
    );
    // What weighs more than all that is left out is there.
    let mut heavy: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for &row in all.iter().filter(|row| row.1 > least) {
        *heavy.entry(row).or_default() += 1;
    }
    for row in shown.iter().filter(|row| row.1 > least) {
        *heavy.get_mut(row).unwrap() -= 1;
    }
    assert!(heavy.values().all(|&count| count == 0));
    assert!(event["graph"].is_null() && event["pairs"].is_null());
    // A tree still has all weight, and only functions that are there.
    let total: u64 = all.iter().map(|row| row.0).sum();
    for tree in event["trees"].as_object().unwrap().values() {
        let tree = unpacked(tree);
        let (count, roots) = (tree[0] as usize, tree[2]);
        let column = |number: usize| &tree[3 + number * count..3 + (number + 1) * count];
        let (own, left): (u64, u64) = (column(3).iter().sum(), column(5).iter().sum());
        assert_eq!(own + left + roots, total);
        let places = data["functions"]["names"].as_array().unwrap().len() as u64;
        assert!(column(1).iter().all(|&place| place < places));
    }
}
