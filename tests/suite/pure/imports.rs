//! Profiles of other tools as inputs: nothing that a format holds is lost on the way in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use proftool::analysis::inclusive;
use proftool::analysis::tree::Collapse;
use proftool::base::{CaveatKind, Unit, printable};
use proftool::input::{self, Options, Reason};
use proftool::pprof::{Function, Line, Location, Mapping, Profile as File, Sample, ValueType};
use proftool::profile::{CallPath, EventId, Filter, FunctionKind, Profile, Selection, Weighing};
use proptest::collection::vec;
use proptest::prelude::{any, prop, prop_assert_eq, proptest};
use prost::Message;

use crate::support::exports::{build, exported, samples, select, truth};
use crate::support::laws;
use crate::support::readers;

fn read(bytes: Vec<u8>) -> Result<Profile, Reason> {
    let read = input::read(bytes, &Options::default());
    read.map_err(|error| error.reason)
}

proptest! {
    #![proptest_config(laws::cases(96))]

    #[test]
    fn what_is_written_is_read_with_the_same_totals(samples in samples()) {
        let samples: Vec<_> = samples.into_iter().filter(|sample| sample.2 > 0).collect();
        if samples.is_empty() {
            return Ok(());
        }
        let profile = build(&samples);
        let selection = select(&profile, Weighing::Weight);
        let files = exported(&profile, &selection, Collapse::None);
        for ((format, is_printed, keeps_apart, _), file) in readers::ALL.iter().zip(files) {
            if !["pprof", "speedscope", "perf-script"].contains(format) {
                continue;
            }
            let again = read(file).unwrap();
            let selected = again.select(again.main_event().unwrap(), &Filter::default());
            prop_assert_eq!(selected.total(), selection.total(), "{}", format);
            let (mut want, mut got) =
                (truth(&profile, &selection, *is_printed), truth(&again, &selected, false));
            if !keeps_apart {
                (want, got) = (readers::names(&want), readers::names(&got));
            }
            prop_assert_eq!(got, want, "{}", format);
            prop_assert_eq!(selected.samples(), selection.samples());
            prop_assert_eq!(selected.event(), selection.event());
            prop_assert_eq!(marked(&again, &selected), marked(&profile, &selection), "{}", format);
            let threads: BTreeSet<_> = selection.rows().iter().map(|row| row.thread).collect();
            prop_assert_eq!(again.threads.len(), threads.len());
        }
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        samples in samples(),
        format in 0..3usize,
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let profile = build(&samples);
        let selection = select(&profile, Weighing::Weight);
        let mut files = exported(&profile, &selection, Collapse::None);
        let mut file = match format {
            0 => readers::pprof_file(&files[0]).encode_to_vec(),
            1 => files.swap_remove(2),
            _ => files.swap_remove(5),
        };
        for (place, byte) in damage {
            let place = place.index(file.len());
            file[place] = byte;
        }
        let _ = read(file);
    }
}

/// A frame: its name, and whether it was restored or is not called by the frame outside of it.
type Marked = (String, bool, bool);

/// The stacks of a selection, root first, with their weights and numbers of samples.
fn marked(profile: &Profile, selection: &Selection) -> BTreeMap<Vec<Marked>, (u64, u64)> {
    let mut stacks = BTreeMap::new();
    for row in selection.rows() {
        let path = std::iter::successors(Some(row.path), |&path| profile.paths[path].caller);
        let frame = |path| {
            let path = &profile.paths[path];
            let name = printable(&profile.functions[path.function].name).into_owned();
            (name, path.inferred, path.across_gap)
        };
        let mut stack: Vec<Marked> = path.map(frame).collect();
        stack.reverse();
        let sum: &mut (u64, u64) = stacks.entry(stack).or_default();
        sum.0 += row.weight;
        sum.1 += row.samples;
    }
    stacks
}

