//! Random profiles for exporters, with what each format must keep of them.

use proftool::analysis::call_stacks::{CallStacks, OutermostCalls};
use proftool::analysis::inclusive;
use proftool::analysis::tree::Collapse;
use proftool::base::{BuildId, Event, WeightSum};
use proftool::export::{callgrind, firefox, otlp, perf_script, pprof, speedscope};
use proftool::names::of_text;
use proftool::profile::{
    Builder, EventId, Filter, Function, FunctionKind, Line, Module, Profile, Selection, Thread,
    Weighing,
};
use proftool::view::{Names, Subject};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

use crate::support::readers;
use crate::support::readers::Row;

/// A sample: functions from the root, each with the line of its call and whether it is inlined; the thread,
/// the weight, the number of samples.
pub type Taken = (Vec<(usize, u32, bool)>, usize, u64, u64);

/// A function: name, module, where it is declared.
pub type Named = (&'static str, usize, Option<(&'static str, u32)>);

/// Names that some format has to be careful with; the same name in several modules and files.
pub const FUNCTIONS: [Named; 10] = [
    ("main", 0, Some(("/src/main.c", 3))),
    ("work", 0, Some(("/src/a.c", 10))),
    ("work", 1, Some(("/src/b.c", 20))),
    ("work", 1, None),
    ("work", 1, None),
    (
        "std::map<int, std::string>::operator[](int const&)",
        1,
        Some(("/src/map.h", 7)),
    ),
    ("(1) [x] a;b \"q\" \\ 0x1+0x2 <&>", 0, None),
    ("(anonymous namespace)::f()", 2, None),
    ("\u{202e}\u{1b}[31m\n", 0, Some(("/src/\n.c", 1))),
    ("[truncated]", 3, None),
];

pub fn samples() -> impl Strategy<Value = Vec<Taken>> {
    let frame = (0..FUNCTIONS.len(), 1..4u32, any::<bool>());
    vec(
        (vec(frame, 1..12), 0..2usize, 0..1u64 << 42, 1..4u64),
        0..20,
    )
}

/// The profile of these samples, with the lines of calls.
pub fn build(samples: &[Taken]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let modules = [
        ("app", "/opt/app"),
        ("libb.so", "/opt/libb.so"),
        ("[kernel]", "[kernel.kallsyms]"),
        ("", ""),
    ];
    let modules = modules.map(|(name, path)| {
        let (name, path) = (name.into(), path.into());
        builder.module(Module { name, path })
    });
    builder.build_id(modules[0], &BuildId::new(&[0xab, 0xcd]).unwrap());
    let functions: Vec<_> = FUNCTIONS
        .iter()
        .zip(0..)
        .map(|(&(name, module, declared), number)| {
            builder.function(Function {
                language: of_text(name),
                name: name.into(),
                linkage_name: (number == 5).then(|| "_ZNSt3mapixEi".into()),
                declared_at: declared.map(|(file, line)| {
                    let file = file.into();
                    Box::new(Line { file, line })
                }),
                module: modules[module],
                address: (number != 0).then_some(number * 16),
                kind: if module == 3 {
                    FunctionKind::Mark
                } else {
                    FunctionKind::Named
                },
            })
        })
        .collect();
    let threads =
        [(7, "app"), (8, "wor ker")].map(|(tid, comm)| builder.thread(Thread::new(7, tid, comm)));
    for (stack, thread, weight, count) in samples {
        let mut at = None;
        let (mut called_from, mut outside) = (None, None);
        for &(function, line, inlined) in stack {
            // Code is inlined within a module.
            let module = FUNCTIONS[function].1;
            let is_across_gap = inlined && outside != Some(module);
            let inlined = inlined && at.is_some() && outside == Some(module);
            outside = Some(module);
            let caller = at.map(|(path, _)| path);
            let path = match line {
                // Frames are missing where the caller, of another module, cannot contain the code.
                2 if is_across_gap && caller.is_some() => {
                    builder.path_across_gap(caller.unwrap(), functions[function])
                }
                3 if caller.is_some() => {
                    builder.inferred_path(caller, functions[function], inlined)
                }
                _ => builder.path(caller, functions[function], inlined),
            };
            let place = builder.place(at.map(|(_, place)| place), path, called_from);
            at = Some((path, place));
            let file = FUNCTIONS[function]
                .2
                .map_or("/other.c", |(file, _)| file)
                .into();
            called_from = Some(builder.line(Line { file, line }));
        }
        let sum = WeightSum::equal(*weight, *count);
        builder.sample_at(event, threads[*thread], at.unwrap().1, called_from, sum);
    }
    builder.finish()
}

/// Name, self and total of every function on a stack, as the analysis has them; names as they are printed.
pub fn truth(profile: &Profile, selection: &Selection, is_printed: bool) -> Vec<Row> {
    let weights = inclusive::by_function(profile, selection);
    let on_stacks = profile.functions_on_stacks();
    let functions = profile
        .functions
        .enumerate()
        .filter(|(id, _)| on_stacks[*id]);
    let mut rows: Vec<Row> = functions
        .map(|(id, function)| Row {
            name: match is_printed {
                true => proftool::base::printable(&function.name).into_owned(),
                false => function.name.clone(),
            },
            own: weights.self_weight[id],
            total: weights.total[id],
        })
        .collect();
    // Formats of calls have no place for functions without weight.
    rows.retain(|row| row.total > 0);
    rows.sort();
    rows
}

pub fn subject<'a>(profile: &'a Profile, selection: &'a Selection) -> Subject<'a> {
    Subject::new(profile, selection, Names::Full)
}

pub fn select(profile: &Profile, weighing: Weighing) -> Selection {
    let filter = Filter {
        weighing,
        ..Filter::default()
    };
    profile.select(EventId::new(0), &filter)
}

/// What each format has for the profile, in the order of [`readers::ALL`].
pub fn exported(profile: &Profile, selection: &Selection, collapse: Collapse) -> Vec<Vec<u8>> {
    let subject = subject(profile, selection);
    let stacks = CallStacks::of(profile, selection, collapse);
    let calls = OutermostCalls::of(profile, &stacks);
    let mut files = vec![Vec::new(); readers::ALL.len()];
    pprof::write(&mut files[0], &subject, &stacks).unwrap();
    callgrind::write(&mut files[1], &subject, &stacks, &calls).unwrap();
    speedscope::write(&mut files[2], &subject, &stacks).unwrap();
    let track = firefox::Track {
        subject: &subject,
        stacks: &stacks,
    };
    firefox::write(&mut files[3], track, &[]).unwrap();
    otlp::write(&mut files[4], &subject, &stacks).unwrap();
    let records = perf_script::records(&subject, &stacks, 1 << 20);
    perf_script::write(&mut files[5], &subject, &stacks, records).unwrap();
    files
}
