//! Demangles linkage names, within bounds of time and memory.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

use crate::base::Language;

// Longer names are left as they are.
const NAME_LIMIT: usize = 8 << 10;
// Names that would become longer are left as they are. A name of 333 bytes can double thirty times.
const OUTPUT_LIMIT: usize = 64 << 10;
// How deep the parser and the printer of C++ names may nest. Deep enough for any name a compiler
// made, shallow enough for the stack of a thread.
const DEPTH_LIMIT: u32 = 128;

/// What stands for arguments that cannot be read.
pub const UNREAD_ARGUMENTS: &str = "<…>";
// What stands for parameters that cannot be read.
const UNREAD_PARAMETERS: &str = "(…)";

// `None` if the name is mangled otherwise.
type Read = fn(&str) -> Option<String>;

// How names are mangled, in the order in which that is tried.
const MANGLINGS: [(Read, Language); 5] = [
    (rust, Language::Rust),
    (cpp, Language::Cpp),
    (path_of, Language::Cpp),
    (ocaml, Language::OCaml),
    (d, Language::D),
];

/// The readable form of a Rust (v0 and legacy, without the hash), C++ (with parameters), OCaml or D
/// linkage name; anything else is returned as it is.
///
/// The demangler of C++ names cannot read all names, and prints wrong parameters for packs and for
/// constructors that are templates. Such uncertain parts become `…`.
///
/// ```
/// use proftool::binary::demangle;
/// assert_eq!(demangle("_Z1fIJiEEvDpRKT_"), "void f<int>(…)");
/// assert_eq!(demangle("_ZN1AC1IiEET_"), "A::A<int>(…)");
/// let foo = "_ZSt3fooIiENSt9enable_ifIXsrSt5otherIT_vE5valueEvE4typeES2_";
/// assert_eq!(demangle(foo), "std::foo<…>(…)");
/// let equal = "_ZSteqIcENSt9enable_ifIXsrSt5otherIT_vE5valueEbE4typeES2_";
/// assert_eq!(demangle(equal), "std::operator==<…>(…)");
/// assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
/// assert_eq!(demangle("_Z3addii"), "add(int, int)");
/// assert_eq!(demangle("_ZThn16_N1C1bEm"), "non-virtual thunk to C::b(unsigned long)");
/// assert_eq!(demangle("_ZNW3fooW4part3BoxIiE5churnEi"), "Box<int>::churn(int)");
/// assert_eq!(demangle("_D4core6thread5Fiber3runMFNbNiZv"), "core.thread.Fiber.run");
/// assert_eq!(demangle("camlStdlib__List__$40_123"), "Stdlib.List.@_123");
/// assert_eq!(demangle("main"), "main");
/// ```
pub fn demangle(linkage_name: &str) -> Cow<'_, str> {
    demangled(linkage_name).0
}

/// The readable form of a linkage name, as of [`demangle`], and the language of its mangling.
pub fn demangled(linkage_name: &str) -> (Cow<'_, str>, Language) {
    if linkage_name.len() > NAME_LIMIT {
        return (Cow::Borrowed(linkage_name), Language::Unknown);
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
    let Some((mut readable, language)) = MANGLINGS
        .iter()
        .find_map(|&(read, language)| Some((read(name)?, language)))
    else {
        return (Cow::Borrowed(linkage_name), Language::Unknown);
    };
    readable.push_str(suffix);
    (Cow::Owned(readable), language)
}

fn rust(name: &str) -> Option<String> {
    // Names of C++ without parameters would be read as those of Rust, but have no hash.
    let is_legacy = name.starts_with("_ZN") || name.starts_with("__ZN");
    if !(name.starts_with("_R") || is_legacy && name.contains("17h")) {
        return None;
    }
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded::default();
    write!(out, "{demangled:#}").ok()?;
    Some(out.text)
}

// The path of an OCaml function, with the number that tells functions of one name apart, as perf
// prints it.
fn ocaml(name: &str) -> Option<String> {
    let path = name.strip_prefix("caml")?;
    if !path.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        if let Some(inside) = rest.strip_prefix("__") {
            out.push('.');
            rest = inside;
            continue;
        }
        let code = rest.strip_prefix('$').and_then(|code| code.get(..2));
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let printable = code.map(char::from).filter(char::is_ascii_graphic);
        out.push(printable.unwrap_or(first));
        rest = rest.get(printable.map_or(first.len_utf8(), |_| 3)..)?;
    }
    Some(out)
}

// Without its type.
fn d(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_D")?;
    let mut path = Vec::new();
    while let Some((word, behind)) = source_name(rest) {
        path.push(word);
        rest = behind;
    }
    // Templates have names and arguments within the word.
    let is_plain = !path.is_empty() && !path.iter().any(|word| word.starts_with("__T"));
    is_plain.then(|| path.join("."))
}

// A word with its length before it, and what is behind.
fn source_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length: usize = text[..digits].parse().ok()?;
    (length > 0).then_some(())?;
    text[digits..].split_at_checked(length)
}

