//! The frames, and the stubs on them.

use std::io::{self, Write};

use super::colors::{Colors, SHADES, hue};
use super::{CHAR, MARGIN, PLOT, Picture, ROW, class, cut, escaped};
use crate::analysis::tree::{Direction, FlameFrame, Node, NodeId};
use crate::base::{Event, Unit, printable};
use crate::export::shown::written;
use crate::names::{Labels, Written, path_breaks};
use crate::profile::FunctionKind;
use crate::view::changes::ChangedFrames;
use crate::view::label;
use crate::view::{Subject, number};

// Thousandths of a pixel.
const PARTS: u64 = 1000;
// Left of the text of a frame.
const PADDING: u64 = 3;
// The narrowest stub that is drawn, in thousandths of a pixel.
const STUB: u64 = 4 * PARTS;

// The fewest characters that are worth writing.
const NARROWEST: usize = 3;
// With fewer characters a name is cut at its end.
const NARROW: usize = 12;

pub(super) struct Frames<'a> {
    pub subject: &'a Subject<'a>,
    pub picture: &'a Picture<'a>,
    pub colors: Colors,
    // What is shown in place of modules and self weights.
    pub changes: Option<&'a ChangedFrames>,
    // The names in titles.
    pub names: Labels,
    // Those on frames.
    pub short: Labels,
}

// A part of a row, in thousandths of a pixel.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    end: u64,
}

