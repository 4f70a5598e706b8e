//! Collapsed recursion, as the guide of HP's Puma describes it: its worked examples, its rules, and
//! laws over random recursive stacks, held against its own words followed stack by stack.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proftool::analysis::inclusive;
use proftool::analysis::tree::{CallTree, Collapse, NodeId, Options, Reach, Stacks, Summary};
use proftool::profile::{FunctionId, Profile};
use proftool::view::table::Cell;
use proftool::view::tree as view;
use proftool::view::{Names, Subject};
use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use crate::support::cli::proftool;
use crate::support::puma::{all, folds};
use crate::support::{cases, profile_of};

fn top_down(profile: &Profile, collapse: Collapse) -> CallTree {
    Stacks::new(profile, &all(profile)).top_down(collapse)
}

/// The rows as the guide prints them: in or under, in only, level, name; of a stub level and name.
fn rows(profile: &Profile, tree: &CallTree) -> Vec<String> {
    let row = |id: NodeId| {
        let node = tree.nodes.at(id);
        let name = &profile.functions[node.function].name;
        match (node.stub, node.indirect) {
            (Some(_), _) => format!("{} {name}...", node.level),
            (None, 0) => format!("{} {} {} {name}", node.direct, node.in_only, node.level),
            (None, indirect) => {
                let (direct, own) = (node.direct, node.in_only);
                format!("{direct} ({indirect}) {own} {} {name}", node.level)
            }
        }
    };
    tree.nodes.ids().map(row).collect()
}

/// The names from the root to a node.
fn way(profile: &Profile, tree: &CallTree, node: NodeId) -> Vec<String> {
    let up = std::iter::successors(Some(node), |&node| tree.nodes.at(node).parent);
    let mut way: Vec<String> = up
        .map(|node| profile.functions[tree.nodes.at(node).function].name.clone())
        .collect();
    way.reverse();
    way
}

/// The rows of one stack, which stands in the table with spaces between its frames.
fn of_stack(stack: &str, collapse: Collapse) -> Vec<String> {
    let profile = profile_of(&format!("{} 1\n", stack.replace(' ', ";")));
    rows(&profile, &top_down(&profile, collapse))
}

const EXAMPLE_1: &str =
    "main;r 1\nmain;r;s 1\nmain;r;r 1\nmain;r;r;s 1\nmain;r;r;r 1\nmain;r;r;r;s 1\n";

#[test]
fn the_first_worked_example_is_the_guides() {
    let profile = profile_of(EXAMPLE_1);
    let straight = [
        "6 0 1 main",
        "6 1 2 r",
        "4 1 3 r",
        "2 1 4 r",
        "1 1 5 s",
        "1 1 4 s",
        "1 1 3 s",
    ];
    let none = top_down(&profile, Collapse::None);
    assert_eq!(rows(&profile, &none), straight);
    for collapse in [Collapse::Direct, Collapse::Conservative, Collapse::Full] {
        let tree = top_down(&profile, collapse);
        let expected = ["6 0 1 main", "6 3 2 r", "1 (2) 3 3 s", "3 r..."];
        assert_eq!(rows(&profile, &tree), expected, "{collapse:?}");
        let stub = tree.nodes.iter().last().unwrap();
        assert_eq!((stub.stub, stub.passes), (Some(NodeId::new(1)), 4));
    }
}

#[test]
fn the_second_worked_example_is_the_guides() {
    let stack = "main a b c b a d c";
    let expected = [
        "1 0 1 main",
        "1 0 2 a",
        "1 0 3 b",
        "1 0 4 c",
        "5 b...",
        "4 a...",
        "0 (1) 0 3 d",
        "0 (1) 1 4 c",
    ];
    assert_eq!(of_stack(stack, Collapse::Full), expected);
    // A stub to the second b would lose c, one to the second a would lose b and c, one to the second
    // c would lose d.
    for collapse in [Collapse::None, Collapse::Direct, Collapse::Conservative] {
        let rows = of_stack(stack, collapse);
        assert!(rows.len() == 8 && rows.iter().all(|row| !row.ends_with("...")));
    }
}

