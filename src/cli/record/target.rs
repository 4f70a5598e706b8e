//! What `proftool record` samples besides a command, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use proftool::sampler::{Bounds, Error, Target};

use super::super::advice;
use super::super::failure::tell;

/// Arguments that name what already runs.
#[derive(Args, Debug)]
pub struct TargetArgs {
    /// Sample running processes and what they start.
    #[arg(short, long, group = "who", value_name = "PID")]
    #[arg(value_delimiter = ',', value_parser = number)]
    pid: Vec<i32>,

    /// Sample running threads, without what they start.
    #[arg(short, long, group = "who", value_name = "TID")]
    #[arg(value_delimiter = ',', value_parser = number)]
    tid: Vec<i32>,

    /// Sample running processes of this name.
    ///
    /// As ps -eo comm prints it.
    #[arg(long, group = "who", value_name = "NAME")]
    comm: Option<String>,

    /// Sample the whole machine.
    #[arg(short, long, group = "who")]
    all_cpus: bool,

    /// Sample all that runs on these processors: 0,2-3.
    #[arg(short = 'C', long, value_name = "CPUS", value_parser = processors,
          conflicts_with_all = ["pid", "tid", "comm", "cgroup"])]
    cpu: Option<Processors>,

    /// Sample a control group, by its path below cgroup2.
    #[arg(long, group = "who", value_name = "PATH")]
    cgroup: Option<PathBuf>,
}

/// Arguments that set when a recording begins and ends.
#[derive(Args, Debug)]
pub struct BoundsArgs {
    /// End after this time; the command runs on.
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,

    /// Begin after MS milliseconds of the command.
    #[arg(
        short = 'D',
        long,
        value_name = "MS",
        default_value_t = 0,
        hide_default_value = true
    )]
    delay: u64,

    /// End at this size, such as 100M; the command runs on.
    ///
    /// Without it, a recording ends before 5 % of the disk, at most 1 GiB, is all that is left.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Processors(Vec<u32>);

impl TargetArgs {
    // Reports the processes that are left out.
    pub fn target(&self) -> Result<Option<Target>, Error> {
        let processors = self.cpu.as_ref().map(|Processors(numbers)| numbers.clone());
        Ok(Some(if !self.pid.is_empty() {
            Target::Processes(distinct(&self.pid))
        } else if !self.tid.is_empty() {
            Target::Threads(distinct(&self.tid))
        } else if let Some(name) = &self.comm {
            let (target, left_out) = Target::named(name)?;
            if let Some(note) = left_out {
                tell(&advice::sampling::note(&note));
            }
            target
        } else if self.all_cpus || processors.is_some() {
            Target::Processors(processors)
        } else if let Some(path) = &self.cgroup {
            Target::Cgroup(path.clone())
        } else {
            return Ok(None);
        }))
    }
}

impl BoundsArgs {
    pub fn bounds(&self) -> Bounds {
        Bounds {
            delay: Duration::from_millis(self.delay),
            duration: self.duration,
            max_bytes: self.max_size,
        }
    }
}

fn distinct(numbers: &[i32]) -> Vec<i32> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn number(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "not a number above 0".into())
}

// Above 0.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| *seconds > 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "not a number of seconds above 0, such as 10 or 0.5".into())
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'M')) => (&text[..at], 20),
        Some((at, 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let size = digits
        .parse::<u64>()
        .ok()
        .and_then(|size| size.checked_mul(1 << shift));
    size.filter(|size| *size > 0)
        .ok_or_else(|| "not a size, such as 500000, 64K, 100M or 2G".into())
}

fn processors(text: &str) -> Result<Processors, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            // Linux has at most 8192 processors.
            (Ok(first), Ok(last)) if first <= last && last < 8192 => numbers.extend(first..=last),
            _ => return Err("not a list of processors, such as 0,2-3".into()),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(Processors(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_lists_are_read() {
        assert_eq!(size("500"), Ok(500));
        assert_eq!(size("64K"), Ok(64 << 10));
        assert_eq!(size("2G"), Ok(2 << 30));
        for text in ["", "K", "0", "-1M", "1T", "99999999999999G", "1 M"] {
            assert!(size(text).is_err(), "{text:?}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "0", "-1", "x", "nan", "inf", "1e30"] {
            assert!(seconds(text).is_err(), "{text:?}");
        }
        assert_eq!(processors("0,2-3,2"), Ok(Processors(vec![0, 2, 3])));
        for text in ["", "3-2", "a", "0,", "0-99999"] {
            assert!(processors(text).is_err(), "{text:?}");
        }
    }
}
