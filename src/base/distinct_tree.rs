//! A tree of distinct rows, each found by its contents.

use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::{Id, IdVec};

/// A row of a tree.
pub trait TreeRow<I>: Hash + Eq {
    /// The row that this one is a child of; `None` for a root.
    fn parent(&self) -> Option<I>;
}

/// A tree whose rows are kept once, in order of first appearance, each after its parent.
///
/// It does the same as [`Distinct`](super::Distinct), in less memory and time: most nodes of a tree
/// of stacks have one child, which is found through its parent and needs no entry in the table.
///
/// ```
/// use proftool::base::{DistinctTree, TreeRow, define_id};
/// define_id! {
///     /// A frame.
///     FrameId
/// }
/// #[derive(PartialEq, Eq, Hash)]
/// struct Frame { caller: Option<FrameId>, name: &'static str }
/// impl TreeRow<FrameId> for Frame {
///     fn parent(&self) -> Option<FrameId> { self.caller }
/// }
/// let mut tree = DistinctTree::default();
/// let main = tree.id_of(Frame { caller: None, name: "main" });
/// let parse = tree.id_of(Frame { caller: Some(main), name: "parse" });
/// let write = tree.id_of(Frame { caller: Some(main), name: "write" });
/// assert_eq!(tree.id_of(Frame { caller: Some(main), name: "parse" }), parse);
/// assert_eq!(tree.id_of(Frame { caller: Some(main), name: "write" }), write);
/// assert_eq!(tree.rows().len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct DistinctTree<I, T> {
    rows: IdVec<I, T>,
    first: IdVec<I, Option<I>>,
    // The roots, and all other children, with a half of their hashes. A row need not be read to
    // find out that it is another one, nor to move its entry when the table grows.
    others: HashTable<(u32, I)>,
    hasher: DefaultHashBuilder,
}

impl<I: Id, T: TreeRow<I>> DistinctTree<I, T> {
    /// An empty tree with room for this number of rows; unused room takes little memory.
    pub fn with_room(rows: usize) -> Self {
        DistinctTree {
            rows: Vec::with_capacity(rows).into(),
            first: Vec::with_capacity(rows).into(),
            ..DistinctTree::default()
        }
    }

    /// The id of this row, which is added when it is new. Its parent is in the tree.
    pub fn id_of(&mut self, row: T) -> I {
        if let Some(parent) = row.parent() {
            match self.first[parent] {
                Some(first) if self.rows[first] == row => return first,
                Some(_) => {}
                None => {
                    let id = self.push(row);
                    self.first[parent] = Some(id);
                    return id;
                }
            }
        }
        self.id_of_other(row)
    }

    fn id_of_other(&mut self, row: T) -> I {
        let hash = self.hasher.hash_one(&row);
        let half = (hash ^ hash >> 32) as u32;
        let rows = &mut self.rows;
        let entry = self.others.entry(
            spread(half),
            |&(other, id)| other == half && rows[id] == row,
            |&(other, _)| spread(other),
        );
        match entry {
            Entry::Occupied(entry) => entry.get().1,
            Entry::Vacant(entry) => {
                let id = rows.push(row);
                self.first.push(None);
                entry.insert((half, id));
                id
            }
        }
    }

    fn push(&mut self, row: T) -> I {
        self.first.push(None);
        self.rows.push(row)
    }

    /// The rows so far.
    pub fn rows(&self) -> &IdVec<I, T> {
        &self.rows
    }

    /// The rows alone, when no more are to come.
    pub fn into_rows(self) -> IdVec<I, T> {
        self.rows
    }
}

// A hash of 64 bits of one of 32, as the table looks at the upper bits, too.
fn spread(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
}

impl<I: Id, T> Default for DistinctTree<I, T> {
    fn default() -> Self {
        DistinctTree {
            rows: IdVec::new(),
            first: IdVec::new(),
            others: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::super::{Distinct, NameId};
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    struct Row(Option<NameId>, u8);

    impl TreeRow<NameId> for Row {
        fn parent(&self) -> Option<NameId> {
            self.0
        }
    }

    proptest! {
        #[test]
        fn it_is_the_table_of_distinct_rows(
            steps in proptest::collection::vec((any::<proptest::sample::Index>(), 0u8..4), 0..200),
        ) {
            let mut table: Distinct<NameId, Row> = Distinct::default();
            let mut tree: DistinctTree<NameId, Row> = DistinctTree::default();
            for (parent, value) in steps {
                // One more than there are rows: also roots.
                let parent = parent.index(tree.rows().len() + 1);
                let row = Row(tree.rows().ids().nth(parent), value);
                prop_assert_eq!(tree.id_of(row), table.id_of(row));
            }
            prop_assert_eq!(tree.into_rows(), table.into_rows());
        }
    }
}
