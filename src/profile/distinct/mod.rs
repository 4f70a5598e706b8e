//! Labels that distinguish functions of one name. They are made here and nowhere else.
//!
//! A function is called by its name. Where several share it, what is known of each stands behind
//! the name; the first of these that no other function of the name has:
//!
//! | label | what it needs |
//! |---|---|
//! | `step::<u8>`, `step(int)` | arguments or parameters, for names that leave them out |
//! | `step [libfoo.so]` | the module |
//! | `step (a.c:12)` | the declaration, by the debug information |
//! | `step [app] (a.c:12)` | both |
//! | `lib::step::<a::Item>` | the whole name, for names that leave out parts of it |
//! | `step 0x1139` | the stated address |
//! | `step [app] 0x1139` | both |
//! | `step #2` | nothing: the order in the profile |
//!
//! Names without anything behind them are the program's own: a function of the module that has
//! `main` keeps its name where the others of the name are in other modules. `_start` is the
//! program's, and `_start [ld-linux-x86-64.so.2]` the loader's.
//!
//! Of paths, those of declarations and of modules, only as many parts are shown as are needed:
//! `(net/util.h:7)` and `(disk/util.h:7)`.
//!
//! # Among which functions
//!
//! Labels are those of a profile, never of a page: a filter, a limit or another view of the
//! recording does not change what a function is called. As views differ in how much of the code
//! they read, the functions on stacks are labelled first and by themselves. Functions that are only
//! in the code come after them: if a sampled function already has the name, the others get a longer
//! label. Names that are made up like labels, `f [libfoo.so]`, may depend on what else is shown.

mod form;

use std::borrow::Cow;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};

use self::form::{FORMS, Form, MOST_PARTS};
use super::{FunctionId, Line, ModuleId, Profile};
use crate::base::IdVec;

/// The labels of those functions whose names do not tell them apart.
#[derive(Clone, Debug, Default)]
pub struct DistinctNames {
    /// In order of function. There may be millions.
    of: Vec<(FunctionId, DistinctName)>,
}

/// A label.
#[derive(Clone, Debug, Default)]
pub struct DistinctName {
    /// All of it.
    pub text: Box<str>,
    /// The number of bytes at its end that are the declaration: ` (a.c:12)`.
    pub declaration: u32,
}

impl DistinctNames {
    /// The label of a function that shares its name; `None` where the name is enough.
    pub fn of(&self, function: FunctionId) -> Option<&DistinctName> {
        let place = self.of.binary_search_by_key(&function, |(id, _)| *id);
        Some(&self.of[place.ok()?].1)
    }

    /// The functions that have labels and these, in order of function.
    pub fn into_rows(self) -> Vec<(FunctionId, DistinctName)> {
        self.of
    }
}

impl Profile {
    /// The name of a function that no other function of the profile has.
    pub fn name(&self, function: FunctionId) -> &str {
        let label = self.distinct_names.of(function);
        label.map_or(&self.functions[function].name, |label| &label.text)
    }

    /// What a function with this name can be called where others share the name: the name with what
    /// is known of the function behind it. In another recording of the program, or in a part of
    /// this one, such a text may be its label.
    pub fn possible_labels(
        &self,
        function: FunctionId,
        name: &str,
    ) -> impl Iterator<Item = String> {
        FORMS.into_iter().flat_map(move |form| {
            let most = form.parts(self, function).min(MOST_PARTS);
            let parts = (1..=most).chain([usize::MAX]);
            parts.filter_map(move |parts| form.label(self, name, function, parts))
        })
    }

    /// Finds the distinct names. [`Builder::finish`](super::Builder::finish) does; call it again
    /// after adding functions later.
    pub fn tell_apart(&mut self) {
        let name = |id: FunctionId| Cow::Borrowed(&*self.functions[id].name);
        let names = Names {
            whose: Whose::All,
            name,
            fuller: &[],
            longer: None,
        };
        self.distinct_names = label(self, &names, None);
    }
}

/// Which functions get labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those on stacks only; their labels do not depend on the others.
    OnStacks,
    /// All.
    All,
}