/// A profile as other tools write them, with these sample types and one sample a row of values.
fn file(types: &[(&str, &str)], values: &[&[i64]]) -> File {
    let mut file = File {
        string_table: vec![Vec::new()],
        ..File::default()
    };
    let mut text = |text: &str| {
        file.string_table.push(text.as_bytes().to_vec());
        file.string_table.len() as i64 - 1
    };
    let types = types.iter().map(|(kind, unit)| ValueType {
        kind: text(kind),
        unit: text(unit),
    });
    let types = types.collect();
    let (name, library) = (text("main"), text("/lib/libx.so"));
    file.sample_type = types;
    file.mapping = vec![Mapping {
        id: 1,
        filename: library,
        ..Mapping::default()
    }];
    file.function = vec![Function {
        id: 9,
        name,
        ..Function::default()
    }];
    let line = Line {
        function_id: 9,
        line: 0,
    };
    file.location = vec![
        Location {
            id: 1,
            line: vec![line],
            ..Location::default()
        },
        Location {
            id: 2,
            mapping_id: 1,
            address: 0x1234,
            ..Location::default()
        },
    ];
    let sample = |values: &&[i64]| Sample {
        location_id: vec![2, 1],
        value: values.to_vec(),
        label: Vec::new(),
    };
    file.sample = values.iter().map(sample).collect();
    file
}

#[test]
fn sample_types_are_events_and_samples_are_their_number() {
    let cpu = file(
        &[("samples", "count"), ("cpu", "nanoseconds")],
        &[&[3, 30], &[1, 10]],
    );
    let profile = read(cpu.encode_to_vec()).unwrap();
    let events: Vec<_> = profile
        .events
        .iter()
        .map(|event| (&*event.name, &event.unit))
        .collect();
    assert_eq!(events, [("cpu", &Unit::Nanoseconds)]);
    let selection = select(&profile, Weighing::Weight);
    assert_eq!((selection.total(), selection.samples()), (40, 4));
    assert_eq!(profile.caveats.count(CaveatKind::CountUnstated), 0);
    // Without a name in the file, a frame is told apart by its address.
    let names: Vec<_> = profile
        .functions
        .iter()
        .map(|f| (&*f.name, f.kind))
        .collect();
    let unnamed = ("[unknown] /lib/libx.so 0x1234", FunctionKind::Unknown);
    assert_eq!(names, [unnamed, ("main", FunctionKind::Named)]);

    let mut heap = file(
        &[
            ("alloc_space", "bytes"),
            ("inuse_space", "kilobytes"),
            ("delay", "milliseconds"),
        ],
        &[&[5, 0, 2]],
    );
    heap.string_table.push(b"delay".to_vec());
    heap.default_sample_type = heap.string_table.len() as i64 - 1;
    let profile = read(heap.encode_to_vec()).unwrap();
    let names: Vec<_> = profile.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["delay", "alloc_space", "inuse_space"]);
    assert_eq!(select(&profile, Weighing::Weight).total(), 2_000_000);
    assert_eq!(profile.caveats.count(CaveatKind::CountUnstated), 1);
}

#[test]
fn negative_values_and_dangling_ids_are_left_out_with_a_caveat() {
    let mut diff = file(&[("cpu", "nanoseconds")], &[&[-5], &[7]]);
    diff.sample[1].location_id.push(77);
    let profile = read(diff.encode_to_vec()).unwrap();
    assert_eq!(select(&profile, Weighing::Weight).total(), 7);
    let skipped = profile
        .caveats
        .iter()
        .find(|caveat| caveat.kind == CaveatKind::Skipped);
    let details: Vec<_> = skipped.unwrap().details().collect();
    let negative = "a value that is negative or exceeds 64 bits";
    assert_eq!(
        details,
        [(negative, 1), ("a location that is not in the file", 1)]
    );
}

#[test]
fn a_pprof_profile_that_takes_too_much_memory_is_refused() {
    // A sample type, an empty text, and samples of two bytes each.
    let mut bytes = vec![0x0a, 2, 0x08, 0, 0x32, 0];
    bytes.extend([0x12, 0].repeat(16 << 20));
    // Stored, not deflated: only what the messages take in memory counts here.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(&bytes).unwrap();
    let read = read(gzip.finish().unwrap());
    assert!(
        matches!(read, Err(Reason::Compressed { format: "gzip" })),
        "{read:?}"
    );
}

#[test]
fn pprof_profiles_in_one_file_are_refused() {
    let one = file(&[("cpu", "nanoseconds")], &[&[7]]).encode_to_vec();
    let mut other = file(&[("space", "bytes")], &[&[9]]);
    // A text may be empty without being the first of a table.
    other.string_table.push(Vec::new());
    let other = other.encode_to_vec();
    for single in [&one, &other] {
        assert!(read(single.clone()).is_ok());
    }
    let gzip = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let both = [&*one, &*other].concat();
    for several in [gzip(&both), [gzip(&one), gzip(&other)].concat(), both] {
        let read = read(several);
        assert!(
            matches!(read, Err(Reason::Several { format: "pprof" })),
            "{read:?}"
        );
    }
}

