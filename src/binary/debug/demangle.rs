//! Linkage names made readable, within bounds.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// Longer names are left as they are.
const NAME_LIMIT: usize = 8 << 10;
/// Names that would become longer are left as they are. A name of 333 bytes can double thirty
/// times.
const OUTPUT_LIMIT: usize = 64 << 10;
/// How deep the parser and the printer of C++ names may nest. Deep enough for any name a compiler
/// made, shallow enough for the stack of a thread.
const DEPTH_LIMIT: u32 = 128;

/// The readable form of a Rust (v0 and legacy, without the hash) or C++ (with parameters) linkage
/// name; anything else is returned as it is.
///
/// ```
/// use proftool::binary::demangle;
/// assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
/// assert_eq!(demangle("_Z3addii"), "add(int, int)");
/// assert_eq!(demangle("main"), "main");
/// ```
pub fn demangle(linkage_name: &str) -> Cow<'_, str> {
    if linkage_name.len() > NAME_LIMIT {
        return Cow::Borrowed(linkage_name);
    }
    // ThinLTO marks local functions that it makes known to other units: `work.llvm.1234`.
    let linkage_name = match linkage_name.rsplit_once(".llvm.") {
        Some((name, mark)) if !name.is_empty() && mark.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => linkage_name,
    };
    // `foo@plt` and `foo@@VERSION`: the part before is the name.
    let (name, suffix) = match linkage_name.find('@') {
        Some(at) => linkage_name.split_at(at),
        None => (linkage_name, ""),
    };
    let Some(mut readable) = rust(name).or_else(|| cpp(name)) else {
        return Cow::Borrowed(linkage_name);
    };
    readable.push_str(suffix);
    Cow::Owned(readable)
}

fn rust(name: &str) -> Option<String> {
    if !(name.starts_with("_R") || name.starts_with("_ZN") || name.starts_with("__ZN")) {
        return None;
    }
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded::default();
    write!(out, "{demangled:#}").ok()?;
    Some(out.text)
}

fn cpp(name: &str) -> Option<String> {
    if !(name.starts_with("_Z") || name.starts_with("_GLOBAL_")) {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(DEPTH_LIMIT);
    let print = DemangleOptions::default().recursion_limit(DEPTH_LIMIT);
    let (symbol, rest) = BorrowedSymbol::with_tail_and_options(name.as_bytes(), &parse).ok()?;
    let mut out = Bounded::default();
    write_cpp(&symbol, &print, &mut out).ok()?;
    // GCC marks the parts of a function with a dotted suffix.
    match rest {
        [] => {}
        [b'.', ..] => write!(out, " [clone {}]", std::str::from_utf8(rest).ok()?).ok()?,
        _ => return None,
    }
    Some(out.text)
}

fn write_cpp(
    symbol: &BorrowedSymbol<'_>,
    options: &DemangleOptions,
    out: &mut Bounded,
) -> fmt::Result {
    symbol.structured_demangle(out, options)
}

/// A writer that refuses to hold more than [`OUTPUT_LIMIT`] bytes.
#[derive(Default)]
struct Bounded {
    text: String,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len().saturating_add(text.len()) > OUTPUT_LIMIT {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}
