//! Who can read a file that was opened, and whether it is a file at all or the kernel's answer.
//!
//! What the mode of a file permits is less than it says where a directory on its way is closed: so
//! all directories of its real path count. Access control lists are not read; a mode states the
//! most that they permit.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Stat;

use super::OpenedFile;
use super::made_up;

// Where the kernel answers, and where devices are.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/proc", "/sys", "/dev"];

const READ: u32 = 4;
const PASS: u32 = 1;

impl OpenedFile {
    /// Whether it is in `/proc`, `/sys` or `/dev`, or on a file system that the kernel makes up,
    /// whatever path led to it.
    pub fn is_of_system(&self) -> bool {
        if made_up::is_made_up(&self.file).unwrap_or(true) {
            return true;
        }
        let is_below = |path: &Path| SYSTEM_DIRECTORIES.iter().any(|it| path.starts_with(it));
        if self.real_path().is_some_and(|path| is_below(&path)) {
            return true;
        }
        // Memory file systems of devices have no magic number of their own.
        let device = |path: &str| std::fs::metadata(path).ok().map(|it| it.dev());
        let root = device("/");
        ["/dev", "/dev/shm"].into_iter().any(|path| {
            let its = device(path).filter(|_| device(path) != root);
            its == Some(self.metadata.dev())
        })
    }

    /// Whether the group of the file or all users can read it, by its mode and by those of the
    /// directories that it is in.
    pub fn is_shared(&self) -> bool {
        let both = |bit: u32| bit | bit << 3;
        self.permits(&|of, bit| of.st_mode & both(bit) != 0)
    }

    /// Whether this user can read it, by the same.
    pub fn is_readable_by(&self, user: u32) -> bool {
        let groups = groups_of(user);
        self.permits(&|of, bit| {
            // Of the three, only the first that fits counts.
            let shift = if of.st_uid == user {
                6
            } else if groups.contains(&of.st_gid) {
                3
            } else {
                0
            };
            of.st_mode >> shift & bit != 0
        })
    }

    fn permits(&self, permits: &dyn Fn(&Stat, u32) -> bool) -> bool {
        let Ok(own) = rustix::fs::fstat(&self.file) else {
            return false;
        };
        let Some(path) = self.real_path() else {
            return false;
        };
        let mut directories = path.ancestors().skip(1);
        permits(&own, READ)
            && directories.all(|it| rustix::fs::stat(it).is_ok_and(|it| permits(&it, PASS)))
    }

    /// The path of the file without links, where it is now.
    fn real_path(&self) -> Option<PathBuf> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let path = std::fs::read_link(own).ok()?;
        // A file that was removed has no path.
        let found = std::fs::symlink_metadata(&path).ok()?;
        let same = (found.dev(), found.ino()) == (self.metadata.dev(), self.metadata.ino());
        (path.is_absolute() && same).then_some(path)
    }
}

/// The groups that this machine's own files have a user in; those of other directories (LDAP) are
/// not known.
fn groups_of(user: u32) -> Vec<u32> {
    let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
    let group = std::fs::read("/etc/group").unwrap_or_default();
    groups(user, &passwd, &group)
}

/// ```text
///   /etc/passwd    name:password:user:group:…
///   /etc/group     name:password:group:member,member
/// ```
fn groups(user: u32, passwd: &[u8], group: &[u8]) -> Vec<u32> {
    let mut groups = Vec::new();
    let mut names: Vec<&[u8]> = Vec::new();
    for line in passwd.split(|&byte| byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
        if let [name, _, its, own, ..] = fields.as_slice()
            && number(its) == Some(user)
        {
            groups.extend(number(own));
            names.push(name);
        }
    }
    for line in group.split(|&byte| byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
        if let [_, _, its, members, ..] = fields.as_slice()
            && members
                .split(|&byte| byte == b',')
                .any(|it| names.contains(&it))
        {
            groups.extend(number(its));
        }
    }
    groups
}

fn number(text: &[u8]) -> Option<u32> {
    OsStr::from_bytes(text).to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_user_and_those_that_list_the_name() {
        let passwd = b"root:x:0:0:root:/root:/bin/sh\nann:x:1000:100:Ann:/home/ann:/bin/sh\nbad\n";
        let group = b"root:x:0:\nusers:x:100:\nproject:x:200:bob,ann\nother:x:300:annie\n";
        assert_eq!(groups(1000, passwd, group), [100, 200]);
        assert_eq!(groups(0, passwd, group), [0]);
        assert_eq!(groups(7, passwd, group), [] as [u32; 0]);
    }
}
