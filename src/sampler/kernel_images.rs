//! The kernel's image and its modules: where they lie, and which build they are.
//!
//! ```text
//! /proc/kallsyms    ffffffff81000000 T _stext           symbols, all 0 when hidden
//! /proc/iomem         01000000-022090c7 : Kernel code     its size, the addresses are physical
//! /proc/modules     ext4 937984 2 - Live 0xffffffffc0400000
//! /sys/kernel/notes                                     the image's ELF notes, raw
//! /sys/module/ext4/notes/.note.gnu.build-id             a module's
//! /lib/modules/RELEASE/modules.dep                      kernel/fs/ext4/ext4.ko: kernel/…
//! ```

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};

use rustc_hash::FxBuildHasher;

use crate::base::BuildId;
use crate::perfdata::writer::{BuildIdEntry, KernelMapping};

// The name under which the kernel's image is known to all readers.
const IMAGE: &str = "[kernel.kallsyms]";

#[derive(Clone, Debug, Default)]
pub(super) struct KernelImages {
    /// The image and the modules; empty when addresses are hidden.
    pub(super) mappings: Vec<KernelMapping>,
    pub(super) build_ids: Vec<BuildIdEntry>,
}

impl KernelImages {
    pub(super) fn running() -> KernelImages {
        let mut images = KernelImages::default();
        let Some(image) = File::open("/proc/kallsyms").ok().and_then(|file| {
            let memory = fs::read_to_string("/proc/iomem").unwrap_or_default();
            // A small buffer: each line is made when it is read.
            image_mapping(BufReader::with_capacity(4096, file), code_size(&memory))
        }) else {
            return images;
        };
        images.mappings.push(image);
        if let Some(build_id) = build_id("/sys/kernel/notes") {
            images.build_ids.push(BuildIdEntry {
                path: IMAGE.into(),
                build_id,
                kernel: true,
            });
        }
        let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
        let files = module_files();
        for (name, start, len) in modules_loaded(&modules) {
            let path = files
                .get(name)
                .cloned()
                .unwrap_or_else(|| format!("[{name}]"))
                .into_bytes();
            if let Some(build_id) =
                build_id(&format!("/sys/module/{name}/notes/.note.gnu.build-id"))
            {
                images.build_ids.push(BuildIdEntry {
                    path: path.clone(),
                    build_id,
                    kernel: true,
                });
            }
            images.mappings.push(KernelMapping {
                start,
                len,
                page_offset: 0,
                name: path,
            });
        }
        images
    }
}

// The image's text by three of its symbols. Readers take the symbol in the name as the one by which
// the image was moved. `None` when the kernel hides its addresses. The end is a hundred thousand
// lines away from the start, 40 ms of processor time; with a known `size` the list is not read so
// far.
fn image_mapping(symbols: impl BufRead, size: Option<u64>) -> Option<KernelMapping> {
    let (mut text, mut start, mut end) = (None, None, None);
    for line in symbols.split(b'\n').map_while(Result::ok) {
        let is = |name: &[u8]| line.ends_with(name);
        let found = if is(b" _text") {
            &mut text
        } else if is(b" _stext") {
            &mut start
        } else if is(b" _etext") {
            &mut end
        } else {
            continue;
        };
        let address = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?;
        let address = u64::from_str_radix(address, 16).ok()?;
        if address == 0 {
            return None;
        }
        *found = Some(address);
        // Some kernels list symbols in order of address, others not: all three are waited for.
        end = end.or(text.zip(size).map(|(text, size)| text.saturating_add(size)));
        if text.is_some() && start.is_some() && end.is_some() {
            break;
        }
    }
    let (symbol, moved_by) = match text {
        Some(text) => ("_text", text),
        None => ("_stext", start?),
    };
    let start = start.unwrap_or(moved_by);
    let end = end.filter(|end| *end > start).unwrap_or(u64::MAX);
    Some(KernelMapping {
        start,
        len: end - start,
        page_offset: moved_by,
        name: format!("{IMAGE}{symbol}").into(),
    })
}

