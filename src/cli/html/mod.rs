//! The page for a browser: `proftool export --to html` and `proftool report --html`.

mod commands;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use proftool::analysis::annotate::Sums;
use proftool::analysis::detail::pairs::{self, Pair};
use proftool::analysis::graph::Summary as GraphSummary;
use proftool::analysis::report::Summary as ReportSummary;
use proftool::analysis::threads::timeline::{self, Asked, AskedFunction, Timeline};
use proftool::analysis::tree::{CallTree, Collapse, NodeId, Stacks};
use proftool::base::IdVec;
use proftool::export::html::{self, Document, EventViews, Within};
use proftool::input::{Audience, MachineCode, Syntax};
use proftool::profile::{PathId, Profile, Selection};
use proftool::view::annotate;
use proftool::view::flat::{self, Flat};
use proftool::view::graph::{self, GraphView};
use proftool::view::report::{self, Report};
use proftool::view::{Names, Subject};

use super::annotate::Looking;
use super::answer;
use super::failure;
use super::query::Query;
use super::query::open::Needs;
use super::sources::{self, SourceChoice};

// The largest total that scripts compute with exactly.
const LARGEST: u64 = 1 << 53;

pub fn write(
    query: &Query,
    names: Names,
    output: Option<&Path>,
    (source, strict): (Option<&SourceChoice>, bool),
) -> anyhow::Result<ExitCode> {
    answer::output::check(output, &query.inputs())?;
    let profile = query.open(Needs {
        ranges: true,
        times: true,
        ..Needs::ADDRESSES
    })?;
    query.refuse_without_stacks(&profile, "a page")?;
    let selections = query.selections(&profile)?;
    if selections.iter().any(|it| it.1.total() > LARGEST) {
        failure::line("warning", "browsers round totals above 2^53");
    }
    let summaries: Vec<Computed> = selections
        .iter()
        .map(|(_, selection)| Computed::of(query, &profile, selection))
        .collect();
    let subjects = selections
        .iter()
        .map(|(_, selection)| Subject::new(&profile, selection, names));
    let arranged: Vec<Arranged> = (subjects.zip(&summaries))
        .map(|(subject, computed)| Arranged::of(subject, computed))
        .collect();
    let trees: Vec<_> = (arranged.iter())
        .map(|it| {
            let Subject {
                profile, selection, ..
            } = it.subject;
            move |degree: Collapse| Stacks::new(profile, selection).top_down(degree)
        })
        .collect();
    let timelines: Vec<_> = (selections.iter().zip(&summaries))
        .map(|((event, _), computed)| {
            let (profile, cycles) = (&profile, &computed.graph.cycles);
            move |tree: CallTree, numbers: IdVec<NodeId, u32>, functions: &[AskedFunction]| {
                let event = (*event)?;
                // Nothing ends in a node at a time then.
                profile.times.as_ref()?;
                // The tree is gone before anything is summed up: both are large.
                let ends = &ends(profile, tree, numbers);
                let rows = query.times(profile, event)?;
                let asked = Asked { ends, functions };
                Some(Timeline::of(profile, &rows, cycles, &asked))
            }
        })
        .collect();
    let reading = query.reading(Needs::STACKS);
    let code = &MachineCode::new(&profile, Syntax::Att, &reading);
    let left_out = &RefCell::new(BTreeMap::new());
    let sources: Vec<_> = (arranged.iter())
        .map(|it| {
            let symfs = reading.symfs.as_deref();
            move |show: &mut dyn FnMut(&Within)| {
                let mut looking = Looking {
                    // Of all that is shown of a function, what is slow is done once.
                    sums: &Sums::of(it.subject.profile, it.subject.selection),
                    code,
                    sources: sources::files(source, symfs, Audience::File),
                    owner: sources::owner(query.file()),
                    left_out: left_out.take(),
                    with_inlined: true,
                    with_copies: false,
                };
                within(it, &mut looking, show);
                left_out.replace(looking.left_out);
            }
        })
        .collect();
    let events = arranged.iter().zip(&summaries);
    let events = events.enumerate().map(|(number, (it, computed))| {
        // The first one is shown by default.
        let is_named = number > 0 || selections.len() > 1;
        let event = is_named.then_some(&*it.subject.selection.event().name);
        EventViews {
            subject: it.subject,
            report: &it.report,
            flat: &it.flat,
            graph: &it.graph,
            pairs: &computed.pairs,
            tree: &trees[number],
            timeline: &timelines[number],
            sources: &sources[number],
            commands: commands::of_all(query, event),
            part_commands: commands::of_a_part(query, event),
        }
    });
    let document = Document {
        events: events.collect(),
    };
    let situation = query.shown_by("report");
    answer::output::write_file(output, &query.inputs(), |out| {
        html::write(out, &document, &situation)
    })?;
    let caveats = sources::with_left_out(&profile.caveats, &left_out.borrow());
    answer::warn(&caveats, &query.shown_by("export"));
    answer::strictly(strict, &caveats)
}

