//! A recording has neither the arguments nor the environment of what ran.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::bound_to_test;
use crate::support::record::{PROFTOOL, Room, can_record, is_root, stderr, wait_for};
use crate::support::record_stacks::build;
use crate::support::repeated::repeated;

/// Runs in `main` and one function below it, so that copies of its stack reach the end of it. With an
/// argument of `fork`, in children that are gone when their samples are read.
const SHALLOW: &str = "\
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
volatile unsigned sink;
__attribute__((noinline)) unsigned hot(unsigned x) {
    for (int i = 0; i < 2000000; i++) x = x * 69069 + 1;
    return x;
}
int main(int count, char **words) {
    unsigned x = count;
    if (count > 1 && strcmp(words[1], \"fork\") == 0) {
        for (int i = 0; i < 30; i++) {
            if (fork() == 0) return hot(x) == 42;
            wait(0);
        }
    }
    if (count > 1 && strcmp(words[1], \"wait\") == 0) {
        puts(\"ready\");
        fflush(stdout);
        for (;;) sink = hot(sink);
    }
    for (int i = 0; i < 100; i++) x = hot(x);
    return x == 42;
}
";

/// A value of the environment, and an argument, of the programs that are recorded. Nothing else has
/// them whole: not the command line of the recorder, which is in the recording, and not the memory
/// of this process, which is recorded with the whole machine.
const TOKEN: &str = "token-of-the-environment";

const WORD: &str = "word-of-an-argument";

/// A command line that runs a program with [`WORD`] as its last argument and [`TOKEN`] in its
/// environment.
fn with_word(program: &str) -> Vec<String> {
    let (start, end) = WORD.split_at(5);
    let (first, second) = TOKEN.split_at(5);
    let script =
        format!("a={start}; b={first}; export DEPLOY=\"$b\"{second}; exec {program} \"$a\"{end}");
    vec!["sh".into(), "-c".into(), script]
}

/// How often these bytes are in a file.
fn count(file: &Path, text: &str) -> usize {
    let bytes = fs::read(file).unwrap();
    memchr::memmem::find_iter(&bytes, text).count()
}

/// The share of the samples in `hot` that lead to where the program begins.
fn complete(file: &Path) -> (u64, u64) {
    let output = Command::new(PROFTOOL)
        .args(["export", "--to", "folded", "--static", "off"])
        .arg(file)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut all, mut complete) = (0, 0);
    for line in text.lines().filter(|line| line.contains("main;hot")) {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let weight: u64 = weight.parse().unwrap();
        all += weight;
        complete += if stack.contains("_start;") { weight } else { 0 };
    }
    (all, complete)
}

fn programs(room: &Room) -> Option<()> {
    let without = ["-O1", "-g", "-fomit-frame-pointer"];
    let with = ["-O1", "-g", "-fno-omit-frame-pointer"];
    build(room, "without", SHALLOW, &without)?;
    build(room, "with", SHALLOW, &with).map(drop)
}

#[test]
fn copies_of_stacks_have_neither_arguments_nor_environment_and_lead_as_far() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        if programs(&room).is_none() {
            return;
        }
        let ways: [(&[&str], &str); 6] = [
            (&[], "./without"),
            (&["-g", "dwarf"], "./without"),
            (&["-g", "dwarf,8192"], "./with"),
            (&["-g", "dwarf,61440", "-z"], "./without fork"),
            (&["-g", "fp,4096"], "./with"),
            (&["-g", "fp,4096"], "./with fork"),
        ];
        let file = room.path("perf.data");
        for (options, program) in ways {
            let words = with_word(program);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let fixed = ["-e", "cpu-clock:u", "-F", "997", "--keep-copies"];
            let args = [&fixed[..], options, &["--"], &words].concat();
            let output = room.command(&args).output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", stderr(&output));
            let (all, whole) = complete(&file);
            assert!(all > 0, "{args:?}");
            assert_eq!(
                whole, all,
                "{args:?}: stacks lead to the start of the program"
            );
            assert_eq!(count(&file, TOKEN), 0, "{args:?}");
            assert_eq!(count(&file, WORD), 0, "{args:?}");
            let says = stderr(&output).contains("without its arguments and environment");
            assert!(says, "{args:?}: {}", stderr(&output));
        }
    });
}

