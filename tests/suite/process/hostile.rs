//! Small files that ask for much, and files that name what must not be opened. What they may cost is
//! told by the library itself, so nothing here depends on how fast or large a machine is.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proftool::base::{CaveatKind, CodeAddress, Svma};
use proftool::binary::{Binary, Error, Finder, ProcessTimes};
use proftool::profile::Profile;
use proftool::symbolize::{Library, Options, symbolize};
use proftool::trace::{
    AddressPath, AddressPathId, CallerBy, FrameAddress, Image, ImageId, ImageKind, Trace,
    TraceEventId, TraceSample, TraceThread, TraceThreadId,
};

use crate::support;
use crate::support::elf::{COMPRESSED, Dwarf, Elf, compressed};
use crate::support::skipped;

const MIB: u64 = 1 << 20;

/// An empty directory for one test.
fn directory(test: &str) -> PathBuf {
    support::directory(&format!("hostile-{test}"))
}

/// A program with the function `alpha` and debug information that calls it `described`.
fn program() -> Elf {
    let (info, abbreviations) = Dwarf::unit(0x1000).function("described", 0, 0x100).finish();
    Elf::with_functions(&[("alpha", 0x1000, 0x100)])
        .section(".debug_info", &info)
        .section(".debug_abbrev", &abbreviations)
}

/// The names of the functions at an address, by debug information, innermost first.
fn frames(binary: &Binary, address: u64) -> Vec<String> {
    let lines = binary.lines();
    let mut frames = Vec::new();
    lines.frames(Svma(address), &mut frames);
    let names = frames.iter().filter_map(|frame| frame.function.clone());
    names.map(|name| name.into_owned()).collect()
}

fn has_symbol(binary: &Binary) -> bool {
    let function = binary.function_at(Svma(0x1010));
    function.is_some_and(|function| binary.function_name(function).as_deref() == Some("alpha"))
}

/// Stacks, outermost frame first, of addresses in the code of files at their offset in memory.
fn trace(paths: &[&Path], stacks: impl IntoIterator<Item = Vec<(usize, u64)>>) -> Trace {
    let mut trace = Trace::default();
    for path in paths {
        trace.images.push(Image {
            file: None,
            path: path.to_string_lossy().into(),
            raw_path: path.to_str().is_none().then(|| (*path).into()),
            build_id: None,
            kind: ImageKind::File,
        });
    }
    trace.events.push(proftool::base::Event::named("cycles"));
    trace.threads.push(TraceThread {
        pid: 1,
        tid: 1,
        comm: "app".into(),
        job: None,
    });
    let mut frames = std::collections::BTreeMap::new();
    for stack in stacks {
        let mut caller: Option<AddressPathId> = None;
        for (image, offset) in stack {
            let frame = *frames.entry((image, offset)).or_insert_with(|| {
                trace.frames.push(FrameAddress {
                    image: ImageId::new(image),
                    address: CodeAddress::Instruction(offset),
                    caller_by: CallerBy::FramePointer,
                })
            });
            caller = Some(trace.paths.push(AddressPath { caller, frame }));
        }
        trace.samples.push(TraceSample {
            event: TraceEventId::new(0),
            thread: TraceThreadId::new(0),
            path: caller.unwrap(),
            weight: 1,
            count: 1,
            squares: 1,
        });
    }
    trace
}

fn profile(trace: &Trace) -> Profile {
    let options = Options {
        repairs: false,
        ..Options::default()
    };
    symbolize(trace, &Library::new(options))
}

/// What the profile says of a kind of caveat.
fn told(profile: &Profile, kind: CaveatKind) -> String {
    let caveat = profile.caveats.iter().find(|caveat| caveat.kind == kind);
    caveat.map(|caveat| caveat.to_string()).unwrap_or_default()
}