#[test]
fn deep_stacks_are_left_out() {
    let mut deep = file(&[("cpu", "nanoseconds")], &[&[1], &[2]]);
    deep.sample[0].location_id = vec![1; (1 << 18) + 1];
    let profile = read(deep.encode_to_vec()).unwrap();
    assert_eq!(select(&profile, Weighing::Weight).total(), 2);
    assert_eq!(profile.caveats.count(CaveatKind::Skipped), 1);
}

#[test]
fn other_gzip_files_are_refused_as_compressed() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"main;a 3\n").unwrap();
    let read = read(gzip.finish().unwrap());
    assert!(
        matches!(read, Err(Reason::Compressed { format: "gzip" })),
        "{read:?}"
    );
}

/// Name, self and total of all functions, sorted.
fn rows(profile: &Profile) -> Vec<(String, u64, u64)> {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let weights = inclusive::by_function(profile, &selection);
    let functions = profile.functions.enumerate();
    let row = |(id, function): (_, &proftool::profile::Function)| {
        (
            function.name.clone(),
            weights.self_weight[id],
            weights.total[id],
        )
    };
    let mut rows: Vec<_> = functions.map(row).collect();
    rows.sort();
    rows
}

fn row(name: &str, own: u64, total: u64) -> (String, u64, u64) {
    (name.to_owned(), own, total)
}

#[test]
fn the_text_of_perf_script_is_read_in_its_forms() {
    let text = "# a note\n\
        \x20    my app   1/2   [003]  12.500000:      10 cycles:u: \n\
        \t  7f01 leaf+0x1a (/bin/my app)\n\
        \t  7f02 inner (inlined)\n\
        \t  7f03 operator()(int) (/bin/my app)\n\
        \n\
        my app 2 12.600000: cycles:u:\n\
        \t  7f03 operator()(int)+0xff (/bin/my app)\n\
        \t  7f09 [unknown] ([unknown])\n\
        \n\
        cc  7 13.000001:          5 cycles:u:  7f01 leaf+0x1b (/bin/my app)\n\
        what is this\n";
    let profile = read(text.as_bytes().to_vec()).unwrap();
    let expected = [
        row("[unknown] 0x7f09", 0, 1),
        row("inner", 0, 10),
        row("leaf", 15, 15),
        row("operator()(int)", 1, 11),
    ];
    assert_eq!(rows(&profile), expected);
    let threads: Vec<_> = profile
        .threads
        .iter()
        .map(|t| (&*t.comm, t.pid, t.tid))
        .collect();
    assert_eq!(threads, [("my app", 1, 2), ("my app", 2, 2), ("cc", 7, 7)]);
    assert_eq!(profile.events.iter().next().unwrap().name, "cycles:u");
    assert_eq!(profile.caveats.count(CaveatKind::BadLine), 1);
    let inlined = profile.paths.enumerate().filter(|(_, path)| path.inlined);
    assert_eq!(inlined.count(), 1);
}

#[test]
fn evented_profiles_of_speedscope_weigh_the_time_between_events() {
    let text = r#"{"$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "work", "file": "a.c", "line": 3}]},
        "profiles": [{"type": "evented", "name": "t", "unit": "milliseconds", "startValue": 0,
        "endValue": 10, "events": [{"type": "O", "at": 0, "frame": 0}, {"type": "O", "at": 2,
        "frame": 1}, {"type": "C", "at": 9.5, "frame": 1}, {"type": "C", "at": 10, "frame": 0}]}]}"#;
    let profile = read(text.as_bytes().to_vec()).unwrap();
    let expected = [
        row("main", 2_500_000, 10_000_000),
        row("work", 7_500_000, 7_500_000),
    ];
    assert_eq!(rows(&profile), expected);
    assert_eq!(
        profile.events.iter().next().unwrap().unit,
        Unit::Nanoseconds
    );
    assert_eq!(profile.caveats.count(CaveatKind::CountUnstated), 1);
}

/// A file of speedscope with one profile of these parts, and the frames `main`, `a` and `b`.
fn speedscope(unit: &str, parts: &str) -> String {
    format!(
        r#"{{"$schema": "speedscope", "shared": {{"frames": [{{"name": "main"}}, {{"name": "a"}},
        {{"name": "b"}}]}}, "profiles": [{{"unit": "{unit}", {parts}}}]}}"#
    )
}

