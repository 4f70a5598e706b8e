//! What a page shows of a part of time: collapsed trees, which are made of the sums of the tree of every call,
//! and pages that are about a part of time themselves.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support;
use crate::support::html::{data, flat_rows, json, proftool, unpacked};
use crate::support::html_time::{TimePage, in_buckets, random_recursion, seconds};
use crate::support::written::{CPU_CLOCK, Recording, Taken};

/// A tree of a page, its nodes from 1 on; 0 stands for all roots.
struct Tree {
    parent: Vec<usize>,
    level: Vec<usize>,
    function: Vec<u64>,
    is_stub: Vec<bool>,
    /// Of a stub how many levels up it leads.
    up: Vec<u64>,
}

fn tree(event: &Value, degree: &str) -> Tree {
    let packed = unpacked(&event["trees"][degree]);
    let count = packed[0] as usize;
    // Nothing is left out of so small a tree.
    assert_eq!(packed[1], 0);
    let column = |number: usize| &packed[3 + number * count..3 + (number + 1) * count];
    let mut tree = Tree {
        parent: vec![0],
        level: vec![0],
        function: vec![u64::MAX],
        is_stub: vec![false],
        up: vec![0],
    };
    let mut path = vec![0];
    for node in 0..count {
        path.truncate(path.len() - column(0)[node] as usize);
        tree.parent.push(*path.last().unwrap());
        tree.level.push(path.len());
        path.push(node + 1);
        tree.function.push(column(1)[node]);
        tree.is_stub.push(column(2)[node] & 1 == 1);
        tree.up.push(column(5)[node]);
    }
    tree
}

/// What ends in the nodes of the tree of every call in these buckets.
fn ends(event: &Value, nodes: usize, first: u64, last: u64) -> Vec<u64> {
    let times = unpacked(&event["tree_times"]);
    let (unit, sums) = (times[0], times[1] as usize);
    let column = |number: usize| &times[2 + number * sums..2 + (number + 1) * sums];
    let (mut own, mut code) = (vec![0; nodes], 0);
    for sum in 0..sums {
        code += column(0)[sum];
        if (first..=last).contains(&column(1)[sum]) {
            own[code as usize / 2] += column(2)[sum] * unit;
        }
    }
    own
}

/// By the names on the way and whether the last is a stub: what passes a stub, or the total of a node and what
/// ends in it.
type Figures = BTreeMap<(Vec<String>, bool), (u64, u64)>;

/// Follows each frame of the tree of every call into a collapsed one, as the page does.
fn collapsed(data: &Value, every: &Tree, own: &[u64], tree: &Tree) -> Figures {
    let count = tree.parent.len();
    let under: BTreeMap<(usize, u64), usize> = (1..count)
        .map(|node| ((tree.parent[node], tree.function[node]), node))
        .collect();
    let mut width = own.to_vec();
    for node in (1..width.len()).rev() {
        width[every.parent[node]] += width[node];
    }
    let (mut step, mut at) = (vec![0; every.parent.len()], vec![0; every.parent.len()]);
    let (mut passes, mut ends_in, mut open) = (vec![0; count], vec![0; count], vec![0; count]);
    let mut path: Vec<usize> = Vec::new();
    for node in 1..every.parent.len() {
        while path.len() >= every.level[node] {
            open[step[path.pop().unwrap()]] -= 1;
        }
        path.push(node);
        step[node] = under[&(at[every.parent[node]], every.function[node])];
        at[node] = step[node];
        if tree.is_stub[step[node]] {
            (0..tree.up[step[node]]).for_each(|_| at[node] = tree.parent[at[node]]);
        }
        ends_in[at[node]] += own[node];
        if open[step[node]] == 0 {
            passes[step[node]] += width[node];
        }
        open[step[node]] += 1;
    }
    let mut names: Vec<Vec<String>> = vec![Vec::new()];
    let mut figures = Figures::new();
    for node in 1..count {
        let mut path = names[tree.parent[node]].clone();
        let name = &data["functions"]["names"][tree.function[node] as usize];
        path.push(name.as_str().unwrap().to_owned());
        names.push(path.clone());
        if passes[node] > 0 {
            let own = if tree.is_stub[node] { 0 } else { ends_in[node] };
            figures.insert((path, tree.is_stub[node]), (passes[node], own));
        }
    }
    figures
}

/// The same of the command.
fn wanted(tree: &Value) -> Figures {
    let mut figures = Figures::new();
    let roots = tree["roots"].as_array().unwrap().iter();
    let mut waiting: Vec<(Vec<String>, &Value)> = roots.map(|root| (Vec::new(), root)).collect();
    while let Some((mut path, node)) = waiting.pop() {
        path.push(node["name"].as_str().unwrap().to_owned());
        let is_stub = node["stub"] == true;
        let weight = |key: &str| node[key].as_u64().unwrap();
        let weights = if is_stub {
            (weight("passes"), 0)
        } else {
            (weight("total"), weight("in_only"))
        };
        let children = node["children"].as_array().unwrap().iter();
        waiting.extend(children.map(|child| (path.clone(), child)));
        if weights.0 > 0 {
            figures.insert((path, is_stub), weights);
        }
    }
    figures
}

