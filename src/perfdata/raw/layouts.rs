//! The offsets of all events of a recording, by the ids in their records.

use rustc_hash::FxHashMap;

use super::{Field, Offsets, RawRecord};
use crate::perfdata::writer::WriterEvent;

// Where the fields of the records of a recording are. Events of one recording may ask for different
// fields, so the offsets of one record are those of its event, which it names by an id. The id
// itself, like the time and the thread, is at the same place in the records of every event:
// recorders make sure of it, since nobody could read their recordings otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layouts {
    shared: Offsets,
    events: Vec<Offsets>,
    ids: FxHashMap<u64, usize>,
}

impl Layouts {
    pub(crate) fn new(events: &[WriterEvent]) -> Layouts {
        let offsets: Vec<Offsets> = events
            .iter()
            .map(|event| Offsets::new(&event.settings()))
            .collect();
        let shared = offsets
            .iter()
            .copied()
            .reduce(|one, other| one.shared_with(&other));
        let mut ids = FxHashMap::default();
        for (index, event) in events.iter().enumerate() {
            ids.extend(event.ids.iter().map(|&id| (id, index)));
        }
        Layouts {
            shared: shared.unwrap_or_default(),
            events: offsets,
            ids,
        }
    }

    pub(crate) fn shared(&self) -> &Offsets {
        &self.shared
    }

    /// The event of a record, by its index, and the offsets in its records; `None` if the record
    /// does not name one of these events.
    pub(crate) fn event(&self, record: RawRecord<'_>) -> Option<(usize, &Offsets)> {
        let id = record.field(Field::Id, &self.shared)?;
        let index = *self.ids.get(&id)?;
        Some((index, self.events.get(index)?))
    }

    pub(crate) fn has_counters(&self) -> bool {
        self.events.iter().any(Offsets::has_counters)
    }
}
