//! What debug information states about functions apart from their names, and how it completes them.

use rustc_hash::FxHashMap;

use super::Identities;
use crate::base::Language;
use crate::binary::UNREAD_ARGUMENTS;
use crate::profile::{Builder, Function, FunctionId, Line, ModuleId};

/// What debug information states about a function, apart from its name.
#[derive(Default)]
pub(super) struct Said {
    pub(super) declared: Option<(String, u32)>,
    pub(super) arguments: Option<String>,
    pub(super) source_name: Option<String>,
    pub(super) language: Language,
}

impl Identities<'_> {
    /// Hands over what debug information says of the functions.
    pub(in crate::symbolize) fn complete(self, builder: &mut Builder) {
        // Instances of one template whose names, made from linkage names, leave out their
        // arguments, get these.
        for (module, directory) in &self.directories {
            builder.directory(*module, directory);
        }
        for (&function, said) in &self.said {
            if let Some(name) = &said.source_name {
                builder.source_name(function, name);
            }
        }
        // Few functions have arguments: only their names are looked for among all.
        let mut instances: FxHashMap<NameAndPlace, u32> = FxHashMap::default();
        for (index, function) in builder.functions_mut().enumerate() {
            let Some(said) = self.said.get(&FunctionId::new(index)) else {
                continue;
            };
            if let Some((file, line)) = said.declared.clone() {
                function.declared_at = Some(Box::new(Line { file, line }));
            }
            // A mangled name says more: an inlined function of Rust may stand in a unit of C.
            if function.language == Language::Unknown {
                function.language = said.language;
            }
            if said.arguments.is_some() {
                instances.insert(name_and_place(function), 0);
            }
        }
        // The demangler cannot read all names; debug information has the arguments.
        for (index, function) in builder.functions_mut().enumerate() {
            let said = self.said.get(&FunctionId::new(index));
            let arguments = said.and_then(|said| said.arguments.as_ref());
            if let Some(arguments) = arguments.filter(|_| function.name.contains(UNREAD_ARGUMENTS))
            {
                function.name = function.name.replacen(UNREAD_ARGUMENTS, arguments, 1);
            }
        }
        if instances.is_empty() {
            return;
        }
        for function in builder.functions_mut() {
            if let Some(count) = instances.get_mut(&name_and_place(function)) {
                *count += 1;
            }
        }
        for (index, function) in builder.functions_mut().enumerate() {
            let said = self.said.get(&FunctionId::new(index));
            let Some(arguments) = said.and_then(|said| said.arguments.as_ref()) else {
                continue;
            };
            let count = instances.get(&name_and_place(function));
            let is_shared = count.is_some_and(|&count| count > 1);
            if is_shared && !function.name.ends_with(arguments.as_str()) {
                if function.linkage_name.is_none() {
                    function.linkage_name = Some(function.name.as_str().into());
                }
                function.name.push_str(arguments);
            }
        }
    }
}

type NameAndPlace = (ModuleId, String, Option<Box<Line>>);

/// What the instances of a template share if their names leave out their arguments.
fn name_and_place(function: &Function) -> NameAndPlace {
    let declared_at = function.declared_at.clone();
    (function.module, function.name.clone(), declared_at)
}
