//! What can stand behind a name that several functions share.

use super::super::{FunctionId, Profile, in_brackets};

/// What can stand behind a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Module,
    Declaration,
    ModuleAndDeclaration,
    Address,
    ModuleAndAddress,
}

pub(super) const FORMS: [Form; 5] = [
    Form::Module,
    Form::Declaration,
    Form::ModuleAndDeclaration,
    Form::Address,
    Form::ModuleAndAddress,
];

/// If this number of parts is not enough, the whole path is shown.
pub(super) const MOST_PARTS: usize = 16;

impl Form {
    pub(super) fn label(
        self,
        profile: &Profile,
        name: &str,
        id: FunctionId,
        parts: usize,
    ) -> Option<String> {
        let function = &profile.functions[id];
        let mut text = name.to_owned();
        let mut module = |parts| {
            let module = &profile.modules[function.module];
            let shown = match parts {
                1 => &module.name,
                _ => last_parts(&module.path, parts),
            };
            text.push_str(&in_brackets(shown));
            (!module.name.is_empty()).then_some(())
        };
        match self {
            Form::Module | Form::ModuleAndAddress => module(parts)?,
            Form::ModuleAndDeclaration => module(1)?,
            Form::Declaration | Form::Address => {}
        }
        match self {
            Form::Declaration | Form::ModuleAndDeclaration => {
                text.push_str(&self.declaration(profile, id, parts)?);
            }
            Form::Address | Form::ModuleAndAddress => {
                text.push_str(&format!(" {:#x}", function.address?));
            }
            Form::Module => {}
        }
        Some(text)
    }

    /// The end of the label, if that is a declaration.
    pub(super) fn declaration(
        self,
        profile: &Profile,
        id: FunctionId,
        parts: usize,
    ) -> Option<String> {
        let is_shown = matches!(self, Form::Declaration | Form::ModuleAndDeclaration);
        let line = profile.functions[id].declared_at.as_ref()?;
        let file = last_parts(&line.file, parts);
        is_shown.then(|| format!(" ({file}:{})", line.line))
    }

    pub(super) fn parts(self, profile: &Profile, id: FunctionId) -> usize {
        let function = &profile.functions[id];
        let path = match self {
            Form::Address => "",
            Form::Module | Form::ModuleAndAddress => &profile.modules[function.module].path,
            Form::Declaration | Form::ModuleAndDeclaration => {
                function.declared_at.as_ref().map_or("", |line| &line.file)
            }
        };
        path.matches('/').count() + 1
    }
}

fn last_parts(path: &str, parts: usize) -> &str {
    let start = path.rmatch_indices('/').nth(parts.saturating_sub(1));
    start.map_or(path, |(at, _)| &path[at + 1..])
}
