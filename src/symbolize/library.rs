//! Files and kernel symbols, each opened once, ahead of need where somebody has the time.

use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use crate::base::{BuildId, CaveatKind};
use crate::binary::{self, Binary};
use crate::trace::{Image, ImageKind};

use super::Options;
use super::host::Host;

/// A file that was opened, or why it could not be.
pub(super) type Opened = Result<Arc<Binary>, (CaveatKind, String)>;

/// What names come from. It may be shared: while one worker reads the samples of a recording,
/// another [prepares](Library::prepare) the images that they are in.
pub struct Library {
    pub(super) options: Options,
    pub(super) host: Host,
    files: Mutex<FxHashMap<FileKey, Arc<OnceLock<Opened>>>>,
}

/// What a file is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FileKey {
    path: String,
    build_id: Option<BuildId>,
}

impl Library {
    /// An empty library, which opens files as they are asked for.
    pub fn new(options: Options) -> Library {
        Library {
            options,
            host: Host::new(),
            files: Mutex::default(),
        }
    }

    /// Reads what the names of an image's addresses come from.
    pub fn prepare(&self, image: &Image) {
        match image.kind {
            ImageKind::File => {
                if let Ok(binary) = self.file(image)
                    && self.options.inlines
                {
                    binary.lines();
                }
            }
            ImageKind::Kernel { .. } if self.host.is_or_may_be(image) => self.host.prepare(),
            _ => {}
        }
    }

    /// The file of an image, with its functions read.
    pub(super) fn file(&self, image: &Image) -> Opened {
        let key = FileKey {
            path: image.path.clone(),
            build_id: image.build_id.clone(),
        };
        let file = {
            let mut files = self.files.lock().expect("no worker panics");
            files.entry(key).or_default().clone()
        };
        file.get_or_init(|| self.open(image)).clone()
    }

    fn open(&self, image: &Image) -> Opened {
        let found = self
            .options
            .finder
            .find(&image.path, image.build_id.as_ref());
        match found {
            Ok(binary) => {
                binary.functions();
                Ok(Arc::new(binary))
            }
            Err(error) => {
                let kind = match error {
                    binary::Error::ChangedBuild { .. } => CaveatKind::ChangedBinary,
                    _ => CaveatKind::MissingBinary,
                };
                Err((kind, format!("{}: {error}", image.path)))
            }
        }
    }
}