#[test]
fn fractional_weights_of_speedscope_keep_their_shares() {
    let sampled = r#""samples": [[0], [0, 1], [0, 2]], "weights": [0.4, 0.4, 1.4]"#;
    let evented = r#""events": [{"type": "O", "at": 0.1, "frame": 1},
        {"type": "C", "at": 0.5, "frame": 1}, {"type": "O", "at": 0.5, "frame": 2},
        {"type": "C", "at": 1.9, "frame": 2}]"#;
    for (unit, parts, own, counted) in [
        ("none", sampled, [4, 14], "tenths of samples"),
        ("bytes", sampled, [4, 14], "tenths of bytes"),
        ("nanoseconds", sampled, [4, 14], "tenths of ns"),
        ("milliseconds", sampled, [400_000, 1_400_000], "ns"),
        ("none", evented, [4, 14], "tenths of samples"),
        ("microseconds", evented, [400, 1_400], "ns"),
    ] {
        let profile = read(speedscope(unit, parts).into_bytes()).unwrap();
        let rows = rows(&profile);
        let [a, b] = own;
        assert_eq!(
            rows[..2],
            [row("a", a, a), row("b", b, b)],
            "{unit}: {parts}"
        );
        assert_eq!(
            profile.events.iter().next().unwrap().unit.to_string(),
            counted
        );
        let selection = select(&profile, Weighing::Weight);
        assert_eq!(selection.samples(), profile.samples.len() as u64);
    }
}

#[test]
fn events_of_speedscope_end_with_their_profile_and_time_does_not_run_backwards() {
    let open = r#""endValue": 100, "events": [{"type": "O", "at": 0, "frame": 0},
        {"type": "O", "at": 10, "frame": 1}]"#;
    let backwards = r#""endValue": 100, "events": [{"type": "O", "at": 50, "frame": 0},
        {"type": "O", "at": 10, "frame": 1}, {"type": "C", "at": 60, "frame": 1},
        {"type": "C", "at": 70, "frame": 0}]"#;
    for (parts, main, a, disordered) in [(open, 10, 90, 0), (backwards, 10, 10, 1)] {
        let profile = read(speedscope("nanoseconds", parts).into_bytes()).unwrap();
        let expected = [row("a", a, a), row("b", 0, 0), row("main", main, main + a)];
        assert_eq!(rows(&profile), expected);
        assert_eq!(profile.caveats.count(CaveatKind::Disordered), disordered);
    }
}

#[test]
fn folded_stacks_that_begin_like_another_format_are_folded_stacks() {
    let lines = [
        ("{\"name\": 1};work 3\n", "{\"name\": 1}"),
        (
            "cc 7 13.000001: cycles:  7f05 leaf (/bin/app);work 3\n",
            "cc 7 13.000001: cycles:  7f05 leaf (/bin/app)",
        ),
    ];
    for (text, root) in lines {
        let profile = read(text.as_bytes().to_vec()).unwrap();
        assert_eq!(rows(&profile), {
            let mut rows = [row(root, 0, 3), row("work", 3, 3)];
            rows.sort();
            rows
        });
    }
    // Other documents are no stacks, however their lines end.
    let other = read(b"{\"a\": 5\n, \"b\": 12\n}\n".to_vec());
    assert!(matches!(other, Err(Reason::Unknown)), "{other:?}");
}

#[test]
fn texts_that_are_no_stacks_are_refused_for_what_they_look_like() {
    let others = [
        (
            "# callgrind format\nevents: Ir\n\nfn=main\n16 400\n",
            "Callgrind",
        ),
        (
            "\n              prog`main+0x20\n               12\n",
            "DTrace",
        ),
        (
            "# To display the perf.data header info, please use\n# x\n 99.39% 1\n",
            "perf report",
        ),
        (
            "\n Performance counter stats for 'ls':\n\n  6.24 msec task-clock\n",
            "perf stat",
        ),
        ("<!DOCTYPE html>\n<p>1\n", "a web page"),
        (
            "12:00:01 started server at port 80\n12:00:02 got request 12\nbye\n",
            "neither",
        ),
        ("the number of requests that came is 12\n", "neither"),
        ("a;b;c 10 20\na 5 5\n", "difffolded.pl"),
    ];
    for (text, named) in others {
        let said = read(text.as_bytes().to_vec()).unwrap_err().to_string();
        assert!(said.contains(named) && !said.contains('\n'), "{said}");
    }
    for text in [
        "main 12\n",
        "operator new(unsigned long) 3\n",
        "non-virtual thunk to C::f(int) 3\n",
        "# a note\nmain;f 3\nno weight\n",
        "main;line 10 3\nmain;f 12\n",
        "function 1 9\nfunction 1;function 2 30\n",
    ] {
        assert!(read(text.as_bytes().to_vec()).is_ok(), "{text}");
    }
}

