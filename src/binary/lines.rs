//! Source lines and inlined calls, from DWARF.

use std::borrow::Cow;

use gimli::{EndianSlice, RunTimeEndian};

use crate::base::{Svma, utf8};

type Slice<'b> = EndianSlice<'b, RunTimeEndian>;

/// One frame of an address: the function itself or a call that was inlined into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineFrame<'l> {
    /// The linkage name, not demangled; where there is none (C) the plain name.
    pub function: Option<Cow<'l, str>>,
    /// The path of the source file as the compiler knew it.
    pub file: Option<&'l str>,
    /// The line: of the address itself in the innermost frame, of the inlined call in the others.
    pub line: Option<u32>,
}

/// Looks addresses up in DWARF debug information. See [`Binary::lines`](super::Binary::lines).
pub struct Lines<'b> {
    context: Option<addr2line::Context<Slice<'b>>>,
}

impl<'b> Lines<'b> {
    pub(super) fn new(dwarf: Option<gimli::Dwarf<Slice<'b>>>) -> Lines<'b> {
        Lines {
            context: dwarf.and_then(|dwarf| addr2line::Context::from_dwarf(dwarf).ok()),
        }
    }

    /// Puts the frames of `address` into `out`, which is emptied first: innermost first, so the
    /// last one is the function that has a symbol. Nothing when the address is not known.
    pub fn frames<'l>(&'l self, address: Svma, out: &mut Vec<InlineFrame<'l>>) {
        out.clear();
        let Some(context) = &self.context else {
            return;
        };
        let Ok(mut frames) = context.find_frames(address.0).skip_all_loads() else {
            return;
        };
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location.as_ref();
            out.push(InlineFrame {
                function: frame.function.map(|name| utf8(name.name.slice())),
                file: location.and_then(|l| l.file),
                line: location.and_then(|l| l.line),
            });
        }
    }
}
