//! Laws over random profiles.

use std::collections::{BTreeMap, BTreeSet};

use proftool::analysis;
use proftool::analysis::detail::Rule;
use proftool::analysis::function;
use proftool::analysis::inclusive::{self, FunctionWeights};
use proftool::analysis::owners::Owners;
use proftool::analysis::report::Summary;
use proftool::analysis::tree::{self, CallTree, Collapse, Reach, Stacks};
use proftool::base::{Caveat, Event, Language, WeightSum, is_unsafe_char};
use proftool::callgraph::{CallGraph, Cycles};
use proftool::export::{Advice, csv, folded as export, json, text};
use proftool::input::folded as input;
use proftool::names::search::{self, Found};
use proftool::names::{Form, in_form, of_text};
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionKind, Line, Module, PathId, Profile, Selection,
    Thread, Weighing, pattern_of,
};
use proftool::view::question::Question;
use proftool::view::{Names, Subject, detail as detail_view, flat, report, tree as tree_view};
use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, TestCaseError, any, prop_assert, prop_assert_eq, prop_oneof,
    proptest,
};
use regex::Regex;

/// A character that some format has to be careful with, or any other.
fn character() -> impl Strategy<Value = char> {
    let delicate: Vec<char> =
        ";,\"'\\ \t\n\r\0\x1b\x7f\u{80}\u{9b}\u{202e}\u{2066}\u{2028}\u{200b}\u{ad}\u{feff}\u{e0041}<>(){}&x3bu=-+@"
            .chars()
            .collect();
    prop_oneof![
        3 => proptest::sample::select(delicate),
        2 => proptest::char::range('a', 'e'),
        1 => any::<char>(),
    ]
}

fn name() -> impl Strategy<Value = String> {
    vec(character(), 0..12).prop_map(String::from_iter)
}

/// One sample: the stack by function and whether inlined, thread, weight, count, line.
type Taken = (Vec<(usize, bool)>, usize, u64, u64, Option<u32>);

