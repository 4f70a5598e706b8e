//! The table for databases, read back row by row.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row as Record};
use proftool::analysis::call_stacks::CallStacks;
use proftool::analysis::tree::Collapse;
use proftool::profile::{Profile, Selection, Weighing};
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use crate::support::exports::{build, samples, select, subject, truth};
use crate::support::laws;
use crate::support::readers::Row;

fn written(profile: &Profile, selection: &Selection) -> Vec<u8> {
    let stacks = CallStacks::of(profile, selection, Collapse::None);
    let mut file = Vec::new();
    let subject = subject(profile, selection);
    proftool::export::parquet::write(&mut file, &subject, &stacks).unwrap();
    file
}

fn opened(bytes: &[u8]) -> SerializedFileReader<File> {
    // Each test has a thread of its own.
    let name = format!("rows-{:?}.parquet", std::thread::current().id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    fs::remove_file(&path).unwrap();
    reader
}

/// The rows, each by the names of its columns.
fn table(bytes: &[u8]) -> Vec<BTreeMap<String, Field>> {
    let reader = opened(bytes);
    let rows = reader.get_row_iter(None).unwrap();
    let named = |row: Record| {
        let columns = row.get_column_iter();
        columns
            .map(|(name, field)| (name.clone(), field.clone()))
            .collect()
    };
    rows.map(|row| named(row.unwrap())).collect()
}

fn number(field: &Field) -> u64 {
    match field {
        Field::Long(number) => u64::try_from(*number).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Function and module of a struct.
fn function(field: &Field) -> (String, Option<String>) {
    let Field::Group(group) = field else {
        panic!("{field:?}");
    };
    let mut texts = group.get_column_iter().map(|(_, field)| match field {
        Field::Str(text) => Some(text.clone()),
        Field::Null => None,
        other => panic!("{other:?}"),
    });
    (texts.next().unwrap().unwrap(), texts.next().unwrap())
}

fn list(field: &Field) -> &[Field] {
    match field {
        Field::ListInternal(list) => list.elements(),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(laws::cases(64))]

    #[test]
    fn a_table_has_self_and_total_of_every_function_in_the_order_that_it_states(taken in samples()) {
        let profile = build(&taken);
        for weighing in [Weighing::Weight, Weighing::Samples] {
            let selection = select(&profile, weighing);
            let file = written(&profile, &selection);
            prop_assert!(file == written(&profile, &selection), "the bytes differ between runs");
            let rows = table(&file);
            let sum: u64 = rows.iter().map(|row| number(&row["value"])).sum();
            prop_assert_eq!(sum, selection.total());
            let sum: u64 = rows.iter().map(|row| number(&row["count"])).sum();
            prop_assert_eq!(sum, selection.samples());
            let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
            let mut last = None;
            for row in &rows {
                let (own, weight) = (function(&row["self_function"]), number(&row["value"]));
                sums.entry(own.clone()).or_default().0 += weight;
                for of in list(&row["stack_functions"]) {
                    sums.entry(function(of)).or_default().1 += weight;
                }
                let stack = list(&row["stack"]);
                prop_assert_eq!(function(stack.last().unwrap()), own.clone());
                let key = Some((row["comm"].to_string(), own, row["pid"].to_string(), row["tid"].to_string()));
                prop_assert!(last <= key);
                last = key;
            }
            // Functions of one name and module have labels here; all others their names.
            let numbers = |rows: Vec<(u64, u64)>| {
                let mut rows = rows;
                rows.retain(|row| row.1 > 0);
                rows.sort_unstable();
                rows
            };
            let want = truth(&profile, &selection, true);
            let want = want.iter().map(|Row { own, total, .. }| (*own, *total)).collect();
            prop_assert_eq!(numbers(sums.into_values().collect()), numbers(want));
        }
    }
}

#[test]
fn the_order_that_a_table_states_is_of_the_columns_it_is_sorted_by() {
    let profile = build(&[(vec![(0, 0, false)], 0, 1, 1)]);
    let reader = opened(&written(&profile, &select(&profile, Weighing::Weight)));
    let group = reader.metadata().row_group(0);
    let columns = group.sorting_columns().unwrap().iter().map(|sorted| {
        let column = group.column(usize::try_from(sorted.column_idx).unwrap());
        column.column_path().string()
    });
    let (function, module) = ("self_function.function", "self_function.module");
    assert_eq!(
        columns.collect::<Vec<_>>(),
        ["comm", function, module, "pid", "tid"]
    );
}
