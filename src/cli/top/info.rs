//! What is known of the samples, and what is not.

use proftool::export::text;
use proftool::view::page::{Block, Page};
use proftool::view::{caveats, number, quality};

use super::super::advice::Situation;
use super::app::App;
use super::text as sentences;

/// The page in lines of at most this width: whether stacks can be believed, what was lost, caveats.
pub fn page(app: &App, width: usize) -> String {
    let Some(seen) = app.current() else {
        return "there are no samples yet".to_owned();
    };
    let mut blocks = vec![Block::Heading("Samples:".into())];
    blocks.push(Block::Line(format!(
        "{} in {}, {} lost in the kernel, {} left out because they arrived too fast",
        super::written::samples(seen.samples),
        sentences::clock(seen.elapsed),
        number::grouped(seen.lost),
        number::grouped(seen.behind)
    )));
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
        unit: unit.unwrap_or(proftool::base::Unit::Samples),
        blocks,
    };
    let options = text::Options {
        width: width.max(20),
        color: false,
    };
    let mut bytes = Vec::new();
    match text::write(&mut bytes, &page, &options, &Situation::Top) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => error.to_string(),
    }
}
