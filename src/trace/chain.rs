//! From the call chain of a sample to links, outermost first.
//!
//! A chain is a list of addresses from the innermost frame outwards, cut into contexts by markers:
//!
//! ```text
//!   PERF_CONTEXT_KERNEL  ip  ret  ret  …  PERF_CONTEXT_USER  ip  ret  ret …
//! ```
//!
//! The first address of a context is an instruction pointer, the others are return addresses. That
//! of the user's context is where the kernel goes back to, if the kernel was at work.

use linux_perf_event_reader::{BranchSampleFormat, constants};

use crate::base::{CaveatKind, CodeAddress};
use crate::perfdata::{Attr, CpuMode, Sample, Words, unwound};

use super::CallerBy;

/// The space that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Kernel,
    User,
    /// A guest or a hypervisor.
    Other,
}

impl Space {
    pub(super) fn of(mode: CpuMode) -> Space {
        match mode {
            CpuMode::Kernel => Space::Kernel,
            CpuMode::User => Space::User,
            // Old kernels and synthesized samples do not say.
            CpuMode::Unknown => Space::User,
            CpuMode::Other => Space::Other,
        }
    }

    /// The space that a context marker begins; `None` for what is no marker.
    fn of_marker(marker: u64) -> Option<Space> {
        match marker {
            constants::PERF_CONTEXT_KERNEL => Some(Space::Kernel),
            constants::PERF_CONTEXT_USER => Some(Space::User),
            constants::PERF_CONTEXT_HV
            | constants::PERF_CONTEXT_GUEST
            | constants::PERF_CONTEXT_GUEST_KERNEL
            | constants::PERF_CONTEXT_GUEST_USER => Some(Space::Other),
            _ => None,
        }
    }
}

/// One frame of a stack as the sample has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) space: Space,
    pub(super) address: CodeAddress,
    /// How the frame outside of it was found.
    pub(super) caller_by: CallerBy,
}

/// The properties of a chain other than its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// It has as many frames as the recorder keeps at most.
    pub(super) cut: bool,
    pub(super) user_frames: usize,
}

// The kernel's limit of frames where the event has none of its own (`kernel.perf_event_max_stack`).
const DEFAULT_LIMIT: usize = 127;

/// The addresses of a chain, innermost first, each with the place of its word and its space.
pub(super) fn addresses(
    chain: Words<'_>,
    mode: CpuMode,
) -> impl Iterator<Item = (usize, Space, CodeAddress)> {
    places(chain.iter(), mode)
}

fn places(
    words: impl Iterator<Item = u64>,
    mode: CpuMode,
) -> impl Iterator<Item = (usize, Space, CodeAddress)> {
    let mut space = Space::of(mode);
    let mut first_of_context = true;
    // The user's part is the last. What looks like a marker in it is data that a frame pointer led
    // to.
    let mut is_in_last = false;
    let words = words.enumerate().map_while(move |(place, address)| {
        if let Some(next) = Space::of_marker(address).filter(|_| !is_in_last) {
            space = next;
            first_of_context = true;
            is_in_last = next == Space::User;
            return Some(None);
        }
        let is_first = std::mem::replace(&mut first_of_context, false);
        match address {
            // The outermost function has no return address, and what is behind it is no frame.
            0 if space == Space::User && !is_first => None,
            0 => Some(None),
            _ if is_first => Some(Some((place, space, CodeAddress::Instruction(address)))),
            _ => Some(Some((place, space, CodeAddress::Return(address)))),
        }
    });
    words.flatten()
}

/// Whether the frame that was running is missing from a chain: what ran was not in user space, and
/// the innermost frame is in user space, or there is none.
fn lacks_running_frame(innermost: Option<Space>, mode: Space) -> bool {
    mode != Space::User && innermost.is_none_or(|space| space == Space::User)
}

/// The program counter of a sample, where its stack depends on it: where it is not in the chain.
pub(super) fn running_outside(sample: &Sample<'_>, chain: Words<'_>, mode: CpuMode) -> Option<u64> {
    let innermost = addresses(chain, mode).next().map(|(_, space, _)| space);
    let is_outside = innermost.is_none() || lacks_running_frame(innermost, Space::of(mode));
    sample.ip.filter(|_| is_outside)
}

