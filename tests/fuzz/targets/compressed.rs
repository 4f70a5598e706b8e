//! Any bytes in COMPRESSED records: as zstd blocks, and as what sound blocks hold.
//!
//! The decoder is C. What it makes of blocks must be bounded and end, and what sound blocks hold
//! must be read as the same records are read without compression.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proftool::base::CaveatKind;
use proftool::perfdata::{Pass, Reader};

const ATTR: u32 = 64;
const FINISHED_ROUND: u32 = 68;
const COMPRESSED: u32 = 81;
/// More does not fit into one record.
const MOST: usize = 60_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&cut, bytes)) = bytes.split_first() else {
        return;
    };
    // A block of its own for each part, so that records and blocks end at different places.
    let at = bytes.len() * usize::from(cut) / 256;
    let (first, second) = bytes.split_at(at);
    read(&[first, second].map(<[u8]>::to_vec));

    let mut stream = zstd_safe::CCtx::create();
    let mut packed = |bytes: &[u8]| {
        let mut block = vec![0; zstd_safe::compress_bound(bytes.len()) + 64];
        let mut out = zstd_safe::OutBuffer::around(&mut block[..]);
        let mut input = zstd_safe::InBuffer::around(bytes);
        while input.pos() < bytes.len() {
            let done = stream.compress_stream(&mut out, &mut input);
            assert!(done.is_ok());
        }
        while stream.flush_stream(&mut out).is_ok_and(|left| left > 0) {}
        let size = out.pos();
        block.truncate(size);
        block
    };
    let blocks = [packed(first), packed(second)];
    if blocks.iter().all(|block| block.len() < MOST) {
        let compressed = read(&blocks);
        assert!(compressed < 2 * bytes.len() as u64 + 16);
    }
});

/// Reads a recording with these blocks. Returns how many records it has.
fn read(blocks: &[Vec<u8>]) -> u64 {
    let mut recording = b"PERFILE2".to_vec();
    recording.extend(16u64.to_le_bytes());
    // IP, TID, TIME and sample_id_all.
    let mut attr = [0; 64];
    attr[4..8].copy_from_slice(&64u32.to_le_bytes());
    attr[24..32].copy_from_slice(&7u64.to_le_bytes());
    attr[40..48].copy_from_slice(&(1u64 << 18).to_le_bytes());
    record(&mut recording, ATTR, &attr);
    for block in blocks {
        record(&mut recording, COMPRESSED, &block[..block.len().min(MOST)]);
        record(&mut recording, FINISHED_ROUND, &[]);
    }
    let Ok(mut reader) = Reader::from_bytes(recording) else {
        return 0;
    };
    loop {
        let (mut last, mut is_sorted) = (0, true);
        let mut visit = |_: &Reader, record: &proftool::perfdata::Record<'_>| {
            let time = record.time.filter(|&time| time > 0).unwrap_or(last);
            is_sorted &= time >= last;
            last = time;
        };
        match reader.visit(|_| {}, &mut visit) {
            Ok(Pass::Done) => {
                let late = reader.caveats().count(CaveatKind::Disordered);
                assert!(is_sorted || late > 0, "out of order, and not told");
                break;
            }
            Ok(Pass::Again) => {}
            Err(_) => break,
        }
    }
    reader.counts().values().sum()
}

fn record(recording: &mut Vec<u8>, kind: u32, body: &[u8]) {
    recording.extend(kind.to_le_bytes());
    recording.extend([0, 0]);
    recording.extend((body.len() as u16 + 8).to_le_bytes());
    recording.extend(body);
}