#[test]
fn the_rules_examples_hold() {
    // stack, degree, rows
    let cases = [
        // The second a is direct recursion, and is collapsed to main a b.
        (
            "main a a a b",
            Collapse::Direct,
            "1 0 1 main;1 0 2 a;0 (1) 1 3 b;3 a...",
        ),
        // Neither the a nor the b is called by itself.
        (
            "main a b a b",
            Collapse::Direct,
            "1 0 1 main;1 0 2 a;1 0 3 b;1 0 4 a;1 1 5 b",
        ),
        // main a b a stays, as main a loses b; main a b a b becomes main a b, as an a is left.
        (
            "main a b a b",
            Collapse::Conservative,
            "1 0 1 main;1 0 2 a;1 1 3 b;1 0 4 a;5 b...",
        ),
        // The b was reached directly before it was reached again.
        (
            "main a b a b",
            Collapse::Full,
            "1 0 1 main;1 0 2 a;1 1 3 b;4 a...",
        ),
    ];
    for (stack, collapse, expected) in cases {
        let expected: Vec<&str> = expected.split(';').collect();
        assert_eq!(of_stack(stack, collapse), expected, "{stack} {collapse:?}");
    }
}

#[test]
fn full_may_have_more_rows_than_conservative() {
    let profile = profile_of("m;d;a;b;c;d;c;d;b;c 1\n");
    let selection = all(&profile);
    let stacks = Stacks::new(&profile, &selection);
    let nodes = |collapse| {
        let tree = stacks.top_down(collapse);
        tree.nodes.iter().filter(|node| node.stub.is_none()).count()
    };
    assert_eq!(Collapse::ALL.map(nodes), [10, 10, 7, 8]);
}

#[test]
fn a_direct_arrival_stays_direct_and_a_stub_before_makes_it_indirect() {
    // x is reached directly in the first stack, after a jump in the second, and both ways in the
    // third, where the first arrival counts.
    let profile = profile_of("m;x 1\nm;m;x 2\nm;x;m;x 4\n");
    let tree = top_down(&profile, Collapse::Full);
    assert_eq!(
        rows(&profile, &tree),
        ["7 0 1 m", "5 (2) 7 2 x", "3 m...", "2 m..."]
    );
    let passes: Vec<u64> = tree.nodes.iter().map(|node| node.passes).collect();
    assert_eq!(passes, [0, 0, 4, 2]);
}

#[test]
fn a_path_of_100_000_frames_works() {
    // Each of many functions calls the first one: every call is a jump over all that is above.
    let mut text = String::from("f0");
    for i in 1..2_000 {
        text.push_str(&format!(";f{i}"));
    }
    let deep = text.clone();
    let mut lines = format!("{text};f0 1\n");
    let mut at = deep.len();
    while let Some(semicolon) = deep[..at].rfind(';') {
        lines.push_str(&format!("{};f0 1\n", &deep[..at]));
        at = semicolon;
    }
    let profile = profile_of(&lines);
    let tree = top_down(&profile, Collapse::Full);
    assert_eq!(tree.nodes.len(), 2_000 + 1_999);
    assert_eq!(tree.nodes.at(NodeId::new(0)).in_only, 2_000);

    let profile = profile_of(&format!("main{} 5\n", ";a;b;c".repeat(33_333)));
    let selection = all(&profile);
    let stacks = Stacks::new(&profile, &selection);
    let counts = Collapse::ALL.map(|collapse| stacks.rows(collapse, usize::MAX));
    assert_eq!(counts, [100_000, 100_000, 7, 5].map(Some));
    for collapse in [Collapse::Conservative, Collapse::Full] {
        let up = stacks.bottom_up(collapse, Reach::default());
        assert!(up.nodes.len() < 10, "{}", up.nodes.len());
        assert_eq!(up.nodes.iter().map(|node| node.in_only).sum::<u64>(), 5);
    }
}

