//! Labels of functions: short, but distinct.

use super::form::Form;
use super::{Names, Naming};
use crate::profile::FunctionId;
use crate::profile::distinct::{self, Whose};

/// What functions are called: so that none is called like another one of the profile, in every view,
/// on every page and in every format.
///
/// [Distinct names](crate::profile::Profile::name) are the same in every format; a short name takes the place
/// of a full one where no other function of the profile has it too.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// In order of function. There may be millions.
    labels: Vec<(FunctionId, Box<str>)>,
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
        let labels = match naming.names {
            Names::Full => {
                let label = |id| (id, profile.name(id).into());
                functions.into_iter().map(label).collect()
            }
            Names::Short | Names::Mangled => {
                let names = distinct::Names {
                    whose,
                    name,
                    fuller: &fuller,
                    longer,
                };
                // Labels and functions are both in order of function, so one walk joins them.
                let mut made = distinct::label(profile, &names)
                    .into_rows()
                    .into_iter()
                    .peekable();
                let label = |id: FunctionId| {
                    while made.next_if(|(other, _)| *other < id).is_some() {}
                    let own = made.next_if(|(other, _)| *other == id);
                    own.unwrap_or_else(|| (id, name(id).into()))
                };
                functions.into_iter().map(label).collect()
            }
        };
        Labels { labels }
    }

    /// The label of a function for which there is one.
    pub fn of(&self, function: FunctionId) -> &str {
        let place = self.labels.binary_search_by_key(&function, |(id, _)| *id);
        place.map_or("", |place| &self.labels[place].1)
    }
}