#[test]
fn with_symfs_the_perf_map_is_taken_from_there() {
    // No process has this number, so none of here has a map.
    const PID: i32 = i32::MAX;
    let root = directory("map");
    fs::create_dir(root.join("tmp")).unwrap();
    fs::write(root.join(format!("tmp/perf-{PID}.map")), "1000 10 made\n").unwrap();
    let mut trace = trace(&[Path::new("//anon")], [vec![(0, 0x1008)]]);
    let pid = PID;
    trace.images[ImageId::new(0)].kind = ImageKind::Generated { pid };
    // A kernel that is not the one that runs here: the map would not be believed without a root.
    trace.recording.os_release = Some("0.0.1".into());
    let name = |symfs: Option<&Path>| {
        let finder = Finder::new(symfs);
        let options = Options {
            finder,
            ..Options::default()
        };
        let profile = symbolize(&trace, &Library::new(options));
        let function = profile.functions.iter().next().unwrap();
        function.name.clone()
    };
    assert_eq!(name(Some(&root)), "made");
    assert_ne!(name(None), "made");
}

#[test]
fn one_file_under_very_many_names_is_opened_under_some() {
    let directory = directory("names");
    let first = directory.join("0");
    program().write(&first);
    let paths: Vec<PathBuf> = (0..70).map(|n| directory.join(n.to_string())).collect();
    for path in &paths[1..] {
        fs::hard_link(&first, path).unwrap();
    }
    let paths: Vec<&Path> = paths.iter().map(|path| path.as_path()).collect();
    let stacks = (0..paths.len()).map(|image| vec![(image, 0x1010)]);
    let profile = profile(&trace(&paths, stacks));
    let named = profile.functions.iter().filter(|f| f.name == "alpha");
    assert_eq!(named.count(), 64);
    let missing = profile.caveats.count(CaveatKind::MissingBinary);
    assert_eq!(missing, 6);
    let text = "one of too many names of one file, skipped";
    assert!(told(&profile, CaveatKind::MissingBinary).contains(text));
}

#[test]
fn sections_that_share_compressed_bytes_are_inflated_once() {
    let zeros = compressed(&vec![0; 20 << 20]);
    let mut elf = program().with(".debug_str", 1, COMPRESSED, &zeros);
    for name in [
        ".debug_ranges",
        ".debug_addr",
        ".debug_rnglists",
        ".debug_line_str",
    ] {
        elf = elf.sharing(name, ".debug_str");
    }
    let path = directory("shared").join("elf");
    elf.write(&path);
    let binary = Binary::open(&path).unwrap();
    assert_eq!(frames(&binary, 0x1010), ["described"]);
    assert_eq!(binary.problems(), [] as [&str; 0]);
    let taken = binary.memory_taken().debug_information;
    assert!((20 * MIB..22 * MIB).contains(&taken), "{taken}");
}

#[test]
fn debug_information_that_inflates_beyond_limits_is_left_out_and_reported() {
    let path = directory("grown").join("elf");
    let stated = [
        &1_u64.to_le_bytes()[..],
        &(600 * MIB).to_le_bytes(),
        &[0; 24],
    ]
    .concat();
    program()
        .with(".debug_str", 1, COMPRESSED, &stated)
        .write(&path);
    let trace = trace(&[&path], [vec![(0, 0x1010)]]);
    let profile = profile(&trace);
    assert_eq!(profile.functions.iter().next().unwrap().name, "alpha");
    let said = told(&profile, CaveatKind::BadDebugInfo);
    assert!(said.contains("too large") && said.contains("elf"), "{said}");
}

