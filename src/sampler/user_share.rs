//! The share of the recorded processor time that is spent in user space.
//!
//! A clock counts all time of a thread, also where only samples of user space are recorded. How
//! much of it could have samples then is an estimate: the kernel splits times by its ticks.

use std::fs;

use super::kernel::{self, Usage};
use super::targets::target::Target;

// Where they are in `/proc/PID/stat`, behind the name in parentheses: utime, stime, cutime, cstime.
const TIMES_AT: usize = 11;
const TIMES: usize = 4;

/// Processor time in user space and in the kernel, in a unit of its own.
type Times = (u64, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct UserShare {
    processes: Vec<i32>,
    before: Times,
    is_command: bool,
}

impl UserShare {
    pub(super) fn begin(target: &Target) -> UserShare {
        let (processes, is_command) = match target {
            Target::Processes(pids) => (pids.clone(), false),
            Target::Held(pid) | Target::Tree(pid) => (vec![*pid], true),
            _ => (Vec::new(), false),
        };
        UserShare {
            before: times(&processes).unwrap_or_default(),
            processes,
            is_command,
        }
    }

    /// Returns the part, 0 to 1, at the end of the recording; `None` if it is unknown.
    pub(super) fn read(&self) -> Option<f64> {
        let (user, system) = match times(&self.processes) {
            Some(now) => (
                now.0.saturating_sub(self.before.0),
                now.1.saturating_sub(self.before.1),
            ),
            // It has ended and was waited for.
            None if self.is_command => {
                let (user, system) = kernel::processor_times(Usage::Children);
                let microseconds = |time: std::time::Duration| time.as_micros() as u64;
                (microseconds(user), microseconds(system))
            }
            None => return None,
        };
        let all = user.saturating_add(system);
        (all > 0).then(|| user as f64 / all as f64)
    }
}

/// What processes have used, and those of their children that they have waited for; `None` where
/// one of them is not there.
fn times(processes: &[i32]) -> Option<Times> {
    let mut sum: Times = (0, 0);
    for pid in processes {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (user, system) = times_in(&stat)?;
        sum = (sum.0.saturating_add(user), sum.1.saturating_add(system));
    }
    (!processes.is_empty()).then_some(sum)
}

fn times_in(stat: &str) -> Option<Times> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields = fields.split_whitespace().skip(TIMES_AT).take(TIMES);
    let times: Result<Vec<u64>, _> = fields.map(str::parse).collect();
    match times.ok()?.as_slice() {
        [user, system, of_children_user, of_children_system] => Some((
            user.saturating_add(*of_children_user),
            system.saturating_add(*of_children_system),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_process_are_behind_its_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 30 10 5 2 20 0 1 0 9";
        assert_eq!(times_in(stat), Some((35, 12)));
        assert_eq!(times_in("7 (a) S 1 7"), None);
        assert_eq!(times_in(""), None);
        assert_eq!(UserShare::default().read(), None);
    }
}
