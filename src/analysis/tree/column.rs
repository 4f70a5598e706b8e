//! Weights of nodes, where most nodes have no weight.

use crate::base::IdVec;

use super::NodeId;

// A column of a table of nodes that stores only weights other than 0: eight bytes for each of
// these, one bit for each node, and one number for every 64 nodes.
//
//   node      0  1  2  3  4  5 …
//   bit       0  1  0  0  1  1 …     the weight of node 4 is the second one, as one bit is
//   weights      7        2  9       set before its own; `before` has those of earlier words
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    len: usize,
    bits: Vec<u64>,
    // For each word of bits, how many are set before it.
    before: Vec<u32>,
    weights: Vec<u64>,
}

impl Column {
    // The nodes (some perhaps more than once) have weights, 0 for now.
    pub fn marked(len: usize, nodes: impl Iterator<Item = NodeId>) -> Column {
        let mut bits = vec![0u64; len.div_ceil(64)];
        for node in nodes {
            let (word, bit) = place(node);
            bits[word] |= bit;
        }
        let mut set = 0;
        let before = bits.iter().map(|word| {
            let before = set;
            set += word.count_ones();
            before
        });
        Column {
            len,
            before: before.collect(),
            bits,
            weights: vec![0; set as usize],
        }
    }

    pub fn of(weights: impl Iterator<Item = u64>) -> Column {
        let mut column = Column::default();
        weights.for_each(|weight| column.push(weight));
        column
    }

    pub fn push(&mut self, weight: u64) {
        let (word, bit) = place(NodeId::new(self.len));
        if word == self.bits.len() {
            self.bits.push(0);
            self.before.push(self.weights.len() as u32);
        }
        if weight > 0 {
            self.bits[word] |= bit;
            self.weights.push(weight);
        }
        self.len += 1;
    }

    pub fn get(&self, node: NodeId) -> u64 {
        self.index(node).map_or(0, |index| self.weights[index])
    }

    // The node was marked.
    pub fn add(&mut self, node: NodeId, weight: u64) {
        if let Some(index) = self.index(node) {
            self.weights[index] += weight;
        }
    }

    fn index(&self, node: NodeId) -> Option<usize> {
        let (word, bit) = place(node);
        let bits = self.bits.get(word).filter(|&bits| bits & bit != 0)?;
        let below = (bits & (bit - 1)).count_ones();
        Some((self.before[word] + below) as usize)
    }

    // The nodes with weights and these, in order of id.
    fn iter(&self) -> impl Iterator<Item = (NodeId, u64)> {
        let words = self.bits.iter().enumerate();
        let nodes = words.flat_map(|(word, &bits)| {
            let more = |&rest: &u64| Some(rest & (rest - 1)).filter(|&rest| rest != 0);
            let rests = std::iter::successors(Some(bits).filter(|&bits| bits != 0), more);
            rests.map(move |rest| NodeId::new(word * 64 + rest.trailing_zeros() as usize))
        });
        nodes.zip(self.weights.iter().copied())
    }

    // The column after each node moved to its place.
    pub fn moved(self, places: &IdVec<NodeId, NodeId>) -> Column {
        if self.weights.is_empty() {
            return self;
        }
        let mut moved = Column::marked(self.len, self.iter().map(|(node, _)| places[node]));
        for (node, weight) in self.iter() {
            moved.add(places[node], weight);
        }
        moved
    }
}

fn place(node: NodeId) -> (usize, u64) {
    (node.index() / 64, 1 << (node.index() % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_nodes_are_found_also_after_a_move() {
        let weights: Vec<u64> = (0..300u64).map(|i| i * u64::from(i % 7 == 3)).collect();
        let pushed = Column::of(weights.iter().copied());
        let ids = || (0..300).map(NodeId::new);
        let mut marked = Column::marked(300, ids().filter(|id| id.index() % 7 == 3));
        for id in ids() {
            marked.add(id, weights[id.index()]);
        }
        let places: Vec<NodeId> = ids().rev().collect();
        let moved = pushed.clone().moved(&places.into());
        for id in ids() {
            let weight = weights[id.index()];
            assert_eq!(pushed.get(id), weight);
            assert_eq!(marked.get(id), weight);
            assert_eq!(moved.get(NodeId::new(299 - id.index())), weight);
        }
        assert_eq!(Column::default().get(NodeId::new(5)), 0);
    }
}
