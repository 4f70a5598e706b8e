//! Weight by line and by address: a worked example, laws over random recursive stacks, the page.

use std::collections::{BTreeMap, BTreeSet};

use proftool::analysis::annotate::{LineWeights, Sums};
use proftool::analysis::inclusive;
use proftool::export::{Facts, csv, json, text};
use proftool::profile::{
    Callee, EventId, Filter, FunctionId, Listing, Position, Profile, SourceText,
};
use proftool::view::annotate::{AnnotateView, Base, Material, Options, arrange};
use proftool::view::{Names, Subject};
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

use crate::support::annotate::{Taken, build_timed, listing, of, samples, settled};
use crate::support::golden;

fn build(samples: &[Taken]) -> Profile {
    build_timed(samples, &vec![0; samples.len()])
}

#[test]
fn a_sample_at_a_call_counts_once_for_the_instruction_that_also_called() {
    // f1 calls itself by the instruction at 8: of callers an address inside of it is known.
    let stack = vec![
        (0, Some(1), Some(0x100), false),
        (1, Some(7), Some(11), false),
        (1, Some(7), Some(8), false),
    ];
    let profile = build(&[(stack, 5)]);
    let summary = of(&profile, 1, Some(&listing(16)));
    let code = summary.code.unwrap();
    let told: Vec<_> = (code.addresses.iter())
        .map(|at| (at.address, at.self_weight, at.total))
        .collect();
    assert_eq!(told, [(8, 5, 5)]);
    assert_eq!((summary.total, code.total), (5, 5));
    // As it was sampled, these are two addresses.
    let addresses = of(&profile, 1, None).code.unwrap().addresses;
    assert_eq!(addresses.len(), 2);
    let selection = profile.select(EventId::new(0), &Filter::default());
    let sums = Sums::of(&profile, &selection);
    let function = FunctionId::new(1);
    assert_eq!(sums.addresses(function, function), [8, 11]);
}

/// By line, or by instruction: self weight and total.
type Weights<K> = BTreeMap<K, (u64, u64)>;

/// What one function weighs by line and by instruction, each stack looked at by itself.
fn oracle(samples: &[Taken], function: usize) -> (Weights<Option<u32>>, Weights<u64>, u64) {
    let (mut lines, mut code) = (Weights::new(), Weights::new());
    let mut elsewhere = 0;
    for (stack, weight) in samples {
        let stack = settled(stack);
        let (mut seen_lines, mut seen_code) = (BTreeSet::new(), BTreeSet::new());
        for (depth, &(at, line, address, inlined)) in stack.iter().enumerate() {
            let is_leaf = depth + 1 == stack.len();
            if at == function {
                let known: &mut (u64, u64) = lines.entry(line).or_default();
                known.0 += if is_leaf { *weight } else { 0 };
                known.1 += if seen_lines.insert(line) { *weight } else { 0 };
            }
            let Some(address) = address else { continue };
            if at == function && !inlined {
                let instruction = address / 4 * 4;
                let known: &mut (u64, u64) = code.entry(instruction).or_default();
                let is_new = seen_code.insert(instruction);
                known.1 += if is_new { *weight } else { 0 };
            }
        }
        let machine = stack.iter().rev().find(|(.., inlined)| !inlined).unwrap();
        let &(leaf, _, address, _) = stack.last().unwrap();
        if let Some(address) = address {
            if machine.0 == function {
                code.entry(address / 4 * 4).or_default().0 += weight;
            } else if leaf == function {
                elsewhere += weight;
            }
        }
    }
    (lines, code, elsewhere)
}

