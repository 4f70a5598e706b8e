//! What is seen while a program is sampled, held against the recording that is written of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use proftool::base::{Caveat, CaveatKind};
use proftool::input::live::{self, Live, Seen};
use proftool::input::{self, Options};
use proftool::profile::Profile;
use proftool::sampler::{self, Bounds, Command, Rate, Stacks, Subject, Watched};

use crate::support::record::{Room, can_record, is_root};
use crate::support::record_counts::POOL;
use crate::support::record_stacks::build;
use crate::support::repeated::repeated;
use crate::support::shares::near;
use crate::support::{record_events, skipped};

/// Two functions that work by turns, in threads that come and go, and children that exec.
const PROGRAM: &str = "\
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void leaf(void) { for (int i = 0; i < 200000; i++) sink += i; }
__attribute__((noinline)) void even(int depth) { if (depth) even(depth - 1); leaf(); }
__attribute__((noinline)) void odd(void) { leaf(); leaf(); }
static void *work(void *none) { for (int i = 0; i < 20; i++) { even(3); odd(); } return none; }
int main(int count, char **words) {
    while (access(words[count - 1], F_OK)) {
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);
        pid_t child = fork();
        if (!child) { execl(\"/bin/sh\", \"sh\", \"-c\", \"i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done\", (char *)0); _exit(1); }
        work(0);
        pthread_join(thread, 0);
        waitpid(child, 0, 0);
    }
    return 7;
}
";

/// The program, and the file that ends it when it is there: nobody knows how long a busy machine takes
/// until something is seen.
fn program(room: &Room) -> Option<(Command, PathBuf)> {
    let flags = ["-O1", "-fno-omit-frame-pointer", "-pthread"];
    let path = build(room, "turns", PROGRAM, &flags)?;
    let end = room.path("end");
    let words = [path.into(), end.clone().into()];
    Some((Command::find(&words).unwrap(), end))
}

/// Samples a command while `view` looks.
fn watch(
    command: &Command,
    (stacks, off_cpu): (Stacks, bool),
    view: impl FnOnce(&Live),
) -> Result<Watched, sampler::Error> {
    let options = sampler::Options {
        // The kernel's symbols take long to read where this code is not optimized.
        events: vec!["cpu-clock:u".parse().unwrap()],
        rate: Some(Rate::Frequency(1999)),
        stacks,
        off_cpu,
        ..sampler::Options::default()
    };
    let how = (&options, Subject::Command(command), &Bounds::default());
    let interval = Duration::from_millis(200);
    live::watch(how, &Options::default(), interval, &mut |_| (), view)
}

/// What is seen first of samples.
fn first(live: &Live) -> Arc<Seen> {
    let begin = Instant::now();
    loop {
        if let Some(seen) = live.latest().filter(|seen| seen.samples > 0) {
            return seen;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "nothing is seen"
        );
        sleep(Duration::from_millis(10));
    }
}

/// Waits until samples since a reset are seen.
fn reset_is_seen(live: &Live) {
    while first(live).resets == 0 {
        sleep(Duration::from_millis(20));
    }
}

/// What is seen when it is over.
fn last(live: &Live) -> Arc<Seen> {
    let begin = Instant::now();
    while live.outcome().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
        sleep(Duration::from_millis(20));
    }
    live.latest().unwrap()
}

/// Event, command and call path, by name.
type Place = (String, String, Vec<String>);

/// Weight and samples of each call path.
fn by_path(profile: &Profile) -> BTreeMap<Place, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for sample in &profile.samples {
        let mut path = Vec::new();
        let mut next = Some(sample.path);
        while let Some(id) = next {
            let row = profile.paths[id];
            path.push(profile.functions[row.function].name.clone());
            next = row.caller;
        }
        let comm = profile.threads[sample.thread].comm.to_string();
        let event = profile.events[sample.event].name.clone();
        let sum: &mut (u64, u64) = sums.entry((event, comm, path)).or_default();
        sum.0 += sample.weight;
        sum.1 += sample.count;
    }
    sums
}

fn reread(path: &Path) -> Profile {
    input::open(path).unwrap()
}

