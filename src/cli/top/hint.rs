//! What can be done about what is not known, as one says it to who looks at a running program: the
//! sentences are made for recordings.

use proftool::view::page::Block;

/// The commands that recordings are made with; their options are those of `top`, too.
const BEFORE: &str = "proftool record ";
const BEHIND: &str = " -- COMMAND";
/// An option that only those commands have that read a recording.
const FILES: &str = "--symfs DIR";

/// The blocks with hints that are right here.
pub fn said_here(blocks: Vec<Block>) -> Vec<Block> {
    let said = |block| match block {
        Block::Note { text, hint } => Block::Note {
            text,
            hint: hint.map(|hint| option_alone(&hint)),
        },
        Block::Line(text) => Block::Line(option_alone(&text)),
        other => other,
    };
    blocks.into_iter().map(said).collect()
}

/// A hint that names options, not commands that record.
fn option_alone(hint: &str) -> String {
    let hint = hint.replace(BEHIND, "").replace(BEFORE, "");
    hint.replace(FILES, "proftool report --symfs DIR, of a recording")
}

#[cfg(test)]
mod tests {
    use proftool::base::CaveatKind;

    use super::option_alone;

    #[test]
    fn hints_name_options_that_exist_here() {
        for (kind, expected) in [
            (CaveatKind::Lost, "sample less often: -F 499"),
            (
                CaveatKind::UnsureSwitch,
                "larger buffers: --off-cpu -m 8192",
            ),
            (
                CaveatKind::MissingBinary,
                "name the directory with the files: proftool report --symfs DIR, of a recording",
            ),
        ] {
            assert_eq!(option_alone(kind.hint().unwrap()), expected);
        }
        let frames = option_alone(CaveatKind::NoFramePointers.hint().unwrap());
        assert!(
            frames.contains("copies of the stack, -g dwarf, or build"),
            "{frames}"
        );
    }
}
