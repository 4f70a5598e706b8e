//! What a page has of a part of time is what the command line prints of that time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support;
use crate::support::html::{flat_rows, json, unpacked};
use crate::support::html_time::{TimePage, in_buckets, random_recursion};

#[test]
fn buckets_of_time_have_the_sums_of_flat_for_that_time() {
    let mut tried = 0;
    for directory in support::cases("perf.data") {
        let directory = directory.as_path();
        let page = TimePage::of(directory);
        let (buckets, names) = (page.buckets, &page.data["functions"]["names"]);
        let ranges = [
            (0, 0),
            (0, buckets - 1),
            (1, buckets / 2),
            (buckets / 2, buckets - 1),
        ];
        for (first, last) in ranges.into_iter().filter(|(first, last)| first <= last) {
            let range = page.range(first, last);
            let flat = json(&["flat", "--time", &range, "perf.data"], directory);
            let wanted: BTreeMap<String, (u64, u64)> = flat_rows(&flat)
                .into_iter()
                .map(|(name, _, own, total)| (name, (own, total)))
                .collect();
            let found = in_buckets(page.event(), first, last).into_iter();
            let name = |place: u64| names[place as usize].as_str().unwrap().to_owned();
            let found: BTreeMap<_, _> = found.map(|(place, sum)| (name(place), sum)).collect();
            assert_eq!(found, wanted, "{}: {range}", directory.display());
            tried += 1;
        }
    }
    assert!(tried > 20);
}

#[test]
fn what_ends_in_nodes_by_time_adds_up_to_what_ends_in_them() {
    for directory in support::cases("perf.data") {
        let page = TimePage::of(&directory);
        let event = page.event();
        let tree = unpacked(&event["trees"]["none"]);
        let count = tree[0] as usize;
        let own = &tree[3 + 3 * count..3 + 4 * count];
        let times = unpacked(&event["tree_times"]);
        let (unit, sums) = (times[0], times[1] as usize);
        let column = |number: usize| &times[2 + number * sums..2 + (number + 1) * sums];
        let mut found = vec![0; count];
        let mut code = 0;
        for (step, weight) in column(0).iter().zip(column(2)) {
            code += step;
            // Nothing is left out of so small a tree.
            assert_eq!(code % 2, 0);
            found[code as usize / 2 - 1] += weight * unit;
        }
        assert_eq!(found, own, "{}", directory.display());
    }
}

/// Numbers of a column, one after the other.
struct Reader(std::vec::IntoIter<u64>);

impl Reader {
    fn number(&mut self) -> u64 {
        self.0.next().unwrap()
    }

    fn column(&mut self, count: u64) -> Vec<u64> {
        (0..count).map(|_| self.number()).collect()
    }

    /// For each sum of what it is, and in which bucket.
    fn owners(&mut self, counts: &[u64], steps: &[u64]) -> Vec<(usize, u64)> {
        let mut steps = steps.iter();
        let mut owners = Vec::new();
        for (owner, &count) in counts.iter().enumerate() {
            let mut bucket = 0;
            for step in steps.by_ref().take(count as usize) {
                bucket += step;
                owners.push((owner, bucket));
            }
        }
        owners
    }
}

/// What calls have in these buckets, by caller and callee: weight, contribution, total and self weight;
/// and the totals of cycles, by number.
type InBuckets = (BTreeMap<(String, String), [u64; 4]>, BTreeMap<u64, u64>);

fn calls_in_buckets(data: &Value, event: &Value, first: u64, last: u64) -> InBuckets {
    let mut reader = Reader(unpacked(&event["time"]["calls"]).into_iter());
    let (unit, count) = (reader.number(), reader.number());
    let (callers, callees) = (reader.column(count), reader.column(count));
    let (sums, counts) = (reader.number(), reader.column(count));
    let steps = reader.column(sums);
    let owners = reader.owners(&counts, &steps);
    let columns = [(); 4].map(|()| reader.column(sums));
    let name = |place: u64| data["functions"]["names"][place as usize].as_str().unwrap();
    let mut calls: BTreeMap<(String, String), [u64; 4]> = BTreeMap::new();
    for (sum, &(call, bucket)) in owners.iter().enumerate() {
        if (first..=last).contains(&bucket) {
            let caller = callers[call].checked_sub(1).map_or("", name).to_owned();
            let ends = (caller, name(callees[call]).to_owned());
            let weights = [0, 1, 2, 3].map(|column: usize| columns[column][sum] * unit);
            let [weight, taken, elsewhere, own] = weights;
            let figures = [weight, weight - taken, weight - elsewhere, own];
            let call = calls.entry(ends).or_default();
            (0..4).for_each(|column| call[column] += figures[column]);
        }
    }
    let cycles = reader.number();
    let (found, counts) = (reader.column(cycles), reader.column(cycles));
    let sums = counts.iter().sum();
    let steps = reader.column(sums);
    let owners = reader.owners(&counts, &steps);
    let mut totals: BTreeMap<u64, u64> = BTreeMap::new();
    for ((cycle, bucket), total) in owners.into_iter().zip(reader.column(sums)) {
        if (first..=last).contains(&bucket) {
            *totals.entry(found[cycle]).or_default() += total * unit;
        }
    }
    (calls, totals)
}

