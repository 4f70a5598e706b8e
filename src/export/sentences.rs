//! The sentences of a page that are facts with the caller's advice: the same in every format that
//! shows pages.

use std::collections::BTreeSet;

use super::Advice;
use crate::base::Remedy;
use crate::view::number;
use crate::view::page::Block;

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
            let remedies = caveat.remedies();
            if !remedies.iter().all(|remedy| said.contains(remedy)) {
                let hint = advice.on_caveat(caveat);
                both.extend(hint.map(|text| Sentence {
                    kind: Kind::Hint,
                    text,
                }));
                said.extend(remedies);
            }
            both
        }
        Block::Brief(caveat) => sentence(Kind::Note, caveat.to_string()),
        Block::Restored(legend) => {
            let how = advice.on_restored().map_or(String::new(), |how| {
                format!(" {how} shows stacks as recorded.")
            });
            sentence(Kind::Plain, format!("{legend}{how}"))
        }
        Block::Hidden(rows) => {
            let (one, many) = rows.noun;
            let noun = if rows.count == 1 { one } else { many };
            let mut text = format!("… {} more {noun}", number::grouped(rows.count));
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