#[test]
fn a_tree_from_a_function_begins_where_it_is_outermost() {
    let profile = profile_of("m;a;b;a;c 1\nm;b;c 2\nx;a 4\nm 8\n");
    let (selection, a) = (all(&profile), FunctionId::new(1));
    assert_eq!(profile.functions[a].name, "a");
    let stacks = Stacks::within(&profile, &selection, a);
    assert_eq!(stacks.weight(), 5);
    let tree = stacks.top_down(Collapse::Full);
    assert_eq!(
        rows(&profile, &tree),
        ["5 4 1 a", "1 0 2 b", "3 a...", "0 (1) 1 2 c"]
    );
    let up = stacks.bottom_up(Collapse::None, Reach::default());
    assert_eq!(
        rows(&profile, &up),
        ["4 4 1 a", "1 0 1 c", "1 0 2 a", "1 0 3 b", "1 1 4 a"]
    );
}

/// The cases with what Puma makes of them.
fn golden() -> Vec<(String, String, serde_json::Value)> {
    let read = |case: &Path, name: &str| std::fs::read_to_string(case.join(name)).unwrap();
    let golden: Vec<_> = cases("puma.json")
        .iter()
        .map(|case| {
            let name = case.file_name().unwrap().to_string_lossy().into_owned();
            let puma = serde_json::from_str(&read(case, "puma.json")).unwrap();
            (name, read(case, "stacks.folded"), puma)
        })
        .collect();
    assert!(golden.len() >= 13, "{}", golden.len());
    golden
}

/// What is told of a node, by its way: direct, indirect, in only; percentages of the total and of
/// its parent, and of what is in it only. Of a stub its target's way and who went through it.
#[derive(Debug, PartialEq)]
enum Told {
    Node([u64; 4], [f64; 3]),
    Stub(Vec<String>, u64),
}

fn told_by_golden(
    node: &serde_json::Value,
    above: &[String],
    told: &mut BTreeMap<(Vec<String>, bool), Told>,
) {
    let mut way = above.to_vec();
    if let Some(stub) = node["stub"].as_str() {
        way.push(stub.to_owned());
        let target = node["points_to"].as_array().unwrap();
        let target = target.iter().map(|name| name.as_str().unwrap().to_owned());
        let passes = node["passes"].as_u64().unwrap();
        told.insert((way, true), Told::Stub(target.collect(), passes));
        return;
    }
    way.push(node["name"].as_str().unwrap().to_owned());
    let counts = ["level", "direct", "indirect", "in_only"].map(|key| node[key].as_u64().unwrap());
    let shares =
        ["percent", "parent_percent", "only_percent"].map(|key| node[key].as_f64().unwrap());
    for child in node["children"].as_array().unwrap() {
        told_by_golden(child, &way, told);
    }
    told.insert((way, false), Told::Node(counts, shares));
}

fn told_by_us(profile: &Profile, collapse: Collapse) -> BTreeMap<(Vec<String>, bool), Told> {
    let selection = all(profile);
    let subject = Subject::new(profile, &selection, Names::Full);
    let summary = Summary::of(Stacks::new(profile, &selection), &Options::of(collapse));
    let tree = &summary.calls;
    let shown = view::arrange(&subject, &summary, None, &view::Options::default());
    let table = shown.table(&subject);
    let column = |key: &str| {
        let mut columns = table.columns.iter();
        columns.position(|column| column.key == key).unwrap()
    };
    let columns = ["percent", "parent_percent", "in_only_percent"].map(column);
    let mut told = BTreeMap::new();
    for (id, row) in tree.nodes.ids().zip(&table.rows) {
        let node = tree.nodes.at(id);
        let shares = columns.map(|column| match row[column] {
            Cell::Share { part, whole } => part as f64 * 100.0 / whole as f64,
            _ => 0.0,
        });
        let what = match node.stub {
            Some(target) => Told::Stub(way(profile, tree, target), node.passes),
            None => {
                let level = node.level.into();
                Told::Node([level, node.direct, node.indirect, node.in_only], shares)
            }
        };
        told.insert((way(profile, tree, id), node.stub.is_some()), what);
    }
    told
}

