//! Outputs never replace inputs, and replace earlier outputs only when they are whole.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support;
use crate::support::cli::proftool;

const STACKS: &str = "main;a 10\nmain;b 20\n";
/// The same as it is exported: the heaviest first.
const EXPORTED: &str = "main;b 20\nmain;a 10\n";

/// A directory with folded stacks in `x`.
fn room(name: &str) -> PathBuf {
    let room = support::directory(&format!("outputs-{name}"));
    fs::write(room.join("x"), STACKS).unwrap();
    room
}

fn run(room: &Path, args: &[&str]) -> Output {
    proftool(args).current_dir(room).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn names(room: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(room)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_input_keeps_its_bytes_whatever_the_output_is_called() {
    let room = room("names");
    symlink("x", room.join("link")).unwrap();
    symlink("link", room.join("link-to-link")).unwrap();
    fs::hard_link(room.join("x"), room.join("hard")).unwrap();
    fs::create_dir(room.join("inside")).unwrap();
    let full = room.join("x").display().to_string();
    for output in [
        "x",
        "./x",
        "inside/../x",
        "link",
        "link-to-link",
        "hard",
        &full,
    ] {
        for (args, input) in [
            (&["export", "--to", "folded", "-o"][..], "x"),
            (&["export", "--to", "svg", "-o"], "x"),
            (&["export", "--to", "html", "-o"], "link"),
            (&["export", "--to", "dot", "-o"], "hard"),
            (&["report", "--html"], "x"),
        ] {
            let said = run(&room, &[args, &[output, input]].concat());
            assert_eq!(said.status.code(), Some(1), "{args:?} {output}: {said:?}");
            assert!(stderr(&said).contains("this command reads it"), "{said:?}");
            assert_eq!(fs::read_to_string(room.join("x")).unwrap(), STACKS);
        }
    }
    // Standard input is an input as well, and standard output an output.
    let stdin = fs::File::open(room.join("x")).unwrap();
    let said = proftool(&["export", "-", "--to", "folded", "-o", "x"])
        .current_dir(&room)
        .stdin(stdin)
        .output()
        .unwrap();
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    for args in [&["flat", "x"][..], &["export", "x", "--to", "folded"]] {
        let stdout = fs::File::options().append(true).open(room.join("x"));
        let said = proftool(args)
            .current_dir(&room)
            .stdout(stdout.unwrap())
            .output()
            .unwrap();
        assert_eq!(said.status.code(), Some(1), "{said:?}");
    }
    assert_eq!(fs::read_to_string(room.join("x")).unwrap(), STACKS);
    assert_eq!(
        names(&room),
        ["hard", "inside", "link", "link-to-link", "x"]
    );
}

#[test]
fn a_recording_and_a_program_are_not_replaced_even_if_they_are_not_read() {
    let room = room("others");
    for (name, contents) in [
        ("perf.data", &b"PERFILE2 precious"[..]),
        ("prog", b"\x7fELF precious"),
        ("gmon.out", b"gmon precious"),
    ] {
        fs::write(room.join(name), contents).unwrap();
        for args in [
            &["report", "--html", name, "x"][..],
            &["export", "--to", "speedscope", "-o", name, "x"],
        ] {
            let said = run(&room, args);
            assert_eq!(said.status.code(), Some(1), "{said:?}");
            assert!(stderr(&said).contains("hint: "), "{said:?}");
            assert_eq!(fs::read(room.join(name)).unwrap(), contents);
        }
    }
}

#[test]
fn files_of_a_recording_that_is_a_directory_are_not_replaced() {
    let room = room("directory");
    fs::create_dir(room.join("recording")).unwrap();
    for name in ["data", "data.0"] {
        let path = room.join("recording").join(name);
        fs::write(&path, "of the recording").unwrap();
        let output = format!("recording/{name}");
        let said = run(
            &room,
            &["export", "recording", "--to", "svg", "-o", &output],
        );
        assert_eq!(said.status.code(), Some(1));
        assert!(stderr(&said).contains("this command reads it"), "{said:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "of the recording");
    }
    let said = run(&room, &["export", "x", "--to", "svg", "-o", "recording"]);
    assert!(stderr(&said).contains("is a directory"), "{said:?}");
    let said = run(&room, &["export", "x", "--to", "svg", "-o", "recording/"]);
    assert!(stderr(&said).contains("is a directory"), "{said:?}");
}

#[test]
fn record_replaces_no_program_and_keeps_other_files() {
    let room = room("record");
    fs::copy("/bin/true", room.join("prog")).unwrap();
    let before = fs::read(room.join("prog")).unwrap();
    symlink("prog", room.join("link")).unwrap();
    for output in ["prog", "./prog", "link"] {
        let said = run(&room, &["record", "-o", output, "./prog"]);
        assert_eq!(said.status.code(), Some(125), "{said:?}");
        assert!(stderr(&said).contains("is a program"), "{said:?}");
    }
    assert_eq!(fs::read(room.join("prog")).unwrap(), before);
    assert_eq!(names(&room), ["link", "prog", "x"]);
}

#[test]
fn a_limit_of_file_sizes_leaves_the_earlier_output() {
    let room = room("limit");
    fs::write(room.join("out"), "earlier").unwrap();
    let tool = env!("CARGO_BIN_EXE_proftool");
    for format in ["folded", "svg", "html", "pprof"] {
        for (output, left) in [("out", Some("earlier")), ("new", None)] {
            let script = format!("ulimit -f 0; exec {tool} export x --to {format} -o {output}");
            let said = Command::new("sh")
                .args(["-c", &script])
                .current_dir(&room)
                .env("PROFTOOL_CONFIG", "")
                .output()
                .unwrap();
            assert_eq!(said.status.code(), Some(1), "{said:?}");
            assert!(stderr(&said).contains("file too large"), "{said:?}");
            let now = fs::read_to_string(room.join(output)).ok();
            assert_eq!(now.as_deref(), left);
        }
    }
    assert_eq!(names(&room), ["out", "x"]);
}

#[test]
fn a_new_output_has_the_rights_that_the_umask_leaves_and_an_old_one_keeps_its_own() {
    let room = room("rights");
    let export = |umask: &str| {
        let tool = env!("CARGO_BIN_EXE_proftool");
        let script = format!("umask {umask}; exec {tool} export x --to folded -o out");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(&room);
        assert!(command.status().unwrap().success());
        fs::metadata(room.join("out")).unwrap()
    };
    assert_eq!(export("027").mode() & 0o7777, 0o640);
    let mode = fs::Permissions::from_mode(0o604);
    fs::set_permissions(room.join("out"), mode).unwrap();
    let again = export("077");
    assert_eq!(again.mode() & 0o7777, 0o604);
    if again.uid() == 0 {
        std::os::unix::fs::chown(room.join("out"), Some(65534), Some(65534)).unwrap();
        let again = export("022");
        assert_eq!((again.uid(), again.gid()), (65534, 65534));
        assert_eq!(again.mode() & 0o7777, 0o604);
    }
    assert_eq!(names(&room), ["out", "x"]);
}

#[test]
fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
    let room = room("link");
    fs::create_dir(room.join("elsewhere")).unwrap();
    for target in ["elsewhere/old", "elsewhere/new"] {
        fs::write(room.join("elsewhere/old"), "earlier").unwrap();
        let link = room.join("out");
        symlink(target, &link).unwrap();
        let said = run(&room, &["export", "x", "--to", "folded", "-o", "out"]);
        assert_eq!(said.status.code(), Some(0), "{said:?}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(room.join(target)).unwrap(), EXPORTED);
        fs::remove_file(&link).unwrap();
    }
    symlink("out", room.join("out")).unwrap();
    let said = run(&room, &["export", "x", "--to", "folded", "-o", "out"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
}

#[test]
fn pipes_devices_and_standard_output_are_written_directly() {
    let room = room("direct");
    let tool = env!("CARGO_BIN_EXE_proftool");
    let shell = |script: &str| {
        Command::new("bash")
            .args(["-c", script])
            .current_dir(&room)
            .env("PROFTOOL_CONFIG", "")
            .env("P", format!("{tool} export x --to folded"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    for script in [
        "$P -o /dev/stdout",
        "$P -o /dev/fd/1 | cat",
        "$P -o /proc/self/fd/1 > file; cat file; rm file",
        "echo -n > file; $P -o /dev/stdout >> file; cat file; rm file",
        "exec 3> file; $P -o /dev/fd/3; cat file; rm file",
        "mkfifo pipe; $P -o pipe & cat pipe; rm pipe",
        "$P -o >(cat); wait $!",
        "$P -o /dev/null; $P",
    ] {
        let said = shell(script);
        assert_eq!(
            String::from_utf8_lossy(&said.stdout),
            EXPORTED,
            "{script}: {said:?}"
        );
    }
    // What is there already stays, as with `>>`.
    let said = shell("echo before > file; $P -o /dev/stdout >> file; cat file; rm file");
    let expected = format!("before\n{EXPORTED}");
    assert_eq!(String::from_utf8_lossy(&said.stdout), expected, "{said:?}");
    // A reader that has read enough is no failure.
    let said = shell("$P -o >(true); echo $?");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "0\n", "{said:?}");
    assert_eq!(names(&room), ["x"]);
}

#[test]
fn an_output_that_may_not_be_written_stays() {
    let room = room("forbidden");
    if fs::metadata(&room).unwrap().uid() != 0 {
        support::skipped("only root can be another user");
        return;
    }
    let tool = env!("CARGO_BIN_EXE_proftool");
    let export = |output: &str| {
        let script = format!(
            "exec setpriv --reuid 65534 --regid 65534 --clear-groups {tool} export x --to folded -o \
             {output}"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(&room);
        command.env("PROFTOOL_CONFIG", "").output().unwrap()
    };
    fs::set_permissions(&room, fs::Permissions::from_mode(0o777)).unwrap();
    // Another's file in a directory of all.
    fs::write(room.join("theirs"), "theirs").unwrap();
    let said = export("theirs");
    assert!(stderr(&said).contains("permission denied"), "{said:?}");
    assert_eq!(fs::read_to_string(room.join("theirs")).unwrap(), "theirs");
    // Another's file that all may write keeps its owner.
    let all = fs::Permissions::from_mode(0o666);
    fs::set_permissions(room.join("theirs"), all).unwrap();
    assert_eq!(export("theirs").status.code(), Some(0));
    assert_eq!(fs::read_to_string(room.join("theirs")).unwrap(), EXPORTED);
    assert_eq!(fs::metadata(room.join("theirs")).unwrap().uid(), 0);
    // A file of one's own in a directory that may not be changed.
    fs::write(room.join("own"), "longer than what comes after it is").unwrap();
    std::os::unix::fs::chown(room.join("own"), Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&room, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(export("own").status.code(), Some(0));
    assert_eq!(fs::read_to_string(room.join("own")).unwrap(), EXPORTED);
    assert_eq!(export("new").status.code(), Some(1));
    assert_eq!(names(&room), ["own", "theirs", "x"]);
}

#[test]
fn an_export_of_very_many_samples_has_a_record_for_each_stack() {
    let room = room("many");
    let samples: Vec<String> = (0..200).map(|at| format!("[0,{}]", at % 5 + 1)).collect();
    let counts = vec!["60000"; 200].join(",");
    let weights = vec!["60000"; 200].join(",");
    let frames: Vec<String> = (0..6)
        .map(|at| format!("{{\"name\":\"function_{at}_{}\"}}", "x".repeat(60)))
        .collect();
    let text = format!(
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{{\"frames\":\
         [{}]}},\"profiles\":[{{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"none\",\"startValue\":0,\
         \"endValue\":12000000,\"samples\":[{}],\"weights\":[{weights}],\"proftool\":{{\"event\":\
         \"cpu-clock\",\"unit\":\"samples\",\"counts\":[{counts}]}}}}]}}",
        frames.join(","),
        samples.join(","),
    );
    fs::write(room.join("many.json"), text).unwrap();
    let mut child = proftool(&["export", "many.json", "--to", "perf-script"])
        .current_dir(&room)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // As much as the limit allows, if it comes to that: 12 million samples of 200 bytes are 2.4 GB.
    let mut text = String::new();
    let stdout = child.stdout.take().unwrap();
    stdout.take(1 << 20).read_to_string(&mut text).unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(0), "{}", stderr(&said));
    let records = text.lines().filter(|line| line.contains(" 0.000000: "));
    let weights: Vec<u64> = records
        .map(|line| line.split_whitespace().nth(3).unwrap().parse().unwrap())
        .collect();
    assert_eq!(
        (weights.len(), weights.iter().sum::<u64>()),
        (5, 12_000_000)
    );
    assert!(text.contains("each record is a distinct stack"), "{text}");
    assert!(
        stderr(&said).contains("note: each record is"),
        "{}",
        stderr(&said)
    );
}
