//! The part of a name that is the same in each build of a program.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// What compilers put behind the symbol of a function that they copied, split, or made visible to
/// other units.
static COPIES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let suffixes = r"(\.(constprop|isra|part|cold|warm|lto_priv|llvm)(\.\d+)*)+$";
    Regex::new(suffixes).ok()
});

/// The same in demangled names, and the hash that ends names of Rust's older mangling.
static REMARKS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"( \[clone [^\]]*\])+$|::h[0-9a-f]{16}$").ok());

/// Returns the symbol of the function that this one is a clone or a part of; `None` for other
/// symbols.
pub(super) fn without_copy(symbol: &str) -> Option<&str> {
    let start = COPIES.as_ref()?.find(symbol)?.start();
    (start > 0).then(|| &symbol[..start])
}

/// Returns a name without what compilers add in one build and not in the next: suffixes of clones
/// and parts of functions, and hashes.
///
/// ```
/// use proftool::names::stem;
/// assert_eq!(stem("parse.constprop.0.isra.0"), "parse");
/// assert_eq!(stem("lex(char) [clone .cold]"), "lex(char)");
/// assert_eq!(stem("app::run::h0123456789abcdef"), "app::run");
/// assert_eq!(stem("A$P.<init>(int)"), "A$P.<init>(int)");
/// ```
pub fn stem(name: &str) -> Cow<'_, str> {
    let name = match REMARKS.as_ref() {
        Some(remarks) => remarks.replace(name, ""),
        None => name.into(),
    };
    match without_copy(&name) {
        Some(function) => Cow::Owned(function.to_owned()),
        None => name,
    }
}
