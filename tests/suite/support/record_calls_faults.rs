//! A program that loads a library while its calls are counted.

use std::process::{Command, Output};

use crate::support::record::{PROFTOOL, Room, can_record, stderr};
use crate::support::record_calls::built;
use crate::support::record_calls_later::plugin;

/// Loads the plugin of its first argument, again and again, and calls it each time.
pub const LOADS: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int load(const char *path) {
    int calls = 0;
    void *library = dlopen(path, RTLD_NOW);
    if (!library) _exit(99);
    ((int (*)(int, int *))dlsym(library, "plugin_run"))(10, &calls);
    dlclose(library);
    return calls;
}
static void *naps(void *none) { for (;;) usleep(100); return none; }
"#;

/// Counts the calls of a program that gets the path of a plugin; `None` if it cannot be built here. If the
/// recorder hangs it is killed, and has not reported what it recorded.
pub fn loads(text: &str, arguments: &[&str], trials: usize) -> Option<(Room, Output)> {
    if !can_record() {
        return None;
    }
    let room = Room::new();
    let library = plugin(&room, "first.so")?;
    let program = built(&room, &[LOADS, text].concat(), &[], "prog")?;
    let mut last = None;
    for trial in 0..trials {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "120", PROFTOOL, "record", "--counts"]);
        command.args(["-e", "cpu-clock", "-o", "out.data", "--"]);
        command.args([&program, &library]).args(arguments);
        command.arg(trial.to_string());
        let command = command.env("PROFTOOL_CONFIG", "").current_dir(&room.0);
        let output = command.output().unwrap();
        let text = stderr(&output);
        // Threads that live shorter than a period may leave no samples, which is reported instead.
        let reported = ["in out.data (", "no samples were recorded in out.data"];
        assert!(
            reported.iter().any(|line| text.contains(line)),
            "{trial}: {text}"
        );
        last = last.or(Some(output.status.code()));
        assert_eq!(last, Some(output.status.code()), "{trial}: {text}");
        if trial + 1 == trials {
            return Some((room, output));
        }
    }
    None
}
