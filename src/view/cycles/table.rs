//! The cycles as a table for programs.

use super::CyclesView;
use crate::analysis::graph::Entry;
use crate::profile::FunctionId;
use crate::view::table::{Cell, Column, Role, Table};
use crate::view::{Subject, label, range};

impl CyclesView<'_> {
    /// The members and the arcs of all cycles, a row each.
    pub fn table(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("cycle", "cycle", Role::Figure),
            Column::new("row", "row", Role::Aside),
            Column::new("caller", "caller", Role::Name),
            Column::new("function", "function", Role::Name),
            Column::new("module", "module", Role::Aside),
            Column::new("weight", "weight", Role::Figure),
            Column::new("self", "self", Role::Figure),
            Column::new("outside", "outside", Role::Figure),
            Column::new("estimate", "fonseca", Role::Figure),
            label::column_of_caller(),
            label::column(),
            Column::new("total_max", "total_max", Role::Figure),
        ]);
        let mut about: Vec<[Option<FunctionId>; 2]> = Vec::new();
        let plain = |id: FunctionId| Cell::Text(subject.plain_name(id).into_owned());
        let text = |text: &str| Cell::Text(text.to_owned());
        for (place, &cycle) in self.order.iter().enumerate() {
            let number = Cell::Count(place as u64 + 1);
            for &id in &self.summary.graph.cycles.members()[cycle] {
                let portion = self.summary.graph.portion(Entry::Function(id));
                about.push([None, Some(id)]);
                table.rows.push(vec![
                    number.clone(),
                    text("member"),
                    Cell::Nothing,
                    plain(id),
                    text(subject.module(id)),
                    Cell::Weight(self.summary.graph.total(Entry::Function(id)).round() as u64),
                    Cell::Weight(portion.self_weight.round() as u64),
                    Cell::Weight(portion.children.round() as u64),
                    Cell::Weight(self.summary.estimate.attribution.total(id).round() as u64),
                    Cell::Nothing,
                    text(self.graph.name(id)),
                    (self.summary.graph.total_max(Entry::Function(id)))
                        .map_or(Cell::Nothing, range::weight),
                ]);
            }
            let (entries, inside) = (self.summary.entries(cycle), self.summary.inside(cycle));
            for (what, arcs) in [
                ("entry", &entries),
                ("inside", &inside),
                ("cut", &self.summary.breaking[cycle].arcs),
            ] {
                for &id in arcs {
                    let arc = &self.summary.graph.graph.arcs()[id];
                    about.push([Some(arc.from), Some(arc.to)]);
                    table.rows.push(vec![
                        number.clone(),
                        text(what),
                        plain(arc.from),
                        plain(arc.to),
                        text(subject.module(arc.to)),
                        Cell::Weight(self.summary.weight(id)),
                        Cell::Nothing,
                        Cell::Nothing,
                        Cell::Nothing,
                        text(self.graph.name(arc.from)),
                        text(self.graph.name(arc.to)),
                        Cell::Nothing,
                    ]);
                }
            }
        }
        label::with_addresses(table, subject, label::OfCallers::Shown, about)
    }
}
