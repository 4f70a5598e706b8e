//! Where the functions, cycles and calls of a drawing of the call graph are.
//!
//! ```text
//!   ┌──────┐         each function is a box, callers above callees
//!   │ main │
//!   └──┬───┘
//!  ┌ cycle 1 ──────┐ a cycle is one node of the graph, and a box around its members,
//!  │ ┌────▼───┐    │ which are laid out by themselves
//!  │ │ parse  │    │
//!  │ └─┬────▲─┘    │
//!  │ ┌─▼────┴─┐    │
//!  │ │ expr   │    │
//!  │ └────────┘    │
//!  └───────────────┘
//! ```

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::GraphView;
use crate::analysis::graph::Entry;
use crate::callgraph::{ArcId, CycleId};
use crate::profile::FunctionId;
use crate::view::layered::{Arc, End, Layout, Point, Route, Size, Spacing, layout};

/// The extent of a function's box with two lines of text; numbers of calls take a third.
const NODE: Size = Size {
    width: 172.0,
    height: 42.0,
};
const CALLS: f64 = 15.0;
const SPACING: Spacing = Spacing {
    nodes: 18.0,
    layers: 64.0,
    label: Size {
        width: 52.0,
        height: 15.0,
    },
};
/// The room around the members of a cycle, and above them for its figures.
const PADDING: f64 = 14.0;
const TITLE: f64 = 40.0;
/// The least width of a cycle's box, for its figures.
const CYCLE: f64 = 300.0;
/// The number of calls that are drawn for each function, on average.
const CALLS_PER_FUNCTION: usize = 2;

/// A drawing of the heaviest functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaidOut {
    /// The extent of everything.
    pub size: Size,
    /// The extent of a function's box.
    pub node: Size,
    /// The functions by decreasing total, with the upper left corner of each.
    pub functions: Vec<(FunctionId, Point)>,
    /// The cycles of these functions.
    pub cycles: Vec<LaidOutCycle>,
    /// The heaviest calls between these functions, by decreasing weight.
    pub calls: Vec<LaidOutCall>,
    /// How many functions with weight are not drawn.
    pub hidden_functions: usize,
    /// How many calls with weight between the functions are not drawn.
    pub hidden_calls: usize,
}

/// A cycle in a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaidOutCycle {
    /// The cycle.
    pub cycle: CycleId,
    /// The upper left corner.
    pub corner: Point,
    /// The extent of the box around its members.
    pub size: Size,
    /// How many members are drawn.
    pub members: usize,
}

/// A call in a drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct LaidOutCall {
    /// The caller.
    pub caller: FunctionId,
    /// The callee.
    pub callee: FunctionId,
    /// Its course.
    pub route: Route,
}

/// A node of the outer layout: a cycle, or a function outside of all cycles.
struct Group {
    cycle: Option<CycleId>,
    /// Places of functions.
    members: Vec<usize>,
    inside: Layout,
    size: Size,
    /// The arcs of the inner layout.
    arcs: Vec<ArcId>,
}

/// All groups, and where in them each function is.
struct Groups {
    groups: Vec<Group>,
    /// By place of a function: its group, and its place among the members.
    of: Vec<(usize, usize)>,
    /// The size of a function.
    node: Size,
}

impl Groups {
    /// Where calls of the function at this place end: at its group, and in a cycle at the function
    /// within the frame.
    fn end(&self, place: usize) -> End {
        let (number, at) = self.of[place];
        let group = &self.groups[number];
        let plain = End::of(number, self.node.height);
        let Some(center) = group.inside.centers.get(at) else {
            return plain;
        };
        let [x, y] = [
            PADDING + center.x - group.size.width / 2.0,
            TITLE + center.y - group.size.height / 2.0,
        ];
        End {
            node: number,
            x: x + (group.size.width - 2.0 * PADDING - group.inside.size.width) / 2.0,
            top: y + plain.top,
            bottom: y + plain.bottom,
        }
    }

