//! Files of programs that see other file systems: where they are for the rest of the machine.
//!
//! A process in a chroot or with mounts of its own, as in a container, tells paths that begin at
//! its own root. While it lives, /proc leads from there to paths that last longer:
//!
//! ```text
//! /proc/PID/root       /srv/jail                                        of a chroot
//! /proc/PID/mountinfo  36 35 98:0 /data/app /app rw - ext4 /dev/sda …   a directory mounted again
//!                      41 35 0:52 / / rw - overlay o lowerdir=A:B,upperdir=C,…
//! ```
//!
//! A path is believed only if the file there has the build ID of the mapping.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use super::elf_notes;
use crate::base::BuildId;
use crate::files::{Root, living_thread, read_list};
use crate::perfdata::writer::BuildIdEntry;

// The most roots of processes that are remembered for those that end before they are looked at.
const ROOTS: usize = 64;
// The most files that are looked at.
const FILES: usize = 10_000;
// How much is read of a list of mounts, and of all of them, in bytes.
const MOUNTS: (usize, usize) = (4 << 20, 256 << 20);
// The most places in which a file is looked for.
const CANDIDATES: usize = 64;

#[derive(Clone, Debug, Default)]
pub(in crate::sampler) struct Elsewhere {
    /// Paths and builds that need not be looked at again.
    settled: FxHashSet<(Vec<u8>, Option<BuildId>)>,
    roots: Vec<PathBuf>,
    read: usize,
    pub(in crate::sampler) found: Vec<BuildIdEntry>,
}

impl Elsewhere {
    /// Looks at a file that a process has mapped; of what is seen as here nothing is kept. Returns
    /// the build ID if the kernel did not tell it, and the file is not the one of this path here.
    pub(in crate::sampler) fn mapped(
        &mut self,
        pid: i32,
        path: &[u8],
        build_id: Option<&BuildId>,
    ) -> Option<BuildId> {
        let key = (path.to_vec(), build_id.cloned());
        if self.settled.contains(&key) || self.settled.len() >= FILES {
            return None;
        }
        let living = u32::try_from(pid).ok().and_then(living_thread);
        let process = PathBuf::from(format!("/proc/{}", living.map_or(pid, u32::cast_signed)));
        let root = fs::read_link(process.join("root")).ok();
        let mounts = |process: &Path| fs::read_link(process.join("ns/mnt")).ok();
        let other_mounts = mounts(&process) != mounts(Path::new("/proc/self"));
        let path = Path::new(OsStr::from_bytes(path));
        let mut told = None;
        let mut candidates = Vec::new();
        match &root {
            Some(root) if root == Path::new("/") && !other_mounts => {
                self.settled.insert(key);
                return None;
            }
            Some(root) => {
                if build_id.is_none() {
                    told = elf_notes::build_id_below(&Root::at(&process.join("root")), path);
                }
                if root != Path::new("/") {
                    if !self.roots.contains(root) && self.roots.len() < ROOTS {
                        self.roots.push(root.clone());
                    }
                    candidates.push(Root::at(root).full(path));
                }
                if other_mounts {
                    let theirs = self.mounts_of(&process);
                    let ours = self.mounts_of(Path::new("/proc/self"));
                    candidates.extend(outside(path, &theirs, &ours).take(CANDIDATES));
                }
            }
            // It has ended: another one of its kind may have been seen before.
            None => candidates.extend(self.roots.iter().map(|root| Root::at(root).full(path))),
        }
        let build = build_id.or(told.as_ref())?;
        let is_same = |place: &PathBuf| elf_notes::build_id_of(place).as_ref() == Some(build);
        if let Some(place) = candidates.into_iter().find(is_same) {
            self.found.push(BuildIdEntry {
                path: place.into_os_string().into_vec(),
                build_id: build.clone(),
                kernel: false,
            });
            self.settled.insert(key);
        }
        told
    }
}

impl Elsewhere {
    fn mounts_of(&mut self, process: &Path) -> Vec<u8> {
        let most = MOUNTS.0.min(MOUNTS.1.saturating_sub(self.read));
        let list = read_list(&process.join("mountinfo"), most, b'\n').unwrap_or_default();
        self.read += list.bytes.len();
        list.bytes
    }
}

struct Mount {
    device: Vec<u8>,
    root: PathBuf,
    point: PathBuf,
    layers: Vec<PathBuf>,
}

/// Where a path of another process may be for us, by the mounts that it and we see.
fn outside(path: &Path, theirs: &[u8], ours: &[u8]) -> impl Iterator<Item = PathBuf> {
    let longest = mounts(theirs)
        .filter(|mount| path.starts_with(&mount.point))
        // The later of two at one place covers the earlier.
        .max_by_key(|mount| mount.point.as_os_str().len());
    let rest = longest.and_then(|mount| {
        let rest = path.strip_prefix(&mount.point).ok()?.to_owned();
        Some((mount, rest))
    });
    rest.into_iter().flat_map(|(mount, rest)| {
        let layers = mount.layers.iter().map(|layer| layer.join(&rest));
        let inside = mount.root.join(&rest);
        let shown = mounts(ours)
            .filter(|our| our.device == mount.device)
            .filter_map(|our| Some(our.point.join(inside.strip_prefix(&our.root).ok()?)));
        layers.chain(shown).collect::<Vec<_>>()
    })
}

fn mounts(list: &[u8]) -> impl Iterator<Item = Mount> + '_ {
    list.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut words = line.split(|byte| *byte == b' ').skip(2);
        let device = words.next()?.to_vec();
        let (root, point) = (unescaped(words.next()?), unescaped(words.next()?));
        let options = words
            .skip_while(|word| *word != b"-")
            .nth(3)
            .unwrap_or_default();
        let layers = options
            .split(|byte| *byte == b',')
            .filter_map(|option| {
                option
                    .strip_prefix(b"upperdir=")
                    .or_else(|| option.strip_prefix(b"lowerdir="))
            })
            .flat_map(|list| list.split(|byte| *byte == b':'))
            .map(unescaped)
            .filter(|layer| layer.is_absolute());
        Some(Mount {
            device,
            root,
            point,
            layers: layers.collect(),
        })
    })
}

/// A path in which the kernel wrote a space, a tab, a line feed and a backslash as `\040` and so
/// on.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| byte == b'\\');
        let code =
            code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_a_container_resolve_through_its_mounts() {
        let theirs =
            b"30 1 0:52 / / rw - overlay o rw,lowerdir=/l/1:/l/2,upperdir=/u\\0401,workdir=/w\n\
            31 30 98:0 /data/app /app rw,relatime master:1 - ext4 /dev/sda rw\n\
            bad\n";
        let ours =
            b"20 1 98:0 / /disk rw - ext4 /dev/sda rw\n21 1 98:1 / / rw - ext4 /dev/sdb rw\n";
        let found = |path: &str| outside(Path::new(path), theirs, ours).collect::<Vec<_>>();
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(found("/app/bin/x"), paths(&["/disk/data/app/bin/x"]));
        assert_eq!(
            found("/bin/x"),
            paths(&["/l/1/bin/x", "/l/2/bin/x", "/u 1/bin/x"])
        );
        assert_eq!(outside(Path::new("/x"), b"", ours).next(), None);
    }

    #[test]
    fn what_is_here_as_well_is_not_kept() {
        let mut elsewhere = Elsewhere::default();
        let program = std::env::current_exe().unwrap();
        let pid = std::process::id() as i32;
        let told = elsewhere.mapped(pid, program.as_os_str().as_bytes(), None);
        assert!(told.is_none() && elsewhere.found.is_empty());
    }
}
