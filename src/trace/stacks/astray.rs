//! Chains of frame pointers that lead to no code.
//!
//! Code that keeps no frame pointers leaves arbitrary values in that register, and the kernel
//! follows them. What it finds differs from sample to sample, although the stacks are equal up to
//! there.

use crate::base::CodeAddress;
use crate::perfdata::{CpuMode, Words};

use super::super::CallerBy;
use super::super::chain::{self, Link, Space};
use super::super::memory::FrameKey;
use super::{Stacks, User};

/// How many chains that are not known as a whole lead astray. Where few do, it costs more to look
/// for the place in each of them than to do without.
#[derive(Debug, Default)]
pub(in crate::trace) struct Course {
    all: u64,
    astray: u64,
    /// How often the place was looked for, and how often that led to a known chain.
    looks: u64,
    finds: u64,
}

// The number of lookups after which it is checked whether they pay.
const LOOKS: u64 = 1024;

impl Course {
    /// A chain that is not known as a whole leads astray, or does not.
    pub(in crate::trace) fn note(&mut self, is_astray: bool) {
        self.all += 1;
        self.astray += u64::from(is_astray);
    }

    /// A look at where a chain leads astray led to a known chain.
    pub(in crate::trace) fn found(&mut self) {
        self.finds += 1;
        self.note(true);
    }

    /// Whether more than one in four did, and one in four looks leads to a known chain.
    fn is_worth_a_look(&self) -> bool {
        let pays = self.looks < LOOKS || self.finds.saturating_mul(4) > self.looks;
        pays && self.astray.saturating_mul(4) > self.all
    }
}

impl Stacks {
    /// Where the chain of a sample by frame pointers leads astray: the place of the first word of
    /// it that is an address in no mapping, and whether the chain has two frames in user space at
    /// most. `None` if the chain does not, if already its innermost frame in user space is in no
    /// mapping, or if too few chains do so.
    pub(in crate::trace) fn goes_astray(
        &mut self,
        chain: Words<'_>,
        mode: CpuMode,
        pid: i32,
    ) -> Option<(usize, bool)> {
        if !self.course.is_worth_a_look() {
            return None;
        }
        self.course.looks += 1;
        let all = chain::addresses(chain, mode);
        let mut frames = all.filter(|&(_, space, _)| space == Space::User);
        let (_, _, innermost) = frames.next()?;
        if !self.is_mapped(pid, innermost) {
            return None;
        }
        let mut others = frames.enumerate();
        let astray = others.find(|&(_, (.., address))| !self.is_mapped(pid, address));
        let (before, (place, ..)) = astray?;
        Some((place, before == 0 && others.next().is_none()))
    }

    fn is_mapped(&mut self, pid: i32, address: CodeAddress) -> bool {
        let link = Link {
            space: Space::User,
            address,
            caller_by: CallerBy::FramePointer,
        };
        let user = User::Now(pid);
        let memory = self.memory(pid);
        let key = FrameKey::of(address, link.caller_by);
        let known = self.found(user, memory, link.space).get(&key);
        match known {
            Some(&(_, is_mapped)) => is_mapped,
            None => self.place_of(user, link).is_some(),
        }
    }
}
