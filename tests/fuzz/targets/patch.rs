//! Any bytes as a program: what would be written to count its calls lies inside of its functions, and
//! nothing overlaps.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::patch::{self, CallForm, STUB, StubArea};

fuzz_target!(|bytes: &[u8]| {
    let (Ok(binary), Ok(again)) = (
        Binary::from_bytes(bytes.to_vec()),
        Binary::from_bytes(bytes.to_vec()),
    ) else {
        return;
    };
    let area = StubArea {
        stubs: 0x4000_0000,
        counters: 0x5000_0000,
        offset: 0,
    };
    let Ok(plan) = patch::changes(binary, 0, area) else {
        return;
    };
    let mut end = 0;
    for change in &plan.changes {
        assert!(change.at >= end, "{change:?}");
        end = change.at + u64::from(change.length);
        let function = again.function_at(Svma(change.at));
        let function = function.filter(|function| function.has_stated_end());
        assert!(function.is_some_and(|function| Svma(end) <= function.end()));
        let (old, new) = (&change.old[..], &change.new[..]);
        let length = usize::from(change.length);
        let before = CallForm::read(&old[..length], change.at);
        assert!(before.is_some(), "{change:?}");
        let stub = area.stubs + (change.site * STUB) as u64;
        let behind = if new[length - 1] == 0x90 && old[length - 6] == 0xff { 1 } else { 0 };
        let after = CallForm::read(&new[..length - behind], change.at);
        assert!(after.is_some_and(|after| after.to == stub), "{change:?}");
    }
});
