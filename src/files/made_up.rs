//! Recognizes files that the kernel makes up as they are read.

use std::os::fd::AsFd;

use rustix::io::Errno;

// File systems without files of anybody, as `f_type` of statfs(2) has them (`linux/magic.h`).
const KINDS: [u32; 23] = [
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x5a3c_69f0, // apparmorfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x0765_5821, // resctrl
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0x4249_4e4d, // binfmt_misc
    0x6573_5543, // fusectl
    0x1980_0202, // mqueue
    0x0000_1cd1, // devpts
    0x6e73_6673, // namespaces
    0x6e66_7364, // nfsd
    0x6759_6969, // rpc_pipefs
    0xabba_1974, // xenfs
];

/// Whether an object is in such a file system.
pub(super) fn is_made_up(object: impl AsFd) -> Result<bool, Errno> {
    let kind = rustix::fs::fstatfs(object)?.f_type;
    // The type of the field has another size on each machine; the numbers have 32 bits.
    Ok(KINDS.contains(&(kind as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_distinguished_from_those_of_people() {
        let is_made_up = |path: &std::path::Path| is_made_up(std::fs::File::open(path).unwrap());
        assert_eq!(is_made_up("/proc/version".as_ref()), Ok(true));
        assert_eq!(is_made_up("/sys/kernel/notes".as_ref()), Ok(true));
        assert_eq!(is_made_up(&std::env::current_exe().unwrap()), Ok(false));
    }
}
