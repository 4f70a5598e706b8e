//! The description of the machine in a recording.

use std::fs;
use std::time::SystemTime;

use crate::base::utf8;
use crate::perfdata::{ClockReference, Feature, writer::FeatureSections};

use super::kernel;

pub(super) fn online_processors() -> Vec<u32> {
    let online = read("/sys/devices/system/cpu/online").unwrap_or_default();
    let numbers = number_list(&online);
    if !numbers.is_empty() {
        return numbers;
    }
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    (0..count as u32).collect()
}

/// The numbers of a list like `0-3,6`.
fn number_list(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            // Linux has at most 8192 processors.
            numbers.extend(first..=last.min(first.saturating_add(8191)));
        }
    }
    numbers
}

pub(super) fn describe(features: &mut FeatureSections) {
    let texts = [
        (Feature::HOSTNAME, read("/proc/sys/kernel/hostname")),
        (Feature::OSRELEASE, read("/proc/sys/kernel/osrelease")),
        (Feature::ARCH, Some(architecture())),
    ];
    for (feature, text) in texts {
        if let Some(text) = text {
            features.text(feature, text.trim());
        }
    }
    let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    if let Some(wall) = today
        .ok()
        .and_then(|since| since.as_nanos().try_into().ok())
    {
        let samples = kernel::now();
        features.clock(ClockReference { wall, samples });
    }
    let processors = |file: &str| {
        let list = read(&format!("/sys/devices/system/cpu/{file}")).unwrap_or_default();
        number_list(&list).len() as u32
    };
    let online = online_processors().len() as u32;
    features.processors(processors("present").max(online), online);

    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let field = |name| field(&cpuinfo, name);
    if let Some(model) = field("model name").or_else(|| field("uarch")) {
        features.text(Feature::CPUDESC, model);
    }
    if let (Some(vendor), Some(family), Some(model), Some(stepping)) = (
        field("vendor_id"),
        field("cpu family"),
        field("model"),
        field("stepping"),
    ) {
        let cpuid = format!("{vendor},{family},{model},{stepping}");
        features.text(Feature::CPUID, &cpuid);
    }
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    let total = self::field(&meminfo, "MemTotal").and_then(|kib| kib.split(' ').next());
    if let Some(kib) = total.and_then(|kib| kib.parse().ok()) {
        features.total_memory(kib);
    }
    features.pmu_mappings(&pmus());
}

fn architecture() -> String {
    // /proc/sys/kernel/arch is there since Linux 6.1.
    read("/proc/sys/kernel/arch").map_or_else(
        || match std::env::consts::ARCH {
            "x86" => "i686".to_owned(),
            "arm" => "armv7l".to_owned(),
            "powerpc64" if cfg!(target_endian = "little") => "ppc64le".to_owned(),
            "powerpc64" => "ppc64".to_owned(),
            other => other.to_owned(),
        },
        |text| text.trim().to_owned(),
    )
}

fn pmus() -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir("/sys/bus/event_source/devices") else {
        return Vec::new();
    };
    let mut pmus: Vec<(u32, String)> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let number = fs::read_to_string(entry.path().join("type")).ok()?;
            let name = entry.file_name().into_string().ok()?;
            Some((number.trim().parse().ok()?, name))
        })
        .collect();
    pmus.sort();
    pmus
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

fn read(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| utf8(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_have_ranges_and_gaps() {
        assert_eq!(number_list("0-1\n"), [0, 1]);
        assert_eq!(number_list("0,2-4,9"), [0, 2, 3, 4, 9]);
        assert!(number_list("").is_empty());
        assert!(number_list("none").is_empty());
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "cpu family\t: 6\nmodel\t\t: 85\nmodel name\t: A CPU: fast\n";
        assert_eq!(field(text, "model"), Some("85"));
        assert_eq!(field(text, "model name"), Some("A CPU: fast"));
        assert_eq!(field(text, "stepping"), None);
    }
}
