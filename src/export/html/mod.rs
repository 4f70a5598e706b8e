//! One page for a browser, with all that it needs: it asks for nothing, and shows what the views of
//! the command line print.
//!
//! ```text
//!   page.html    the outline, with places for what follows
//!   page.css     the looks, light and dark, down to 400 pixels
//!   *.js         the views, each a file: classic scripts without a framework
//!   data         one JSON document in a script of type application/json, with `<` escaped
//! ```
//!
//! The page's Content-Security-Policy forbids all requests, and all scripts and styles but its own
//! two, which it names by their hashes. Scripts pick, sort and draw; all weights are computed here.
//! Trees, calls and times are columns of numbers, deflated, in base64; where they would take too
//! much room, the lightest frames are left out, and time is divided into fewer parts. Where names
//! take too much, they are shortened; where there are too many functions even so, the page has the
//! heaviest ones, without callers and callees.
//!
//! The document has the field `format`: `proftool-html/1`. Other versions of the program may write
//! it differently, so programs should read `--format json` and not the page.

#[cfg(feature = "compare")]
pub mod changes;
mod drawing;
mod functions;
mod graph;
mod packed;
mod room;
mod source;
mod time;
mod tree;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::analysis::detail::pairs::Pair;
use crate::analysis::threads::timeline::{AskedFunction, Timeline};
use crate::analysis::tree::{CallTree, Collapse, NodeId};
use crate::base::{IdVec, Unit, printable};
use crate::export::Advice;
use crate::profile::FunctionId;
use crate::view::Subject;
use crate::view::annotate::AnnotateView;
use crate::view::flat::Flat;
use crate::view::graph::GraphView;
use crate::view::page::Block;
use crate::view::report::Report;
use crate::view::table::{Cell, Role, Table};

use self::drawing::Drawing;
use self::functions::{FlatRows, Functions, shortened};
use self::graph::Listing;
use self::room::{Few, Grown, Room};
use self::source::{Source, Sources};
use super::json;
use super::naming::PRODUCER;
use super::sentences::{self, Kind};
use super::shown::{self, Shown};

const OUTLINE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPTS: [&str; 13] = [
    include_str!("data.js"),
    include_str!("dom.js"),
    include_str!("table.js"),
    include_str!("flame.js"),
    include_str!("flame_part.js"),
    include_str!("callers.js"),
    include_str!("graph.js"),
    include_str!("drawing.js"),
    include_str!("time.js"),
    include_str!("calls.js"),
    include_str!("source.js"),
    include_str!("source_part.js"),
    include_str!("page.js"),
];

const FORMAT: &str = "proftool-html/1";

// How long names and other texts may be where there is not enough room for all, in bytes: the
// longest that fit. Where the shortest do not, functions are left out.
const NAMES: [usize; 9] = [4096, 2048, 1024, 512, 384, 256, 192, 160, 128];
// How many functions with such names a page has at most.
const MOST_SHORT: usize = 20_000;

/// What is written.
pub struct Document<'a> {
    /// The events, the one that is shown first in front.
    pub events: Vec<EventViews<'a>>,
}

/// Makes an event's time line by a call tree, numbers of its nodes and parts of functions.
pub type MakeTimeline<'a> =
    dyn Fn(CallTree, IdVec<NodeId, u32>, &[AskedFunction]) -> Option<Timeline> + 'a;

/// Hands over functions from within.
pub type EachWithin<'a> = dyn Fn(&mut dyn FnMut(&Within)) + 'a;

