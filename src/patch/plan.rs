//! The bytes by which calls are counted: stubs, and the instructions that lead to them.

use super::form::LONGEST;
use super::site::Patch;
use super::sites::FileSites;
use super::stub::{STUB, stub};
use crate::sampler::{Change, ImagePlan, StubArea};

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
        let Some(patch) = &site.patch else { continue };
        let row = &site.row;
        let stub_at = area.stubs.wrapping_add((number * STUB) as u64);
        let counter = area.counters.wrapping_add(number as u64 * 8);
        match lead(patch, row.at, row.saves_flags, bias, (stub_at, counter)) {
            Some((bytes, change)) => {
                place.copy_from_slice(&bytes);
                plan.changes.push(Change {
                    site: number,
                    ..change
                });
            }
            None => plan.out_of_reach.push(number),
        }
    }
    plan
}

/// The changes of some sites of a file, in order of address: the sites are in order.
pub(super) fn changes(file: &FileSites, bias: u64, area: StubArea, sites: &[usize]) -> Vec<Change> {
    let changes = sites.iter().filter_map(|&number| {
        let site = file.found.sites.get(number)?;
        let stub_at = area.stubs.wrapping_add((number * STUB) as u64);
        let counter = area.counters.wrapping_add(number as u64 * 8);
        let (at, saves_flags) = (site.row.at, site.row.saves_flags);
        let (_, change) = lead(
            site.patch.as_ref()?,
            at,
            saves_flags,
            bias,
            (stub_at, counter),
        )?;
        Some(Change {
            site: number,
            ..change
        })
    });
    changes.collect()
}

fn lead(
    patch: &Patch,
    at: u64,
    saves_flags: bool,
    bias: u64,
    (stub_at, counter): (u64, u64),
) -> Option<([u8; STUB], Change)> {
    let mut call = patch.call;
    call.to = call.to.wrapping_add(bias);
    let at = at.wrapping_add(bias);
    let length = usize::from(patch.length).min(LONGEST);
    let new = call.led_to(stub_at, patch.bytes.get(..length)?, at)?;
    let bytes = stub(call, saves_flags, stub_at, counter)?;
    let change = Change {
        at,
        length: patch.length,
        old: patch.bytes,
        new,
        site: 0,
    };
    Some((bytes, change))
}
