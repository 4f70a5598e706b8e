//! Pages with a time line, and random recursion by time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support;
use crate::support::html::{data, numbers, proftool, unpacked};
use crate::support::written::{CPU_CLOCK, Recording, Taken};

/// A time as `--time` takes it.
pub fn seconds(nanoseconds: u64) -> String {
    let (whole, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    format!("{whole}.{rest:09}")
}

/// A page of a recording, and how its time is divided.
pub struct TimePage {
    pub data: Value,
    /// The length of a bucket in nanoseconds.
    length: u64,
    /// The number of buckets.
    pub buckets: u64,
}

impl TimePage {
    pub fn of(directory: &Path) -> TimePage {
        let page = proftool(&["export", "--to", "html", "perf.data"], directory);
        let data = data(&String::from_utf8(page).unwrap());
        let time = &data["events"][0]["time"];
        TimePage {
            length: time["bucket"].as_u64().unwrap(),
            buckets: unpacked(&time["columns"])[1],
            data,
        }
    }

    pub fn event(&self) -> &Value {
        &self.data["events"][0]
    }

    /// The option for the time of these buckets.
    pub fn range(&self, first: u64, last: u64) -> String {
        let (start, end) = (first * self.length, (last + 1) * self.length);
        format!("{}..{}", seconds(start), seconds(end))
    }
}

/// What functions have in these buckets, by place: self weight and total.
pub fn in_buckets(event: &Value, first: u64, last: u64) -> BTreeMap<u64, (u64, u64)> {
    let time = &event["time"];
    let packed = unpacked(&time["columns"]);
    let (unit, buckets) = (packed[0], packed[1] as usize);
    let threads = time["threads"].as_array().unwrap().len();
    let places = numbers(&time["functions"]);
    let mut rest = &packed[2 + (threads + 1) * buckets..];
    let mut column = |count: usize| {
        let (column, others) = rest.split_at(count);
        rest = others;
        column
    };
    let sums = column(1)[0] as usize;
    let (counts, steps) = (column(places.len()), column(sums));
    let (own, more) = (column(sums), column(sums));
    let (mut found, mut at) = (BTreeMap::new(), 0);
    for (&place, &count) in places.iter().zip(counts) {
        let mut bucket = 0;
        for _ in 0..count {
            bucket += steps[at];
            if (first..=last).contains(&bucket) {
                let sum: &mut (u64, u64) = found.entry(place).or_default();
                sum.0 += own[at] * unit;
                sum.1 += (own[at] + more[at]) * unit;
            }
            at += 1;
        }
    }
    found
}

/// A directory with a recording of random recursion.
pub fn random_recursion(seed: u64) -> PathBuf {
    let directory = support::directory(&format!("html-recursion-{seed}"));
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    let start = |function: u64| 0xffff_ffff_8100_0000 + 0x1000 * function;
    recording.process(7, "random");
    for function in 0..6 {
        recording.kernel_function(&format!("f{function}"), start(function), 0x1000);
    }
    // Numbers as of MMIX: all that is asked of them is that they are of all kinds.
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005);
        state = state.wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for number in 0..300 {
        let depth = 1 + random(9);
        let stack: Vec<u64> = (0..depth).map(|_| start(random(6)) + 0x10).collect();
        recording.sample(Taken {
            task: 7,
            time: 1_000_000_000 + number * 10_000_000 + random(9_000_000),
            kernel: &stack,
            ..Taken::default()
        });
    }
    recording.write(&directory.join("perf.data"));
    directory
}