// Without the modules of what it names (`W` and a word for each part), if it has some. A module
// counts among what later parts refer to by number, so that names with such parts stay.
fn without_modules(name: &str) -> Option<String> {
    name.contains('W').then_some(())?;
    let mut out = String::with_capacity(name.len());
    let (mut rest, mut is_any) = (name, false);
    while let Some(first) = rest.chars().next() {
        let module = rest.strip_prefix('W');
        let module = module.map(|it| it.strip_prefix('P').unwrap_or(it));
        if let Some((_, behind)) = module.and_then(source_name) {
            (rest, is_any) = (behind, true);
            continue;
        }
        let refers = |next: char| next == '_' || next.is_ascii_digit() || next.is_ascii_uppercase();
        if first == 'S' && rest[1..].starts_with(refers) {
            return None;
        }
        let behind = source_name(rest).map_or(&rest[first.len_utf8()..], |(_, behind)| behind);
        out.push_str(&rest[..rest.len() - behind.len()]);
        rest = behind;
    }
    is_any.then_some(out)
}

fn cpp(name: &str) -> Option<String> {
    if !(name.starts_with("_Z") || name.starts_with("_GLOBAL_")) {
        return None;
    }
    if let Some((what, of)) = made_by_compiler(name) {
        let of = cpp(&format!("_Z{of}"))?;
        return Some(format!("{what} {of}"));
    }
    let plain = without_modules(name);
    let name = plain.as_deref().unwrap_or(name);
    let parse = ParseOptions::default().recursion_limit(DEPTH_LIMIT);
    let print = DemangleOptions::default().recursion_limit(DEPTH_LIMIT);
    let (symbol, rest) = BorrowedSymbol::with_tail_and_options(name.as_bytes(), &parse).ok()?;
    let mut out = Bounded::default();
    write_cpp(&symbol, &print, &mut out).ok()?;
    out.text = usual(&out.text);
    let name = &name[..name.len() - rest.len()];
    let is_constructor = has_constructor_template(name);
    // References of packs (`Dp`) are left out by the demangler.
    if is_constructor || name.contains("Dp") {
        leave_out_parameters(&mut out.text, is_constructor && !name.ends_with('v'));
    }
    // GCC marks the parts of a function with a dotted suffix.
    match rest {
        [] => {}
        [b'.', ..] => write!(out, " [clone {}]", std::str::from_utf8(rest).ok()?).ok()?,
        _ => return None,
    }
    Some(out.text)
}

// Thunks, which change `this` or what is returned (`<special-name>` of the Itanium ABI), and what
// keeps variables of threads; with the encoding of what they are made for.
fn made_by_compiler(name: &str) -> Option<(&'static str, &str)> {
    let (kind, rest) = name.strip_prefix("_ZT")?.split_at_checked(1)?;
    Some(match kind {
        "h" | "v" => {
            let (is_virtual, of) = behind_call_offset(&name[3..])?;
            let what = ["non-virtual thunk to", "virtual thunk to"][usize::from(is_virtual)];
            (what, of)
        }
        "c" => {
            let (_, second) = behind_call_offset(rest)?;
            ("covariant return thunk to", behind_call_offset(second)?.1)
        }
        "W" => ("TLS wrapper function for", rest),
        "H" => ("TLS init function for", rest),
        _ => return None,
    })
}

// Whether `h16_…` or `v0_n24_…` is virtual, and what is behind its numbers.
fn behind_call_offset(text: &str) -> Option<(bool, &str)> {
    let (kind, mut rest) = text.split_at_checked(1)?;
    let is_virtual = kind == "v";
    for _ in 0..=usize::from(is_virtual) {
        let (number, behind) = rest.split_once('_')?;
        let digits = number.strip_prefix('n').unwrap_or(number);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        rest = behind;
    }
    (is_virtual || kind == "h").then_some((is_virtual, rest))
}

fn write_cpp(
    symbol: &BorrowedSymbol<'_>,
    options: &DemangleOptions,
    out: &mut Bounded,
) -> fmt::Result {
    symbol.structured_demangle(out, options)
}

// Refuses to hold more than [`OUTPUT_LIMIT`] bytes.
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

