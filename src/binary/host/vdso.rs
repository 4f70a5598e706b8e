//! The vdso: code that the kernel puts into every process, without a file.
#![expect(
    unsafe_code,
    reason = "the vdso is memory of this process, and there is no file of it"
)]

use std::fs::read;
use std::path::Path;
use std::ptr::with_exposed_provenance;
use std::slice::from_raw_parts;

use crate::base::utf8;
use crate::binary::{Binary, Error};

// A vdso has a few pages; more is not believed.
const SIZE_LIMIT: u64 = 1 << 20;

/// The vdso of this process, which is that of every process of the running kernel with the same
/// word size. `/proc/self/mem` would have it too, but may not be opened by a program with file
/// capabilities, which recorders have that are not run by root.
///
/// # Errors
/// [`Error::NotFound`] if the kernel provides no vDSO.
pub fn own() -> Result<Binary, Error> {
    let list = Path::new("/proc/self/maps");
    let maps = read(list).map_err(Error::at(list))?;
    let maps = utf8(&maps);
    let mut lines = maps.lines();
    let line = lines.find(|line| line.ends_with("[vdso]"));
    let (start, end) = line.and_then(range).ok_or(Error::NotFound)?;
    // SAFETY: getauxval reads a list that the kernel gave to this process and that nobody changes.
    let told = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let address = usize::try_from(start).map_err(|_| Error::NotFound)?;
    if address == 0 || told as usize != address {
        return Err(Error::NotFound);
    }
    let size = end.saturating_sub(start);
    if size > SIZE_LIMIT {
        return Err(Error::TooLarge {
            what: "the vdso".to_owned(),
            size,
            limit: SIZE_LIMIT,
        });
    }
    let size = usize::try_from(size).expect("the limit fits usize");
    let start = with_exposed_provenance::<u8>(address);
    // SAFETY: the kernel has this range of this process mapped for reading, as both its list of
    // mappings and the auxiliary vector tell. The kernel put it there before the first instruction,
    // nobody may write to it, and nothing in this program unmaps or moves it.
    let bytes = unsafe { from_raw_parts(start, size) };
    Binary::from_bytes(bytes.to_vec())
}

// The range at the start of a line of `/proc/PID/maps`, if it may be read.
fn range(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    words.next().filter(|rights| rights.starts_with('r'))?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some((number(start)?, number(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_vdso_with_the_clock() {
        let vdso = own().unwrap();
        assert!(vdso.build_id().is_some());
        assert!(range("7ff0-8ff0 r-xp 0 0:0 0 [vdso]") == Some((0x7ff0, 0x8ff0)));
        assert!(range("7ff0-8ff0 --xp 0 0:0 0 [vdso]").is_none());
        assert!(range("").is_none());
    }
}
