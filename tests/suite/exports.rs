//! The formats of other profilers: what they hold adds up to the totals of the profile, by the arithmetic
//! of the tools that read them.

#[cfg(feature = "parquet")]
mod parquet;
pub mod readers;
mod round_trips;

use std::collections::BTreeSet;

use proftool::analysis::call_stacks::{CallStacks, OutermostCalls};
use proftool::analysis::inclusive;
use proftool::analysis::tree::{Collapse, Stacks};
use proftool::base::{BuildId, CaveatKind, Event, WeightSum};
use proftool::export::{callgrind, firefox, otlp, perf_script, pprof, speedscope};
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionKind, Line, Module, Profile, Selection, Thread,
    Weighing,
};
use proftool::view::{Figures, Names, Subject};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};

use readers::Row;

/// A sample: functions from the root, each with the line of its call and whether it is inlined; the thread,
/// the weight, the number of samples.
pub type Taken = (Vec<(usize, u32, bool)>, usize, u64, u64);

/// A function: name, module, where it is declared.
type Named = (&'static str, usize, Option<(&'static str, u32)>);

/// Names that some format has to be careful with; the same name in several modules and files.
const FUNCTIONS: [Named; 10] = [
    ("main", 0, Some(("/src/main.c", 3))),
    ("work", 0, Some(("/src/a.c", 10))),
    ("work", 1, Some(("/src/b.c", 20))),
    ("work", 1, None),
    ("work", 1, None),
    (
        "std::map<int, std::string>::operator[](int const&)",
        1,
        Some(("/src/map.h", 7)),
    ),
    ("(1) [x] a;b \"q\" \\ 0x1+0x2 <&>", 0, None),
    ("(anonymous namespace)::f()", 2, None),
    ("\u{202e}\u{1b}[31m\n", 0, Some(("/src/\n.c", 1))),
    ("[truncated]", 3, None),
];

pub fn samples() -> impl Strategy<Value = Vec<Taken>> {
    let frame = (0..FUNCTIONS.len(), 1..4u32, any::<bool>());
    vec(
        (vec(frame, 1..12), 0..2usize, 0..1u64 << 42, 1..4u64),
        0..20,
    )
}

/// The profile of these samples, with the lines of calls.
pub fn build(samples: &[Taken]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let modules = [
        ("app", "/opt/app"),
        ("libb.so", "/opt/libb.so"),
        ("[kernel]", "[kernel.kallsyms]"),
        ("", ""),
    ];
    let modules = modules.map(|(name, path)| {
        let (name, path) = (name.into(), path.into());
        builder.module(Module { name, path })
    });
    builder.build_id(modules[0], &BuildId::new(&[0xab, 0xcd]).unwrap());
    let functions: Vec<_> = FUNCTIONS
        .iter()
        .zip(0..)
        .map(|(&(name, module, declared), number)| {
            builder.function(Function {
                name: name.into(),
                linkage_name: (number == 5).then(|| "_ZNSt3mapixEi".into()),
                declared_at: declared.map(|(file, line)| {
                    let file = file.into();
                    Box::new(Line { file, line })
                }),
                module: modules[module],
                address: (number != 0).then_some(number * 16),
                kind: if module == 3 {
                    FunctionKind::Mark
                } else {
                    FunctionKind::Named
                },
            })
        })
        .collect();
    let threads =
        [(7, "app"), (8, "wor ker")].map(|(tid, comm)| builder.thread(Thread::new(7, tid, comm)));
    for (stack, thread, weight, count) in samples {
        let mut at = None;
        let (mut called_from, mut outside) = (None, None);
        for &(function, line, inlined) in stack {
            // Code is inlined within a module.
            let module = FUNCTIONS[function].1;
            let is_across_gap = inlined && outside != Some(module);
            let inlined = inlined && at.is_some() && outside == Some(module);
            outside = Some(module);
            let caller = at.map(|(path, _)| path);
            let path = match line {
                // Frames are missing where the caller, of another module, cannot contain the code.
                2 if is_across_gap && caller.is_some() => {
                    builder.path_across_gap(caller.unwrap(), functions[function])
                }
                3 if caller.is_some() => {
                    builder.inferred_path(caller, functions[function], inlined)
                }
                _ => builder.path(caller, functions[function], inlined),
            };
            let place = builder.place(at.map(|(_, place)| place), path, called_from);
            at = Some((path, place));
            let file = FUNCTIONS[function]
                .2
                .map_or("/other.c", |(file, _)| file)
                .into();
            called_from = Some(builder.line(Line { file, line }));
        }
        let sum = WeightSum::equal(*weight, *count);
        builder.sample_at(event, threads[*thread], at.unwrap().1, called_from, sum);
    }
    builder.finish()
}