#[test]
fn golden_trees_are_the_same_in_every_degree() {
    for (name, stacks, puma) in golden() {
        let profile = profile_of(&stacks);
        for collapse in Collapse::ALL {
            let mut expected = BTreeMap::new();
            for root in puma[collapse.name()]["roots"].as_array().unwrap() {
                told_by_golden(root, &[], &mut expected);
            }
            let ours = told_by_us(&profile, collapse);
            let keys = |told: &BTreeMap<_, _>| told.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(&ours), keys(&expected), "{name} {collapse:?}");
            for (key, told) in &expected {
                match (told, &ours[key]) {
                    (Told::Node(counts, shares), Told::Node(our_counts, our_shares)) => {
                        assert_eq!(our_counts, counts, "{name} {collapse:?} {key:?}");
                        for (ours, share) in our_shares.iter().zip(shares) {
                            assert!((ours - share).abs() <= share * 1e-9, "{name} {key:?}");
                        }
                    }
                    (told, ours) => assert_eq!(told, ours, "{name} {collapse:?} {key:?}"),
                }
            }
        }
    }
}

/// The lines of a table of the guide's shape, each with the names on its way. Every branch is
/// told by its names, as siblings stand in another order there.
fn lines_with_ways(table: &str) -> BTreeSet<(Vec<String>, String)> {
    let mut way: Vec<String> = Vec::new();
    let mut told = BTreeSet::new();
    for line in table.lines() {
        let (level, name) = line[32..].split_once(' ').unwrap();
        way.truncate(level.parse::<usize>().unwrap() - 1);
        way.push(name.trim_start().to_owned());
        assert!(told.insert((way.clone(), line.to_owned())), "twice: {line}");
    }
    told
}

