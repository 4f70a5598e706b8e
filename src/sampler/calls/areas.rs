//! The files that count, and where their stubs and counters are in the shared memory.
//!
//! ```text
//!   shared memory   agent, bell │ stubs, counters of a file │ stubs, counters of the next │ …
//!                                        │
//!   in a process    … stubs, counters ◀──┘      file …      all as far from each other as in
//!                     └─────── the same distance ─┘         the process for which they were made
//! ```
//!
//! Stubs reach the file and the counters by distances, so processes that have both at the same
//! distance share them, wherever the file is loaded.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashSet;

use super::address_space::{distance, is_free, pages};
use super::loaded::Memory;
use super::page::{self, Page};
use super::place::Place;
use super::shared_memory;
use crate::patch::{
    Adding, CallCounter, Change, Chosen, FileIdentity, Installed, STUB, StubArea, set_adding,
    without_count,
};
use crate::sampler::error::Error;

// How many changes of a file are kept that were made.
const MADE: usize = 256;

#[derive(Debug)]
pub(super) struct Areas {
    list: Vec<Area>,
    end: u64,
    refused: Refused,
    adding: Adding,
    own: Vec<OwnCounters>,
}

#[derive(Debug)]
struct OwnCounters {
    /// How far they are from the others (wrapping), in the process that has them.
    distance: u64,
    offsets: Vec<u64>,
}

#[derive(Debug, Default)]
struct Refused {
    files: FxHashSet<usize>,
    /// Whether it may be any.
    may_be_any: bool,
}

#[derive(Debug)]
struct Area {
    installed: Installed,
    sites: usize,
    lengths: (u64, u64),
    made: Vec<Change>,
    given_up: FxHashSet<usize>,
}

impl Area {
    /// Where its stubs are in a process that has the file there.
    fn stubs_with(&self, bias: u64) -> u64 {
        let distance = self.installed.area.stubs.wrapping_sub(self.installed.bias);
        bias.wrapping_add(distance)
    }
}

impl Areas {
    pub(super) fn behind(end: u64) -> Areas {
        Areas {
            list: Vec::new(),
            end,
            refused: Refused::default(),
            adding: Adding::Together,
            own: Vec::new(),
        }
    }

    // What is made from now on counts without a lock: there is only one thread.
    pub(super) fn count_alone(&mut self) {
        self.adding = Adding::Alone;
    }

    pub(super) fn adding(&self) -> Adding {
        self.adding
    }

    pub(super) fn set_adding(&mut self, shared: &File, adding: Adding) -> io::Result<()> {
        if self.adding == adding {
            return Ok(());
        }
        self.adding = adding;
        for area in &self.list {
            let mut stubs = vec![0; area.sites * STUB];
            shared.read_exact_at(&mut stubs, area.installed.area.offset)?;
            set_adding(&mut stubs, adding);
            shared.write_all_at(&stubs, area.installed.area.offset)?;
        }
        Ok(())
    }

    /// Maps counters for so many threads into the process for which the stubs were made. Returns
    /// how far each are from the others.
    pub(super) fn add_own(
        &mut self,
        place: &mut Place<'_>,
        threads: usize,
    ) -> io::Result<Vec<u64>> {
        let ranges = self
            .list
            .iter()
            .filter(|area| area.lengths.1 > 0)
            .map(|area| {
                let at = area.installed.area.counters;
                (at, at.saturating_add(area.lengths.1))
            });
        let ranges: Vec<(u64, u64)> = ranges.collect();
        let mut distances = Vec::new();
        for _ in 0..threads {
            let used: Vec<u64> = self.own.iter().map(|own| own.distance).collect();
            let distance = distance(&place.memory.taken, &ranges, &used);
            let distance = distance.ok_or(io::ErrorKind::OutOfMemory)?;
            let mut offsets = Vec::new();
            for area in &self.list {
                let (offset, length) = (self.end, area.lengths.1);
                offsets.push(offset);
                if length == 0 {
                    continue;
                }
                self.end = end_of(place.shared, offset, length)?;
                let at = area.installed.area.counters.wrapping_add(distance);
                place.map(at, length, libc::PROT_READ | libc::PROT_WRITE, offset)?;
                place.memory.take(at, at + length);
            }
            self.own.push(OwnCounters { distance, offsets });
            distances.push(distance);
        }
        Ok(distances)
    }

    pub(super) fn installed(&self) -> Vec<Installed> {
        let areas = self.list.iter().map(|area| {
            let is_refused =
                self.refused.may_be_any || self.refused.files.contains(&area.installed.file);
            let mut installed = area.installed.clone();
            installed.is_part |= is_refused;
            installed
        });
        areas.collect()
    }

    /// A process has loaded a file that does not count there: what it counts elsewhere is a part.
    pub(super) fn refuse(&mut self, file: usize) {
        self.refused.files.insert(file);
    }

    pub(super) fn refuse_any(&mut self) {
        self.refused.may_be_any = true;
    }

