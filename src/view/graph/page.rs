//! The listing as a page for people.

use std::cmp::Reverse;

use super::GraphView;
use super::entry::Line;
use crate::analysis::graph::Model;
use crate::callgraph::CallArc;
use crate::names::Mark;
use crate::view::page::{Block, HiddenBy, HiddenRows, Page};
use crate::view::table::Call;
use crate::view::{Subject, basis, caveats, flat, label, number, range, rows};

/// How many arcs that were left out are named.
const NAMED: usize = 5;

impl GraphView<'_> {
    /// The page with the entries.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = self.heading(subject);
        let mut legend = None;
        if !self.listed.is_empty() {
            let listing = self.listing(subject);
            legend = range::legend(subject.profile.rows, range::cells(&listing));
            blocks.push(Block::Space);
            blocks.push(Block::Table(listing));
        }
        if self.unlisted > 0 {
            blocks.push(Block::Space);
            let noun = ("entry", "entries");
            let by = HiddenBy::LimitOrShare;
            blocks.extend(HiddenRows::block(self.unlisted, noun, by));
        }
        let mut lines = self.listed.iter().flat_map(|&entry| self.lines(entry));
        let has_marks = lines.any(|line| line.is_inferred);
        blocks.extend(legend);
        blocks.extend(rows::merged(subject.profile.rows));
        blocks.extend(rows::unknown(subject, self.functions()));
        blocks.extend(label::legend(has_marks));
        let mut lines = self.listed.iter().flat_map(|&entry| self.lines(entry));
        let is_least = |line: Line| line.called.is_some_and(|called| called.is_least);
        blocks.extend(flat::least_legend(lines.any(is_least)));
        blocks.extend(caveats::foot_of(subject));
        Page {
            unit: subject.selection.event().unit.clone(),
            blocks: range::settled(subject, blocks),
        }
    }

    /// What the figures are, and what was left out.
    pub(in crate::view) fn heading(&self, subject: &Subject) -> Vec<Block> {
        let counted = subject.profile.counts.is_some();
        let mut blocks = vec![Block::Line(subject.headline())];
        let model = match (self.summary.model, counted) {
            (Model::Measured, _) => {
                let row = subject.profile.rows.name();
                &format!(
                    "measured from whole stacks; a sample counts once per {row}, arc and cycle"
                )
            }
            (Model::Propagated, true) => basis::ESTIMATED,
            (Model::Propagated, false) => {
                "propagated by stack weights, as there are no call counts: same as measured"
            }
            (Model::Fonseca, true) => {
                "fonseca: gprof's estimate by calls, propagated within cycles from their entries"
            }
            (Model::Fonseca, false) => {
                "fonseca: an estimate by arc weights, propagated within cycles from their entries"
            }
        };
        blocks.push(Block::Line(model.into()));
        let error = self.summary.attribution.standard_error;
        blocks.extend(basis::sampled("totals", error, subject.selection.total()));
        let cut = self
            .summary
            .cycles
            .cut()
            .iter()
            .map(|&id| &self.summary.graph.arcs()[id]);
        let (interrupts, weak): (Vec<&CallArc>, Vec<&CallArc>) =
            cut.partition(|arc| arc.is_interrupt);
        self.tell(&mut blocks, "interrupts (not calls)", &interrupts);
        self.tell(
            &mut blocks,
            "ignored for cycles (below the cycle cut)",
            &weak,
        );
        let mut gaps: Vec<&CallArc> = self
            .summary
            .graph
            .arcs()
            .iter()
            .filter(|arc| arc.is_gap())
            .collect();
        gaps.sort_by_key(|arc| (Reverse(arc.weight), arc.pair()));
        self.tell(&mut blocks, "not calls (frames are missing between)", &gaps);
        let left_out: Vec<&CallArc> = self.summary.left_out.iter().collect();
        self.tell(&mut blocks, "left out on request", &left_out);
        blocks
    }

    fn tell(&self, blocks: &mut Vec<Block>, what: &str, arcs: &[&CallArc]) {
        if arcs.is_empty() {
            return;
        }
        let named = arcs.iter().take(NAMED).map(|arc| {
            let samples = match (arc.samples, arc.calls) {
                (0, Some(1)) => "1 call".to_owned(),
                (0, Some(calls)) => format!("{} calls", number::grouped(calls)),
                (1, _) => "1 sample".to_owned(),
                (samples, _) => format!("{} samples", number::grouped(samples)),
            };
            let to = self.label(arc.to).with(Mark::Remark(samples));
            Call::new(self.label(arc.from), to)
        });
        let calls = named.collect();
        let more = arcs.len().checked_sub(NAMED).filter(|&more| more > 0);
        blocks.push(Block::Calls {
            before: format!("{what}:"),
            calls,
            after: more.map_or(String::new(), |more| {
                format!(" and {} more", number::grouped(more as u64))
            }),
        });
    }
}