/// The table of the guide's shape, as the command prints it.
fn table_of_command(stacks: &Path, collapse: Collapse) -> String {
    let mut command = proftool(&["tree", "--classic", "--collapse", collapse.name()]);
    let output = command.arg(stacks).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn classic_prints_the_guides_columns() {
    let file = std::env::temp_dir().join(format!("proftool-classic-{}", std::process::id()));
    std::fs::write(&file, EXAMPLE_1).unwrap();
    let full = "\
6               0               1  main
6               3               2   r
1 (2)           3               3    s
                                3    r...
";
    assert_eq!(table_of_command(&file, Collapse::Full), full);
    // Where no degree is asked for, recursion is collapsed as before.
    let output = proftool(&["tree", "--classic"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), full);
    let none = table_of_command(&file, Collapse::None);
    assert!(
        none.contains("\n4               1               3    r\n"),
        "{none}"
    );
    std::fs::write(&file, "main;a;b;c;b;a;d;c 1\n").unwrap();
    let full = "\
1               0               1  main
1               0               2   a
1               0               3    b
1               0               4     c
                                5      b...
                                4     a...
0 (1)           0               3    d
0 (1)           1               4     c
";
    // The children of a stand in the guide's order: the branch of b was needed first.
    assert_eq!(
        table_of_command(&file, Collapse::Full).lines().count(),
        full.lines().count()
    );
    assert_eq!(
        lines_with_ways(&table_of_command(&file, Collapse::Full)),
        lines_with_ways(full)
    );
    let json = proftool(&["tree", "--classic", "--format", "json"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(json.status.code(), Some(2));
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn the_rows_of_the_command_are_those_of_the_guides_tables() {
    let mut rows = 0;
    for case in cases("puma.json") {
        let name = case.display();
        let text = std::fs::read_to_string(case.join("puma.txt")).unwrap();
        let tables: Vec<&str> = text.split("== ").skip(1).collect();
        assert_eq!(tables.len(), Collapse::ALL.len(), "{name}");
        for (collapse, table) in Collapse::ALL.into_iter().zip(tables) {
            let (degree, table) = table.split_once('\n').unwrap();
            assert_eq!(degree, collapse.name(), "{name}");
            let expected = lines_with_ways(table);
            let ours = lines_with_ways(&table_of_command(&case.join("stacks.folded"), collapse));
            assert_eq!(ours, expected, "{name} {degree}");
            rows += expected.len();
        }
    }
    assert!(rows > 400, "{rows}");
}

/// Direct, indirect, in only; of a stub who went through it, and where it leads.
type Counts = (u64, u64, u64, Option<Vec<usize>>);

/// The guide's words, stack by stack: nodes are known by their ways, a stub by its way and a mark.
fn oracle(
    stacks: &[(Vec<usize>, u64)],
    collapse: Collapse,
) -> BTreeMap<(Vec<usize>, bool), Counts> {
    let mut tree: BTreeMap<(Vec<usize>, bool), Counts> = BTreeMap::new();
    for (stack, weight) in stacks {
        let mut at: Vec<usize> = Vec::new();
        let mut jumped = false;
        let mut seen = BTreeSet::new();
        for &function in stack {
            let nearest = at.iter().rposition(|&other| other == function);
            let target = nearest.filter(|&place| folds(&at, place, collapse));
            let mut way = at.clone();
            way.push(function);
            let key = (way.clone(), target.is_some());
            let first = seen.insert(key.clone());
            let counts = tree.entry(key).or_default();
            let added = if first { *weight } else { 0 };
            match target {
                Some(place) => {
                    at.truncate(place + 1);
                    counts.0 += added;
                    counts.3 = Some(at.clone());
                    jumped = true;
                }
                None => {
                    *(if jumped { &mut counts.1 } else { &mut counts.0 }) += added;
                    at = way;
                }
            }
        }
        tree.get_mut(&(at, false)).unwrap().2 += weight;
    }
    tree
}

/// A tree in the oracle's form.
fn ours(profile: &Profile, tree: &CallTree) -> BTreeMap<(Vec<usize>, bool), Counts> {
    let functions = |node: NodeId| -> Vec<usize> {
        let names = way(profile, tree, node);
        names.iter().map(|name| name.parse().unwrap()).collect()
    };
    let row = |id: NodeId| {
        let node = tree.nodes.at(id);
        let counts = match node.stub {
            None => (node.direct, node.indirect, node.in_only, None),
            Some(target) => (node.passes, 0, 0, Some(functions(target))),
        };
        ((functions(id), node.stub.is_some()), counts)
    };
    tree.nodes.ids().map(row).collect()
}

fn text(stacks: &[(Vec<usize>, u64)]) -> String {
    let mut text = String::new();
    for (stack, weight) in stacks {
        let names: Vec<String> = stack.iter().map(usize::to_string).collect();
        text.push_str(&format!("{} {weight}\n", names.join(";")));
    }
    text
}

/// Stacks of few functions, so that most recurse; the frames of some are of two functions only.
fn stacks() -> impl Strategy<Value = Vec<(Vec<usize>, u64)>> {
    let functions = prop_oneof![Just(2usize), Just(4), Just(7)];
    let stack = functions.prop_flat_map(|functions| vec(0..functions, 1..16));
    vec((stack, 1..9u64), 1..20)
}

fn degree() -> impl Strategy<Value = Collapse> {
    proptest::sample::select(Collapse::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trees_follow_the_text_of_the_guide(stacks in stacks(), collapse in degree()) {
        let profile = profile_of(&text(&stacks));
        let tree = top_down(&profile, collapse);
        prop_assert_eq!(ours(&profile, &tree), oracle(&stacks, collapse));
        let selection = all(&profile);
        let stacks = Stacks::new(&profile, &selection);
        let rows = tree.nodes.len();
        prop_assert_eq!(stacks.rows(collapse, rows), Some(rows));
        prop_assert_eq!(stacks.rows(collapse, rows - 1), None);
    }

    #[test]
    fn bottom_up_trees_are_those_of_the_reversed_stacks(
        stacks in stacks(),
        collapse in degree(),
    ) {
        let profile = profile_of(&text(&stacks));
        let selection = all(&profile);
        let reach = Reach { depth: u32::MAX, min: 0 };
        let tree = Stacks::new(&profile, &selection).bottom_up(collapse, reach);
        let turn = |(stack, weight): &(Vec<usize>, u64)| {
            (stack.iter().rev().copied().collect(), *weight)
        };
        let turned: Vec<(Vec<usize>, u64)> = stacks.iter().map(turn).collect();
        prop_assert_eq!(ours(&profile, &tree), oracle(&turned, collapse));
    }

    #[test]
    fn trees_from_a_function_are_those_of_the_stacks_cut_there(
        stacks in stacks(),
        collapse in degree(),
        from in 0..2usize,
    ) {
        let profile = profile_of(&text(&stacks));
        let selection = all(&profile);
        let known = profile.functions.enumerate().find(|(_, f)| f.name == from.to_string());
        let Some((function, _)) = known else { return Ok(()) };
        let cut = |(stack, weight): &(Vec<usize>, u64)| {
            let start = stack.iter().position(|&frame| frame == from)?;
            Some((stack[start..].to_vec(), *weight))
        };
        let cut: Vec<(Vec<usize>, u64)> = stacks.iter().filter_map(cut).collect();
        let within = Stacks::within(&profile, &selection, function);
        let tree = within.top_down(collapse);
        prop_assert_eq!(ours(&profile, &tree), oracle(&cut, collapse));
        prop_assert_eq!(within.weight(), cut.iter().map(|(_, weight)| weight).sum::<u64>());
    }

    #[test]
    fn no_weight_is_lost_and_no_node_exceeds_its_parent(
        stacks in stacks(),
        collapse in degree(),
    ) {
        let profile = profile_of(&text(&stacks));
        let selection = all(&profile);
        let weights = inclusive::by_function(&profile, &selection);
        let tree = top_down(&profile, collapse);
        let own: u64 = tree.nodes.iter().map(|node| node.in_only).sum();
        prop_assert_eq!(own, selection.total());
        for id in tree.nodes.ids() {
            let node = tree.nodes.at(id);
            prop_assert!(node.weight() <= weights.total[node.function]);
            prop_assert!(node.in_only <= node.weight());
            if let Some(parent) = node.parent {
                prop_assert!(node.standing() <= tree.nodes.at(parent).weight());
            }
            let names = way(&profile, &tree, id);
            let distinct: BTreeSet<&String> = names.iter().collect();
            if collapse == Collapse::Full && node.stub.is_none() {
                prop_assert_eq!(distinct.len(), names.len());
            }
        }
    }

    #[test]
    fn no_name_is_lost_where_collapsing_is_conservative(stacks in stacks()) {
        for (stack, weight) in stacks {
            let profile = profile_of(&text(&[(stack.clone(), weight)]));
            let tree = top_down(&profile, Collapse::Conservative);
            let end = tree.nodes.ids().find(|&id| tree.nodes.at(id).in_only > 0).unwrap();
            let names: BTreeSet<String> = way(&profile, &tree, end).into_iter().collect();
            let expected: BTreeSet<String> = stack.iter().map(usize::to_string).collect();
            prop_assert_eq!(names, expected);
        }
    }

    #[test]
    fn the_order_of_samples_changes_nothing(stacks in stacks(), collapse in degree()) {
        let turned: Vec<(Vec<usize>, u64)> = stacks.iter().rev().cloned().collect();
        let one = profile_of(&text(&stacks));
        let other = profile_of(&text(&turned));
        let outline = |profile: &Profile| rows(profile, &top_down(profile, collapse));
        prop_assert_eq!(outline(&one), outline(&other));
    }
}
