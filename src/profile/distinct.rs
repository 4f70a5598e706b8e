//! Labels that tell functions of one name apart: the one place where they are made.
//!
//! A function is called by its name. Where several share it, what is known of each stands behind the
//! name; the first of these that no other function of the name has:
//!
//! | label | what it needs |
//! |---|---|
//! | `step [libfoo.so]` | the module |
//! | `step (a.c:12)` | the declaration, by the debug information |
//! | `step [app] (a.c:12)` | both |
//! | `step 0x1139` | the stated address |
//! | `step [app] 0x1139` | both |
//! | `step #2` | nothing: the order in the profile |
//!
//! Names without anything behind them are the program's own: a function of the module that has `main`
//! keeps its name where the others of the name are in other modules. `_start` is the program's, and
//! `_start [ld-linux-x86-64.so.2]` the loader's.
//!
//! Of paths, those of declarations and of modules, only as many parts are shown as are needed:
//! `(net/util.h:7)` and `(disk/util.h:7)`.
//!
//! # Among which functions
//!
//! Labels are those of a profile, never of a page: a filter, a limit or another view of the recording
//! does not change what a function is called. As views differ in how much of the code they read, the
//! functions on stacks are labelled first and by themselves. Functions that only the code has come
//! after them: where a sampled function has the name already, they are the ones that get more than it.

use std::borrow::Cow;
use std::fmt::Write;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxHashMap;

use super::{FunctionId, ModuleId, Profile};
use crate::base::IdVec;

/// The labels of those functions whose names do not tell them apart.
#[derive(Clone, Debug, Default)]
pub struct DistinctNames {
    of: FxHashMap<FunctionId, String>,
}

impl DistinctNames {
    /// The label of a function that shares its name; `None` where the name is enough.
    pub fn of(&self, function: FunctionId) -> Option<&str> {
        self.of.get(&function).map(String::as_str)
    }
}

impl Profile {
    /// What a function is called so that no other function of the profile is called the same.
    pub fn distinct_name(&self, function: FunctionId) -> &str {
        let label = self.distinct_names.of(function);
        label.unwrap_or(&self.functions[function].name)
    }

    /// Finds the distinct names. [`Builder::finish`](super::Builder::finish) does; whoever adds functions
    /// later has to do it again.
    pub fn tell_apart(&mut self) {
        let name = |id: FunctionId| Cow::Borrowed(&*self.functions[id].name);
        let names = Names {
            whose: Whose::All,
            name,
            longer: None,
        };
        self.distinct_names = label(self, &names);
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
    /// A longer name that may do instead of what stands behind the name.
    pub longer: Option<&'a dyn Fn(FunctionId) -> String>,
}

/// The labels of the functions that are not alone with these names, by the rules of the
/// [module's page](self).
pub fn label<'a, N>(profile: &'a Profile, names: &Names<'_, N>) -> DistinctNames
where
    N: Fn(FunctionId) -> Cow<'a, str>,
{
    let on_stack = profile.functions_on_stacks();
    let mut making = Making {
        profile,
        program: program(profile, &on_stack),
        on_stack,
        groups: Vec::new(),
        by_name: HashMap::new(),
        given: HashSet::new(),
        labels: FxHashMap::default(),
    };
    for on_stack in [true, false] {
        if !on_stack && names.whose == Whose::OnStacks {
            break;
        }
        for id in profile.functions.ids() {
            if making.on_stack[id] == on_stack {
                making.add((names.name)(id), id);
            }
        }
        for group in 0..making.groups.len() {
            making.settle(group, on_stack, names.longer);
        }
    }
    DistinctNames { of: making.labels }
}

/// What can stand behind a name.
#[derive(Clone, Copy)]
enum Form {
    Longer,
    Module,
    Declaration,
    ModuleAndDeclaration,
    Address,
    ModuleAndAddress,
}

const FORMS: [Form; 6] = [
    Form::Longer,
    Form::Module,
    Form::Declaration,
    Form::ModuleAndDeclaration,
    Form::Address,
    Form::ModuleAndAddress,
];

/// Beyond so many parts the whole path is shown.
const MOST_PARTS: usize = 16;

/// The functions of one name.
struct Group<'a> {
    name: Cow<'a, str>,
    members: Vec<FunctionId>,
}

/// Who has a name.
#[derive(Clone, Copy)]
enum Holder {
    One(FunctionId),
    Group(usize),
}

/// The labels while they are made.
struct Making<'a> {
    profile: &'a Profile,
    on_stack: IdVec<FunctionId, bool>,
    /// The module that has `main`, if there is one.
    program: Option<ModuleId>,
    /// The names that several have, in the order in which the second one came.
    groups: Vec<Group<'a>>,
    by_name: HashMap<Cow<'a, str>, Holder>,
    given: HashSet<String>,
    labels: FxHashMap<FunctionId, String>,
}

impl<'a> Making<'a> {
    /// Takes a function in under its name.
    fn add(&mut self, name: Cow<'a, str>, id: FunctionId) {
        let group = self.groups.len();
        match self.by_name.get_mut(&name) {
            Some(&mut Holder::Group(group)) => self.groups[group].members.push(id),
            Some(holder @ &mut Holder::One(first)) => {
                *holder = Holder::Group(group);
                let members = vec![first, id];
                self.groups.push(Group { name, members });
            }
            // A label has this name already.
            None if self.given.contains(&*name) => {
                self.by_name.insert(name.clone(), Holder::Group(group));
                let members = vec![id];
                self.groups.push(Group { name, members });
            }
            None => drop(self.by_name.insert(name, Holder::One(id))),
        }
    }

