//! Off-CPU time on pages: the function that waits is named, not the scheduler.

use proftool::analysis::owners::Owners;
use proftool::analysis::report::Summary;
use proftool::analysis::tree::{self as analysed, Collapse, Direction, Stacks};
use proftool::base::{Event, Sampling, WeightSum};
use proftool::export::{Facts, svg, text};
use proftool::profile::{Builder, EventId, Filter, Function, Module, Profile, Selection, Thread};
use proftool::view::page::Page;
use proftool::view::question::Question;
use proftool::view::tree::{self, Notes};
use proftool::view::{Names, Subject, report};

const MODULES: [&str; 3] = ["app", "libc.so.6", "[kernel]"];

/// Functions, each with its module.
const FUNCTIONS: [(&str, usize); 9] = [
    ("main", 0),
    ("take_lock", 0),
    ("nap", 0),
    ("pthread_mutex_lock", 1),
    ("clock_nanosleep", 1),
    ("entry_SYSCALL_64", 2),
    ("do_syscall_64", 2),
    ("futex_wait", 2),
    ("schedule", 2),
];

/// Two waits in a lock and one in a call that sleeps.
const WAITS: [(&[usize], u64); 2] = [
    (&[0, 1, 3, 5, 6, 7, 8], 60_000_000),
    (&[0, 2, 4, 5, 6, 8], 40_000_000),
];

fn profile(event: Event) -> Profile {
    let mut builder = Builder::default();
    builder.about().duration = Some(200_000_000);
    let event = builder.sampled_event(event, Sampling::Census);
    let modules = MODULES.map(|name| {
        builder.module(Module {
            name: name.into(),
            path: format!("/usr/{name}"),
        })
    });
    let functions =
        FUNCTIONS.map(|(name, module)| builder.function(Function::named(name, modules[module])));
    let thread = builder.thread(Thread::new(1, 1, "app"));
    for (stack, time) in WAITS {
        let mut path = None;
        for &function in stack {
            path = Some(builder.path(path, functions[function], false));
        }
        builder.sample(
            event,
            thread,
            path.unwrap(),
            None,
            WeightSum::equal(time, 4),
        );
    }
    builder.finish()
}

fn with<T>(event: Event, make: impl Fn(&Profile, &Selection, &Subject) -> T) -> T {
    let profile = profile(event);
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = Subject::new(&profile, &selection, Names::Short);
    make(&profile, &selection, &subject)
}

fn written(page: &Page) -> String {
    let options = text::Options {
        width: 120,
        color: false,
    };
    let mut out = Vec::new();
    text::write(&mut out, page, &options, &Facts).unwrap();
    String::from_utf8(out).unwrap()
}

fn report_of(event: Event) -> (String, Vec<Question>) {
    with(event, |profile, selection, subject| {
        let options = report::Options {
            limit: Some(10),
            ..report::Options::default()
        };
        let own = ["app".to_owned()];
        let owners = Owners::of_profile(profile, &own);
        let summary = Summary::of(profile, selection, owners, false);
        let report = report::arrange(subject, &summary, &options);
        (written(&report.page(subject)), report.next)
    })
}

fn tree_of(event: Event, own: &[String]) -> String {
    with(event, |profile, selection, subject| {
        let asked = analysed::Options::of(Collapse::None);
        let summary = analysed::Summary::of(Stacks::new(profile, selection), &asked);
        let owners = Owners::of_profile(profile, own);
        let options = tree::Options::default();
        let tree = tree::arrange(subject, &summary, Some(&owners), &options);
        written(&tree.page(subject, &Notes::default()))
    })
}

#[test]
fn hot_paths_of_waiting_threads_end_at_what_waits() {
    let (page, next) = report_of(Event::off_cpu());
    let paths: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("Hot path"))
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(
        paths[0],
        "Hot paths by off-CPU time: the heaviest callee at each step"
    );
    assert!(paths[4].ends_with("pthread_mutex_lock"), "{page}");
    assert!(paths[6].ends_with("clock_nanosleep"), "{page}");
    assert_eq!(paths.len(), 7, "{page}");
    assert!(!page.contains("schedule"), "{page}");
    let around = Question::AroundHottest("^pthread_mutex_lock$".into());
    assert!(next.contains(&around), "{next:?}");
}

#[test]
fn what_was_recorded_whole_has_no_sampling_error() {
    let events = [
        (
            Event::off_cpu(),
            "No sampling error: every interval was recorded.",
        ),
        (
            Event::named("page-faults"),
            "No sampling error: every event was recorded.",
        ),
    ];
    for (event, sentence) in events {
        let (page, _) = report_of(event);
        assert!(page.contains(sentence), "{page}");
        assert!(!page.contains('±'), "{page}");
    }
    let (page, _) = report_of(Event::named("page-faults"));
    assert!(
        page.contains("Hottest functions by self page faults"),
        "{page}"
    );
    assert!(page.contains("Hot paths by page faults"), "{page}");
}

#[test]
fn the_kernels_part_of_a_wait_is_one_line_below_what_waits() {
    for own in [vec!["app".to_owned()], Vec::new()] {
        let page = tree_of(Event::off_cpu(), &own);
        let lines: Vec<&str> = page.lines().collect();
        let place = |name: &str| lines.iter().position(|line| line.ends_with(name)).unwrap();
        let lock = place("pthread_mutex_lock");
        assert!(
            lines[lock + 1].ends_with("⋯ 4 frames: [kernel] → schedule"),
            "{page}"
        );
        let nap = place("clock_nanosleep");
        assert!(
            lines[nap + 1].ends_with("⋯ 3 frames: [kernel] → schedule"),
            "{page}"
        );
    }
    // Samples of running threads are folded across the border, as before.
    let page = tree_of(Event::named("cpu-clock"), &["app".to_owned()]);
    assert!(page.contains("⋯ 5 frames: [kernel]"), "{page}");
}

#[test]
fn pictures_of_waits_have_times_and_their_own_colours() {
    let draw = |event: Event| {
        with(event, |profile, selection, subject| {
            let tree = Stacks::new(profile, selection).top_down(Collapse::None);
            let layout = tree.flame_layout(0);
            let picture = svg::Picture {
                tree: &tree,
                layout: &layout,
                direction: Direction::TopDown,
                depth: None,
            };
            let mut out = Vec::new();
            svg::write(&mut out, subject, &picture).unwrap();
            String::from_utf8(out).unwrap()
        })
    };
    let waits = draw(Event::off_cpu());
    assert!(waits.contains("<title>take_lock (60.00 ms, 60.00%; self 0 ns; app)</title>"));
    let faults = draw(Event::named("page-faults"));
    assert!(
        faults.contains("<title>take_lock (60,000,000 page-faults, 60.00%; self 0; app)</title>")
    );
    let rule = |picture: &str| {
        let mut rules = picture.lines().filter(|line| line.starts_with(".m0 {"));
        rules.next().unwrap().to_owned()
    };
    let running = draw(Event::named("cpu-clock"));
    let rules = [&waits, &faults, &running].map(|picture| rule(picture));
    assert!(rules[0] != rules[1] && rules[1] != rules[2] && rules[0] != rules[2]);
}
