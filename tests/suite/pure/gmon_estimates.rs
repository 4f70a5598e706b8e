//! Counted calls without stacks: what every view says of totals is one and the same estimate.

use proftool::analysis;
use proftool::analysis::detail::Rule;
use proftool::analysis::graph::{self, Entry, Model};
use proftool::analysis::inclusive::{self, Basis};
use proftool::analysis::owners::Owners;
use proftool::analysis::report::Summary;
use proftool::analysis::{cycles, function};
use proftool::export::{Facts, json};
use proftool::view::{
    Names, Subject, cycles as cycles_view, detail as detail_view, flat, graph as graph_view, report,
};
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};
use serde_json::Value;

use crate::pure::propagation::{Built, Parts};
use crate::support::laws;

/// Ticks of functions and counted calls, as a gmon.out has them.
fn parts() -> impl Strategy<Value = Parts> {
    (2..10usize).prop_flat_map(|functions| {
        let name = |function: usize| match function {
            0 => "main".to_owned(),
            _ => format!("f{function}"),
        };
        (
            vec((0..functions, 1..60u64), 1..12),
            vec((0..functions, 0..functions, 0..9u64), 1..20),
        )
            .prop_map(move |(ticks, calls)| Parts {
                stacks: ticks
                    .into_iter()
                    .map(|(function, ticks)| (vec![name(function)], ticks))
                    .collect(),
                calls: calls
                    .into_iter()
                    .map(|(from, to, calls)| (Some(name(from)), name(to), calls))
                    .collect(),
                code: Vec::new(),
            })
    })
}

fn subject(built: &Built) -> Subject<'_> {
    Subject::new(&built.profile, &built.selection, Names::Full)
}

fn document(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Value {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn figures(built: &Built) -> graph::Summary {
    graph::Summary::of(&built.profile, &built.selection, &graph::Options::default())
}

fn flat_document(built: &Built) -> Value {
    let subject = subject(built);
    let summary = analysis::flat::Summary::of(&built.profile, &built.selection);
    let flat = flat::arrange(&subject, &summary, &flat::Options::default());
    document(|out| json::flat::write(out, &subject, &flat, &Facts))
}

fn report_document(built: &Built) -> Value {
    let subject = subject(built);
    let options = report::Options::default();
    let owners = Owners::of_profile(subject.profile, &[]);
    let summary = Summary::of(subject.profile, subject.selection, owners, false);
    let report = report::arrange(&subject, &summary, &options);
    document(|out| json::report::write(out, &subject, &report, &Facts))
}

fn detail_document(built: &Built, name: &str) -> Value {
    let subject = subject(built);
    let function = built.function(name);
    let summary = function::Summary::of(&built.profile, &built.selection, function, Rule::Strict);
    let options = detail_view::Options::default();
    let view = detail_view::arrange(&subject, summary, &options);
    document(|out| json::detail::write(out, &subject, &view, &Facts))
}

fn rows<'a>(document: &'a Value, key: &str) -> &'a [Value] {
    document[key].as_array().unwrap()
}