#[test]
fn a_part_file_has_neither_arguments_nor_environment() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        if programs(&room).is_none() {
            return;
        }
        let words = with_word("./without wait");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let args = [
            &[
                "-q",
                "-e",
                "cpu-clock:u",
                "-g",
                "dwarf",
                "--keep-copies",
                "--",
            ][..],
            &words,
        ]
        .concat();
        let mut recorder = room.command(&args);
        let mut recorder = recorder.stdout(Stdio::null()).spawn().unwrap();
        let part = room.path("perf.data.part");
        let is_filled = || fs::metadata(&part).is_ok_and(|it| it.len() > 200_000);
        wait_for("samples in the part file", is_filled);
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        let (all, whole) = complete(&part);
        assert!(all > 0 && whole == all, "{whole} of {all}");
        assert_eq!((count(&part, TOKEN), count(&part, WORD)), (0, 0));
    });
}

#[test]
fn running_processes_and_whole_machines_are_recorded_without_arguments_and_environment() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        if programs(&room).is_none() {
            return;
        }
        let words = with_word(&format!("{} wait", room.path("without").display()));
        let mut program = bound_to_test(&words[0]);
        program.args(&words[1..]).stdout(Stdio::piped());
        let mut program = program.spawn().unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(program.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let pid = program.id().to_string();
        let mut targets = vec![vec!["-p", &*pid], vec!["-t", &*pid]];
        if is_root() {
            targets.push(vec!["-a"]);
        }
        for target in targets {
            let fixed = [
                "-e",
                "cpu-clock:u",
                "-g",
                "dwarf",
                "-d",
                "1",
                "--keep-copies",
            ];
            let output = room.record(&[&fixed[..], &target].concat());
            assert!(output.status.success(), "{target:?}: {}", stderr(&output));
            let file = room.path("perf.data");
            // The whole machine has samples of others as well, and maybe few of this program: to
            // unwind all of them takes a minute where a compiler runs.
            if target[0] != "-a" {
                let (all, whole) = complete(&file);
                assert!(whole == all && all > 0, "{target:?}: {whole} of {all}");
            }
            assert_eq!(
                (count(&file, TOKEN), count(&file, WORD)),
                (0, 0),
                "{target:?}"
            );
        }
        program.kill().unwrap();
        program.wait().unwrap();
    });
}

/// A thread whose stack ends where a page with a word begins.
const NEIGHBOUR: &str = "\
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
volatile unsigned sink;
__attribute__((noinline)) unsigned hot(unsigned x) {
    for (int i = 0; i < 2000000; i++) x = x * 69069 + 1;
    return x;
}
void *work(void *unused) {
    for (int i = 0; i < 100; i++) sink = hot(sink);
    return unused;
}
int main(int count, char **words) {
    size_t size = 256 << 10;
    char *stack = mmap(0, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sprintf(stack + size, \"%s\", words[1]);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, stack, size);
    pthread_t thread;
    pthread_create(&thread, &attr, work, 0);
    return pthread_join(thread, 0);
}
";

#[test]
fn copies_of_a_thread_s_stack_have_nothing_of_what_lies_above_it() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = ["-O1", "-g", "-fomit-frame-pointer", "-pthread"];
        if build(&room, "neighbour", NEIGHBOUR, &flags).is_none() {
            return;
        }
        for how in ["dwarf", "auto"] {
            let words = with_word("./neighbour");
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let fixed = ["-e", "cpu-clock:u", "-g", how, "--keep-copies", "--"];
            let output = room
                .command(&[&fixed[..], &words].concat())
                .output()
                .unwrap();
            assert!(output.status.success(), "{how}: {}", stderr(&output));
            let file = room.path("perf.data");
            let text = Command::new(PROFTOOL)
                .args(["export", "--to", "folded", "--static", "off"])
                .arg(&file)
                .output()
                .unwrap();
            let text = String::from_utf8(text.stdout).unwrap();
            let hot = |line: &&str| line.contains("work;hot");
            assert!(text.lines().any(|line| hot(&line)), "{how}: {text}");
            let threads = |line: &str| line.contains("start_thread;work") || line.contains("clone");
            assert!(text.lines().filter(hot).all(threads), "{how}: {text}");
            assert_eq!(count(&file, WORD), 0, "{how}");
        }
    });
}

