//! Labels of functions: short, but distinct; and what views say of a function behind its label.

use super::form::Form;
use super::{Names, Naming};
use crate::profile::distinct::{self, Whose};
use crate::profile::{DistinctName, FunctionId};

/// A function as a view shows it: what it is called, and what is said of it there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// What it is called.
    pub text: String,
    /// The number of bytes at its end that are the declaration: ` (a.c:12)`.
    pub declaration: usize,
    /// Whether it was [restored](super::INFERRED) in most samples here.
    pub is_restored: bool,
    /// What stands behind it.
    pub marks: Vec<Mark>,
}

/// What a view says of a function, or of a call of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is inlined into its caller.
    Inlined,
    /// Another function is inlined into it.
    InlinedInto,
    /// The call is known from the code.
    InCode,
    /// The call is collapsed: this part of a whole took it.
    Collapsed {
        /// The weight that took the call.
        part: u64,
        /// The weight of all samples.
        whole: u64,
    },
    /// The number of its cycle.
    Cycle(usize),
    /// The number of its entry in a listing; 0 for none.
    Index(u32),
    /// It leads back to the function that the view is about.
    LeadsBack,
    /// The call was restored from the code.
    ByCode,
    /// Frames are missing between the caller and it.
    AcrossGap,
    /// Its caller calls through a pointer.
    ThroughPointer,
    /// This function is on exactly the same samples.
    Same(String),
    /// So many functions are on exactly the same samples.
    SameNumber(usize),
    /// Some words.
    Remark(String),
}

impl From<String> for Label {
    fn from(text: String) -> Label {
        Label {
            text,
            ..Label::default()
        }
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Label {
        text.to_owned().into()
    }
}

impl Label {
    /// The same with what is to be said of it, if there is something.
    pub fn with(mut self, mark: impl Into<Option<Mark>>) -> Label {
        self.marks.extend(mark.into());
        self
    }
}

/// What functions are called: so that none is called like another one of the profile, in every
/// view, on every page and in every format.
///
/// [Distinct names](crate::profile::Profile::name) are the same in every format; a short name takes
/// the place of a full one where no other function of the profile has it too.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// In order of function. There may be millions.
    labels: Vec<(FunctionId, DistinctName)>,
}

impl Labels {
    /// Labels for these functions.
    pub fn new(naming: &Naming, functions: impl IntoIterator<Item = FunctionId>) -> Labels {
        let profile = naming.profile;
        let name = |id: FunctionId| naming.plain_name(id);
        let longer = |id: FunctionId| profile.name(id).to_owned();
        let mut functions: Vec<FunctionId> = functions.into_iter().collect();
        functions.sort_unstable();
        functions.dedup();
        let on_stacks = profile.functions_on_stacks();
        let whose = if functions.iter().all(|&id| on_stacks[id]) {
            Whose::OnStacks
        } else {
            Whose::All
        };
        let is_short = naming.names == Names::Short;
        let fuller = |id: FunctionId, form: Form| naming.name_in(id, form).into_owned();
        let fuller = Form::FULLER.map(|form| move |id| fuller(id, form));
        let fuller: Vec<&dyn Fn(FunctionId) -> String> = (fuller.iter().filter(|_| is_short))
            .map(|it| it as _)
            .collect();
        let longer = is_short.then_some(&longer as _);
        let whole = |text: &str| DistinctName {
            text: text.into(),
            declaration: 0,
        };
        let labels = match naming.names {
            Names::Full => {
                let known = |id| profile.distinct_names.of(id).cloned();
                let label = |id| known(id).unwrap_or_else(|| whole(&profile.functions[id].name));
                functions.into_iter().map(|id| (id, label(id))).collect()
            }
            Names::Short | Names::Mangled => {
                let names = distinct::Names {
                    whose,
                    name,
                    fuller: &fuller,
                    longer,
                };
                // Labels and functions are both in order of function, so one walk joins them.
                let mut made = distinct::label(profile, &names, Some(&functions))
                    .into_rows()
                    .into_iter()
                    .peekable();
                let label = |id: FunctionId| {
                    while made.next_if(|(other, _)| *other < id).is_some() {}
                    let own = made.next_if(|(other, _)| *other == id);
                    own.unwrap_or_else(|| (id, whole(&name(id))))
                };
                functions.into_iter().map(label).collect()
            }
        };
        Labels { labels }
    }

    /// The label of a function for which there is one.
    pub fn of(&self, function: FunctionId) -> &str {
        self.known(function).map_or("", |known| &known.text)
    }

    /// The same as a value to be shown.
    pub fn label(&self, function: FunctionId) -> Label {
        self.known(function)
            .map_or_else(Label::default, |known| Label {
                text: known.text.to_string(),
                declaration: known.declaration as usize,
                ..Label::default()
            })
    }

    fn known(&self, function: FunctionId) -> Option<&DistinctName> {
        let place = self.labels.binary_search_by_key(&function, |(id, _)| *id);
        Some(&self.labels[place.ok()?].1)
    }
}
