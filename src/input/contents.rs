//! An inventory of an input, instead of a profile.

use crate::base::Sampling;
use crate::perfdata::{Features, Reader, RecordedStacks, Storage, type_name};
use crate::profile::{Contents, EventContents, Profile};
use crate::trace;

use super::{Progress, Reason};

pub(super) fn of_recording(
    mut reader: Reader,
    progress: &mut Progress,
) -> Result<Contents, Reason> {
    let size = reader.data_size().unwrap_or(0);
    let everything = trace::TimeRange::default();
    // Samples are counted; nobody asks for their stacks.
    let unwinding = None;
    let progress = |done| progress(done, size);
    let trace = trace::read(&mut reader, everything, unwinding, None, progress, |_| ())?;
    let mut events: Vec<EventContents> = trace
        .events
        .iter()
        .map(|event| EventContents {
            event: event.clone(),
            sampling: Sampling::Unknown,
            samples: 0,
            total: 0,
        })
        .collect();
    for sample in &trace.samples {
        let event = &mut events[crate::base::Id::index(sample.event)];
        event.samples += sample.count;
        event.total += sample.weight;
    }
    let features = reader.features();
    let stacks = RecordedStacks::of(reader.events().iter().map(|event| &event.attr));
    let mut records: Vec<(String, u64)> = reader
        .counts()
        .iter()
        .map(|(&number, &count)| match type_name(number) {
            Some(name) => (name.to_owned(), count),
            None => (format!("type {number}"), count),
        })
        .collect();
    records.sort();
    let samples = records.iter().find(|(name, _)| name == "SAMPLE");
    let samples = samples.map_or(0, |(_, count)| *count);
    Ok(Contents {
        form: form(&reader),
        arch: features.arch.clone(),
        samples,
        events,
        records,
        features: features.present.iter().map(|f| f.to_string()).collect(),
        circumstances: circumstances(features, &trace.recording, stacks, samples),
        caveats: trace.caveats,
    })
}

pub(super) fn of_stacks(form: &str, profile: Profile) -> Contents {
    let counts = profile.samples_by_event();
    let events = profile.events.enumerate().map(|(id, event)| {
        let own = profile.samples.iter().filter(|sample| sample.event == id);
        EventContents {
            event: event.clone(),
            sampling: profile.sampling.get(id).copied().unwrap_or_default(),
            samples: counts[id],
            total: own.fold(0u64, |sum, sample| sum.saturating_add(sample.weight)),
        }
    });
    Contents {
        form: form.into(),
        events: events.collect(),
        samples: counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count)),
        caveats: profile.caveats,
        ..Contents::default()
    }
}

fn form(reader: &Reader) -> String {
    let storage = match reader.storage() {
        Storage::File => "file",
        Storage::Pipe => "stream",
        Storage::Directory => "directory",
    };
    let endian = if reader.is_little_endian() {
        "little-endian"
    } else {
        "big-endian"
    };
    format!(
        "perf.data {storage}, version {}, {endian}",
        reader.version()
    )
}

fn circumstances(
    features: &Features,
    recording: &trace::Recording,
    stacks: RecordedStacks,
    samples: u64,
) -> Vec<(&'static str, String)> {
    let command = (!features.command_line.is_empty()).then(|| features.command_line.join(" "));
    let seconds = recording
        .duration
        .map(|ns| format!("{:.3} s", ns as f64 / 1e9));
    let is_copied = matches!(
        stacks,
        RecordedStacks::Joined(_) | RecordedStacks::Copies(_)
    );
    let memory = is_copied.then(|| match recording.copies {
        0 => "none".to_owned(),
        copies => format!("copies of the stack in {copies} of {samples} samples"),
    });
    let cpus = features
        .cpus
        .map(|(online, available)| format!("{online} of {available} online"));
    [
        ("command", command),
        ("duration", seconds),
        ("call stacks", Some(stacks.named(recording.unwound > 0))),
        ("memory of programs", memory),
        ("host", features.hostname.clone()),
        ("kernel", features.os_release.clone()),
        ("recorder", features.version.clone()),
        ("processor", features.cpu_description.clone()),
        ("processors", cpus),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}