#[test]
fn all_files_together_have_one_limit_and_who_is_first_does_not_matter() {
    let directory = directory("pool");
    let stated = [
        &1_u64.to_le_bytes()[..],
        &(200 * MIB).to_le_bytes(),
        &[0; 24],
    ]
    .concat();
    let names = ["a", "b", "sound"];
    let paths = names.map(|name| directory.join(name));
    for path in &paths[..2] {
        program()
            .with(".debug_str", 1, COMPRESSED, &stated)
            .write(path);
    }
    program().write(&paths[2]);
    for order in [[0, 1, 2], [2, 1, 0]] {
        let finder = Finder::default();
        let open = |path: &PathBuf| finder.find(path, None).unwrap();
        let files: Vec<Binary> = paths.iter().map(open).collect();
        for file in order {
            files[file].prepare_lines();
        }
        let left_out: Vec<bool> = files.iter().map(Binary::is_debug_info_too_large).collect();
        assert_eq!(left_out, [true, true, false]);
    }
    // One of them alone would be read.
    let alone = Binary::open(&paths[0]).unwrap();
    alone.prepare_lines();
    assert!(!alone.is_debug_info_too_large());
}

#[test]
fn holes_of_a_file_are_no_input() {
    let path = directory("holes").join("elf");
    program()
        .placed(".symtab", 2, (1 << 30, 900 * MIB), 24)
        .placed(".strtab", 3, (2 << 30, 900 * MIB), 0)
        .write(&path);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(4 << 30).unwrap();
    let binary = Binary::open(&path).unwrap();
    assert!(binary.functions().is_empty());
    let said = binary.problems().join("; ");
    assert!(
        said.contains("symbols is too large: 943718400 bytes"),
        "{said}"
    );
    let taken = binary.memory_taken();
    assert!(
        taken.tables <= taken.share && taken.share < 5 * MIB,
        "{taken:?}"
    );
}

#[test]
fn ranges_that_many_entries_share_count_each_time() {
    // A list of empty ranges, which 40 000 functions have: nothing is kept, but all is looked at.
    let empty: Vec<u8> = (1..10_000_u64)
        .flat_map(|at| [at, at])
        .flat_map(u64::to_le_bytes)
        .collect();
    let ranges = [&empty[..], &[0; 16]].concat();
    let mut unit = Dwarf::unit(0x1000);
    for _ in 0..40_000 {
        unit = unit.function_with_ranges(0);
    }
    let (info, abbreviations) = unit.finish();
    let path = directory("ranges").join("elf");
    Elf::with_functions(&[("alpha", 0x1000, 0x100)])
        .section(".debug_info", &info)
        .section(".debug_abbrev", &abbreviations)
        .section(".debug_ranges", &ranges)
        .write(&path);
    let trace = trace(&[&path], [vec![(0, 0x1010)]]);
    let said = told(&profile(&trace), CaveatKind::BadDebugInfo);
    assert!(said.contains("too large"), "{said:?}");
}

#[test]
fn symbols_whose_names_overlap_have_names_only_within_a_limit() {
    let (count, length) = (4000_u32, 8000);
    let letters = (0..count as usize + length).map(|at| b'a' + (at % 26) as u8);
    let strings: Vec<u8> = [0].into_iter().chain(letters).chain([0]).collect();
    let symbol = |index: u32| {
        let start = 0x1000 + u64::from(index) % 0x1000;
        let head = [(1 + index).to_le_bytes(), [0x12, 0, 1, 0]].concat();
        [head, [start.to_le_bytes(), 1_u64.to_le_bytes()].concat()].concat()
    };
    let symbols: Vec<u8> = [vec![0; 24]]
        .into_iter()
        .chain((0..count).map(symbol))
        .flatten()
        .collect();
    let path = directory("symbols").join("elf");
    Elf::with_table(&symbols, &strings).write(&path);
    let binary = Binary::open(&path).unwrap();
    let name = |function| binary.function_name(function).unwrap_or_default().len();
    let bytes: usize = binary.functions().iter().map(name).sum();
    assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
    let said = binary.problems().join("; ");
    assert!(said.contains("too long together"), "{said:?}");
}

