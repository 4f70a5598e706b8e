//! Finds the functions that the command line names.

use std::path::Path;
use std::process::ExitCode;

use proftool::analysis::called;
use proftool::analysis::inclusive::{self, FunctionWeights};
use proftool::export::shown::Shown;
use proftool::names::search::{self, Found};
use proftool::names::{self, GAP, Label, short_name};
use proftool::profile::{EventId, Filter, Function, FunctionId, Profile};
use proftool::view::number;
use proftool::view::{Names, Subject};

use super::failure;
use super::query::Query;

// Functions that are listed if a name is ambiguous.
const TOLD: usize = 20;

// Functions that are named if a page shows them alike.
const ALSO_SHOWN: usize = 3;

// The exit status where several functions fit.
const NOT_EXACT: u8 = 2;

// The function that `wanted` names among those of the selected samples; or, after saying on stderr
// which ones fit as well or have similar names, the exit status.
pub fn find(subject: &Subject, wanted: &str, query: &Query) -> Result<FunctionId, ExitCode> {
    let (candidates, weights) = by_total(subject);
    match search::find(&subject.naming(), &candidates, wanted) {
        Found::One(function) => Ok(function),
        Found::Several(fitting) => {
            if let Some(first) = heaviest_shown_as(&fitting, wanted) {
                return Ok(first);
            }
            several(subject, &weights, wanted, &fitting);
            Err(NOT_EXACT.into())
        }
        Found::Nothing(similar) => {
            let message = format!("no function in the selected samples is named {wanted}");
            failure::line("proftool", &message);
            let hint = if similar.is_empty() {
                let list = query.command("flat --names full --limit 0 --min 0");
                format!("all functions: {list}")
            } else {
                format!("similar names: {}", similar.join(", "))
            };
            failure::line("hint", &hint);
            Err(ExitCode::FAILURE)
        }
    }
}

// The first of these functions, which fit equally well, that a page shows as `wanted` where its
// width does not suffice. Says on stderr which others it shows so.
fn heaviest_shown_as(fitting: &[(FunctionId, Label)], wanted: &str) -> Option<FunctionId> {
    let width = names::display_width(wanted);
    let is_shown_so = |label: &Label| Shown::label(label).shortened(width) == wanted;
    let mut shown: Vec<_> = fitting
        .iter()
        .filter(|(_, label)| is_shown_so(label))
        .collect();
    // Labels next to others like them are shortened so that they differ.
    if shown.is_empty() && wanted.contains(GAP) {
        shown.extend(fitting);
    }
    let (&&(first, ref label), others) = shown.split_first()?;
    also_shown(
        &label.text,
        others.iter().map(|(_, label)| &*label.text),
        wanted,
    );
    Some(first)
}

// The function that a page shows as `label` where its width does not suffice: of several, which it
// then says on stderr, the one with the largest total over all samples of the event. `None` for a
// label without parts left out.
pub fn shown_as(profile: &Profile, event: EventId, label: &str) -> Option<FunctionId> {
    if !label.contains(GAP) {
        return None;
    }
    let selection = profile.select(event, &Filter::default());
    let subject = Subject::new(profile, &selection, Names::Short);
    let (candidates, _) = by_total(&subject);
    match search::find(&subject.naming(), &candidates, label) {
        Found::One(function) => Some(function),
        Found::Several(fitting) => heaviest_shown_as(&fitting, label),
        Found::Nothing(_) => None,
    }
}

// The functions of the selected samples and of counted calls, the one with the largest total first,
// and the weights.
fn by_total(subject: &Subject) -> (Vec<FunctionId>, FunctionWeights) {
    let weights = inclusive::by_function(subject.profile, subject.selection);
    let mut functions = called::ran(subject.profile, &weights);
    let ranks = inclusive::name_ranks(subject.profile);
    functions.sort_by_key(|&id| (std::cmp::Reverse(weights.total[id]), ranks[id]));
    (functions, weights)
}

// The function that is named is a file: the arguments come in another order.
pub fn hint_at_order(command: &str, function: &str) {
    if Path::new(function).is_file() {
        let order = format!("the function comes first: proftool {command} FUNCTION FILE");
        failure::line("hint", &order);
    }
}

// Among all of the profile, sampled or not: by label or name, else by a part of the name, else as a
// regular expression. An error when there is none.
pub fn all(subject: &Subject, text: &str) -> anyhow::Result<Vec<FunctionId>> {
    let candidates: Vec<FunctionId> = subject.profile.functions.ids().collect();
    match search::find(&subject.naming(), &candidates, text) {
        Found::One(function) => Ok(vec![function]),
        Found::Several(fitting) => Ok(fitting.into_iter().map(|(id, _)| id).collect()),
        Found::Nothing(similar) => Err(not_found(text, &similar)),
    }
}

// The one with this label, those of the name in full or as in the symbol table, or else those of
// the short name. An error when there is none.
pub fn exactly(profile: &Profile, name: &str) -> anyhow::Result<Vec<FunctionId>> {
    let name = search::unmarked(name);
    let with = |is_it: &dyn Fn(&Function) -> bool| -> Vec<FunctionId> {
        let functions = profile.functions.enumerate();
        let found = functions.filter(|(_, f)| is_it(f));
        found.map(|(id, _)| id).collect()
    };
    let mut ids = profile.functions.ids();
    let label = |id: FunctionId| Some(&*profile.distinct_names.of(id)?.text);
    if let Some(labelled) = ids.find(|&id| label(id) == Some(name)) {
        return Ok(vec![labelled]);
    }
    let full = with(&|f| f.name == name || f.linkage_name.as_deref() == Some(name));
    if !full.is_empty() {
        return Ok(full);
    }
    let short = with(&|f| short_name(f) == name);
    if short.is_empty() {
        Err(not_found(name, &[]))
    } else {
        Ok(short)
    }
}

// Which function was taken, and which other ones a narrow page shows alike.
fn also_shown<'a>(label: &str, others: impl ExactSizeIterator<Item = &'a str>, wanted: &str) {
    if others.len() == 0 {
        return;
    }
    let count = others.len();
    let mut names: Vec<&str> = others.take(ALSO_SHOWN).collect();
    if count > ALSO_SHOWN {
        names.push("…");
    }
    let text = format!(
        "{wanted} is {label}, the one with the largest total; shown alike: {}",
        names.join(", ")
    );
    failure::line("note", &text);
}

fn not_found(text: &str, similar: &[String]) -> anyhow::Error {
    let hint = (!similar.is_empty()).then(|| format!("similar names: {}", similar.join(", ")));
    failure::hinted(format!("there is no function {text}"), hint)
}

fn several(
    subject: &Subject,
    weights: &FunctionWeights,
    text: &str,
    fitting: &[(FunctionId, Label)],
) {
    let message = format!("{} functions match {text}; total and name:", fitting.len());
    failure::line("proftool", &message);
    let whole = subject.selection.total();
    for (function, label) in fitting.iter().take(TOLD) {
        let share = number::percent(weights.total[*function], whole, 2);
        failure::plain(&format!("{share:>7} %  {}", label.text));
    }
    if fitting.len() > TOLD {
        failure::plain(&format!("           … {} more", fitting.len() - TOLD));
    }
    failure::line(
        "hint",
        "use one of these names exactly as printed, in quotes",
    );
}