/// The views of one event.
pub struct EventViews<'a> {
    /// The samples, and how functions are named.
    pub subject: Subject<'a>,
    /// What was recorded and how reliable that is.
    pub report: &'a Report,
    /// All functions by decreasing self weight.
    pub flat: &'a Flat,
    /// The listing of callers and callees, with all entries.
    pub graph: &'a GraphView<'a>,
    /// What callees contribute to callers.
    pub pairs: &'a [Pair],
    /// Makes the call tree of a degree.
    pub tree: &'a dyn Fn(Collapse) -> CallTree,
    /// Makes weights by time, where times are known: of the samples that end in nodes of the tree
    /// in which every call is a node, by numbers of these.
    pub timeline: &'a MakeTimeline<'a>,
    /// Hands over the hottest functions from within, one by one: each has whole source files.
    pub sources: &'a EachWithin<'a>,
    /// The commands that print the same numbers, by view. One that takes a function has its place
    /// between two parts.
    pub commands: BTreeMap<&'static str, Vec<String>>,
    /// The commands that print the same numbers of a part of time, which has its place between the
    /// last two parts.
    pub part_commands: BTreeMap<&'static str, Vec<String>>,
}

/// A function from within.
pub struct Within {
    /// The function.
    pub function: FunctionId,
    /// By source line, where lines are known.
    pub lines: Option<AnnotateView>,
    /// By instruction, where its machine code was found.
    pub code: Option<AnnotateView>,
}

#[derive(Serialize)]
struct PageData<'a> {
    format: &'static str,
    program: String,
    title: String,
    functions: &'a Functions<'a>,
    events: Vec<EventData<'a>>,
}

#[derive(Serialize)]
struct EventData<'a> {
    name: Cow<'a, str>,
    unit: String,
    is_time: bool,
    is_off_processor: bool,
    total: u64,
    samples: u64,
    facts: Vec<Part>,
    // How reliable the figures are, in one line and in full.
    chip: Option<String>,
    reliability: Vec<Part>,
    flat: FlatRows,
    // None where functions are left out.
    pairs: Option<String>,
    graph: Option<Listing>,
    // From few functions to many.
    drawings: Vec<Drawing>,
    sources: Vec<Source>,
    #[serde(flatten)]
    grown: Grown,
    commands: &'a BTreeMap<&'static str, Vec<String>>,
    part_commands: Option<&'a BTreeMap<&'static str, Vec<String>>>,
}

// A part of the overview.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Heading(String),
    Plain(String),
    Note(String),
    Hint(String),
    // A sentence with weights of the whole time.
    OfWeights(String),
    Table {
        titles: Vec<Cow<'static, str>>,
        keys: Vec<&'static str>,
        roles: Vec<&'static str>,
        rows: Vec<Vec<String>>,
        // Of each row the number of what it is about among the sums by time, from 1 on, or 0.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<usize>,
    },
}

