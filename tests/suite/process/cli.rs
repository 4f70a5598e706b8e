//! The command line as a user meets it: messages, exit codes, widths, pipes.

use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use proftool::names::display_width;

use crate::support::cli::{fixture, proftool};
use crate::support::skipped;

fn answer(args: &[&str]) -> Output {
    proftool(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A path for a file of this test.
fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn without_arguments_it_prints_help() {
    let output = answer(&[]);
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    for word in ["record", "report", "flat", "tree", "export", "Examples:"] {
        assert!(help.contains(word), "{word} in {help}");
    }
    assert!(help.ends_with('\n'));
}

#[test]
fn every_command_has_help_with_examples() {
    for command in [
        "report",
        "flat",
        "graph",
        "cycles",
        "tree",
        "detail",
        "annotate",
        "callgraph",
        "export",
        "top",
    ] {
        let output = answer(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains("Examples:"), "{command}");
    }
}

/// The values of an option of a command that a shell completes.
fn offered(command: &str, option: &str) -> Vec<String> {
    let script = stdout(&answer(&["completions", "bash"]));
    let start = format!("\n        proftool__subcmd__{command})\n");
    let part = script.split(&start).nth(1).unwrap();
    let part = part.split(&format!("{option})\n")).nth(1).unwrap();
    let values = part.split("-W \"").nth(1).unwrap();
    let values = values.split('"').next().unwrap();
    values.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn dot_is_offered_where_it_is_supported_and_nowhere_else() {
    let file = fixture("recursion");
    let views: [&[&str]; 7] = [
        &["report"],
        &["flat"],
        &["tree"],
        &["detail", "a"],
        &["cycles"],
        &["info"],
        &["graph"],
    ];
    for view in views {
        let formats = offered(view[0], "--format");
        assert!(
            formats.contains(&"json".to_owned()),
            "{view:?}: {formats:?}"
        );
        let is_offered = formats.contains(&"dot".to_owned());
        let file: &[&str] = if view[0] == "callgraph" {
            &[]
        } else {
            &[&file]
        };
        let drawn = answer(&[view, file, &["--format", "dot"]].concat());
        assert_eq!(is_offered, drawn.status.success(), "{view:?}: {formats:?}");
        if !is_offered {
            assert_eq!(drawn.status.code(), Some(2), "{view:?}");
            let text = stderr(&drawn);
            assert!(text.contains("supported by graph and callgraph"), "{text}");
        }
    }
}

#[test]
fn rows_are_offered_where_they_are_supported_and_nowhere_else() {
    let file = fixture("recursion");
    let rows = [
        "function", "module", "file", "line", "address", "thread", "command", "event", "crate",
    ];
    let offered = |view: &str| {
        let help = stdout(&answer(&[view, "--help"]));
        let by = help.split("--by <ROW>").nth(1).unwrap();
        let lines = by.lines().skip(1).map(str::trim);
        let lines = lines.take_while(|line| !line.is_empty() && !line.starts_with('-'));
        // Several that need no words share a line.
        let names = lines.filter_map(|line| line.split(':').next());
        let listed: Vec<&str> = names.flat_map(|names| names.split(", ")).collect();
        let listed = rows.map(|row| listed.contains(&row));
        let completed = offered(view, "--by");
        assert_eq!(listed, rows.map(|row| completed.contains(&row.to_owned())));
        listed
    };
    for view in ["flat", "graph", "tree"] {
        for (row, is_offered) in rows.into_iter().zip(offered(view)) {
            let text = stderr(&answer(&[view, &file, "--by", row]));
            // Folded stacks have neither lines nor addresses.
            let is_refused = text.contains("no rows by") || text.contains("do not call each other");
            assert_eq!(is_offered, !is_refused, "{view} {row}: {text}");
        }
    }
    // Without a terminal there is nothing to browse.
    assert_eq!(offered("browse"), offered("graph"));
}

#[test]
fn a_file_that_cannot_be_opened_gives_one_message_that_names_it() {
    let dir = scratch("a-directory");
    fs::create_dir_all(&dir).unwrap();
    let files = [
        ("empty.folded", &b""[..], "the file is empty"),
        (
            "text.folded",
            b"hello\nworld\n",
            "neither a perf.data file nor folded stacks",
        ),
        (
            "binary.folded",
            b"\0\x01 3\n\0",
            "neither a perf.data file nor folded stacks",
        ),
        ("packed.folded", b"\x1f\x8b\x08", "compressed with gzip"),
    ];
    let mut cases = vec![
        (PathBuf::from("no-such-file"), "no such file or directory"),
        (dir, "a directory without a recording"),
        (PathBuf::from("/dev/zero"), "a device, not a regular file"),
        (
            PathBuf::from(env!("CARGO_BIN_EXE_proftool")),
            "a program, not a profile",
        ),
    ];
    for (name, content, message) in files {
        let path = scratch(name);
        fs::write(&path, content).unwrap();
        cases.push((path, message));
    }
    for (path, message) in cases {
        for view in ["report", "flat", "tree"] {
            let path = path.to_str().unwrap();
            let output = answer(&[view, path]);
            assert_eq!(output.status.code(), Some(1), "{path}");
            assert!(output.stdout.is_empty(), "{path}");
            let said = stderr(&output);
            let start = format!("proftool: could not open {path}: ");
            assert!(said.starts_with(&start) && said.contains(message), "{said}");
            assert!(
                said.lines().count() <= 2 && !said.contains("os error"),
                "{said}"
            );
        }
    }
}

#[test]
fn a_fifo_is_refused_and_not_waited_for() {
    let path = scratch("fifo");
    let _ = fs::remove_file(&path);
    let made = Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        skipped("mkfifo does not work here");
        return;
    }
    let output = answer(&["flat", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("it is a pipe"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_hostile_file_name_is_printed_safely() {
    let output = answer(&["flat", "no\x1b[2Jfile\nx"]);
    let said = stderr(&output);
    assert!(
        said.contains("no\\x1b[2Jfile\\x0ax") && !said.contains('\x1b'),
        "{said}"
    );
}

#[test]
fn wrong_usage_is_exit_2() {
    let cases: [&[&str]; 8] = [
        &["nonsense"],
        &["flat", "--nonsense"],
        &["flat", "--focus", "("],
        &["flat", "--time", "2..1"],
        &["flat", "--time", "x"],
        &["flat", "--min", "101"],
        &["export", "x"],
        &["tree", "--depth", "0"],
    ];
    for args in cases {
        let output = answer(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn options_that_the_profile_cannot_answer_are_refused() {
    let file = fixture("recursion");
    let time = answer(&["flat", &file, "--time", "1..2"]);
    assert!(stderr(&time).contains("folded stacks hold no times"));
    let unit = answer(&["flat", &file, "--unit", "time"]);
    assert!(stderr(&unit).contains("does not measure time"));
    let event = answer(&["flat", &file, "--event", "cycles"]);
    assert!(stderr(&event).contains("has no event cycles\nhint: choose one of samples (number 0)"));
    for output in [time, unit, event] {
        assert_eq!(output.status.code(), Some(1));
    }
    let none = answer(&["flat", &file, "--focus", "nowhere"]);
    assert_eq!(none.status.code(), Some(0));
    assert!(stderr(&none).contains("no sample passes the filters"));
}

#[test]
fn standard_input_is_a_file_too() {
    let file = fs::File::open(fixture("recursion")).unwrap();
    let piped = proftool(&["flat", "-"]).stdin(file).output().unwrap();
    assert_eq!(
        stdout(&piped),
        stdout(&answer(&["flat", &fixture("recursion")]))
    );
}

#[test]
fn filters_choose_stacks() {
    let file = fixture("recursion");
    let total = |args: &[&str]| {
        let args = [&["flat", &file, "--format", "json"], args].concat();
        let document: serde_json::Value = serde_json::from_slice(&answer(&args).stdout).unwrap();
        document["total"].as_u64().unwrap()
    };
    assert_eq!(total(&[]), 100);
    assert_eq!(total(&["--focus", "^b$"]), 45);
    assert_eq!(total(&["--ignore", "^b$"]), 55);
    assert_eq!(total(&["--focus", "^c$", "--ignore", "^d$"]), 25);
    assert_eq!(total(&["--pid", "1,2", "--pid", "3"]), 0);
}

#[test]
fn the_limit_and_order_of_rows_are_kept() {
    let names = |args: &[&str]| {
        let file = fixture("recursion");
        let args = [&["flat", &file, "--format", "json"], args].concat();
        let document: serde_json::Value = serde_json::from_slice(&answer(&args).stdout).unwrap();
        let rows = document["functions"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| row["name"].as_str().unwrap())
            .collect::<Vec<_>>()
            .join(" ")
    };
    // self: b 40, a 25, c 25, d 8, main 2; total: main 100, a 55, b 45, c 33, d 8
    assert_eq!(names(&[]), "b a c d main");
    assert_eq!(names(&["--sort", "total"]), "main a b c d");
    assert_eq!(names(&["--sort", "name"]), "a b c d main");
    assert_eq!(names(&["--sort", "total", "--limit", "2"]), "main a");
    assert_eq!(
        names(&["--sort", "total", "--limit", "0", "--min", "40"]),
        "main a b"
    );
    assert_eq!(names(&["--min", "25%"]), "b a c");
    // The keys of perf report that name a function.
    assert_eq!(names(&["--sort", "overhead,dso,symbol"]), "b a c d main");
    assert_eq!(names(&["--sort", "overhead_children,sym"]), "main a b c d");
}

#[test]
fn rows_are_shown_by_name_and_keep_their_shares() {
    let json = |args: &[&str]| {
        let output = answer(&[args, &[&fixture("recursion"), "--format", "json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer
    };
    let names = |rows: &Value| -> Vec<String> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = json(&["flat"]);
    let shown = json(&["flat", "--show", "^[ad]$"]);
    assert_eq!(names(&shown["functions"]), ["a", "d"]);
    for row in shown["functions"].as_array().unwrap() {
        assert!(all["functions"].as_array().unwrap().contains(row), "{row}");
    }
    let report = json(&["report", "--show", "c|d"]);
    assert_eq!(names(&report["functions"]), ["c", "d"]);
    let graph = answer(&["graph", &fixture("recursion"), "--show", "^d$"]);
    let text = stdout(&graph);
    let entries = text.lines().filter(|line| line.starts_with('['));
    assert!(
        entries.clone().count() == 1 && entries.clone().all(|line| line.contains(" d ")),
        "{text}"
    );
    let none = answer(&["flat", &fixture("recursion"), "--show", "nobody"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("no row's name matches nobody"));
}

#[test]
fn a_sort_key_that_groups_otherwise_is_refused_with_the_command_that_groups_so() {
    let refused = |key: &str| {
        let output = answer(&["flat", &fixture("recursion"), "--sort", key]);
        assert_eq!(output.status.code(), Some(2), "{key}");
        stderr(&output)
    };
    assert!(refused("comm,sym").contains("proftool flat --by command "));
    assert!(refused("pid").contains("proftool flat --by thread "));
    assert!(refused("dso,comm").contains("proftool flat --by module "));
    assert!(refused("symbol,hotness").contains("[possible values: self, total"));
}

#[test]
fn what_users_of_other_tools_type_is_answered_with_commands_that_run() {
    let file = fixture("recursion");
    let typed = [
        "script FILE",
        "diff FILE FILE",
        "report --no-children FILE",
        "report --children FILE",
        "report --sort dso FILE",
        "report -s comm,sym FILE",
        "report --sort tid FILE",
        "tree -G FILE",
        "report -n FILE",
        "report --percent-limit 1 FILE",
        "report -g caller FILE",
    ];
    for typed in typed {
        let typed: Vec<&str> = typed.split(' ').collect();
        let typed: Vec<&str> = typed
            .iter()
            .map(|&word| if word == "FILE" { &file } else { word })
            .collect();
        let output = answer(&typed);
        assert_eq!(output.status.code(), Some(2), "{typed:?}");
        let text = stderr(&output);
        let commands: Vec<&str> = text
            .split("proftool ")
            .filter(|it| it.contains(&file))
            .collect();
        assert_eq!(commands.len(), 1, "{typed:?}: {text}");
        for command in commands {
            let command = command.lines().next().unwrap();
            let words: Vec<&str> = command.split(' ').collect();
            let output = answer(&words);
            assert!(
                output.status.success(),
                "{typed:?}: {command}: {}",
                stderr(&output)
            );
        }
    }
}

/// Names stay readable at the width of half a terminal: shares stay, weights go.
#[test]
fn tables_fit_into_40_columns() {
    for view in ["flat", "graph", "cycles", "tree", "report"] {
        let mut command = proftool(&[view, &fixture("recursion")]);
        let output = command.env("COLUMNS", "40").output().unwrap();
        let text = stdout(&output);
        let rows = text.lines().take_while(|line| *line != "Next commands");
        let widest = rows.map(display_width).max().unwrap();
        assert!(widest <= 40, "{view}: {widest}\n{text}");
        assert!(text.contains('%'), "{view}: {text}");
    }
    let names = "main;parse::expression::binary;parse::expression::primary 3\n";
    let path = scratch("forty.folded");
    fs::write(&path, names).unwrap();
    let mut command = proftool(&["flat", path.to_str().unwrap()]);
    let text = stdout(&command.env("COLUMNS", "40").output().unwrap());
    assert!(text.contains("  function\n"), "{text}");
    assert!(
        text.contains("100.00   100.00  …::expression::primary\n"),
        "{text}"
    );
}

#[test]
fn caveats_are_printed_on_stdout_and_stderr_and_strict_fails() {
    let file = fixture("bad-lines");
    let text = answer(&["flat", &file]);
    assert_eq!(text.status.code(), Some(0));
    assert!(stdout(&text).contains("\nnote: 5 lines could not be read: line 3"));
    assert!(stderr(&text).contains("warning: 5 lines could not be read: line 3"));
    let strict = answer(&["flat", &file, "--strict"]);
    assert_eq!(strict.status.code(), Some(1));
    assert_eq!(stdout(&strict), stdout(&text));
    assert!(stderr(&strict).contains("proftool: the result is incomplete (--strict)"));
    for args in [
        &["flat", &file, "--format", "csv"][..],
        &["export", &file, "--to", "folded"],
    ] {
        let output = answer(args);
        assert!(!stdout(&output).contains("could not be read"));
        assert!(stderr(&output).contains("could not be read"));
    }
    let sound = answer(&["flat", &fixture("recursion"), "--strict"]);
    assert_eq!(
        (sound.status.code(), stderr(&sound)),
        (Some(0), String::new())
    );
}

#[test]
fn a_limit_of_file_sizes_is_an_error() {
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("limited");
    let script = format!(
        "ulimit -f 0; {} flat fixtures/recursion.folded >'{}'",
        env!("CARGO_BIN_EXE_proftool"),
        output.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let expected = "proftool: could not write the output: file too large\n";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        skipped("there is no /dev/full");
        return;
    };
    for args in [
        &["flat", "fixtures/recursion.folded"][..],
        &["flat", "fixtures/recursion.folded", "--format", "json"],
        &["export", "fixtures/recursion.folded", "--to", "folded"],
    ] {
        let full = full.try_clone().unwrap();
        let output = proftool(args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let expected = "proftool: could not write the output: no space left on device\n";
        assert_eq!(stderr(&output), expected);
    }
    let output = answer(&[
        "export",
        "fixtures/recursion.folded",
        "--to",
        "folded",
        "-o",
        "/dev/full",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "proftool: could not write /dev/full: no space left on device\n";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn a_closed_pipe_is_success() {
    let path = scratch("many.folded");
    let lines: String = (0..50_000)
        .map(|i| format!("main;function_{i} 1\n"))
        .collect();
    fs::write(&path, lines).unwrap();
    let mut child = proftool(&["flat", path.to_str().unwrap(), "--limit", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), stderr(&output)),
        (Some(0), String::new())
    );
}

#[test]
fn any_width_works_and_lines_keep_to_reasonable_ones() {
    let file = fixture("names");
    for columns in [
        "",
        "x",
        "0",
        "-5",
        "1",
        "10",
        "19",
        "99999999999",
        "\u{ff11}",
    ] {
        let output = proftool(&["report", &file])
            .env("COLUMNS", columns)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(
            stdout(&output),
            stdout(&answer(&["report", &file])),
            "{columns}"
        );
    }
    for columns in [60, 80, 100, 200] {
        for view in ["flat", "tree"] {
            let mut command = proftool(&[view, &file]);
            let output = command
                .env("COLUMNS", columns.to_string())
                .output()
                .unwrap();
            for line in stdout(&output).lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

#[test]
fn colours_come_only_when_asked_for() {
    let file = fixture("recursion");
    let plain = answer(&["flat", &file]);
    assert!(!stdout(&plain).contains('\x1b'));
    let always = stdout(&answer(&["flat", &file, "--color", "always"]));
    assert!(always.contains("\x1b[31m") && always.contains("40.00"));
}

#[test]
fn the_report_names_commands_that_work() {
    let report = stdout(&answer(&["report", "--full", &fixture("names")]));
    // A shell puts the lines of a long command together.
    let commands = report.replace(" \\\n", " ");
    let commands: Vec<&str> = commands
        .lines()
        .filter_map(|line| Some(line.strip_prefix("  ")?.split_once("  proftool ")?.1))
        .collect();
    assert!(commands.len() >= 4, "{report}");
    for command in commands {
        let line = format!("{} {command}", env!("CARGO_BIN_EXE_proftool"));
        let line = line.replace("-o flames.svg", "-o /dev/null");
        let status = Command::new("sh")
            .args(["-c", &line])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{line}");
    }
}