    pub(super) fn read(&self, shared: &File) -> io::Result<Vec<Vec<u64>>> {
        let counters = self.list.iter().enumerate().map(|(number, area)| {
            let mut counters = vec![0; area.sites];
            let offset = area.installed.area.offset + area.lengths.0;
            add_counters(shared, offset, &mut counters)?;
            for own in &self.own {
                // What was loaded later has none.
                if let Some(&offset) = own.offsets.get(number) {
                    add_counters(shared, offset, &mut counters)?;
                }
            }
            Ok(counters)
        });
        counters.collect()
    }

    /// What makes the calls of some sites as they were in a process, by the places of their files
    /// and their numbers, which are in order.
    pub(super) fn restores(
        &self,
        memory: &Memory,
        identity: FileIdentity,
        sites: &[(usize, usize)],
        planner: &CallCounter,
    ) -> Vec<Vec<Change>> {
        let of_files = sites.chunk_by(|a, b| a.0 == b.0);
        let restores = of_files.filter_map(|sites| {
            let area = self.list.get(sites.first()?.0)?;
            let Installed {
                file,
                bias,
                area: stubs,
                ..
            } = area.installed;
            let mut mapped = memory.shared.iter();
            let mapped = mapped.find(|it| (it.offset, it.identity) == (stubs.offset, identity))?;
            let moved = mapped.start.wrapping_sub(stubs.stubs);
            let stubs = StubArea {
                stubs: mapped.start,
                counters: stubs.counters.wrapping_add(moved),
                offset: stubs.offset,
            };
            let sites: Vec<usize> = sites.iter().map(|(_, site)| *site).collect();
            let changes = planner.changes(file, bias.wrapping_add(moved), stubs, &sites);
            Some(changes.iter().map(Change::undone).collect())
        });
        restores.collect()
    }

    /// Counts no more at a site, in all processes. Returns whether that is possible and new.
    pub(super) fn give_up(
        &mut self,
        shared: &File,
        (file, site): (usize, usize),
        planner: &mut CallCounter,
    ) -> bool {
        let Some(area) = self.list.get_mut(file).filter(|area| site < area.sites) else {
            return false;
        };
        let mut stub = [0; STUB];
        let at = area.installed.area.offset + site as u64 * STUB as u64;
        let written = shared.read_exact_at(&mut stub, at).and_then(|()| {
            let Some(bytes) = without_count(&stub) else {
                return Ok(false);
            };
            let inside = at % page::SIZE as u64;
            let page = Page::map(shared, at - inside)?;
            // Threads execute it meanwhile.
            let word = page.long_word(inside as usize);
            word.store(u64::from_ne_bytes(bytes), Ordering::Release);
            Ok(true)
        });
        if !written.unwrap_or(false) {
            return false;
        }
        let parts = &mut area.installed.parts;
        if let Err(place) = parts.binary_search(&site) {
            parts.insert(place, site);
        }
        planner.gave_up(area.installed.file, site);
        area.given_up.insert(site);
        area.made.retain(|made| made.site != site);
        true
    }

