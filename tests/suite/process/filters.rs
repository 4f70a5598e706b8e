//! What a filter leaves: no samples, a part of them, one event of several; and what notes then say.

use std::path::{Path, PathBuf};

use crate::support::cli::proftool;
use crate::support::elf::Elf;
use crate::support::written::{CPU_CLOCK, PAGE_FAULTS, Recording, Taken};

const SECOND: u64 = 1_000_000_000;

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

fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("filters-{test}"));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Two processes: `first` has samples in `main` and `work`, `second` at addresses without a mapping.
fn two_processes(test: &str) -> PathBuf {
    let directory = directory(test);
    let app = directory.join("app");
    Elf::with_functions(&[("main", 0x1000, 0x100), ("work", 0x1100, 0x100)]).write(&app);
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(1, "first");
    recording.process(2, "second");
    recording.mapping(1, app.to_str().unwrap(), (0x40_1000, 0x1000), 0x1000);
    for index in 0..4 {
        recording.sample(Taken {
            task: 1,
            time: SECOND + 2 * index,
            user: &[0x40_1110, 0x40_1010],
            ..Taken::default()
        });
        recording.sample(Taken {
            task: 2,
            time: SECOND + 2 * index + 1,
            user: &[0x50_0000],
            ..Taken::default()
        });
    }
    let data = directory.join("perf.data");
    recording.write(&data);
    data
}

#[test]
fn an_empty_time_range_is_not_taken_for_an_empty_recording() {
    let data = two_processes("time");
    for view in ["report", "flat", "tree", "graph", "cycles"] {
        let (status, page, said) = run(&[view, "--time", "100..200"], &data);
        assert_eq!(status, Some(0), "{view}: {said}");
        let all = page + &said;
        assert!(
            all.contains("no samples in the chosen time range"),
            "{view}: {all}"
        );
        for untrue in [
            "no samples were recorded",
            "run the program longer",
            "-F 4999",
        ] {
            assert!(!all.contains(untrue), "{view}: {all}");
        }
    }
    let (_, page, said) = run(&["report", "--time", "0..1"], &data);
    assert!(
        !(page + &said).contains("time range"),
        "it holds all samples"
    );
}

#[test]
fn with_a_filter_notes_and_quality_describe_the_whole_file() {
    let data = two_processes("scope");
    let scope = "describe the whole file, not only the samples shown";
    for view in ["report", "flat", "tree", "graph", "cycles"] {
        let (_, page, said) = run(&[view], &data);
        assert!(
            page.contains("where nothing was mapped"),
            "{view}: {page}{said}"
        );
        assert!(!page.contains(scope), "{view}: {page}");
        let (_, page, _) = run(&[view, "--comm", "first"], &data);
        let (before, notes) = page.split_once(scope).expect(&page);
        // Those samples are not among the ones shown.
        assert!(
            notes.contains("4 samples with frames where nothing was mapped"),
            "{view}: {page}"
        );
        assert!(!before.contains("mapped"), "{view}: {page}");
    }
    let (_, page, _) = run(&["report", "--comm", "first"], &data);
    let (_, quality) = page.split_once("Notes and stacks describe").expect(&page);
    assert!(quality.contains("of user-space stacks"), "{page}");
}

/// A recording with these events; event N has N + 1 samples, or none if its name is `idle`.
fn events(test: &str, names: &[&str]) -> PathBuf {
    let described: Vec<(&str, u64)> = names.iter().map(|&name| (name, PAGE_FAULTS)).collect();
    let mut recording = Recording::new(&described, true);
    recording.process(1, "app");
    for (event, name) in names.iter().enumerate() {
        let count = if name.starts_with("idle") {
            0
        } else {
            event + 1
        };
        for index in 0..count {
            recording.sample(Taken {
                event,
                task: 1,
                time: SECOND + (event * 100 + index) as u64,
                user: &[0x50_0000],
                ..Taken::default()
            });
        }
    }
    let data = directory(test).join("perf.data");
    recording.write(&data);
    data
}