/// How functions are called.
pub struct Names<'a, N> {
    /// Which functions.
    pub whose: Whose,
    /// The name of a function, which others may have too.
    pub name: N,
    /// Names with more of what the name leaves out, from the shortest. Others may have them too.
    pub fuller: &'a [&'a dyn Fn(FunctionId) -> String],
    /// A longer name, which no other function of the profile has, that may do instead of what
    /// stands behind the name.
    pub longer: Option<&'a dyn Fn(FunctionId) -> String>,
}

/// The labels of the functions that are not alone with these names, by the rules of the
/// [module's page](self): of all, or at least of those that have a name of one of `only`.
pub fn label<'a, N>(
    profile: &'a Profile,
    names: &Names<'_, N>,
    only: Option<&[FunctionId]>,
) -> DistinctNames
where
    N: Fn(FunctionId) -> Cow<'a, str>,
{
    // Few of the labels of a large file are shown, and most of the time goes into fuller names.
    let asked: Option<HashSet<Cow<'a, str>>> =
        only.map(|only| only.iter().map(|&id| (names.name)(id)).collect());
    let is_asked = |name: &str| asked.as_ref().is_none_or(|asked| asked.contains(name));
    let on_stack = profile.functions_on_stacks();
    let mut making = Making {
        profile,
        program: program(profile, &on_stack),
        on_stack,
        groups: Vec::new(),
        name: &names.name,
        by_name: HashTable::new(),
        labels: Vec::new(),
        is_labelled: IdVec::filled(false, profile.functions.len()),
        given: HashTable::new(),
        hasher: DefaultHashBuilder::default(),
    };
    for on_stack in [true, false] {
        if !on_stack && names.whose == Whose::OnStacks {
            break;
        }
        for id in profile.functions.ids() {
            if making.on_stack[id] == on_stack {
                making.add(id);
            }
        }
        for group in 0..making.groups.len() {
            if is_asked(&making.groups[group].name) {
                making.settle(group, on_stack, names);
            }
        }
    }
    let mut labels = making.labels;
    labels.sort_unstable_by_key(|&(id, _)| id);
    labels.shrink_to_fit();
    DistinctNames { of: labels }
}

/// The functions of one name.
struct Group<'a> {
    name: Cow<'a, str>,
    members: Vec<FunctionId>,
}

/// Who has a name.
#[derive(Clone, Copy)]
enum Holder {
    One(FunctionId),
    Group(u32),
}

/// The labels while they are made.
struct Making<'a, 'n> {
    profile: &'a Profile,
    on_stack: IdVec<FunctionId, bool>,
    program: Option<ModuleId>,
    /// The names that several have, in the order in which the second one came.
    groups: Vec<Group<'a>>,
    name: &'n dyn Fn(FunctionId) -> Cow<'a, str>,
    by_name: HashTable<(u64, Holder)>,
    labels: Vec<(FunctionId, DistinctName)>,
    is_labelled: IdVec<FunctionId, bool>,
    /// The places of the labels, by their text; seeded for each run, so that no file can foresee
    /// which of them collide.
    given: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// All that a form can show of a function.
type Shown<'a> = (ModuleId, Option<u64>, Option<&'a Line>);

