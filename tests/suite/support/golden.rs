//! Outputs held against `tests/golden/FIXTURE.VIEW.FORMAT`.
//!
//! `UPDATE_GOLDEN=1` writes the files again; they are read before they are committed.

use std::path::Path;

/// Whether the golden file of this name has these bytes; written anew where that is asked for.
pub fn holds(name: &str, bytes: &[u8]) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, bytes).unwrap();
    }
    std::fs::read(&path).is_ok_and(|golden| golden == bytes)
}
