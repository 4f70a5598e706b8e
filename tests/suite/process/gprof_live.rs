//! GNU gprof itself, where it is installed: random call graphs give the same text. Many more of
//! them are in `scripts/compare_gprof.py`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use proftool::export::gprof;
use proftool::symbolize::StaticCalls;

use crate::support::gmon::figures;
use crate::support::skipped;

/// The number of functions of the program, and of graphs.
const FUNCTIONS: usize = 24;

const GRAPHS: u64 = 24;

/// Numbers that look random, the same in every run (a linear congruential generator, Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What a command prints; `None` where it is missing or fails.
fn output(command: &mut Command) -> Option<Vec<u8>> {
    crate::support::watch();
    let output = command.output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// A program with many functions, and their addresses.
fn program() -> Option<(PathBuf, Vec<u64>)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("many.c"), folder.join("many"));
    let mut text = String::from("volatile int x;\n");
    for i in 0..FUNCTIONS {
        let local = if i % 5 == 2 {
            "static __attribute__((used)) "
        } else {
            ""
        };
        let name = if i % 7 == 3 { "_g" } else { "f" };
        writeln!(
            text,
            "{local}void {name}{i}(void) {{ {} }}",
            "x++; ".repeat(i % 6 + 1)
        )
        .unwrap();
    }
    text.push_str("int main(void) { return 0; }\n");
    std::fs::write(&source, text).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O0", "-pg", "-fno-pie", "-no-pie", "-o"])
        .args([&program, &source]);
    output(&mut gcc)?;
    let listed = output(Command::new("nm").arg("-n").arg(&program))?;
    let listed = String::from_utf8(listed).unwrap();
    let addresses = listed.lines().filter_map(|line| {
        let (address, name) = (line.get(..16)?, line.get(19..)?);
        let ours = name.starts_with('f') || name.starts_with("_g");
        let digits = name.trim_start_matches(['_', 'f', 'g']);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        (ours && is_number).then(|| u64::from_str_radix(address, 16).unwrap())
    });
    let addresses: Vec<u64> = addresses.collect();
    assert_eq!(addresses.len(), FUNCTIONS);
    Some((program, addresses))
}

/// A gmon.out with random arcs between the functions and random ticks.
fn gmon(random: &mut Random, functions: &[u64]) -> Vec<u8> {
    let mut bytes = b"gmon\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let buckets = 1 + random.below(3);
    let size = 2 * buckets;
    let low = functions[0];
    let number = (functions[functions.len() - 1] + 32 - low) / size;
    let mut ticks = vec![0u16; number as usize];
    for _ in 0..random.below(40) {
        ticks[random.below(number) as usize] = 1 + random.below(50) as u16;
    }
    bytes.push(0);
    bytes.extend(low.to_le_bytes());
    bytes.extend((low + number * size).to_le_bytes());
    bytes.extend((number as u32).to_le_bytes());
    bytes.extend(100u32.to_le_bytes());
    bytes.extend(b"seconds\0\0\0\0\0\0\0\0s");
    ticks
        .iter()
        .for_each(|ticks| bytes.extend(ticks.to_le_bytes()));
    let forwards_only = random.below(2) == 0;
    for _ in 0..=random.below(60) {
        let mut ends = [0, 0].map(|_| functions[random.below(functions.len() as u64) as usize]);
        if forwards_only {
            ends.sort_unstable();
        }
        bytes.push(1);
        bytes.extend((ends[0] + 1).to_le_bytes());
        bytes.extend(ends[1].to_le_bytes());
        bytes.extend((random.below(9) as u32).to_le_bytes());
    }
    bytes
}

#[test]
fn random_graphs_give_the_texts_of_gprof() {
    if output(Command::new("gprof").arg("--version")).is_none() {
        skipped("gprof is not installed");
        return;
    }
    let Some((program, functions)) = program() else {
        skipped("gcc cannot build with -pg here");
        return;
    };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("random.gmon");
    let mut random = Random(1);
    for number in 0..GRAPHS {
        std::fs::write(&file, gmon(&mut random, &functions)).unwrap();
        let figures = figures(&file, &program, StaticCalls::Off);
        for (args, zeros) in [
            (&["-q"][..], false),
            (&["-q", "-z"], true),
            (&["-p"], false),
        ] {
            let mut ours = Vec::new();
            let options = gprof::Options { zeros };
            match args {
                ["-p"] => gprof::write_flat(&mut ours, &figures, &options),
                _ => gprof::write_graph(&mut ours, &figures, &options),
            }
            .unwrap();
            let mut gprof = Command::new("gprof");
            gprof.arg("-b").args(args).args([&program, &file]);
            let theirs = output(&mut gprof).unwrap();
            assert!(
                ours == theirs,
                "graph {number}, gprof -b {}: not\n{}but\n{}",
                args.join(" "),
                String::from_utf8_lossy(&theirs),
                String::from_utf8_lossy(&ours)
            );
        }
    }
}

/// gprof2dot reads the text as it reads gprof's.
#[test]
fn gprof2dot_reads_the_classic_text() {
    let Some(case) = crate::support::cases("gmon.out")
        .into_iter()
        .find(|case| case.ends_with("p06_two_cycles"))
    else {
        return;
    };
    if output(Command::new("gprof2dot").arg("--help")).is_none() {
        skipped("gprof2dot is not installed");
        return;
    }
    let figures = figures(&case.join("gmon.out"), &case.join("prog"), StaticCalls::Off);
    let mut text = Vec::new();
    gprof::write_graph(&mut text, &figures, &gprof::Options::default()).unwrap();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("classic.txt");
    std::fs::write(&file, text).unwrap();
    let mut gprof2dot = Command::new("gprof2dot");
    let drawn = output(gprof2dot.args(["-f", "prof"]).arg(&file)).unwrap();
    let drawn = String::from_utf8(drawn).unwrap();
    assert!(
        drawn.contains("digraph") && drawn.contains("main"),
        "{drawn}"
    );
}
