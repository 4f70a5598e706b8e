//! Counts the samples in code that several functions share.
//!
//! Compilers and linkers merge functions whose code is the same (identical code folding). Which of
//! them was called is not in the code, and one name stands for all.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::base::{CaveatKind, IdVec};
use crate::binary::{Binary, FunctionSymbol, demangle};
use crate::profile::Builder;
use crate::trace::{FrameId, ImageId, Trace};

use super::name_source::NameSource;
use super::repair::Checked;
use super::samples_by::{SamplesBy, samples_below, walk};

// How many names of the others a message has.
const OTHERS_NAMED: usize = 3;

/// Counts the samples whose stacks have frames in shared code, and for each function that stands
/// for others.
pub(super) fn note(
    trace: &Trace,
    checked: &Checked,
    name_sources: &IdVec<ImageId, NameSource>,
    builder: &mut Builder,
) {
    let mut known: BTreeMap<(ImageId, u64), Option<usize>> = BTreeMap::new();
    let mut details: Vec<String> = Vec::new();
    let mut group_of: IdVec<FrameId, Option<usize>> = IdVec::new();
    for frame in &checked.frames {
        let function = match &name_sources[frame.image] {
            NameSource::Binary(binary, _) => {
                let at = name_sources[frame.image].svma(frame.address.lookup());
                // Few functions are, and all of the file take longer to search.
                let at = at.filter(|&at| binary.may_be_folded(at));
                at.and_then(|at| Some((binary, binary.function_at(at)?)))
            }
            _ => None,
        };
        let group = function.and_then(|(binary, function)| {
            let key = (frame.image, function.start.0);
            *known.entry(key).or_insert_with(|| {
                details.push(others(binary, function)?);
                Some(details.len() - 1)
            })
        });
        group_of.push(group);
    }
    if details.is_empty() {
        return;
    }
    // Behind the groups, all of them as one.
    let all = details.len();
    let mut counted = SamplesBy::new(all + 1);
    let samples = samples_below(trace, checked);
    walk(&checked.paths, |path, enters| {
        let Some(group) = group_of[checked.paths[path].frame] else {
            return;
        };
        for group in [group, all] {
            if enters {
                counted.enter(group, samples[path]);
            } else {
                counted.leave(group);
            }
        }
    });
    let count = counted.samples[all];
    if count > 0 {
        let details = details.into_iter().zip(counted.samples);
        let details = details.filter(|&(_, samples)| samples > 0);
        (builder.caveats()).add_once(CaveatKind::FoldedCode, count, details);
    }
}

/// What else a function may be; `None` if all have the same name but for parameters and arguments
/// of templates, which views leave out.
pub(super) fn others(binary: &Binary, function: &FunctionSymbol) -> Option<String> {
    let mut others = binary.folded_into(function).peekable();
    others.peek()?;
    let own = bare(&demangle(&binary.function_name(function)?)).into_owned();
    let mut names: Vec<String> = others
        .map(|name| bare(&demangle(&name)).into_owned())
        .collect();
    names.retain(|name| *name != own);
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(OTHERS_NAMED);
    names.truncate(OTHERS_NAMED);
    let named = names.join(", ");
    match more {
        _ if names.is_empty() => None,
        0 => Some(format!("{own} is also {named}")),
        _ => Some(format!("{own} is also {named} and {more} more")),
    }
}

/// A demangled name without the type that is returned, parameters, and arguments of templates and
/// generic functions and types.
fn bare(name: &str) -> Cow<'_, str> {
    // Names of operators are left as they are.
    if name.contains("operator") {
        return Cow::Borrowed(name);
    }
    let name = name.replace("(anonymous namespace)", "{anonymous}");
    // Rust begins with the type that the function is of.
    let begins_with_type = name.starts_with('<');
    let mut in_type = begins_with_type;
    let mut depth = 0_usize;
    let mut bare = String::new();
    let mut last = None;
    for letter in name.chars() {
        let kept = usize::from(in_type);
        match letter {
            '<' => {
                if depth == kept && bare.ends_with("::") {
                    bare.truncate(bare.len() - 2);
                }
                if bare.is_empty() && begins_with_type {
                    bare.push(letter);
                }
                depth += 1;
            }
            // The arrow before what a function returns is no bracket.
            '>' if last != Some('-') => {
                depth = depth.saturating_sub(1);
                if in_type && depth == 0 {
                    bare.push(letter);
                    in_type = false;
                }
            }
            '(' if depth == 0 => break,
            ' ' if depth == 0 && !begins_with_type => bare.clear(),
            _ if depth == kept => bare.push(letter),
            _ => {}
        }
        last = Some(letter);
    }
    Cow::Owned(bare)
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn a_bare_name_has_no_parameters_and_no_arguments() {
        for (full, short) in [
            ("checksum(long)", "checksum"),
            ("void std::fill<int*, int>(int*, int*)", "std::fill"),
            (
                "(anonymous namespace)::A<(B)1>::f() const",
                "{anonymous}::A::f",
            ),
            (
                "core::ptr::drop_in_place<alloc::vec::Vec<u8>>",
                "core::ptr::drop_in_place",
            ),
            ("<a::B as a::C>::run", "<a::B as a::C>::run"),
            (
                "<a::Map<(K, V<T>)> as a::C<u8>>::run::<fn(u8) -> A<T>>",
                "<a::Map as a::C>::run",
            ),
            ("a::b::<T>::c::<{closure#0}>", "a::b::c"),
            (
                "bool operator< <int>(A<int>)",
                "bool operator< <int>(A<int>)",
            ),
        ] {
            assert_eq!(bare(full), short);
        }
    }
}
