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
    for view in ["report --full", "flat", "tree", "graph", "cycles"] {
        let view_args: Vec<&str> = view.split(' ').collect();
        let (_, page, said) = run(&view_args, &data);
        assert!(
            page.contains("where nothing was mapped"),
            "{view}: {page}{said}"
        );
        assert!(!page.contains(scope), "{view}: {page}");
        let (_, page, _) = run(&[&view_args[..], &["--comm", "first"]].concat(), &data);
        let (before, notes) = page.split_once(scope).expect(&page);
        // Those samples are not among the ones shown.
        assert!(
            notes.contains("4 samples with frames where nothing was mapped"),
            "{view}: {page}"
        );
        assert!(!before.contains("mapped"), "{view}: {page}");
    }
    let (_, page, _) = run(&["report", "--full", "--comm", "first"], &data);
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

/// The options that help lists as filters of samples.
fn filters() -> Vec<String> {
    let help = proftool(&["help", "filters"]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let (_, part) = help.split_once("Which samples\n").unwrap();
    let (part, _) = part.split_once("How to read them\n").unwrap();
    let lines = part.lines().map(str::trim_start);
    let options = lines.filter(|line| line.starts_with("--"));
    let name = |line: &str| line.split(' ').next().unwrap().to_owned();
    options.map(name).collect()
}

/// The number of samples that a document says it is about.
fn samples(document: &str) -> u64 {
    let (_, rest) = document.split_once("\"samples\":").unwrap();
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

#[test]
fn proposed_commands_select_the_samples_of_the_answer() {
    let data = two_processes("next");
    let directory = directory("next");
    // Where functions are declared is known here.
    let profile = directory.join("a.speedscope.json");
    let frames =
        r#"[{"name":"main","file":"src/a.c","line":1},{"name":"work","file":"net/b.c","line":5}]"#;
    let sampled = r#"{"type":"sampled","name":"p","unit":"none","startValue":0,"endValue":3,
        "samples":[[0,1],[0],[0]],"weights":[1,1,1]}"#;
    let schema = "https://www.speedscope.app/file-format-schema.json";
    let text = format!(
        r#"{{"$schema":"{schema}","shared":{{"frames":{frames}}},"profiles":[{sampled}]}}"#
    );
    std::fs::write(&profile, text).unwrap();
    let filters = filters();
    assert!(filters.len() >= 9, "{filters:?}");
    for filter in filters {
        let (value, data) = match &*filter {
            "--focus" => ("^main$", &data),
            "--ignore" => ("^work$", &data),
            "--module" => ("app", &data),
            "--path" => ("net", &profile),
            "--comm" => ("first", &data),
            "--pid" | "--tid" => ("1", &data),
            "--time" => ("0..0.000000004", &data),
            "--event" => ("cpu-clock", &data),
            other => panic!("{other} has no value here"),
        };
        let (status, document, _) = run(&["report", &filter, value, "--format", "json"], data);
        assert_eq!(status, Some(0));
        let expected = samples(&document);
        let page = |args: &[&str]| {
            let args = [args, &[&filter, value]].concat();
            let page = proftool(&args).arg(data).env("COLUMNS", "900").output();
            String::from_utf8(page.unwrap().stdout).unwrap()
        };
        let (screen, full) = (page(&["report"]), page(&["report", "--full"]));
        let (_, on_screen) = screen.split_once("\nnext: ").expect(&screen);
        let (_, next) = full.split_once("Next commands\n").expect(&full);
        let lines = on_screen.lines().chain(next.lines());
        let mut proposed = 0;
        for command in lines.filter_map(|line| line.split_once("proftool ")) {
            let command = command.1;
            let given = command.find(&format!(" {filter} "));
            assert!(given.is_some(), "{command}");
            let is_export = command.starts_with("export ");
            let form = if is_export { "" } else { "--format json" };
            let output = std::process::Command::new("sh")
                .arg("-c")
                .arg(format!("\"$PROFTOOL\" {command} {form}"))
                .env("PROFTOOL", env!("CARGO_BIN_EXE_proftool"))
                .env("PROFTOOL_CONFIG", "")
                .current_dir(&directory)
                .output()
                .unwrap();
            assert!(output.status.success(), "{command}");
            // A part of the answer is what the one around a function is about.
            let is_part = filter != "--focus" && command.contains(" --focus ");
            if !is_export && !is_part {
                let document = String::from_utf8(output.stdout).unwrap();
                assert_eq!(samples(&document), expected, "{command}");
            }
            proposed += 1;
        }
        assert!(proposed >= 6, "{filter}: {on_screen}{next}");
    }
}

#[test]
fn a_proposed_command_names_the_recording_that_was_checked() {
    let data = two_processes("checked");
    std::fs::remove_file(directory("checked").join("app")).unwrap();
    let (status, page, _) = run(&["doctor", "--format", "json"], &data);
    assert_eq!(status, Some(0));
    let expected = format!("proftool report {} --symfs DIR", data.display());
    assert!(page.contains(&expected), "{page}");
}

#[test]
fn advice_on_a_file_repeats_the_command_as_it_was_typed() {
    let directory = directory("typed");
    let file = directory.join("a.gz");
    std::fs::write(&file, [0x1f, 0x8b, 8, 0]).unwrap();
    let typed = ["tree", "--bottom-up", "--comm", "a b", "--depth", "3"];
    let (_, _, said) = run(&typed, &file);
    let expected = "| proftool tree --comm 'a b' --bottom-up --depth 3 -";
    assert!(said.contains(expected), "{said}");
}
