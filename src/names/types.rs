//! Types as arguments of a name: without their paths, and without arguments that libraries fill in.

/// What the standard libraries of C++ and Rust have for arguments that a program leaves out.
const DEFAULTS: [&str; 8] = [
    "allocator",
    "char_traits",
    "less",
    "hash",
    "equal_to",
    "default_delete",
    "Global",
    "RandomState",
];

/// Templates that have a name of their own for these arguments.
const NAMED: [(&str, &str); 2] = [
    ("basic_string<char>", "string"),
    ("basic_string_view<char>", "string_view"),
];

/// What debug information calls the types of closures and of the futures of `async` functions and
/// blocks.
const CLOSURES: [(&str, &str); 3] = [
    ("{closure_env#", "{closure}"),
    ("{async_fn_env#", "{async}"),
    ("{async_block_env#", "{async block}"),
];

/// An open bracket.
struct Open {
    /// Where it stands.
    at: usize,
    /// Where the path around it starts.
    path: usize,
    /// How many commas are outside of it.
    commas: usize,
}

/// A list of types, each path without all but its last segment: `a::B<c::D>, e::F` as `B<D>, F`. A
/// closure keeps the function that it is in. Arguments within more than `depth` other ones are left
/// out.
pub(super) fn shortened(list: &str, depth: usize) -> String {
    let mut out = String::with_capacity(list.len());
    let mut open: Vec<Open> = Vec::new();
    let mut angles = 0usize;
    let mut commas: Vec<usize> = Vec::new();
    // Where the path at hand starts.
    let mut path = 0;
    let mut before = ' ';
    for (at, c) in list.char_indices() {
        let after = &list[at + c.len_utf8()..];
        match c {
            ':' if before == ':' => match after.chars().next() {
                Some('<') => {
                    out.pop();
                }
                Some('{') => out.push(c),
                _ => out.truncate(path),
            },
            '<' | '(' | '[' | '{' => {
                let commas = commas.len();
                let at = out.len();
                open.push(Open { at, path, commas });
                angles += usize::from(c == '<');
                out.push(c);
                path = out.len();
            }
            '>' if before == '-' || before == '=' => out.push(c),
            '>' | ')' | ']' | '}' => {
                let outer = open.pop().unwrap_or(Open {
                    at: 0,
                    path: 0,
                    commas: 0,
                });
                out.truncate(out.trim_end_matches(' ').len());
                if c == '>' {
                    drop_defaults(&mut out, commas.get(outer.commas..).unwrap_or_default());
                }
                commas.truncate(outer.commas);
                out.push(c);
                path = outer.path.min(out.len());
                if c == '>' && angles > depth {
                    out.truncate(outer.at);
                }
                angles -= usize::from(c == '>' && angles > 0);
                named(&mut out, path, outer.at);
            }
            _ => {
                if c == ',' {
                    commas.push(out.len());
                }
                out.push(c);
                if matches!(c, ' ' | ',' | '&' | '*') {
                    path = out.len();
                }
            }
        }
        before = c;
    }
    drop_defaults(&mut out, &commas);
    out.truncate(out.trim_end().len());
    out
}

/// Puts the usual name of what ends `out` in its place: of the type that starts at `path`, or of
/// the bracket that starts at `bracket`.
fn named(out: &mut String, path: usize, bracket: usize) {
    if let Some((_, short)) = NAMED.iter().find(|(long, _)| out.get(path..) == Some(long)) {
        out.truncate(path);
        out.push_str(short);
    }
    let closure = CLOSURES
        .iter()
        .find(|(long, _)| out.get(bracket..).is_some_and(|end| end.starts_with(long)));
    if let Some((_, short)) = closure {
        out.truncate(bracket);
        out.push_str(short);
    }
}

/// Takes arguments from the end of a list that are what libraries fill in. `commas` are those of
/// the list.
fn drop_defaults(out: &mut String, commas: &[usize]) {
    for &comma in commas.iter().rev() {
        let item = out.get(comma + 1..).unwrap_or_default().trim_start();
        let is_it = |name: &str| {
            let arguments = item.strip_prefix(name).map(str::trim_end);
            arguments.is_some_and(|rest| rest.is_empty() || rest.starts_with('<'))
        };
        if !DEFAULTS.iter().any(|name| is_it(name)) {
            return;
        }
        out.truncate(comma);
    }
}

/// A path without the numbers that compilers give to closures: `a::{async_fn#0}::f` as
/// `a::{async_fn}::f`.
pub(super) fn closures_unnumbered(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('#') {
        out.push_str(&rest[..at]);
        rest = rest[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out.push_str(rest);
    out
}