/// Writes the page.
pub fn write(out: &mut dyn Write, document: &Document, advice: &dyn Advice) -> io::Result<()> {
    let script = SCRIPTS.concat();
    let mut rest = OUTLINE;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((place, after)) = after.split_once("}}") else {
            break;
        };
        out.write_all(before.as_bytes())?;
        match place {
            "title" => out.write_all(escaped(&title(document)).as_bytes())?,
            "policy" => out.write_all(policy(&script, STYLE).as_bytes())?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => out.write_all(script.as_bytes())?,
            "data" => data(&mut WithoutTags(out), document, advice)?,
            _ => {}
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

// The command that was recorded, or what the page is.
fn title(document: &Document) -> String {
    let first = document.events.first();
    let command = first.and_then(|event| event.subject.profile.about.command.as_deref());
    match command {
        Some(command) => format!("{} - proftool", shortened(command, NAMES[0])),
        None => "Profile - proftool".to_owned(),
    }
}

fn data(out: &mut dyn Write, document: &Document, advice: &dyn Advice) -> io::Result<()> {
    let Some(first) = document.events.first() else {
        return out.write_all(b"null");
    };
    let (mut functions, mut events, asked) = built(document, first, None, advice)?;
    grow(document, &functions, &mut events, &asked)?;
    let mut excess = room::excess(&(&functions, &events))?;
    let whole = (excess > 0).then(|| functions.clone());
    for longest in NAMES {
        let is_last = longest == NAMES[NAMES.len() - 1];
        if excess == 0 || !is_last && functions.saved(longest) < excess {
            continue;
        }
        // To make the table again takes longer.
        functions.clone_from(
            whole
                .as_ref()
                .expect("there has been excess from the start"),
        );
        functions.shorten(longest);
        events.iter_mut().for_each(|event| event.shorten(longest));
        excess = room::excess(&(&functions, &events))?;
    }
    let mut most = document.events.iter().map(|it| it.flat.rows.len()).max();
    while let Some(fewer) = most.map(|it| MOST_SHORT.min(it / 2)).filter(|&it| it > 0)
        && excess > 0
    {
        // There are too many functions.
        most = Some(fewer);
        let asked;
        (functions, events, asked) = built(document, first, most, advice)?;
        functions.shorten(NAMES[NAMES.len() - 1]);
        events
            .iter_mut()
            .for_each(|event| event.shorten(NAMES[NAMES.len() - 1]));
        grow(document, &functions, &mut events, &asked)?;
        excess = room::excess(&(&functions, &events))?;
    }
    let (name, version) = PRODUCER;
    let page = PageData {
        format: FORMAT,
        program: format!("{name} {version}"),
        title: title(document),
        functions: &functions,
        events,
    };
    json::value(out, &page)
}

// The functions and events of a page but for what grows with the recording, and the parts of
// functions that are asked for by time: of each event with this number of functions, if it has
// more.
fn built<'a>(
    document: &'a Document,
    first: &'a EventViews<'a>,
    most: Option<usize>,
    advice: &dyn Advice,
) -> io::Result<(Functions<'a>, Vec<EventData<'a>>, Vec<Vec<AskedFunction>>)> {
    let ids = shown(document, most);
    let functions = Functions::of(&first.subject, &first.report.charged.owners, ids);
    let mut asked = Vec::new();
    let mut events = Vec::new();
    for event in &document.events {
        let (data, of_event) = event_data(event, &functions, advice)?;
        events.push(data);
        asked.push(of_event);
    }
    Ok((functions, events, asked))
}

fn shown(document: &Document, most: Option<usize>) -> Vec<FunctionId> {
    let events = document.events.iter();
    let of_event = events.flat_map(|event| {
        let rows = event.flat.rows.iter().map(|row| row.function);
        match most {
            Some(most) => room::heaviest(event.flat, most),
            None => rows.chain(event.graph.functions()).collect(),
        }
    });
    of_event.collect()
}

fn grow<'a>(
    document: &'a Document,
    functions: &Functions<'a>,
    events: &mut [EventData<'a>],
    asked: &[Vec<AskedFunction>],
) -> io::Result<()> {
    let (place, has) = (|id| functions.place(id), |id| functions.has(id));
    let mut room = Room::of_page(&(functions, &*events))?;
    let count = events.len();
    for (number, (event, data)) in document.events.iter().zip(events).enumerate() {
        let share = room.share(count - number);
        let few = data
            .flat
            .left_out_most()
            .map(|least| Few { least, has: &has });
        let grown = room::fitted(event, &asked[number], &place, few.as_ref(), share)?;
        room.take(&grown)?;
        data.part_commands = grown.time.is_some().then_some(&event.part_commands);
        data.grown = grown;
    }
    Ok(())
}

// Except for what grows with the recording, and with the parts of functions that are asked for by
// time.
fn event_data<'a>(
    event: &'a EventViews,
    functions: &Functions,
    advice: &dyn Advice,
) -> io::Result<(EventData<'a>, Vec<AskedFunction>)> {
    let selection = event.subject.selection;
    let kind = selection.event();
    let place = |id| functions.place(id);
    let mut sources = Sources::default();
    (event.sources)(&mut |within| {
        if functions.has(within.function) {
            sources.add(event, within, functions, advice);
        }
    });
    let flat = FlatRows::of(&event.subject, event.flat, functions);
    // Callers and callees of few functions would be no call graph.
    let is_whole = flat.left_out_most().is_none();
    let counts = event.subject.profile.counts.as_ref();
    // The title of the page has the command.
    let mut facts = event.report.summary(&event.subject);
    facts.retain(|block| !matches!(block, Block::Heading(_)));
    let pairs = is_whole.then(|| graph::pairs(event.pairs, counts, &place));
    let graph = is_whole.then(|| Listing::of(event.graph, &place));
    let data = EventData {
        name: printable(&kind.name),
        unit: printable(&kind.unit.to_string()).into_owned(),
        is_time: kind.unit == Unit::Nanoseconds,
        is_off_processor: kind.is_off_processor(),
        total: selection.total(),
        samples: selection.samples(),
        facts: parts(&facts, &kind.unit, advice),
        chip: (event.report.how_sure(&event.subject)).map(|it| printable(&it).into_owned()),
        reliability: parts(
            &event.report.reliability(&event.subject),
            &kind.unit,
            advice,
        ),
        flat,
        pairs: pairs.transpose()?,
        graph: graph.transpose()?,
        drawings: match is_whole {
            true => drawing::drawings(event.graph, &place),
            false => Vec::new(),
        },
        sources: sources.sources,
        grown: Grown::default(),
        commands: &event.commands,
        part_commands: None,
    };
    Ok((data, sources.asked))
}

