//! The parts of a page that grow with the recording, call trees and sums by time, within the size
//! limit of the page.
//!
//! A page is opened from an e-mail, so it has to stay small. If there is not enough room, the
//! lightest frames of the trees are left out, then time is divided into fewer buckets, and then the
//! sums of calls and those of frames are left out. What is left stays exact, and the page says what
//! it lacks.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use crate::analysis::threads::timeline::{AskedFunction, Timeline};
use crate::analysis::tree::Collapse;
use crate::export::json;
use crate::profile::FunctionId;
use crate::view::flat::{Flat, Row};

use super::time::Time;
use super::{EventViews, OUTLINE, SCRIPTS, STYLE, WithoutTags, tree};

// How many bytes a page has, if it can be made that small.
const PAGE: usize = 4_900_000;
// How much of the room the trees may take, in percent: the rest is for sums by time.
const TREES: usize = 30;
// How many bytes it has in any case.
const MOST: usize = 4_990_000;
// How many nodes a tree keeps, and how many buckets time is divided into, whatever room there is.
const FEW_NODES: usize = 5_000;
const FEW_BUCKETS: usize = 16;

#[derive(Default, Serialize)]
pub(super) struct Grown {
    trees: BTreeMap<&'static str, String>,
    pub time: Option<Time>,
    // What ends in the nodes of the tree in which every call is a node, by time.
    tree_times: Option<String>,
}

// The room that is left in a page.
pub(super) struct Room(usize);

impl Room {
    // That of a page which has this as well.
    pub fn of_page(others: &impl Serialize) -> io::Result<Room> {
        Ok(Room(PAGE.saturating_sub(taken(others)?)))
    }

    // The share of one of this number of events.
    pub fn share(&self, events: usize) -> usize {
        self.0 / events.max(1)
    }

    pub fn take(&mut self, grown: &Grown) -> io::Result<()> {
        self.0 = self.0.saturating_sub(written(grown)?);
        Ok(())
    }
}

// How many bytes a page with this takes more than it may.
pub(super) fn excess(all: &impl Serialize) -> io::Result<usize> {
    Ok(taken(all)?.saturating_sub(MOST))
}

fn taken(all: &impl Serialize) -> io::Result<usize> {
    let scripts: usize = SCRIPTS.iter().map(|script| script.len()).sum();
    Ok(OUTLINE.len() + STYLE.len() + scripts + written(all)?)
}

fn written(value: &impl Serialize) -> io::Result<usize> {
    let mut count = Count(0);
    json::value(&mut WithoutTags(&mut count), value)?;
    Ok(count.0)
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// What a page has of an event of which it leaves functions out.
pub(super) struct Few<'a> {
    // The largest total among those left out: a frame that weighs more is of another function.
    pub least: u64,
    pub has: &'a dyn Fn(FunctionId) -> bool,
}

// The functions with the largest totals.
pub(super) fn heaviest(flat: &Flat, most: usize) -> Vec<FunctionId> {
    let mut rows: Vec<&Row> = flat.rows.iter().collect();
    rows.sort_by_key(|row| Reverse(row.total));
    rows.truncate(most);
    rows.iter().map(|row| row.function).collect()
}

// The trees of an event and its sums by time, within this number of bytes.
pub(super) fn fitted(
    event: &EventViews,
    asked: &[AskedFunction],
    place: &dyn Fn(FunctionId) -> u64,
    few: Option<&Few>,
    room: usize,
) -> io::Result<Grown> {
    let least = few.map(|few| few.least);
    let mut grown = Grown::default();
    let every = (event.tree)(Collapse::None);
    let mut most = tree::NODES;
    let mut kept = tree::kept(&every, most, least);
    let mut packed = tree::packed(&every, kept.as_ref(), place)?;
    // Trees of recursion that is collapsed have fewer nodes as a rule, and about as many at most.
    let of_trees = Collapse::ALL.len() * packed.len();
    if of_trees > room / 100 * TREES {
        let nodes = every.nodes.len().min(most);
        let fit = nodes as u128 * (room / 100 * TREES) as u128 / of_trees as u128;
        most = FEW_NODES.max(fit as usize);
        kept = tree::kept(&every, most, least);
        packed = tree::packed(&every, kept.as_ref(), place)?;
    }
    let room = room.saturating_sub(Collapse::ALL.len() * packed.len());
    // Where nothing is collapsed, each sample that passes a node ends in it or under it.
    let numbers = tree::numbers(&every, kept.as_ref());
    drop(kept);
    if let Some(mut timeline) = (event.timeline)(every, numbers, asked) {
        if let Some(few) = few {
            timeline.of_functions.retain(|sum| (few.has)(sum.function));
            timeline.of_calls.clear();
            timeline.of_cycles.clear();
        }
        grown.add_times(event, timeline, place, room)?;
        if let (Some(time), Some(_)) = (&mut grown.time, few) {
            time.leave_out_calls();
        }
    }
    grown.trees.insert(Collapse::None.name(), packed);
    for degree in Collapse::ALL {
        if degree != Collapse::None {
            let tree = (event.tree)(degree);
            let kept = tree::kept(&tree, most, least);
            let packed = tree::packed(&tree, kept.as_ref(), place)?;
            grown.trees.insert(degree.name(), packed);
        }
    }
    Ok(grown)
}

impl Grown {
    // Adds the sums by time, within this number of bytes.
    fn add_times(
        &mut self,
        event: &EventViews,
        mut timeline: Timeline,
        place: &dyn Fn(FunctionId) -> u64,
        room: usize,
    ) -> io::Result<()> {
        let profile = event.subject.profile;
        let (time, ends) = loop {
            let time = Time::of(profile, &timeline, event.graph, place)?;
            let ends = tree::times(&timeline.ends)?;
            let size = time.len() + ends.len();
            if size <= room || timeline.weights.len() <= FEW_BUCKETS {
                break (time, ends);
            }
            // A sum takes about as many bytes in longer buckets.
            let most = timeline.sums() as u128 * room as u128 / size as u128;
            while timeline.sums() as u128 > most && timeline.weights.len() > FEW_BUCKETS {
                timeline.halve_buckets();
            }
        };
        let time = self.time.insert(time);
        if time.len() + ends.len() > room {
            time.leave_out_calls();
        }
        self.tree_times = (time.len() + ends.len() <= room).then_some(ends);
        Ok(())
    }
}
