//! What is kept of files from one start to the next: the same answers, or none.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use proftool::base::Svma;
use proftool::binary::{Binary, Described, Finder};
use proftool::cache::Cache;

use crate::support;
use crate::support::repeated::repeated;

const PROGRAM: &str = r#"#include <stdio.h>
static inline __attribute__((always_inline)) int leaf(int x) {
    return x * x + 7;
}
static inline __attribute__((always_inline)) int middle(int x) {
    volatile int y = leaf(x);
    return y + 1;
}
__attribute__((noinline)) static int local_work(int x) {
    return middle(x) ^ 3;
}
int main(int argc, char **argv) {
    return local_work(argc);
}
"#;

/// A file is believed to be settled some seconds after it was changed.
const SETTLED: Duration = Duration::from_secs(4);

fn compiled(directory: &Path, source: &str) -> Option<PathBuf> {
    let program = directory.join("prog");
    support::compile_text("gcc", &["-O2", "-g"], source, &program)
}

/// The program, which keeps what is asked of it in this directory.
fn opened(program: &Path, cache: &Path) -> Binary {
    let cache = Cache::open(cache).map(Arc::new);
    let finder = Finder::new(None).with_cache(cache);
    finder.find(program, None).unwrap()
}

/// All that its debug information says of the addresses of its functions.
fn answers(binary: &Binary) -> Vec<String> {
    let (lines, mut frames) = (binary.lines(), Vec::new());
    let mut all = Vec::new();
    let mut described: Vec<Option<Described>> = Vec::new();
    for function in binary.functions() {
        let (from, to) = (function.start.0, function.end().0);
        for at in (from..to).map(Svma) {
            lines.frames_without_lines(at, &mut frames);
            all.push(format!("{at:?} {frames:?}"));
            lines.frames(at, &mut frames);
            all.push(format!("{frames:?}"));
            let keys = frames.iter().filter_map(|frame| frame.definition);
            described.extend(keys.map(|key| lines.describe(key.id)));
            let names = frames.iter().filter_map(|frame| frame.definition);
            all.extend(names.map(|key| format!("{:?}", lines.name(key.id))));
        }
        let start = function.start;
        let opening = (lines.definition_at(start), lines.line_at(start));
        all.push(format!("{opening:?}"));
    }
    all.extend(described.iter().map(|described| format!("{described:?}")));
    all
}

/// The kept files with answers of debug information.
fn kept(cache: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(cache).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn kept_answers_are_those_of_debug_information() {
    repeated(|| {
        let directory = support::directory("kept-same");
        let cache = directory.join("cache");
        let Some(program) = compiled(&directory, PROGRAM) else {
            return;
        };
        let plain = answers(&Binary::open(&program).unwrap());
        assert!(plain.iter().any(|answer| answer.contains("middle")));

        let early = opened(&program, &cache);
        assert_eq!(answers(&early), plain);
        assert_eq!(early.keep_answers(), None, "it may change without a sign");
        thread::sleep(SETTLED);
        let first = opened(&program, &cache);
        assert_eq!(answers(&first), plain);
        assert_eq!(first.keep_answers(), Some(()));
        assert_eq!(kept(&cache).len(), 1);
        // Nothing of the debug information is read for these.
        let second = opened(&program, &cache);
        assert_eq!(answers(&second), plain);
        assert_eq!(second.memory_taken().debug_information, 0);
        assert_eq!(second.keep_answers(), None, "nothing is new");

        // A part that is known, and a part that is not.
        fs::remove_file(&kept(&cache)[0]).unwrap();
        let part = opened(&program, &cache);
        let main = part.functions().last().unwrap().start;
        part.lines().frames(main, &mut Vec::new());
        assert_eq!(part.keep_answers(), Some(()));
        let rest = opened(&program, &cache);
        assert_eq!(answers(&rest), plain);
        assert_eq!(rest.keep_answers(), Some(()));
        let all = opened(&program, &cache);
        assert_eq!(answers(&all), plain);
        assert_eq!(all.memory_taken().debug_information, 0);

        // What is damaged is as if it were not there.
        let file = &kept(&cache)[0];
        let bytes = fs::read(file).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 16) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(file, &changed).unwrap();
            assert_eq!(answers(&opened(&program, &cache)), plain);
        }
    });
}

#[test]
fn answers_of_a_changed_file_are_not_used() {
    repeated(|| {
        let directory = support::directory("kept-changed");
        let cache = directory.join("cache");
        let Some(program) = compiled(&directory, PROGRAM) else {
            return;
        };
        thread::sleep(SETTLED);
        let first = opened(&program, &cache);
        let before = answers(&first);
        assert_eq!(first.keep_answers(), Some(()));
        assert_eq!(
            first.place_to_keep("calls").unwrap().store(b"those"),
            Some(())
        );
        let calls = first.place_to_keep("calls").unwrap().load().unwrap();
        assert_eq!(calls.bytes(), b"those");
        // Equally long, and written over the same file.
        let other = PROGRAM.replace("middle", "center");
        let elsewhere = support::directory("kept-changed-other");
        let other = compiled(&elsewhere, &other).unwrap();
        let modified = fs::metadata(&program).unwrap().modified().unwrap();
        fs::write(&program, fs::read(&other).unwrap()).unwrap();
        let file = fs::File::options().write(true).open(&program).unwrap();
        file.set_modified(modified).unwrap();
        let second = opened(&program, &cache);
        let kept = second.place_to_keep("calls");
        assert!(kept.and_then(|place| place.load()).is_none());
        let after = answers(&second);
        assert_ne!(after, before);
        assert_eq!(after, answers(&Binary::open(&program).unwrap()));
    });
}