// Literals and empty packs as other demanglers print them: `4u` for `(unsigned int)4`.
fn usual(text: &str) -> String {
    const LITERALS: [(&str, &str); 7] = [
        ("(unsigned int)", "u"),
        ("(unsigned long)", "ul"),
        ("(unsigned long long)", "ull"),
        ("(long)", "l"),
        ("(long long)", "ll"),
        ("(int)", ""),
        ("(bool)", ""),
    ];
    let text = with_references_behind(&text.replace(", >", ">"));
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('(') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let literal = LITERALS.iter().find_map(|(kind, end)| {
            let value = rest.strip_prefix(kind)?;
            let digits = value.trim_start_matches('-');
            let length = value.len()
                - digits
                    .trim_start_matches(|c: char| c.is_ascii_digit())
                    .len();
            // Without a digit it is no literal: `f(int)` stays.
            (length > value.len() - digits.len()).then(|| (*kind, value.split_at(length), *end))
        });
        match literal {
            Some(("(bool)", (value, after), _)) => {
                out.push_str(if value == "0" { "false" } else { "true" });
                rest = after;
            }
            Some((_, (value, after), end)) => {
                out.push_str(value);
                out.push_str(end);
                rest = after;
            }
            None => {
                out.push('(');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

// `A::B&` for `A&::B`, which the demangler prints where a type within another one stands for a
// substitution.
fn with_references_behind(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("&::") {
        let (before, after) = rest.split_at(at);
        let word = &after[3..];
        let length = word.len()
            - word
                .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                .len();
        out.push_str(before);
        if length == 0 || before.ends_with([')', '&', ' ']) {
            out.push_str(&after[..3]);
            rest = word;
            continue;
        }
        out.push_str("::");
        out.push_str(&word[..length]);
        out.push('&');
        rest = &word[length..];
    }
    out.push_str(rest);
    out
}

// The demangler takes the first parameter of a constructor that is a template for a type that it
// returns: `A::A<int>()` for `A::A<int>(int)`.
fn has_constructor_template(name: &str) -> bool {
    ["C1I", "C2I", "C3I"].iter().any(|mark| name.contains(mark))
}

// `…` takes the place of the parameters of the function, the last ones of the name; of none as well
// where `misses_one`, as the demangler did not print the only one.
fn leave_out_parameters(text: &mut String, misses_one: bool) {
    let (mut depth, mut end, mut start) = (0usize, None, None);
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' => {
                end = end.or(Some(at));
                depth += 1;
            }
            '(' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    start = Some(at);
                    break;
                }
            }
            _ => {}
        }
    }
    if let (Some(start), Some(end)) = (start, end)
        && (misses_one || end > start + 1)
        && !text[end..].contains(['<', '{'])
    {
        text.replace_range(start..=end, UNREAD_PARAMETERS);
    }
}

// Itanium C++ ABI, `<operator-name>`.
const OPERATORS: [(&str, &str); 48] = [
    ("nw", " new"),
    ("na", " new[]"),
    ("dl", " delete"),
    ("da", " delete[]"),
    ("aw", " co_await"),
    ("ps", "+"),
    ("ng", "-"),
    ("ad", "&"),
    ("de", "*"),
    ("co", "~"),
    ("pl", "+"),
    ("mi", "-"),
    ("ml", "*"),
    ("dv", "/"),
    ("rm", "%"),
    ("an", "&"),
    ("or", "|"),
    ("eo", "^"),
    ("aS", "="),
    ("pL", "+="),
    ("mI", "-="),
    ("mL", "*="),
    ("dV", "/="),
    ("rM", "%="),
    ("aN", "&="),
    ("oR", "|="),
    ("eO", "^="),
    ("ls", "<<"),
    ("rs", ">>"),
    ("lS", "<<="),
    ("rS", ">>="),
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("gt", ">"),
    ("le", "<="),
    ("ge", ">="),
    ("ss", "<=>"),
    ("nt", "!"),
    ("aa", "&&"),
    ("oo", "||"),
    ("pp", "++"),
    ("mm", "--"),
    ("cm", ","),
    ("pm", "->*"),
    ("pt", "->"),
    ("cl", "()"),
    ("ix", "[]"),
];

// The path at the start of a C++ name that the demangler cannot read, up to its first arguments.
fn path_of(name: &str) -> Option<String> {
    let encoded = name.strip_prefix("_Z")?;
    let mut rest = encoded.strip_prefix('N').unwrap_or(encoded);
    rest = rest.trim_start_matches(['K', 'V', 'R', 'O']);
    let mut out = String::new();
    if let Some(inside) = rest.strip_prefix("St") {
        out.push_str("std");
        rest = inside;
    }
    loop {
        rest = rest.strip_prefix('L').unwrap_or(rest);
        let Some((word, behind)) = source_name(rest) else {
            break;
        };
        if !out.is_empty() {
            out.push_str("::");
        }
        out.push_str(if word.starts_with("_GLOBAL__N") {
            "(anonymous namespace)"
        } else {
            word
        });
        rest = behind;
    }
    // Behind the last word of a name that is not nested come types.
    let is_inside = encoded.starts_with('N') || out.is_empty() || out == "std";
    if is_inside
        && let Some((code, after)) = rest.split_at_checked(2)
        && let Some((_, operator)) = OPERATORS.iter().find(|(known, _)| *known == code)
    {
        if !out.is_empty() {
            out.push_str("::");
        }
        out.push_str("operator");
        out.push_str(operator);
        rest = after;
    }
    if out.is_empty() || out == "std" {
        return None;
    }
    if rest.starts_with('I') {
        out.push_str(UNREAD_ARGUMENTS);
    }
    out.push_str(UNREAD_PARAMETERS);
    Some(out)
}
