//! Places the nodes of a directed graph in layers, callers above callees.
//!
//! The method is that of Sugiyama, Tagawa and Toda, "Methods for visual understanding of
//! hierarchical system structures" (1981), in four steps, a file each:
//!
//! ```text
//!   ranks      arcs that close a circle are turned round; each node stands below its callers
//!   order      an arc that passes layers gets a joint in each; the rows are sorted by barycenters
//!   columns    each row moves to where its neighbours are, and keeps order and distances
//!   routes     the points of each arc, and a free place for its label between two layers
//! ```
//!
//! Equal graphs have equal layouts. Coordinates are pixels, y grows downwards.

mod columns;
mod order;
mod ranks;
mod routes;

/// A place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// The distance from the left edge.
    pub x: f64,
    /// The distance from the upper edge.
    pub y: f64,
}

/// The extent of a box.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

/// Where an arc begins or ends, as seen from the centre of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct End {
    /// The node.
    pub node: usize,
    /// How far to the right.
    pub x: f64,
    /// How far down, if the arc comes from above.
    pub top: f64,
    /// How far down, if the arc leads down from here.
    pub bottom: f64,
}

impl End {
    /// The middle of the upper or lower edge of a node of this height.
    pub fn of(node: usize, height: f64) -> End {
        End {
            node,
            x: 0.0,
            top: -height / 2.0,
            bottom: height / 2.0,
        }
    }
}

/// An arc from one node to another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arc {
    /// Where it begins.
    pub from: End,
    /// Where it ends.
    pub to: End,
}

/// The distances in a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spacing {
    /// Between nodes of a layer.
    pub nodes: f64,
    /// Between layers.
    pub layers: f64,
    /// The extent of an arc's label.
    pub label: Size,
}

/// The course of an arc.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// From the caller to the callee. Every second piece, beginning with the first, is a vertical
    /// line; the others lead from one layer to the next.
    pub points: Vec<Point>,
    /// Whether the callee is above the caller.
    pub is_upward: bool,
    /// The centre of its label; `None` where there is no room.
    pub label: Option<Point>,
}

/// Where everything is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The centre of each node.
    pub centers: Vec<Point>,
    /// The course of each arc.
    pub routes: Vec<Route>,
    /// The extent of all nodes and arcs.
    pub size: Size,
}

/// Lays a graph out. Arcs lead from a node to another one. Of equal arcs and nodes the first is
/// placed first, so put the heaviest in front.
///
/// ```
/// use proftool::view::layered::{Arc, End, Size, Spacing, layout};
///
/// // main calls parse and lex, parse calls lex, lex calls parse back.
/// let node = Size { width: 60.0, height: 20.0 };
/// let spacing = Spacing { nodes: 20.0, layers: 40.0, label: Size { width: 30.0, height: 10.0 } };
/// let arc = |from, to| Arc { from: End::of(from, 20.0), to: End::of(to, 20.0) };
/// let arcs = [arc(0, 1), arc(0, 2), arc(1, 2), arc(2, 1)];
/// let found = layout(&[node; 3], &arcs, &spacing);
/// let rows: Vec<f64> = found.centers.iter().map(|center| center.y).collect();
/// assert_eq!(rows, [10.0, 70.0, 130.0]);
/// assert!(found.routes[3].is_upward);
/// ```
pub fn layout(sizes: &[Size], arcs: &[Arc], spacing: &Spacing) -> Layout {
    let ends: Vec<(usize, usize)> = (arcs.iter())
        .map(|arc| (arc.from.node, arc.to.node))
        .collect();
    let is_upward = ranks::upward(sizes.len(), &ends);
    let down = |(&(from, to), &is_upward): (&(usize, usize), &bool)| {
        if is_upward { (to, from) } else { (from, to) }
    };
    let down: Vec<(usize, usize)> = ends.iter().zip(&is_upward).map(down).collect();
    let ranks = ranks::ranks(sizes.len(), &down);
    let mut rows = order::Rows::new(&ranks, &down);
    rows.sort();
    let joined = columns::Joined {
        rows: &rows,
        sizes,
        arcs,
        is_upward: &is_upward,
    };
    let x = columns::columns(&joined, spacing);
    routes::routes(&joined, &x, spacing)
}
