//! What tests of all rooms need: a reason to be skipped, a deadline, programs compiled on the spot,
//! the cases with known answers.

pub mod annotate;
pub mod call_sites;
pub mod callgraph;
pub mod cli;
pub mod cut;
pub mod doctor;
pub mod elf;
pub mod exports;
pub mod gmon;
pub mod go;
pub mod golden;
pub mod html;
pub mod html_time;
pub mod identity;
pub mod laws;
pub mod programs;
pub mod puma;
pub mod readers;
pub mod record;
pub mod record_attach;
pub mod record_calls;
pub mod record_calls_faults;
pub mod record_calls_later;
pub mod record_counts;
pub mod record_events;
pub mod record_jobs;
pub mod record_kept;
pub mod record_others;
pub mod record_stacks;
pub mod repair;
pub mod repeated;
pub mod report;
pub mod shares;
pub mod top;
pub mod truth;
pub mod unwind;
pub mod written;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use proftool::input::folded;
use proftool::profile::Profile;

pub use programs::{bound_to_test, copy_program, write_script};

/// The longest that a test may take, beside all others on a slow machine.
const DEADLINE: Duration = Duration::from_secs(600);

/// The tests that run, with their names and when they began.
static RUNNING: Mutex<BTreeMap<String, (ThreadId, Instant)>> = Mutex::new(BTreeMap::new());

thread_local! {
    static GUARD: RefCell<Option<Guard>> = const { RefCell::new(None) };
}

/// A test that runs, until its thread ends.
struct Guard(String);

impl Drop for Guard {
    fn drop(&mut self) {
        RUNNING.lock().unwrap().remove(&self.0);
    }
}

/// The name of the test that runs in this thread.
fn name() -> String {
    thread::current().name().unwrap_or("a thread").to_owned()
}

/// Ends the whole run, with the name of the test, if this test takes longer than any may: a test that
/// waits for something that never comes must not hang whoever runs it.
pub fn watch() {
    static WATCHDOG: Once = Once::new();
    WATCHDOG.call_once(|| {
        thread::spawn(|| {
            loop {
                thread::sleep(Duration::from_secs(5));
                let running = RUNNING.lock().unwrap();
                let late = running
                    .iter()
                    .find(|(_, (_, since))| since.elapsed() > DEADLINE);
                if let Some((name, _)) = late {
                    let _ = writeln!(
                        std::io::stderr(),
                        "{name} takes over {DEADLINE:?}: given up"
                    );
                    std::process::exit(101);
                }
            }
        });
    });
    GUARD.with_borrow_mut(|guard| {
        guard.get_or_insert_with(|| {
            let now = (thread::current().id(), Instant::now());
            RUNNING.lock().unwrap().insert(name(), now);
            Guard(name())
        });
    });
}

/// Reports why a test, or a part of it, is skipped.
pub fn skipped(reason: &str) {
    listed("skipped", &reason.trim_end().replace('\n', " "));
}

/// Reports this of the test that runs: past the test harness, which hides what tests print, and in a
/// list of this name that `scripts/test.sh` shows at the end.
fn listed(list: &str, what: &str) {
    let line = format!("{}: {what}\n", name());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{list}.txt"));
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(line.as_bytes()).unwrap();
    let _ = write!(std::io::stderr(), "{list}: {line}");
}

/// What a command printed; `None`, and the test reports that it is skipped, where it is missing or fails.
///
/// # Panics
///
/// If a compiler finds an error in a line of a source: that is a fault of the test, and to skip would
/// hide it for ever.
pub fn ran(command: &mut Command) -> Option<Output> {
    watch();
    let tool = Path::new(command.get_program()).display().to_string();
    let reason = match command.output() {
        Ok(output) if output.status.success() => return Some(output),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!has_source_error(&said), "{command:?}: {said}");
            let args: Vec<_> = command
                .get_args()
                .map(|arg| arg.to_string_lossy())
                .collect();
            format!("{tool} {}: {}", args.join(" "), said.trim_end())
        }
        Err(error) => format!("{tool} cannot be run: {error}"),
    };
    skipped(&reason);
    None
}

/// Whether a compiler's `file:line:column: error:` is among these lines, other than of a header that is
/// not on this machine (`fatal error:`).
fn has_source_error(said: &str) -> bool {
    let mut places = said.lines().filter_map(|line| line.split_once(": error: "));
    places.any(|(place, _)| {
        place
            .rsplit(':')
            .take(2)
            .all(|part| part.parse::<u32>().is_ok())
    })
}

/// An empty directory of this name, which no other test may have: the one would take away what the
/// other has just written.
pub fn directory(name: &str) -> PathBuf {
    static TAKEN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    watch();
    if let Some(test) = thread::current().name() {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let first = taken.entry(name.to_owned()).or_insert(test.to_owned());
        assert_eq!(first, test, "{name} is the directory of another test");
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// A file of `fixtures/programs`.
pub fn fixture(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("fixtures/programs").join(name)
}

/// The C library that runs these tests: a file with thousands of calls that takes little time to read.
pub fn c_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    let mut paths = paths.map(Path::new).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl")
    });
    paths.next().expect("a C library is mapped").to_owned()
}

/// Compiles a source to a program, in the folder of the program; returns the program, or `None` and
/// a report as of [`ran`].
pub fn compile(compiler: &str, flags: &[&str], source: &Path, program: &Path) -> Option<PathBuf> {
    let mut command = Command::new(compiler);
    command.current_dir(program.parent().unwrap());
    command.arg(source).arg("-o").arg(program).args(flags);
    ran(&mut command).map(|_| program.to_owned())
}

/// Compiles C that is written beside the program, to a file of the program's name and `.c`.
pub fn compile_text(compiler: &str, flags: &[&str], text: &str, program: &Path) -> Option<PathBuf> {
    let name = program.file_name().unwrap().to_string_lossy();
    let source = format!("{name}.c");
    fs::write(program.with_file_name(&source), text).unwrap();
    compile(compiler, flags, Path::new(&source), program)
}

/// A profile of folded stacks.
pub fn profile_of(text: &str) -> Profile {
    folded::read(text.as_bytes(), &mut |_| ()).unwrap()
}

/// The folders of cases with known answers in which there is a file of this name, in order.
pub fn cases(file: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let entries = fs::read_dir(folder).unwrap();
    let cases = entries.map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = cases.filter(|case| case.join(file).is_file()).collect();
    cases.sort();
    assert!(cases.len() > 5, "tests/cases is not whole");
    cases
}