    /// Gives labels to those members of a group that are on stacks, or to the others.
    fn settle(
        &mut self,
        group: usize,
        on_stack: bool,
        longer: Option<&dyn Fn(FunctionId) -> String>,
    ) {
        let members = std::mem::take(&mut self.groups[group].members);
        let name = self.groups[group].name.clone();
        let mut left = members.clone();
        left.retain(|&id| self.on_stack[id] == on_stack);
        if on_stack && longer.is_none() {
            let own = |id: FunctionId| Some(self.profile.functions[id].module) == self.program;
            if left.iter().filter(|&&id| own(id)).count() == 1 {
                left.retain(|&id| !own(id));
            }
        }
        // Whether a function of those on stacks has the name for its label.
        let sampled = members.iter().filter(|&&id| self.on_stack[id]);
        let labelled = sampled.clone().filter(|id| self.labels.contains_key(id));
        let to_be_labelled = if on_stack { left.len() } else { 0 };
        let is_kept = sampled.count() > labelled.count() + to_be_labelled;
        for form in FORMS {
            if left.is_empty() {
                break;
            }
            let text = |id, parts| self.text(&name, form, longer, id, parts);
            // Functions that the whole text does not tell apart need another form.
            let whole = counted(members.iter().filter_map(|&id| text(id, usize::MAX)));
            let alone = |text: &String, among: &HashMap<String, u32>| among.get(text) == Some(&1);
            let can = |id: &FunctionId| text(*id, usize::MAX).is_some_and(|t| alone(&t, &whole));
            let (mut able, unable): (Vec<FunctionId>, _) = left.into_iter().partition(can);
            left = unable;
            drop(whole);
            let most = members.iter().map(|&id| self.parts(form, id)).max();
            let most = most.unwrap_or(1).min(MOST_PARTS);
            for parts in (1..=most).chain([usize::MAX]) {
                if able.is_empty() {
                    break;
                }
                let text = |id, parts| self.text(&name, form, longer, id, parts);
                let texts = counted(members.iter().filter_map(|&id| text(id, parts)));
                let mut settled = Vec::new();
                able.retain(|&id| {
                    let text = text(id, parts)
                        .filter(|text| alone(text, &texts) && !self.is_taken(text, &name, is_kept));
                    let is_left = text.is_none();
                    settled.extend(text.map(|text| (id, text)));
                    is_left
                });
                for (id, text) in settled {
                    self.give(id, text);
                }
            }
            left.extend(able);
        }
        left.sort_unstable();
        let mut number = 0;
        for id in left {
            let text = loop {
                number += 1;
                let text = format!("{name} #{number}");
                if !self.is_taken(&text, &name, is_kept) {
                    break text;
                }
            };
            self.give(id, text);
        }
        self.groups[group].members = members;
    }

    fn give(&mut self, id: FunctionId, label: String) {
        self.given.insert(label.clone());
        self.labels.insert(id, label);
    }

    /// Whether something else is called so. A group's own name can be a label if it `is_kept` by nobody.
    fn is_taken(&self, label: &str, name: &str, is_kept: bool) -> bool {
        self.given.contains(label)
            || (self.by_name.contains_key(label) && (label != name || is_kept))
    }

    /// The label of a function in this form, with so many parts of a path.
    fn text(
        &self,
        name: &str,
        form: Form,
        longer: Option<&dyn Fn(FunctionId) -> String>,
        id: FunctionId,
        parts: usize,
    ) -> Option<String> {
        let function = &self.profile.functions[id];
        let mut text = name.to_owned();
        let mut module = |parts| {
            let module = &self.profile.modules[function.module];
            let shown = match parts {
                1 => &module.name,
                _ => last_parts(&module.path, parts),
            };
            write!(text, " [{shown}]").expect("writing to a String does not fail");
            (!module.name.is_empty()).then_some(())
        };
        match form {
            Form::Longer => return Some(longer?(id)),
            Form::Module | Form::ModuleAndAddress => module(parts)?,
            Form::ModuleAndDeclaration => module(1)?,
            Form::Declaration | Form::Address => {}
        }
        match form {
            Form::Declaration | Form::ModuleAndDeclaration => {
                let line = function.declared_at.as_ref()?;
                let file = last_parts(&line.file, parts);
                write!(text, " ({file}:{})", line.line)
            }
            Form::Address | Form::ModuleAndAddress => write!(text, " {:#x}", function.address?),
            Form::Longer | Form::Module => Ok(()),
        }
        .expect("writing to a String does not fail");
        Some(text)
    }

    /// Of how many parts the path in this form is.
    fn parts(&self, form: Form, id: FunctionId) -> usize {
        let function = &self.profile.functions[id];
        let path = match form {
            Form::Longer | Form::Address => "",
            Form::Module | Form::ModuleAndAddress => &self.profile.modules[function.module].path,
            Form::Declaration | Form::ModuleAndDeclaration => {
                function.declared_at.as_ref().map_or("", |line| &line.file)
            }
        };
        path.matches('/').count() + 1
    }
}

/// The module of the only function on stacks that is called `main`.
fn program(profile: &Profile, on_stack: &IdVec<FunctionId, bool>) -> Option<ModuleId> {
    let functions = profile.functions.enumerate();
    let mut mains = functions.filter(|(id, function)| on_stack[*id] && function.name == "main");
    let (_, main) = mains.next()?;
    mains.next().is_none().then_some(main.module)
}

/// How often each text comes.
fn counted(texts: impl Iterator<Item = String>) -> HashMap<String, u32> {
    let mut counts = HashMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    counts
}

/// The last parts of a path, so many at most.
fn last_parts(path: &str, parts: usize) -> &str {
    let start = path.rmatch_indices('/').nth(parts.saturating_sub(1));
    start.map_or(path, |(at, _)| &path[at + 1..])
}
