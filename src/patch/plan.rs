//! The bytes by which calls are counted: stubs, and the instructions that lead to them.

use super::form::LONGEST;
use super::site::{Patch, Site};
use super::sites::FileSites;
use super::stub::{STUB, stub};

/// Where stubs and counters of a file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StubArea {
    /// The address of the first stub.
    pub stubs: u64,
    /// The address of the first counter, which is a word of eight bytes.
    pub counters: u64,
    /// The offset of the first stub in the shared memory.
    pub offset: u64,
}

/// What is written into a program for one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePlan {
    /// The stubs, one after the other.
    pub stubs: Vec<u8>,
    /// The instructions to change, in order of address.
    pub changes: Vec<Change>,
    /// Sites that no stub can reach.
    pub out_of_reach: Vec<usize>,
}

/// A file whose calls are counted: in one process, or in several that have it as far from the
/// stubs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Installed {
    /// The counter's number of the file.
    pub(crate) file: usize,
    /// What is added to addresses stated in the file to get those in memory (wrapping).
    pub(crate) bias: u64,
    /// Where its stubs and counters are.
    pub(crate) area: StubArea,
    /// Sites that no process counts, in order.
    pub(crate) uncounted: Vec<usize>,
    /// Sites that not all processes count, or not until the end, in order.
    pub(crate) parts: Vec<usize>,
    /// Whether code of it may have run before its calls were counted.
    pub(crate) is_part: bool,
}

/// A change of an instruction. It is made only where memory has the old bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The address of the instruction in memory.
    pub at: u64,
    /// Its length; the bytes behind it mean nothing.
    pub length: u8,
    /// Its bytes.
    pub old: [u8; 8],
    /// What they become.
    pub new: [u8; 8],
    /// The number of the call site in its file.
    pub site: usize,
}

impl Change {
    /// Where an instruction would lead that has these bytes, if it is of the form of the new one.
    pub(crate) fn leads_to(&self, bytes: &[u8; 8]) -> Option<u64> {
        let length = usize::from(self.length);
        // `jmp function` in the place of a longer one has a byte behind its distance.
        let opcode = length.checked_sub(6).and_then(|at| self.new.get(at));
        let behind = if opcode == Some(&0xe9) { 5 } else { 4 };
        let field = length.checked_sub(behind)?;
        let is_same = bytes.get(..field)? == self.new.get(..field)?;
        let distance = bytes.get(field..)?.first_chunk::<4>()?;
        let end = self.at.wrapping_add(field as u64 + 4);
        let to = end.wrapping_add_signed(i64::from(i32::from_le_bytes(*distance)));
        is_same.then_some(to)
    }

    /// What takes it back.
    pub(crate) fn undone(&self) -> Change {
        Change {
            old: self.new,
            new: self.old,
            ..*self
        }
    }
}

/// Plans for a file whose addresses are moved by `bias` (wrapping). The stub and the counter of a
/// site have its number.
pub(super) fn plan(file: &FileSites, bias: u64, area: StubArea) -> ImagePlan {
    let mut plan = ImagePlan {
        stubs: vec![0xcc; file.found.sites.len().saturating_mul(STUB)],
        changes: Vec::with_capacity(file.found.sites.len()),
        ..ImagePlan::default()
    };
    let stubs = plan.stubs.chunks_exact_mut(STUB);
    for ((number, site), place) in file.found.sites.iter().enumerate().zip(stubs) {
        match lead(site, number, bias, area) {
            Some((bytes, change)) => {
                place.copy_from_slice(&bytes);
                plan.changes.push(change);
            }
            None if site.patch.is_some() => plan.out_of_reach.push(number),
            None => {}
        }
    }
    plan
}

/// The changes of some sites of a file, in order of address: the sites are in order.
pub(super) fn changes(file: &FileSites, bias: u64, area: StubArea, sites: &[usize]) -> Vec<Change> {
    let changes = sites.iter().filter_map(|&number| {
        let site = file.found.sites.get(number)?;
        Some(lead(site, number, bias, area)?.1)
    });
    changes.collect()
}

fn lead(site: &Site, number: usize, bias: u64, area: StubArea) -> Option<([u8; STUB], Change)> {
    let Patch {
        mut call,
        length,
        bytes: old,
    } = site.patch?;
    let stub_at = area.stubs.wrapping_add((number * STUB) as u64);
    let counter = area.counters.wrapping_add(number as u64 * 8);
    call.to = call.to.wrapping_add(bias);
    let at = site.row.at.wrapping_add(bias);
    let new = call.led_to(stub_at, old.get(..usize::from(length).min(LONGEST))?, at)?;
    let bytes = stub(call, site.row.saves_flags, stub_at, counter)?;
    let change = Change {
        at,
        length,
        old,
        new,
        site: number,
    };
    Some((bytes, change))
}
