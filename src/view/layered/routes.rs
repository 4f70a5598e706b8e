//! Where layers and arcs run, and where labels are.

use super::columns::Joined;
use super::{Layout, Point, Route, Size, Spacing};

/// Where in the space between two layers a label may be, as parts of the way.
const STEPS: [f64; 3] = [0.5, 0.24, 0.76];

/// Puts everything together.
pub(super) fn routes(joined: &Joined, x: &[f64], spacing: &Spacing) -> Layout {
    let rows = &joined.rows.rows;
    // The upper and lower edges of layers.
    let mut bands: Vec<(f64, f64)> = Vec::with_capacity(rows.len());
    let mut y = 0.0;
    for row in rows {
        let heights = row.iter().map(|&cell| joined.size(cell).height);
        let height = heights.fold(0.0, f64::max);
        bands.push((y, y + height));
        y += height + spacing.layers;
    }
    let mut layout = Layout::default();
    let middle = |cell: usize| {
        let (top, bottom) = bands[joined.rows.ranks[cell]];
        (top + bottom) / 2.0
    };
    let (mut left, mut right) = (f64::MAX, f64::MIN);
    for (cell, &x) in x.iter().enumerate() {
        let half = joined.size(cell).width / 2.0;
        (left, right) = (left.min(x - half), right.max(x + half));
    }
    let left = if x.is_empty() { 0.0 } else { left };
    layout.centers = (x.iter().take(joined.sizes.len()).enumerate())
        .map(|(cell, &x)| Point {
            x: x - left,
            y: middle(cell),
        })
        .collect();
    let mut taken: Vec<Vec<(Point, Point)>> = vec![Vec::new(); rows.len()];
    for (arc, chain) in joined.rows.chains.iter().enumerate() {
        let is_upward = joined.is_upward[arc];
        let ends = &joined.arcs[arc];
        let (upper, lower) = if is_upward {
            (ends.to, ends.from)
        } else {
            (ends.from, ends.to)
        };
        let (first, last) = joined.asides(arc);
        let mut points = Vec::with_capacity(2 * chain.len());
        for (place, &cell) in chain.iter().enumerate() {
            let (is_first, is_last) = (place == 0, place + 1 == chain.len());
            let aside = match (is_first, is_last) {
                (true, _) => first,
                (_, true) => last,
                _ => 0.0,
            };
            let x = x[cell] - left + aside;
            let (top, bottom) = bands[joined.rows.ranks[cell]];
            let ends = match (is_first, is_last) {
                (true, _) => [middle(cell) + upper.bottom, bottom],
                (_, true) => [top, middle(cell) + lower.top],
                _ => [top, bottom],
            };
            points.extend(ends.map(|y| Point { x, y }));
        }
        let label = label(&points, chain.len() - 1, spacing.label, |gap, area| {
            let taken = &mut taken[joined.rows.ranks[chain[0]] + gap];
            let is_free = taken.iter().all(|other| !overlap(other, &area));
            if is_free {
                taken.push(area);
            }
            is_free
        });
        if is_upward {
            points.reverse();
        }
        layout.routes.push(Route {
            points,
            is_upward,
            label,
        });
    }
    layout.size = Size {
        width: if x.is_empty() { 0.0 } else { right - left },
        height: bands.last().map_or(0.0, |band| band.1),
    };
    layout
}

/// A place for a label on an arc that `takes` accepts, in the middle of the way at first. Between
/// two layers there is no node.
fn label(
    points: &[Point],
    gaps: usize,
    size: Size,
    mut takes: impl FnMut(usize, (Point, Point)) -> bool,
) -> Option<Point> {
    let mut order: Vec<usize> = (0..gaps).collect();
    order.sort_by_key(|&gap| (2 * gap + 1).abs_diff(gaps));
    let places = order.iter().flat_map(|&gap| {
        let (from, to) = (points[2 * gap + 1], points[2 * gap + 2]);
        STEPS.map(|step| (gap, between(from, to, step)))
    });
    let mut is_free = |&(gap, at): &(usize, Point)| {
        let corner = |sign: f64| Point {
            x: at.x + sign * size.width / 2.0,
            y: at.y + sign * size.height / 2.0,
        };
        takes(gap, (corner(-1.0), corner(1.0)))
    };
    places
        .into_iter()
        .find(|place| is_free(place))
        .map(|place| place.1)
}

/// A point of the curve from one point to another one that begins and ends vertically: of Bézier's
/// with its control points half way.
fn between(from: Point, to: Point, step: f64) -> Point {
    let bend = step * step * (3.0 - 2.0 * step);
    let rest = 1.5 * step * (1.0 - step) + step * step * step;
    Point {
        x: from.x + (to.x - from.x) * bend,
        y: from.y + (to.y - from.y) * rest,
    }
}

fn overlap(a: &(Point, Point), b: &(Point, Point)) -> bool {
    a.0.x < b.1.x && b.0.x < a.1.x && a.0.y < b.1.y && b.0.y < a.1.y
}
