//! `record --counts` on programs that load libraries and execute programs while they run. Their
//! calls are known by construction, and the programs count them, too.

use std::process::Command;

use serde_json::Value;

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_calls::{Recorder, Running, answer, built, counted, graph};
use crate::support::record_calls_later::{HOST, LEAF, calls, plugin};

/// The paths of the program that loads plugins, and of its two plugins.
fn host_and_plugins(room: &Room) -> Option<[String; 3]> {
    let [first, second] = ["first.so", "second.so"].map(|name| plugin(room, name));
    let files = [built(room, HOST, &[], "host")?, first?, second?];
    Some(files.map(|path| path.to_str().unwrap().to_owned()))
}

#[test]
fn libraries_that_are_loaded_later_count_from_their_first_instruction() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(names) = host_and_plugins(&room) else {
        return;
    };
    let plain = Command::new(&names[0]).args(&names[1..]).output().unwrap();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let output = counted(&room, &[], &names);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert_eq!(output.stdout, plain.stdout);
    let truth = String::from_utf8(output.stdout.clone()).unwrap();
    let truth: Vec<u64> = truth
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    let graph = graph(&room, &[]);
    // The plugins are two files with functions of the same names.
    let total = |from: &str| {
        let name = |id: &Value| {
            graph["functions"][id.as_u64().unwrap() as usize]["name"]
                .as_str()
                .unwrap()
        };
        let arcs = graph["arcs"].as_array().unwrap().iter();
        let arcs = arcs.filter(|arc| name(&arc["from"]) == from && name(&arc["to"]) == "inside");
        let exact = arcs.map(|arc| {
            assert_ne!(arc["calls_at_least"], true, "{arc}");
            arc["calls"].as_u64().unwrap()
        });
        exact.sum::<u64>()
    };
    // 10 + … + 14, three children with 100 and 1000, three threads, the second library by the host.
    assert_eq!(truth[0], 60 + 3 * 1100 + 3 * 50 * 7 + 20 * 3);
    assert_eq!(total("plugin_run"), truth[0]);
    // 6 loads of the first, 3 + 20 of the second: each has a constructor and a resolver.
    assert_eq!(total("begin"), 29);
    // The resolver is known by the name of what it resolves.
    assert_eq!(total("resolve") + total("chosen"), 29);
    assert!(
        !stderr(&output).contains("calls are not counted in"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_is_not_to_be_counted_is_not_when_it_is_loaded_later() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(names) = host_and_plugins(&room) else {
        return;
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for counts in ["--counts=program", "--counts=host$"] {
        let options = [counts, "-e", "cpu-clock", "-o", "out.data", "--"];
        let output = room.record(&[&options[..], &names].concat());
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        let graph = graph(&room, &[]);
        assert_eq!(calls(&graph, "plugin_run", "inside"), None);
        assert!(calls(&graph, "main", "run").is_some());
    }
}

#[test]
fn counts_are_lower_bounds_where_a_process_could_not_be_changed() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    // From the third load on it runs under a filter that allows everything. Its code does not show that.
    let text = r#"
        #include <dlfcn.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <sys/prctl.h>
        int main(int argc, char **argv) {
            struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
            struct sock_fprog program = {1, &allow};
            int calls = 0;
            volatile int filters = PR_SET_SECCOMP;
            for (int i = 0; i < 5; i++) {
                if (i == 2) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), prctl(filters, 2, &program);
                void *library = dlopen(argv[argc - 1], RTLD_NOW);
                ((int (*)(int, int *))dlsym(library, "plugin_run"))(10, &calls);
                dlclose(library);
            }
            return calls;
        }"#;
    let (Some(library), Some(host)) = (plugin(&room, "first.so"), built(&room, text, &[], "host"))
    else {
        return;
    };
    let names = [host.to_str().unwrap(), library.to_str().unwrap()];
    let output = counted(&room, &[], &names);
    assert_eq!(output.status.code(), Some(50), "{}", stderr(&output));
    let said = "first.so: it runs under seccomp";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    let graph = graph(&room, &[]);
    assert_eq!(calls(&graph, "plugin_run", "inside"), Some((20, true)));
}

