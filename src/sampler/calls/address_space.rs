//! Where in a program's memory there is room for stubs.

// The most bytes between any byte of a file and any of its stubs: what four bytes of distance
// reach, and something to spare.
const REACH: u64 = 0x7ff0_0000;
// What is left free next to a file. The heap grows from the end of the program, and new libraries
// go below the others.
const GAP: u64 = 64 << 20;
// The distance between places that are tried.
const STEP: u64 = 16 << 20;
// Nothing may be mapped below, so that null pointers lead to nothing.
const LOWEST: u64 = 0x10000;
// Where AddressSanitizer maps its shadow memory, whatever is there: it ends the program instead.
const SHADOW: u64 = 0x7fff_8000;
const PAGE: u64 = 4096;
// Nothing is mapped from here on.
const HIGHEST: u64 = 0x7fff_ffff_f000;
// What distances between copies of counters are multiples of.
const APART: u64 = 1 << 28;
// What is left free above a copy: the stack grows from above.
const STACK: u64 = 1 << 30;

/// A distance at which all of these ranges of addresses are free, and that is not `used`: above, as
/// the kernel takes no negative base of a segment.
pub(super) fn distance(taken: &[(u64, u64)], ranges: &[(u64, u64)], used: &[u64]) -> Option<u64> {
    let highest = ranges.iter().map(|&(_, end)| end).max()?;
    let most = HIGHEST.saturating_sub(STACK).checked_sub(highest)?;
    let mut distances = (APART..most).step_by(APART as usize);
    distances.find(|distance| {
        let is_free = |&(start, end): &(u64, u64)| {
            is_free(taken, start + distance, end.saturating_sub(start) + STACK)
        };
        !used.contains(distance) && ranges.iter().all(is_free)
    })
}

// The addresses at which `length` bytes would be near enough to an image that spans `image`, and
// that nothing in `taken` has, the best first. `taken` is in order of address. Below the image
// first: above the program its heap begins.
//
//   not moved     64 KiB ─┤ stubs │ program, heap ──▶    │ stubs, if too large │ shadow
//   moved         ◀── libraries │  stubs  │ 64 MB │ image, heap ──▶
//
// Programs that are not moved lie low. Hardly anybody else puts anything directly below them;
// further above they may put something themselves, whatever is there (`MAP_FIXED`).
pub(super) fn places(
    taken: &[(u64, u64)],
    image: (u64, u64),
    length: u64,
) -> impl Iterator<Item = u64> {
    let (start, end) = image;
    // As close as the stubs of earlier recordings, which stay, allow.
    let most_directly = if start <= REACH { GAP } else { 0 };
    let directly = (0..most_directly).step_by(PAGE as usize);
    let directly = directly.map_while(move |less| {
        let at = start.checked_sub(length)?.checked_sub(less)? & !(PAGE - 1);
        (at >= LOWEST && end - at <= REACH).then_some(at)
    });
    let most = if end < SHADOW { SHADOW } else { u64::MAX };
    let steps = (GAP..REACH).step_by(STEP as usize);
    let below = steps.clone().filter_map(move |gap| {
        let at = start.checked_sub(gap)?.checked_sub(length)? & !(PAGE - 1);
        let is_near = end.checked_sub(at).is_some_and(|reach| reach <= REACH);
        (at >= LOWEST && is_near).then_some(at)
    });
    let above = (0..REACH).step_by(STEP as usize).filter_map(move |less| {
        let at = start
            .checked_add(REACH)?
            .min(most)
            .checked_sub(length)?
            .checked_sub(less)?
            & !(PAGE - 1);
        (at >= end.checked_add(GAP)?).then_some(at)
    });
    let places = directly.chain(below).chain(above);
    places.filter(move |&at| is_free(taken, at, length))
}

pub(super) fn is_free(taken: &[(u64, u64)], at: u64, length: u64) -> bool {
    let Some(behind) = at.checked_add(length) else {
        return false;
    };
    let before = taken.partition_point(|&(from, _)| from < behind);
    let last = before.checked_sub(1).and_then(|last| taken.get(last));
    last.is_none_or(|&(_, to)| to <= at)
}

pub(super) fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert, proptest};

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_place_is_free_and_within_reach(
            start in (0u64..1 << 35).prop_map(|page| page * PAGE),
            size in (1u64..1 << 16).prop_map(|pages| pages * PAGE),
            length in (1u64..1 << 12).prop_map(|pages| pages * PAGE),
            others in vec((0u64..1 << 22, 1u64..1 << 12), 0..8),
        ) {
            let end = start + size;
            let near = start.saturating_sub(1 << 33);
            let mut taken: Vec<_> = others
                .iter()
                .map(|&(from, pages)| (near + from * PAGE, near + (from + pages) * PAGE))
                .chain([(start, end)])
                .collect();
            taken.sort_unstable();
            for at in places(&taken, (start, end), length) {
                prop_assert!(taken.iter().all(|&(from, to)| at + length <= from || to <= at)
                    || taken.windows(2).any(|pair| pair[1].0 < pair[0].1));
                prop_assert!(at >= LOWEST && at % PAGE == 0);
                prop_assert!(end.max(at + length) - start.min(at) <= i32::MAX as u64);
            }
        }
    }

    #[test]
    fn all_ranges_are_free_at_a_distance() {
        let (program, library) = (
            (0x5500_0000_0000, 0x5500_0000_2000),
            (0x7f00_0000_0000, 0x7f00_0000_1000),
        );
        let ranges = [program, library];
        let first = distance(&ranges, &ranges, &[]).unwrap();
        assert_eq!(first, APART);
        // Something is in the way of one of them, or of what grows towards it.
        let stack = (library.0 + 3 * APART, library.1 + 3 * APART);
        let second = distance(&[program, library, stack], &ranges, &[]).unwrap();
        assert_eq!(second, 4 * APART);
        let third = distance(&ranges, &ranges, &[first]).unwrap();
        assert_eq!(third, 2 * APART);
        // There is nothing above.
        let high = [program, (HIGHEST - 0x2000, HIGHEST - 0x1000)];
        assert_eq!(distance(&high, &high, &[]), None);
        assert_eq!(distance(&high, &[], &[]), None);
    }

    #[test]
    fn a_program_at_a_fixed_address_has_its_stubs_below_it_or_far_above_its_heap() {
        let image = (0x40_0000, 0x240_0000);
        let first = |taken: &[(u64, u64)], length| places(taken, image, length).next();
        assert_eq!(first(&[image], 0x3000), Some(0x3f_d000));
        let above = SHADOW - (8 << 20);
        assert_eq!(first(&[image], 8 << 20), Some(above));
        let earlier = (0x3f_d000, 0x40_0000);
        assert_eq!(first(&[earlier, image], 0x3000), Some(0x3f_a000));
        let all = (0x1_0000, 0x40_0000);
        assert_eq!(first(&[all, image], 0x3000), Some(SHADOW - 0x3000));
    }
}
