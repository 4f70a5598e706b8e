//! What is known of all mapped files, whether samples hit them or not: which of them defines a
//! function that is called by name, and which are programs.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::base::IdVec;
use crate::binary::{Binary, Exports};
use crate::trace::{ImageId, ImageKind, Trace};

use super::super::library::Library;
use crate::symbolize::name_source::NameSource;

// More files are not looked at.
const FILES: usize = 1 << 10;

/// The files that were mapped, whether samples hit them or not: a library that no stack shows may
/// define what another one defines as well.
pub(super) struct Mapped<'h> {
    trace: &'h Trace,
    name_sources: &'h IdVec<ImageId, NameSource>,
    library: &'h Library,
    files: OnceCell<Option<Files>>,
}

/// What is asked about the files.
#[derive(Default)]
struct Files {
    exports: Vec<Exports>,
    programs: Vec<ImageId>,
}

/// Whether a file is started, and not loaded by another one: it has no name by which others need
/// it, as a C library has that can be started as well.
pub(super) fn is_program(binary: &Binary) -> bool {
    binary.is_program() && binary.needed().soname.is_none()
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
            files: OnceCell::new(),
        }
    }

    /// Whether all files could be read, and they define a function of this name only once.
    pub(super) fn define_once(&self, name: &str) -> bool {
        let Some(files) = self.files() else {
            return false;
        };
        let mut found = None;
        for (file, exports) in files.exports.iter().enumerate() {
            for start in exports.starts(name.as_bytes()) {
                if found.is_some_and(|known| known != (file, start)) {
                    return false;
                }
                found = Some((file, start));
            }
        }
        found.is_some()
    }

    pub(super) fn only_program(&self) -> Option<ImageId> {
        match *self.programs()? {
            [only] => Some(only),
            _ => None,
        }
    }

    pub(super) fn programs(&self) -> Option<&[ImageId]> {
        Some(&self.files()?.programs)
    }

    fn files(&self) -> Option<&Files> {
        self.files.get_or_init(|| self.read()).as_ref()
    }

    fn read(&self) -> Option<Files> {
        let images = self.trace.images.enumerate();
        let mut files = Files::default();
        for (id, image) in images.filter(|(_, image)| image.kind == ImageKind::File) {
            let binary: Arc<Binary> = match &self.name_sources[id] {
                NameSource::Binary(binary, _) => binary.clone(),
                _ => self.library.file(image).ok()?,
            };
            if is_program(&binary) {
                files.programs.push(id);
            }
            files.exports.push(binary.exports());
            if files.exports.len() > FILES {
                return None;
            }
        }
        Some(files)
    }
}
