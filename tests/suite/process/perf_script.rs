//! The text of perf script, whichever of its fields are printed.

use std::collections::BTreeMap;
use std::fs;

use crate::support::html::json;
use crate::support::record::{Room, can_record, perf, samples};
use crate::support::{compile, fixture};

#[test]
fn each_list_of_fields_gives_the_same_samples() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer"];
    if compile("gcc", &flags, &fixture("recurse.c"), &room.path("app")).is_none() {
        return;
    }
    room.record(&[
        "-q",
        "-g",
        "fp,0",
        "-e",
        "cpu-clock:u",
        "-F",
        "499",
        "./app",
    ]);
    let file = room.path("perf.data");
    let mut first: Option<BTreeMap<String, u64>> = None;
    for options in [
        "-F comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso",
        "-F comm,tid,time,event,ip,sym,dso",
        "-F comm,pid,event,ip,sym,dso",
        "-F comm,pid,ip,sym",
        "-F tid,event,ip,sym",
        "-F time,event,ip,sym,dso",
        "-F event,ip,sym,srcline",
        "-F ip,sym,dso",
        "-F comm,tid,time,event,ip,sym,srcline",
        "-F comm,cpu,event,ip,sym",
        "-F comm,event,period,ip,sym",
        "-F +misc",
        "-F comm,pid,period,event,ip,sym,dso --header",
        "--show-task-events --show-mmap-events",
    ] {
        let words = ["script", "-f", "-i", file.to_str().unwrap()].into_iter();
        let words: Vec<&str> = words.chain(options.split(' ')).collect();
        let Some(text) = perf(&words) else {
            return;
        };
        fs::write(room.path("text"), &text).unwrap();
        let flat = json(&["flat", "text"], &room.0);
        assert_eq!(flat["samples"], samples(&file), "{options}");
        let rows = flat["functions"].as_array().unwrap().iter();
        let own = rows.map(|row| {
            let name = row["name"].as_str().unwrap().to_owned();
            (name, row["samples"].as_u64().unwrap())
        });
        let own: BTreeMap<_, _> = own
            .filter(|(name, count)| *count > 0 && !name.starts_with("[unknown]"))
            .collect();
        assert!(!own.is_empty(), "{options}");
        assert_eq!(&own, first.get_or_insert(own.clone()), "{options}");
        let is_time = ["period", "--show", "+misc"]
            .iter()
            .any(|it| options.contains(it));
        assert_eq!(flat["event"]["unit"] == "ns", is_time, "{options}");
        let said = flat["caveats"].to_string();
        assert!(!said.contains("bad-line"), "{options}: {said}");
    }
}
