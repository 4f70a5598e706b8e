//! The call graph of a page as a drawing: where its boxes and arcs are. The figures in them are
//! those of the listing.

use serde::Serialize;

use crate::profile::FunctionId;
use crate::view::graph::GraphView;
use crate::view::layered::Point;

// How many functions the drawings of a page have.
const LEVELS: [usize; 3] = [25, 75, 200];

// Functions are places in the page's table, lengths are pixels.
#[derive(Serialize)]
pub(super) struct Drawing {
    width: i64,
    height: i64,
    // The extent of a function's box.
    node: [i64; 2],
    // Function, left, top.
    functions: Vec<(u64, i64, i64)>,
    // Number of the cycle, left, top, width, height, members that are drawn.
    cycles: Vec<(usize, i64, i64, i64, i64, usize)>,
    calls: Vec<Call>,
    hidden_functions: usize,
    hidden_calls: usize,
}

#[derive(Serialize)]
struct Call {
    // Caller and callee.
    ends: [u64; 2],
    // Left and top of each point, by turns.
    points: Vec<i64>,
    is_upward: bool,
    label: Option<[i64; 2]>,
}

// The drawings of a listing, from few functions to many.
pub(super) fn drawings(view: &GraphView<'_>, place: &dyn Fn(FunctionId) -> u64) -> Vec<Drawing> {
    let mut drawings = Vec::new();
    for limit in LEVELS {
        let drawing = drawing(view, place, limit);
        let is_last = drawing.hidden_functions == 0;
        drawings.push(drawing);
        if is_last {
            break;
        }
    }
    drawings
}

fn drawing(view: &GraphView<'_>, place: &dyn Fn(FunctionId) -> u64, limit: usize) -> Drawing {
    let whole = |number: f64| number.round() as i64;
    let point = |point: Point| [whole(point.x), whole(point.y)];
    let laid_out = view.laid_out(limit);
    Drawing {
        width: whole(laid_out.size.width),
        height: whole(laid_out.size.height),
        node: [whole(laid_out.node.width), whole(laid_out.node.height)],
        functions: (laid_out.functions.iter())
            .map(|&(id, corner)| (place(id), whole(corner.x), whole(corner.y)))
            .collect(),
        cycles: (laid_out.cycles.iter())
            .map(|it| {
                let [left, top] = point(it.corner);
                let (width, height) = (whole(it.size.width), whole(it.size.height));
                let number = view.summary.number(it.cycle);
                (number, left, top, width, height, it.members)
            })
            .collect(),
        calls: (laid_out.calls.iter())
            .map(|call| Call {
                ends: [place(call.caller), place(call.callee)],
                points: call.route.points.iter().copied().flat_map(point).collect(),
                is_upward: call.route.is_upward,
                label: call.route.label.map(point),
            })
            .collect(),
        hidden_functions: laid_out.hidden_functions,
        hidden_calls: laid_out.hidden_calls,
    }
}
