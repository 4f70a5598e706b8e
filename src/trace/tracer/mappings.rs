//! What the tracer does about what is mapped: files, the kernel, generated code.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::{BuildId, CaveatKind, utf8};
use crate::perfdata::{CallCounts, CountedAgent, Mapping, Reader, Record};

use super::super::chain::Space;
use super::super::image::user_image_kind;
use super::super::memory::{Shown, Stubs};
use super::super::{Image, ImageId, ImageKind};
use super::Tracer;

impl Tracer<'_, '_, '_> {
    pub(super) fn mapping(&mut self, reader: &Reader, record: &Record<'_>, mapping: &Mapping<'_>) {
        if !mapping.executable || mapping.length == 0 {
            return;
        }
        let start = mapping.address;
        let end = start.checked_add(mapping.length - 1);
        let Some(end) = end.map(|last| last.saturating_add(1)) else {
            return self.trace.caveats.add_with(CaveatKind::Skipped, 1, || {
                format!(
                    "at offset {:#x}: mapping of {:#x} bytes at {start:#x} passes the end of \
                     memory",
                    record.offset, mapping.length
                )
            });
        };
        let path = utf8(mapping.path);
        let build_id = self.build(reader, mapping, &path);
        match Space::of(record.cpu_mode()) {
            Space::Other => {}
            Space::Kernel => {
                self.settle(reader);
                let (image, base) = self.kernel_image(&path, build_id, mapping);
                self.stacks
                    .kernel
                    .change(|m| m.map(start, end, image, base));
            }
            Space::User => {
                self.mapped += 1;
                self.dumps
                    .advance(mapping.pid, record.time, &mut self.stacks);
                // The page that shows the file is there to name it; no code of it runs.
                if self
                    .dumps
                    .is_dump(reader, &path, (mapping.pid, record.time))
                {
                    return;
                }
                if let Some(stubs) = stubs(reader, &path, mapping.page_offset, (start, end)) {
                    self.uncounted.map_stubs(mapping.pid);
                    let process = self.stacks.processes.entry(mapping.pid).or_default();
                    return process.change(|mappings| mappings.map_stubs(stubs));
                }
                let kind = match user_image_kind(&path, mapping.pid) {
                    ImageKind::Generated { .. }
                        if self.is_program(record, mapping.pid, &path, build_id.as_ref()) =>
                    {
                        ImageKind::File
                    }
                    kind => kind,
                };
                let base = match kind {
                    ImageKind::File => mapping.page_offset,
                    ImageKind::Vdso => 0,
                    _ => start,
                };
                let raw = match &path {
                    Cow::Owned(_) => Some(Path::new(OsStr::from_bytes(mapping.path)).into()),
                    Cow::Borrowed(_) => None,
                };
                // What was mapped before the recording began has the time 0.
                if let (Some(file), Some(time @ 1..)) = (mapping.file, record.time) {
                    let first = self.first_mapped.entry(file).or_insert(time);
                    *first = time.min(*first);
                }
                let path: Arc<str> = path.into();
                self.uncounted.map(mapping.pid, &path);
                let image = self.stacks.images.id_of(Image {
                    file: (kind == ImageKind::File).then_some(mapping.file).flatten(),
                    path,
                    raw_path: raw,
                    build_id,
                    kind,
                });
                if let ImageKind::Generated { pid } = kind {
                    return self.map_generated(pid, (start, end), image);
                }
                if kind == ImageKind::File {
                    self.map_program(mapping.pid, start, base, image);
                }
                let process = self.stacks.processes.entry(mapping.pid).or_default();
                process.change(|m| {
                    m.map(start, end, image, base);
                    m.ungenerate(start, end);
                });
            }
        }
    }

    /// The build of what is mapped: by its record, or as the recorder lists it for the path. Where
    /// several files had the path, that is the build of one of them.
    fn build(&mut self, reader: &Reader, mapping: &Mapping<'_>, path: &str) -> Option<BuildId> {
        let known = self.has_listed_build.get(path);
        if mapping.build_id.is_some() {
            if known.is_none() {
                self.has_listed_build.insert(path.to_owned(), None);
            }
            return mapping.build_id.clone();
        }
        let builds = self.builds.get_or_insert_with(|| {
            let listed = listed_builds(reader).into_iter();
            listed
                .map(|(path, id)| (path.to_owned(), id.clone()))
                .collect()
        });
        let of_kernel = path.strip_suffix("_text").filter(|p| p.starts_with('['));
        let listed = builds.get(of_kernel.unwrap_or(path))?;
        match known {
            Some(file) if mapping.file.is_some() && mapping.file != *file => return None,
            Some(_) => {}
            None => drop(self.has_listed_build.insert(path.to_owned(), mapping.file)),
        }
        Some(listed.clone())
    }

    /// Whether memory with a name (`memfd_create`) is a program or a library, and not what a
    /// compiler generates: it has a build ID, or it is mapped first when a program starts.
    fn is_program(
        &self,
        record: &Record<'_>,
        pid: i32,
        path: &str,
        build_id: Option<&BuildId>,
    ) -> bool {
        // What ran before is listed by address, at the time 0.
        let is_started = record.time.is_some_and(|time| time > 0);
        let process = self.stacks.processes.get(&pid);
        let is_first = || is_started && process.is_some_and(|it| it.program().is_none());
        path.starts_with("/memfd:") && (build_id.is_some() || is_first())
    }

    fn kernel_image(
        &mut self,
        path: &str,
        build_id: Option<BuildId>,
        mapping: &Mapping<'_>,
    ) -> (ImageId, u64) {
        if let Some(reference) = path.strip_prefix("[kernel.kallsyms]") {
            // `[kernel.kallsyms]_text`: the page offset is that symbol's address.
            let text =
                (!reference.is_empty() && mapping.page_offset > 0).then_some(mapping.page_offset);
            let image = self.image("[kernel.kallsyms]", build_id, ImageKind::Kernel { text });
            return (image, mapping.address);
        }
        let kind = if path.starts_with("[bpf") || path.starts_with("bpf_") {
            ImageKind::KernelGenerated
        } else {
            ImageKind::Module
        };
        (self.image(path, build_id, kind), mapping.address)
    }

    pub(super) fn kernel_symbol(&mut self, address: u64, size: u64, removed: bool, name: &[u8]) {
        let Some(end) = address.checked_add(size).filter(|_| size > 0) else {
            return;
        };
        if removed {
            return self.stacks.kernel.change(|m| m.unmap(address, end));
        }
        let image = self.image("[bpf]", None, ImageKind::KernelGenerated);
        self.stacks
            .kernel
            .change(|m| m.map(address, end, image, address));
        let name = utf8(name).into_owned();
        self.trace.kernel_symbols.push((address, size, name));
    }

    fn image(&mut self, path: &str, build_id: Option<BuildId>, kind: ImageKind) -> ImageId {
        self.stacks.images.id_of(Image {
            file: None,
            path: path.into(),
            raw_path: None,
            build_id,
            kind,
        })
    }
}

/// The stubs that a mapping shows, if the recorder has put some there.
fn stubs(reader: &Reader, path: &str, offset: u64, (start, end): (u64, u64)) -> Option<Stubs> {
    let counts = reader.features().call_counts.as_ref()?;
    if path != CallCounts::MAPPING {
        return None;
    }
    let mut images = counts.images.iter();
    let image = images.position(|image| image.stubs == offset && !image.sites.is_empty());
    let shown = match image {
        Some(image) => Shown::Image(image),
        None => {
            let mut agents = counts.agents.iter();
            let is_it = |agent: &CountedAgent| offset == 0 && agent.at == start;
            Shown::Agent(agents.position(is_it)?)
        }
    };
    Some(Stubs {
        start,
        end,
        counts: counts.clone(),
        shown,
    })
}

/// The builds of files as the recorder lists them at the end: old kernels do not tell them with
/// the mappings.
pub(in crate::trace) fn listed_builds(reader: &Reader) -> FxHashMap<&str, &BuildId> {
    let listed = reader.features().build_ids.iter();
    listed
        .map(|file| (file.path.as_str(), &file.build_id))
        .collect()
}
