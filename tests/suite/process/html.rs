//! The page for a browser: it has the numbers of the command line, asks for nothing, and no name in it
//! is code. What a browser makes of it is tried elsewhere; here the data in it is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proftool::analysis::detail::{self, Neighbour, Rule, pairs};
use proftool::profile::{EventId, Filter};
use proptest::collection::vec;
use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support;
use crate::support::html::{data, flat_rows, inside, json, numbers, proftool, unpacked};

/// Recursion, a cycle, names that end a script or open a comment, and a name that a shell would take apart.
const STACKS: &str = "\
main;parse;lex;parse;lex 40
main;parse;eval;parse 30
main;parse;lex 20
main;a;a;a;b 12
main;a;b;a;c 9
main;</script><script>document.title='owned'</script>;b 10
main;<!--<script>;it's \"$HOME\" 7
main;operator<< <int>(std::vector<int>&) 3
[truncated];lex 5
";

/// A directory with these stacks in a file, and their page.
fn page_of(name: &str, stacks: &str) -> (PathBuf, String) {
    let directory = support::directory(name);
    std::fs::write(directory.join("stacks.folded"), stacks).unwrap();
    let page = proftool(&["export", "--to", "html", "stacks.folded"], &directory);
    (directory, String::from_utf8(page).unwrap())
}

/// The name, module, self weight and total of each row of an event.
fn rows(data: &Value, event: &Value) -> Vec<(String, String, u64, u64)> {
    let functions = &data["functions"];
    let flat = &event["flat"];
    let weights = numbers(&flat["self_weights"]).into_iter();
    let weights = weights.zip(numbers(&flat["totals"]));
    let places = numbers(&flat["functions"]).into_iter();
    let row = |(place, (own, total)): (u64, (u64, u64))| {
        let place = place as usize;
        let module = functions["modules"][place].as_u64().unwrap() as usize;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (
            text(&functions["names"][place]),
            text(&functions["module_names"][module]),
            own,
            total,
        )
    };
    places.zip(weights).map(row).collect()
}

#[test]
fn rows_of_a_page_are_those_of_flat() {
    let (directory, page) = page_of("html-rows", STACKS);
    let data = data(&page);
    assert_eq!(data["format"], "proftool-html/1");
    let flat = json(&["flat", "stacks.folded"], &directory);
    let event = &data["events"][0];
    assert_eq!(event["total"], flat["total"]);
    assert_eq!(rows(&data, event), flat_rows(&flat));
}

#[test]
fn the_commands_of_a_page_have_its_filters() {
    let (directory, _) = page_of("html-filters", STACKS);
    let filters = ["--focus", "^lex$", "--ignore", "eval|it's", "stacks.folded"];
    let mut arguments = vec!["export", "--to", "html"];
    arguments.extend(filters);
    let page = String::from_utf8(proftool(&arguments, &directory)).unwrap();
    let data = data(&page);
    let mut arguments = vec!["flat"];
    arguments.extend(filters);
    let flat = json(&arguments, &directory);
    let event = &data["events"][0];
    assert_eq!(rows(&data, event), flat_rows(&flat));
    let command = event["commands"]["flat-self"][0].as_str().unwrap();
    assert!(
        command
            .starts_with("proftool flat stacks.folded --focus '^lex$' --ignore 'eval|it'\\''s' ")
    );
}

#[test]
fn the_commands_of_a_page_name_a_chosen_event_once() {
    let (directory, _) = page_of("html-event", STACKS);
    let arguments = [
        "export",
        "--to",
        "html",
        "--event",
        "samples",
        "stacks.folded",
    ];
    let page = String::from_utf8(proftool(&arguments, &directory)).unwrap();
    let commands = &data(&page)["events"][0]["commands"];
    for view in ["flat-self", "report", "tree-none"] {
        let command = commands[view][0].as_str().unwrap();
        assert_eq!(command.matches("--event samples").count(), 1, "{command}");
    }
}