#[test]
fn a_frame_of_a_deleted_file_or_without_a_module_has_its_own_name() {
    let text = "app 1 cpu-clock: \n\
        \t  7d6 [unknown] (/tmp/my app (old)/app (deleted))\n\
        \t  7d7 f(int) (/lib/c.so+0x7d7)\n\
        \t  0x00000000000007d8 operator()(int) const\n\
        \n\
        app 1/2 [000] 1.5: sched:sched_switch: prev_comm=a 12 ==> next_comm=add  7d9 fade ([kernel.kallsyms])\n\
        app 1/2 [000] 1.6: PERF_RECORD_EXIT(1:1):(1:1)\n";
    let profile = read(text.as_bytes().to_vec()).unwrap();
    let mut found: Vec<_> = { profile.functions.iter() }
        .map(|it| (it.name.clone(), profile.modules[it.module].path.clone()))
        .collect();
    found.sort();
    let expected = [
        (
            "[unknown] /tmp/my app (old)/app 0x7d6",
            "/tmp/my app (old)/app",
        ),
        ("f(int)", "/lib/c.so"),
        ("fade", "[kernel.kallsyms]"),
        ("operator()(int) const", ""),
    ];
    assert_eq!(
        found,
        expected.map(|(name, path)| (name.to_owned(), path.to_owned()))
    );
    let units: Vec<_> = profile.events.iter().map(|it| it.unit.clone()).collect();
    assert_eq!(units, [Unit::Samples, Unit::Samples]);
    assert_eq!(profile.caveats.count(CaveatKind::BadLine), 0);
}

/// Event, samples and weight; thread; frames leaf first.
type Record = (String, (u64, u64), String, Vec<String>);

fn records(text: &str) -> Vec<Record> {
    let profile = read(text.as_bytes().to_vec()).unwrap();
    assert_eq!(profile.caveats.count(CaveatKind::BadLine), 0, "{text}");
    assert_eq!(profile.caveats.count(CaveatKind::Skipped), 0, "{text}");
    let mut records: Vec<_> = { profile.samples.iter() }
        .map(|sample| {
            let thread = &profile.threads[sample.thread];
            let frames = profile.paths.outwards(sample.path);
            let name = |path: &CallPath| profile.functions[path.function].name.clone();
            (
                profile.events[sample.event].name.clone(),
                (sample.count, sample.weight),
                format!("{} {}/{}", thread.comm, thread.pid, thread.tid),
                frames.map(name).collect(),
            )
        })
        .collect();
    records.sort();
    records
}

/// Lines are those of perf 6.1.
#[test]
fn each_line_before_a_stack_has_its_event_thread_and_period() {
    // line, event, thread, weight
    let cases = [
        ("my app page-faults: ", "page-faults", "my app 0/0", 1),
        ("my app [001] page-faults: ", "page-faults", "my app 0/0", 1),
        ("   1003009 cycles: ", "cycles", " 0/0", 1_003_009),
        (
            "my app    1003009 cycles: ",
            "cycles",
            "my app 0/0",
            1_003_009,
        ),
        (
            "my app [001]    1003009 cycles: ",
            "cycles",
            "my app 0/0",
            1_003_009,
        ),
        (
            "app 7 [001] U      27.748612:     250000 cycles: ",
            "cycles",
            "app 7/7",
            250_000,
        ),
        ("app 7 [001] K     cycles: ", "cycles", "app 7/7", 1),
        ("app U     cycles: ", "cycles", "app 0/0", 1),
        (
            "app 7  27.712524:    1003009 ",
            "events",
            "app 7/7",
            1_003_009,
        ),
        ("app 7/8        1003009 ", "events", "app 7/8", 1_003_009),
        ("app 7    1003009 ", "events", "app 7/7", 1_003_009),
        ("app    1003009 ", "events", "app 0/0", 1_003_009),
        // A name that ends with a number.
        ("app 7 1003009 ", "samples", "app 7 1003009/1003009", 1),
        ("app 7 ", "samples", "app 7/7", 1),
    ];
    for (line, event, thread, weight) in cases {
        let text = format!("{line}\n\t            11c9 spin\n\t            11e9 main\n\n");
        let frames = ["spin", "main"].map(String::from).to_vec();
        let expected = (event.to_owned(), (1, weight), thread.to_owned(), frames);
        assert_eq!(records(&text), [expected], "{line}");
    }
}

