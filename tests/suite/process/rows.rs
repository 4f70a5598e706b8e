//! Rows that are no functions: counted again frame by frame, without the paths and trees of the library; and what the
//! command line says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proftool::analysis::cut;
use proftool::analysis::graph;
use proftool::analysis::inclusive;
use proftool::analysis::tree::{Collapse, Reach, Stacks};
use proftool::base::{Event, Language, TRUNCATED, WeightSum};
use proftool::callgraph::CallGraph;
use proftool::profile::{
    AddressId, Builder, EventId, Filter, Function, FunctionId, FunctionKind, Line, Module, Place,
    PlaceId, Profile, RowKind, RowLevel, Selection, Thread,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use crate::support::cli::proftool;
use crate::support::elf::Elf;
use crate::support::written::{CPU_CLOCK, PAGE_FAULTS, Recording, Taken as Written};

const FUNCTIONS: usize = 6;

const THREADS: [(i32, i32, &str); 4] = [(1, 1, "sh"), (1, 1, "app"), (1, 2, "app"), (9, 9, "x")];

/// A frame: its function, its line in one of three files, its address, whether it is inlined.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: usize,
    line: Option<(usize, u32)>,
    address: Option<u64>,
    inlined: bool,
}

#[derive(Clone, Debug)]
struct Taken {
    event: usize,
    thread: usize,
    frames: Vec<Frame>,
    /// How many of the outermost frames were not recorded.
    cut: usize,
    weight: u64,
}

fn frame() -> impl Strategy<Value = Frame> {
    let line = option::weighted(0.8, (0..3usize, 1..4u32));
    let address = option::weighted(0.9, 0..5u64);
    (0..FUNCTIONS, line, address, any::<bool>()).prop_map(|(function, line, address, inlined)| {
        Frame {
            function,
            line,
            address,
            inlined,
        }
    })
}

fn samples() -> impl Strategy<Value = Vec<Taken>> {
    let taken = (
        0..2usize,
        0..THREADS.len(),
        vec(frame(), 1..7),
        1..50u64,
        0..4usize,
    );
    let taken = taken.prop_map(|(event, thread, mut frames, weight, cut)| {
        for place in 0..frames.len() {
            let around = place.checked_sub(1).map(|place| frames[place]);
            let frame = &mut frames[place];
            match around {
                // It is a copy in the code around it: one module, one address.
                Some(around) if frame.inlined => {
                    frame.address = around.address;
                    frame.function = frame.function / 3 * 3 + around.function % 3;
                    frame.inlined = frame.address.is_some();
                }
                _ => frame.inlined = false,
            }
        }
        Taken {
            event,
            thread,
            cut: cut.min(frames.len() - 1),
            frames,
            weight,
        }
    });
    vec(taken, 1..16)
}

fn module(function: usize) -> String {
    format!("lib{}.so", function % 3)
}

fn file(index: usize) -> String {
    format!("/src/{}/file{index}.c", ["a", "b", "a"][index])
}

/// The profile with the lines of calls and with addresses; frames outside of the cut are left out if `is_cut`.
fn profile(samples: &[Taken], is_cut: bool) -> Profile {
    let mut builder = Builder::default();
    let events: Vec<EventId> = ["cycles", "faults"]
        .map(|name| builder.event(Event::named(name)))
        .into();
    let home = |name: String| Module {
        path: format!("/usr/lib/{name}"),
        name,
    };
    let function = |name: String, module, kind, place: usize| Function {
        name,
        linkage_name: None,
        declared_at: Some(Box::new(Line {
            file: file(place % 3),
            line: 7,
        })),
        module,
        address: None,
        kind,
        language: Language::Unknown,
    };
    let functions: Vec<FunctionId> = (0..FUNCTIONS)
        .map(|index| {
            let module = builder.module(home(module(index)));
            builder.function(function(
                format!("f{index}"),
                module,
                FunctionKind::Named,
                index,
            ))
        })
        .collect();
    let nowhere = builder.module(Module {
        name: String::new(),
        path: String::new(),
    });
    let mark = builder.function(Function {
        declared_at: None,
        ..function(TRUNCATED.into(), nowhere, FunctionKind::Mark, 0)
    });
    for taken in samples {
        let (pid, tid, comm) = THREADS[taken.thread];
        let thread = builder.thread(Thread::new(pid, tid, comm));
        let mut line_of = |line: Option<(usize, u32)>| {
            line.map(|(index, line)| {
                builder.line(Line {
                    file: file(index),
                    line,
                })
            })
        };
        let lines: Vec<_> = taken.frames.iter().map(|it| line_of(it.line)).collect();
        let cut = if is_cut { taken.cut } else { 0 };
        let mut place: Option<PlaceId> = None;
        let mut path = None;
        if cut > 0 {
            path = Some(builder.path(None, mark, false));
            place = path.map(|path| builder.place(None, path, None));
        }
        for (index, frame) in taken.frames.iter().enumerate().skip(cut) {
            let address: Option<AddressId> = frame.address.map(|it| builder.address(it));
            let here = builder.path(
                path,
                functions[frame.function],
                frame.inlined && index > cut,
            );
            place = Some(
                builder.place_at(Place {
                    caller: place,
                    path: here,
                    line: index
                        .checked_sub(1)
                        .filter(|_| index > cut)
                        .and_then(|it| lines[it]),
                    address,
                }),
            );
            path = Some(here);
        }
        let leaf = lines.last().copied().flatten();
        let sum = WeightSum::of(taken.weight);
        builder.sample_at(events[taken.event], thread, place.unwrap(), leaf, sum);
    }
    builder.finish()
}

