//! What is known of the samples, and what is not.

use proftool::base::Unit;
use proftool::export::text;
use proftool::view::page::{Block, Page};
use proftool::view::{caveats, number, quality};

use super::super::advice::Situation;
use super::app::App;
use super::text as sentences;

// Whether stacks can be believed, what was lost, caveats.
pub fn page(app: &App, situation: &Situation, width: usize) -> String {
    let Some(seen) = app.current() else {
        return "there are no samples yet".to_owned();
    };
    let mut blocks = vec![Block::Heading("Samples:".into())];
    let samples = super::written::samples(seen.samples);
    // What a recording lost is a caveat.
    let line = if !app.is_recording() {
        format!(
            "{samples} in {}, {} lost in the kernel, {} left out because they arrived too fast",
            sentences::clock(seen.elapsed),
            number::grouped(seen.lost),
            number::grouped(seen.behind)
        )
    } else if seen.elapsed.is_zero() {
        samples
    } else {
        let time = u64::try_from(seen.elapsed.as_nanos()).unwrap_or(u64::MAX);
        format!("{samples} in {}", number::weight(time, &Unit::Nanoseconds))
    };
    blocks.push(Block::Line(line));
    let quality = quality::blocks(&seen.profile);
    if !quality.is_empty() {
        blocks.push(Block::Space);
        blocks.push(Block::Heading("Stacks:".into()));
        blocks.extend(quality);
    }
    blocks.push(Block::Space);
    blocks.push(Block::Heading("What is unknown:".into()));
    let notes = caveats::notes(&seen.profile.caveats);
    if notes.is_empty() {
        blocks.push(Block::Line("nothing known to be missing".into()))
    } else {
        blocks.extend(notes)
    }
    let unit = app.shown().map(|shown| shown.whole.unit.clone());
    let page = Page {
        unit: unit.unwrap_or(Unit::Samples),
        blocks,
    };
    let options = text::Options {
        width: width.max(20),
        color: false,
    };
    let mut bytes = Vec::new();
    match text::write(&mut bytes, &page, &options, situation) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => error.to_string(),
    }
}
