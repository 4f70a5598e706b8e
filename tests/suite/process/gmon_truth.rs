//! Programs that gcc builds with -pg, and what is true of them: whose ticks, whose calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use proftool::analysis::called;
use proftool::input;
use proftool::profile::{EventId, Filter, Profile};

use crate::support::{compile_text, skipped};

/// A program that ran, and its gmon.out.
struct Run {
    program: PathBuf,
    gmon: Vec<u8>,
}

impl Run {
    /// Builds and runs; `None`, and a word on it, where there is no gcc that can.
    fn of(name: &str, source: &str, flags: &[&str]) -> Option<Run> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gmon-{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        let flags = [&["-pg", "-no-pie", "-fno-pie", "-w"], flags].concat();
        let program = compile_text("gcc", &flags, source, &folder.join("program"))?;
        let _ = Command::new(&program).current_dir(&folder).status();
        let gmon = std::fs::read(folder.join("gmon.out")).unwrap();
        Some(Run { program, gmon })
    }

    fn symbol(&self, name: &str) -> u64 {
        let listed = Command::new("nm").arg(&self.program).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let mut lines = listed.lines().filter_map(|line| {
            let (address, rest) = line.split_once(' ')?;
            (rest.get(2..) == Some(name)).then(|| u64::from_str_radix(address, 16).unwrap())
        });
        lines.next().unwrap()
    }

    /// Where the arcs begin, and the range of the histogram.
    fn layout(&self) -> (usize, u64, u64) {
        let word = |at: usize| u64::from_le_bytes(self.gmon[at..at + 8].try_into().unwrap());
        let buckets = u32::from_le_bytes(self.gmon[37..41].try_into().unwrap());
        (61 + 2 * buckets as usize, word(21), word(29))
    }

    /// The same run with these ticks, one bucket for two bytes, at the starts of functions.
    fn with_ticks(&self, ticks: &[(&str, u16)]) -> Vec<u8> {
        let (arcs, low, high) = self.layout();
        let number = (high - low).div_ceil(2);
        let mut buckets = vec![0u16; number as usize];
        for (name, ticks) in ticks {
            let at = self.symbol(name).next_multiple_of(2) - low;
            buckets[at as usize / 2] += ticks;
        }
        let mut bytes = self.gmon[..20].to_vec();
        bytes.push(0);
        bytes.extend(low.to_le_bytes());
        bytes.extend((low + 2 * number).to_le_bytes());
        bytes.extend((number as u32).to_le_bytes());
        bytes.extend(100u32.to_le_bytes());
        bytes.extend(b"seconds\0\0\0\0\0\0\0\0s");
        buckets
            .iter()
            .for_each(|ticks| bytes.extend(ticks.to_le_bytes()));
        bytes.extend(&self.gmon[arcs..]);
        bytes
    }

    fn profile(&self, gmon: &[u8]) -> Profile {
        let options = input::Options {
            program: Some(self.program.clone()),
            ..input::Options::default()
        };
        input::read(gmon.to_vec(), &options).unwrap()
    }
}

/// The counted calls by name; those of nobody who is known have an empty name.
fn calls(profile: &Profile) -> BTreeMap<(String, String), u64> {
    let name = |id| profile.functions[id].name.clone();
    let counts = profile.counts.iter().flat_map(|counts| counts.calls());
    let calls = counts.map(|count| {
        let from = count.from.map(name).unwrap_or_default();
        ((from, name(count.to)), count.calls)
    });
    calls.collect()
}

fn ticks(profile: &Profile, of: &str) -> u64 {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let rows = selection.rows().iter();
    let own = rows.filter(|row| profile.functions[profile.paths[row.path].function].name == of);
    own.map(|row| row.samples).sum()
}

fn call(from: &str, to: &str) -> (String, String) {
    (from.to_owned(), to.to_owned())
}

const PARTS: &str = r#"
#define FN __attribute__((noinline))
static volatile int z;
static FN void part(void) __asm__("scan.part.0");
static FN void cold(void) __asm__("scan.cold");
void before(void) { z++; }
static FN void part(void) { z++; }
void between(void) { z++; }
static FN void cold(void) { z++; }
FN void scan(void) { part(); cold(); }
int main(void) { before(); between(); scan(); scan(); return 0; }
"#;

#[test]
fn parts_of_functions_keep_their_ticks_and_calls() {
    let Some(run) = Run::of("parts", PARTS, &["-O0"]) else {
        return;
    };
    let given = [
        ("before", 1),
        ("scan.part.0", 30),
        ("between", 2),
        ("scan.cold", 40),
    ];
    let profile = run.profile(&run.with_ticks(&given));
    for (name, expected) in given {
        assert_eq!(ticks(&profile, name), u64::from(expected), "{name}");
    }
    let calls = calls(&profile);
    assert_eq!(calls[&call("scan", "scan.part.0")], 2);
    assert_eq!(calls[&call("scan", "scan.cold")], 2);
    assert_eq!(calls[&call("main", "between")], 1);
}

const NORETURN: &str = r#"
#include <setjmp.h>
#define FN __attribute__((noinline))
static jmp_buf home; static volatile int z;
FN __attribute__((noreturn)) void fatal(void) { z++; longjmp(home, 1); }
FN __attribute__((noreturn, aligned(16))) void give_up(void) { z += 3; __asm__ volatile (PADDING); fatal(); }
FN __attribute__((aligned(16))) void bystander(void) { z++; }
int main(void) { volatile int i; for (i = 0; i < 5; i++) if (!setjmp(home)) give_up(); bystander(); return 0; }
"#;