/// The size of the kernel's code, from `/proc/iomem`; `None` for those who may not see addresses.
fn code_size(memory: &str) -> Option<u64> {
    let line = memory
        .lines()
        .find(|line| line.ends_with(" : Kernel code"))?;
    let (first, last) = line.trim_start().split(' ').next()?.split_once('-')?;
    let first = u64::from_str_radix(first, 16).ok()?;
    let last = u64::from_str_radix(last, 16).ok()?;
    last.checked_sub(first)?
        .checked_add(1)
        .filter(|size| *size > 1)
}

/// Name, start and length of each module, from `/proc/modules`; those at hidden addresses are
/// left out.
fn modules_loaded(text: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let name = fields.next()?;
        let len = fields.next()?.parse().ok()?;
        let start = fields.find_map(|field| field.strip_prefix("0x"))?;
        let start = u64::from_str_radix(start, 16).ok()?;
        (start != 0).then_some((name, start, len))
    })
}

/// The paths of all modules of this kernel, by the names that they have when loaded.
fn module_files() -> HashMap<String, String, FxBuildHasher> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let directory = format!("/lib/modules/{}", release.trim());
    let list = fs::read_to_string(format!("{directory}/modules.dep")).unwrap_or_default();
    module_paths(&list, &directory)
}

fn module_paths(list: &str, directory: &str) -> HashMap<String, String, FxBuildHasher> {
    list.lines()
        .filter_map(|line| {
            let (path, _) = line.split_once(':')?;
            let file = path.rsplit('/').next()?;
            let (name, _) = file.split_once(".ko")?;
            let path = if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("{directory}/{path}")
            };
            Some((name.replace('-', "_"), path))
        })
        .collect()
}

fn build_id(path: &str) -> Option<BuildId> {
    BuildId::in_notes(&fs::read(path).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_goes_from_stext_to_etext_and_is_named_by_text() {
        let symbols = "ffffffff81000000 T srso_alias\nffffffff81000000 T _text\n\
                       ffffffff81000040 T _stext\nffffffff81000100 t not_text\n\
                       ffffffff82000000 T _etext\n";
        let mapping = image_mapping(symbols.as_bytes(), None).unwrap();
        assert_eq!(mapping.start, 0xffff_ffff_8100_0040);
        assert_eq!(mapping.len, 0xff_ffc0);
        assert_eq!(mapping.page_offset, 0xffff_ffff_8100_0000);
        assert_eq!(mapping.name, b"[kernel.kallsyms]_text");
    }

    #[test]
    fn a_known_size_saves_reading_to_the_end() {
        let symbols = "ffffffff81000000 T _stext\nffffffff81000000 T _text\n";
        let memory = "00000000-0fffffff : System RAM\n  01000000-022090c7 : Kernel code\n";
        let mapping = image_mapping(symbols.as_bytes(), code_size(memory)).unwrap();
        assert_eq!(mapping.len, 0x120_90c8);
        assert_eq!(code_size("  00000000-00000000 : Kernel code\n"), None);
        assert_eq!(code_size("  0-ffffffffffffffff : Kernel code\n"), None);
        assert_eq!(code_size(""), None);
    }

    #[test]
    fn hidden_addresses_make_no_mapping() {
        let symbols = "0000000000000000 T _text\n0000000000000000 T _stext\n";
        assert_eq!(image_mapping(symbols.as_bytes(), None), None);
        assert_eq!(image_mapping(&b""[..], Some(9)), None);
        assert_eq!(
            modules_loaded("ext4 9 2 - Live 0x0000000000000000\n").count(),
            0
        );
    }

    #[test]
    fn modules_have_their_files() {
        let text = "snd_hda 49152 1 snd,x, Live 0xffffffffc0400000 (E)\nbad\n";
        let loaded: Vec<_> = modules_loaded(text).collect();
        assert_eq!(loaded, [("snd_hda", 0xffff_ffff_c040_0000, 49152)]);
        let list = "kernel/sound/snd-hda.ko.xz: kernel/sound/snd.ko.xz\n";
        let files = module_paths(list, "/lib/modules/6.1.0");
        assert_eq!(
            files["snd_hda"],
            "/lib/modules/6.1.0/kernel/sound/snd-hda.ko.xz"
        );
    }
}
