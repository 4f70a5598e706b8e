//! The report as a page.

use std::collections::HashMap;

use proftool::base::{CaveatKind, Caveats, Event, Sampling, WeightSum};
use proftool::names::of_text;
use proftool::profile::{Builder, Function, FunctionId, Line, Module, Profile, Quality, Thread};

use crate::support::golden;
use crate::support::report::{Words, shown};

/// Two commands, two modules, lines, a caveat: all that a recording can have.
fn recording() -> Profile {
    let mut builder = Builder::default();
    builder.about().command = Some("./app --size 12".into());
    builder.about().duration = Some(2_500_000_000);
    builder.caveats().add(CaveatKind::Lost, 12);
    let event = builder.sampled_event(Event::named("cpu-clock:u"), Sampling::Drawn);
    let [app, libc] = ["app", "libc.so.6"].map(|name| {
        builder.module(Module {
            name: name.into(),
            path: format!("/usr/bin/{name}"),
        })
    });
    let mut function = |name: &str, module| -> FunctionId {
        let language = of_text(name);
        let function = Function::named(name, module);
        builder.function(Function {
            language,
            ..function
        })
    };
    let main = function("main", app);
    let parse = function("app::Parser<T>::parse(std::string_view)", app);
    let memmove = function("__memmove_avx_unaligned_erms", libc);
    let line = |builder: &mut Builder, line| {
        builder.line(Line {
            file: "/src/app/parser/statements.cc".into(),
            line,
        })
    };
    let [first, second] = [120, 7].map(|number| line(&mut builder, number));
    let main = builder.path(None, main, false);
    let parse = builder.path(Some(main), parse, false);
    let memmove = builder.path(Some(parse), memmove, false);
    for (tid, comm) in [(11, "app"), (12, "app"), (13, "worker")] {
        let thread = builder.thread(Thread::new(11, tid, comm));
        builder.sample(
            event,
            thread,
            parse,
            Some(first),
            WeightSum::equal(400_000_000, 400),
        );
        builder.sample(
            event,
            thread,
            parse,
            Some(second),
            WeightSum::equal(100_000_000, 100),
        );
        builder.sample(
            event,
            thread,
            memmove,
            None,
            WeightSum::equal(250_000_000, 250),
        );
    }
    builder.finish()
}

fn report_of(profile: &Profile) -> String {
    shown(profile, false, 80, &Words)
}

#[test]
fn a_recording_has_lines_threads_and_caveats_in_its_report() {
    let text = report_of(&recording());
    assert!(
        golden::holds("recording.report.txt", text.as_bytes()),
        "{text}"
    );
}

#[test]
fn stacks_that_end_early_are_not_said_to_be_whole() {
    let mut profile = recording();
    profile.caveats = Caveats::default();
    for (rooted, is_whole) in [(2250, true), (2249, false)] {
        profile.quality = Some(Quality {
            stacks: 2250,
            rooted,
            verified: 2250,
            by_frame_pointers: true,
            ..Quality::default()
        });
        let text = report_of(&profile);
        assert!(text.contains("No samples were lost"), "{text}");
        let says_so = text.contains("no stacks were truncated");
        assert_eq!(says_so, is_whole, "{text}");
    }
}

/// Rows of the kernel are not listed there, so they take no lines.
#[test]
fn a_report_on_threads_that_wait_fits_one_screen() {
    let mut builder = Builder::default();
    builder.about().command = Some("./app --size 12".into());
    builder.about().duration = Some(2_500_000_000);
    builder.caveats().add(CaveatKind::BrokenCopy, 1);
    let event = builder.sampled_event(Event::named("context-switches"), Sampling::Census);
    let [app, libc, kernel] = ["app", "libc.so.6", "[kernel]"].map(|name| {
        builder.module(Module {
            name: name.into(),
            path: name.into(),
        })
    });
    let mut functions = HashMap::new();
    let mut path = |stack: &[(&'static str, _)]| {
        stack.iter().fold(None, |caller, &(name, module)| {
            let new = || builder.function(Function::named(name, module));
            let function = *functions.entry((name, module)).or_insert_with(new);
            Some(builder.path(caller, function, false))
        })
    };
    let user = [("clone3", libc), ("start_thread", libc), ("work", app)];
    let switch = [("schedule", kernel), ("__schedule", kernel)];
    let system = [("entry", kernel), ("do_syscall", kernel)];
    let waits: Vec<_> = [
        ("nanosleep", libc),
        ("futex", libc),
        ("poll", libc),
        ("spin", app),
        ("read", libc),
    ]
    .iter()
    .flat_map(|&wait| {
        let inner = [("x64_sys_call", kernel), (wait.0, kernel)];
        path(&[&user[..], &[wait], &system, &inner, &switch].concat())
    })
    .collect();
    for thread in 0..7 {
        let thread = builder.thread(Thread::new(11, 11 + thread, "app"));
        for (&wait, weight) in waits.iter().zip([40, 30, 20, 10, 5]) {
            builder.sample(event, thread, wait, None, WeightSum::equal(weight, weight));
        }
    }
    let mut profile = builder.finish();
    profile.quality = Some(Quality {
        stacks: 735,
        rooted: 730,
        verified: 735,
        ..Quality::default()
    });
    let text = shown(&profile, true, 80, &Words);
    assert!(text.contains("callers in other modules"), "{text}");
    assert!(text.lines().count() <= 40, "{text}");
}