#[test]
fn old_compressed_sections_are_read_and_counted_as_others_are() {
    let (info, abbreviations) = Dwarf::unit(0x1000).function("described", 0, 0x100).finish();
    let old = |bytes: &[u8], size: u64| {
        let stream = compressed(bytes).split_off(24);
        [&b"ZLIB"[..], &size.to_be_bytes(), &stream].concat()
    };
    let program = || Elf::with_functions(&[("alpha", 0x1000, 0x100)]);
    let path = directory("old").join("elf");
    program()
        .section(".zdebug_info", &old(&info, info.len() as u64))
        .section(
            ".zdebug_abbrev",
            &old(&abbreviations, abbreviations.len() as u64),
        )
        .write(&path);
    assert_eq!(frames(&Binary::open(&path).unwrap(), 0x1010), ["described"]);
    program()
        .section(".zdebug_info", &old(&info, 900 * MIB))
        .section(".debug_abbrev", &abbreviations)
        .write(&path);
    let binary = Binary::open(&path).unwrap();
    assert_eq!(frames(&binary, 0x1010), [] as [&str; 0]);
    assert!(binary.is_debug_info_too_large() && has_symbol(&binary));
}

#[test]
fn names_that_overlap_take_no_more_than_a_limit_together() {
    let (count, length) = (1500, 60_000);
    let mut unit = Dwarf::unit(0x1000);
    for index in 0..count {
        unit = unit.function_named_at(index, u64::from(index) * 16, 16);
    }
    let (info, abbreviations) = unit.finish();
    let letters = (0..count as usize + length).map(|at| b'a' + (at % 26) as u8);
    let strings: Vec<u8> = letters.chain([0]).collect();
    let path = directory("overlapping").join("elf");
    Elf::with_functions(&[("alpha", 0x9_0000, 0x100)])
        .section(".debug_info", &info)
        .section(".debug_abbrev", &abbreviations)
        .section(".debug_str", &strings)
        .write(&path);
    assert!(fs::metadata(&path).unwrap().len() < MIB);
    let stacks = (0..u64::from(count)).map(|index| vec![(0, 0x1004 + 16 * index)]);
    let profile = profile(&trace(&[&path], stacks));
    let names: usize = profile
        .functions
        .iter()
        .map(|function| function.name.len())
        .sum();
    assert!(names < 100 << 20, "{names}");
    let said = told(&profile, CaveatKind::DebugInfoLimit);
    assert!(said.contains("functions, too long together"), "{said:?}");
}

#[test]
fn calls_inlined_in_one_another_are_cut_where_stacks_multiply_them() {
    let (depth, frames, stacks) = (300, 60, 800_u64);
    let (info, abbreviations) = Dwarf::unit(0x1000).nest("outer", 0x800, depth).finish();
    let path = directory("inlines").join("elf");
    Elf::with_functions(&[("outer", 0x1000, 0x800)])
        .section(".debug_info", &info)
        .section(".debug_abbrev", &abbreviations)
        .write(&path);
    let stacks = (0..stacks).map(|stack| {
        let address = |frame: u64| 0x1000 + (stack * 37 + frame * frame * 11) % 0x7f0;
        (0..frames).map(|frame| (0, address(frame))).collect()
    });
    let trace = trace(&[&path], stacks);
    let profile = profile(&trace);
    assert!(
        profile.paths.len() <= trace.paths.len() * 17 + (1 << 20),
        "{}",
        profile.paths.len()
    );
    let said = told(&profile, CaveatKind::DebugInfoLimit);
    assert!(said.contains("inlined more than"), "{said:?}");
    // One stack shows all of them.
    let one = self::trace(&[&path], [vec![(0, 0x1010)]]);
    assert_eq!(self::profile(&one).paths.len(), 1 + depth);
}