#[track_caller]
fn same(seen: &Seen, path: &Path) {
    let (live, file) = (by_path(&seen.profile), by_path(&reread(path)));
    assert!(live.len() > 5, "{live:?}");
    let taken = live
        .iter()
        .filter(|((event, ..), _)| !["off-cpu", "preempted"].contains(&event.as_str()));
    assert_eq!(
        taken.map(|(_, (_, count))| count).sum::<u64>(),
        seen.samples
    );
    let differ = live
        .keys()
        .chain(file.keys())
        .filter(|key| live.get(key) != file.get(key));
    let differ: Vec<_> = differ
        .map(|key| (key, live.get(key), file.get(key)))
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn a_recording_written_by_top_has_the_same_totals() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let Some((command, end)) = program(&room) else {
            return;
        };
        let copies = Stacks::Copies(Default::default());
        for (name, how) in [
            ("fp", (Stacks::FramePointers, false)),
            ("dwarf", (copies, false)),
            ("off-cpu", (Stacks::FramePointers, true)),
            ("off-cpu-dwarf", (copies, true)),
        ] {
            let (early, late) = (room.path(&format!("{name}.early")), room.path(name));
            let _ = fs::remove_file(&end);
            let watched = watch(&command, how, |live| {
                let seen = first(live);
                // More has come since then.
                sleep(Duration::from_millis(300));
                let written = live.write(&seen, &early).unwrap();
                assert_eq!(written.samples, seen.samples);
                // Before the files are compared, which takes long: the recording grows until then.
                fs::write(&end, "").unwrap();
                same(&seen, &early);
                let seen = last(live);
                assert_eq!(live.write(&seen, &late).unwrap().samples, seen.samples);
                assert_eq!((seen.behind, seen.seldom), (0, 0));
                same(&seen, &late);
                let waits = seen.profile.event_named("off-cpu").is_some();
                assert_eq!(waits, how.1);
            });
            let watched = watched.unwrap();
            assert_eq!(watched.ending.map(sampler::Ending::status), Some(7));
        }
    });
}

#[test]
fn a_reset_forgets_samples_but_not_what_runs() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let Some((command, end)) = program(&room) else {
            return;
        };
        let path = room.path("perf.data");
        let watched = watch(&command, (Stacks::FramePointers, false), |live| {
            let began = Instant::now();
            let before = first(live);
            let forgotten = Duration::from_millis(500);
            sleep(forgotten);
            live.reset();
            reset_is_seen(live);
            fs::write(&end, "").unwrap();
            let seen = last(live);
            assert!(before.samples > 0 && seen.samples > 0);
            assert!(
                seen.elapsed + forgotten <= began.elapsed(),
                "{:?}",
                seen.elapsed
            );
            assert_eq!(live.write(&seen, &path).unwrap().samples, seen.samples);
            same(&seen, &path);
            let names = by_path(&seen.profile);
            assert!(
                names
                    .keys()
                    .any(|(_, _, path)| path.first().is_some_and(|leaf| leaf == "leaf"))
            );
        });
        watched.unwrap();
    });
}

/// The warnings about samples that do not add up to what the kernel counted.
fn differences(profile: &Profile) -> Vec<String> {
    let all = profile.caveats.iter();
    let told =
        all.filter(|it| matches!(it.kind, CaveatKind::ShortThreads | CaveatKind::Miscounted));
    told.map(Caveat::to_string).collect()
}

#[test]
fn missed_time_is_known_live_after_a_reset_and_in_the_file() {
    repeated(|| {
        if !is_root() {
            return skipped("the clock of user space alone is not known");
        }
        let room = Room::new();
        let Some(pool) = record_events::program(&room, POOL) else {
            return;
        };
        // Threads of 0.3 ms are missed, threads of 100 ms are not.
        for (micros, misses) in [("300", true), ("100000", false)] {
            let words = [pool.clone().into(), micros.into(), "60000".into()];
            let command = Command::find(&words).unwrap();
            let options = sampler::Options {
                events: vec!["cpu-clock".parse().unwrap()],
                rate: Some(Rate::Frequency(997)),
                ..sampler::Options::default()
            };
            let bounds = Bounds::default();
            let how = (&options, Subject::Command(&command), &bounds);
            let interval = Duration::from_millis(200);
            let check = |live: &Live, seen: &Seen, name: &str| {
                let path = room.path(&format!("{micros}.{name}"));
                live.write(seen, &path).unwrap();
                let now = differences(&seen.profile);
                assert_eq!(!now.is_empty(), misses, "{micros} {name}: {now:?}");
                assert_eq!(differences(&reread(&path)), now, "{micros} {name}");
            };
            let watched = live::watch(how, &Options::default(), interval, &mut |_| (), |live| {
                for (resets, name) in ["before", "after"].into_iter().enumerate() {
                    // On a busy machine it takes a while until enough time was used.
                    let begin = Instant::now();
                    let limit = Duration::from_secs(if misses { 60 } else { 1 });
                    let mut seen = first(live);
                    while seen.resets < resets as u64
                        || begin.elapsed() < limit
                            && (!misses || differences(&seen.profile).is_empty())
                    {
                        sleep(Duration::from_millis(50));
                        seen = first(live);
                    }
                    check(live, &seen, name);
                    live.reset();
                }
                live.stop();
            });
            watched.unwrap();
        }
    });
}

#[test]
fn samples_fade() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let Some((command, end)) = program(&room) else {
            return;
        };
        let watched = watch(&command, (Stacks::FramePointers, false), |live| {
            live.set_half_life(Some(Duration::from_millis(150)));
            first(live);
            sleep(Duration::from_secs(2));
            fs::write(&end, "").unwrap();
            let seen = last(live);
            let shown: u64 = seen.profile.samples.iter().map(|sample| sample.count).sum();
            // With samples at an even rate, what is left is that of 1.44 half-lives.
            assert!(shown * 2 < seen.samples, "{shown} of {}", seen.samples);
            assert!(shown * 100 > seen.samples, "{shown} of {}", seen.samples);
        });
        watched.unwrap();
    });
}