/// Name, self and total of every function on a stack, as the analysis has them; names as they are printed.
pub fn truth(profile: &Profile, selection: &Selection, is_printed: bool) -> Vec<Row> {
    let weights = inclusive::by_function(profile, selection);
    let on_stacks = profile.functions_on_stacks();
    let functions = profile
        .functions
        .enumerate()
        .filter(|(id, _)| on_stacks[*id]);
    let mut rows: Vec<Row> = functions
        .map(|(id, function)| Row {
            name: match is_printed {
                true => proftool::base::printable(&function.name).into_owned(),
                false => function.name.clone(),
            },
            own: weights.self_weight[id],
            total: weights.total[id],
        })
        .collect();
    // Formats of calls have no place for functions without weight.
    rows.retain(|row| row.total > 0);
    rows.sort();
    rows
}

pub fn subject<'a>(profile: &'a Profile, selection: &'a Selection) -> Subject<'a> {
    Subject {
        profile,
        selection,
        names: Names::Full,
        figures: Figures::All,
    }
}

pub fn select(profile: &Profile, weighing: Weighing) -> Selection {
    let filter = Filter {
        weighing,
        ..Filter::default()
    };
    profile.select(EventId::new(0), &filter)
}

/// What each format has for the profile, in the order of [`readers::ALL`].
pub fn exported(profile: &Profile, selection: &Selection, collapse: Collapse) -> Vec<Vec<u8>> {
    let subject = subject(profile, selection);
    let stacks = CallStacks::of(profile, selection, collapse);
    let calls = OutermostCalls::of(profile, &stacks);
    let mut files = vec![Vec::new(); readers::ALL.len()];
    pprof::write(&mut files[0], &subject, &stacks).unwrap();
    callgrind::write(&mut files[1], &subject, &stacks, &calls).unwrap();
    speedscope::write(&mut files[2], &subject, &stacks).unwrap();
    let track = firefox::Track {
        subject: &subject,
        stacks: &stacks,
    };
    firefox::write(&mut files[3], track, &[]).unwrap();
    otlp::write(&mut files[4], &subject, &stacks).unwrap();
    let records = perf_script::records(&subject, &stacks, 1 << 20);
    perf_script::write(&mut files[5], &subject, &stacks, records).unwrap();
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_format_keeps_self_and_total_of_every_function(samples in samples()) {
        let profile = build(&samples);
        for weighing in [Weighing::Weight, Weighing::Samples] {
            let selection = select(&profile, weighing);
            let files = exported(&profile, &selection, Collapse::None);
            let again = exported(&profile, &selection, Collapse::None);
            prop_assert!(files == again, "the bytes differ between equal runs");
            for ((format, is_printed, keeps_apart, read), file) in readers::ALL.iter().zip(&files) {
                let mut want = truth(&profile, &selection, *is_printed);
                let mut got = read(file);
                if !keeps_apart {
                    want = readers::names(&want);
                    got = readers::names(&got);
                }
                got.retain(|row| row.total > 0 || row.own > 0);
                got.sort();
                prop_assert_eq!(&got, &want, "{}", format);
            }
        }
    }

    #[test]
    fn collapsed_stacks_are_the_paths_of_the_collapsed_tree(samples in samples()) {
        let profile = build(&samples);
        let selection = select(&profile, Weighing::Weight);
        for degree in [Collapse::Direct, Collapse::Conservative, Collapse::Full] {
            let stacks = CallStacks::of(&profile, &selection, degree);
            let sum = stacks.samples.iter().map(|sample| sample.weight).sum::<u64>();
            prop_assert_eq!(sum, selection.total());
            let mut of_tree = BTreeSet::new();
            let tree = Stacks::new(&profile, &selection).top_down(degree);
            let mut path = Vec::new();
            for node in tree.nodes.iter() {
                path.truncate(node.level as usize - 1);
                path.push(node.function);
                if node.in_only > 0 {
                    of_tree.insert((path.clone(), node.in_only));
                }
            }
            let mut weights = std::collections::BTreeMap::new();
            for sample in stacks.samples.iter().filter(|sample| sample.weight > 0) {
                let frames = stacks.outwards(sample.stack);
                let mut path: Vec<_> = frames.map(|(_, frame)| frame.function).collect();
                path.reverse();
                *weights.entry(path).or_insert(0) += sample.weight;
            }
            prop_assert_eq!(weights.into_iter().collect::<BTreeSet<_>>(), of_tree);
            if degree != Collapse::Full {
                // No function is lost by these degrees.
                let files = exported(&profile, &selection, degree);
                let mut got = readers::ALL[2].3(&files[2]);
                got.retain(|row| row.total > 0);
                got.sort();
                prop_assert_eq!(got, truth(&profile, &selection, false));
            }
            if degree == Collapse::Full {
                for sample in &stacks.samples {
                    let frames = stacks.outwards(sample.stack);
                    let path: Vec<_> = frames.map(|(_, frame)| frame.function).collect();
                    let distinct: BTreeSet<_> = path.iter().collect();
                    prop_assert_eq!(distinct.len(), path.len());
                }
            }
        }
    }
}