#[test]
fn each_degree_of_a_page_has_the_tree_of_the_command() {
    let (directory, page) = page_of("html-trees", STACKS);
    let data = data(&page);
    for degree in ["none", "direct", "conservative", "full"] {
        let packed = unpacked(&data["events"][0]["trees"][degree]);
        let count = packed[0] as usize;
        let column = |number: usize| &packed[3 + number * count..3 + (number + 1) * count];
        let tree = json(&["tree", "--collapse", degree, "stacks.folded"], &directory);
        let mut wanted = Vec::new();
        let mut waiting: Vec<&Value> = tree["roots"].as_array().unwrap().iter().rev().collect();
        while let Some(node) = waiting.pop() {
            wanted.push(node);
            waiting.extend(node["children"].as_array().unwrap().iter().rev());
        }
        assert_eq!(count, wanted.len(), "{degree}");
        // A node passes on what ends in or under it, and more passes it than that.
        let mut widths = column(3).to_vec();
        let mut levels = Vec::new();
        let mut parents: Vec<Option<usize>> = Vec::new();
        let mut path: Vec<usize> = Vec::new();
        for (place, &up) in column(0).iter().enumerate() {
            path.truncate(path.len() - up as usize);
            parents.push(path.last().copied());
            path.push(place);
            levels.push(path.len() as u64);
        }
        for place in (0..count).rev() {
            if let (Some(parent), false) = (parents[place], column(2)[place] & 1 == 1) {
                widths[parent] += widths[place];
            }
        }
        for (place, node) in wanted.iter().enumerate() {
            let name = &data["functions"]["names"][column(1)[place] as usize];
            assert_eq!(*name, node["name"]);
            assert_eq!(node["level"], levels[place]);
            let is_stub = column(2)[place] & 1 == 1;
            assert_eq!(node["stub"], is_stub);
            if is_stub {
                assert_eq!(node["passes"], column(3)[place]);
                assert_eq!(node["to_level"], levels[place] - column(5)[place]);
            } else {
                assert_eq!(node["in_only"], column(3)[place]);
                let total = widths[place] + column(4)[place];
                assert_eq!(node["total"], total, "{degree}: {name}");
            }
        }
        let all: u64 = (0..count)
            .filter(|&place| parents[place].is_none())
            .map(|place| widths[place])
            .sum();
        assert_eq!(data["events"][0]["total"], all, "{degree}");
    }
}

#[test]
fn callers_and_callees_of_a_page_are_those_of_detail() {
    let (directory, page) = page_of("html-pairs", STACKS);
    let data = data(&page);
    let packed = unpacked(&data["events"][0]["pairs"]);
    let count = packed[0] as usize;
    let column = |number: usize| &packed[1 + number * count..1 + (number + 1) * count];
    let names = &data["functions"]["names"];
    for (place, name) in names.as_array().unwrap().iter().enumerate() {
        let name = name.as_str().unwrap();
        let detail = json(&["detail", name, "stacks.folded"], &directory);
        let wanted = |key: &str| -> BTreeMap<String, (u64, bool)> {
            let listed = detail[key].as_array().unwrap().iter();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let weight = |it: &Value| it["weight"].as_u64().unwrap();
            let recursive = |it: &Value| it["recursive"].as_bool().unwrap();
            listed
                .map(|it| (text(&it["name"]), (weight(it), recursive(it))))
                .collect()
        };
        let found = |end: usize, other: usize, mark: u64| -> BTreeMap<String, (u64, bool)> {
            (0..count)
                .filter(|&pair| column(end)[pair] as usize == place)
                .map(|pair| {
                    let name = names[column(other)[pair] as usize].as_str().unwrap();
                    (
                        name.to_owned(),
                        (column(2)[pair], column(3)[pair] & mark != 0),
                    )
                })
                .collect()
        };
        assert_eq!(wanted("callers"), found(1, 0, 1), "{name}");
        assert_eq!(wanted("descendants"), found(0, 1, 2), "{name}");
    }
}

#[test]
fn each_command_of_a_page_can_be_run() {
    let (directory, page) = page_of("html-commands", STACKS);
    let data = data(&page);
    let functions = &data["functions"];
    let quoted: BTreeMap<u64, &str> = (functions["quoted"].as_array().unwrap().iter())
        .map(|pair| (pair[0].as_u64().unwrap(), pair[1].as_str().unwrap()))
        .collect();
    let in_quotes = numbers(&functions["in_quotes"]);
    // Of these stacks, some names need quotes, and one more than that.
    assert!(!quoted.is_empty() && !in_quotes.is_empty());
    let program = Path::new(env!("CARGO_BIN_EXE_proftool"));
    let path = std::env::join_paths([
        program.parent().unwrap(),
        Path::new("/usr/bin"),
        Path::new("/bin"),
    ])
    .unwrap();
    let run = |command: &str| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).env("PATH", &path);
        let done = shell.current_dir(&directory).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{command}: {said}");
        assert!(!done.stdout.is_empty(), "{command}");
    };
    for (key, parts) in data["events"][0]["commands"].as_object().unwrap() {
        let parts: Vec<&str> = parts
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        if key.starts_with("time") {
            continue;
        }
        let [before, after] = parts[..] else {
            run(parts[0]);
            continue;
        };
        for (place, name) in functions["names"].as_array().unwrap().iter().enumerate() {
            let name = quoted
                .get(&(place as u64))
                .copied()
                .or(name.as_str())
                .unwrap();
            let quote = if in_quotes.contains(&(place as u64)) {
                "'"
            } else {
                ""
            };
            run(&format!("{before}{quote}{name}{quote}{after}"));
        }
    }
}

