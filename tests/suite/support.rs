//! What tests of all rooms need: a reason to be skipped, a deadline, the cases with known answers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

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

/// Reports why a test, or a part of it, is skipped: past the test harness, which hides what tests
/// print, and in a list that `scripts/test.sh` shows at the end.
pub fn skipped(reason: &str) {
    let reason = reason.trim_end().replace('\n', " ");
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped.txt");
    let line = format!("{}: {reason}\n", name());
    let mut list = OpenOptions::new()
        .append(true)
        .create(true)
        .open(list)
        .unwrap();
    list.write_all(line.as_bytes()).unwrap();
    let _ = write!(std::io::stderr(), "skipped: {line}");
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
