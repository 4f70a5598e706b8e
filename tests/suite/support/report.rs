//! What `report` shows, as words.

use proftool::analysis::owners::Owners;
use proftool::analysis::report::Summary;
use proftool::base::Caveat;
use proftool::export::{Advice, text};
use proftool::profile::{EventId, Filter, Profile};
use proftool::view::page::Page;
use proftool::view::question::Question;
use proftool::view::{Names, Subject, report};

/// What a front end may add to the facts.
pub struct Words;

impl Advice for Words {
    fn on_caveat(&self, caveat: &Caveat) -> Option<String> {
        Some(format!("advice on {}", caveat.kind.name()))
    }

    fn command(&self, question: &Question) -> Option<String> {
        Some(match question {
            Question::AroundHottest(pattern) => format!("tree of {pattern}"),
            other => format!("{other:?}"),
        })
    }
}

/// The report of a profile as text: its first screen, or the whole page.
pub fn shown(profile: &Profile, is_screen: bool, width: usize, advice: &dyn Advice) -> String {
    let selection = profile.select(EventId::new(0), &Filter::default());
    let subject = Subject::new(profile, &selection, Names::Short);
    let options = report::Options {
        limit: Some(10),
        ..report::Options::default()
    };
    let owners = Owners::of_profile(profile, &[]);
    let summary = Summary::of(profile, &selection, owners, !is_screen);
    let view = report::arrange(&subject, &summary, &options);
    let options = text::Options {
        width,
        color: false,
    };
    let height = |page: &Page| text::height(page, &options, advice);
    let page = match is_screen {
        true => view.first_screen(&subject, &height),
        false => view.page(&subject),
    };
    let mut out = Vec::new();
    text::write(&mut out, &page, &options, advice).unwrap();
    String::from_utf8(out).unwrap()
}
