//! A running process, as /proc has it: its program, what is mapped in it, whether it may be
//! sampled.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::mapped::{MAPPINGS, Mapped, mappings};
use crate::base::utf8;
use crate::files::{LastLink, Root, living_thread, read_list};
use crate::sampler::capabilities::{Trial, try_process};
use crate::sampler::status::field;

/// A file with code that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path, as the process has it.
    pub path: PathBuf,
    /// Whether the file that was mapped is gone: removed, or replaced by another.
    pub deleted: bool,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Its program; `None` for threads of the kernel, for what has ended but was not waited for,
    /// and where this user may not know.
    pub program: Option<PathBuf>,
    /// Whether this user may not know what is mapped in it.
    pub hidden: bool,
    /// The directory by which its files are found, if it has other mounts than this process, as in
    /// a container.
    pub root: Option<PathBuf>,
    /// The files with code that are mapped, the program among them, in order of path.
    pub files: Vec<MappedFile>,
    /// Bytes of mapped code that is in no file: made at run time.
    pub generated: u64,
    /// Where a list of the code that it makes would be, and whether it is there.
    pub perf_map: (PathBuf, bool),
    /// Whether it may be sampled.
    pub trial: Trial,
}

impl Process {
    /// Looks at a process.
    ///
    /// # Errors
    ///
    /// If there is no process with this number.
    pub fn look(pid: i32) -> io::Result<Process> {
        // The first thread may have ended before the others, and shows nothing then.
        let living = u32::try_from(pid).ok().and_then(living_thread);
        let living = living.map_or(pid, u32::cast_signed);
        let directory = PathBuf::from(format!("/proc/{living}"));
        let status = fs::read(directory.join("status"))?;
        let status = utf8(&status);
        let program = fs::read_link(directory.join("exe"));
        let mounts = |of: &str| fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
        let other_mounts = match (mounts(&living.to_string()), mounts("self")) {
            (Some(theirs), Some(ours)) => theirs != ours,
            _ => false,
        };
        let root = other_mounts.then(|| directory.join("root"));
        let maps = read_list(&directory.join("maps"), MAPPINGS, b'\n');
        let (files, generated) = mapped(maps.as_ref().map_or(&[], |maps| &maps.bytes));
        // The number that the process itself knows, in the innermost of its namespaces.
        let inner = field(&status, "NStgid").and_then(|numbers| numbers.split_whitespace().last());
        let map = format!("tmp/perf-{}.map", inner.unwrap_or(&pid.to_string()));
        let seen = root.as_deref().map(Root::at).unwrap_or_default();
        let there = seen.open(map.as_ref(), LastLink::Refuse).is_ok();
        let map = root.clone().unwrap_or("/".into()).join(map);
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        Ok(Process {
            pid,
            name: field(&status, "Name").unwrap_or_default().to_owned(),
            hidden: program.as_ref().err().is_some_and(denied)
                || maps.as_ref().err().is_some_and(denied),
            program: program.ok(),
            root,
            files,
            generated,
            perf_map: (map, there),
            trial: try_process(living),
        })
    }
}

fn mapped(maps: &[u8]) -> (Vec<MappedFile>, u64) {
    let mut files = BTreeMap::new();
    let mut generated: u64 = 0;
    for mapping in mappings(maps).filter(Mapped::executable) {
        let path = mapping.path;
        if path.starts_with(b"/") && !path.starts_with(b"//anon") && !path.starts_with(b"/memfd:") {
            let whole = path.strip_suffix(b" (deleted)");
            let name = PathBuf::from(OsStr::from_bytes(whole.unwrap_or(path)));
            files.insert(name, whole.is_some());
        } else if !path.starts_with(b"[v") && !path.starts_with(b"[uprobes]") {
            generated = generated.saturating_add(mapping.len());
        }
    }
    let files = files
        .into_iter()
        .map(|(path, deleted)| MappedFile { path, deleted });
    (files.collect(), generated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_code_are_distinguished_from_code_without_files() {
        let maps = b"55d4c8a00000-55d4c8a02000 r--p 00000000 fe:00 12    /usr/bin/prog\n\
            55d4c8a02000-55d4c8a03000 r-xp 00002000 fe:00 12    /usr/bin/my prog (deleted)\n\
            7f0000000000-7f0000003000 r-xp 00000000 00:00 0 \n\
            7f0000004000-7f0000005000 r-xp 00000000 00:01 9  /memfd:jit (deleted)\n\
            7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0   [vdso]\n\
            \n bad\nx-y r-xp";
        let (files, generated) = mapped(maps);
        let path = PathBuf::from("/usr/bin/my prog");
        let deleted = true;
        assert_eq!(files, [MappedFile { path, deleted }]);
        assert_eq!(generated, 0x4000);
    }

    #[test]
    fn this_process_may_be_inspected() {
        let pid = std::process::id() as i32;
        let own = Process::look(pid).unwrap();
        assert_eq!(own.program, std::env::current_exe().ok());
        assert!(!own.hidden && own.root.is_none());
        let program = own.program.unwrap();
        assert!(own.files.iter().any(|file| file.path == program));
        // No process has a number below 1.
        assert!(Process::look(0).is_err() && Process::look(-1).is_err());
    }
}
