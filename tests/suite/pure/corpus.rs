//! Recordings of real machines: what we read of them is what perf reads.
//!
//! The files (public test data of other projects, by perf 3.2 to 6.8 and simpleperf on five
//! architectures) are not part of this repository. The tests run where they are.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use proftool::perfdata::{Attr, Body, Pass, Reader, Record, Sample, type_name};

use crate::support::skipped;

/// The folder of the recordings, if it is there.
fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    if path.is_dir() {
        return Some(path);
    }
    skipped(&format!("no recordings at {}", path.display()));
    None
}

/// A row of `index.tsv`, by column.
fn index(corpus: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(corpus.join("index.tsv")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(unquote));
    let columns: Vec<String> = lines.next().unwrap().collect();
    lines
        .map(|row| columns.iter().cloned().zip(row).collect())
        .collect()
}

/// CSV quoting: `"{""SAMPLE"": 1}"`.
fn unquote(cell: &str) -> String {
    match cell.strip_prefix('"').and_then(|c| c.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => cell.to_owned(),
    }
}

/// Visits the whole recording, twice where the first pass finds it out of order.
fn visit(reader: &mut Reader, mut visit: impl FnMut(&Reader, &Record<'_>, bool)) {
    let pass = reader.visit(|_| (), |reader, record| visit(reader, record, false));
    if pass.unwrap() == Pass::Again {
        let pass = reader.visit(|_| (), |reader, record| visit(reader, record, true));
        assert_eq!(pass.unwrap(), Pass::Done);
    }
}

#[test]
fn every_recording_opens_and_has_the_records_that_perf_counts() {
    let Some(corpus) = corpus() else { return };
    let mut compared = 0;
    for row in index(&corpus) {
        let file = &row["file"];
        let mut reader = Reader::open(&corpus.join("data").join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        visit(&mut reader, |_, _, _| ());
        let counts: BTreeMap<&str, u64> = reader
            .counts()
            .iter()
            .map(|(&kind, &count)| (type_name(kind).unwrap_or("unknown"), count))
            .collect();
        let Ok(expected) = serde_json::from_str::<BTreeMap<String, u64>>(&row["events_per_type"])
        else {
            // perf cannot read it; we do, or say why.
            let samples = counts.get("SAMPLE").copied().unwrap_or(0);
            let caveats: Vec<String> = reader.caveats().iter().map(|c| c.to_string()).collect();
            eprintln!(
                "{file}: perf {}; ours: {samples} samples {caveats:?}",
                row["perf_version_used"]
            );
            assert!(samples > 0 || !caveats.is_empty(), "{file}");
            continue;
        };
        // perf counts the records inside COMPRESSED ones and the compressed ones themselves.
        let expected: BTreeMap<&str, u64> =
            expected.iter().map(|(k, &v)| (k.as_str(), v)).collect();
        assert_eq!(counts, expected, "{file}: {:?}", reader.caveats());
        compared += 1;
    }
    assert!(compared > 40, "only {compared} recordings compared");
}

#[test]
fn every_sample_of_the_recordings_equals_what_perf_decodes() {
    let Some(corpus) = corpus() else { return };
    let mut compared = 0;
    for row in index(&corpus) {
        let file = &row["file"];
        let truth = corpus.join("truth").join(format!("{file}.samples.gz"));
        if !truth.exists() {
            continue;
        }
        let expected = gunzip(&truth);
        let expected: Vec<&str> = expected.lines().filter(|l| !l.starts_with('#')).collect();
        let mut reader = Reader::open(&corpus.join("data").join(file)).unwrap();
        let mut samples = Vec::new();
        let mut again = false;
        visit(&mut reader, |reader, record, second| {
            if second && !again {
                samples.clear();
                again = true;
            }
            if let Body::Sample(sample) = &record.body {
                let attr = &reader.events()[sample.event].attr;
                samples.push(line(sample, record.misc, attr));
            }
        });
        if row["perf_version_used"].starts_with("fails") {
            // perf stopped in the middle: what it had decoded is among ours.
            for sample in &expected {
                assert!(samples.iter().any(|s| s == sample), "{file}: {sample}");
            }
        } else {
            for (i, (ours, theirs)) in samples.iter().zip(&expected).enumerate() {
                if file.ends_with(".lbr.data") {
                    // Here perf prints the branch stack as call chains before and behind it.
                    let (fields, chain) = ours.rsplit_once(' ').unwrap();
                    assert!(theirs.starts_with(fields), "{file}: sample {i}");
                    assert!(theirs.contains(chain), "{file}: sample {i}");
                    continue;
                }
                assert_eq!(ours, theirs, "{file}: sample {i}");
            }
            assert_eq!(samples.len(), expected.len(), "{file}");
        }
        compared += expected.len();
    }
    assert!(compared > 100_000, "only {compared} samples compared");
}

/// A sample in the form of the expected files.
fn line(sample: &Sample<'_>, misc: u16, attr: &Attr) -> String {
    fn number<T: std::fmt::Display>(value: Option<T>) -> String {
        value.map_or("-".into(), |v| v.to_string())
    }
    let chain: Vec<String> = sample
        .callchain
        .map(|chain| chain.iter().map(|ip| format!("{ip:x}")).collect())
        .unwrap_or_default();
    format!(
        "{} {} {} {} {misc:#x} {:#x} {} {chain}",
        number(sample.time),
        number(sample.cpu),
        number(sample.pid),
        number(sample.tid),
        sample.ip.unwrap_or(0),
        // Where samples have no period perf takes the attr's, even if that is a frequency.
        sample.period.unwrap_or(attr.period_or_frequency),
        chain = chain.join(","),
    )
    .trim_end()
    .to_owned()
}

fn gunzip(path: &Path) -> String {
    let mut text = String::new();
    let bytes = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(bytes)
        .read_to_string(&mut text)
        .unwrap();
    text
}