/// With each padding the call lies elsewhere; in one of 16 layouts it returns to the next function.
#[test]
fn a_call_that_ends_a_function_is_its_own() {
    for padding in 0..16 {
        let define = format!("-DPADDING=\"{}\"", "nop;".repeat(padding));
        let flags = ["-O2", "-fno-align-functions", &define];
        let Some(run) = Run::of("noreturn", NORETURN, &flags) else {
            return;
        };
        let calls = calls(&run.profile(&run.gmon));
        assert_eq!(calls.get(&call("give_up", "fatal")), Some(&5), "{padding}");
        assert_eq!(calls.get(&call("bystander", "fatal")), None, "{padding}");
    }
}

const BUCKET: &str = r#"
#define FN __attribute__((noinline))
static volatile int z;
FN void leaf(void) { z++; }
FN __attribute__((aligned(16))) void plain(void) { z++; __asm__ volatile (PADDING); }
FN __attribute__((aligned(1))) void short_one(void) { leaf(); z++; }
FN __attribute__((aligned(1))) void by_pointer(void (*f)(void)) { f(); z++; }
int main(void) {
    for (int i = 0; i < 4; i++) { plain(); short_one(); }
    for (int i = 0; i < 3; i++) by_pointer(plain);
    return 0;
}
"#;

#[test]
fn the_code_decides_who_called_from_a_shared_bucket() {
    for padding in 0..16 {
        let define = format!("-DPADDING=\"{}\"", "nop;".repeat(padding));
        let flags = ["-O0", "-fno-align-functions", &define];
        let Some(run) = Run::of("bucket", BUCKET, &flags) else {
            return;
        };
        let calls = calls(&run.profile(&run.gmon));
        let expected = [
            (call("by_pointer", "plain"), 3),
            (call("main", "by_pointer"), 3),
            (call("main", "plain"), 4),
            (call("main", "short_one"), 4),
            (call("short_one", "leaf"), 4),
        ];
        assert_eq!(calls, expected.into(), "{padding}");
    }
}

const MAIN: &str = r#"
static volatile int z;
__attribute__((noinline)) void leaf(void) { z++; }
int main(int, char **);
__attribute__((noinline)) void turn(int n) { z++; leaf(); if (n > 1) main(n - 1, 0); }
int main(int c, char **v) { z++; turn(v ? 5 : c); return 0; }
"#;

#[test]
fn a_cycle_without_callers_is_entered_at_main_with_a_caveat() {
    let Some(run) = Run::of("main", MAIN, &["-O0"]) else {
        return;
    };
    let profile = run.profile(&run.gmon);
    assert_eq!(calls(&profile)[&call("", "main")], 1);
    let mut caveats = profile.caveats.iter();
    assert!(caveats.any(|caveat| caveat.kind.name() == "assumed-entry"));
    // gprof assumes nothing.
    let options =
        crate::support::gmon::options(&run.program, proftool::symbolize::StaticCalls::Off);
    let file = run.program.with_file_name("gmon.out");
    let profile = input::open_as_gprof(&file, &options)
        .unwrap()
        .unwrap()
        .profile;
    assert!(!calls(&profile).contains_key(&call("", "main")));
}

/// gprof -s writes the starts of caller and callee where a run has places of calls.
#[test]
fn a_sum_by_gprof_has_the_calls_of_its_files() {
    let Some(run) = Run::of("sum", PARTS, &["-O0"]) else {
        return;
    };
    let folder = run.program.parent().unwrap();
    let summed = Command::new("gprof")
        .args(["-s", "program", "gmon.out", "gmon.out"])
        .current_dir(folder)
        .output();
    if !summed.is_ok_and(|output| output.status.success()) {
        skipped("gprof is not installed");
        return;
    }
    let sum = std::fs::read(folder.join("gmon.sum")).unwrap();
    let calls = calls(&run.profile(&sum));
    assert_eq!(calls[&call("main", "before")], 2);
    assert_eq!(calls[&call("main", "scan")], 4);
    assert!(calls.keys().all(|(from, _)| from != "before"), "{calls:?}");
}

#[test]
fn a_function_that_ran_and_has_no_counted_call_was_called_unknown_times() {
    let Some(run) = Run::of("uncounted", PARTS, &["-O0"]) else {
        return;
    };
    let profile = run.profile(&run.gmon);
    let selection = profile.select(EventId::new(0), &Filter::default());
    let called = called::by_function(&profile, &selection).unwrap();
    let of = |name: &str| {
        let found = profile
            .functions
            .enumerate()
            .find(|(_, it)| it.name == name);
        called[found.unwrap().0].by_others
    };
    // The C library calls main.
    assert_eq!((of("main"), of("scan")), (None, Some(2)));
}

#[test]
fn time_in_shared_libraries_is_noted_as_missing() {
    let notes = |name: &str, flags: &[&str]| {
        let run = Run::of(name, PARTS, flags)?;
        let caveats = run.profile(&run.with_ticks(&[("scan", 5)])).caveats;
        let notes = caveats.iter().map(|caveat| caveat.to_string());
        Some(notes.collect::<Vec<_>>().join("\n"))
    };
    let note = "time in 1 shared library is not in gmon.out, which covers the program's own code: \
                libc.so.6";
    if let Some(notes) = notes("linked", &["-O0"]) {
        assert!(notes.contains(note), "{notes}");
    }
    if let Some(notes) = notes("static", &["-O0", "-static"]) {
        assert!(!notes.contains("shared librar"), "{notes}");
    }
}
