//! The sentences of a page that are facts with the caller's advice: the same in every format that
//! shows pages.

use std::collections::BTreeSet;

use super::Advice;
use crate::base::Remedy;
use crate::view::number;
use crate::view::page::{Block, Meaning};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    // Something that a reader has to know to read the figures right.
    Note,
    // What can be done about it.
    Hint,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub kind: Kind,
    pub text: String,
}

// Returns the sentences of a block; nothing for blocks that are not made of sentences, and where
// there is nothing to advise that is not in `said`, to which its advice is added.
pub(super) fn of(block: &Block, advice: &dyn Advice, said: &mut BTreeSet<Remedy>) -> Vec<Sentence> {
    let sentence = |kind, text| vec![Sentence { kind, text }];
    match block {
        Block::Line(text) | Block::Legend { text, .. } => sentence(Kind::Plain, text.clone()),
        Block::Caveat(caveat) => {
            let mut both = sentence(Kind::Note, caveat.to_string());
            if caveat.remedy().is_some_and(|remedy| said.insert(remedy)) {
                let hint = advice.on_caveat(caveat);
                both.extend(hint.map(|text| Sentence {
                    kind: Kind::Hint,
                    text,
                }));
            }
            both
        }
        Block::Brief(caveat) => sentence(Kind::Note, caveat.to_string()),
        Block::Meaning(mark) => {
            let is_restored = matches!(mark, Meaning::Restored | Meaning::ByCode);
            let how = advice.on_restored().filter(|_| is_restored);
            let how = how.map_or(String::new(), |how| {
                format!(" {how} shows stacks as recorded.")
            });
            sentence(Kind::Plain, format!("{}{how}", meaning(*mark)))
        }
        Block::Hidden(rows) => {
            let mut text = format!("… {}", rows.words());
            if let Some(how) = advice.on_hidden(rows) {
                text.push_str(&format!(". To see all: {how}"));
            }
            sentence(Kind::Plain, text)
        }
        Block::OtherEvents(events) => {
            let how = advice
                .on_events()
                .map_or(String::new(), |how| format!(" ({how})"));
            let events: Vec<String> = events
                .iter()
                .map(|(name, samples)| format!("{name} ({})", number::grouped(*samples)))
                .collect();
            sentence(
                Kind::Plain,
                format!("Other events{how}: {}", events.join(", ")),
            )
        }
        Block::BetterStacks(remedy) if !said.contains(remedy) => {
            match advice.on_remedy(*remedy, &BTreeSet::new()) {
                Some(how) => sentence(Kind::Plain, format!("For better stacks: {how}")),
                None => Vec::new(),
            }
        }
        Block::RemedyOf(caveat) => match advice.on_caveat(caveat) {
            Some(how) => sentence(Kind::Plain, format!("For better stacks: {how}")),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn meaning(mark: Meaning) -> &'static str {
    match mark {
        Meaning::Restored => {
            "≈f: in most samples here, f was not recorded; it was restored because every path \
             through the code leads through it."
        }
        Meaning::ByCode => {
            "(inferred): few or no stacks were recorded with this call; it was restored from the \
             code."
        }
        Meaning::AcrossGap => {
            "(frames missing): frames between the two were not recorded; the caller called another \
             function, which led to this one."
        }
        Meaning::ThroughPointer => {
            "(through a pointer): next on the stack; the function that was called may have jumped \
             on to this one."
        }
        Meaning::Collapsed => {
            "f... (N %): a collapsed call of f, which N % of the samples passed; their stacks \
             continue under the nearest f above."
        }
        Meaning::Same => {
            "(+NAME), (+N): more functions on exactly the same samples; they have no self time and \
             do not recurse."
        }
        Meaning::Fold => {
            "⋯ N frames: a chain of calls outside of the project's code with nearly the same \
             total; the last one is named, and the figures are its own."
        }
    }
}