/// The members of each cycle and its number, as `graph` has them.
fn members(graph: &Value) -> Vec<BTreeSet<String>> {
    let cycles = graph["cycles"].as_array().unwrap().iter();
    let name = |place: &Value| {
        let place = place.as_u64().unwrap() as usize;
        graph["functions"][place]["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    cycles
        .map(|cycle| {
            cycle["members"]
                .as_array()
                .unwrap()
                .iter()
                .map(name)
                .collect()
        })
        .collect()
}

/// Compares a page with `detail` and `graph` in some parts of time; returns the number of cycles found.
fn compare_calls(directory: &Path) -> usize {
    let page = TimePage::of(directory);
    let of_whole = members(&json(&["graph", "--static", "off", "perf.data"], directory));
    let (buckets, mut cycles) = (page.buckets, 0);
    for (first, last) in [
        (0, buckets - 1),
        (0, buckets / 3),
        (buckets / 3, buckets / 2),
    ] {
        let range = page.range(first, last);
        let (calls, totals) = calls_in_buckets(&page.data, page.event(), first, last);
        let arguments = ["graph", "--static", "off", "--time", &range, "perf.data"];
        let graph = json(&arguments, directory);
        let name = |place: &Value| {
            let place = place.as_u64().unwrap() as usize;
            graph["functions"][place]["name"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let weight = |value: &Value| value.as_f64().unwrap() as u64;

        let arcs = graph["arcs"].as_array().unwrap().iter();
        let wanted: BTreeMap<_, _> = arcs
            .clone()
            .map(|arc| {
                (
                    (name(&arc["from"]), name(&arc["to"])),
                    weight(&arc["total"]),
                )
            })
            .collect();
        let found = calls.iter().filter(|(ends, _)| !ends.0.is_empty());
        let found: BTreeMap<_, _> = found.map(|(ends, it)| (ends.clone(), it[0])).collect();
        assert_eq!(found, wanted, "{}: {range}", directory.display());

        let mut wanted = BTreeMap::new();
        for function in graph["functions"].as_array().unwrap() {
            let caller = function["name"].as_str().unwrap();
            let detail = json(
                &["detail", caller, "--time", &range, "perf.data"],
                directory,
            );
            for callee in detail["descendants"].as_array().unwrap() {
                let callee_name = callee["name"].as_str().unwrap().to_owned();
                wanted.insert((caller.to_owned(), callee_name), weight(&callee["weight"]));
            }
        }
        let found = calls.iter().filter(|(ends, _)| !ends.0.is_empty());
        let found: BTreeMap<_, _> = found.map(|(ends, it)| (ends.clone(), it[1])).collect();
        assert_eq!(found, wanted, "{}: {range}", directory.display());

        // How an arc divides depends on the cycles, which are those of the whole recording.
        let of_part = members(&graph);
        if of_part.iter().collect::<BTreeSet<_>>() != of_whole.iter().collect() {
            continue;
        }
        for arc in arcs.filter(|arc| !arc["self"].is_null() && arc["in_cycle"] == false) {
            let (from, to) = (name(&arc["from"]), name(&arc["to"]));
            let [_, _, total, own] = calls[&(from.clone(), to.clone())];
            let parts = (weight(&arc["self"]), weight(&arc["children"]));
            if from != to {
                assert_eq!((own, total - own), parts, "{from} {to}: {range}");
            }
        }
        for (members, cycle) in of_part.iter().zip(graph["cycles"].as_array().unwrap()) {
            let number = of_whole.iter().position(|it| it == members).unwrap() as u64 + 1;
            let total = totals.get(&number).copied().unwrap_or_default();
            assert_eq!(total, weight(&cycle["total"]), "{members:?}: {range}");
            cycles += 1;
        }
    }
    cycles
}

#[test]
fn buckets_of_time_have_the_calls_of_graph_and_detail_for_that_time() {
    let mut cycles = 0;
    for directory in support::cases("perf.data") {
        cycles += compare_calls(&directory);
    }
    assert!(cycles > 3, "{cycles}");
}

#[test]
fn calls_of_random_recursion_by_time_are_those_of_graph_and_detail() {
    let cycles: usize = (1..4)
        .map(|seed| compare_calls(&random_recursion(seed)))
        .sum();
    assert!(cycles > 3, "{cycles}");
}