#[test]
fn a_debug_file_of_holes_is_not_read_for_its_checksum() {
    let directory = directory("checksum");
    let path = directory.join("elf");
    let link = [&b"elf.debug\0\0\0"[..], &7_u32.to_le_bytes()].concat();
    Elf::with_functions(&[("alpha", 0x1000, 0x100)])
        .section(".gnu_debuglink", &link)
        .write(&path);
    let debug = directory.join("elf.debug");
    program().write(&debug);
    let file = File::options().write(true).open(&debug).unwrap();
    file.set_len(200 << 30).unwrap();
    let binary = Binary::open(&path).unwrap();
    assert!(has_symbol(&binary) && !binary.has_debug_info());
    let said = binary.problems().join("; ");
    assert!(
        said.contains("elf.debug") && said.contains("checksum was not made"),
        "{said}"
    );
}

#[test]
fn a_writer_that_waits_at_a_fifo_goes_on_waiting() {
    let fifo = directory("fifo").join("fifo");
    if !Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .is_ok_and(|status| status.success())
    {
        skipped("mkfifo cannot be run");
        return;
    }
    let path = fifo.clone();
    let writer = std::thread::spawn(move || fs::write(path, "for another reader"));
    let finder = Finder::default();
    for _ in 0..20 {
        assert!(matches!(finder.find(&fifo, None), Err(Error::NotRegular)));
        assert!(matches!(Binary::open(&fifo), Err(Error::NotRegular)));
        assert!(finder.jit_dump(&fifo, 1, ProcessTimes::default()).is_err());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(!writer.is_finished());
    let mut text = String::new();
    File::open(&fifo)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "for another reader");
    writer.join().unwrap().unwrap();
}

#[test]
fn devices_and_descriptors_are_not_files() {
    let finder = Finder::default();
    for path in [
        "/dev/null",
        "/dev/tty",
        "/proc/self/fd/0",
        "/proc/self/fd/2",
        "/dev/stdin",
    ] {
        let found = finder.find(path, None).map(|_| ());
        let is_refused = matches!(
            found,
            Err(Error::NotRegular | Error::NotFound | Error::Io { .. })
        );
        assert!(is_refused, "{path}: {found:?}");
    }
}

#[test]
fn links_and_debug_links_do_not_lead_out_of_the_root() {
    let directory = directory("root");
    let root = directory.join("root");
    fs::create_dir_all(root.join("opt")).unwrap();
    let outside = directory.join("outside");
    program().write(&outside);
    // Links that are absolute, or that climb, are taken from the root.
    symlink(&outside, root.join("opt/absolute")).unwrap();
    symlink("../../outside", root.join("opt/climbing")).unwrap();
    symlink("/opt/inside", root.join("opt/link")).unwrap();
    let id = b"0123456789abcdefghij";
    let link = [outside.as_os_str().as_bytes(), b"\0", id].concat();
    program()
        .section(".gnu_debugaltlink", &link)
        .write(&root.join("opt/inside"));
    let finder = Finder::new(Some(&root));
    assert!(matches!(
        finder.find("/opt/absolute", None),
        Err(Error::NotFound)
    ));
    assert!(matches!(
        finder.find("/opt/climbing", None),
        Err(Error::NotFound)
    ));
    assert!(matches!(
        finder.find("/../outside", None),
        Err(Error::NotFound)
    ));
    let inside = finder.find("/opt/link", None).unwrap();
    assert_eq!(frames(&inside, 0x1010), ["described"]);
    // Only when it is there does the name that the file gives lead anywhere.
    let alternative = root.join(outside.strip_prefix("/").unwrap());
    fs::create_dir_all(alternative.parent().unwrap()).unwrap();
    fs::copy(&outside, &alternative).unwrap();
    assert!(finder.find(&outside, None).is_ok());
}

#[test]
fn a_program_whose_name_is_not_text_is_found() {
    let name = std::ffi::OsStr::from_bytes(b"pq\xff");
    let path = directory("name").join(name);
    program().write(&path);
    let profile = profile(&trace(&[&path], [vec![(0, 0x1010)]]));
    assert_eq!(profile.functions.iter().next().unwrap().name, "alpha");
    assert_eq!(told(&profile, CaveatKind::MissingBinary), "");
}