proptest! {
    #![proptest_config(laws::cases(256))]

    #[test]
    fn without_stacks_every_view_has_the_totals_that_graph_propagates(parts in parts()) {
        let built = parts.build();
        let subject = subject(&built);
        let summary = figures(&built);
        let view = graph_view::arrange(&subject, &summary, &graph_view::Options::default());
        prop_assert_eq!(summary.model, Model::Propagated);
        let all = built.selection.total() as f64;
        let weights = inclusive::by_function(&built.profile, &built.selection);
        let is_any = built.profile.counts.as_ref().unwrap().are_any();
        prop_assert_eq!(is_any, weights.basis != Basis::Nothing);
        for id in view.functions() {
            let (own, total) = (weights.self_weight[id] as f64, summary.total(Entry::Function(id)));
            prop_assert!(own <= total + 1e-6 && total <= all + 1e-6, "{own} {total} {all}");
        }
        let (flat, report) = (flat_document(&built), report_document(&built));
        let lists = [&flat, &report].map(|document| rows(document, "functions"));
        for row in lists.into_iter().flatten().chain(rows(&report, "by_total")) {
            let name = row["name"].as_str().unwrap();
            prop_assert!(row["total_max"].is_null());
            if !is_any {
                prop_assert!(row["total"].is_null());
                continue;
            }
            // To the last digit, as a reader may compare views; serde_json reads numbers back to
            // within one unit of it.
            let total = summary.total(Entry::Function(built.function(name)));
            let told = row["total"].as_f64().unwrap();
            prop_assert!((told - total).abs() <= total.abs() * 4.0 * f64::EPSILON, "{told} {total}");
            prop_assert_eq!(&row["model"], "propagated");
        }
        if !is_any {
            return Ok(());
        }
        // Each function with time or a total is in the list, and none stands for another.
        let listed = view.functions().filter(|&id| summary.total(Entry::Function(id)).round() > 0.0);
        prop_assert_eq!(listed.count(), rows(&report, "by_total").len());
    }

    #[test]
    fn an_estimated_detail_adds_up(parts in parts()) {
        let built = parts.build();
        if !built.profile.counts.as_ref().unwrap().are_any() {
            return Ok(());
        }
        let subject = subject(&built);
        let summary = figures(&built);
        let view = graph_view::arrange(&subject, &summary, &graph_view::Options::default());
        for id in view.functions() {
            let name = built.name(id);
            let document = detail_document(&built, name);
            let function = &document["function"];
            let number = |value: &Value| value.as_f64().unwrap();
            let sum = |key: &str| -> f64 {
                rows(&document, key).iter().map(|row| number(&row["weight"])).sum()
            };
            let total = summary.total(Entry::Function(id));
            let near = |value: f64| (value - total).abs() <= 12.0;
            prop_assert!((number(&function["total"]) - total).abs() <= 0.5);
            prop_assert!(near(sum("callers") + number(&function["root"])), "{document}");
            prop_assert!(near(sum("descendants") + number(&function["self"])), "{document}");
            prop_assert!(function["total_max"].is_null() && document["rule"].is_null());
            prop_assert!(rows(&document, "depths").is_empty());
        }
    }
}

#[test]
fn without_stacks_no_depth_is_shown() {
    let built = Parts::default()
        .stacks("main 15\nturn 25\nleaf 30\nself 1\n")
        .calls("- main 1\nmain turn 5\nturn main 4\nturn leaf 5\nmain self 1\nself self 7\n")
        .build();
    let subject = subject(&built);
    let options = graph::Options::default();
    let summary = cycles::Summary::of(&built.profile, &built.selection, &options);
    let view = cycles_view::arrange(&subject, &summary, &cycles_view::Options::default());
    let document = document(|out| json::cycles::write(out, &subject, &view, &Facts));
    assert!(document["cycles"][0]["depth"].is_null());
    assert!(document["recursive"][0]["deepest"].is_null());
    assert!(document["recursive"][0]["mean"].is_null());
    let mut text = Vec::new();
    let options = proftool::export::text::Options {
        width: 100,
        color: false,
    };
    proftool::export::text::write(&mut text, &view.page(&subject), &options, &Facts).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains("deepest"), "{text}");
}

/// The call of main by nobody who is known is what an input assumes.
#[test]
fn a_member_of_a_cycle_has_a_total_by_where_the_cycle_is_entered() {
    let built = Parts::default()
        .stacks("main 15\nturn 25\nleaf 30\n")
        .calls("- main 1\nmain turn 5\nturn main 4\nturn leaf 5\n")
        .build();
    let flat = flat_document(&built);
    let total = |name: &str| {
        let mut rows = rows(&flat, "functions").iter();
        rows.find(|row| row["name"] == name).unwrap()["total"].clone()
    };
    assert_eq!(["main", "turn", "leaf"].map(total), [70, 55, 30]);
}

#[test]
fn without_counts_a_total_is_that_of_the_stacks() {
    let built = Parts::default().stacks("main;a 3\nmain 1\n").build();
    let flat = flat_document(&built);
    for row in rows(&flat, "functions") {
        assert!(row.get("model").is_none());
        assert_eq!(row["total"], row["total_max"]);
    }
}
