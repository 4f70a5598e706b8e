//! The files that count, and where their stubs and counters are in the shared memory.
//!
//! ```text
//!   shared memory   agent, bell │ stubs, counters of a file │ stubs, counters of the next │ …
//!                                        │
//!   in a process    … stubs, counters ◀──┘      file …         all as far from each other as in the
//!                     └─────── the same distance ─┘            process for which the stubs were made
//! ```
//!
//! Stubs reach the file and the counters by distances, so processes that have both at the same
//! distance share them, wherever the file is loaded.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::Ordering;

use rustc_hash::FxHashSet;

use super::address_space::{is_free, pages, places};
use super::install::Stopped;
use super::loaded::Memory;
use super::page::{self, Page};
use super::{CallPlanner, Change, Chosen, Installed, StubArea};
use crate::perfdata::CountedImage;
use crate::sampler::error::Error;

/// How many places are tried for the stubs of one file.
const TRIES: usize = 64;

/// A process that is changed.
pub(super) struct Place<'a> {
    pub(super) stopped: &'a mut Stopped,
    pub(super) memory: &'a mut Memory,
    pub(super) shared: &'a File,
    /// The number of the shared memory's descriptor in the process.
    pub(super) descriptor: u64,
}

/// The files that count.
#[derive(Debug)]
pub(super) struct Areas {
    list: Vec<Area>,
    /// The size of the shared memory.
    end: u64,
    /// Files that a process has loaded and that do not count there.
    refused: Refused,
    /// Whether stubs count with a lock.
    locks: bool,
}

/// Which files do not count in all processes.
#[derive(Debug, Default)]
struct Refused {
    /// The planner's numbers of files.
    files: FxHashSet<usize>,
    /// Whether it may be any.
    may_be_any: bool,
}

#[derive(Debug)]
struct Area {
    installed: Installed,
    sites: usize,
    /// The bytes of the stubs and of the counters.
    lengths: (u64, u64),
    /// A change that was made, at an address that the file states.
    made: Option<Change>,
}

impl Area {
    /// Where its stubs are in a process that has the file there.
    fn stubs_with(&self, bias: u64) -> u64 {
        let distance = self.installed.area.stubs.wrapping_sub(self.installed.bias);
        bias.wrapping_add(distance)
    }
}

impl Areas {
    /// None, behind what else is in the shared memory.
    pub(super) fn behind(end: u64) -> Areas {
        Areas {
            list: Vec::new(),
            end,
            refused: Refused::default(),
            locks: true,
        }
    }

    /// What is made from now on counts without a lock: there is only one thread.
    pub(super) fn do_not_lock(&mut self) {
        self.locks = false;
    }

    pub(super) fn locks(&self) -> bool {
        self.locks
    }

