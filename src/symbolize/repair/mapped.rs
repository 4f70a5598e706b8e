//! Which of all mapped files defines a function that is called by name.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::base::IdVec;
use crate::binary::{Binary, Exports};
use crate::trace::{ImageId, ImageKind, Trace};

use super::super::library::Library;
use crate::symbolize::name_source::NameSource;

/// More files are not looked at.
const FILES: usize = 1 << 10;

/// The files that were mapped, whether samples hit them or not: a library that no stack shows may
/// define what another one defines as well.
pub(super) struct Mapped<'h> {
    trace: &'h Trace,
    name_sources: &'h IdVec<ImageId, NameSource>,
    library: &'h Library,
    exports: OnceCell<Option<Vec<Exports>>>,
}

impl<'h> Mapped<'h> {
    pub(super) fn new(
        trace: &'h Trace,
        name_sources: &'h IdVec<ImageId, NameSource>,
        library: &'h Library,
    ) -> Mapped<'h> {
        Mapped {
            trace,
            name_sources,
            library,
            exports: OnceCell::new(),
        }
    }

    /// Whether all files could be read, and they define a function of this name only once.
    pub(super) fn define_once(&self, name: &str) -> bool {
        let exports = self.exports.get_or_init(|| self.read());
        let Some(exports) = exports else {
            return false;
        };
        let mut found = None;
        for (file, exports) in exports.iter().enumerate() {
            for start in exports.starts(name.as_bytes()) {
                if found.is_some_and(|known| known != (file, start)) {
                    return false;
                }
                found = Some((file, start));
            }
        }
        found.is_some()
    }

    fn read(&self) -> Option<Vec<Exports>> {
        let images = self.trace.images.enumerate();
        let files = images.filter(|(_, image)| image.kind == ImageKind::File);
        let mut exports = Vec::new();
        for (id, image) in files {
            let binary: Arc<Binary> = match &self.name_sources[id] {
                NameSource::Binary(binary) => binary.clone(),
                _ => self.library.file(image).ok()?,
            };
            exports.push(binary.exports());
            if exports.len() > FILES {
                return None;
            }
        }
        Some(exports)
    }
}
