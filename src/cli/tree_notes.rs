//! What the page of a tree says about its options: how far recursion is collapsed, and which
//! options show the hidden lines.

use proftool::analysis::tree::{Collapse, Direction, Reach, Repeats};
use proftool::profile::RowKind;
use proftool::view::number::grouped;
use proftool::view::tree::Tree;

// How far the lines of other degrees are counted.
pub const COUNTED: usize = 1_000_000;

// How far recursion is collapsed, where there is any, and why.
pub fn recursion(tree: &Tree, rows: RowKind) -> Option<String> {
    let degree = tree.summary.calls.collapse;
    let stubs = tree
        .summary
        .calls
        .nodes
        .iter()
        .any(|node| node.stub.is_some());
    if tree.summary.rows.is_none() && tree.summary.repeats.is_none() && !stubs {
        return None;
    }
    let done = match degree {
        Collapse::None => "Recursion is not collapsed",
        _ => "Recursion is collapsed",
    };
    let mut text = format!("{done} (--collapse {})", degree.name());
    if let Some(Repeats { nodes, repeating }) = tree.summary.repeats {
        let would = if degree == Collapse::None {
            ""
        } else {
            "would "
        };
        let verb = match (repeating, would) {
            (1, "") => "repeats",
            _ => "repeat",
        };
        let noun = if rows.replaces_functions() {
            rows.name()
        } else {
            "function"
        };
        text.push_str(&format!(
            ": {repeating} of the {nodes} heaviest lines {would}{verb} a {noun} above them"
        ));
    }
    if let Some(rows) = tree.summary.rows {
        let lines: Vec<String> = Collapse::ALL
            .into_iter()
            .zip(rows)
            .map(|(degree, rows)| {
                let many = || format!("over {}", grouped(COUNTED as u64));
                let rows = rows.map_or_else(many, |rows| grouped(rows as u64));
                format!("{} {rows}", degree.name())
            })
            .collect();
        text.push_str(&format!(". Lines by degree: {}", lines.join(", ")));
    }
    Some(text)
}

// `reach` is how far callers were followed.
pub fn hidden(tree: &Tree, reach: Reach) -> Option<String> {
    // What was not followed is in no other count: it may be deep, light, or one line too many.
    let is_cut = tree.summary.calls.nodes.iter().any(|node| node.cut > 0);
    let (reasons, deepest) = (tree.reasons, tree.summary.deepest);
    let mut options = Vec::new();
    if reasons.deeper > 0 || is_cut && reach.depth < deepest {
        let levels = match tree.summary.direction {
            Direction::TopDown => reasons.deepest,
            Direction::BottomUp => deepest.max(reasons.deepest),
        };
        options.push(format!("--depth {levels}"));
    }
    if reasons.lighter > 0 || is_cut && reach.min > 0 {
        options.push("--min 0".to_owned());
    }
    if reasons.beyond > 0 || is_cut && tree.options.limit.is_some() {
        options.push("--limit 0".to_owned());
    }
    let mut what = Vec::new();
    if tree.hidden > 0 {
        let plural = if tree.hidden == 1 { "" } else { "s" };
        what.push(format!("{} more line{plural}", grouped(tree.hidden as u64)));
    }
    if is_cut {
        what.push("callers further out".to_owned());
    }
    let folded = match tree.folded() {
        0 => None,
        1 => Some("1 frame is folded; --unfold shows it".to_owned()),
        frames => Some(format!(
            "{} frames are folded; --unfold shows them",
            grouped(frames as u64)
        )),
    };
    if what.is_empty() {
        return folded.map(|folded| format!("… {folded}"));
    }
    let folded = folded.map_or(String::new(), |folded| format!(". {folded}"));
    let what = what.join(" and ");
    Some(if options.is_empty() {
        format!("… {what}: not shown, because the tree has reached its maximum size{folded}")
    } else {
        format!("… {what}. To see all: {}{folded}", options.join(" "))
    })
}