fn by_frame_pointer(space: Space, address: CodeAddress) -> Link {
    Link {
        space,
        address,
        caller_by: CallerBy::FramePointer,
    }
}

/// Writes the links of a sample's stack outside of user space to `links`, outermost first.
pub(super) fn links_of_kernel(sample: &Sample<'_>, mode: CpuMode, links: &mut Vec<Link>) {
    let from = links.len();
    let all = addresses(sample.callchain.unwrap_or(Words::EMPTY), mode);
    let outside = all.filter(|&(_, space, _)| space != Space::User);
    links.extend(outside.map(|(_, space, address)| by_frame_pointer(space, address)));
    let space = Space::of(mode);
    if links.len() == from
        && space != Space::User
        && let Some(ip) = sample.ip
    {
        links.push(Link {
            space,
            address: CodeAddress::Instruction(ip),
            caller_by: CallerBy::FramePointer,
        });
    }
    if let Some(own) = links.get_mut(from..) {
        own.reverse();
    }
}

/// Where a program was, whose recorder has unwound its stack.
pub(super) fn program_counter(sample: &Sample<'_>) -> Option<u64> {
    let mut words = sample.callchain?.iter();
    words.find(|&word| word == constants::PERF_CONTEXT_USER)?;
    words.find(|&word| word != constants::PERF_CONTEXT_USER)
}

pub(super) fn has_user_frames(sample: &Sample<'_>, mode: CpuMode) -> bool {
    let mut all = addresses(sample.callchain.unwrap_or(Words::EMPTY), mode);
    all.any(|(_, space, _)| space == Space::User)
}

/// Whether the kernel was at work for the user's code.
pub(super) fn is_in_kernel(mode: CpuMode, attr: &Attr) -> bool {
    // Tracepoints of system calls have the user's registers, and say that they are the user's.
    match mode {
        CpuMode::Kernel => true,
        CpuMode::User => attr.kind == constants::PERF_TYPE_TRACEPOINT,
        _ => false,
    }
}

/// Notes of the innermost of these user frames, outermost first, that the kernel was at work there,
/// with the kernel's frames behind it.
pub(super) fn enter_kernel(links: &mut [Link]) {
    let Some(place) = links.iter().rposition(|link| link.space == Space::User) else {
        return;
    };
    let (users, kernel) = links.split_at_mut(place.saturating_add(1));
    if let Some(innermost) = users.last_mut()
        && let CodeAddress::Instruction(address) = innermost.address
    {
        let entry = kernel
            .first()
            .map_or(0, |link| link.address.recorded() as u32);
        innermost.address = CodeAddress::InKernel { address, entry };
    }
}

/// Appends the return addresses of a sample's chain that are in user space, innermost first; none
/// where it does not begin at this program counter, or where other means than frame pointers led to
/// them. Returns whether the chain has as many frames as the recorder keeps at most.
pub(super) fn user_callers(
    sample: &Sample<'_>,
    mode: CpuMode,
    attr: &Attr,
    program_counter: u64,
    callers: &mut Vec<u64>,
) -> bool {
    if sample.branches.is_some() {
        return false;
    }
    let chain = sample.callchain.unwrap_or(Words::EMPTY);
    let of_user = addresses(chain, mode).filter(|&(_, space, _)| space == Space::User);
    let mut of_user = of_user.map(|(.., address)| address.recorded());
    if of_user.next() != Some(program_counter) {
        return false;
    }
    callers.extend(of_user);
    is_full(addresses(chain, mode).count(), attr)
}

/// Writes the links of a sample's stack to `links`, outermost first, where its recorder has unwound
/// it. Returns why it has no more frames, and whether those that it has were all found by frame
/// pointers.
pub(super) fn unwound_links(
    sample: &Sample<'_>,
    mode: CpuMode,
    attr: &Attr,
    links: &mut Vec<Link>,
) -> (Option<CaveatKind>, bool) {
    links.clear();
    let chain = sample.callchain.unwrap_or(Words::EMPTY);
    let end = unwound::frames(chain, |address, caller_by| {
        links.push(Link {
            space: Space::User,
            address,
            caller_by,
        });
    });
    let innermost = links.first().map(|link| link.caller_by);
    links.reverse();
    links_of_kernel(sample, mode, links);
    if innermost != Some(CallerBy::FramePointer) {
        return (end, false);
    }
    let is_cut = is_full(links.len(), attr);
    (end.or(is_cut.then_some(CaveatKind::CutStack)), true)
}

