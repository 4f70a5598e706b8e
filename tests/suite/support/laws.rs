//! How many cases the laws over random profiles try.

use proptest::prelude::ProptestConfig;

/// A configuration of this number of cases where `PROPTEST_CASES` is 256, proptest's default, and in
/// proportion where it is not: a quarter of them for `PROPTEST_CASES=64`.
pub fn cases(number: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: (number * default.cases / 256).max(1),
        ..default
    }
}