    /// Whether a file counts in a process already, as in one that was forked.
    pub(super) fn counts(&self, place: &Place<'_>, chosen: &Chosen) -> io::Result<bool> {
        let identity = shared_memory::identity(place.shared)?;
        for area in &self.list {
            if area.installed.file != chosen.file || !area.is_mapped(place, chosen, identity) {
                continue;
            }
            let Some(made) = area.made.first() else {
                continue;
            };
            let mut bytes = [0; 8];
            let length = usize::from(made.length).min(bytes.len());
            let (bytes, new) = (&mut bytes[..length], &made.new[..length]);
            let at = made.at.wrapping_add(chosen.bias);
            if place.stopped.read(at, bytes).is_ok() && bytes == new {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes a file count in a process. Returns the changes that were planned.
    pub(super) fn install(
        &mut self,
        place: &mut Place<'_>,
        chosen: &Chosen,
        is_part: bool,
        planner: &mut CallCounter,
    ) -> Result<Vec<Change>, Error> {
        let mapping = Error::counting("map stubs into the program");
        let identity = shared_memory::identity(place.shared).map_err(&mapping)?;
        let of_file = |area: &Area| area.installed.file == chosen.file;
        let mut found = None;
        for (number, area) in self.list.iter().enumerate() {
            if of_file(area) && (area.lengths.0 == 0 || area.reach(place, chosen, identity)) {
                found = Some(number);
                break;
            }
        }
        let is_new = found.is_none();
        let number = match found {
            Some(number) => number,
            None => self.add(place, chosen)?,
        };
        let Some(area) = self.list.get_mut(number).filter(|area| area.lengths.0 > 0) else {
            return Ok(Vec::new());
        };
        let stubs = area.stubs_with(chosen.bias);
        let offset = area.installed.area.offset;
        let mut plan = planner.plan(
            chosen.file,
            chosen.bias,
            StubArea {
                stubs,
                counters: stubs.wrapping_add(area.lengths.0),
                offset,
            },
        );
        if is_new {
            set_adding(&mut plan.stubs, self.adding);
            let written = place.shared.write_all_at(&plan.stubs, offset);
            written.map_err(Error::counting("write the stubs"))?;
        }
        let length = area.lengths.0;
        place
            .check(&[
                (stubs, offset),
                (stubs.wrapping_add(length), offset + length),
            ])
            .map_err(&mapping)?;
        let counting = Error::counting("count the program's calls");
        place.check_uncounted(&plan.changes).map_err(counting)?;
        // These go on as they are.
        plan.changes
            .retain(|change| !area.given_up.contains(&change.site));
        let unchanged = place.stopped.change(&plan.changes);
        let mut left = unchanged.map_err(Error::counting("change the program's code"))?;
        planner.unchanged(chosen.file, &plan, &left);
        if area.made.is_empty() {
            let made = plan
                .changes
                .iter()
                .filter(|change| !left.contains(&change.site));
            let made = made.take(MADE).map(|made| Change {
                at: made.at.wrapping_sub(chosen.bias),
                ..*made
            });
            area.made = made.collect();
        }
        left.extend(&plan.out_of_reach);
        left.sort_unstable();
        let installed = &mut area.installed;
        if is_new {
            installed.uncounted = left;
        } else {
            installed.join(&left);
        }
        installed.is_part |= is_part;
        Ok(plan.changes)
    }

    fn add(&mut self, place: &mut Place<'_>, chosen: &Chosen) -> Result<usize, Error> {
        let stubs = pages((chosen.stubs * STUB) as u64);
        let counters = pages(chosen.stubs as u64 * 8);
        let mut area = StubArea {
            offset: self.end,
            ..StubArea::default()
        };
        if stubs > 0 {
            let end = end_of(place.shared, self.end, stubs + counters);
            self.end = end.map_err(Error::counting("make room for counters"))?;
            let image = place.memory.images.get(chosen.image);
            let span = image.map_or((0, 0), |image| image.span);
            area.stubs = place.map_near(span, area.offset, (stubs, counters))?;
            area.counters = area.stubs + stubs;
        }
        self.list.push(Area {
            installed: Installed {
                file: chosen.file,
                bias: chosen.bias,
                area,
                ..Installed::default()
            },
            sites: chosen.stubs,
            lengths: (stubs, counters),
            made: Vec::new(),
            given_up: FxHashSet::default(),
        });
        Ok(self.list.len() - 1)
    }
}

// Where so many bytes of the shared memory end. Its size is fixed.
fn end_of(shared: &File, start: u64, length: u64) -> io::Result<u64> {
    let end = start + length;
    if end > shared_memory::size(shared)? {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(end)
}

fn add_counters(shared: &File, offset: u64, counters: &mut [u64]) -> io::Result<()> {
    let end = offset + counters.len() as u64 * 8;
    let mut at = offset;
    while let Some((start, stop)) = page::written(shared, at, end)? {
        let mut bytes = vec![0; (stop - start) as usize];
        shared.read_exact_at(&mut bytes, start)?;
        let first = ((start - offset) / 8) as usize;
        let counters = counters.get_mut(first..).unwrap_or_default();
        let (words, _) = bytes.as_chunks::<8>();
        for (counter, word) in counters.iter_mut().zip(words) {
            *counter = counter.saturating_add(u64::from_ne_bytes(*word));
        }
        at = stop;
    }
    Ok(())
}

impl Area {
    fn is_mapped(&self, place: &Place<'_>, chosen: &Chosen, identity: FileIdentity) -> bool {
        let at = self.stubs_with(chosen.bias);
        place.memory.shared.iter().any(|shared| {
            (shared.start, shared.offset, shared.identity)
                == (at, self.installed.area.offset, identity)
        })
    }

    /// Maps it there, if it is not and nothing else is.
    fn reach(&self, place: &mut Place<'_>, chosen: &Chosen, identity: FileIdentity) -> bool {
        if self.is_mapped(place, chosen, identity) {
            return true;
        }
        let at = self.stubs_with(chosen.bias);
        let (stubs, counters) = self.lengths;
        is_free(&place.memory.taken, at, stubs + counters)
            && matches!(
                place.map_at(at, self.installed.area.offset, self.lengths),
                Ok(true)
            )
    }
}

impl Installed {
    fn join(&mut self, left: &[usize]) {
        let is_in = |list: &[usize], site| list.binary_search(&site).is_ok();
        let (both, one): (Vec<usize>, Vec<usize>) =
            { self.uncounted.iter() }.partition(|&&site| is_in(left, site));
        let other = left.iter().filter(|&&site| !is_in(&self.uncounted, site));
        self.parts.extend(other);
        self.parts.extend(one);
        self.parts.sort_unstable();
        self.parts.dedup();
        self.uncounted = both;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_that_one_process_counts_and_another_does_not_are_counted_in_part() {
        let mut installed = Installed {
            uncounted: vec![1, 3, 5],
            ..Installed::default()
        };
        installed.join(&[3, 7]);
        assert_eq!(
            (&installed.uncounted[..], &installed.parts[..]),
            (&[3][..], &[1, 5, 7][..])
        );
        installed.join(&[3]);
        assert_eq!(
            (&installed.uncounted[..], &installed.parts[..]),
            (&[3][..], &[1, 5, 7][..])
        );
    }
}