/// Says that it is ready, loads the library for each line that it reads, and runs it a thousand times.
const WAITS: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    char line[16];
    int calls = 0;
    puts("ready");
    fflush(stdout);
    while (argc > 1 && fgets(line, sizeof line, stdin)) {
        void *library = dlopen(argv[1], RTLD_NOW);
        int (*run)(int, int *) = library ? (int (*)(int, int *))dlsym(library, "plugin_run") : 0;
        if (!run) return 1;
        run(1000, &calls);
        dlclose(library);
        printf("%d\n", calls);
        fflush(stdout);
    }
    return 6;
}
"#;

#[test]
fn a_process_that_runs_counts_what_it_loads_until_the_recording_ends() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let (Some(library), Some(host)) = (plugin(&room, "first.so"), built(&room, WAITS, &[], "host"))
    else {
        return;
    };
    let mut process = Running::start(Command::new(host).arg(library));
    let recorder = Recorder::attach(&room, &process.pid());
    for turn in 1..=2 {
        assert_eq!(process.ask("load"), (1000 * turn).to_string());
    }
    recorder.end();
    // Nobody listens any more, and nothing is counted.
    assert_eq!(process.ask("load"), "3000");
    assert_eq!(process.end(), Some(6));
    let graph = graph(&room, &[]);
    assert_eq!(calls(&graph, "plugin_run", "inside"), Some((2000, false)));
    assert_eq!(calls(&graph, "begin", "inside"), Some((2, false)));
}

/// Starts the program in all ways: from threads, after vfork, after tries in other places, and at last
/// becomes it.
const STARTS: &str = r#"
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *program[] = {0, 0};
static int done;
static void *work(void *none) {
    for (int i = 0; i < 4; i++) {
        pid_t pid;
        int status = 0;
        if (!posix_spawn(&pid, program[0], 0, 0, program, environ)) waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 3) __atomic_add_fetch(&done, 1, 5);
    }
    return none;
}
int main(int argc, char **argv) {
    pthread_t threads[3];
    program[0] = argv[1];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 4; i++) {
        int status = 0;
        pid_t pid = i % 2 ? vfork() : fork();
        if (!pid) {
            execl("/nowhere/leaf", "leaf", (char *)0);
            execv(program[0], program);
            _exit(1);
        }
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 3) done++;
    }
    if (done != 16 || argc != 2) return 1;
    execv(program[0], program);
    return 2;
}
"#;

#[test]
fn programs_that_are_executed_count_if_they_are_followed() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    for (kind, flags) in [
        ("pie", &[][..]),
        ("fixed", &["-no-pie"]),
        ("static", &["-static"]),
    ] {
        let (Some(leaf), Some(starts)) = (
            built(&room, LEAF, flags, kind),
            built(&room, STARTS, &[], "starts"),
        ) else {
            return;
        };
        let (leaf, starts) = (leaf.to_str().unwrap(), starts.to_str().unwrap());
        let options = ["-e", "cpu-clock", "-o", "out.data", "--", starts, leaf];
        let output = room.record(&[&["--counts", "--follow-exec"], &options[..]].concat());
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert_eq!(
            output.stdout.iter().filter(|&&byte| byte == b'\n').count(),
            17
        );
        let followed = graph(&room, &[]);
        assert_eq!(
            calls(&followed, "main", "leaf"),
            Some((1700, false)),
            "{kind}"
        );
        let report = answer(&room, &["report", "out.data"]);
        assert!(
            !stderr(&report).contains("started by exec"),
            "{}",
            stderr(&report)
        );
        // Without that, they are reported, and do not count.
        let output = room.record(&[&["--counts"], &options[..]].concat());
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("17 programs started by exec"),
            "{}",
            stderr(&output)
        );
        assert_eq!(calls(&graph(&room, &[]), "main", "leaf"), None);
    }
}

#[test]
fn what_cannot_be_followed_is_reported() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    // It makes the system call itself.
    let text = "#include <unistd.h>\n#include <sys/syscall.h>\nextern char **environ;\n\
        int main(int argc, char **argv) { (void)argc; return (int)syscall(SYS_execve, argv[1], argv + 1, environ); }";
    let (Some(leaf), Some(raw)) = (
        built(&room, LEAF, &[], "leaf"),
        built(&room, text, &[], "raw"),
    ) else {
        return;
    };
    let names = [raw.to_str().unwrap(), leaf.to_str().unwrap()];
    let output = counted(&room, &["--follow-exec"], &names);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("1 program started by exec"),
        "{}",
        stderr(&output)
    );
    assert_eq!(calls(&graph(&room, &[]), "main", "leaf"), None);
    // It needs --counts, and a command.
    let output = room.record(&["--follow-exec", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