fn taken(functions: usize) -> impl Strategy<Value = Taken> {
    (
        vec((0..functions, any::<bool>()), 1..9),
        0..3usize,
        prop_oneof![9 => 0..50u64, 1 => Just(u64::MAX / 2)],
        1..3u64,
        proptest::option::of(1..5u32),
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    vec(name(), 1..7).prop_flat_map(|names| {
        let functions = names.len();
        vec(taken(functions), 0..24).prop_map(move |samples| build(&names, &samples))
    })
}

/// What tells a function of a name that others have too: name, module, declaration, address.
type Identity = (usize, usize, Option<(usize, u32)>, Option<u64>);

/// Functions of few names, from few modules and files, so that names collide in every way.
fn colliding() -> impl Strategy<Value = Profile> {
    let few = proptest::sample::select(vec!["step", "a::step<int>(int)", "main", "x y"]);
    let identity = (
        0..2usize,
        0..2usize,
        proptest::option::of((0..2usize, 1..3u32)),
        proptest::option::of(0..3u64),
    );
    let names = vec(
        prop_oneof![2 => few.prop_map(String::from), 1 => name()],
        2..3,
    );
    (names, vec(identity, 2..9)).prop_flat_map(|(names, identities)| {
        let functions = identities.len();
        vec(taken(functions), 1..16)
            .prop_map(move |samples| build_as(&names, &identities, &samples))
    })
}

fn build_as(names: &[String], identities: &[Identity], samples: &[Taken]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let modules = ["app", "/lib/app"].map(|path| {
        builder.module(Module {
            name: "app".into(),
            path: path.into(),
        })
    });
    let functions: Vec<_> = identities
        .iter()
        .map(|&(name, module, declared, address)| {
            builder.function(Function {
                language: of_text(&names[name]),
                name: names[name].clone(),
                linkage_name: None,
                declared_at: declared.map(|(file, line)| {
                    let file = ["/src/a/it.c", "/src/b/it.c"][file].into();
                    Box::new(Line { file, line })
                }),
                module: modules[module],
                address,
                kind: FunctionKind::Named,
            })
        })
        .collect();
    let thread = builder.thread(Thread::new(1, 1, "app"));
    for (stack, _, weight, count, _) in samples {
        let mut path = None;
        for &(function, inlined) in stack {
            path = Some(builder.path(path, functions[function], inlined && path.is_some()));
        }
        let weight = WeightSum::equal(*weight, *count);
        builder.sample(event, thread, path.unwrap(), None, weight);
    }
    builder.finish()
}

fn build(names: &[String], samples: &[Taken]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let functions: Vec<_> = (0..)
        .zip(names)
        .map(|(i, name)| {
            let home = &names[i / 2];
            let module = builder.module(Module {
                name: home.clone(),
                path: home.clone(),
            });
            builder.function(Function {
                language: of_text(name),
                name: name.clone(),
                linkage_name: (i % 3 == 0).then(|| format!("_Z{name}").into()),
                declared_at: None,
                module,
                address: (i % 2 == 0).then_some(i as u64),
                kind: FunctionKind::Named,
            })
        })
        .collect();
    for (stack, thread, weight, count, line) in samples {
        let comm = names[thread % names.len()].clone();
        let thread = builder.thread(Thread::new(1, *thread as i32, comm));
        let line = line.map(|line| {
            builder.line(Line {
                file: names[0].clone(),
                line,
            })
        });
        let (mut path, mut place) = (None, None);
        for &(function, inlined) in stack {
            let here = builder.path(path, functions[function], inlined && path.is_some());
            // Some profiles know the lines of calls.
            place = names
                .len()
                .is_multiple_of(2)
                .then(|| builder.place(place, here, line));
            path = Some(here);
        }
        match place {
            Some(place) => builder.sample_at(
                event,
                thread,
                place,
                line,
                WeightSum::equal(*weight, *count),
            ),
            None => builder.sample(
                event,
                thread,
                path.unwrap(),
                line,
                WeightSum::equal(*weight, *count),
            ),
        };
    }
    builder.finish()
}

fn all(profile: &Profile) -> Selection {
    profile.select(EventId::new(0), &Filter::default())
}

/// Self and total by function, each stack looked at by itself.
fn oracle(profile: &Profile, selection: &Selection) -> BTreeMap<usize, (u64, u64)> {
    let mut weights: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for row in selection.rows() {
        let stack: BTreeSet<usize> = profile
            .paths
            .outwards(row.path)
            .map(|path| path.function.index())
            .collect();
        for function in stack {
            weights.entry(function).or_default().1 += row.weight;
        }
        let leaf = profile.paths[row.path].function.index();
        weights.entry(leaf).or_default().0 += row.weight;
    }
    weights
}

fn answer(weights: &FunctionWeights) -> BTreeMap<usize, (u64, u64)> {
    let row = |id: proftool::profile::FunctionId| {
        (id.index(), (weights.self_weight[id], weights.total[id]))
    };
    weights.present().map(row).collect()
}

/// Self and total of the functions with weight.
fn by_label(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let weights = inclusive::by_function(profile, &all(profile));
    let present = weights.present().filter(|&id| weights.total[id] > 0);
    let row = |id: proftool::profile::FunctionId| (weights.self_weight[id], weights.total[id]);
    present
        .map(|id| (profile.name(id).to_owned(), row(id)))
        .collect()
}

/// The members of the cycles of arcs with weight.
fn cycles_by_label(profile: &Profile) -> BTreeSet<BTreeSet<String>> {
    let graph = CallGraph::of(profile, &all(profile));
    let cycles = Cycles::find(&graph, |arc| arc.weight > 0);
    let label = |&id: &proftool::profile::FunctionId| profile.name(id).to_owned();
    let members = cycles.members().iter();
    members
        .map(|members| members.iter().map(label).collect())
        .collect()
}

/// Whether each node is what ends in it, what was cut, and its children; in order, no level left
/// out.
fn holds_together(tree: &CallTree) -> bool {
    tree.nodes.ids().all(|id| {
        let node = tree.nodes.at(id);
        let children: Vec<_> = tree
            .children(id)
            .map(|child| tree.nodes.at(child))
            .collect();
        let sum: u64 = children.iter().map(|child| child.weight()).sum();
        node.weight() == node.in_only + node.cut + sum
            && children
                .windows(2)
                .all(|pair| pair[0].weight() >= pair[1].weight())
            && children
                .iter()
                .all(|child| child.level == node.level + 1 && child.parent == Some(id))
    })
}

/// Advice that repeats what it is asked about, as a front end may.
struct Hostile;

impl Advice for Hostile {
    fn on_caveat(&self, caveat: &Caveat) -> Option<String> {
        Some(caveat.to_string())
    }

    fn command(&self, question: &Question) -> Option<String> {
        match question {
            Question::AroundHottest(pattern) => Some(pattern.clone()),
            _ => Some("a\u{1b}[2Jb".into()),
        }
    }
}

/// Everything that can be written about a profile.
fn outputs(profile: &Profile, names: Names) -> Vec<(&'static str, Vec<u8>)> {
    let selection = all(profile);
    let subject = Subject::new(profile, &selection, names);
    let figures = analysis::flat::Summary::of(profile, &selection);
    let flat = flat::arrange(&subject, &figures, &flat::Options::default());
    let stacks = Stacks::new(profile, &selection);
    let [down, folded] = [Collapse::None, Collapse::Full]
        .map(|degree| tree::Summary::of(stacks.clone(), &tree::Options::of(degree)));
    let options = tree_view::Options::default();
    let folded = tree_view::arrange(&subject, &folded, None, &options);
    let function = figures.weights.present().next();
    let detail = function.map(|function| {
        let summary = function::Summary::of(profile, &selection, function, Rule::Strict);
        let options = detail_view::Options::default();
        detail_view::arrange(&subject, summary, &options)
    });
    let owners = Owners::of_profile(profile, &[]);
    let tree = tree_view::arrange(&subject, &down, Some(&owners), &options);
    let options = report::Options::default();
    let owners = Owners::of_profile(profile, &[]);
    let summary = Summary::of(profile, &selection, owners, true);
    let report = report::arrange(&subject, &summary, &options);
    let notes = tree_view::Notes::default();
    let mut outputs = Vec::new();
    let mut pages = vec![
        ("flat text", flat.page(&subject)),
        ("tree text", tree.page(&subject, &notes)),
        ("collapsed tree text", folded.page(&subject, &notes)),
        ("report text", report.page(&subject)),
    ];
    pages.extend(
        detail
            .iter()
            .map(|view| ("detail text", view.page(&subject))),
    );
    for (name, page) in pages {
        let mut out = Vec::new();
        text::write(
            &mut out,
            &page,
            &text::Options {
                width: 60,
                color: false,
            },
            &Hostile,
        )
        .unwrap();
        outputs.push((name, out));
    }
    let mut tables = vec![
        ("flat csv", flat.table(&subject)),
        ("tree csv", tree.table(&subject)),
        ("report csv", report.table(&subject)),
    ];
    tables.extend(
        detail
            .iter()
            .map(|view| ("detail csv", view.table(&subject))),
    );
    for (name, table) in tables {
        let mut out = Vec::new();
        csv::write(&mut out, &table).unwrap();
        outputs.push((name, out));
    }
    let mut out = Vec::new();
    json::flat::write(&mut out, &subject, &flat, &Hostile).unwrap();
    outputs.push(("flat json", std::mem::take(&mut out)));
    json::tree::write(&mut out, &subject, &tree, &Hostile).unwrap();
    outputs.push(("tree json", std::mem::take(&mut out)));
    json::tree::write(&mut out, &subject, &folded, &Hostile).unwrap();
    outputs.push(("collapsed tree json", std::mem::take(&mut out)));
    if let Some(detail) = &detail {
        json::detail::write(&mut out, &subject, detail, &Hostile).unwrap();
        outputs.push(("detail json", std::mem::take(&mut out)));
    }
    json::report::write(&mut out, &subject, &report, &Hostile).unwrap();
    outputs.push(("report json", std::mem::take(&mut out)));
    export::write(&mut out, &subject, &down.calls).unwrap();
    outputs.push(("folded", out));
    outputs
}

fn folded(profile: &Profile) -> String {
    let mut outputs = outputs(profile, Names::Full);
    String::from_utf8(outputs.pop().unwrap().1).unwrap()
}

/// The weight of each stack, by the labels of its functions.
fn stacks_by_label(profile: &Profile) -> BTreeMap<Vec<&str>, u64> {
    let mut stacks = BTreeMap::new();
    for row in all(profile).rows().iter().filter(|row| row.weight > 0) {
        let names = |path: PathId| {
            let frames = profile.paths.outwards(path);
            frames.map(|frame| profile.name(frame.function)).collect()
        };
        *stacks.entry(names(row.path)).or_default() += row.weight;
    }
    stacks
}

/// Folded stacks that are read again have the same functions, totals and cycles.
fn survives_folding(profile: &Profile) -> Result<(), TestCaseError> {
    let selection = all(profile);
    let subject = Subject::new(profile, &selection, Names::Full);
    let mut out = Vec::new();
    let tree = Stacks::new(profile, &selection).top_down(Collapse::None);
    export::write(&mut out, &subject, &tree).unwrap();
    if selection.total() > 0 {
        let back = input::read(&out[..], &mut |_| {}).unwrap();
        prop_assert_eq!(by_label(profile), by_label(&back));
        prop_assert_eq!(cycles_by_label(profile), cycles_by_label(&back));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn weights_are_the_oracles_and_add_up(profile in profile(), counted in any::<bool>()) {
        let weighing = if counted { Weighing::Samples } else { Weighing::Weight };
        let selection = profile.select(EventId::new(0), &Filter { weighing, ..Filter::default() });
        let weights = inclusive::by_function(&profile, &selection);
        prop_assert_eq!(answer(&weights), oracle(&profile, &selection));
        let sum: u64 = weights.self_weight.iter().sum();
        prop_assert_eq!(sum, selection.total());
        for (own, total) in answer(&weights).into_values() {
            prop_assert!(own <= total && total <= selection.total());
        }
        prop_assert_eq!(weights.self_samples.iter().sum::<u64>(), selection.samples());
    }

    #[test]
    fn trees_lose_and_make_no_weight(profile in profile(), depth in 1..12u32, min in 0..40u64) {
        let selection = all(&profile);
        let down = Stacks::new(&profile, &selection).top_down(Collapse::None);
        prop_assert!(holds_together(&down));
        let roots: u64 = down.roots().map(|root| down.nodes.at(root).weight()).sum();
        prop_assert_eq!(roots, selection.total());
        let up = Stacks::new(&profile, &selection).bottom_up(Collapse::None, Reach { depth, min });
        prop_assert!(holds_together(&up));
        let weights = inclusive::by_function(&profile, &selection);
        let mut sum = 0;
        for root in up.roots() {
            let root = up.nodes.at(root);
            prop_assert_eq!(root.weight(), weights.self_weight[root.function]);
            sum += root.weight();
        }
        prop_assert_eq!(sum, selection.total());
        let full = Stacks::new(&profile, &selection).bottom_up(Collapse::None, Reach { depth: u32::MAX, min: 0 });
        prop_assert!(full.nodes.iter().all(|node| node.cut == 0));
    }

    #[test]
    fn folded_stacks_come_back(profile in profile()) {
        let written = folded(&profile);
        if written.is_empty() {
            return Ok(());
        }
        let again = input::read(written.as_bytes(), &mut |_| {}).unwrap();
        prop_assert!(again.caveats.is_empty());
        prop_assert_eq!(stacks_by_label(&again), stacks_by_label(&profile));
        let written = folded(&again);
        let third = input::read(written.as_bytes(), &mut |_| {}).unwrap();
        prop_assert_eq!(folded(&third), written);
    }

    #[test]
    fn no_output_has_a_byte_that_could_do_harm(profile in profile()) {
        for names in [Names::Short, Names::Full, Names::Mangled] {
            for (name, bytes) in outputs(&profile, names) {
                let text = String::from_utf8(bytes).unwrap();
                let harmful = text.chars().find(|&c| c != '\n' && is_unsafe_char(c));
                prop_assert_eq!(harmful, None, "in {}", name);
                if name.ends_with("json") {
                    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
                    prop_assert_eq!(document["total"].as_u64(), Some(all(&profile).total()));
                }
            }
        }
    }

    #[test]
    fn json_has_the_names_as_they_are(profile in profile()) {
        let outputs = outputs(&profile, Names::Full);
        let (_, bytes) = outputs.iter().find(|(name, _)| *name == "flat json").unwrap();
        let document: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        let mut told: Vec<&str> = Vec::new();
        for function in document["functions"].as_array().unwrap() {
            told.push(function["name"].as_str().unwrap());
        }
        let weights = inclusive::by_function(&profile, &all(&profile));
        let mut expected: Vec<&str> =
            weights.present().map(|id| &*profile.functions[id].name).collect();
        told.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(told, expected);
    }

    #[test]
    fn labels_are_distinct(profile in profile()) {
        let labels: BTreeSet<&str> = profile.functions.ids().map(|id| profile.name(id)).collect();
        prop_assert_eq!(labels.len(), profile.functions.len());
    }

    #[test]
    fn folded_stacks_read_again_have_the_same_functions_totals_and_cycles(profile in profile()) {
        survives_folding(&profile)?;
    }

    #[test]
    fn functions_of_one_name_stay_apart_in_every_format(profile in colliding()) {
        let selection = all(&profile);
        let weights = inclusive::by_function(&profile, &selection);
        let present: Vec<_> = weights.present().collect();
        for names in [Names::Short, Names::Full] {
            let subject = Subject::new(&profile, &selection, names);
            let figures = analysis::flat::Summary::of(&profile, &selection);
            let flat = flat::arrange(&subject, &figures, &flat::Options::default());
            let mut out = Vec::new();
            json::flat::write(&mut out, &subject, &flat, &Hostile).unwrap();
            let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let rows = document["functions"].as_array().unwrap().iter();
            let labels: BTreeSet<&str> = rows.map(|row| row["label"].as_str().unwrap()).collect();
            prop_assert_eq!(labels.len(), present.len());
            let table = flat.table(&subject);
            let label = table.columns.iter().position(|column| column.key == "label").unwrap();
            let in_table: BTreeSet<String> =
                table.rows.iter().map(|row| format!("{:?}", row[label])).collect();
            prop_assert_eq!(in_table.len(), present.len());
            // What is printed finds the function, and no other.
            for row in &flat.rows {
                prop_assert_eq!(search::labelled(&profile, &row.name.text), Some(row.function));
                let found = search::find(&subject.naming(), &present, &row.name.text);
                prop_assert_eq!(found, Found::One(row.function));
                let pattern = pattern_of(profile.name(row.function));
                let filter = Filter { focus: Regex::new(&pattern).ok(), ..Filter::default() };
                let with = profile.select(EventId::new(0), &filter);
                prop_assert_eq!(with.total(), weights.total[row.function], "{}", pattern);
            }
        }
        survives_folding(&profile)?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(profile) = input::read(&bytes[..], &mut |_| {}) {
            let selection = all(&profile);
            let weights = inclusive::by_function(&profile, &selection);
            prop_assert_eq!(weights.self_weight.iter().sum::<u64>(), selection.total());
        }
    }

    #[test]
    fn short_names_of_anything_are_made_and_not_empty(name in name()) {
        for language in [Language::Unknown, Language::Cpp, Language::Rust] {
            let short = in_form(&name, language, Form::Short);
            prop_assert!(name.is_empty() || !short.is_empty());
        }
    }
}

#[test]
fn a_folded_line_leaves_the_tree_of_a_document_whole() {
    let names: Vec<String> = ["[(\"(>b", "other", "own"].map(String::from).into();
    // Three frames of one owner are one line.
    let stack = vec![(0, false), (0, false), (0, false), (2, false)];
    let profile = build(&names, &[(stack, 0, 5, 1, None)]);
    for (name, bytes) in outputs(&profile, Names::Full) {
        if name.ends_with("json") {
            let document = serde_json::from_slice::<serde_json::Value>(&bytes);
            assert!(document.is_ok(), "{name}: {document:?}");
        }
    }
}