impl<'a> Making<'a, '_> {
    fn add(&mut self, id: FunctionId) {
        let name = (self.name)(id);
        let is_given = self.is_given(&name);
        let hash = self.hasher.hash_one(&*name);
        let is_it = has_name(&self.groups, self.name, hash, &name);
        // There are no more groups than functions, and these have ids of 32 bits.
        let group = self.groups.len() as u32;
        let members = match self.by_name.find_mut(hash, is_it) {
            Some((_, holder)) => match std::mem::replace(holder, Holder::Group(group)) {
                Holder::One(first) => vec![first, id],
                Holder::Group(known) => {
                    *holder = Holder::Group(known);
                    return self.groups[known as usize].members.push(id);
                }
            },
            None => {
                // A label may have this name already.
                let holder = if is_given {
                    Holder::Group(group)
                } else {
                    Holder::One(id)
                };
                self.by_name
                    .insert_unique(hash, (hash, holder), |&(hash, _)| hash);
                if !is_given {
                    return;
                }
                vec![id]
            }
        };
        self.groups.push(Group { name, members });
    }

    fn is_name(&self, name: &str) -> bool {
        let hash = self.hasher.hash_one(name);
        let is_it = has_name(&self.groups, self.name, hash, name);
        self.by_name.find(hash, is_it).is_some()
    }

    fn settle<N>(&mut self, group: usize, on_stack: bool, names: &Names<'_, N>) {
        let members = std::mem::take(&mut self.groups[group].members);
        let name = self.groups[group].name.clone();
        let mut left = members.clone();
        left.retain(|&id| self.on_stack[id] == on_stack);
        if left.is_empty() {
            self.groups[group].members = members;
            return;
        }
        if on_stack && names.longer.is_none() {
            let own = |id: FunctionId| Some(self.profile.functions[id].module) == self.program;
            if left.iter().filter(|&&id| own(id)).count() == 1 {
                left.retain(|&id| !own(id));
            }
        }
        // Whether a function of those on stacks has the name for its label.
        let sampled = members.iter().filter(|&&id| self.on_stack[id]);
        let labelled = sampled.clone().filter(|&&id| self.is_labelled[id]);
        let to_be_labelled = if on_stack { left.len() } else { 0 };
        let is_kept = sampled.count() > labelled.count() + to_be_labelled;
        self.give_fuller(names.fuller, &mut left, &members, (&name, is_kept));
        // No form distinguishes functions that have everything in common; there may be a
        // million of them.
        let (distinct, alike) = if left.is_empty() {
            Default::default()
        } else {
            self.distinct_members(&members)
        };
        let (mut left, mut numbered): (Vec<FunctionId>, Vec<FunctionId>) = left
            .into_iter()
            .partition(|&id| alike.get(&self.shown(id)) == Some(&1));
        for form in FORMS {
            if left.is_empty() {
                break;
            }
            if form == Form::Address
                && let Some(longer) = names.longer
            {
                self.give_longer(&mut left, &name, is_kept, longer);
            }
            // Functions that the whole text does not tell apart need another form.
            let whole = self.counted(&name, form, &distinct, usize::MAX);
            let alone = |text: &String, among: &HashMap<String, u32>| among.get(text) == Some(&1);
            let text = |id: &FunctionId| form.label(self.profile, &name, *id, usize::MAX);
            let can = |id: &FunctionId| text(id).is_some_and(|text| alone(&text, &whole));
            let (mut able, unable): (Vec<FunctionId>, _) = left.into_iter().partition(can);
            left = unable;
            drop(whole);
            let most = distinct
                .iter()
                .map(|&(id, _)| form.parts(self.profile, id))
                .max()
                .unwrap_or(1)
                .min(MOST_PARTS);
            for parts in (1..=most).chain([usize::MAX]) {
                if able.is_empty() {
                    break;
                }
                let texts = self.counted(&name, form, &distinct, parts);
                let text = |id, parts| form.label(self.profile, &name, id, parts);
                let settled = self.free(&mut able, &name, is_kept, |id| {
                    text(id, parts).filter(|text| alone(text, &texts))
                });
                for (id, text) in settled {
                    let declaration = form.declaration(self.profile, id, parts);
                    self.give(id, text, declaration.map_or(0, |it| it.len()));
                }
            }
            left.extend(able);
        }
        if let Some(longer) = names.longer {
            self.give_longer(&mut numbered, &name, is_kept, longer);
        }
        numbered.extend(left);
        numbered.sort_unstable();
        let mut number = 0;
        for id in numbered {
            let text = loop {
                number += 1;
                let text = format!("{name} #{number}");
                if !self.is_taken(&text, &name, is_kept) {
                    break text;
                }
            };
            self.give(id, text, 0);
        }
        self.groups[group].members = members;
    }

    /// Gives each function that is left the first of these forms that is its own among the members.
    fn give_fuller(
        &mut self,
        forms: &[&dyn Fn(FunctionId) -> String],
        left: &mut Vec<FunctionId>,
        members: &[FunctionId],
        (name, is_kept): (&str, bool),
    ) {
        for fuller in forms {
            if left.is_empty() {
                break;
            }
            let texts: HashMap<FunctionId, String> =
                members.iter().map(|&id| (id, fuller(id))).collect();
            let mut counts: HashMap<&str, u32> = HashMap::new();
            for text in texts.values() {
                *counts.entry(text).or_default() += 1;
            }
            let is_alone = |text: &&String| counts.get(text.as_str()) == Some(&1);
            let text = |id| texts.get(&id).filter(is_alone).cloned();
            for (id, text) in self.free(left, name, is_kept, text) {
                self.give(id, text, 0);
            }
        }
    }

    fn free(
        &self,
        left: &mut Vec<FunctionId>,
        name: &str,
        is_kept: bool,
        text: impl Fn(FunctionId) -> Option<String>,
    ) -> Vec<(FunctionId, String)> {
        let mut settled = Vec::new();
        left.retain(|&id| {
            let text = text(id).filter(|text| !self.is_taken(text, name, is_kept));
            let is_left = text.is_none();
            settled.extend(text.map(|text| (id, text)));
            is_left
        });
        settled
    }

    fn give_longer(
        &mut self,
        left: &mut Vec<FunctionId>,
        name: &str,
        is_kept: bool,
        longer: &dyn Fn(FunctionId) -> String,
    ) {
        for (id, text) in self.free(left, name, is_kept, |id| Some(longer(id))) {
            let known = self.profile.distinct_names.of(id);
            self.give(
                id,
                text,
                known.map_or(0, |known| known.declaration as usize),
            );
        }
    }

    fn give(&mut self, id: FunctionId, label: String, declaration: usize) {
        let hash = |label: &str| self.hasher.hash_one(label);
        let labels = &self.labels;
        let place = labels.len() as u32;
        let hash_of = |&place: &u32| hash(&labels[place as usize].1.text);
        self.given.insert_unique(hash(&label), place, hash_of);
        let label = DistinctName {
            text: label.into_boxed_str(),
            declaration: declaration as u32,
        };
        self.labels.push((id, label));
        self.is_labelled[id] = true;
    }

    /// Whether a label is this.
    fn is_given(&self, text: &str) -> bool {
        let is_same = |&place: &u32| *self.labels[place as usize].1.text == *text;
        self.given
            .find(self.hasher.hash_one(text), is_same)
            .is_some()
    }

    fn shown(&self, id: FunctionId) -> Shown<'a> {
        let function = &self.profile.functions[id];
        let declared_at = function.declared_at.as_deref();
        (function.module, function.address, declared_at)
    }

    /// One representative of the functions that have everything in common, the size of each such
    /// group, and the group by its properties.
    fn distinct_members(
        &self,
        members: &[FunctionId],
    ) -> (Vec<(FunctionId, u32)>, HashMap<Shown<'a>, u32>) {
        let mut counts: HashMap<Shown<'a>, u32> = HashMap::new();
        let mut first = Vec::new();
        for &id in members {
            let count = counts.entry(self.shown(id)).or_default();
            if *count == 0 {
                first.push(id);
            }
            *count += 1;
        }
        let count = |id| (id, counts[&self.shown(id)]);
        (first.into_iter().map(count).collect(), counts)
    }

    /// Whether something else is called so. A group's own name can be a label if it `is_kept` by
    /// nobody.
    fn is_taken(&self, label: &str, name: &str, is_kept: bool) -> bool {
        self.is_given(label) || (self.is_name(label) && (label != name || is_kept))
    }

    /// Counts how often each label of this form occurs. `distinct` has one function for all of
    /// which the same is known, with their number.
    fn counted(
        &self,
        name: &str,
        form: Form,
        distinct: &[(FunctionId, u32)],
        parts: usize,
    ) -> HashMap<String, u32> {
        let mut counts = HashMap::new();
        for &(id, count) in distinct {
            if let Some(text) = form.label(self.profile, name, id, parts) {
                *counts.entry(text).or_default() += count;
            }
        }
        counts
    }
}

fn has_name<'a>(
    groups: &[Group<'a>],
    name_of: &dyn Fn(FunctionId) -> Cow<'a, str>,
    hash: u64,
    name: &str,
) -> impl FnMut(&(u64, Holder)) -> bool {
    move |&(other, holder)| {
        other == hash
            && match holder {
                Holder::One(id) => name_of(id) == name,
                Holder::Group(group) => groups[group as usize].name == name,
            }
    }
}

fn program(profile: &Profile, on_stack: &IdVec<FunctionId, bool>) -> Option<ModuleId> {
    let functions = profile.functions.enumerate();
    let mut mains = functions.filter(|(id, function)| on_stack[*id] && function.name == "main");
    let (_, main) = mains.next()?;
    mains.next().is_none().then_some(main.module)
}