// The numbers of the nodes that the samples of each path end in.
fn ends(
    profile: &Profile,
    tree: CallTree,
    numbers: IdVec<NodeId, u32>,
) -> IdVec<PathId, Option<u32>> {
    let nodes = timeline::nodes_of_paths(profile, &tree);
    drop(tree);
    let number = |node: &Option<NodeId>| node.map(|node| numbers[node]);
    let ends: Vec<Option<u32>> = nodes.iter().map(number).collect();
    ends.into()
}

// The rows of the report whose doubts the page states.
const ROWS: usize = 10;

struct Computed {
    report: ReportSummary,
    graph: GraphSummary,
    pairs: Vec<Pair>,
}

impl Computed {
    fn of(query: &Query, profile: &Profile, selection: &Selection) -> Computed {
        let options = Default::default();
        Computed {
            report: ReportSummary::of(profile, selection, query.owners(profile), false),
            graph: GraphSummary::of(profile, selection, &options),
            pairs: pairs::of_all(profile, selection),
        }
    }
}

struct Arranged<'a> {
    subject: Subject<'a>,
    report: Report,
    flat: Flat,
    graph: GraphView<'a>,
}

impl<'a> Arranged<'a> {
    fn of(subject: Subject<'a>, computed: &'a Computed) -> Arranged<'a> {
        let options = report::Options {
            limit: Some(ROWS),
            ..report::Options::default()
        };
        Arranged {
            report: report::arrange(&subject, &computed.report, &options),
            flat: flat::arrange(&subject, &computed.report.flat, &flat::Options::default()),
            graph: graph::arrange(&subject, &computed.graph, &graph::Options::default()),
            subject,
        }
    }
}

// How many functions are shown from within: those with the most self weight.
const SOURCES: usize = 8;
// The rows of each that have weight.
const LINES: usize = 40;
// The rows around each of them.
const CONTEXT: usize = 2;

// Shows the hottest functions from within, as far as their lines or their code are known.
fn within(arranged: &Arranged, looking: &mut Looking, show: &mut dyn FnMut(&Within)) {
    let options = |assembly| annotate::Options {
        limit: Some(LINES),
        context: CONTEXT,
        assembly,
        ..annotate::Options::default()
    };
    let (lines, assembly) = (options(false), options(true));
    let hottest = arranged.flat.rows.iter().take(SOURCES);
    for row in hottest.filter(|row| row.self_weight > 0) {
        let subject = &arranged.subject;
        let (summary, material) = looking.found(subject, row.function);
        let code = annotate::arrange(subject, summary.clone(), material.clone(), &assembly);
        let has_lines = !code.files.is_empty();
        if has_lines || code.code.is_some() {
            show(&Within {
                function: row.function,
                lines: has_lines.then(|| annotate::arrange(subject, summary, material, &lines)),
                code: code.code.is_some().then_some(code),
            });
        }
    }
}