    /// The upper left corner of the function at this place, if the middles of the groups are these.
    fn corner(&self, place: usize, centers: &[Point]) -> Point {
        let end = self.end(place);
        Point {
            x: centers[end.node].x + end.x - self.node.width / 2.0,
            y: centers[end.node].y + end.top,
        }
    }
}

impl GraphView<'_> {
    /// Lays out the functions with the largest totals, at most this many, and the heaviest calls
    /// between them: for each function the heaviest that leads to it, and on average two.
    pub fn laid_out(&self, limit: usize) -> LaidOut {
        let total = |id: FunctionId| self.summary.total(Entry::Function(id));
        let heavy = || self.functions().filter(|&id| total(id) > 0.0);
        let functions: Vec<FunctionId> = heavy().take(limit).collect();
        let places: FxHashMap<FunctionId, usize> = functions.iter().copied().zip(0..).collect();
        let place = |id: FunctionId| places.get(&id).copied();
        let (arcs, hidden_calls) = self.heaviest(&functions, &place);
        let node = Size {
            height: NODE.height + self.summary.calls.as_ref().map_or(0.0, |_| CALLS),
            ..NODE
        };
        let mut groups = self.groups(&functions, &arcs, &place);
        let mut of = vec![(0, 0); functions.len()];
        // Cycles first, so that their sizes are known when the groups are laid out.
        for (number, group) in groups.iter_mut().enumerate() {
            self.lay_out_group(group, &arcs, node, &place);
            for (at, &member) in group.members.iter().enumerate() {
                of[member] = (number, at);
            }
        }
        let groups = Groups { groups, of, node };
        let is_inner = |arc: ArcId| {
            let arc = &self.summary.graph.arcs()[arc];
            self.summary.cycles.share(arc.from, arc.to)
        };
        let outer: Vec<ArcId> = arcs.iter().copied().filter(|&id| !is_inner(id)).collect();
        let ends = |&id: &ArcId| Arc {
            from: groups.end(places[&self.summary.graph.arcs()[id].from]),
            to: groups.end(places[&self.summary.graph.arcs()[id].to]),
        };
        let ends: Vec<Arc> = outer.iter().map(ends).collect();
        let sizes: Vec<Size> = groups.groups.iter().map(|group| group.size).collect();
        let found = layout(&sizes, &ends, &SPACING);
        let mut drawn = LaidOut {
            size: found.size,
            node,
            hidden_functions: heavy().count() - functions.len(),
            hidden_calls,
            ..LaidOut::default()
        };
        let corner = |&id: &FunctionId| (id, groups.corner(places[&id], &found.centers));
        drawn.functions = functions.iter().map(corner).collect();
        // The routes within a cycle are those of its own layout, moved to where its frame stands.
        let mut routes: FxHashMap<ArcId, Route> = outer.into_iter().zip(found.routes).collect();
        for (group, center) in groups.groups.into_iter().zip(found.centers) {
            let corner = Point {
                x: center.x - group.size.width / 2.0,
                y: center.y - group.size.height / 2.0,
            };
            let Some(cycle) = group.cycle else {
                continue;
            };
            let by = Point {
                x: corner.x + (group.size.width - group.inside.size.width) / 2.0,
                y: corner.y + TITLE,
            };
            drawn.cycles.push(LaidOutCycle {
                cycle,
                corner,
                size: group.size,
                members: group.members.len(),
            });
            let inside = group.inside.routes.into_iter();
            routes.extend(
                group
                    .arcs
                    .into_iter()
                    .zip(inside.map(|route| moved(route, by))),
            );
        }
        drawn.calls = (arcs.iter())
            .filter_map(|id| {
                let arc = &self.summary.graph.arcs()[*id];
                Some(LaidOutCall {
                    caller: arc.from,
                    callee: arc.to,
                    route: routes.remove(id)?,
                })
            })
            .collect();
        drawn
    }

    /// The arcs that are drawn between some functions, the heaviest first, and how many are not.
    fn heaviest(
        &self,
        functions: &[FunctionId],
        place: &dyn Fn(FunctionId) -> Option<usize>,
    ) -> (Vec<ArcId>, usize) {
        let graph = &self.summary.graph;
        let outgoing = functions.iter().flat_map(|&id| graph.callees(id));
        let mut arcs: Vec<ArcId> = outgoing
            .filter(|&id| {
                let arc = &graph.arcs()[id];
                arc.weight > 0 && !arc.is_self() && place(arc.to).is_some()
            })
            .collect();
        arcs.sort_by_key(|&id| (Reverse(graph.arcs()[id].weight), id));
        let mut is_reached = vec![false; functions.len()];
        let is_first: Vec<bool> = (arcs.iter())
            .map(|&id| {
                let callee = place(graph.arcs()[id].to);
                callee.is_some_and(|callee| !std::mem::replace(&mut is_reached[callee], true))
            })
            .collect();
        let firsts = is_first.iter().filter(|&&is| is).count();
        let mut others = (functions.len() * CALLS_PER_FUNCTION).saturating_sub(firsts);
        let all = arcs.len();
        let mut is_first = is_first.into_iter();
        arcs.retain(|_| {
            let is_first = is_first.next().unwrap_or(false);
            let is_kept = is_first || others > 0;
            others -= usize::from(is_kept && !is_first);
            is_kept
        });
        let hidden = all - arcs.len();
        (arcs, hidden)
    }

    /// The cycles of these functions and the other functions, the heaviest first. Of a cycle, those
    /// members are first over which most weight comes in.
    fn groups(
        &self,
        functions: &[FunctionId],
        arcs: &[ArcId],
        place: &dyn Fn(FunctionId) -> Option<usize>,
    ) -> Vec<Group> {
        let cycles = &self.summary.cycles;
        let mut groups: Vec<Group> = Vec::new();
        let mut of_cycles: FxHashMap<CycleId, usize> = FxHashMap::default();
        for (at, &id) in functions.iter().enumerate() {
            let cycle = cycles.of()[id];
            let known = cycle.and_then(|cycle| of_cycles.get(&cycle).copied());
            let number = known.unwrap_or_else(|| {
                of_cycles.extend(cycle.map(|cycle| (cycle, groups.len())));
                groups.push(Group {
                    cycle,
                    members: Vec::new(),
                    inside: Layout::default(),
                    size: Size::default(),
                    arcs: Vec::new(),
                });
                groups.len() - 1
            });
            groups[number].members.push(at);
        }
        let mut entering = vec![0; functions.len()];
        for arc in arcs.iter().map(|&id| &self.summary.graph.arcs()[id]) {
            if let Some(callee) = place(arc.to).filter(|_| !cycles.share(arc.from, arc.to)) {
                entering[callee] += arc.weight;
            }
        }
        for group in &mut groups {
            group
                .members
                .sort_by_key(|&member| Reverse(entering[member]));
        }
        groups
    }

    /// Lays out the members of a cycle; a function alone needs no layout.
    fn lay_out_group(
        &self,
        group: &mut Group,
        arcs: &[ArcId],
        node: Size,
        place: &dyn Fn(FunctionId) -> Option<usize>,
    ) {
        group.size = node;
        if group.cycle.is_none() {
            return;
        }
        let member = |id: FunctionId| {
            let at = place(id)?;
            group.members.iter().position(|&member| member == at)
        };
        let inner = arcs.iter().filter_map(|&id| {
            let arc = &self.summary.graph.arcs()[id];
            let (from, to) = (member(arc.from)?, member(arc.to)?);
            let ends = Arc {
                from: End::of(from, node.height),
                to: End::of(to, node.height),
            };
            Some((id, ends))
        });
        let (ids, ends): (Vec<ArcId>, Vec<Arc>) = inner.unzip();
        let inside = layout(&vec![node; group.members.len()], &ends, &SPACING);
        group.size = Size {
            width: (inside.size.width + 2.0 * PADDING).max(CYCLE),
            height: inside.size.height + TITLE + PADDING,
        };
        group.inside = inside;
        group.arcs = ids;
    }
}

fn moved(mut route: Route, by: Point) -> Route {
    for point in route.points.iter_mut().chain(&mut route.label) {
        point.x += by.x;
        point.y += by.y;
    }
    route
}
