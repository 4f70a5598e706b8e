//! Chains of frame pointers that lead to no code.
//!
//! Code that keeps no frame pointers leaves anything in that register, and the kernel follows it. What
//! it finds differs from sample to sample, although the stacks are equal up to there.

use crate::base::CodeAddress;
use crate::perfdata::{CpuMode, Words};

use super::super::CallerBy;
use super::super::chain::{self, Link, Space};
use super::super::memory::FrameKey;
use super::{Stacks, User};

/// How many chains that are not known as a whole lead astray. Where few do, it costs more to look for
/// the place in each of them than to do without.
#[derive(Debug, Default)]
pub(in crate::trace) struct Course {
    all: u64,
    astray: u64,
}

impl Course {
    /// A chain that is not known as a whole leads astray, or does not.
    pub(in crate::trace) fn note(&mut self, is_astray: bool) {
        self.all += 1;
        self.astray += u64::from(is_astray);
    }

    /// Whether at least one in four did.
    fn is_uncertain(&self) -> bool {
        self.astray.saturating_mul(4) > self.all
    }
}

impl Stacks {
    /// Where the chain of a sample by frame pointers leads astray: the place of the first word of it
    /// that is an address in no mapping, and whether the chain has two frames in user space at most.
    /// `None` if the chain does not, if already its innermost frame in user space is in no mapping, or
    /// if too few chains do so.
    pub(in crate::trace) fn goes_astray(
        &mut self,
        chain: Words<'_>,
        mode: CpuMode,
        pid: i32,
    ) -> Option<(usize, bool)> {
        if !self.course.is_uncertain() {
            return None;
        }
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

    /// Whether an address in user space is in a mapping.
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
