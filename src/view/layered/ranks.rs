//! Layers: the length of the longest way from a node that nobody calls.

/// For each arc whether it has to be turned round for there to be no circles: it leads to a node
/// from which a walk in depth came.
pub(super) fn upward(nodes: usize, arcs: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let outgoing = by(nodes, arcs, |arc| arc.0);
    let incoming = by(nodes, arcs, |arc| arc.1);
    let mut is_upward = vec![false; arcs.len()];
    let mut states = vec![State::New; nodes];
    let is_root = |node: &usize| incoming[*node].is_empty();
    let roots = (0..nodes).filter(is_root);
    // The path from a root, with the next arc to follow at each node of it.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for start in roots.chain(0..nodes) {
        if states[start] != State::New {
            continue;
        }
        states[start] = State::Open;
        path.push((start, 0));
        while let Some((node, next)) = path.last_mut() {
            let Some(&arc) = outgoing[*node].get(*next) else {
                states[*node] = State::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = arcs[arc].1;
            match states[to] {
                State::New => {
                    states[to] = State::Open;
                    path.push((to, 0));
                }
                State::Open => is_upward[arc] = true,
                State::Done => {}
            }
        }
    }
    is_upward
}

/// The layer of each node; `arcs` are without circles and lead to layers further down.
pub(super) fn ranks(nodes: usize, arcs: &[(usize, usize)]) -> Vec<usize> {
    let outgoing = by(nodes, arcs, |arc| arc.0);
    let incoming = by(nodes, arcs, |arc| arc.1);
    let mut missing: Vec<usize> = incoming.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..nodes).filter(|&node| missing[node] == 0).collect();
    let mut ranks = vec![0; nodes];
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        at += 1;
        for &arc in &outgoing[node] {
            let to = arcs[arc].1;
            ranks[to] = ranks[to].max(ranks[node] + 1);
            missing[to] -= 1;
            if missing[to] == 0 {
                order.push(to);
            }
        }
    }
    // A node with more callees than callers makes fewer long arcs next to its callees.
    for &node in order.iter().rev() {
        if outgoing[node].len() > incoming[node].len() {
            let callees = outgoing[node].iter().map(|&arc| ranks[arcs[arc].1]);
            ranks[node] = callees.min().map_or(ranks[node], |rank| rank - 1);
        }
    }
    ranks
}

/// The arcs of each node.
fn by(
    nodes: usize,
    arcs: &[(usize, usize)],
    end: impl Fn(&(usize, usize)) -> usize,
) -> Vec<Vec<usize>> {
    let mut of_nodes = vec![Vec::new(); nodes];
    for (place, arc) in arcs.iter().enumerate() {
        of_nodes[end(arc)].push(place);
    }
    of_nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_upward_arcs_there_is_no_circle() {
        let arcs = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 1), (3, 3 + 1), (4, 2)];
        let is_upward = upward(5, &arcs);
        assert_eq!(is_upward, [false, false, true, false, true, false, true]);
    }

    #[test]
    fn a_node_is_below_its_callers_and_close_to_its_callees() {
        // 4 calls 3 only, which is far down.
        let arcs = [(0, 1), (1, 2), (2, 3), (4, 3)];
        assert_eq!(ranks(5, &arcs), [0, 1, 2, 3, 2]);
    }
}
