//! Short options as other tools have them. The level of `-z` is joined to it, `-z3`, as for gzip
//! and zstd; `-g` may be without a value, as for perf. In both cases the next word is the command.
//! clap supports this only with an equals sign: `-z=3`, `-g=auto`.

use std::ffi::OsString;

use clap::{Arg, Args, Command};

use crate::cli::record::RecordArgs;
use crate::cli::top::TopArgs;

const LEVEL: char = 'z';
const STACKS: char = 'g';

// Adds the equals signs where the options are those of `record` or `top` themselves and not of the
// command that they run.
pub fn with_equals(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let command = match args.get(1).and_then(|word| word.to_str()) {
        Some("record") => RecordArgs::augment_args(Command::new("record")),
        Some("top") => TopArgs::augment_args(Command::new("top")),
        _ => return args,
    };
    let known: Vec<&Arg> = command.get_arguments().collect();
    let mut at = 2;
    while let Some(word) = args.get(at).and_then(|word| word.to_str()) {
        at += 1;
        let takes_next = match word.strip_prefix("--") {
            Some("") => break,
            Some(name) => known
                .iter()
                .any(|arg| arg.get_long() == Some(name) && takes_word(arg)),
            None => match word.strip_prefix('-') {
                // The command, or what is wrong in another way.
                None | Some("") => break,
                Some(letters) => match read(letters, &known) {
                    Letters::Flags => false,
                    Letters::TakeNext
                        if letters.ends_with(STACKS) && !names_stacks(args.get(at)) =>
                    {
                        args[at - 1].push("=auto");
                        false
                    }
                    Letters::TakeNext => true,
                    Letters::Level(before) => {
                        let (before, level) = letters.split_at(before);
                        args[at - 1] = format!("-{before}={level}").into();
                        false
                    }
                },
            },
        };
        at += usize::from(takes_next);
    }
    args
}

// What several letters in one word are.
enum Letters {
    // Options without values, or with one that is joined.
    Flags,
    // The next word is the value of the last.
    TakeNext,
    // The level begins at this byte.
    Level(usize),
}

fn read(letters: &str, known: &[&Arg]) -> Letters {
    for (at, letter) in letters.char_indices() {
        let rest = &letters[at + letter.len_utf8()..];
        if letter == LEVEL && rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Letters::Level(letters.len() - rest.len());
        }
        let arg = known.iter().find(|arg| arg.get_short() == Some(letter));
        if arg.is_some_and(|arg| takes_word(arg)) {
            return if rest.is_empty() {
                Letters::TakeNext
            } else {
                Letters::Flags
            };
        }
        if rest.starts_with('=') {
            break;
        }
    }
    Letters::Flags
}

// Whether a word is a way to record stacks, whatever is wrong with its size; `lbr` is perf's.
fn names_stacks(word: Option<&OsString>) -> bool {
    let word = word.and_then(|word| word.to_str()).unwrap_or_default();
    let kind = word.split(',').next();
    kind.is_some_and(|kind| ["auto", "fp", "dwarf", "none", "lbr"].contains(&kind))
}

// Whether the next word is the option's value if no value is joined to it.
fn takes_word(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

#[cfg(test)]
mod tests {
    use super::with_equals;

    #[test]
    fn options_get_their_equals_signs_but_not_in_the_command() {
        for (words, expected) in [
            ("p record -z3 ./x", "p record -z=3 ./x"),
            ("p record -z=3 ./x", "p record -z=3 ./x"),
            ("p record -z ./x -z3", "p record -z ./x -z3"),
            ("p record -z 3 ./x", "p record -z 3 ./x"),
            ("p record -qz19 ./x", "p record -qz=19 ./x"),
            ("p record -zq ./x", "p record -zq ./x"),
            ("p record -o f -z9 ./x", "p record -o f -z=9 ./x"),
            ("p record -of -z9 ./x", "p record -of -z=9 ./x"),
            ("p record -o -z9 ./x", "p record -o -z9 ./x"),
            ("p record -oz9 ./x", "p record -oz9 ./x"),
            ("p record --output f -z9", "p record --output f -z=9"),
            ("p record --output=f -z9", "p record --output=f -z=9"),
            ("p record --off-cpu -z9", "p record --off-cpu -z=9"),
            ("p record -- x -z9", "p record -- x -z9"),
            ("p record -z99 x", "p record -z=99 x"),
            ("p report -z9", "p report -z9"),
            ("p record -g ./x", "p record -g=auto ./x"),
            ("p record -g fp ./x", "p record -g fp ./x"),
            ("p record -g dwarf,8192 x", "p record -g dwarf,8192 x"),
            ("p record -gfp ./x", "p record -gfp ./x"),
            ("p record -g dwarf,1 x", "p record -g dwarf,1 x"),
            ("p record -F 99 -ag -- x", "p record -F 99 -ag=auto -- x"),
            ("p record -g -z3 x -g", "p record -g=auto -z=3 x -g"),
            ("p record -p 1 -g", "p record -p 1 -g=auto"),
            ("p top -g x", "p top -g=auto x"),
            ("p", "p"),
        ] {
            let made = with_equals(words.split(' ').map(Into::into));
            let made: Vec<_> = made.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(made.join(" "), expected);
        }
    }
}
