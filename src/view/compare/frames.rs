//! What a flame graph of the new runs shows of each function.

use super::{Compared, Row, is_more, rounded};
use crate::base::IdVec;
use crate::compare::{FunctionChange, Side};
use crate::profile::FunctionId;
use crate::view::changes::{ChangedFrames, FrameChange, Tint};
use crate::view::number;

/// How many functions that are gone a picture names.
const GONE: usize = 10;

impl Compared<'_> {
    /// What a flame graph of the new runs shows of each function, by its place in the comparison.
    pub fn frames(&self, places: &IdVec<FunctionId, Option<usize>>) -> ChangedFrames {
        let functions = &self.comparison.functions;
        let of = |place: &Option<usize>| {
            let change = place.map(|place| self.frame(&functions[place]));
            change.unwrap_or_default()
        };
        let functions: Vec<FrameChange> = places.iter().map(of).collect();
        ChangedFrames {
            title: format!("What has changed: {}", self.sides[1]),
            summary: [self.subject(), self.all()],
            gone: self.gone(),
            functions: functions.into(),
        }
    }

    fn frame(&self, it: &FunctionChange) -> FrameChange {
        let has_figures = [it.own, it.total]
            .iter()
            .any(|it| it.base > 0.0 || it.new > 0.0);
        if !has_figures {
            let text = "inlined on the other side, counted for its caller";
            return FrameChange {
                tint: Tint::Neutral,
                text: text.to_owned(),
            };
        }
        let was = self.was(it).map(|was| format!(" (was {was}?)"));
        let was = was.unwrap_or_default();
        if it.own.verdict.is_change() {
            return FrameChange {
                tint: match is_more(&it.own) {
                    true => Tint::Worse,
                    false => Tint::Better,
                },
                text: self.in_words("self", &it.own) + &was,
            };
        }
        FrameChange {
            tint: match (it.total.verdict.is_change(), is_more(&it.total)) {
                (false, _) => Tint::Neutral,
                (true, true) => Tint::WorseByCallees,
                (true, false) => Tint::BetterByCallees,
            },
            text: self.in_words("total", &it.total) + &was,
        }
    }

    // What is not in the picture of the new runs.
    fn gone(&self) -> Option<String> {
        let functions = self.comparison.functions.iter().enumerate();
        let (known, other): (Vec<Row>, Vec<Row>) = functions
            .filter(|(_, it)| !it.is_on(Side::New) && it.total.base > 0.0)
            .partition(|(_, it)| [it.own, it.total].iter().any(|it| it.verdict.is_change()));
        let unit = &self.comparison.event.unit;
        let mut parts: Vec<String> = (known.iter().take(GONE))
            .map(|&(place, it)| {
                let weight = number::weight(rounded(it.total.base), unit);
                format!("{} {weight}", self.label(place))
            })
            .collect();
        let more = known.len().saturating_sub(GONE);
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        if !other.is_empty() {
            let noun = if other.len() == 1 {
                "function"
            } else {
                "functions"
            };
            parts.push(format!("{} undecided {noun}", other.len()));
        }
        let of = match known.is_empty() {
            true => String::new(),
            false => format!(" (total {})", self.per()),
        };
        (!parts.is_empty()).then(|| format!("Only in base{of}: {}", parts.join(", ")))
    }
}
