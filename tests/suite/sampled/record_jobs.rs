//! `proftool record` of builds: each process is named after what it compiles.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::support::ran;
use crate::support::record::{Room, can_record, stderr};
use crate::support::record_jobs::commands;
use crate::support::repeated::repeated;

/// A source that takes a compiler some time.
fn source(number: usize) -> String {
    let function = |index: usize| {
        format!(
            "int f{number}_{index}(int x) {{ for (int i = 0; i < x; i++) x ^= i * x % 7; return x; }}\n"
        )
    };
    (0..150).map(function).collect()
}

#[test]
fn processes_of_a_build_are_told_apart_by_what_they_compile() {
    repeated(|| {
        let builds = ran(Command::new("gcc").arg("--version")).is_some();
        if !builds || !can_record() {
            return;
        }
        let room = Room::new();
        let mut script = String::new();
        for number in 0..4 {
            fs::write(room.path(&format!("part{number}.c")), source(number)).unwrap();
            script += &format!("gcc -O1 -c part{number}.c -o part{number}.o\n");
        }
        script += "gcc -shared part0.o part1.o part2.o part3.o -o parts.so\n";
        fs::write(room.path("build.sh"), script).unwrap();
        let args = ["-q", "-e", "cpu-clock", "-g", "fp", "--", "sh", "build.sh"];
        let output = room.record(&args);
        assert!(output.status.success(), "{}", stderr(&output));

        let all = commands(&room, &[]);
        for number in 0..4 {
            let name = format!("cc1 part{number}.c");
            assert!(all.contains_key(&name), "no {name}: {all:?}");
        }
        assert!(!all.contains_key("cc1"), "{all:?}");

        // A name is accepted as a filter, and so is the command that the kernel knows.
        let one = commands(&room, &["--comm", "cc1 part2.c"]);
        assert_eq!(
            one,
            BTreeMap::from([("cc1 part2.c".to_owned(), all["cc1 part2.c"])])
        );
        let compiled = commands(&room, &["--comm", "cc1"]);
        assert_eq!(compiled.len(), 4, "{compiled:?}");
    });
}

#[test]
fn nothing_is_lost_where_many_short_programs_start() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let script =
            "for k in 1 2 3 4 5 6 7 8; do (for i in $(seq 100); do /bin/true; done) & done; wait";
        let output = room.record(&["-g", "fp", "-F", "999", "sh", "-c", script]);
        let said = stderr(&output);
        assert!(
            output.status.success() && !said.contains("records lost"),
            "{said}"
        );
    });
}
