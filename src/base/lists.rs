//! A list of values for each of many numbers, all in one piece of memory.

use std::ops::Range;

/// For each number from 0 on a list of values.
///
/// ```
/// use proftool::base::Lists;
/// let callees = Lists::new(3, [(2, 'a'), (0, 'b'), (2, 'c')].into_iter());
/// assert_eq!(callees.of(2), ['a', 'c']);
/// assert!(callees.of(1).is_empty());
/// assert_eq!(callees.of_all(0..3), ['b', 'a', 'c']);
/// ```
#[derive(Clone, Debug)]
pub struct Lists<T> {
    // Where the values of each number begin; one more entry behind the last.
    starts: Vec<u32>,
    values: Vec<T>,
}

impl<T: Copy> Lists<T> {
    /// Makes lists for the numbers below `count` of pairs of a number and a value; values of a
    /// number stay in their order (H. Seward's counting sort, 1954). There are fewer values than
    /// `u32::MAX`.
    ///
    /// # Panics
    ///
    /// If a pair has a number that is not below `count`.
    pub fn new(count: usize, pairs: impl Iterator<Item = (usize, T)> + Clone) -> Lists<T> {
        // Each entry is first the number of values of the number two before, then where the next
        // one of the number before goes; at last that is where its own begin.
        let mut starts = vec![0u32; count + 2];
        for (number, _) in pairs.clone() {
            starts[number + 2] += 1;
        }
        for at in 2..starts.len() {
            starts[at] += starts[at - 1];
        }
        let any = pairs.clone().next();
        let mut values = any.map_or(Vec::new(), |(_, it)| vec![it; starts[count + 1] as usize]);
        for (number, value) in pairs {
            let next = &mut starts[number + 1];
            values[*next as usize] = value;
            *next += 1;
        }
        starts.truncate(count + 1);
        Lists { starts, values }
    }
}

impl<T> Lists<T> {
    /// The number of lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of a number.
    #[inline]
    pub fn of(&self, number: usize) -> &[T] {
        self.of_all(number..number + 1)
    }

    /// The values of these numbers, one list after the other.
    #[inline]
    pub fn of_all(&self, numbers: Range<usize>) -> &[T] {
        &self.values[self.starts[numbers.start] as usize..self.starts[numbers.end] as usize]
    }
}
