//! How `record -g auto` chooses.

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_stacks::{NESTED, build, choice};
use crate::support::write_script;

#[test]
fn a_copy_size_that_does_not_fit_is_refused_with_one_that_does() {
    let room = Room::new();
    for (how, told) in [
        ("dwarf,0", "how many bytes from the top of the stack"),
        ("dwarf,65528", "8 to 64088 (8192 is usual)"),
        ("dwarf,", "8 to 64088"),
        (
            "lbr",
            "not one of auto, fp, fp,BYTES, dwarf, dwarf,BYTES, none",
        ),
        ("fp,65528", "8 to 64088"),
    ] {
        let output = room.record(&["-g", how, "true"]);
        assert_eq!(output.status.code(), Some(2), "{how}");
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
}

#[test]
fn auto_chooses_by_what_the_program_keeps() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let with = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    for level in ["-O0", "-O2"] {
        let without = build(&room, "without", NESTED, &[level, "-fomit-frame-pointer"]);
        let with = build(&room, "with", NESTED, &[level, with[0], with[1]]);
        let (Some(without), Some(with)) = (without, with) else {
            return;
        };
        let told = choice(&room, &["-F", "99", with.to_str().unwrap()]);
        assert!(
            told.starts_with("proftool: call stacks: frame pointers (with"),
            "{level}: {told}"
        );
        let told = choice(&room, &["-F", "99", without.to_str().unwrap()]);
        let (begin, end) = (
            "proftool: call stacks: DWARF, unwound while it records (",
            " % of without's functions keep no frame pointer; override with -g fp)",
        );
        assert!(
            told.starts_with(begin) && told.ends_with(end),
            "{level}: {told}"
        );
    }
    // What is asked for is not talked about, nor what was chosen to those who want quiet.
    let program = room.path("without");
    let program = program.to_str().unwrap();
    for args in [["-g", "fp", program], ["-q", "-F99", program]] {
        let output = room.record(&args);
        assert!(!stderr(&output).contains("call stacks:"));
    }
}

#[test]
fn auto_checks_the_interpreter_of_a_script() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let flags = ["-O2", "-fomit-frame-pointer"];
    let Some(program) = build(&room, "interpreter", NESTED, &flags) else {
        return;
    };
    let script = room.path("script");
    write_script(&script, &format!("#!{} argument\n", program.display()));
    let told = choice(&room, &["-F", "99", script.to_str().unwrap()]);
    assert!(
        told.contains(" % of interpreter's functions keep no frame pointer"),
        "{told}"
    );
}
