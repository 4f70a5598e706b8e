//! Many values by key, decoded one by one where they are: a recording asks for a few of many.
//!
//! ```text
//!   number   of the rows: u32
//!   keys     N bytes each, sorted
//!   ends     where the value of each ends: u32 each
//!   values   one after the other
//! ```

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::{Contents, decode};

/// Values by keys of `N` bytes. Numbers in keys are big-endian, so that bytes sort as numbers do.
#[derive(Debug)]
pub struct Rows<const N: usize> {
    contents: Contents,
    number: usize,
}

/// The keys, where the values end, and the values.
type Parts<'r, const N: usize> = (&'r [[u8; N]], &'r [[u8; 4]], &'r [u8]);

impl<const N: usize> Rows<N> {
    /// The rows in these contents; `None` if they do not fit.
    pub fn of(contents: Contents) -> Option<Rows<N>> {
        let number = u32::from_le_bytes(*contents.bytes().first_chunk()?) as usize;
        let rows = Rows { contents, number };
        rows.parts()?;
        Some(rows)
    }

    /// The contents of these rows, which come sorted by key; `None` if there are too many.
    pub fn contents<V: Serialize>(rows: impl IntoIterator<Item = ([u8; N], V)>) -> Option<Vec<u8>> {
        Rows::joined(rows, |values, value| {
            postcard::to_extend(&value, values).ok()
        })
    }

    pub(super) fn of_encoded<'v>(
        rows: impl Iterator<Item = ([u8; N], &'v [u8])>,
    ) -> Option<Vec<u8>> {
        Rows::joined(rows, |mut values, value| {
            values.extend_from_slice(value);
            Some(values)
        })
    }

    // `put` appends a value to those before it.
    fn joined<V>(
        rows: impl IntoIterator<Item = ([u8; N], V)>,
        put: impl Fn(Vec<u8>, V) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let (mut number, mut keys) = (0u32, Vec::new());
        let (mut ends, mut values) = (Vec::new(), Vec::new());
        for (key, value) in rows {
            number = number.checked_add(1)?;
            keys.extend(key);
            values = put(values, value)?;
            ends.extend(u32::try_from(values.len()).ok()?.to_le_bytes());
        }
        Some([&number.to_le_bytes()[..], &keys, &ends, &values].concat())
    }

    /// The keys, sorted.
    pub fn keys(&self) -> &[[u8; N]] {
        self.parts().map_or(&[], |(keys, ..)| keys)
    }

    /// The value of a key.
    pub fn get<'r, V: Deserialize<'r>>(&'r self, key: &[u8; N]) -> Option<V> {
        let place = self.keys().binary_search_by(|it| order(it, key)).ok()?;
        decode(self.encoded(place)?)
    }

    /// All rows, their values encoded.
    pub(super) fn iter(&self) -> impl Iterator<Item = ([u8; N], &[u8])> {
        let keys = self.keys().iter().enumerate();
        keys.filter_map(|(place, key)| Some((*key, self.encoded(place)?)))
    }

    fn encoded(&self, place: usize) -> Option<&[u8]> {
        let (_, ends, values) = self.parts()?;
        let end = |place: usize| Some(u32::from_le_bytes(*ends.get(place)?) as usize);
        let from = place.checked_sub(1).map_or(Some(0), end)?;
        values.get(from..end(place)?)
    }

    fn parts(&self) -> Option<Parts<'_, N>> {
        let rest = self.contents.bytes().get(4..)?;
        let (keys, rest) = rest.split_at_checked(self.number.checked_mul(N)?)?;
        let (ends, values) = rest.split_at_checked(self.number.checked_mul(4)?)?;
        Some((keys.as_chunks().0, ends.as_chunks().0, values))
    }
}

/// Compares keys as slices are compared, without a call for each step of a search.
fn order<const N: usize>(one: &[u8; N], other: &[u8; N]) -> Ordering {
    let ((words, rest), (other_words, other_rest)) = (one.as_chunks(), other.as_chunks());
    let number = |word: &[u8; 8]| u64::from_be_bytes(*word);
    let words = words.iter().map(number).cmp(other_words.iter().map(number));
    words.then_with(|| rest.cmp(other_rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn rows_are_found_by_key() {
        let rows = [(3u8, "three"), (5, ""), (9, "nine")];
        let contents = Rows::contents(rows.map(|(key, value)| ([key], value))).unwrap();
        let rows: Rows<1> = Rows::of(contents.into()).unwrap();
        assert_eq!(rows.keys(), [[3], [5], [9]]);
        assert_eq!(rows.get::<&str>(&[9]), Some("nine"));
        assert_eq!(rows.get::<&str>(&[4]), None);
    }

    #[test]
    fn no_contents_make_it_panic() {
        let rows = (0..9u16).map(|key| (key.to_be_bytes(), vec![Some("text"); key.into()]));
        let contents = Rows::contents(rows).unwrap();
        let look = |contents: &[u8]| {
            let rows: Option<Rows<2>> = Rows::of(contents.to_vec().into());
            let found = rows.map(|rows| {
                let keys = (0..12u16).map(u16::to_be_bytes);
                let values = keys.map(|key| rows.get::<Vec<Option<&str>>>(&key));
                let lengths = values.flatten().map(|value| value.len());
                rows.iter().count() + lengths.sum::<usize>()
            });
            found.unwrap_or(0)
        };
        assert_eq!(look(&contents), 9 + 36);
        for place in 0..contents.len() {
            look(&contents[..place]);
            for change in [1, 0x80, 0xff] {
                let mut changed = contents.clone();
                changed[place] ^= change;
                look(&changed);
            }
        }
    }

    #[test]
    fn a_stated_length_is_not_believed() {
        // Ten bytes that state a list or a text of 2^63 and more.
        let long = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(decode::<Vec<u64>>(&long), None);
        assert_eq!(decode::<String>(&long), None);
        assert_eq!(decode::<u8>(&[1, 2]), None, "something is left");
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_bytes(
            one: [u8; 18],
            other: [u8; 18],
            equal in 0usize..18,
        ) {
            let mut other = other;
            other[..equal].copy_from_slice(&one[..equal]);
            prop_assert_eq!(order(&one, &other), one.cmp(&other));
            prop_assert_eq!(order(&one, &one), Ordering::Equal);
        }
    }
}
