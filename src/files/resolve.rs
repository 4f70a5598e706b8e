//! Resolves a path below a directory that stands for `/`.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

// How many symbolic links a path may have, as in path_resolution(7).
const LINK_LIMIT: usize = 40;
// How many components a path may have together with those of its links.
const COMPONENT_LIMIT: usize = 4096;
// How often resolution is tried again that another process disturbed by renaming directories.
const TRIES: usize = 8;

pub(super) fn beneath(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    // The path of a file that has a slash at its end would name a directory.
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    by_kernel(root, path, flags, how).unwrap_or_else(|| step_by_step(root, path, flags))
}

/// Opens `path` below `root` with these flags: no link is followed, and `..` does not lead out of
/// it.
pub(super) fn without_links(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    by_kernel(root, path, flags, how).unwrap_or_else(|| links_refused(root, path, flags))
}

/// What the kernel's own resolution says; `None` where it has none, or something is renamed all the
/// time.
fn by_kernel(
    root: &OwnedFd,
    path: &Path,
    flags: OFlags,
    how: ResolveFlags,
) -> Option<Result<OwnedFd, Errno>> {
    for _ in 0..TRIES {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), how) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return None,
            other => return Some(other),
        }
    }
    None
}

/// What [`without_links`] does, for kernels without `openat2`.
fn links_refused(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    if path.is_absolute() {
        return Err(Errno::XDEV);
    }
    let look = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut open: Vec<OwnedFd> = Vec::new();
    let mut rest = components(path).take(COMPONENT_LIMIT).peekable();
    while let Some(name) = rest.next() {
        match name.as_bytes() {
            b"." => continue,
            b".." => {
                open.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            _ => {}
        }
        let here = open.last().map_or(root.as_fd(), AsFd::as_fd);
        let next = rustix::fs::openat(here, &name, look, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&next)?.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        if rest.peek().is_none() {
            return last(here, &name, next, flags);
        }
        open.push(next);
    }
    // The path is a directory.
    Err(Errno::NOENT)
}

/// What [`beneath`] does, for kernels without `openat2`: each component is looked at by itself, and
/// links are put in the place of their names.
fn step_by_step(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let look = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // The directories from the root down to where we are, so that `..` needs no look outside.
    let mut open: Vec<OwnedFd> = Vec::new();
    let mut rest: VecDeque<OsString> = components(path).collect();
    let (mut links, mut steps) = (0, 0);
    while let Some(name) = rest.pop_front() {
        steps += 1;
        if steps > COMPONENT_LIMIT {
            return Err(Errno::NAMETOOLONG);
        }
        match name.as_bytes() {
            b"." => continue,
            b".." => {
                open.pop();
                continue;
            }
            _ => {}
        }
        let here = open.last().map_or(root.as_fd(), AsFd::as_fd);
        let next = rustix::fs::openat(here, &name, look, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&next)?.st_mode);
        let is_last = rest.is_empty();
        if kind == FileType::Symlink && !(is_last && flags.contains(OFlags::NOFOLLOW)) {
            links += 1;
            if links > LINK_LIMIT {
                return Err(Errno::LOOP);
            }
            let target = rustix::fs::readlinkat(here, &name, Vec::new())?;
            let target = Path::new(OsStr::from_bytes(target.as_bytes()));
            if target.is_absolute() {
                open.clear();
            }
            for component in components(target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(component);
            }
            continue;
        }
        if is_last {
            return last(here, &name, next, flags);
        }
        open.push(next);
    }
    // The path ended in `..` or led to the root itself.
    let here = open.last().map_or(root.as_fd(), AsFd::as_fd);
    rustix::fs::openat(here, ".", flags, Mode::empty())
}

/// Opens the last component as it is asked for. It is no link that may be followed any more.
fn last(
    here: BorrowedFd<'_>,
    name: &OsStr,
    looked_at: OwnedFd,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    if flags.contains(OFlags::PATH) {
        return Ok(looked_at);
    }
    rustix::fs::openat(here, name, flags | OFlags::NOFOLLOW, Mode::empty())
}

fn components(path: &Path) -> impl Iterator<Item = OsString> {
    let names = path
        .as_os_str()
        .as_bytes()
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty());
    names.map(|name| OsStr::from_bytes(name).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// A directory `jail` with a file outside of it.
    fn jail(name: &str) -> PathBuf {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let directory = std::env::temp_dir().join(format!("proftool-{name}-{now}"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("jail/opt/deep")).unwrap();
        fs::write(directory.join("file"), "outside").unwrap();
        fs::write(directory.join("jail/file"), "inside").unwrap();
        let links = [
            ("opt/absolute", "/file"),
            ("opt/upward", "../../../../file"),
            ("opt/deep/chain", "../absolute"),
            ("opt/loop", "loop"),
            ("opt/directory", "/opt"),
            ("opt/out", "/../file"),
        ];
        for (link, target) in links {
            symlink(target, directory.join("jail").join(link)).unwrap();
        }
        directory
    }

    #[test]
    fn no_link_is_followed_below_a_directory() {
        let directory = jail("below");
        fs::write(directory.join("jail/opt/deep/own"), "inside").unwrap();
        let look = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let root = rustix::fs::open(directory.join("jail/opt"), look, Mode::empty()).unwrap();
        let both: [(&str, Resolve); 2] = [("openat2", without_links), ("steps", links_refused)];
        for (how, resolve) in both {
            let open = |path: &str| {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                resolve(&root, Path::new(path), flags).map(drop)
            };
            for path in ["deep/own", "./deep//own", "deep/../deep/own"] {
                assert_eq!(open(path), Ok(()), "{how}: {path}");
            }
            let links = ["absolute", "upward", "deep/chain", "directory/file", "loop"];
            for path in links {
                assert_eq!(open(path), Err(Errno::LOOP), "{how}: {path}");
            }
            for path in ["../file", "/file", "deep/../../file"] {
                assert_eq!(open(path), Err(Errno::XDEV), "{how}: {path}");
            }
            assert_eq!(open("none"), Err(Errno::NOENT), "{how}");
        }
        fs::remove_dir_all(directory).unwrap();
    }

    type Resolve = fn(&OwnedFd, &Path, OFlags) -> Result<OwnedFd, Errno>;

    #[test]
    fn no_path_and_no_link_leads_out_of_the_root() {
        let directory = jail("resolve");
        let look = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let root = rustix::fs::open(directory.join("jail"), look, Mode::empty()).unwrap();
        let both: [(&str, Resolve); 2] = [("openat2", beneath), ("steps", step_by_step)];
        for (how, resolve) in both {
            let read = |path: &str| {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let mut text = String::new();
                let opened = resolve(&root, Path::new(path), flags)?;
                fs::File::from(opened).read_to_string(&mut text).unwrap();
                Ok::<_, Errno>(text)
            };
            let paths = [
                "/file",
                "file",
                "//./file",
                "../file",
                "opt/../../../file",
                "opt/absolute",
                "opt/upward",
                "opt/deep/chain",
                "opt/directory/directory/out",
            ];
            for path in paths {
                assert_eq!(read(path).as_deref(), Ok("inside"), "{how}: {path}");
            }
            assert_eq!(read("opt/loop"), Err(Errno::LOOP), "{how}");
            assert_eq!(read("opt/none"), Err(Errno::NOENT), "{how}");
            assert_eq!(read("file/none"), Err(Errno::NOTDIR), "{how}");
            let refuse = OFlags::RDONLY | OFlags::NOFOLLOW;
            let refused = resolve(&root, Path::new("opt/absolute"), refuse);
            assert_eq!(refused.unwrap_err(), Errno::LOOP, "{how}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
