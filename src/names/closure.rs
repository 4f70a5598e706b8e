//! Functions without a name of their own: closures, the bodies of `async` functions, and polls of
//! tasks.
//!
//! Linkage names number them or call all of them `{{closure}}`. Debug information has what they are
//! and where:
//!
//! | linkage name | debug information | for people |
//! |---|---|---|
//! | `srv::price::{{closure}}` | `{async_fn#0}` | `async srv::price` |
//! | `srv::main::{{closure}}` | `{async_block#0}`, `a.rs:9` | `srv::main::{async block a.rs:9}` |
//! | `par::main::{{closure}}` | `{closure#1}`, `par.rs:27` | `par::main::{closure par.rs:27}` |
//! | `run()::{lambda(int)#1}::operator()(int) const` | `run.cpp:5` | `run::{lambda run.cpp:5}` |
//! | `shop::prices(int) [clone .actor]` | | `coroutine shop::prices` |
//! | `raw::poll` | `poll<srv::serve::{async_fn_env#0}, …>` | `raw::poll::<async srv::serve>` |

use std::borrow::Cow;

use super::brackets::segments;
use super::form::Form;
use super::types;
use crate::profile::{Function, Line};

/// The marks of a coroutine's parts, and what they are.
const COROUTINES: [(&str, &str); 4] = [
    (" [clone .actor]", "coroutine"),
    (" [clone .resume]", "coroutine"),
    (" [clone .destroy]", "destroy coroutine"),
    (" [clone .cleanup]", "destroy coroutine"),
];
/// The end of the name of a lambda's code in C++.
const CALL: &str = "::operator()";

/// The name of a function in a form, or what takes its place where a function has none of its own.
/// `source_name` is its name by debug information. Longer forms than the short one tell closures of
/// one line apart, by number.
pub(super) fn for_people<'n>(
    short: Cow<'n, str>,
    function: &Function,
    source_name: Option<&str>,
    form: Form,
) -> Cow<'n, str> {
    let last = segments(&short).pop().unwrap_or_default();
    let outer = short[..short.len() - last.len()].trim_end_matches("::");
    let line = function.declared_at.as_deref();
    // GCC and clang split the body of a coroutine off.
    for (mark, what) in COROUTINES {
        if let Some(name) = short.strip_suffix(mark) {
            return Cow::Owned(format!("{what} {name}"));
        }
    }
    if last.starts_with("{{closure}}") || last.starts_with("{closure#") {
        let outer = outer.replace("{{closure}}", "{closure}");
        // Arguments stay behind.
        let end = last.find("::<").unwrap_or(last.len());
        let arguments = &last[end..];
        let own = source_name.unwrap_or_default();
        if own.starts_with("{async_fn") {
            return Cow::Owned(format!("async {outer}{arguments}"));
        }
        let kinds = [
            ("{async_block", "async block"),
            ("{async_closure", "async closure"),
            ("{gen_", "generator"),
        ];
        let kind = kinds
            .iter()
            .find(|(start, _)| own.starts_with(start))
            .map_or("closure", |(_, kind)| kind);
        let number = own
            .split_once('#')
            .filter(|_| form != Form::Short)
            .and_then(|(_, number)| number.split_once('}'));
        let kind = match number {
            Some((number, _)) => format!("{kind} {number}"),
            None => kind.to_owned(),
        };
        return match line {
            Some(line) => Cow::Owned(format!("{outer}::{{{kind} {}}}{arguments}", place(line))),
            None if kind != "closure" => Cow::Owned(format!("{outer}::{{{kind}}}{arguments}")),
            None => short,
        };
    }
    if let (Some(lambda), Some(line)) = (short.strip_suffix(CALL), line)
        && lambda.ends_with('}')
        && let Some(at) = lambda.rfind("{lambda")
    {
        return Cow::Owned(format!("{}{{lambda {}}}", &lambda[..at], place(line)));
    }
    if last == "poll"
        && let Some(task) = source_name.and_then(task)
    {
        return Cow::Owned(format!("{short}::<{task}>"));
    }
    short
}

/// The last part of the path, and the line.
fn place(line: &Line) -> String {
    let file = line.file.rsplit('/').next().unwrap_or(&line.file);
    format!("{file}:{}", line.line)
}

/// The future that a function with these arguments polls: the first one, if it is of an `async`
/// function or block.
fn task(source_name: &str) -> Option<String> {
    let (_, arguments) = source_name.split_once('<')?;
    let end = arguments.find("_env#").filter(|&at| {
        // The first argument, and not an argument of another type.
        !arguments[..at].contains([',', '<'])
    })?;
    let (outer, kind) = arguments[..end].rsplit_once("::{")?;
    let outer = types::closures_unnumbered(outer);
    match kind {
        "async_fn" => Some(format!("async {outer}")),
        "async_block" => Some(format!("async block in {outer}")),
        _ => None,
    }
}