impl Frames<'_> {
    pub fn levels(&self) -> u32 {
        // A stub stands on the frame that it is called from.
        let of_stubs = self.picture.layout.frames.iter().flat_map(|frame| {
            let stubs = self.stubs(frame);
            stubs
                .into_iter()
                .map(|(id, _)| self.picture.tree.nodes.at(id).level)
        });
        of_stubs.fold(self.picture.layout.depth, u32::max)
    }

    pub fn has(&self, is: impl Fn(&Node) -> bool) -> bool {
        let frames = self.picture.layout.frames.iter();
        frames
            .into_iter()
            .any(|frame| is(&self.picture.tree.nodes.at(frame.node)))
    }

    pub fn has_stubs(&self) -> bool {
        let frames = self.picture.layout.frames.iter();
        frames
            .into_iter()
            .any(|frame| !self.stubs(frame).is_empty())
    }

    pub fn is_mark(&self, node: &Node) -> bool {
        self.subject.profile.functions[node.function].kind == FunctionKind::Mark
    }

    pub fn write(&self, out: &mut dyn Write, top: u64) -> io::Result<()> {
        let levels = self.levels();
        let y = |level: u32| {
            let row = match self.picture.direction {
                Direction::TopDown => levels - level,
                Direction::BottomUp => level - 1,
            };
            top + u64::from(row) * ROW
        };
        // The colour of the last frame of each level.
        let mut last: Vec<Option<(usize, usize)>> = vec![None; levels as usize + 1];
        for frame in &self.picture.layout.frames {
            let node = self.picture.tree.nodes.at(frame.node);
            let (hue, mut shade) = match self.changes {
                Some(changes) => (hue(changes.functions[node.function].tint), 0),
                None => self.colors.of(self.subject.profile, node.function),
            };
            if last[node.level as usize] == Some((hue, shade)) {
                shade = (shade + 1) % SHADES;
            }
            last[node.level as usize] = Some((hue, shade));
            self.frame(out, frame, &node, y(node.level), (hue, shade))?;
            for (id, span) in self.stubs(frame) {
                let stub = self.picture.tree.nodes.at(id);
                self.stub(out, &stub, span, y(stub.level))?;
            }
        }
        Ok(())
    }

    // Where a part of the total is.
    fn span(&self, start: u64, weight: u64) -> Span {
        let total = u128::from(self.picture.layout.total.max(1));
        let place = |weight: u64| {
            // Both edges are rounded, so that frames next to each other have one edge.
            let parts = u128::from(weight) * u128::from(PLOT * PARTS);
            ((parts + total / 2) / total) as u64
        };
        Span {
            start: place(start),
            end: place(start.saturating_add(weight)),
        }
    }

    fn frame(
        &self,
        out: &mut dyn Write,
        frame: &FlameFrame,
        node: &Node,
        y: u64,
        (hue, shade): (usize, usize),
    ) -> io::Result<()> {
        let span = self.span(frame.start, frame.weight);
        let name = self.names.of(node.function);
        let short = self.short.of(node.function);
        let is_inferred = label::is_inferred(node.inferred, node.weight());
        let class = if self.is_mark(node) {
            "mark".to_owned()
        } else if is_inferred {
            format!("i{hue}")
        } else {
            class(hue, shade)
        };
        out.write_all(b"<g")?;
        names(out, name, "", short)?;
        write!(
            out,
            "><title>{}{}</title><rect class=\"{class}\" x=\"{}\" y=\"{y}\" width=\"{}\" \
             height=\"{}\"/>",
            escaped(name),
            escaped(&self.behind_name(frame, node, is_inferred)),
            pixels(span.start + MARGIN * PARTS),
            pixels(span.end - span.start),
            ROW - 1,
        )?;
        self.text(out, &written(&self.short.label(node.function)), span, y, "")?;
        out.write_all(b"</g>\n")
    }

    // What stands behind the name in a title.
    fn behind_name(&self, frame: &FlameFrame, node: &Node, is_inferred: bool) -> String {
        let Some(changes) = self.changes else {
            return format!(" ({})", self.figures(frame, node, is_inferred));
        };
        let share = number::percent(frame.weight, self.picture.layout.total, 2);
        let mut text = match &*changes.functions[node.function].text {
            "" => ": ".to_owned(),
            text => format!(": {text}; here "),
        };
        text.push_str(&format!("{share}%"));
        text + &self.origin(node, is_inferred)
    }

    // Where a frame is from: its module, and how it is known.
    fn origin(&self, node: &Node, is_inferred: bool) -> String {
        let mut text = String::new();
        let module = self.subject.module(node.function);
        if !module.is_empty() && !self.is_mark(node) {
            text.push_str(&format!("; {module}"));
        }
        if node.inlined {
            text.push_str("; inlined");
        }
        if is_inferred {
            text.push_str("; restored from the code");
        }
        text
    }

    // What stands there without changes, in parentheses, of which it has none itself.
    fn figures(&self, frame: &FlameFrame, node: &Node, is_inferred: bool) -> String {
        let share = number::percent(frame.weight, self.picture.layout.total, 2);
        let mut text = format!(
            "{}, {share}%",
            amount(frame.weight, self.subject.selection.event())
        );
        if self.picture.direction == Direction::TopDown {
            let unit = &self.subject.selection.event().unit;
            text.push_str(&format!("; self {}", figure(frame.own, unit)));
        }
        if frame.weight < node.weight() {
            let passed = figure(node.weight(), &self.subject.selection.event().unit);
            text.push_str(&format!("; passed by {passed} with collapsed calls"));
        }
        text.push_str(&self.origin(node, is_inferred));
        text.replace('(', "[").replace(')', "]")
    }

    // The collapsed calls of a frame's function, in the part of the row above it that nothing else
    // is in.
    fn stubs(&self, frame: &FlameFrame) -> Vec<(NodeId, Span)> {
        let nodes = &self.picture.tree.nodes;
        let stubs: Vec<NodeId> = self
            .picture
            .tree
            .children(frame.node)
            .filter(|&id| nodes.at(id).stub.is_some())
            .collect();
        if stubs.is_empty() {
            return Vec::new();
        }
        let whole = self.span(frame.start, frame.weight);
        let free = self.span(frame.start + (frame.weight - frame.own), frame.own);
        let end = whole.end.min(free.end);
        let each = end.saturating_sub(free.start) / stubs.len() as u64;
        if each < STUB {
            return Vec::new();
        }
        let place = |(index, id)| {
            let start = free.start + each * index as u64;
            let end = start + each;
            (id, Span { start, end })
        };
        stubs.into_iter().enumerate().map(place).collect()
    }

    fn stub(&self, out: &mut dyn Write, stub: &Node, span: Span, y: u64) -> io::Result<()> {
        let share = number::percent(stub.passes, self.picture.layout.total, 2);
        let name = self.names.of(stub.function);
        let figures = amount(stub.passes, self.subject.selection.event());
        let [left, right] = [span.start, span.end].map(|x| pixels(x + MARGIN * PARTS));
        let bottom = y + ROW - 1;
        let text = format!("{}…", self.short.of(stub.function));
        out.write_all(b"<g")?;
        names(out, name, "...", &text)?;
        let name = escaped(name);
        write!(
            out,
            "><title>{name}... ({})</title><polygon class=\"stub\" \
             points=\"{left},{y} {right},{y} {right},{bottom} {left},{bottom}\"/>",
            escaped(&format!("collapsed call, passed by {figures}, {share}%")),
        )?;
        self.text(out, &printable(&text).into(), span, y, " class=\"on-stub\"")?;
        out.write_all(b"</g>\n")
    }

    // As much of a name as there is room for.
    fn text(
        &self,
        out: &mut dyn Write,
        name: &Written,
        span: Span,
        y: u64,
        class: &str,
    ) -> io::Result<()> {
        let room = (span.end - span.start).saturating_sub(2 * PADDING * PARTS);
        let room = (room as f64 / PARTS as f64 / CHAR) as usize;
        if room < NARROWEST {
            return Ok(());
        }
        let text = match room {
            0..NARROW => cut(&name.whole(), room).into_owned().into(),
            _ => name.shortened(room),
        };
        let x = pixels(span.start + (MARGIN + PADDING) * PARTS);
        let y = y + ROW - 5;
        write!(
            out,
            "<text{class} x=\"{x}\" y=\"{y}\">{}</text>",
            escaped(&text)
        )
    }
}