/// Whether a stack of so many frames is as long as the recorder lets it be.
fn is_full(frames: usize, attr: &Attr) -> bool {
    // Where the limit is not recorded it is the usual one as a rule; a longer chain shows that it
    // was raised.
    match attr.sample_max_stack {
        0 => frames == DEFAULT_LIMIT,
        limit => frames >= usize::from(limit) && frames > 1,
    }
}

/// Writes the links of a sample's stack to `links`, outermost first.
pub(super) fn links(
    sample: &Sample<'_>,
    mode: CpuMode,
    attr: &Attr,
    links: &mut Vec<Link>,
) -> Shape {
    links.clear();
    let lbr = sample.branches.filter(|_| {
        attr.branch_format()
            .contains(BranchSampleFormat::CALL_STACK)
    });
    let all = addresses(sample.callchain.unwrap_or(Words::EMPTY), mode)
        .take_while(|&(_, space, _)| space != Space::User || lbr.is_none());
    // As one loop: pulled out one by one, each passes through memory.
    all.for_each(|(_, space, address)| links.push(by_frame_pointer(space, address)));
    let recorded = links.len();
    let mode_space = Space::of(mode);
    // A recorder may ask for the user's part of the stacks only. The code that ran is in the
    // sample.
    if lacks_running_frame(links.first().map(|link| link.space), mode_space)
        && let Some(ip) = sample.ip
    {
        let running = by_frame_pointer(mode_space, CodeAddress::Instruction(ip));
        links.insert(0, running);
    }
    if let Some(lbr) = lbr {
        // The branches are the calls that have not returned, innermost first: the frame that was
        // running (in the kernel's time: where the last call went), then where each came from.
        let mut calls = lbr.entries().peekable();
        let called = calls.peek().map(|&(_, to, _)| to);
        let innermost = match mode {
            CpuMode::User => sample.ip.or(called),
            _ => called,
        };
        let addresses = innermost.into_iter().chain(calls.map(|(from, _, _)| from));
        links.extend(addresses.filter(|&a| a != 0).map(|address| Link {
            space: Space::User,
            address: CodeAddress::Instruction(address),
            caller_by: CallerBy::Rules,
        }));
    }
    if links.is_empty()
        && let Some(ip) = sample.ip
    {
        links.push(Link {
            space: Space::of(mode),
            address: CodeAddress::Instruction(ip),
            caller_by: CallerBy::FramePointer,
        });
    }
    let shape = Shape {
        cut: lbr.is_none() && is_full(recorded, attr),
        user_frames: links.iter().filter(|l| l.space == Space::User).count(),
    };
    links.reverse();
    if lbr.is_none() && is_in_kernel(mode, attr) {
        enter_kernel(links);
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses_of(words: &[u64]) -> Vec<(Space, u64)> {
        let all = places(words.iter().copied(), CpuMode::Kernel);
        all.map(|(_, space, address)| (space, address.recorded()))
            .collect()
    }

    const KERNEL: u64 = constants::PERF_CONTEXT_KERNEL;
    const USER: u64 = constants::PERF_CONTEXT_USER;

    #[test]
    fn a_marker_among_the_users_addresses_is_data() {
        let data = constants::PERF_CONTEXT_HV;
        let words = [KERNEL, 0xffff_8000, USER, 0x1000, data, 0x2000];
        let user = [0x1000, data, 0x2000].map(|address| (Space::User, address));
        let expected = [&[(Space::Kernel, 0xffff_8000)], &user[..]].concat();
        assert_eq!(addresses_of(&words), expected);
        let guest = [constants::PERF_CONTEXT_GUEST, 0x1000];
        assert_eq!(addresses_of(&guest), [(Space::Other, 0x1000)]);
    }

    #[test]
    fn behind_a_return_address_of_zero_is_no_frame() {
        let words = [USER, 0x1000, 0x2000, 0, 0x3000];
        let expected = [(Space::User, 0x1000), (Space::User, 0x2000)];
        assert_eq!(addresses_of(&words), expected);
        // A function at zero was called, which has no code.
        let words = [USER, 0, 0x2000];
        assert_eq!(addresses_of(&words), [(Space::User, 0x2000)]);
    }
}