/// Half of the time in one function, half in one that is met on ever other stacks.
const MANY_STACKS: &str = "\
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void even(double end) { while (now() < end) for (int i = 0; i < 3000; i++) sink += i; }
__attribute__((noinline)) void odd(double end) { while (now() < end) for (int i = 0; i < 3000; i++) sink += i; }
__attribute__((noinline)) void right(unsigned way, double end);
__attribute__((noinline)) void left(unsigned way, double end) { if (way > 1) (way & 1 ? left : right)(way >> 1, end); else odd(end); sink++; }
__attribute__((noinline)) void right(unsigned way, double end) { if (way > 1) (way & 1 ? left : right)(way >> 1, end); else odd(end); sink++; }
int main(int count, char **words) {
    while (access(words[count - 1], F_OK)) { even(now() + 0.004); left(1u << 20 | rand() & 0xfffff, now() + 0.004); }
    return 0;
}
";

#[test]
fn fading_samples_keep_their_shares() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = ["-O1", "-fno-omit-frame-pointer"];
        let Some(path) = build(&room, "many", MANY_STACKS, &flags) else {
            return;
        };
        let end = room.path("end");
        let command = Command::find(&[path.into(), end.clone().into()]).unwrap();
        let watched = watch(&command, (Stacks::FramePointers, false), |live| {
            live.set_half_life(Some(Duration::from_millis(400)));
            // Until samples have faded several times, and are many where others run, too.
            first(live);
            sleep(Duration::from_secs(2));
            while first(live).samples < 1000 {
                sleep(Duration::from_millis(50));
            }
            fs::write(&end, "").unwrap();
            let seen = last(live);
            let paths = by_path(&seen.profile);
            let weight = |name: &str| -> u64 {
                let under = |place: &Place| place.2.iter().any(|function| function == name);
                let found = paths.iter().filter(|(place, _)| under(place));
                found.map(|(_, (weight, _))| weight).sum()
            };
            let (even, odd) = (weight("even") as f64, weight("odd") as f64);
            let share = even / (even + odd);
            let count: u64 = seen.profile.samples.iter().map(|sample| sample.count).sum();
            // Weights that fade say as much as twice their sum of samples that do not: (Σw)² / Σw².
            let samples = 2 * count;
            let of_even = (samples as f64 * share) as u64;
            assert!(near(of_even, samples, 50.0, 1.0), "even has {share}");
            let each = (even + odd) / count as f64;
            assert!((4e5..6e5).contains(&each), "{each} ns a sample");
        });
        watched.unwrap();
    });
}

#[test]
fn groups_are_counted_from_the_reset() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let source = "#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
        int main(int count, char **words) { while (access(words[1], F_OK)) { \
        char *p = mmap(0, 4 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); \
        memset(p, 1, 4 << 20); munmap(p, 4 << 20); } return 0; }\n";
        let Some(program) = build(&room, "faults", source, &["-O1", "-fno-builtin"]) else {
            return;
        };
        let path = room.path("perf.data");
        let end = room.path("end");
        let command = Command::find(&[program.into(), end.clone().into()]).unwrap();
        let group: sampler::EventList = "{cpu-clock:u,page-faults:u}:S".parse().unwrap();
        let options = sampler::Options {
            events: group.events().to_vec(),
            ..sampler::Options::default()
        };
        let how = (&options, Subject::Command(&command), &Bounds::default());
        let interval = Duration::from_millis(200);
        let watched = live::watch(how, &Options::default(), interval, &mut |_| (), |live| {
            assert_eq!(first(live).resets, 0);
            live.reset();
            reset_is_seen(live);
            fs::write(&end, "").unwrap();
            let seen = last(live);
            assert_eq!(seen.resets, 1);
            assert_eq!(live.write(&seen, &path).unwrap().samples, seen.samples);
            let totals = |profile: &Profile| {
                let mut totals = BTreeMap::new();
                for ((event, ..), (weight, _)) in by_path(profile) {
                    *totals.entry(event).or_insert(0) += weight;
                }
                totals
            };
            let (live, file) = (totals(&seen.profile), totals(&reread(&path)));
            assert_eq!(live.len(), 2, "{live:?}");
            assert_eq!(live, file);
        });
        watched.unwrap();
    });
}

#[test]
fn closing_the_view_ends_the_command() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let words = ["sh", "-c", "while :; do :; done"].map(OsString::from);
        let command = Command::find(&words).unwrap();
        let watched = watch(&command, (Stacks::FramePointers, false), |live| {
            first(live);
        });
        assert_eq!(
            watched.unwrap().ending,
            Some(sampler::Ending::Signalled(15))
        );
    });
}
