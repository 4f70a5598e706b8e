//! How often threads made room for others on their processors, by the kernel's own count.
//!
//! A clock that interrupts cannot interrupt a switch between threads, which is why its samples miss
//! processor time.

use std::fs;

use super::kernel;
use super::targets::target::Target;

#[derive(Clone, Debug, Default)]
pub(super) struct Switches {
    who: Who,
    before: u64,
}

#[derive(Clone, Debug, Default)]
enum Who {
    /// A command of this process, with all that it starts and waits for.
    Command(i32),
    Processes(Vec<i32>),
    Machine,
    #[default]
    Unknown,
}

impl Switches {
    pub(super) fn begin(target: &Target) -> Switches {
        let who = match target {
            Target::Held(pid) | Target::Tree(pid) => Who::Command(*pid),
            Target::Processes(pids) => Who::Processes(pids.clone()),
            Target::Processors(None) => Who::Machine,
            _ => Who::Unknown,
        };
        let before = who.switches().unwrap_or(0);
        Switches { who, before }
    }

    /// Returns how often they have since; `None` if that is not known. Threads that have ended are
    /// counted of a command only.
    pub(super) fn read(&self) -> Option<u64> {
        Some(self.who.switches()?.saturating_sub(self.before))
    }
}

impl Who {
    fn switches(&self) -> Option<u64> {
        match self {
            // Until it is waited for, those that it has waited for are not known either.
            Who::Command(pid) => {
                let own = of_process(*pid).unwrap_or(0);
                Some(own.saturating_add(kernel::switches_of_children()))
            }
            Who::Processes(pids) => pids.iter().map(|&pid| of_process(pid)).sum(),
            Who::Machine => {
                let stat = fs::read_to_string("/proc/stat").ok()?;
                let line = stat.lines().find_map(|line| line.strip_prefix("ctxt "))?;
                line.trim().parse().ok()
            }
            Who::Unknown => None,
        }
    }
}

/// Those of the threads of a process; `None` if it has ended.
fn of_process(pid: i32) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let statuses = threads.flatten().filter_map(|thread| {
        // A thread may end meanwhile.
        fs::read_to_string(thread.path().join("status")).ok()
    });
    Some(statuses.map(|status| in_status(&status)).sum())
}

fn in_status(status: &str) -> u64 {
    let switches = status.lines().filter_map(|line| {
        let (name, number) = line.split_once(':')?;
        name.ends_with("ctxt_switches").then_some(())?;
        number.trim().parse::<u64>().ok()
    });
    switches.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_both_kinds_are_counted() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(in_status(status), 43);
        assert_eq!(in_status(""), 0);
        assert_eq!(Switches::default().read(), None);
    }
}
