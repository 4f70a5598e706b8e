//! The quick reading of x86-64 is compared with iced-x86 alone.

#![expect(
    clippy::print_stderr,
    reason = "a test that cannot run here says so, and why"
)]

use std::env;
use std::path::Path;

use proptest::collection;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest,
};

use super::careful::{Careful, Read};
use super::{quick, walk};
use crate::binary::{Binary, Machine};
use crate::scan::flow::{Flow, Step, Wants};

/// Reads everything with iced-x86: the steps, the starts of instructions, and the number of bytes
/// that are none.
fn reference(bytes: &[u8], start: u64, wants: &Wants) -> (Vec<Step>, Vec<usize>, u64) {
    let mut careful = Careful::new(64, bytes, start);
    let (mut steps, mut starts, mut undecoded) = (Vec::new(), Vec::new(), 0);
    let mut index = 0;
    while index < bytes.len() {
        let Some(read) = careful.read(index, wants) else {
            undecoded += 1;
            index += 1;
            continue;
        };
        super::push(start.wrapping_add(index as u64), read, &mut steps);
        starts.push(index);
        index += usize::from(read.length);
    }
    (steps, starts, undecoded)
}

/// What the tables say of the instruction at the start of these bytes, if they dare to.
fn quickly(bytes: &[u8], at: u64, wants: &Wants) -> Option<Read> {
    let mut window = [0; 16];
    let length = bytes.len().min(16);
    window[..length].copy_from_slice(&bytes[..length]);
    quick::read(&window, at, wants).filter(|read| usize::from(read.length) <= length)
}

/// Holds the walk against the reference, and every instruction alone; the number of instructions,
/// and of those that the tables did not know.
fn check(bytes: &[u8], start: u64, wants: &Wants) -> Result<(usize, usize), String> {
    let (expected, starts, undecoded) = reference(bytes, start, wants);
    let mut steps = Vec::new();
    let found = walk(bytes, start, wants, &mut steps);
    if let Some((a, b)) = steps.iter().zip(&expected).find(|(a, b)| a != b) {
        return Err(format!("{a:x?}, but {b:x?} is expected"));
    }
    if (steps.len(), found) != (expected.len(), undecoded) {
        return Err(format!("{found} bytes are undecoded of {undecoded}"));
    }
    let mut careful = Careful::new(64, bytes, start);
    let mut unknown = 0;
    for &index in &starts {
        let at = start.wrapping_add(index as u64);
        let quick = quickly(&bytes[index..], at, wants);
        if quick.is_some() && quick != careful.read(index, wants) {
            return Err(format!("{at:x}: {quick:x?}"));
        }
        unknown += usize::from(quick.is_none());
    }
    Ok((starts.len(), unknown))
}

fn flows(bytes: &[u8]) -> Vec<(u64, u8, Flow)> {
    let mut steps = Vec::new();
    walk(bytes, 0x1000, &Wants::default(), &mut steps);
    let triple = |step: &Step| (step.at, step.length, step.flow);
    steps.iter().map(triple).collect()
}

