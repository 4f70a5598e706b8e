//! Answers that are found once.

use std::cell::{Ref, RefCell};
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Answers by what is asked.
pub(super) struct Memo<K, V>(RefCell<FxHashMap<K, V>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Memo(RefCell::default())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Memo<K, V> {
    pub(super) fn get(&self, key: &K, find: impl FnOnce() -> V) -> V {
        if let Some(known) = self.0.borrow().get(key) {
            return known.clone();
        }
        // Nothing is borrowed meanwhile: an answer may depend on others of its kind.
        let found = find();
        self.0.borrow_mut().insert(key.clone(), found.clone());
        found
    }

    /// All answers so far, in no order.
    pub(super) fn known(&self) -> Ref<'_, FxHashMap<K, V>> {
        self.0.borrow()
    }
}