    /// Makes all stubs count with a lock. Nobody executes them meanwhile.
    pub(super) fn lock(&mut self, shared: &File, planner: &dyn CallPlanner) -> io::Result<()> {
        if self.locks {
            return Ok(());
        }
        self.locks = true;
        for area in &self.list {
            let mut stubs = vec![0; area.sites * CountedImage::STUB_SIZE as usize];
            shared.read_exact_at(&mut stubs, area.installed.area.offset)?;
            planner.lock_stubs(&mut stubs, true);
            shared.write_all_at(&stubs, area.installed.area.offset)?;
        }
        Ok(())
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

    /// A process may have loaded any file that does not count there.
    pub(super) fn refuse_any(&mut self) {
        self.refused.may_be_any = true;
    }

    /// The counters of each.
    pub(super) fn read(&self, shared: &File) -> io::Result<Vec<Vec<u64>>> {
        let counters = self.list.iter().map(|area| {
            let mut bytes = vec![0; area.sites * 8];
            let offset = area.installed.area.offset + area.lengths.0;
            shared.read_exact_at(&mut bytes, offset)?;
            let (words, _) = bytes.as_chunks::<8>();
            Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
        });
        counters.collect()
    }

    /// Counts no more at a site, in all processes. Returns whether that is possible and new.
    pub(super) fn give_up(
        &mut self,
        shared: &File,
        (file, site): (usize, usize),
        planner: &mut dyn CallPlanner,
    ) -> bool {
        let Some(area) = self.list.get_mut(file).filter(|area| site < area.sites) else {
            return false;
        };
        let mut stub = [0; CountedImage::STUB_SIZE as usize];
        let at = area.installed.area.offset + site as u64 * CountedImage::STUB_SIZE;
        let written = shared.read_exact_at(&mut stub, at).and_then(|()| {
            let Some(bytes) = planner.without_count(&stub) else {
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
        true
    }

    /// Whether a file counts in a process already, as in one that was forked.
    pub(super) fn counts(&self, place: &Place<'_>, chosen: &Chosen) -> io::Result<bool> {
        let inode = place.shared.metadata()?.ino();
        for area in &self.list {
            let Some(made) = area.made.filter(|_| {
                area.installed.file == chosen.file && area.is_mapped(place, chosen, inode)
            }) else {
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
        planner: &mut dyn CallPlanner,
    ) -> Result<Vec<Change>, Error> {
        let mapping = Error::counting("map stubs into the program");
        let inode = place.shared.metadata().map_err(mapping)?.ino();
        let of_file = |area: &Area| area.installed.file == chosen.file;
        let mut found = None;
        for (number, area) in self.list.iter().enumerate() {
            if of_file(area) && (area.lengths.0 == 0 || area.reach(place, chosen, inode)) {
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
            planner.lock_stubs(&mut plan.stubs, self.locks);
            let written = place.shared.write_all_at(&plan.stubs, offset);
            written.map_err(Error::counting("write the stubs"))?;
        }
        let unchanged = place.stopped.change(&plan.changes);
        let mut left = unchanged.map_err(Error::counting("change the program's code"))?;
        planner.unchanged(chosen.file, &plan, &left);
        let mut changes = plan.changes.iter();
        area.made = area.made.or_else(|| {
            let made = changes.find(|change| !left.contains(&change.site))?;
            Some(Change {
                at: made.at.wrapping_sub(chosen.bias),
                ..*made
            })
        });
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

    /// Makes room for a file, and maps it.
    fn add(&mut self, place: &mut Place<'_>, chosen: &Chosen) -> Result<usize, Error> {
        let stubs = pages((chosen.stubs * chosen.stub_size) as u64);
        let counters = pages(chosen.stubs as u64 * 8);
        let mut area = StubArea {
            offset: self.end,
            ..StubArea::default()
        };
        if stubs > 0 {
            let sized = place.shared.set_len(self.end + stubs + counters);
            sized.map_err(Error::counting("make room for counters"))?;
            self.end += stubs + counters;
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
            made: None,
        });
        Ok(self.list.len() - 1)
    }
}

impl Area {
    /// Whether its stubs are mapped where a process would need them.
    fn is_mapped(&self, place: &Place<'_>, chosen: &Chosen, inode: u64) -> bool {
        let at = self.stubs_with(chosen.bias);
        place.memory.shared.iter().any(|shared| {
            (shared.start, shared.offset, shared.inode) == (at, self.installed.area.offset, inode)
        })
    }

    /// Maps it there, if it is not and nothing else is.
    fn reach(&self, place: &mut Place<'_>, chosen: &Chosen, inode: u64) -> bool {
        if self.is_mapped(place, chosen, inode) {
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
    /// Another process does not count these sites, which are in order.
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

impl Place<'_> {
    /// Maps stubs and counters of a file near an image. Returns the address.
    pub(super) fn map_near(
        &mut self,
        span: (u64, u64),
        offset: u64,
        lengths: (u64, u64),
    ) -> Result<u64, Error> {
        let mapping = Error::counting("map stubs into the program");
        let tried: Vec<u64> = places(&self.memory.taken, span, lengths.0 + lengths.1)
            .take(TRIES)
            .collect();
        for at in tried {
            if self.map_at(at, offset, lengths).map_err(&mapping)? {
                return Ok(at);
            }
        }
        let refused = io::Error::other("no memory is free within 2 GB of its code");
        Err(mapping(refused))
    }

    /// Maps code and, behind it, data. Returns whether the place was free.
    fn map_at(&mut self, at: u64, offset: u64, (code, data): (u64, u64)) -> io::Result<bool> {
        let (read, write) = (libc::PROT_READ, libc::PROT_WRITE);
        match self.map(at, code, read | libc::PROT_EXEC, offset) {
            Ok(found) if found == at => {}
            // Kernels before 4.17 take the address for a wish.
            Ok(_) => {
                let old = "kernel does not map memory at fixed addresses (Linux 4.17 does)";
                return Err(io::Error::other(old));
            }
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.map(at + code, data, read | write, offset + code)?;
        self.memory.take(at, at + code + data);
        Ok(true)
    }

    fn map(&mut self, at: u64, length: u64, protection: i32, offset: u64) -> io::Result<u64> {
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE) as u64;
        let protection = protection as u64;
        let arguments = [at, length, protection, flags, self.descriptor, offset];
        self.stopped.call(libc::SYS_mmap, arguments)
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