/// A profile of one stack with an inlined call, `main:2 { work:1 }` and a restored caller of it.
fn small() -> Profile {
    build(&[(vec![(0, 2, false), (1, 3, true), (5, 1, false)], 0, 10, 2)])
}

#[test]
fn pprof_has_inlined_lines_in_one_location_and_states_what_is_there() {
    let profile = small();
    let selection = select(&profile, Weighing::Weight);
    let file = readers::pprof_file(&exported(&profile, &selection, Collapse::None)[0]);
    let text = |index: i64| String::from_utf8(file.string_table[index as usize].clone()).unwrap();
    let types = file.sample_type.iter();
    let types: Vec<_> = types.map(|t| (text(t.kind), text(t.unit))).collect();
    let pair = |kind: &str, unit: &str| (kind.to_owned(), unit.to_owned());
    assert_eq!(
        types,
        [pair("samples", "count"), pair("cpu-clock", "nanoseconds")]
    );
    assert_eq!(text(file.default_sample_type), "cpu-clock");
    assert_eq!((file.period, file.time_nanos), (5, 0));
    let sample = &file.sample[0];
    assert_eq!(
        (&sample.location_id[..], &sample.value[..]),
        (&[1, 2][..], &[2, 10][..])
    );
    let lines: Vec<_> = file.location[1]
        .line
        .iter()
        .map(|l| (l.function_id, l.line))
        .collect();
    assert_eq!(lines, [(2, 3), (1, 2)]);
    let labels: Vec<_> = sample
        .label
        .iter()
        .map(|label| (text(label.key), text(label.str), label.num))
        .collect();
    let label = |key: &str, text: &str, number| (key.to_owned(), text.to_owned(), number);
    let expected = [
        label("pid", "", 7),
        label("tid", "", 7),
        label("comm", "app", 0),
        label("inferred", "work", 0),
    ];
    assert_eq!(labels, expected);
    let app = &file.mapping[0];
    assert_eq!(
        (text(app.filename), text(app.build_id)),
        ("/opt/app".into(), "abcd".into())
    );
    assert!(
        app.has_functions && app.has_filenames && app.has_line_numbers && app.has_inline_frames
    );
    // An equal system name would make pprof demangle the name once more.
    let systems: Vec<_> = file.function.iter().map(|f| text(f.system_name)).collect();
    assert_eq!(systems, ["", "", "_ZNSt3mapixEi"]);
}

#[test]
fn callgrind_calls_a_root_that_is_also_called_and_every_call_at_least_once() {
    let profile = build(&[
        (vec![(0, 1, false), (1, 1, false), (0, 1, false)], 0, 3, 1),
        (vec![(1, 1, false)], 0, 4, 1),
    ]);
    let selection = select(&profile, Weighing::Weight);
    let file = exported(&profile, &selection, Collapse::None).swap_remove(1);
    let text = String::from_utf8(file).unwrap();
    assert!(text.contains("\nevents: ns\nsummary: 7\n"), "{text}");
    assert!(text.contains("\ndesc: KCachegrind:"), "{text}");
    let calls: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("calls="))
        .collect();
    assert_eq!(calls, ["calls=1 3", "calls=1 10", "calls=1 10"], "{text}");
}

#[test]
fn totals_that_a_format_cannot_hold_are_refused() {
    let directory = crate::support::directory("export-limits");
    let file = directory.join("big.folded");
    std::fs::write(&file, format!("a {}\nb {}\n", 1u64 << 62, 1u64 << 62)).unwrap();
    let export = |format: &str| {
        let file = file.to_str().unwrap();
        let mut command = crate::cli::proftool(&["export", "--to", format, file]);
        command.output().unwrap()
    };
    for format in ["pprof", "otlp"] {
        assert_eq!(export(format).status.code(), Some(1), "{format}");
    }
    let said = export("speedscope");
    assert!(said.status.success());
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(
        said.contains("readers of --to speedscope round totals above 2^53"),
        "{said}"
    );
}

