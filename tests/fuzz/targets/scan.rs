//! Any bytes as a program, library or object file: the calls in its code, its slots, the
//! references that a linker is yet to fill in, the pointers in its data.

#![no_main]

use std::num::NonZeroUsize;

use libfuzzer_sys::fuzz_target;
use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::scan::{self, Callee};

/// Addresses that are looked up: enough to find a fault, few enough to be quick.
const LOOKED_UP: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(binary) = Binary::from_bytes(bytes.to_vec()) else {
        return;
    };
    let (slots, references) = (binary.slots(), binary.references());
    for function in binary.functions().iter().take(LOOKED_UP) {
        let _ = (slots.target(function.start), references.at(function.start));
    }
    let mut pointers: u64 = 0;
    let _ = binary.data_pointers(|_| pointers += 1);
    assert!(pointers <= 8 * bytes.len() as u64);
    for symbol in slots.defined().into_iter().take(LOOKED_UP) {
        let _ = slots.name(symbol);
    }
    let Ok(calls) = scan::calls(&binary, Some(NonZeroUsize::MIN)) else {
        return;
    };
    assert!(calls.decoded + calls.undecoded <= bytes.len() as u64);
    assert_eq!(calls.imports.len(), calls.pointers_to_imports.len());
    for site in &calls.sites {
        let whole = |id| calls.functions[id].part_of.is_none();
        assert!(whole(site.caller), "{site:?}");
        assert!(site.at != Svma(u64::MAX) && site.length > 0);
        match site.callee {
            Callee::Function(id) => assert!(whole(id), "{site:?}"),
            Callee::Import(id) => assert!(id.index() < calls.imports.len()),
        }
    }
});
