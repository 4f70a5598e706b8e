//! What processes show of themselves in `/proc` may be of any length; a recorder reads a part of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support;
use crate::support::record::{Room, can_record, send};
use crate::support::record_calls::Running;

/// The most memory that a recorder had, in KiB, when it had begun to record a process, and what it said.
fn peak(room: &Room, process: &Running, options: &[&str]) -> (u64, String) {
    let pid = process.pid();
    let mut command = room.command(&["-e", "cpu-clock", "-o", "out.data", "-p", &pid]);
    command.args(options);
    let mut recorder = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(recorder.stderr.take().unwrap()).lines();
    let mut said = String::new();
    for line in lines.by_ref().map(Result::unwrap) {
        said += &format!("{line}\n");
        if line.contains("Ctrl-C ends it") {
            break;
        }
    }
    let status = fs::read_to_string(format!("/proc/{}/status", recorder.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB").parse();
    send("INT", recorder.id());
    for line in lines.map(Result::unwrap) {
        said += &format!("{line}\n");
    }
    assert!(recorder.wait().unwrap().success(), "{said}");
    (peak.unwrap(), said)
}

fn started(room: &Room, text: &str, argument: &Path) -> Option<Running> {
    let program = support::compile_text("gcc", &["-O1"], text, &room.path("prog"))?;
    let mut command = Command::new(program);
    Some(Running::start(command.arg(argument)))
}

/// States two GiB of arguments, which needs no right.
const ARGUMENTS: &str = r#"
#define _GNU_SOURCE
#include <linux/prctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
    char text[4096], *word;
    unsigned long fields[64] = {0};
    size_t size = 2UL << 30, length = fread(text, 1, sizeof text - 1, fopen("/proc/self/stat", "r"));
    text[length] = 0;
    word = strrchr(text, ')') + 1;
    for (int field = 3; field < 52 && (word = strchr(word, ' ')); field++) sscanf(++word, "%lu", &fields[field]);
    char *all = mmap(0, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct prctl_mm_map map = {
        .start_code = fields[26], .end_code = fields[27], .start_stack = fields[28],
        .start_data = fields[45], .end_data = fields[46], .start_brk = fields[47],
        .brk = (unsigned long)sbrk(0), .env_start = fields[50], .env_end = fields[51],
        .arg_start = (unsigned long)all, .arg_end = (unsigned long)all + size - 4096, .exe_fd = -1,
    };
    int stated = prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
    puts(stated ? "not stated" : "ready");
    fflush(stdout);
    prctl(PR_SET_PDEATHSIG, 9);
    for (volatile unsigned long n = 0;; n++) {}
}
"#;

#[test]
fn stated_arguments_take_no_memory_of_a_recorder() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    if let Some(process) = started(&room, ARGUMENTS, Path::new("")) {
        let (peak, said) = peak(&room, &process, &[]);
        assert!(peak < 500_000, "{peak} KiB\n{said}");
    }
}

/// Maps a file with a path of 3800 bytes very often.
const MAPPINGS: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char name[251] = "";
    memset(name, 'd', 250);
    if (chdir(argv[1])) return 77;
    for (int i = 0; i < 15; i++) { mkdir(name, 0700); if (chdir(name)) return 77; }
    int file = open("file", O_RDWR | O_CREAT, 0600);
    ftruncate(file, 4096);
    int count = 0;
    while (count < 60000 && mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0) != MAP_FAILED) count++;
    puts(count < 60000 ? "too few" : "ready");
    fflush(stdout);
    for (volatile unsigned long n = 0;; n++) {}
}
"#;

#[test]
fn very_many_mappings_are_read_in_part() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    if let Some(process) = started(&room, MAPPINGS, &room.0) {
        let (peak, said) = peak(&room, &process, &[]);
        assert!(
            said.contains("1 running process has too many mappings"),
            "{said}"
        );
        assert!(peak < 300_000, "{peak} KiB\n{said}");
    }
}