#[test]
fn events_without_numbers_are_kept_apart() {
    let text = "app page-faults: \n\t            11c9 spin\n\napp cpu-clock: \n\
        \t            11c9 spin\n\napp cpu-clock: \n\t            11c9 spin\n\n";
    let found = records(text);
    let counts: Vec<_> = found.iter().map(|it| (&*it.0, it.1.0)).collect();
    assert_eq!(counts, [("cpu-clock", 2), ("page-faults", 1)]);
}

/// Lines are those of perf 6.1 with `-G`.
#[test]
fn frames_in_the_line_of_their_record_need_no_module() {
    let cases = [
        (
            "app 7  27.792615: cpu-clock:      7fd36c21d69e f(int) const",
            "f(int) const",
        ),
        (
            "app 7  27.792615: cpu-clock:  ffffffff813dd9d5 up_write+0x15",
            "up_write",
        ),
        (
            "app 7  27.792615: cpu-clock:      7fd36c21d69e",
            "[unknown] 0x7fd36c21d69e",
        ),
        (
            "app 7  27.712524:      559f1529f1c9 spin\n  burn2.c:4",
            "spin",
        ),
        (
            "app 7  27.712524:    1003009      559f1529f1c9 spin",
            "spin",
        ),
        ("app cpu-clock:      559f1529f1c9 spin", "spin"),
        ("cpu-clock:      559f1529f1c9 spin", "spin"),
        // Times and threads tell a record from a frame, and a column an address from a word.
        (
            "             add 7  27.712524: cpu-clock:            401139 add",
            "add",
        ),
        (
            "app 7  27.5: sched:x: comm=a 12 b=fade  ffffffff8158c674 schedule",
            "schedule",
        ),
    ];
    for (text, name) in cases {
        let two = format!("{text}\n{text}\n");
        let found = records(&two);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(
            (found[0].1.0, &*found[0].3),
            (2, &[name.to_owned()][..]),
            "{text}"
        );
    }
    // An address that the event is about, with a stack below.
    let text = "app 7  27.7: page-faults:      7fd36c21d000\n\t            11c9 spin\n\n";
    assert_eq!(records(text)[0].3, ["spin"]);
}

#[test]
fn lines_of_the_standard_error_and_a_byte_order_mark_hide_no_data() {
    let script = "app 7 27.5:  1001001 task-clock: \n\t  401139 alpha+0x9 (/bin/app)\n\n";
    let stacks = "main;alpha 1\n".repeat(5);
    let notes = [
        "Failed to open /tmp/perf-10.map, continuing without symbols\n",
        "addr2line: DWARF error: section .debug_str is larger than its filesize!\n",
        "Warning:\n",
        "Warning:\nProcessed 10 events and lost 2 chunks!\n\nCheck IO/CPU overload!\n\n",
    ];
    for (data, weight) in [(script, 1_001_001), (&*stacks, 5)] {
        for note in notes {
            let profile = read(format!("{note}{data}").into_bytes()).unwrap();
            assert!(
                rows(&profile).contains(&row("alpha", weight, weight)),
                "{note}{data}"
            );
            let lines = note.lines().filter(|line| !line.is_empty()).count();
            assert_eq!(
                profile.caveats.count(CaveatKind::BadLine),
                lines as u64,
                "{note}{data}"
            );
            assert_eq!(profile.events.len(), 1, "{note}{data}");
        }
    }
    let speedscope = r#"{"$schema": "speedscope", "shared": {"frames": [{"name": "alpha"}]},
        "profiles": [{"unit": "none", "samples": [[0]], "weights": [5]}]}"#;
    for data in [script, &stacks, speedscope] {
        let profile = read(format!("\u{feff}{data}").into_bytes()).unwrap();
        assert_eq!(rows(&profile), rows(&read(data.into()).unwrap()), "{data}");
        assert!(
            profile.functions.iter().any(|it| it.name == "alpha"),
            "{data}"
        );
        assert_eq!(profile.caveats.count(CaveatKind::BadLine), 0, "{data}");
    }
}
