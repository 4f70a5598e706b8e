//! Which function starts at an address.
//!
//! ```text
//!   blocks    0       1       2 3       one for each few hundred bytes of code: its first start
//!   starts    ▪  ▪    ▪          ▪ ▪▪   sorted, as distances from the first
//! ```
//!
//! Calls ask for hundreds of thousands of addresses all over the file. A table of hashes of many
//! functions is larger than the caches of a processor, and each question would wait for memory;
//! this table takes about ten bytes per function.

use crate::binary::FunctionSymbol;

#[derive(Debug, Default)]
pub(super) struct Starts<'a> {
    functions: &'a [FunctionSymbol],
    first: u64,
    // The size of a block is two to this power.
    shift: u32,
    /// For each block the number of starts before it, and behind the last the number of all.
    blocks: Vec<u32>,
    // Distances from `first`, as far as they have 32 bits.
    starts: Vec<u32>,
}

impl<'a> Starts<'a> {
    pub(super) fn new(functions: &'a [FunctionSymbol]) -> Starts<'a> {
        let first = functions.first().map_or(0, |function| function.start.0);
        let distances = functions
            .iter()
            .map_while(|function| u32::try_from(function.start.0.checked_sub(first)?).ok());
        let starts: Vec<u32> = distances.collect();
        let span = starts.last().copied().unwrap_or(0);
        let enough = u32::try_from(starts.len()).unwrap_or(u32::MAX);
        let is_enough = |shift: &u32| span >> shift <= enough;
        let shift = (4..32).find(is_enough).unwrap_or(32);
        let mut blocks = Vec::new();
        for (&start, index) in starts.iter().zip(0..) {
            let block = start.checked_shr(shift).unwrap_or(0) as usize;
            // Blocks up to this one that had no start before.
            blocks.resize(blocks.len().max(block.saturating_add(1)), index);
        }
        blocks.push(enough);
        Starts {
            functions,
            first,
            shift,
            blocks,
            starts,
        }
    }

    #[inline]
    pub(super) fn index(&self, start: u64) -> Option<usize> {
        let distance = start.checked_sub(self.first)?;
        let Ok(distance) = u32::try_from(distance) else {
            return self.far(start);
        };
        let block = distance.checked_shr(self.shift).unwrap_or(0) as usize;
        let (from, to) = (*self.blocks.get(block)?, *self.blocks.get(block + 1)?);
        let here = self.starts.get(from as usize..to as usize)?;
        let index = here.partition_point(|&start| start < distance);
        (here.get(index) == Some(&distance)).then(|| index.wrapping_add(from as usize))
    }

    /// The index of a function that starts more than 4 GiB behind the first.
    #[cold]
    fn far(&self, start: u64) -> Option<usize> {
        // Data are asked for millions of words that are no addresses, and few files have such
        // functions.
        if self.starts.len() == self.functions.len() {
            return None;
        }
        let by_start = |function: &FunctionSymbol| function.start.0;
        self.functions.binary_search_by_key(&start, by_start).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::base::Svma;
    use crate::binary::Binary;

    /// Functions at these addresses, and at none around them.
    fn check(addresses: &[u64]) {
        let binary = Binary::open(Path::new("/proc/self/exe")).unwrap();
        let any = binary.functions()[0];
        let mut functions = vec![any; addresses.len()];
        for (function, &address) in functions.iter_mut().zip(addresses) {
            function.start = Svma(address);
        }
        let starts = Starts::new(&functions);
        for &address in addresses {
            for asked in [address.wrapping_sub(1), address, address.wrapping_add(1)] {
                let expected = addresses.binary_search(&asked).ok();
                assert_eq!(
                    starts.index(asked),
                    expected,
                    "{asked:#x} in {addresses:x?}"
                );
            }
        }
        assert_eq!(
            starts.index(addresses.last().map_or(0, |last| last ^ 1 << 40)),
            None
        );
    }

    #[test]
    fn functions_are_found_at_their_starts() {
        check(&[]);
        check(&[0]);
        check(&[u64::MAX]);
        check(&[0x1000, 0x1010, 0x1011, 0x1ff0, 0x8000, 0x8001]);
        check(&[7, 1 << 20, u64::from(u32::MAX) + 6, u64::from(u32::MAX) + 7]);
        check(&[7, u64::from(u32::MAX) + 8, 1 << 50, u64::MAX]);
        let dense: Vec<u64> = (0x40_0000..0x40_4000).step_by(3).collect();
        check(&dense);
    }
}
