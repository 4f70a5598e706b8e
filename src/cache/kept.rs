//! Answers by key: those that were kept before, and those that are new and will be.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{FILE_LIMIT, Place, Rows, encode};

/// The most bytes of keys and values that are kept in one place. What is asked for now counts more
/// than what was before.
const LIMIT: usize = FILE_LIMIT as usize / 2;

/// What is kept in one place, by keys of `N` bytes.
#[derive(Debug)]
pub struct Kept<const N: usize> {
    place: Option<Place>,
    known: Option<Rows<N>>,
    fresh: Mutex<Fresh<N>>,
}

#[derive(Debug)]
struct Fresh<const N: usize> {
    rows: BTreeMap<[u8; N], Vec<u8>>,
    bytes: usize,
    /// Whether nothing will be kept.
    is_closed: bool,
}

impl<const N: usize> Kept<N> {
    /// What was kept in a place; nothing is and will be without one.
    pub fn open(place: Option<Place>) -> Kept<N> {
        Kept {
            known: place.as_ref().and_then(Place::load).and_then(Rows::of),
            fresh: Mutex::new(Fresh {
                rows: BTreeMap::new(),
                bytes: 0,
                is_closed: place.is_none(),
            }),
            place,
        }
    }

    /// What was kept before.
    pub fn known(&self) -> Option<&Rows<N>> {
        self.known.as_ref()
    }

    /// What was kept of a key before. What is new is not found: who asks knows it.
    pub fn get<'k, V: Deserialize<'k>>(&'k self, key: &[u8; N]) -> Option<V> {
        self.known()?.get(key)
    }

    /// Adds a value, unless one of this key is new already. Once one cannot be encoded, or all are
    /// too many, nothing new is kept.
    pub fn add(&self, key: [u8; N], value: &impl Serialize) {
        let mut fresh = self.fresh();
        if fresh.is_closed || fresh.rows.contains_key(&key) {
            return;
        }
        let value = encode(value).filter(|value| {
            fresh.bytes = fresh.bytes.saturating_add(row_size::<N>(value));
            fresh.bytes <= LIMIT
        });
        match value {
            Some(value) => drop(fresh.rows.insert(key, value)),
            None => fresh.close(),
        }
    }

    /// Keeps nothing that is new.
    pub fn close(&self) {
        self.fresh().close();
    }

    /// Keeps what was before and what is new, if anything is. It does not matter if that fails.
    pub fn store(&self) -> Option<()> {
        let fresh = self.fresh();
        if fresh.rows.is_empty() {
            return None;
        }
        let mut rows: BTreeMap<&[u8; N], &[u8]> = BTreeMap::new();
        let known: Vec<_> = self
            .known()
            .map_or_else(Vec::new, |known| known.iter().collect());
        let mut bytes = fresh.bytes;
        for (key, value) in &known {
            bytes = bytes.saturating_add(row_size::<N>(value));
            if bytes > LIMIT {
                break;
            }
            rows.insert(key, value);
        }
        rows.extend(
            fresh
                .rows
                .iter()
                .map(|(key, value)| (key, value.as_slice())),
        );
        let rows = rows.into_iter().map(|(key, value)| (*key, value));
        self.place.as_ref()?.store(&Rows::of_encoded(rows)?)
    }

    fn fresh(&self) -> MutexGuard<'_, Fresh<N>> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<const N: usize> Fresh<N> {
    fn close(&mut self) {
        self.is_closed = true;
        self.rows = BTreeMap::new();
    }
}

fn row_size<const N: usize>(value: &[u8]) -> usize {
    value.len().saturating_add(N + 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use std::path::PathBuf;
    use std::sync::Arc;

    fn room(name: &str) -> (PathBuf, Place) {
        let own = std::fs::read_link("/proc/self").unwrap();
        let name = format!("proftool-kept-{}-{name}", own.display());
        let path = std::env::temp_dir().join(name);
        let place = Place {
            cache: Arc::new(Cache::open(&path).unwrap()),
            name: "one".to_owned(),
            key: Vec::new(),
        };
        (path, place)
    }

    #[test]
    fn what_is_added_is_found_with_what_was_before() {
        let (path, place) = room("added");
        let open = || Kept::<1>::open(Some(place.clone()));
        let kept = open();
        assert!(kept.store().is_none(), "nothing is new");
        for key in [3, 9] {
            kept.add([key], &format!("first {key}"));
        }
        kept.store().unwrap();
        let kept = open();
        for key in [5, 9] {
            kept.add([key], &format!("second {key}"));
        }
        assert_eq!(kept.get::<&str>(&[5]), None);
        kept.store().unwrap();
        let found: Vec<Option<String>> = [3, 4, 5, 9].map(|key| open().get(&[key])).into();
        let wanted = [Some("first 3"), None, Some("second 5"), Some("second 9")];
        assert_eq!(found, wanted.map(|it| it.map(str::to_owned)));
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_is_too_much_is_not_kept() {
        let (path, place) = room("much");
        let kept = Kept::<1>::open(Some(place));
        let megabyte = "x".repeat(1 << 20);
        (0..31).for_each(|key| kept.add([key], &megabyte));
        assert!(kept.store().is_some());
        kept.add([31], &megabyte);
        assert!(kept.store().is_none());
        // What is small enough again would leave out what was before.
        kept.add([32], &"");
        assert!(kept.store().is_none());
        std::fs::remove_dir_all(path).unwrap();
    }
}