#[test]
fn calls_and_jumps_lead_forward_and_backward() {
    let cases: [(&[u8], Option<Flow>); 19] = [
        (b"\xe8\x0b\0\0\0", Some(Flow::Call(0x1010))),
        (b"\xe8\xeb\xff\xff\xff", Some(Flow::Call(0xff0))),
        (b"\x67\xe8\x0a\0\0\0", Some(Flow::Call(0x1010))),
        (b"\xe9\x0b\0\0\0", Some(Flow::Jump(0x1010))),
        (b"\xeb\xee", Some(Flow::Jump(0xff0))),
        (b"\xe3\x0e", Some(Flow::Jump(0x1010))),
        (b"\x0f\x84\x0a\0\0\0", Some(Flow::Jump(0x1010))),
        (b"\xff\x15\x0a\0\0\0", Some(Flow::CallSlot(0x1010))),
        (b"\xf2\xff\x25\x09\0\0\0", Some(Flow::JumpSlot(0x1010))),
        (b"\xff\x14\x25\x10\x10\0\0", Some(Flow::CallSlot(0x1010))),
        (b"\x64\xff\x14\x25\x10\0\0\0", Some(Flow::CallUnknown)),
        (b"\xff\xd0", Some(Flow::CallUnknown)),
        (b"\x3e\xff\xe0", Some(Flow::JumpUnknown)),
        (b"\x48\x8d\x3d\x09\0\0\0", Some(Flow::Address(0x1010))),
        (b"\x48\x8b\x1d\x09\0\0\0", Some(Flow::LoadSlot(0x1010))),
        (b"\xff\x35\x0a\0\0\0", Some(Flow::LoadSlot(0x1010))),
        (b"\x8b\x1d\x09\0\0\0", None),
        (b"\x0f\x05", None),
        (b"\xb8\xe8\x01\x02\x03", None),
    ];
    for (bytes, flow) in cases {
        let expected: Vec<_> = flow
            .map(|flow| (0x1000, bytes.len() as u8, flow))
            .into_iter()
            .collect();
        assert_eq!(flows(bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn constants_are_addresses_where_code_has_its_place() {
    let cases: [(&[u8], u64, u64); 5] = [
        (b"\xbf\x10\x10\x40\0", 0x0040_1010, 4),
        (b"\x68\x10\x10\x40\0", 0x0040_1010, 4),
        (b"\x48\xc7\xc0\x10\x10\x40\x80", 0xffff_ffff_8040_1010, 4),
        (b"\xc7\x45\xf8\x10\x10\x40\x80", 0x8040_1010, 4),
        (b"\x48\xb8\x10\x10\x40\0\x01\0\0\0", 0x1_0040_1010, 8),
    ];
    for (bytes, address, back) in cases {
        let mut steps = Vec::new();
        walk(bytes, 0x1000, &Wants::default(), &mut steps);
        assert_eq!(steps, [], "{bytes:02x?}");
        let wants = Wants {
            immediates: true,
            ..Wants::default()
        };
        walk(bytes, 0x1000, &wants, &mut steps);
        let expected = Step {
            at: 0x1000,
            length: bytes.len() as u8,
            flow: Flow::Address(address),
            field: 0x1000 + bytes.len() as u64 - back,
        };
        assert_eq!(steps, [expected], "{bytes:02x?}");
    }
}

#[test]
fn bytes_that_are_no_instructions_are_counted_and_passed() {
    let mut steps = Vec::new();
    let bytes = b"\x06\xe8\0\0\0\0\xe8\x01";
    let undecoded = walk(bytes, 0x1000, &Wants::default(), &mut steps);
    let found: Vec<u64> = steps.iter().map(|step| step.at).collect();
    assert_eq!((undecoded, found), (3, vec![0x1001]));
    walk(&[0xe8; 64], u64::MAX - 20, &Wants::default(), &mut steps);
}

#[test]
fn every_opcode_with_every_modrm_byte_is_read_as_by_iced() {
    let wants = Wants {
        immediates: true,
        ..Wants::default()
    };
    let prefixes: [&[u8]; 6] = [b"", b"\x66", b"\xf3", b"\xf2", b"\x64", b"\x2e\x66\x66"];
    let rexes: [&[u8]; 3] = [b"", b"\x48", b"\x47"];
    let mut sure = 0;
    for opcode in (0..=255)
        .map(|byte| vec![byte])
        .chain((0..=255).map(|byte| vec![0x0f, byte]))
    {
        for prefix in prefixes {
            for rex in rexes {
                for modrm in 0..=255 {
                    // The SIB byte: no base with and without an index, and a base.
                    for sib in [0x25, 0x05, 0xc1] {
                        let tail = [modrm, sib, 0x11, 0x80, 0x33, 0x44, 0x95, 0x66, 0x77, 0x88];
                        let bytes = [prefix, rex, &opcode, &tail].concat();
                        let Some(quick) = quickly(&bytes, 0x7000_1000, &wants) else {
                            continue;
                        };
                        sure += 1;
                        let expected = Careful::new(64, &bytes, 0x7000_1000).read(0, &wants);
                        assert_eq!(Some(quick), expected, "{bytes:02x?}");
                    }
                }
            }
        }
    }
    assert!(sure > 2_000_000, "{sure}");
}

/// Bytes that look like code: prefixes, opcodes that are used, and anything.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let prefix = proptest::sample::select(vec![
        0x66, 0xf2, 0xf3, 0x2e, 0x3e, 0x64, 0x65, 0x67, 0xf0, 0x40, 0x41, 0x44, 0x48, 0x49, 0x4c,
    ]);
    let opcode = proptest::sample::select(vec![
        0x0f, 0x0f, 0x0f, 0x89, 0x8b, 0x8d, 0x83, 0x85, 0xe8, 0xe9, 0xeb, 0x74, 0x75, 0xff, 0xc7,
        0xf6, 0xf7, 0xc4, 0xc5, 0x62, 0xb8, 0x68, 0x31, 0x01, 0x3b, 0x80, 0x81, 0x8f, 0xe3,
    ]);
    // Operands: at disp(%rip), with a SIB byte, in registers.
    let modrm =
        proptest::sample::select(vec![0x05, 0x35, 0x15, 0x25, 0x04, 0x44, 0x84, 0xc0, 0xd0]);
    let byte = prop_oneof![3 => prefix, 5 => opcode, 3 => modrm, 2 => any::<u8>()];
    collection::vec(byte, 0..200)
}

fn wants() -> impl Strategy<Value = Wants> {
    let addresses = prop_oneof![Just(0..=u64::MAX), Just(0x1000..=0x0100_0000)];
    (addresses, any::<bool>()).prop_map(|(addresses, immediates)| Wants {
        addresses,
        immediates,
        unlinked: true,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 8 * ProptestConfig::default().cases,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_are_read_as_by_iced(
        bytes in code(),
        start in prop_oneof![Just(0u64), Just(0x5555_0000_1000), Just(u64::MAX - 100)],
        wants in wants(),
    ) {
        prop_assert_eq!(check(&bytes, start, &wants).map(|_| ()), Ok(()));
    }
}

/// All code of a file, in functions.
fn check_file(path: &Path) {
    let Ok(binary) = Binary::open(path) else {
        eprintln!("skipped: {} is not here", path.display());
        return;
    };
    let code = binary.code().unwrap();
    if code.machine != Machine::X86_64 {
        eprintln!("skipped: {} is for another machine", path.display());
        return;
    }
    let wants = Wants {
        immediates: true,
        ..Wants::default()
    };
    let (mut instructions, mut unknown, mut buffer) = (0, 0, Vec::new());
    for stretch in binary.stretches() {
        let Some(piece) = code.piece(stretch.start, stretch.end) else {
            continue;
        };
        let bytes = code.read(piece, &mut buffer).unwrap();
        match check(bytes, stretch.start.0, &wants) {
            Ok((all, left)) => (instructions, unknown) = (instructions + all, unknown + left),
            Err(why) => panic!("{}: {why}", path.display()),
        }
    }
    eprintln!(
        "{}: {instructions} instructions, {unknown} not by the tables",
        path.display()
    );
    assert!(instructions > 1000);
}

#[test]
fn the_code_of_real_files_is_read_as_by_iced() {
    check_file(Path::new("/bin/ls"));
    check_file(Path::new("/lib/x86_64-linux-gnu/libc.so.6"));
}

/// `PROFTOOL_CODE=FILE… cargo test --release code_of_given_files -- --nocapture`
#[test]
fn the_code_of_given_files_is_read_as_by_iced() {
    let files = env::var_os("PROFTOOL_CODE").unwrap_or_default();
    for file in env::split_paths(&files) {
        check_file(&file);
    }
}