/// Compares the collapsed trees of a page with those of the command in some parts of time; returns the number
/// of stubs.
fn compare_collapsed(directory: &Path) -> usize {
    let page = TimePage::of(directory);
    let (event, buckets) = (page.event(), page.buckets);
    let every = tree(event, "none");
    let mut stubs = 0;
    for (first, last) in [(0, buckets / 3), (buckets / 3, buckets - 1)] {
        let range = page.range(first, last);
        let own = ends(event, every.parent.len(), first, last);
        for degree in ["direct", "conservative", "full"] {
            let found = collapsed(&page.data, &every, &own, &tree(event, degree));
            let arguments = ["tree", "--collapse", degree, "--unfold", "--time", &range];
            let tree = json(&[&arguments[..], &["perf.data"]].concat(), directory);
            let wanted = wanted(&tree);
            assert_eq!(found, wanted, "{}: {degree} {range}", directory.display());
            stubs += wanted.keys().filter(|(_, is_stub)| *is_stub).count();
        }
    }
    stubs
}

#[test]
fn collapsed_trees_of_a_part_of_time_are_those_of_tree() {
    let mut stubs = 0;
    for directory in support::cases("perf.data") {
        stubs += compare_collapsed(&directory);
    }
    for seed in 5..8 {
        stubs += compare_collapsed(&random_recursion(seed));
    }
    assert!(stubs > 100, "{stubs}");
}

#[test]
fn a_page_of_a_part_of_time_has_a_time_line_of_that_part() {
    let directory = random_recursion(9);
    // The last bucket would go on behind the end.
    let (start, end) = (700_000_000, 1_933_000_000);
    let window = format!("{}..{}", seconds(start), seconds(end));
    let arguments = ["export", "--to", "html", "--time", &window, "perf.data"];
    let page = String::from_utf8(proftool(&arguments, &directory)).unwrap();
    let data = data(&page);
    let event = &data["events"][0];
    let time = &event["time"];
    assert_eq!((&time["start"], &time["end"]), (&start.into(), &end.into()));
    let length = time["bucket"].as_u64().unwrap();
    let columns = unpacked(&time["columns"]);
    let (unit, buckets) = (columns[0], columns[1]);
    let weights = &columns[2..2 + buckets as usize];
    assert!(buckets > 50, "{buckets}");
    assert_eq!(event["total"], weights.iter().sum::<u64>() * unit);
    for bucket in [0, buckets / 2, buckets - 1] {
        let from = start + bucket * length;
        let range = format!("{}..{}", seconds(from), seconds((from + length).min(end)));
        let flat = json(&["flat", "--time", &range, "perf.data"], &directory);
        assert_eq!(flat["total"], weights[bucket as usize] * unit, "{range}");
    }
    // Commands about a part of it do not name the whole of it, too.
    let commands = &event["part_commands"]["tree-full"];
    assert_eq!(commands[1], "");
    let command = commands[0].as_str().unwrap();
    assert!(command.ends_with(" --time ") && command.matches("--time").count() == 1);
    let command = event["commands"]["tree-full"][0].as_str().unwrap();
    assert!(command.contains(&format!("--time {window}")), "{command}");
}

#[test]
fn a_page_without_room_leaves_out_the_lightest_and_keeps_what_is_left_exact() {
    // The names alone take more than a page should.
    const FUNCTIONS: u64 = 6_000;
    let directory = support::directory("html-room");
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    let start = |function: u64| 0xffff_ffff_8100_0000 + 0x1000 * function;
    recording.process(7, "many");
    for function in 0..FUNCTIONS {
        let name = format!("f{function}_{}", "x".repeat(800));
        recording.kernel_function(&name, start(function), 0x1000);
    }
    for number in 0..FUNCTIONS + 1200 {
        // The first ones are taken twice.
        let function = number % FUNCTIONS;
        recording.sample(Taken {
            task: 7,
            time: 1_000_000_000 + number * 1_000_000,
            kernel: &[start(function) + 0x10, start(function / 10) + 0x20],
            ..Taken::default()
        });
    }
    recording.write(&directory.join("perf.data"));
    let page = proftool(&["export", "--to", "html", "perf.data"], &directory);
    let data = data(&String::from_utf8(page).unwrap());
    let event = &data["events"][0];
    for degree in ["none", "direct", "conservative", "full"] {
        let packed = unpacked(&event["trees"][degree]);
        let (count, left) = (packed[0] as usize, packed[1] as usize);
        let tree = json(&["tree", "--collapse", degree, "perf.data"], &directory);
        let nodes = |text: &str| text.matches("\"level\":").count();
        assert_eq!(count + left, nodes(&tree.to_string()), "{degree}");
        assert!(0 < count && count <= 5000 && left > 0, "{degree}: {count}");
        // What ends in nodes, what is left out under them, and the roots that are left out.
        let column = |number: usize| &packed[3 + number * count..3 + (number + 1) * count];
        let mut total = packed[2];
        for node in 0..count {
            if column(2)[node] & 1 == 0 {
                total += column(3)[node] + column(5)[node];
            }
        }
        assert_eq!(event["total"], total, "{degree}");
    }
    let time = &event["time"];
    let buckets = unpacked(&time["columns"])[1];
    assert!(buckets <= 16, "{buckets}");
    assert_eq!(
        (&time["calls"], &time["is_without_calls"]),
        (&Value::Null, &true.into())
    );
    assert_eq!(event["tree_times"], Value::Null);
    // The functions of a part of time are there still.
    let length = time["bucket"].as_u64().unwrap();
    let range = format!("{}..{}", seconds(length), seconds(3 * length));
    let flat = json(&["flat", "--time", &range, "perf.data"], &directory);
    let found = in_buckets(event, 1, 2);
    let wanted = flat_rows(&flat);
    assert_eq!(found.len(), wanted.len());
    let sum = |sums: Vec<(u64, u64)>| sums.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let wanted = wanted.iter().map(|row| (row.2, row.3)).collect();
    assert_eq!(sum(found.values().copied().collect()), sum(wanted));
}
