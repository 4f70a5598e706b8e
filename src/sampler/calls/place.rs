//! Mapping memory that is shared with the recorder into a process.

use std::fs::File;
use std::io;

use super::address_space::places;
use super::install::Stopped;
use super::loaded::Memory;
use super::shared_memory;
use crate::patch::Change;
use crate::sampler::error::Error;

// How many places are tried for the stubs of one file.
const TRIES: usize = 64;
// Where programs begin that are not moved, as a rule.
const LOW: u64 = 4 << 20;

pub(super) struct Place<'a> {
    pub(super) stopped: &'a mut Stopped,
    pub(super) memory: &'a mut Memory,
    pub(super) shared: &'a File,
    pub(super) descriptor: u64,
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
    pub(super) fn map_at(
        &mut self,
        at: u64,
        offset: u64,
        (code, data): (u64, u64),
    ) -> io::Result<bool> {
        let (read, write) = (libc::PROT_READ, libc::PROT_WRITE);
        match self.map(at, code, read | libc::PROT_EXEC, offset) {
            Ok(found) if found == at => {}
            // Kernels before 4.17 take the address for a wish.
            Ok(_) => {
                let old = "kernel does not map memory at fixed addresses (Linux 4.17 does)";
                return Err(io::Error::other(old));
            }
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => return Ok(false),
            // Nothing may be mapped below `vm.mmap_min_addr`.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && at < LOW => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.map(at + code, data, read | write, offset + code)?;
        self.memory.take(at, at + code + data);
        Ok(true)
    }

    // Checks that the shared memory is mapped at these addresses, each with its offset. Another
    // process may share the descriptors of this one, and may have put another file under the
    // number.
    pub(super) fn check(&self, places: &[(u64, u64)]) -> io::Result<()> {
        let identity = shared_memory::identity(self.shared)?;
        let mapped = self.stopped.loaded()?.shared;
        let is_ours = |&(start, offset): &(u64, u64)| {
            let mut mapped = mapped.iter();
            mapped.any(|it| (it.start, it.offset, it.identity) == (start, offset, identity))
        };
        if !places.iter().all(is_ours) {
            let reason = "a process that shares its descriptors has put another file in the place \
                of the stubs";
            return Err(io::Error::other(reason));
        }
        Ok(())
    }

    // Checks that none of these calls leads to the stub of another recorder. Its memory stays
    // mapped when it has put them back.
    pub(super) fn check_uncounted(&self, changes: &[Change]) -> io::Result<()> {
        let identity = shared_memory::identity(self.shared)?;
        let mapped = self.memory.shared.iter();
        let others: Vec<_> = mapped.filter(|it| it.identity != identity).collect();
        if others.is_empty() {
            return Ok(());
        }
        let is_counted = |change: &&Change| {
            let mut bytes = [0; 8];
            let read = self.stopped.read(change.at, &mut bytes);
            let leads = |to| others.iter().any(|it| (it.start..it.end).contains(&to));
            read.is_ok() && change.leads_to(&bytes).is_some_and(leads)
        };
        if changes.iter().any(|change| is_counted(&change)) {
            let reason = "its calls lead to the stubs of another recorder, which counts them, was \
                killed, or ended before the command that it had started";
            return Err(io::Error::other(reason));
        }
        Ok(())
    }

    pub(super) fn map(
        &mut self,
        at: u64,
        length: u64,
        protection: i32,
        offset: u64,
    ) -> io::Result<u64> {
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE) as u64;
        let protection = protection as u64;
        let arguments = [at, length, protection, flags, self.descriptor, offset];
        self.stopped.call(libc::SYS_mmap, arguments)
    }
}