// What the script has to know of a name, in UTF-16 units: how long it is in the title, what stands
// on the frame where that is another one, and where the start of that may be left out.
fn names(out: &mut dyn Write, name: &str, behind: &str, shown: &str) -> io::Result<()> {
    let units = |text: &str| text.encode_utf16().count();
    let title = printable(name);
    write!(out, " data-k=\"{}\"", units(&title) + units(behind))?;
    let shown = printable(shown);
    if shown != title {
        write!(out, " data-n=\"{}\"", escaped(&shown))?;
    }
    let breaks = path_breaks(&shown);
    if breaks.is_empty() {
        return Ok(());
    }
    let places: Vec<String> = breaks
        .into_iter()
        .map(|at| units(&shown[..at]).to_string())
        .collect();
    write!(out, " data-b=\"{}\"", places.join(" "))
}

// `66.08`: no more digits than it takes.
fn pixels(parts: u64) -> String {
    let (whole, part) = (parts / PARTS, parts % PARTS);
    if part == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{part:03}");
    text.trim_end_matches('0').to_owned()
}

// All digits of counts, time as on pages.
fn figure(weight: u64, unit: &Unit) -> String {
    match unit {
        Unit::Nanoseconds => number::weight(weight, unit),
        Unit::Samples | Unit::Count(_) => number::grouped(weight),
    }
}

// A weight and what it is of.
fn amount(weight: u64, event: &Event) -> String {
    let figure = figure(weight, &event.unit);
    match &event.unit {
        Unit::Nanoseconds => figure,
        Unit::Samples if weight == 1 => format!("{figure} sample"),
        Unit::Samples => format!("{figure} samples"),
        Unit::Count(what) => format!("{figure} {what}"),
    }
}
