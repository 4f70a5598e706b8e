//! The names of this machine's running kernel, for recordings that were made under it.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use crate::base::{Avma, BuildId, CaveatKind};
use crate::binary::Kallsyms;
use crate::cache::Cache;
use crate::trace::{Image, ImageKind, Recording, Trace};

/// The kernel's symbols, hidden or not there.
type Symbols = Result<Arc<Kallsyms>, (CaveatKind, String)>;

/// The running kernel.
pub(super) struct Host {
    name: String,
    release: String,
    build_id: Option<BuildId>,
    symbols: OnceLock<Symbols>,
    /// Where symbols are kept.
    cache: Option<Arc<Cache>>,
}

impl Host {
    pub(super) fn new(cache: Option<Arc<Cache>>) -> Host {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let notes = fs::read("/sys/kernel/notes").unwrap_or_default();
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Host {
            name: name.trim().to_owned(),
            release: release.trim().to_owned(),
            build_id: BuildId::in_notes(&notes),
            symbols: OnceLock::new(),
            cache,
        }
    }

    pub(super) fn may_have_made(&self, recording: &Recording) -> bool {
        self.is_release(recording.os_release.as_deref())
    }

    pub(super) fn is_named(&self, recording: &Recording) -> bool {
        recording.host.as_ref() == Some(&self.name)
    }

    pub(super) fn is_release(&self, release: Option<&str>) -> bool {
        release.is_none_or(|release| release == self.release)
    }

    /// The symbols for a kernel image or a module, and what to add to its addresses to get those
    /// of now.
    ///
    /// The kernel is believed to be the same one when the build ids agree; a recording without one
    /// must have its text at the same address. Modules, and code outside of the kernel's text, lie
    /// elsewhere after each start: they are named only if the text lies where it lay.
    pub(super) fn kernel(
        &self,
        trace: &Trace,
        image: &Image,
    ) -> Result<(Arc<Kallsyms>, u64), (CaveatKind, String)> {
        let other = |why: &str| {
            let detail = format!("{}: {why}", image.path);
            Err((CaveatKind::ChangedBinary, detail))
        };
        let kernel = trace.images.iter().find_map(|image| match image.kind {
            ImageKind::Kernel { text: Some(text) } => Some((text, &image.build_id)),
            _ => None,
        });
        let Some((then, build_id)) = kernel else {
            let why = "the kernel hid its addresses when it was recorded";
            return Err((CaveatKind::HiddenKernel, format!("{}: {why}", image.path)));
        };
        let same_build = match (build_id, &self.build_id) {
            (Some(recorded), Some(running)) if recorded != running => {
                return other("the running kernel is another build");
            }
            (Some(_), Some(_)) => true,
            _ => false,
        };
        if !self.may_have_made(&trace.recording) {
            return other("the running kernel is another release");
        }
        let symbols = self.symbols(trace.recording.written)?;
        let Some(Avma(now)) = symbols.text() else {
            return other("the running kernel does not tell where its text is");
        };
        let is_text = matches!(image.kind, ImageKind::Kernel { text: Some(_) });
        if then == now || (is_text && same_build) {
            Ok((symbols, now.wrapping_sub(then)))
        } else {
            other("the kernel lay elsewhere when it was recorded")
        }
    }

    pub(super) fn is_or_may_be(&self, kernel: &Image) -> bool {
        match (&kernel.build_id, &self.build_id) {
            (Some(recorded), Some(running)) => recorded == running,
            _ => true,
        }
    }

    /// Reads the symbols, for a recording that was made at this time.
    pub(super) fn prepare(&self, made: Option<SystemTime>) {
        // Errors are reported when they are used.
        let _ = self.symbols(made);
    }

    fn symbols(&self, made: Option<SystemTime>) -> Symbols {
        const LIST: &str = "/proc/kallsyms";
        let list = || match &self.cache {
            Some(cache) => Kallsyms::read_cached(Path::new(LIST), cache, made),
            None => Kallsyms::read(Path::new(LIST)),
        };
        let read = || match list() {
            Ok(symbols) if symbols.is_hidden() => Err((
                CaveatKind::HiddenKernel,
                format!("{LIST} hides the addresses"),
            )),
            Ok(symbols) => Ok(Arc::new(symbols)),
            Err(error) => Err((CaveatKind::MissingBinary, format!("{LIST}: {error}"))),
        };
        self.symbols.get_or_init(read).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::IdVec;

    #[test]
    fn a_module_of_another_kernel_has_no_names_here() {
        let host = Host::new(None);
        let recording = Recording {
            os_release: Some(format!("{}-of-another-machine", host.release)),
            ..Recording::default()
        };
        let module = Image {
            file: None,
            path: "/lib/modules/fs.ko".into(),
            raw_path: None,
            build_id: None,
            kind: ImageKind::Module,
        };
        let mut trace = Trace {
            recording,
            ..Trace::default()
        };
        let kernel = ImageKind::Kernel {
            text: Some(0xffff_ffff_8000_0000),
        };
        trace.images.push(Image {
            file: None,
            path: "[kernel.kallsyms]".into(),
            raw_path: None,
            build_id: None,
            kind: kernel,
        });
        let told = host.kernel(&trace, &module).map(|_| ());
        let why = "/lib/modules/fs.ko: the running kernel is another release".to_owned();
        assert_eq!(told, Err((CaveatKind::ChangedBinary, why)));
        trace.images = IdVec::new();
        assert!(
            host.kernel(&trace, &module).is_err(),
            "nothing tells the kernel"
        );
    }
}