#[test]
fn no_name_leaves_the_data_of_a_page() {
    let (_, page) = page_of("html-names", STACKS);
    // The data and the views; nothing of a name.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(page.matches("<!--").count(), 0);
    let data = data(&page);
    let names = data["functions"]["names"].to_string();
    assert!(names.contains("</script><script>document.title='owned'</script>"));
}

#[test]
fn a_page_asks_for_nothing_and_allows_only_its_own_script_and_style() {
    let (directory, page) = page_of("html-policy", STACKS);
    for request in [
        "http:",
        "https:",
        "url(",
        "@import",
        " src=",
        " href=",
        "fetch(",
        "XMLHttpRequest",
        "import(",
        "eval(",
        "innerHTML",
        "insertAdjacentHTML",
        "document.write",
    ] {
        assert!(!page.contains(request), "{request}");
    }
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = inside(&page, "content=\"default-src", "\"");
    let script = inside(&page, "<script>", "</script>");
    let style = inside(&page, "<style>", "</style>");
    assert!(policy.starts_with(" 'none'; script-src 'sha256-"));
    assert!(policy.contains(&hash(script)) && policy.contains(&hash(style)));
    let again = proftool(&["export", "--to", "html", "stacks.folded"], &directory);
    assert_eq!(again, page.as_bytes());
}

#[test]
fn report_writes_the_page_of_export() {
    let (directory, page) = page_of("html-report", STACKS);
    proftool(
        &["report", "--html", "page.html", "stacks.folded"],
        &directory,
    );
    let written = std::fs::read_to_string(directory.join("page.html")).unwrap();
    assert_eq!(written, page);
}

#[test]
fn a_page_of_no_samples_is_a_page() {
    let (_, page) = page_of("html-empty", "main 0\n");
    assert_eq!(data(&page)["events"][0]["total"], 0);
}

/// Left, top, right and bottom.
type Edges = [i64; 4];

fn edges(list: &Value, first: usize, size: Option<(i64, i64)>) -> Edges {
    let at = |place: usize| list[place].as_i64().unwrap();
    let (left, top) = (at(first), at(first + 1));
    let (width, height) = size.unwrap_or_else(|| (at(first + 2), at(first + 3)));
    [left, top, left + width, top + height]
}