/// What a function weighs by instruction where it is inlined into another, each stack looked at by
/// itself.
fn inlined_oracle(samples: &[Taken], function: usize, holder: usize) -> Weights<u64> {
    let mut code = Weights::new();
    for (stack, weight) in samples {
        let stack = settled(stack);
        let mut seen = BTreeSet::new();
        let (mut machine, mut is_in) = (usize::MAX, false);
        for (depth, &(at, _, address, inlined)) in stack.iter().enumerate() {
            if !inlined {
                (machine, is_in) = (at, false);
            }
            is_in |= inlined && at == function && machine == holder;
            let Some(instruction) = address.map(|address| address / 4 * 4).filter(|_| is_in) else {
                continue;
            };
            let known: &mut (u64, u64) = code.entry(instruction).or_default();
            known.0 += if depth + 1 == stack.len() { *weight } else { 0 };
            known.1 += if seen.insert(instruction) { *weight } else { 0 };
        }
    }
    code
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn inlined_instructions_equal_a_count_stack_by_stack(samples in samples()) {
        let profile = build(&samples);
        let selection = profile.select(EventId::new(0), &Filter::default());
        let sums = Sums::of(&profile, &selection);
        let listing = listing(40);
        for (function, holder) in (0..16).map(|pair| (pair / 4, pair % 4)) {
            if function == holder {
                continue;
            }
            let [this, other] = [function, holder].map(FunctionId::new);
            let found = sums.inlined_into(other, this, &listing);
            let found = found.addresses.iter();
            let found = found.map(|at| (at.address, (at.self_weight, at.total)));
            let expected = inlined_oracle(&samples, function, holder);
            prop_assert_eq!(found.collect::<Weights<_>>(), expected);
        }
    }

    #[test]
    fn lines_and_instructions_equal_a_count_stack_by_stack(samples in samples()) {
        let profile = build(&samples);
        let listing = listing(40);
        for function in 0..4 {
            let summary = of(&profile, function, Some(&listing));
            let (lines, code, elsewhere) = oracle(&samples, function);
            let line = |row: &LineWeights| {
                let line = row.line.map(|line| profile.lines[line].line);
                (line, (row.self_weight, row.total.unwrap()))
            };
            prop_assert_eq!(summary.lines.iter().map(line).collect::<Weights<_>>(), lines);
            let found = summary.code.clone().unwrap_or_default();
            let instructions = found.addresses.iter();
            let instructions = instructions.map(|at| (at.address, (at.self_weight, at.total)));
            prop_assert_eq!(instructions.collect::<Weights<_>>(), code);
            prop_assert_eq!(found.inlined_elsewhere, elsewhere);
        }
    }

    #[test]
    fn self_weights_add_up_and_no_total_passes_the_functions(samples in samples()) {
        let profile = build(&samples);
        let selection = profile.select(EventId::new(0), &Filter::default());
        let flat = inclusive::by_function(&profile, &selection);
        for function in profile.functions.ids() {
            let summary = Sums::of(&profile, &selection).within(function, None);
            let own: u64 = summary.lines.iter().map(|row| row.self_weight).sum();
            prop_assert_eq!(own, flat.self_weight[function]);
            let whole = flat.total[function];
            prop_assert_eq!((summary.self_weight, summary.total), (own, whole));
            for row in &summary.lines {
                let total = row.total.unwrap();
                prop_assert!(row.self_weight <= total && total <= whole);
            }
            if let Some(code) = &summary.code {
                let own: u64 = code.addresses.iter().map(|at| at.self_weight).sum();
                prop_assert_eq!(own, code.self_weight);
                prop_assert!(code.self_weight <= code.total && code.total <= whole);
                for at in &code.addresses {
                    prop_assert!(at.self_weight <= at.total && at.total <= code.total);
                }
            }
        }
    }
}

/// A function of six lines whose code has a loop, a call and an inlined function.
fn example() -> (Profile, Listing, SourceText) {
    let profile = build(&[
        (
            vec![
                (0, Some(9), Some(0x100), false),
                (1, Some(4), Some(0), false),
            ],
            30,
        ),
        (
            vec![(1, Some(5), Some(8), false), (2, Some(1), Some(8), true)],
            50,
        ),
        (
            vec![(1, Some(6), Some(14), false), (3, None, None, false)],
            15,
        ),
        (vec![(1, None, Some(4), false)], 5),
    ]);
    let mut listing = listing(20);
    let names = &mut listing.names;
    let [file, header, inlined, called] =
        ["/src/a.c", "/src/b.h", "f2", "f3"].map(|name| names.intern(name));
    let position = |file, line, inlined| Position {
        file,
        line,
        inlined,
    };
    listing.positions = vec![
        position(file, 4, None),
        position(header, 1, Some(inlined)),
        position(file, 6, None),
    ];
    listing.lines = vec![(file, 2), (file, 4), (file, 5), (file, 6), (file, 12)];
    let code = [
        ("mov    %edi,%eax", Some(0), None),
        ("je     10", None, Some(16)),
        ("imul   %eax,%eax", Some(1), None),
        ("call   3000", Some(2), None),
        ("jmp    0", Some(2), Some(0)),
    ];
    for (instruction, (text, position, jump)) in listing.instructions.iter_mut().zip(code) {
        (instruction.text, instruction.position) = (text.into(), position);
        instruction.jump = jump;
    }
    listing.instructions[3].callee = Some(Callee {
        function: called,
        offset: 0,
    });
    let lines = (1..=12).map(|line| format!("\tline {line};\n")).collect();
    let source = SourceText::new("/moved/a.c".into(), None, lines);
    (profile, listing, source)
}

#[test]
fn the_page_shows_lines_and_code_with_their_weights() {
    let (profile, listing, source) = example();
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = Subject::new(&profile, &selection, Names::Short);
    let look = text::Options {
        width: 80,
        color: false,
    };
    let view = |assembly, context, base| -> AnnotateView {
        let summary = of(&profile, 1, Some(&listing));
        let material = Material {
            code: Some(listing.clone()),
            no_code: None,
            copies: Vec::new(),
            sources: vec![("/src/a.c".into(), Ok(source.clone().into()))],
        };
        let options = Options {
            assembly,
            base,
            context,
            ..Options::default()
        };
        arrange(&subject, summary, material, &options)
    };
    let mut out = Vec::new();
    for view in [
        view(false, 1, Base::Total),
        view(true, usize::MAX, Base::Total),
        view(false, 0, Base::SelfWeight),
        view(true, 0, Base::All),
    ] {
        text::write(&mut out, &view.page(&subject), &look, &Facts).unwrap();
        out.extend(b"---\n");
    }
    let view = view(false, usize::MAX, Base::Total);
    csv::write(&mut out, &view.table(&subject)).unwrap();
    json::annotate::write(&mut out, &subject, &view, &Facts).unwrap();
    let told = String::from_utf8_lossy(&out);
    assert!(golden::holds("lines.annotate.txt", &out), "{told}");
}
