//! Programs whose calls are counted, and their counts.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

use crate::support;
use crate::support::record::{PROFTOOL, Room, send, stderr};
use crate::support::skipped;

/// The beginning of programs that make calls and tell which process traces them.
pub const TRACED: &str = r#"
#include <stdio.h>
__attribute__((noipa)) int leaf(int x) { return x + 1; }
__attribute__((noipa)) int many(int n) { int sum = 0; for (int i = 0; i < n; i++) sum = leaf(sum); return sum; }
__attribute__((noipa)) int tracer(void) {
    char line[256];
    int pid = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) if (sscanf(line, "TracerPid: %d", &pid) == 1) break;
    if (status) fclose(status);
    return pid;
}
"#;

pub fn built(room: &Room, text: &str, flags: &[&str], name: &str) -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        skipped("calls are counted on x86-64 only");
        return None;
    }
    let flags = [
        &["-O2", "-g", "-fno-optimize-sibling-calls", "-pthread"],
        flags,
    ]
    .concat();
    support::compile_text("gcc", &flags, text, &room.path(name))
}

/// Runs a command and counts its calls, into `out.data`.
pub fn counted(room: &Room, options: &[&str], command: &[&str]) -> Output {
    let counts = ["--counts", "-e", "cpu-clock", "-o", "out.data"];
    room.record(&[&counts[..], options, &["--"], command].concat())
}

/// A program that runs and has said that it is ready.
pub struct Running {
    process: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = piped.spawn().unwrap();
        let output = process.stdout.take().unwrap();
        let mut running = Running {
            input: process.stdin.take(),
            lines: BufReader::new(output).lines(),
            process,
        };
        assert_eq!(running.line(), "ready");
        running
    }

    pub fn pid(&self) -> String {
        self.process.id().to_string()
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// Writes a line for it, and returns what it answers.
    pub fn ask(&mut self, line: &str) -> String {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        self.line()
    }

    /// Closes its input, and returns the next line that it prints.
    pub fn line_at_end(&mut self) -> String {
        drop(self.input.take());
        self.line()
    }

    /// Closes its input, and returns its exit status when it has ended.
    pub fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that fails leaves nothing behind.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A recorder that has begun to record a running process, with its messages from then on.
pub struct Recorder {
    process: Child,
    messages: Lines<BufReader<ChildStderr>>,
}

impl Recorder {
    /// Counts the calls of a process, into `out.data`.
    pub fn attach(room: &Room, pid: &str) -> Recorder {
        let options = ["--counts", "-e", "cpu-clock", "-o", "out.data", "-p", pid];
        let mut command = room.command(&options);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(process.stderr.take().unwrap()).lines();
        assert!(messages.any(|line| line.unwrap().contains("Ctrl-C ends it")));
        Recorder { process, messages }
    }

    /// Ends the recording.
    pub fn end(mut self) {
        send("INT", self.process.id());
        for message in self.messages {
            drop(message);
        }
        assert!(self.process.wait().unwrap().success());
    }
}

pub fn answer(room: &Room, args: &[&str]) -> Output {
    let mut command = Command::new(PROFTOOL);
    command.args(args).env("PROFTOOL_CONFIG", "");
    command.current_dir(&room.0).output().unwrap()
}

pub fn graph(room: &Room, args: &[&str]) -> Value {
    let output = answer(
        room,
        &[&["graph", "out.data", "--format", "json"], args].concat(),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The arc between two functions.
pub fn arc<'a>(graph: &'a Value, from: &str, to: &str) -> Option<&'a Value> {
    let name = |place: &Value| {
        let function = &graph["functions"][place.as_u64().unwrap() as usize];
        function["name"].as_str().unwrap().to_owned()
    };
    let arcs = graph["arcs"].as_array().unwrap();
    arcs.iter()
        .find(|arc| name(&arc["from"]) == from && name(&arc["to"]) == to)
}

/// Runs until its input ends. Prints whether its code is as it was at the start, byte for byte.
pub const RUNS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
volatile int stop;
__attribute__((noipa)) long leaf(long x) { return x * 3 + 1; }
__attribute__((noipa)) long middle(long x) { return leaf(x) + leaf(x + 1); }
static void *work(void *sum) { while (!stop) *(long *)sum += middle(1); return 0; }
int main(void) {
    pthread_t threads[2];
    long sums[2] = {0, 0};
    unsigned char before[16];
    memcpy(before, (void *)middle, 16);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, &sums[i]);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {}
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    puts(memcmp(before, (void *)middle, 16) ? "changed" : "as before");
    return 9;
}
"#;
