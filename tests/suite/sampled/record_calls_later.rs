//! Stacks of a program that waits for the recorder.

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_calls::{answer, built};
use crate::support::record_calls_later::LEAF;
use crate::support::repeated::repeated;
use crate::support::skipped;

#[test]
fn while_a_program_waits_for_the_recorder_its_stacks_are_whole() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let text = "#include <unistd.h>\n__attribute__((noipa)) void become(char **argv) { execv(argv[1], argv + 1); }\n\
        int main(int argc, char **argv) { become(argv); return argc; }";
        let (Some(leaf), Some(host)) = (
            built(&room, LEAF, &[], "leaf"),
            built(&room, text, &[], "host"),
        ) else {
            return;
        };
        // It becomes itself several times: where the recorder answers before it sleeps, it does not
        // wait, which was one recording of ten on a busy machine.
        let mut names = vec![host.to_str().unwrap(); 20];
        names.push(leaf.to_str().unwrap());
        let options = [
            "--counts",
            "--follow-exec",
            "--off-cpu",
            "-g",
            "dwarf",
            "-e",
            "cpu-clock:u",
            "-o",
            "out.data",
            "--",
        ];
        let output = room.record(&[&options[..], &names].concat());
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let folded = answer(
            &room,
            &["export", "out.data", "--to", "folded", "--event", "off-cpu"],
        );
        if !folded.status.success() {
            return skipped("off-CPU time cannot be recorded here");
        }
        let folded = String::from_utf8(folded.stdout).unwrap();
        let waits: Vec<&str> = folded
            .lines()
            .filter(|line| line.contains("futex_wait"))
            .collect();
        assert!(!waits.is_empty(), "no wait: {folded}");
        let others: Vec<&str> = (waits.iter().copied())
            // Where samples fell into the other program's main, too, this one's has its module.
            .filter(|line| !line.replace(" [host]", "").contains("main;become;"))
            .collect();
        assert!(others.is_empty(), "{others:#?}");
        assert!(!folded.contains("memfd"), "{folded}");
    });
}