/// The rows on a stack, outermost first, by a definition that knows nothing of paths.
fn stack(taken: &Taken, kind: RowKind) -> Vec<String> {
    let mut keys = Vec::new();
    for frame in &taken.frames {
        let home = module(frame.function);
        let key = match kind {
            RowKind::Module => home,
            RowKind::File => match frame.line {
                Some((index, _)) => file(index),
                None => format!("[no file: {home}]"),
            },
            RowKind::Line => match frame.line {
                Some((index, line)) => format!("{}:{line}", file(index)),
                None => format!("[no line: {home}]"),
            },
            RowKind::Address if frame.inlined => continue,
            RowKind::Address => match frame.address {
                Some(address) => format!("{home}@{address}"),
                None => format!("f{} (no address)", frame.function),
            },
            _ => unreachable!(),
        };
        let is_merged = matches!(kind, RowKind::Module | RowKind::File);
        if !is_merged || keys.last() != Some(&key) {
            keys.push(key);
        }
    }
    keys
}

/// What the library calls such a row.
fn key(profile: &Profile, id: FunctionId) -> String {
    let function = &profile.functions[id];
    let module = &profile.modules[function.module].name;
    match (profile.rows, function.address) {
        (RowKind::Address, Some(address)) => format!("{module}@{address}"),
        _ => function.name.clone(),
    }
}

fn by_rows(profile: &Profile, kind: RowKind, level: RowLevel) -> (Profile, Selection) {
    let event = EventId::new(0);
    let selection = profile.select(event, &Filter::default());
    profile.by_rows(kind, level, &[(event, selection)])
}

const OF_FRAMES: [RowKind; 4] = [
    RowKind::Module,
    RowKind::File,
    RowKind::Line,
    RowKind::Address,
];

