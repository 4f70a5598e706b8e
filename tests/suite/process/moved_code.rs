//! Code that is not in the file of its program: moved to anonymous memory, generated, or of a file without
//! a name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proftool::base::FileOffset;
use proftool::binary::Binary;
use serde_json::Value;

use crate::support::record::{PROFTOOL, Room, can_record, is_root, stderr};
use crate::support::record_attach::{Running, succeeds};
use crate::support::record_stacks::build;
use crate::support::written::{CPU_CLOCK, Recording, Taken};
use crate::support::{bound_to_test, copy_program, skipped};

const PID: i32 = 4_000_123;

/// What `flat` says of a recording.
fn flat(data: &Path) -> Value {
    let output = Command::new(PROFTOOL)
        .args(["flat", "--format", "json", "--limit", "0"])
        .arg(data)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The part of the samples in which a function is the innermost.
fn share(flat: &Value, name: &str) -> f64 {
    let rows = flat["functions"].as_array().unwrap();
    let weight = |row: &Value| row["self"].as_f64().unwrap();
    let those = rows.iter().filter(|row| row["name"] == name).map(weight);
    those.sum::<f64>() / rows.iter().map(weight).sum::<f64>()
}

/// The notes, with what can be done about them.
fn notes(flat: &Value) -> String {
    flat["caveats"].to_string()
}

/// A program, and the place in it of its function `work`.
fn placed(room: &Room) -> Option<(PathBuf, u64)> {
    let source =
        "volatile int sink; void work(void) { sink++; } int main(void) { work(); return 0; }";
    let program = build(room, "program", source, &["-O0"])?;
    let binary = Binary::open(&program).unwrap();
    let mut functions = binary.functions().iter();
    let work = functions.find(|it| binary.function_name(it).as_deref() == Some("work"));
    let start = work.unwrap().start;
    let place = (0..1 << 20).find(|&at| binary.svma(FileOffset(at)) == Some(start));
    Some((program, place.unwrap()))
}

/// What `flat` says of a process in which anonymous memory covers a page of two files, the second a library,
/// with a sample of `work` in each.
fn covered(room: &Room, command: &str) -> Option<Value> {
    let (program, place) = placed(room)?;
    let library = room.path("library.so");
    copy_program(&program, &library);
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(PID, command);
    let page = place & !0xfff;
    for (index, path) in [&program, &library].into_iter().enumerate() {
        let base = 0x10_0000 * (index as u64 + 1);
        let path = path.to_str().unwrap();
        recording.mapping(PID, path, (base, 0x8000), 0);
        recording.mapping(PID, "//anon", (base + page, 0x1000), 0);
        recording.sample(Taken {
            task: PID,
            time: index as u64 + 1,
            user: &[base + place],
            ..Taken::default()
        });
    }
    let data = room.path("perf.data");
    recording.write(&data);
    Some(flat(&data))
}

#[test]
fn text_of_a_program_that_was_moved_keeps_its_names_and_that_of_a_library_may_be_other_code() {
    let room = Room::new();
    let Some(flat) = covered(&room, "program") else {
        return;
    };
    assert_eq!(share(&flat, "work"), 0.5, "{flat}");
    let notes = notes(&flat);
    let program = room.path("program");
    assert!(
        notes.contains("text was moved to anonymous memory")
            && notes.contains(program.to_str().unwrap()),
        "{notes}"
    );
    assert!(
        notes.contains("1 sample in anonymous memory over the mapping of a library"),
        "{notes}"
    );
    assert!(!notes.contains("JIT"), "{notes}");
    assert!(!notes.contains("symbol map"), "{notes}");
}

#[test]
fn text_that_was_moved_before_the_recording_keeps_its_names() {
    let room = Room::new();
    let Some((program, place)) = placed(&room) else {
        return;
    };
    let (base, page) = (0x10_0000, place & !0xfff);
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(PID, "program");
    // As perf lists them: what has code, in order of address.
    let path = program.to_str().unwrap();
    recording.mapping(PID, "//anon", (base + page, 0x1000), 0);
    recording.mapping(PID, path, (base + page + 0x1000, 0x1000), page + 0x1000);
    recording.sample(Taken {
        task: PID,
        time: 1,
        user: &[base + place],
        ..Taken::default()
    });
    let data = room.path("perf.data");
    recording.write(&data);
    let flat = flat(&data);
    assert_eq!(share(&flat, "work"), 1.0, "{flat}");
    assert!(notes(&flat).contains("moved to anonymous memory"), "{flat}");
}

#[test]
fn advice_on_generated_code_names_the_runtime_at_hand() {
    let room = Room::new();
    let advice = |command: &str, file: Option<&str>| {
        let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
        recording.process(PID, command);
        if let Some(file) = file {
            recording.mapping(PID, file, (0x10_0000, 0x1000), 0);
        }
        recording.mapping(PID, "//anon", (0x1000, 0x1000), 0);
        recording.sample(Taken {
            task: PID,
            time: 1,
            user: &[0x1010],
            ..Taken::default()
        });
        let data = room.path("perf.data");
        recording.write(&data);
        notes(&flat(&data))
    };
    const FLAGS: [&str; 3] = ["--perf-basic-prof", "+DumpPerfMapAtExit", "-X perf"];
    for (command, file, flag) in [
        ("java", None, Some(1)),
        ("MainThread", Some("/usr/bin/node"), Some(0)),
        ("server", Some("/usr/lib/libpython3.12.so.1.0"), Some(2)),
        ("plain", None, None),
    ] {
        let notes = advice(command, file);
        for (index, text) in FLAGS.into_iter().enumerate() {
            assert_eq!(
                notes.contains(text),
                flag == Some(index),
                "{command}: {notes}"
            );
        }
        assert!(!notes.contains("JIT"), "{command}: {notes}");
    }
}

/// Generates a loop, lists it as `hot_code` and runs it for so many milliseconds. With a second argument the
/// list is an hour old, unless that is `dump`: then it is a jitdump file.
const GENERATES: &str = "\
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3};
static char path[64];
static void write_dump(unsigned long at) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned long time = now.tv_sec * 1000000000ul + now.tv_nsec;
    unsigned pid = getpid(), head[] = {0x4a695444, 1, 40, 62, 0, pid};
    unsigned load[] = {0, 16 + 40 + 9 + sizeof code}, ids[] = {pid, pid};
    unsigned long rest[] = {time, 0}, where[] = {at, at, sizeof code, 0};
    snprintf(path, sizeof path, \"/tmp/jit-%d.dump\", pid);
    FILE *dump = fopen(path, \"w+\");
    fwrite(head, sizeof head, 1, dump);
    fwrite(rest, sizeof rest, 1, dump);
    fwrite(load, sizeof load, 1, dump);
    fwrite(rest, sizeof *rest, 1, dump);
    fwrite(ids, sizeof ids, 1, dump);
    fwrite(where, sizeof where, 1, dump);
    fwrite(\"hot_code\", 9, 1, dump);
    fwrite(code, sizeof code, 1, dump);
    fflush(dump);
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
}
static void write_map(unsigned long at) {
    snprintf(path, sizeof path, \"/tmp/perf-%d.map\", getpid());
    FILE *list = fopen(path, \"w\");
    fprintf(list, \"%lx %lx hot_code\\n\", at, (long)sizeof code);
    fclose(list);
}
int main(int count, char **arguments) {
    unsigned char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int is_dump = count > 2 && !strcmp(arguments[2], \"dump\");
    memcpy(memory, code, sizeof code);
    if (is_dump) write_dump((unsigned long)memory); else write_map((unsigned long)memory);
    struct timespec old[2] = {{time(0) - 3600, 0}, {time(0) - 3600, 0}};
    if (count > 2 && !is_dump) utimensat(AT_FDCWD, path, old, 0);
    clock_t end = clock() + atol(arguments[1]) * (CLOCKS_PER_SEC / 1000);
    while (clock() < end) ((void (*)(long))memory)(200000);
    printf(\"%s\\n\", path);
    return 0;
}
";

fn generator(room: &Room) -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        skipped("the generated code is for x86-64");
        return None;
    }
    let flags = ["-O1", "-include", "fcntl.h"];
    let program = build(room, "generator", GENERATES, &flags)?;
    can_record().then(|| program.to_str().unwrap().to_owned())
}

#[test]
fn a_list_of_generated_code_that_is_older_than_its_process_is_not_used() {
    let room = Room::new();
    let Some(program) = generator(&room) else {
        return;
    };
    for (is_old, arguments) in [(false, vec!["300"]), (true, vec!["300", "old"])] {
        let mut command = vec!["-q", "-e", "cpu-clock", "--", &program];
        command.extend(arguments);
        let output = room.record(&command);
        succeeds(&output);
        let list = String::from_utf8(output.stdout).unwrap();
        let flat = flat(&room.path("perf.data"));
        fs::remove_file(list.trim()).unwrap();
        let named = share(&flat, "hot_code");
        assert_eq!(named > 0.5, !is_old, "{flat}");
        let notes = notes(&flat);
        let reason = format!("{} is older than the process", list.trim());
        assert_eq!(notes.contains(&reason), is_old, "{notes}");
    }
}

#[test]
fn generated_code_of_a_container_has_names_after_its_end() {
    if !is_root() {
        return skipped("needs root, for namespaces");
    }
    let room = Room::new();
    let Some(program) = generator(&room) else {
        return;
    };
    // The program cannot be seen below the new /tmp.
    let script = "exec 3<\"$0\"; mount -t tmpfs none /tmp && cp /proc/self/fd/3 /tmp/generator && \
                  exec 3<&- && /tmp/generator 400 $1";
    for list in ["", "dump"] {
        let mut command = vec!["-q", "-e", "cpu-clock", "--"];
        command.extend(["unshare", "--mount", "--pid", "--fork", "--mount-proc"]);
        command.extend(["sh", "-c", script, &program, list]);
        let output = room.record(&command);
        if !output.status.success() {
            return skipped(&format!("no namespaces here: {}", stderr(&output)));
        }
        let flat = flat(&room.path("perf.data"));
        assert!(share(&flat, "hot_code") > 0.5, "{list}: {flat}");
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_has_names() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let source = "#include <pthread.h>\n\
        volatile unsigned long sink;\n\
        __attribute__((noinline)) void survivor(void) { for (;;) sink++; }\n\
        static void *go(void *none) { survivor(); return none; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, go, 0); pthread_exit(0); }\n";
    let Some(program) = build(&room, "headless", source, &["-O1", "-pthread"]) else {
        return;
    };
    let target = Running::new(bound_to_test(program.to_str().unwrap()));
    let stat = format!("/proc/{}/stat", target.pid());
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let args = ["-q", "-e", "cpu-clock", "-d", "0.3", "-p", &target.pid()];
    succeeds(&room.record(&args));
    let flat = flat(&room.path("perf.data"));
    assert!(share(&flat, "survivor") > 0.5, "{flat}");
}

/// Copies the program of its first argument to memory without a file, and executes it there.
const IN_MEMORY: &str = "\
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **arguments) {
    char bytes[4096];
    long got;
    int from = open(arguments[1], O_RDONLY), to = memfd_create(\"hidden\", MFD_CLOEXEC);
    while ((got = read(from, bytes, sizeof bytes)) > 0) if (write(to, bytes, got) != got) return 1;
    fexecve(to, arguments + 1, environ);
    return 1;
}
";

const BURNS: &str = "\
volatile unsigned long sink;
__attribute__((noinline)) void burn(void) { for (;;) sink++; }
int main(void) { burn(); }
";

#[test]
fn programs_without_a_file_have_names_while_they_run() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let flags = ["-O1", "-Wl,--build-id=sha1"];
    let (Some(launcher), Some(program)) = (
        build(&room, "launcher", IN_MEMORY, &flags),
        build(&room, "burns", BURNS, &flags),
    ) else {
        return;
    };
    let removed = room.path("removed");
    copy_program(&program, &removed);
    let mut in_memory = bound_to_test(launcher.to_str().unwrap());
    in_memory.arg(&program);
    for (what, mut command) in [
        ("memfd:hidden", in_memory),
        ("removed", bound_to_test(removed.to_str().unwrap())),
    ] {
        command.stdin(Stdio::null());
        let target = Running::new(command);
        if what == "removed" {
            fs::remove_file(&removed).unwrap();
        }
        let args = ["-q", "-e", "cpu-clock", "-d", "0.3", "-p", &target.pid()];
        succeeds(&room.record(&args));
        let flat = flat(&room.path("perf.data"));
        assert!(share(&flat, "burn") > 0.5, "{what}: {flat}");
        let modules = flat["functions"].to_string();
        assert!(modules.contains(what), "{modules}");
        assert!(!modules.contains("[generated"), "{modules}");
        drop(target);
    }
}