/// The event that a view shows, and the number of its samples.
fn shown(data: &Path, event: &str) -> (String, u64) {
    let (status, page, said) = run(&["flat", "--format", "json", "--event", event], data);
    assert_eq!(status, Some(0), "{event}: {said}");
    let json: serde_json::Value = serde_json::from_str(&page).unwrap();
    let name = json["event"]["name"].as_str().unwrap().to_owned();
    (name, json["samples"].as_u64().unwrap())
}

#[test]
fn an_event_is_chosen_by_name_with_or_without_modifiers_or_by_number() {
    let names = [
        "cycles:u",
        "instructions:k",
        "instructions",
        "2",
        "idle:u",
        "idle",
    ];
    let data = events("chosen", &names);
    for (asked, event) in [
        ("cycles:u", 0),
        ("cycles", 0),
        ("0", 0),
        ("instructions:k", 1),
        ("1", 1),
        // The whole name comes before the name without modifiers.
        ("instructions", 2),
        // A name comes before a number.
        ("2", 3),
        ("3", 3),
    ] {
        let expected = (names[event].to_owned(), event as u64 + 1);
        assert_eq!(shown(&data, asked), expected, "{asked}");
    }
    assert_eq!(shown(&data, "4"), ("idle:u".into(), 0));
}

#[test]
fn an_event_that_is_unknown_or_ambiguous_is_an_error_that_lists_the_events() {
    let names = ["cycles:u", "cycles:k", "faults"];
    let data = events("refused", &names);
    for unknown in ["cycle", "3", "-1", "cycles:", "", "fault"] {
        let asked = format!("--event={unknown}");
        let (status, page, said) = run(&["flat", &asked], &data);
        assert_eq!((status, &*page), (Some(1), ""), "{unknown}: {said}");
        assert!(said.contains("has no event"), "{unknown}: {said}");
        for name in names {
            assert!(said.contains(name), "{unknown}: {said}");
        }
    }
    let (status, page, said) = run(&["flat", "--event", "cycles"], &data);
    assert_eq!((status, &*page), (Some(1), ""), "{said}");
    assert!(said.contains("several events"), "{said}");
    assert!(
        said.contains("cycles:u") && said.contains("cycles:k"),
        "{said}"
    );
    assert!(!said.contains("faults"), "{said}");
    // Each of those listed can be chosen as listed, by name and by number.
    for (index, name) in (0_u64..).zip(names) {
        for asked in [name, &index.to_string()] {
            assert_eq!(shown(&data, asked), (name.into(), index + 1));
        }
    }
}

#[test]
fn what_was_lost_is_counted_once_of_two_reports() {
    let directory = directory("lost-twice");
    for (meanwhile, at_the_end) in [(5, 3), (3, 5)] {
        let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
        recording.process(7, "app");
        recording.sample(Taken {
            task: 7,
            time: 1_000,
            user: &[0x1000],
            ..Taken::default()
        });
        recording.lost(meanwhile, at_the_end);
        let data = directory.join("perf.data");
        recording.write(&data);
        let flat = proftool(&["flat", "--format", "json"]).arg(&data).output();
        let flat: serde_json::Value = serde_json::from_slice(&flat.unwrap().stdout).unwrap();
        let lost = flat["caveats"].as_array().unwrap().iter();
        let lost: Vec<_> = lost.filter(|caveat| caveat["kind"] == "lost").collect();
        assert!(lost.len() == 1 && lost[0]["count"] == 5, "{flat}");
    }
}

#[test]
fn a_name_that_the_kernel_has_cut_is_found_by_all_of_it() {
    let directory = directory("long-name");
    let text = directory.join("text");
    std::fs::write(&text, "a-long-command- 1 cpu-clock: \n\t 7d6 f (/app)\n").unwrap();
    for (name, samples) in [
        ("a-long-command-line", 1),
        ("a-long-command", 0),
        ("a-long-comm", 0),
    ] {
        let (_, page, _) = run(&["flat", "--format", "json", "--comm", name], &text);
        assert!(
            page.contains(&format!("\"samples\":{samples}")),
            "{name}: {page}"
        );
    }
}