proptest! {
    #[test]
    fn rows_and_calls_are_those_of_the_frames_each_sample_once(samples in samples()) {
        let whole = profile(&samples, false);
        for kind in OF_FRAMES {
            let mut rows: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            let mut calls: BTreeMap<(String, String), u64> = BTreeMap::new();
            let mut nodes: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
            for taken in samples.iter().filter(|taken| taken.event == 0) {
                let stack = stack(taken, kind);
                for key in stack.iter().collect::<BTreeSet<_>>() {
                    rows.entry(key.clone()).or_default().1 += taken.weight;
                }
                rows.get_mut(stack.last().unwrap()).unwrap().0 += taken.weight;
                let pairs = stack.windows(2).map(|pair| (pair[0].clone(), pair[1].clone()));
                for call in pairs.collect::<BTreeSet<_>>() {
                    *calls.entry(call).or_default() += taken.weight;
                }
                for depth in 1..=stack.len() {
                    let node = nodes.entry(stack[..depth].to_vec()).or_default();
                    node.0 += taken.weight;
                    node.1 += if depth == stack.len() { taken.weight } else { 0 };
                }
            }
            let (profile, selection) = by_rows(&whole, kind, RowLevel::Alone);
            let weights = inclusive::by_function(&profile, &selection);
            let found = weights.present().map(|id| {
                (key(&profile, id), (weights.self_weight[id], weights.total[id]))
            });
            prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), rows, "{:?}", kind);
            let graph = CallGraph::of(&profile, &selection);
            let found = graph.arcs().iter().map(|arc| {
                ((key(&profile, arc.from), key(&profile, arc.to)), arc.weight)
            });
            prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), calls, "{:?}", kind);
            let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
            let mut found = BTreeMap::new();
            for (_, node) in tree.nodes.enumerate() {
                let parents = std::iter::successors(Some(node), |node| {
                    node.parent.map(|id| tree.nodes.at(id))
                });
                let mut names: Vec<String> =
                    parents.map(|node| key(&profile, node.function)).collect();
                names.reverse();
                found.insert(names, (node.weight(), node.in_only));
            }
            prop_assert_eq!(found, nodes, "{:?}", kind);
            // Collapsing keeps totals, as with functions.
            for collapse in Collapse::ALL {
                let tree = Stacks::new(&profile, &selection).top_down(collapse);
                let ended: u64 = tree.nodes.iter().map(|node| node.in_only).sum();
                prop_assert_eq!(ended, selection.total());
            }
        }
    }

    #[test]
    fn threads_commands_and_events_have_the_samples_that_are_theirs(samples in samples()) {
        let whole = profile(&samples, true);
        let comms = |pid: i32, tid: i32| {
            let threads = THREADS.iter().enumerate();
            let first = |index: usize| samples.iter().position(|taken| taken.thread == index);
            let mut own: Vec<_> = threads
                .filter(|(index, it)| (it.0, it.1) == (pid, tid) && first(*index).is_some())
                .collect();
            own.sort_by_key(|(index, _)| first(*index));
            own.into_iter().map(|(_, it)| it.2).collect::<Vec<_>>().join(", ")
        };
        for kind in [RowKind::Thread, RowKind::Command, RowKind::Event] {
            let mut rows: BTreeMap<String, u64> = BTreeMap::new();
            for taken in &samples {
                let (pid, tid, comm) = THREADS[taken.thread];
                let (name, weight) = match kind {
                    RowKind::Thread => (format!("{} {pid}/{tid}", comms(pid, tid)), taken.weight),
                    RowKind::Command => (comm.to_owned(), taken.weight),
                    _ => (["cycles", "faults"][taken.event].to_owned(), 1),
                };
                if kind == RowKind::Event || taken.event == 0 {
                    *rows.entry(name).or_default() += weight;
                }
            }
            let all: Vec<_> = whole.events.ids()
                .filter(|event| kind == RowKind::Event || event.index() == 0)
                .map(|event| (event, whole.select(event, &Filter::default())))
                .collect();
            let (profile, selection) = whole.by_rows(kind, RowLevel::Alone, &all);
            let weights = inclusive::by_function(&profile, &selection);
            let found = weights.present().map(|id| (profile.functions[id].name.clone(), weights.total[id]));
            prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), rows.clone());
            prop_assert_eq!(&weights.self_weight, &weights.total);
            prop_assert!(!cut::by_function(&profile, &selection).is_any());
            for level in [RowLevel::Outermost, RowLevel::Innermost] {
                let (profile, selection) = whole.by_rows(kind, level, &all);
                let stacks = Stacks::new(&profile, &selection);
                let tree = match level {
                    RowLevel::Innermost => {
                        let reach = Reach { depth: 64, min: 0 };
                        stacks.bottom_up(Collapse::None, reach)
                    }
                    _ => stacks.top_down(Collapse::None),
                };
                let roots = tree.nodes.iter().filter(|node| node.parent.is_none());
                let name = |id: FunctionId| profile.functions[id].name.clone();
                let found = roots.map(|node| (name(node.function), node.weight()));
                let rows = rows.iter().map(|(name, weight)| (format!("{} {name}", kind.name()), *weight));
                prop_assert_eq!(
                    found.collect::<BTreeMap<_, _>>(),
                    rows.collect::<BTreeMap<_, _>>()
                );
                // Functions keep their totals, and what cut stacks may hide of them.
                let plain: Vec<_> = all.iter().map(|(_, selection)| selection).collect();
                if let [selected] = plain[..] {
                    let before = inclusive::by_function(&whole, selected);
                    let after = inclusive::by_function(&profile, &selection);
                    let hidden = cut::by_function(&whole, selected);
                    let hidden_after = cut::by_function(&profile, &selection);
                    for id in whole.functions.ids() {
                        prop_assert_eq!(before.total[id], after.total[id]);
                        prop_assert_eq!(hidden.at_most[id], hidden_after.at_most[id]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_true_total_is_within_the_range_of_its_row(samples in samples()) {
        let (whole, cut_off) = (profile(&samples, false), profile(&samples, true));
        for kind in OF_FRAMES {
            // Outside of a cut an inlined frame is not known to be one.
            let is_split = |taken: &Taken| taken.frames[taken.cut].inlined;
            if kind == RowKind::Address && samples.iter().any(is_split) {
                continue;
            }
            let (whole, all) = by_rows(&whole, kind, RowLevel::Alone);
            let (cut_off, seen) = by_rows(&cut_off, kind, RowLevel::Alone);
            let truth = inclusive::by_function(&whole, &all);
            let truth: BTreeMap<String, u64> =
                whole.functions.ids().map(|id| (key(&whole, id), truth.total[id])).collect();
            let graph = graph::Summary::of(&cut_off, &seen, &graph::Options::default());
            let cycles = graph.cycles.members().ids().map(graph::Entry::Cycle);
            for entry in cycles.chain(cut_off.functions.ids().map(graph::Entry::Function)) {
                let most = graph.total_max(entry).unwrap();
                prop_assert!(most.weight <= seen.total());
            }
            let weights = inclusive::by_function(&cut_off, &seen);
            let hidden = cut::by_function(&cut_off, &seen);
            for id in weights.present() {
                let Some(&total) = truth.get(&key(&cut_off, id)) else { continue };
                let most = hidden.at_most[id].plus(weights.total[id]);
                prop_assert!(weights.total[id] <= total && total <= most.weight);
                // Nobody knows whether a row may be larger than what is known of functions.
                prop_assert!(most.weight == weights.total[id] || most.known().is_none());
            }
        }
    }

    #[test]
    fn filters_by_module_and_path_keep_the_stacks_with_such_a_function(
        samples in samples(),
        module_index in 0..3usize,
        path in 0..6usize,
    ) {
        let profile = profile(&samples, false);
        let paths = ["/src/a", "/src/b/file1.c", "a", "src/b/", "/src/file1.c", "file2.c"];
        let files: [&[usize]; 6] = [&[0, 2], &[1], &[0, 2], &[1], &[], &[2]];
        let filter = Filter {
            modules: vec![module(module_index), "/usr/lib/lib9.so".into()],
            paths: vec![paths[path].into()],
            ..Filter::default()
        };
        let event = EventId::new(0);
        let selection = profile.select(event, &filter);
        let kept = samples.iter().filter(|taken| {
            let mut frames = taken.frames.iter();
            let has_module = taken.frames.iter().any(|it| it.function % 3 == module_index);
            let has_file = frames.any(|it| files[path].contains(&(it.function % 3)));
            taken.event == 0 && has_module && has_file
        });
        prop_assert_eq!(selection.total(), kept.map(|taken| taken.weight).sum::<u64>());
        let by_path = Filter {
            modules: vec![format!("/usr/lib/{}", module(module_index))],
            ..Filter::default()
        };
        let by_name = Filter { modules: vec![module(module_index)], ..Filter::default() };
        let (by_path, by_name) = (profile.select(event, &by_path), profile.select(event, &by_name));
        prop_assert_eq!(by_path.rows(), by_name.rows());
    }
}

/// Two processes that run one program, two events, six samples.
fn recording(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rows-{test}"));
    std::fs::create_dir_all(&directory).unwrap();
    let app = directory.join("app");
    Elf::with_functions(&[("main", 0x1000, 0x100), ("work", 0x1100, 0x100)]).write(&app);
    let events = [("cpu-clock", CPU_CLOCK), ("page-faults", PAGE_FAULTS)];
    let mut recording = Recording::new(&events, true);
    recording.process(1, "first");
    recording.process(2, "second");
    for task in [1, 2] {
        recording.mapping(task, app.to_str().unwrap(), (0x40_1000, 0x1000), 0x1000);
    }
    for (time, (event, task)) in [(0, 1), (0, 1), (0, 1), (0, 2), (1, 1), (1, 2)]
        .into_iter()
        .enumerate()
    {
        recording.sample(Written {
            event,
            task,
            time: 1_000_000_000 + time as u64,
            user: &[0x40_1110, 0x40_1010],
            ..Written::default()
        });
    }
    let data = directory.join("perf.data");
    recording.write(&data);
    data
}

/// The exit status, standard output and standard error.
fn run(args: &[&str], data: &Path) -> (Option<i32>, String, String) {
    let output = proftool(args).arg(data).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn document(args: &[&str], data: &Path) -> serde_json::Value {
    let (status, out, said) = run(&[args, &["--format", "json"]].concat(), data);
    assert_eq!(status, Some(0), "{said}");
    serde_json::from_str(&out).unwrap()
}

/// Kind, label and samples of each row.
fn listed(document: &serde_json::Value) -> Vec<String> {
    let rows = document["functions"].as_array().unwrap().iter();
    let row = |row: &serde_json::Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        format!("{} {} {}", text("kind"), text("label"), row["samples"])
    };
    rows.map(row).collect()
}

#[test]
fn documents_say_what_their_rows_are() {
    let data = recording("documents");
    for (by, rows) in [
        ("module", ["module app 4"].as_slice()),
        ("command", &["command first 3", "command second 1"]),
        ("thread", &["thread first 1/1 3", "thread second 2/2 1"]),
        ("event", &["event cpu-clock 4", "event page-faults 2"]),
        ("address", &["address work+0x10 4", "address main+0xf 0"]),
    ] {
        let flat = document(&["flat", "--by", by], &data);
        assert_eq!(flat["by"], by);
        assert_eq!(listed(&flat), rows, "{by}");
    }
    let one = ["flat", "--by", "event", "--event", "page-faults"];
    assert_eq!(listed(&document(&one, &data)), ["event page-faults 2"]);
    let flat = document(&["flat", "--by", "event"], &data);
    assert_eq!(
        (&flat["total"], &flat["event"]["unit"]),
        (&6.into(), &"samples".into())
    );
    assert!(document(&["flat"], &data).get("by").is_none());
    for (key, by) in [("dso", "module"), ("comm", "command"), ("tid", "thread")] {
        let sorted = document(&["flat", "--sort", key], &data);
        assert_eq!(sorted, document(&["flat", "--by", by], &data));
    }
    let tree = document(&["tree", "--by", "thread"], &data);
    let first = &tree["roots"][0];
    assert_eq!(
        (&first["label"], &first["kind"]),
        (&"thread first 1/1".into(), &"thread".into())
    );
    let main = &first["children"][0];
    assert_eq!(
        (&main["label"], &main["kind"]),
        (&"main".into(), &"function".into())
    );
    let (_, csv, _) = run(&["flat", "--by", "module", "--format", "csv"], &data);
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().ends_with(",kind,file,line"), "{csv}");
    assert!(lines.next().unwrap().contains(",module,/"), "{csv}");
}

#[test]
fn rows_without_a_meaning_are_refused_in_one_sentence() {
    let data = recording("refused");
    for (args, why) in [
        (
            ["graph", "--by", "thread"].as_slice(),
            "do not call each other",
        ),
        (&["graph", "--by", "event"], "do not call each other"),
        (&["tree", "--by", "crate"], "use proftool flat --by crate"),
        (
            &["tree", "--by", "module", "--static", "on"],
            "--static is about functions",
        ),
        (
            &["tree", "--by", "thread", "--root", "main"],
            "--root is about functions",
        ),
        (
            &["flat", "--by", "event", "--unit", "time"],
            "different units",
        ),
        (
            &["flat", "--by", "line", "--sort", "dso"],
            "leave out --by line",
        ),
    ] {
        let (status, _, said) = run(args, &data);
        assert_eq!(status, Some(2), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
    let folded = data.with_extension("folded");
    std::fs::write(&folded, "main;work 3\n").unwrap();
    for by in ["line", "file", "address"] {
        let (status, _, said) = run(&["flat", "--by", by], &folded);
        assert_eq!(status, Some(1), "{by}: {said}");
    }
    let (status, page, _) = run(&["flat", "--by", "module"], &folded);
    assert_eq!(status, Some(0));
    assert!(
        page.contains("100.00   100.00     3      3  [no module]"),
        "{page}"
    );
}

#[test]
fn filters_by_module_are_those_of_every_view() {
    let data = recording("filters");
    for view in ["report", "flat", "tree", "graph", "cycles"] {
        let all = document(&[view, "--module", "app"], &data);
        assert_eq!(all["total"], document(&[view], &data)["total"]);
        let (status, _, said) = run(&[view, "--module", "libc.so.6"], &data);
        assert_eq!(status, Some(0));
        assert!(said.contains("no sample passes the filters"), "{said}");
        assert!(said.contains("flat --by module"), "{said}");
    }
}
