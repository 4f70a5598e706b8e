//! A call site, and how it is kept from one start to the next.

use serde::{Deserialize, Serialize};

use super::form::{CallForm, LONGEST};
use crate::perfdata::{CountedCallee, CountedSite};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(into = "KeptSite", try_from = "KeptSite")]
pub(super) struct Site {
    /// What is recorded of it; nothing was counted yet.
    pub(super) row: CountedSite,
    /// How it is led through a stub; `None` if it is left alone.
    pub(super) patch: Option<Patch>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    pub(super) call: CallForm,
    pub(super) length: u8,
    pub(super) bytes: [u8; LONGEST],
}

/// A call site as it is kept. What its instruction does is read from its bytes again, and memory is
/// changed only where it has these bytes.
#[derive(Serialize, Deserialize)]
struct KeptSite {
    at: u64,
    caller: u64,
    callee: Result<u64, u32>,
    is_tail: bool,
    saves_flags: bool,
    instruction: Option<(u8, [u8; LONGEST])>,
}

impl From<Site> for KeptSite {
    fn from(Site { row, patch }: Site) -> KeptSite {
        KeptSite {
            at: row.at,
            caller: row.caller,
            callee: match row.callee {
                CountedCallee::At(start) => Ok(start),
                CountedCallee::Import(row) => Err(row),
            },
            is_tail: row.is_tail,
            saves_flags: row.saves_flags,
            instruction: patch.map(|patch| (patch.length, patch.bytes)),
        }
    }
}

impl TryFrom<KeptSite> for Site {
    type Error = &'static str;

    fn try_from(kept: KeptSite) -> Result<Site, &'static str> {
        let patch = |(length, bytes): (u8, [u8; LONGEST])| {
            let instruction = bytes.get(..length.into())?;
            let call = CallForm::read(instruction, kept.at)?;
            Some(Patch {
                call,
                length,
                bytes,
            })
        };
        let patch = match kept.instruction {
            Some(instruction) => Some(patch(instruction).ok_or("an instruction that is no call")?),
            None => None,
        };
        let row = CountedSite {
            at: kept.at,
            caller: kept.caller,
            callee: match kept.callee {
                Ok(start) => CountedCallee::At(start),
                Err(row) => CountedCallee::Import(row),
            },
            calls: None,
            is_tail: kept.is_tail,
            saves_flags: kept.saves_flags,
            is_least: false,
            is_part: false,
        };
        Ok(Site { row, patch })
    }
}
