//! Any bytes as a jitdump file: its changes, and the method and line at places in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proftool::binary::JitDump;

/// Changes whose code is looked up: enough to find a fault, few enough to be quick.
const LOOKED_UP: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let Ok(dump) = JitDump::parse(bytes) else {
        return;
    };
    let _ = (dump.has_clock(), dump.problems());
    for change in dump.changes().iter().take(LOOKED_UP) {
        assert!(
            change.start.checked_add(change.size).is_some(),
            "{change:?}"
        );
        let end = change.place + change.size;
        assert!(end <= bytes.len() as u64, "{change:?}");
        assert!(dump.at(change.place).is_some(), "{change:?}");
        let _ = (dump.at(change.place + change.size / 2), dump.at(end));
    }
    for place in [0, bytes.len() as u64, u64::MAX] {
        assert!(dump.at(place).is_none());
    }
});
