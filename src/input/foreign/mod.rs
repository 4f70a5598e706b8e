//! Readers of other profilers' formats that need further packages: pprof and speedscope.
//!
//! The feature `import` adds them, as a program that only opens recordings does not need these
//! packages. Without it the formats are recognized and refused.

#[cfg(feature = "import")]
pub(super) mod pprof;
#[cfg(feature = "import")]
mod scale;
#[cfg(feature = "import")]
pub(super) mod speedscope;

#[cfg(not(feature = "import"))]
mod refused;
#[cfg(not(feature = "import"))]
pub(super) use refused::{pprof, speedscope};

// A profile of pprof that is not compressed begins with a sample type, which has a kind.
pub(super) fn is_pprof(head: &[u8]) -> bool {
    matches!(head, [0x0a, _, 0x08, ..])
}

pub(super) fn is_speedscope(head: &[u8]) -> bool {
    let mut bytes = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    bytes.next() == Some(&b'{') && bytes.next() == Some(&b'"')
}