#[test]
fn the_program_is_the_first_mapping_of_pprof() {
    // Most of the weight is in the library, whose module comes first, too.
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let modules = ["/lib/libc.so", "/opt/app"].map(|path| {
        let (name, path) = (path.rsplit('/').next().unwrap().into(), path.into());
        builder.module(Module { name, path })
    });
    let functions = modules.map(|module| builder.function(Function::named("work", module)));
    let thread = builder.thread(Thread::new(1, 1, "app"));
    for (function, weight) in functions.into_iter().zip([9, 1]) {
        let path = builder.path(None, function, false);
        builder.sample(event, thread, path, None, WeightSum::of(weight));
    }
    let profile = builder.finish();
    let selection = select(&profile, Weighing::Weight);
    let file = readers::pprof_file(&exported(&profile, &selection, Collapse::None)[0]);
    let text = |index: i64| String::from_utf8(file.string_table[index as usize].clone()).unwrap();
    let paths: Vec<_> = file.mapping.iter().map(|it| text(it.filename)).collect();
    assert_eq!(paths, ["/opt/app", "/lib/libc.so"]);
}

#[test]
fn firefox_has_a_thread_for_each_event_and_markers_of_what_is_lost() {
    let mut profile = small();
    profile.caveats.add(CaveatKind::Lost, 12);
    let selection = select(&profile, Weighing::Weight);
    let stacks = CallStacks::of(&profile, &selection, Collapse::None);
    let counted = select(&profile, Weighing::Samples);
    let (first, second) = (subject(&profile, &selection), subject(&profile, &counted));
    let track = |subject| firefox::Track {
        subject,
        stacks: &stacks,
    };
    let mut file = Vec::new();
    firefox::write(&mut file, track(&first), &[track(&second)]).unwrap();
    let file = readers::firefox_file(&file);
    let threads = file["threads"].as_array().unwrap();
    let names: Vec<_> = threads
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["app 7/7", "app 7/7 (cpu-clock)"]);
    let types: Vec<_> = threads
        .iter()
        .map(|t| &t["samples"]["weightType"])
        .collect();
    assert_eq!(types, ["tracing-ms", "samples"]);
    let main: Vec<_> = threads.iter().map(|t| t["isMainThread"] == true).collect();
    assert_eq!(main, [true, false]);
    let markers = &threads[0]["markers"];
    assert_eq!(markers["length"], 1);
    let name = markers["name"][0].as_u64().unwrap() as usize;
    assert_eq!(threads[0]["stringArray"][name], "lost");
    assert_eq!(markers["data"][0]["count"], 12);
    assert_eq!(
        markers["data"][0]["type"],
        file["meta"]["markerSchema"][0]["name"]
    );
    assert_eq!(threads[1]["markers"]["length"], 0);
}

#[test]
fn a_collapsed_frame_has_the_line_of_the_innermost_call_that_is_folded_into_it() {
    let stack = vec![(0, 1, false), (1, 2, false), (1, 1, false), (5, 1, false)];
    let profile = build(&[(stack, 0, 10, 2)]);
    let selection = select(&profile, Weighing::Weight);
    for degree in [Collapse::Direct, Collapse::Conservative, Collapse::Full] {
        let stacks = CallStacks::of(&profile, &selection, degree);
        let frames = stacks.outwards(stacks.samples[0].stack);
        let lines: Vec<_> = frames
            .map(|(_, frame)| {
                let line = frame.line.map(|line| profile.lines[line].line);
                (&*profile.functions[frame.function].name, line)
            })
            .collect();
        let map = FUNCTIONS[5].0;
        assert_eq!(
            lines,
            [(map, Some(1)), ("work", Some(1)), ("main", Some(1))],
            "{degree:?}"
        );
    }
}

#[test]
fn a_file_that_states_too_many_samples_has_a_record_for_each_stack() {
    let profile = build(&[(vec![(0, 1, false)], 0, 10, 1 << 40)]);
    let selection = select(&profile, Weighing::Weight);
    let file = exported(&profile, &selection, Collapse::None).swap_remove(5);
    let text = String::from_utf8(file).unwrap();
    let records: Vec<_> = text
        .lines()
        .filter(|line| line.contains(" 0.000000: "))
        .collect();
    assert_eq!(records, ["app 7/7 0.000000:         10 cpu-clock:"]);
}
