//! Events of a PMU by terms: `cpu/event=0x3c,umask=0x1/`.
//!
//! ```text
//! /sys/bus/event_source/devices/cpu/type          4
//! /sys/bus/event_source/devices/cpu/format/event  config:0-7,32-35
//! /sys/bus/event_source/devices/cpu/events/cache  event=0x3c,umask=0x1
//! ```
//!
//! A term is a field of `format` with its value (1 if there is none), a name of `events`, which
//! stands for terms, or `config`, `config1`, `config2`, `name`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const DEVICES: &str = "/sys/bus/event_source/devices";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::sampler) struct Encoded {
    /// `perf_event_attr.type`.
    pub(in crate::sampler) kind: u32,
    pub(in crate::sampler) config: [u64; 3],
    pub(in crate::sampler) name: Option<String>,
}

/// Returns the attr of `terms` of the PMU `pmu`.
pub(in crate::sampler) fn encode(pmu: &str, terms: &str) -> Result<Encoded, String> {
    encode_in(Path::new(DEVICES), pmu, terms)
}

fn encode_in(devices: &Path, pmu: &str, terms: &str) -> Result<Encoded, String> {
    let is_name = !pmu.is_empty() && !pmu.starts_with('.');
    let device = devices.join(pmu);
    let kind = match is_name.then(|| fs::read_to_string(device.join("type"))) {
        Some(Ok(text)) => text.trim().parse().ok(),
        _ => {
            let known = entries(devices).join(", ");
            return Err(format!(
                "there is no PMU {pmu:?}; those that exist are: {known}"
            ));
        }
    };
    let mut encoded = Encoded {
        kind: kind.ok_or_else(|| format!("the type of PMU {pmu:?} cannot be read"))?,
        ..Encoded::default()
    };
    for term in terms.split(',').filter(|term| !term.is_empty()) {
        encoded.term(&device, term, true)?;
    }
    Ok(encoded)
}

impl Encoded {
    /// Adds a term; one that stands for others only where such `names` are allowed.
    fn term(&mut self, device: &Path, term: &str, names: bool) -> Result<(), String> {
        let (name, value) = match term.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (term, None),
        };
        if name == "name" {
            self.name = value.map(str::to_owned);
            return Ok(());
        }
        let whole = ["config", "config1", "config2"];
        if let Some(word) = whole.iter().position(|known| *known == name) {
            self.config[word] |= number(term, value)?;
            return Ok(());
        }
        let is_name = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
        let read = |folder: &str| {
            if is_name {
                fs::read_to_string(device.join(folder).join(name))
            } else {
                Err(io::ErrorKind::NotFound.into())
            }
        };
        if names
            && value.is_none()
            && let Ok(terms) = read("events")
        {
            // The terms of a name are no names again, so this goes one level deep whatever sysfs
            // has.
            for term in terms.trim().split(',') {
                self.term(device, term, false)?;
            }
            return Ok(());
        }
        let format = read("format").map_err(|_| {
            let known = [
                entries(&device.join("format")),
                entries(&device.join("events")),
            ];
            format!(
                "there is no term {name:?}; those that exist are: {}",
                known.concat().join(", ")
            )
        })?;
        self.put(format.trim(), number(term, value)?)
            .ok_or_else(|| format!("{term} does not fit into {}", format.trim()))
    }

    /// Lays the bits of `value`, lowest first, into those that a format names; `None` if it has
    /// more, or the format is none.
    fn put(&mut self, format: &str, mut value: u64) -> Option<()> {
        let (word, ranges) = format.split_once(':')?;
        let word = match word {
            "config" => &mut self.config[0],
            "config1" => &mut self.config[1],
            "config2" => &mut self.config[2],
            _ => return None,
        };
        for range in ranges.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
            if low > high || high > 63 {
                return None;
            }
            let width = high - low + 1;
            let mask = u64::MAX >> (64 - width);
            *word |= (value & mask) << low;
            value = value.checked_shr(width).unwrap_or(0);
        }
        (value == 0).then_some(())
    }
}

fn number(term: &str, value: Option<&str>) -> Result<u64, String> {
    let Some(value) = value else { return Ok(1) };
    let parsed = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    parsed.map_err(|_| format!("{term} has no number"))
}

fn entries(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir::<PathBuf>(directory.into()) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        // Beside an event stand `NAME.scale` and `NAME.unit`.
        .filter(|name| !name.contains('.'))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PMU as sysfs shows it, removed at the end.
    struct Devices(PathBuf);

    impl Devices {
        fn new() -> Devices {
            let root = std::env::temp_dir().join(format!("proftool-pmu-{}", std::process::id()));
            for (file, text) in [
                ("cpu/type", "4\n"),
                ("cpu/format/event", "config:0-7,32-35\n"),
                ("cpu/format/umask", "config:8-15\n"),
                ("cpu/format/edge", "config:18\n"),
                ("cpu/format/ldlat", "config1:0-15\n"),
                ("cpu/format/odd", "config9:0-99\n"),
                ("cpu/events/loads", "event=0xcd,umask=0x1,ldlat=3\n"),
                ("cpu/events/loads.unit", "J\n"),
            ] {
                let path = root.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Devices(root)
        }
    }

    impl Drop for Devices {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn terms_go_where_the_format_says() {
        let devices = Devices::new();
        let encoded = |terms| encode_in(&devices.0, "cpu", terms);
        let config = |terms| encoded(terms).unwrap().config;
        assert_eq!(config("event=0x13c,umask=2,edge"), [0x1_0004_023c, 0, 0]);
        assert_eq!(config("loads"), [0x1cd, 3, 0]);
        assert_eq!(config("config=0x5,config2=7"), [5, 0, 7]);
        let named = encoded("event=1,name=one").unwrap();
        assert_eq!((named.kind, named.name.as_deref()), (4, Some("one")));
        for (terms, told) in [
            ("umask=0x100", "does not fit"),
            ("event=xyz", "has no number"),
            ("evnt=1", "edge, event, ldlat, odd, umask, loads"),
            ("odd=1", "does not fit"),
            ("../type", "there is no term"),
        ] {
            let error = encoded(terms).unwrap_err();
            assert!(error.contains(told), "{terms}: {error}");
        }
        let error = encode_in(&devices.0, "gpu", "").unwrap_err();
        assert_eq!(error, "there is no PMU \"gpu\"; those that exist are: cpu");
    }
}
