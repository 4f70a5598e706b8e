//! What the targets of stacks in other formats have in common: bytes are read as a profile, and what is
//! written of it in each format has the same total when it is read again.

use std::io;

use proftool::analysis::call_stacks::CallStacks;
use proftool::analysis::inclusive;
use proftool::analysis::tree::{Collapse, Stacks};
use proftool::export::{folded, pprof, speedscope};
use proftool::input::{self, Options};
use proftool::profile::{Filter, Selection};
use proftool::view::{Names, Subject};

/// Frames of all stacks together that are written again: few enough to be quick.
const FRAMES: usize = 1 << 16;

/// Reads the bytes, unless they are of a kind that leads to this machine's files.
pub fn check(bytes: &[u8]) {
    let is_other = [&b"PERF"[..], b"2ELIFREP", b"\x7fELF", b"gmon"];
    if is_other.iter().any(|magic| bytes.starts_with(magic)) {
        return;
    }
    let Ok(profile) = input::read(bytes.to_vec(), &Options::default()) else {
        return;
    };
    let Some(event) = profile.main_event() else {
        return;
    };
    let selection = profile.select(event, &Filter::default());
    let own = inclusive::by_function(&profile, &selection).self_weight;
    let sum: u128 = own.iter().map(|&weight| u128::from(weight)).sum();
    assert_eq!(sum, u128::from(selection.total()));
    // What pprof's integers hold.
    if selection.total() == 0 || i64::try_from(selection.total()).is_err() {
        return;
    }
    let stacks = CallStacks::of(&profile, &selection, Collapse::None);
    let depth = |sample: &proftool::analysis::call_stacks::StackSample| {
        stacks.outwards(sample.stack).take(FRAMES).count()
    };
    if stacks.samples.iter().map(depth).sum::<usize>() > FRAMES {
        return;
    }
    let subject = Subject::new(&profile, &selection, Names::Full);
    let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
    again(&selection, |out| folded::write(out, &subject, &tree));
    again(&selection, |out| pprof::write(out, &subject, &stacks));
    again(&selection, |out| speedscope::write(out, &subject, &stacks));
}

fn again(selection: &Selection, write: impl Fn(&mut dyn io::Write) -> io::Result<()>) {
    let mut file = Vec::new();
    assert!(write(&mut file).is_ok());
    let again = input::read(file, &Options::default());
    let Ok(again) = again else {
        panic!("what was written cannot be read: {again:?}");
    };
    let Some(event) = again.main_event() else {
        panic!("no event");
    };
    let read = again.select(event, &Filter::default());
    assert_eq!(read.total(), selection.total());
}
