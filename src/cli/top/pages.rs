//! Pages about one function, over the view: its details, its source lines, its machine code.

use proftool::analysis::detail::Rule;
use proftool::analysis::function::Summary;
use proftool::export::text;
use proftool::profile::FunctionId;
use proftool::view::Subject;
use proftool::view::detail::{self, Options};
use proftool::view::page::Page;

use super::super::advice::Situation;
use super::listing::Identity;
use super::source::Source;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    // What `proftool detail` shows.
    Detail,
    // What `proftool annotate` shows.
    Source,
    // What `proftool annotate --asm` shows.
    Assembly,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub what: What,
    pub function: Identity,
    pub width: usize,
}

pub fn text(
    source: &dyn Source,
    subject: &Subject,
    function: Option<FunctionId>,
    asked: &Asked,
    situation: &Situation,
) -> String {
    let Some(function) = function else {
        return format!("{} is in no stack", asked.function.name);
    };
    let page = match asked.what {
        What::Detail => Ok(detail(subject, function)),
        What::Source => source.annotated(subject, function, false),
        What::Assembly => source.annotated(subject, function, true),
    };
    let page = match page {
        Ok(page) => page,
        Err(why) => return why,
    };
    let options = text::Options {
        width: asked.width.max(20),
        color: false,
    };
    let mut bytes = Vec::new();
    match text::write(&mut bytes, &page, &options, situation) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => error.to_string(),
    }
}

fn detail(subject: &Subject, function: FunctionId) -> Page {
    let summary = Summary::of(subject.profile, subject.selection, function, Rule::Strict);
    detail::arrange(subject, summary, &Options::default()).page(subject)
}