/// Runs with the word on its stack and in registers, without frame pointers if it is built so, as
/// one process or as children that become the program.
const SECRET: &str = "\
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
volatile unsigned sink;
__attribute__((noinline)) unsigned hot(unsigned x, unsigned long *words) {
    unsigned long a = words[0], b = words[1], c = words[2];
    for (int i = 0; i < 3000000; i++) {
        __asm__ volatile(\"\" : \"+r\"(a), \"+r\"(b), \"+r\"(c));
        x = x * 69069 + 1;
    }
    return x ^ (a == b) ^ (b == c);
}
__attribute__((noinline)) unsigned holds(int file, unsigned x) {
    unsigned long words[4] = {0};
    lseek(file, 0, SEEK_SET);
    if (read(file, words, 32) != 32) return 1;
    return hot(x, words) + words[3];
}
int main(int count, char **words) {
    int file = open(words[1], O_RDONLY);
    if (count > 2) {
        for (int i = 0; i < 6; i++) {
            if (fork() == 0) { execl(words[0], words[0], words[1], (char *)0); _exit(1); }
            wait(0);
        }
    }
    for (int i = 0; i < 40; i++) sink += holds(file, i);
    return 0;
}
";

#[test]
fn no_memory_of_a_program_is_in_its_recording() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let without = ["-O1", "-fomit-frame-pointer"];
        let with = ["-O1", "-fno-omit-frame-pointer"];
        if build(&room, "without", SECRET, &without).is_none()
            || build(&room, "with", SECRET, &with).is_none()
        {
            return;
        }
        let secret: Vec<u8> = (0..32u8).map(|at| 0x80 | at.wrapping_mul(37)).collect();
        fs::write(room.path("secret"), &secret).unwrap();
        let found = |file: &Path| {
            let bytes = fs::read(file).unwrap_or_default();
            let words = secret.chunks(8);
            words
                .map(|word| memchr::memmem::find_iter(&bytes, word).count())
                .sum::<usize>()
        };
        let file = room.path("perf.data");
        let ways: [(&[&str], &[&str]); 5] = [
            (&[], &["./without", "secret"]),
            (&["-g", "dwarf"], &["./with", "secret", "children"]),
            (&[], &["./with", "secret"]),
            (&["-g", "fp,4096"], &["./without", "secret"]),
            (&["-g", "dwarf", "--keep-copies"], &["./without", "secret"]),
        ];
        for (options, program) in ways {
            let is_kept = options.contains(&"--keep-copies");
            let args = [&["-e", "cpu-clock:u"][..], options, &["--"], program].concat();
            let mut recorder = room.command(&args);
            let mut recorder = recorder.stderr(Stdio::null()).spawn().unwrap();
            let part = room.path("perf.data.part");
            let mut in_part = 0;
            while recorder.try_wait().unwrap().is_none() {
                in_part = in_part.max(found(&part));
                // What was written stays for longer: copies go once a round of buffers is unwound.
                std::thread::sleep(Duration::from_millis(5));
            }
            let all = [found(&file), in_part];
            let expected = [is_kept; 2];
            assert_eq!(all.map(|words| words > 0), expected, "{args:?}: {all:?}");
            let info = Command::new(PROFTOOL)
                .arg("info")
                .arg(&file)
                .output()
                .unwrap();
            let info = String::from_utf8(info.stdout).unwrap();
            let says = info.contains("memory of programs: none");
            assert_eq!(says, !is_kept, "{args:?}: {info}");
        }
    });
}