impl EventData<'_> {
    // The middle of texts of more than this number of bytes.
    fn shorten(&mut self, most: usize) {
        let shown = self.sources.iter_mut().flat_map(|it| it.shown_mut());
        for part in shown.chain(&mut self.facts).chain(&mut self.reliability) {
            part.shorten(most);
        }
    }
}

impl Part {
    fn shorten(&mut self, most: usize) {
        match self {
            Part::Heading(text)
            | Part::Plain(text)
            | Part::Note(text)
            | Part::Hint(text)
            | Part::OfWeights(text) => *text = shortened(text, most),
            Part::Table { rows, .. } => {
                let cells = rows.iter_mut().flatten();
                cells.for_each(|text| *text = shortened(text, most));
            }
        }
    }
}

fn parts(blocks: &[Block], unit: &Unit, advice: &dyn Advice) -> Vec<Part> {
    let of_block = |block| parts_of(block, unit, advice);
    blocks.iter().flat_map(of_block).collect()
}

fn parts_of(block: &Block, unit: &Unit, advice: &dyn Advice) -> Vec<Part> {
    let mut parts = Vec::new();
    match block {
        Block::Heading(text) => parts.push(Part::Heading(printable(text).into_owned())),
        Block::Table(table) => parts.push(table_part(table, unit)),
        _ => {}
    }
    // A reader may open any part of the page first, so none relies on what another one says.
    for sentence in sentences::of(block, advice, &mut BTreeSet::new()) {
        let text = printable(&sentence.text).into_owned();
        parts.push(match sentence.kind {
            Kind::Plain => Part::Plain(text),
            Kind::Note => Part::Note(text),
            Kind::Hint => Part::Hint(text),
        });
    }
    parts
}

fn table_part(table: &Table, unit: &Unit) -> Part {
    let role = |role: Role| match role {
        Role::Figure | Role::Spare | Role::Bound => "figure",
        Role::Heat => "heat",
        Role::Name => "name",
        Role::Code => "code",
        Role::Aside | Role::Word => "aside",
    };
    let text = |cell: &Cell| shown::before(cell, usize::MAX) + &Shown::of(cell, unit).whole();
    let row = |cells: &Vec<Cell>| cells.iter().map(text).collect();
    Part::Table {
        titles: table.columns.iter().map(shown::title).collect(),
        keys: table.columns.iter().map(|column| column.key).collect(),
        roles: (table.columns.iter())
            .map(|column| role(column.role))
            .collect(),
        rows: table.rows.iter().map(row).collect(),
        parts: Vec::new(),
    }
}

// Nothing but this script and this style.
fn policy(script: &str, style: &str) -> String {
    format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}

// The hash of a script or style, as a Content-Security-Policy names it (CSP 3, section 2.3.1).
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

// `<` becomes `\u003c`: in JSON it stands in strings only, and there no tag can begin then, nor a
// comment, in which a browser would look for the end of a script elsewhere.
struct WithoutTags<'a>(&'a mut dyn Write);

impl Write for WithoutTags<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, part) in bytes.split(|&byte| byte == b'<').enumerate() {
            if at > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
