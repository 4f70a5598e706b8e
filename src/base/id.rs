//! Typed indices: one id type per table, so that a function is never looked up among modules.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An index into one kind of table. Made by [`define_id!`](crate::base::define_id).
pub trait Id: Copy + Eq + Ord + Hash + Debug {
    /// The id of row `index`; a table holds fewer than `u32::MAX` rows.
    fn new(index: usize) -> Self;
    /// The row.
    fn index(self) -> usize;
}

/// Defines an id type for a table.
///
/// ```
/// proftool::base::define_id! {
///     /// A row of the table of planets.
///     pub PlanetId
/// }
/// use proftool::base::IdVec;
/// let mut planets: IdVec<PlanetId, &str> = IdVec::new();
/// let earth = planets.push("earth");
/// assert_eq!((planets[earth], earth.index()), ("earth", 0));
/// ```
#[macro_export]
#[doc(hidden)]
macro_rules! __define_id {
    ($(#[$doc:meta])* $vis:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(std::num::NonZeroU32);

        #[allow(dead_code, reason = "some tables are only iterated over")]
        impl $name {
            /// The id of row `index`.
            ///
            /// # Panics
            ///
            /// If `index` is `u32::MAX` or more: tables are smaller.
            $vis fn new(index: usize) -> Self {
                // One more than the index, so that an `Option` of an id takes no more room.
                let number = u32::try_from(index + 1).ok().and_then(std::num::NonZeroU32::new);
                Self(number.expect("a table holds fewer than u32::MAX rows"))
            }

            /// The row.
            $vis fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl $crate::base::Id for $name {
            fn new(index: usize) -> Self {
                Self::new(index)
            }

            fn index(self) -> usize {
                self.index()
            }
        }
    };
}
pub use crate::__define_id as define_id;

/// A table whose rows are found by their own id type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdVec<I, T> {
    rows: Vec<T>,
    id: PhantomData<fn(I)>,
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty table.
    pub fn new() -> Self {
        Self::from(Vec::new())
    }

    /// A table of `len` equal rows, to be used as a column of another table.
    pub fn filled(value: T, len: usize) -> Self
    where
        T: Clone,
    {
        Self::from(vec![value; len])
    }

    /// Adds a row and returns its id.
    pub fn push(&mut self, row: T) -> I {
        let id = I::new(self.rows.len());
        self.rows.push(row);
        id
    }

    /// Gives back the memory that rows to come would take.
    pub fn shrink_to_fit(&mut self) {
        self.rows.shrink_to_fit();
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row, if the table has it.
    pub fn get(&self, id: I) -> Option<&T> {
        self.rows.get(id.index())
    }

    /// The rows in order of id.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.rows.iter()
    }

    /// The rows in order of id, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.rows.iter_mut()
    }

    /// Keeps the rows that `keep` picks. The ids of the rows behind one that goes change.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.rows.retain(keep);
    }

    /// The ids in order.
    pub fn ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        (0..self.rows.len()).map(I::new)
    }

    /// Ids and rows in order.
    pub fn enumerate(
        &self,
    ) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator + Clone {
        self.rows
            .iter()
            .enumerate()
            .map(|(i, row)| (I::new(i), row))
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(rows: Vec<T>) -> Self {
        IdVec {
            rows,
            id: PhantomData,
        }
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}