fn overlap(a: &Edges, b: &Edges) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[test]
fn the_drawing_of_a_page_has_its_functions_apart_and_cycles_around_their_members() {
    let (directory, page) = page_of("html-drawing", STACKS);
    let data = data(&page);
    let event = &data["events"][0];
    let drawing = &event["drawings"][0];
    let size = |place: usize| drawing["node"][place].as_i64().unwrap();
    let functions = drawing["functions"].as_array().unwrap();
    assert_eq!(drawing["hidden_functions"], 0);
    assert_eq!(functions.len(), rows(&data, event).len());
    let boxes: BTreeMap<u64, Edges> = functions
        .iter()
        .map(|it| {
            let edges = edges(it, 1, Some((size(0), size(1))));
            (it[0].as_u64().unwrap(), edges)
        })
        .collect();
    for (a, first) in &boxes {
        let others = boxes.iter().filter(|(b, _)| a < *b);
        assert!(others.into_iter().all(|(_, other)| !overlap(first, other)));
    }
    // The members of each cycle are in its box, and nothing else is.
    let names = &data["functions"]["names"];
    let cycles = json(&["cycles", "stacks.folded"], &directory);
    let cycles = cycles["cycles"].as_array().unwrap();
    assert_eq!(drawing["cycles"].as_array().unwrap().len(), cycles.len());
    assert_eq!(cycles.len(), 2);
    for drawn in drawing["cycles"].as_array().unwrap() {
        let cycle = &cycles[drawn[0].as_u64().unwrap() as usize - 1];
        let members = cycle["members"].as_array().unwrap().iter();
        let mut members: Vec<&str> = members.map(|it| it.as_str().unwrap()).collect();
        members.sort_unstable();
        let around = edges(drawn, 1, None);
        let inside = boxes.iter().filter(|(_, node)| overlap(node, &around));
        let mut found: Vec<&str> = inside
            .map(|(&place, node)| {
                assert!(node[0] > around[0] && node[1] > around[1]);
                assert!(node[2] < around[2] && node[3] < around[3]);
                names[place as usize].as_str().unwrap()
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, members);
    }
    // An arc leads from its caller's edge to its callee's.
    let calls = drawing["calls"].as_array().unwrap();
    assert!(calls.len() > 8);
    assert!(calls.iter().any(|call| call["is_upward"] == true));
    for call in calls {
        let points = call["points"].as_array().unwrap();
        let at = |place: usize| points[place].as_i64().unwrap();
        let [from, to] = [0, 1].map(|end| boxes[&call["ends"][end].as_u64().unwrap()]);
        let (leaves, enters) = match call["is_upward"].as_bool().unwrap() {
            true => (from[1], to[3]),
            false => (from[3], to[1]),
        };
        // Each coordinate is rounded by itself.
        assert!(at(1).abs_diff(leaves) <= 1, "{call}");
        assert!(at(points.len() - 1).abs_diff(enters) <= 1, "{call}");
        assert!((from[0]..=from[2]).contains(&at(0)));
        assert!((to[0]..=to[2]).contains(&at(points.len() - 2)));
    }
}

proptest! {
    #[test]
    fn pairs_have_the_weights_of_every_detail(
        stacks in vec((vec(0..5u8, 1..9), 0..50u32), 1..12),
    ) {
        let line = |(stack, weight): &(Vec<u8>, u32)| {
            let names: Vec<String> = stack.iter().map(|name| format!("f{name}")).collect();
            format!("{} {weight}\n", names.join(";"))
        };
        let profile = support::profile_of(&stacks.iter().map(line).collect::<String>());
        let selection = profile.select(EventId::new(0), &Filter::default());
        let found = pairs::of_all(&profile, &selection);
        for id in profile.functions.ids() {
            let detail = detail::of(&profile, &selection, id, Rule::Strict);
            let listed = |neighbours: &[Neighbour]| {
                let figures = |it: &Neighbour| (it.function, it.weight, it.recursive, it.inlined);
                let mut listed: Vec<_> = neighbours.iter().map(figures).collect();
                listed.sort_unstable();
                listed
            };
            let callers = found.iter().filter(|pair| pair.callee == id);
            let callers = callers.map(|it| (it.caller, it.weight, it.caller_recurses, it.inlined));
            prop_assert_eq!(listed(&detail.callers), callers.collect::<Vec<_>>());
            let callees = found.iter().filter(|pair| pair.caller == id);
            let callees = callees.map(|it| (it.callee, it.weight, it.callee_recurses, it.inlined));
            prop_assert_eq!(listed(&detail.descendants), callees.collect::<Vec<_>>());
        }
    }
}

/// Rows of templates that begin alike can be told apart where the page has little room.
#[test]
fn long_names_have_short_labels_that_no_other_function_has() {
    let stacks = "\
main;void std::sort<a::Iterator<std::vector<int> > >(a::Iterator<std::vector<int> >) 5
main;std::vector<int, std::allocator<int> >::push_back(int const&) 4
main;std::vector<long, std::allocator<long> >::push_back(long const&) 3
main;std::vector<long, std::allocator<long> >::reserve(unsigned long) 2
";
    let (directory, page) = page_of("html_short_labels", stacks);
    let data = data(&page);
    let names = data["functions"]["names"].as_array().unwrap();
    let short = data["functions"]["short"].as_array().unwrap();
    assert_eq!(short.len(), 4);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut shown: Vec<String> = names.iter().map(text).collect();
    for it in short {
        shown[it[0].as_u64().unwrap() as usize] = text(&it[1]);
    }
    // Both are in order of self weight.
    let flat = json(&["flat", "--names", "short", "stacks.folded"], &directory);
    let rows = flat["functions"].as_array().unwrap().iter();
    let labels: Vec<String> = rows.map(|row| text(&row["label"])).collect();
    assert_eq!(shown, labels);
    assert_eq!(labels[1], "std::vector<int>::push_back");
}
