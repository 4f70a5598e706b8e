//! Members in a row, of which single ones are moved far.
//!
//! ```text
//!   block 0        block 1        block 2
//!   4 0 7 │ 3 places    1 5 │ …   moving 7 behind 5 changes blocks 0 and 1, and what is before 1
//! ```
//!
//! In a plain list each move would shift everything between the two places: tens of thousands of
//! members in a large cycle.

// The number of members of a block at first; with twice as many all blocks are made again. Tests
// have small blocks, so that a few moves fill one.
const BLOCK: usize = if cfg!(test) { 8 } else { 512 };

// The number of the block in the upper half, the place in the block in the lower. Places compare as
// they stand in the row, until a member is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u64);

impl Place {
    fn new(block: usize, at: usize) -> Place {
        Place((block as u64) << 32 | at as u64)
    }

    fn block(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn at(self) -> usize {
        self.0 as u32 as usize
    }
}

pub(super) struct Sequence {
    blocks: Vec<Vec<u32>>,
    // For each block the number of members before it.
    before: Vec<usize>,
    // By member.
    places: Vec<Place>,
}

impl Sequence {
    pub(super) fn new(row: &[u32]) -> Sequence {
        let mut sequence = Sequence {
            blocks: Vec::new(),
            before: Vec::new(),
            places: vec![Place(0); row.len()],
        };
        sequence.fill(row);
        sequence
    }

    fn fill(&mut self, row: &[u32]) {
        self.blocks = row.chunks(BLOCK).map(<[u32]>::to_vec).collect();
        self.before = (0..self.blocks.len()).map(|block| block * BLOCK).collect();
        for block in 0..self.blocks.len() {
            self.number(block, 0);
        }
    }

    // The places of a block's members from this one on.
    fn number(&mut self, block: usize, from: usize) {
        let members = self.blocks[block].iter().enumerate().skip(from);
        for (at, &member) in members {
            self.places[member as usize] = Place::new(block, at);
        }
    }

    pub(super) fn place(&self, member: u32) -> Place {
        self.places[member as usize]
    }

    // The number of members before a place.
    fn rank(&self, place: Place) -> usize {
        self.before[place.block()] + place.at()
    }

    // What is between the two moves by one towards where the member was. Returns by how many places
    // it was moved.
    pub(super) fn shift(&mut self, member: u32, to: Place) -> usize {
        let from = self.place(member);
        let distance = self.rank(from).abs_diff(self.rank(to));
        let (source, target) = (from.block(), to.block());
        self.blocks[source].remove(from.at());
        // Towards the back the member goes behind the one at that place, towards the front before
        // it.
        let behind = from < to && source != target;
        let at = to.at() + usize::from(behind);
        self.blocks[target].insert(at, member);
        if source == target {
            self.number(source, from.at().min(at));
            return distance;
        }
        self.number(source, from.at());
        self.number(target, at);
        if from < to {
            self.before[source + 1..=target]
                .iter_mut()
                .for_each(|before| *before -= 1);
        } else {
            self.before[target + 1..=source]
                .iter_mut()
                .for_each(|before| *before += 1);
        }
        if self.blocks[target].len() > 2 * BLOCK {
            let row: Vec<u32> = self.row().collect();
            self.fill(&row);
        }
        distance
    }

    pub(super) fn row(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_list_that_is_rotated(
            members in 2..4 * BLOCK,
            moves in proptest::collection::vec((0usize..4 * BLOCK, 0usize..4 * BLOCK), 0..200),
            towards_one in proptest::bool::ANY,
        ) {
            let mut row: Vec<u32> = (0..members as u32).rev().collect();
            let mut sequence = Sequence::new(&row);
            let mut many: Vec<(usize, usize)> = moves;
            if towards_one {
                // So many that blocks grow too large.
                many.extend((0..members).map(|member| (member, members / 2)));
            }
            for (member, other) in many {
                let (member, other) = (member % members, other % members);
                let find = |row: &[u32], member: usize| {
                    row.iter().position(|&m| m as usize == member)
                };
                let (from, to) = (find(&row, member).unwrap(), find(&row, other).unwrap());
                let (first, last) = (from.min(to), from.max(to));
                let between = &mut row[first..=last];
                if to > from {
                    between.rotate_left(1);
                } else {
                    between.rotate_right(1);
                }
                let place = sequence.place(other as u32);
                prop_assert_eq!(sequence.shift(member as u32, place), last - first);
                prop_assert!(sequence.row().eq(row.iter().copied()));
                let places: Vec<Place> = row.iter().map(|&member| sequence.place(member)).collect();
                prop_assert!(places.is_sorted());
                let ranks = places.iter().map(|&place| sequence.rank(place));
                prop_assert!(ranks.eq(0..members));
            }
        }
    }
}
