//! `proftool doctor` of recordings.

use crate::support::doctor::{of, one};
use crate::support::record::{Room, can_record, stderr};
use crate::support::record_stacks::{NESTED, build};
use crate::support::repeated::repeated;

#[test]
fn doctor_reports_what_a_recording_lacks() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = ["-O2", "-g", "-fno-omit-frame-pointer"];
        let Some(program) = build(&room, "recorded", NESTED, &flags) else {
            return;
        };
        let record = |file: &str, how: &str| {
            let program = program.to_str().unwrap();
            let output = room.record(&["-q", "-e", "cpu-clock", "-o", file, "-g", how, program]);
            assert!(output.status.success(), "{}", stderr(&output));
            room.path(file).to_str().unwrap().to_owned()
        };
        let (fp, dwarf, none) = (
            record("fp.data", "fp"),
            record("dwarf.data", "dwarf,1024"),
            record("none.data", "none"),
        );
        let found = of(&[&fp]);
        assert!(
            one(&found, &fp, "stacks recorded")
                .1
                .contains("frame pointers")
        );
        assert_eq!(one(&found, &fp, "whole stacks").0, "ok");
        assert_eq!(one(&found, &fp, "samples").0, "ok");
        let found = of(&[&dwarf]);
        assert!(
            one(&found, &dwarf, "stacks recorded")
                .1
                .contains("DWARF, unwound while recorded")
        );
        let found = of(&[&none]);
        let (status, _, remedy) = one(&found, &none, "stacks recorded");
        assert_eq!(
            (&*status, &*remedy),
            ("bad", "record them: proftool record COMMAND")
        );
        // The program is built anew.
        build(&room, "recorded", NESTED, &["-O0", "-g"]).unwrap();
        let found = of(&[&fp]);
        let changed = found.iter().find(|check| {
            check["check"] == "names" && check["found"].as_str().unwrap().contains("not the build")
        });
        assert_eq!(changed.unwrap()["status"], "bad");
    });
}
