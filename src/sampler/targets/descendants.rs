//! The processes that a process has started, and those that they have.
//!
//! ```text
//! /proc/PID/task/TID/children      712 715        (where the kernel has CONFIG_PROC_CHILDREN)
//! ```

use std::fs;

/// The descendants of a process that run now, parents first.
pub(in crate::sampler) fn of(pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut next = 0;
    // A process cannot be found twice, as it has one parent; the list grows until the last has
    // been asked for its children.
    while let Some(&parent) = found.get(next) {
        next += 1;
        for child in children(parent) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found.remove(0);
    found
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .filter_map(Result::ok)
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|number| number.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}
