//! The page of `tree`: which degree it has where none is asked for, its columns, and what it says
//! about lines that are not shown.

use std::fs;
use std::path::PathBuf;

use proftool::analysis::tree::{Collapse, Stacks};
use proftool::input::folded;
use proftool::profile::{EventId, Filter};
use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use crate::support::cli::{fixture, proftool};

/// A file with these stacks.
fn file(name: &str, stacks: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("proftool-{}-{name}.folded", std::process::id()));
    fs::write(&path, stacks).unwrap();
    path
}

fn text(args: &[&str]) -> String {
    let output = proftool(&[&["tree"], args].concat())
        .env("COLUMNS", "500")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// An interpreter: each level of the interpreted program is the same two functions, with a helper
/// on the side.
fn interpreter() -> String {
    let mut stacks = String::from("main;load 40\n");
    let mut stack = String::from("main");
    for level in 0..60 {
        stack.push_str(";call;interpret");
        stacks.push_str(&format!("{stack};helper{level} 3\n{stack} 5\n"));
    }
    stacks
}

/// A compiler's pass manager: a pass that runs a list of passes, each with its own functions.
fn passes() -> String {
    let mut stacks = String::new();
    for pass in 0..40 {
        let outer = "main;run_list;run_pass";
        stacks.push_str(&format!("{outer};pass{pass} {}\n", 20 + pass));
        stacks.push_str(&format!(
            "{outer};run_list;run_pass;inner{pass};work{pass} {}\n",
            90 - pass
        ));
    }
    stacks
}

#[test]
fn an_interpreter_is_collapsed_and_a_pass_manager_is_not() {
    let interpreter = file("interpreter", &interpreter());
    let page = text(&[interpreter.to_str().unwrap()]);
    assert!(
        page.contains("Recursion is collapsed (--collapse conservative): "),
        "{page}"
    );
    assert!(
        page.contains("of the 80 heaviest lines would repeat a function"),
        "{page}"
    );
    assert!(page.contains("via collapsed %"), "{page}");

    let passes = file("passes", &passes());
    let page = text(&[passes.to_str().unwrap()]);
    let head = "Recursion is not collapsed (--collapse none): 2 of the 80 heaviest lines repeat";
    assert!(page.contains(head), "{page}");
    assert!(
        page.contains("inner0") && !page.contains("via collapsed"),
        "{page}"
    );
    for path in [interpreter, passes] {
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn the_degree_does_not_depend_on_what_is_shown_of_the_tree() {
    let path = file("degree", &interpreter());
    let path = path.to_str().unwrap();
    let options: [&[&str]; 6] = [
        &[],
        &["--limit", "0", "--min", "0"],
        &["--depth", "2"],
        &["--min", "50"],
        &["--limit", "3"],
        &["--bottom-up"],
    ];
    for options in options {
        let page = text(&[options, &[path]].concat());
        assert!(
            page.contains("(--collapse conservative): "),
            "{options:?}: {page}"
        );
    }
    let json = text(&[path, "--format", "json"]);
    assert!(json.contains("\"collapse\":\"conservative\""), "{json}");
    assert!(
        json.contains("\"repeats\":{\"nodes\":80,\"repeating\":"),
        "{json}"
    );
    fs::remove_file(path).unwrap();
}

#[test]
fn a_row_has_one_total_and_the_collapsed_part_of_it() {
    // leaf: 2 directly, 4 after the collapsed call of r.
    let path = file("columns", "main;r;leaf 2\nmain;r;r;leaf 4\nmain;r 2\n");
    let page = text(&[path.to_str().unwrap(), "--collapse", "full"]);
    assert!(
        page.contains("total %  self %  via collapsed %  total  function"),
        "{page}"
    );
    assert!(
        page.contains("  75.00   75.00            50.00      6    ├ leaf\n"),
        "{page}"
    );
    assert!(
        page.contains("  └ r... (50.00 %)\n") && !page.contains("2 (4)"),
        "{page}"
    );
    let json = text(&[
        path.to_str().unwrap(),
        "--collapse",
        "full",
        "--format",
        "json",
    ]);
    assert!(
        json.contains("\"total\":6,\"direct\":2,\"indirect\":4,\"in_only\":6,"),
        "{json}"
    );
    fs::remove_file(path).unwrap();
}

/// The options that a page says show all lines.
fn advice(page: &str) -> Option<Vec<String>> {
    let (_, options) = page.split_once(". To see all: ")?;
    let line = options.lines().next().unwrap();
    Some(line.split(' ').map(str::to_owned).collect())
}

/// The arguments with these options in place of those of the same name.
fn followed(args: &[&str], advice: &[String]) -> Vec<String> {
    let mut all: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    for option in advice.chunks(2) {
        if let Some(at) = all.iter().position(|arg| *arg == option[0]) {
            all.drain(at..at + 2);
        }
        all.extend_from_slice(option);
    }
    all
}

#[test]
fn the_advice_on_hidden_lines_shows_all_of_them() {
    let interpreter = file("advice", &interpreter());
    let passes = file("advice-passes", &passes());
    let recursion = fixture("recursion");
    let files = [
        interpreter.to_str().unwrap(),
        passes.to_str().unwrap(),
        recursion.as_str(),
    ];
    let choices: [&[&str]; 8] = [
        &[],
        &["--depth", "2"],
        &["--min", "10"],
        &["--limit", "4"],
        &["--depth", "3", "--min", "2"],
        &["--depth", "3", "--limit", "5"],
        &["--min", "2", "--limit", "5"],
        &["--depth", "1", "--min", "100", "--limit", "1"],
    ];
    let mut advised = 0;
    for file in files {
        for direction in [&[][..], &["--bottom-up"]] {
            for degree in Collapse::ALL {
                for choice in choices {
                    let args = [&[file, "--collapse", degree.name()], direction, choice].concat();
                    let page = text(&args);
                    let Some(advice) = advice(&page) else {
                        assert!(!page.contains('…'), "{args:?}: {page}");
                        continue;
                    };
                    advised += 1;
                    let all = followed(&args, &advice);
                    let all: Vec<&str> = all.iter().map(String::as_str).collect();
                    let page = text(&all);
                    assert!(!page.contains('…'), "{args:?}, then {all:?}: {page}");
                    // Nothing is advised that is not needed.
                    for left_out in advice.chunks(2).filter(|_| direction.is_empty()) {
                        let rest: Vec<String> = advice
                            .chunks(2)
                            .filter(|option| option != &left_out)
                            .flatten()
                            .cloned()
                            .collect();
                        let some = followed(&args, &rest);
                        let some: Vec<&str> = some.iter().map(String::as_str).collect();
                        assert!(text(&some).contains('…'), "{args:?}, then {some:?}");
                    }
                }
            }
        }
    }
    assert!(advised > 100, "{advised}");
    for path in [interpreter, passes] {
        fs::remove_file(path).unwrap();
    }
}

/// Stacks of which some are deep and repeat few functions.
fn stacks() -> impl Strategy<Value = Vec<(Vec<usize>, u64)>> {
    let stack = prop_oneof![vec(0..6usize, 1..5), vec(0..3usize, 1..40)];
    prop_oneof![
        vec((stack.clone(), 1..99u64), 1..9),
        vec((stack, 1..99u64), 20..40)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn repeats_are_those_of_the_heaviest_nodes(stacks in stacks(), is_turned in prop_oneof![Just(false), Just(true)]) {
        let mut stacks = stacks;
        let lines = |stacks: &[(Vec<usize>, u64)]| -> String {
            let line = |(stack, weight): &(Vec<usize>, u64)| {
                let names: Vec<String> = stack.iter().map(usize::to_string).collect();
                format!("{} {weight}\n", names.join(";"))
            };
            stacks.iter().map(line).collect()
        };
        let counted = |text: &str| {
            let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
            let selection = profile.select(EventId::new(0), &Filter::default());
            let stacks = Stacks::new(&profile, &selection);
            (stacks.repeats(), stacks.top_down(Collapse::None))
        };
        let (repeats, tree) = counted(&lines(&stacks));
        let mut nodes: Vec<(u64, bool)> = tree.nodes.iter().map(|node| {
            let above = |id: &_| tree.nodes.at(*id).parent;
            let mut above = std::iter::successors(node.parent, above);
            (node.weight(), above.any(|id| tree.nodes.at(id).function == node.function))
        }).collect();
        nodes.sort_unstable_by_key(|&(weight, _)| std::cmp::Reverse(weight));
        prop_assert_eq!(repeats.nodes, nodes.len().min(80));
        // Of several nodes of the weight of the last one, any may be looked at.
        let last = nodes[repeats.nodes - 1].0;
        let repeating = |heavier: &dyn Fn(u64) -> bool| {
            nodes.iter().filter(|&&(weight, repeats)| repeats && heavier(weight)).count()
        };
        prop_assert!(repeats.repeating >= repeating(&|weight| weight > last));
        prop_assert!(repeats.repeating <= repeating(&|weight| weight >= last));
        let degree = if repeats.repeating > 20 { Collapse::Conservative } else { Collapse::None };
        prop_assert_eq!(repeats.degree(), degree);
        if is_turned {
            stacks.reverse();
            prop_assert_eq!(counted(&lines(&stacks)).0, repeats);
        }
    }
}
