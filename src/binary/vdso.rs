//! The vdso: code that the kernel puts into every process, without a file.

use std::fs::{File, read};
use std::os::unix::fs::FileExt;

use super::{Binary, Error};
use crate::base::utf8;

/// A vdso has a few pages; more is not believed.
const SIZE_LIMIT: u64 = 1 << 20;

/// The vdso of this process, which is that of every process of the running kernel with the same
/// word size. It is read through `/proc/self/mem`.
///
/// # Errors
/// [`Error::NotFound`] where the kernel gives none.
pub fn own() -> Result<Binary, Error> {
    let maps = read("/proc/self/maps")?;
    let maps = utf8(&maps);
    let mut lines = maps.lines();
    let line = lines.find(|line| line.ends_with("[vdso]"));
    let (start, end) = line.and_then(range).ok_or(Error::NotFound)?;
    let size = end.saturating_sub(start);
    if size > SIZE_LIMIT {
        return Err(Error::TooLarge {
            what: "the vdso".to_owned(),
            size,
            limit: SIZE_LIMIT,
        });
    }
    let mut bytes = vec![0; usize::try_from(size).expect("the limit fits usize")];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, start)?;
    Binary::from_bytes(bytes)
}

/// The range at the start of a line of `/proc/PID/maps`.
fn range(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some((number(start)?, number(end)?))
}
