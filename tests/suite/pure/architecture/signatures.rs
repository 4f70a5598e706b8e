//! What the library's public signatures name of packages before 1.0.
//!
//! A new version of such a package may change its types at any time, and with them the interface
//! of every program that uses this library. So what a user can reach is free of them: parameters,
//! results, public fields, variants, aliases, bounds, and the heads of implementations
//! (`impl From<gimli::Error> for Error`). What is private may use them freely.
//!
//! A file is public if every module above it is declared by `pub mod`, and an item of a private one
//! if a `pub use` that is public itself hands it on.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::map::Map;
use super::names::{NamedPath, Names, ident, is_ident, is_punct, tokens};
use super::rules::{resolve, unstable_packages};
use super::source::Sources;
use super::tree::{Tree, module_path, room_of};

/// A path from the crate's root, or from a package.
type FullPath = Vec<String>;

/// Something that a user of the library sees if its owner is public.
struct Signature {
    /// What must be public: the item itself, or the type that it belongs to.
    owner: FullPath,
    /// As it is reported.
    shown: String,
    line: usize,
    /// The paths that it names, as they are written.
    paths: Vec<FullPath>,
}

/// Adds a line for every package before 1.0 in a public signature.
pub fn check(
    map: &Map,
    tree: &Tree,
    sources: &Sources,
    names: &BTreeMap<&str, Names>,
    told: &mut Vec<String>,
) {
    let packages = unstable_packages(tree.text("Cargo.toml"));
    let outside = |file: &str| map.room(room_of(file)).is_some_and(|room| room.outside);
    let mut signatures: Vec<(&str, &Signature)> = Vec::new();
    let mut aliases: Vec<(&str, &Signature)> = Vec::new();
    let mut private: BTreeSet<&FullPath> = BTreeSet::new();
    let mut reexports: Vec<(&str, &NamedPath)> = Vec::new();
    for (&file, source) in sources.iter().filter(|(file, _)| !outside(file)) {
        let read = &source.items;
        signatures.extend(read.signatures.iter().map(|found| (file, found)));
        aliases.extend(read.aliases.iter().map(|found| (file, found)));
        private.extend(&read.private);
        reexports.extend(read.reexports.iter().map(|found| (file, found)));
    }
    let exports = Exports::of(names, &reexports);
    // A private alias hides a foreign type, and an alias may hide an alias.
    let mut foreign: BTreeMap<FullPath, String> = BTreeMap::new();
    loop {
        let before = foreign.len();
        for (file, alias) in &aliases {
            if let Some(package) = names_of(file, alias, names, &packages, &foreign) {
                foreign.insert(alias.owner.clone(), package);
            }
        }
        if foreign.len() == before {
            break;
        }
    }
    for (file, signature) in &signatures {
        let owner = defined(file, &signature.owner, names);
        if !private.contains(&owner)
            && exports.has(&owner)
            && let Some(package) = names_of(file, signature, names, &packages, &foreign)
        {
            told.push(format!(
                "{file}:{}: public `{}` names a type of `{package}`, which is before 1.0",
                signature.line, signature.shown
            ));
        }
    }
}

/// The path of a type: as it is written in the file, or where a `use` of the file has it from.
fn defined(file: &str, owner: &FullPath, names: &BTreeMap<&str, Names>) -> FullPath {
    let (module, name) = owner.split_at(owner.len() - 1);
    // Imports of a file are not those of a module inside of it.
    let imports = &names[file].paths;
    let import = imports
        .iter()
        .find(|path| path.imported_as.as_ref() == Some(&name[0]))
        .filter(|_| module_path(file) == module);
    import
        .and_then(|path| resolve(file, path))
        .unwrap_or_else(|| owner.clone())
}

/// The first package before 1.0 that a signature names.
fn names_of(
    file: &str,
    signature: &Signature,
    names: &BTreeMap<&str, Names>,
    packages: &[String],
    foreign: &BTreeMap<FullPath, String>,
) -> Option<String> {
    let found = names.get(file)?;
    signature.paths.iter().find_map(|path| {
        let import = found
            .paths
            .iter()
            .find(|named| path[0] != "self" && named.imported_as.as_ref() == Some(&path[0]));
        let full = match import {
            Some(import) => {
                let first = &import.segments[0];
                let local = ["crate", "self", "super"].contains(&first.as_str());
                let mut full = if local {
                    resolve(file, import)?
                } else {
                    import.segments.clone()
                };
                full.retain(|name| name != "self");
                full.extend(path[1..].iter().cloned());
                full
            }
            None => path.clone(),
        };
        let package = packages.iter().find(|package| **package == full[0]);
        let here = || [module_path(file), full.clone()].concat();
        let alias = || foreign.get(&full).or_else(|| foreign.get(&here()));
        package.or_else(alias).cloned()
    })
}

/// The paths of names in tokens, as they are written.
fn paths_in(tokens: &[TokenTree], paths: &mut Vec<FullPath>) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => paths_in(&self::tokens(group.stream()), paths),
            TokenTree::Ident(first) => {
                let mut path = vec![first.to_string()];
                while is_punct(tokens, at + 1, ':')
                    && is_punct(tokens, at + 2, ':')
                    && let Some(next) = ident(tokens, at + 3)
                {
                    path.push(next);
                    at += 3;
                }
                paths.push(path);
            }
            _ => {}
        }
        at += 1;
    }
}

/// What can be named from outside of the library.
struct Exports {
    modules: BTreeSet<FullPath>,
    /// What a `pub use` hands on, with the name that it has there.
    handed_on: Vec<(FullPath, FullPath)>,
}

impl Exports {
    fn of(names: &BTreeMap<&str, Names>, reexports: &[(&str, &NamedPath)]) -> Self {
        let mut public: BTreeSet<FullPath> = BTreeSet::new();
        let mut handed_on = Vec::new();
        for (file, found) in names {
            let module = module_path(file);
            for inner in found.modules.iter().filter(|inner| inner.public) {
                public.insert([&module[..], std::slice::from_ref(&inner.name)].concat());
            }
        }
        for (file, path) in reexports {
            if let (Some(name), Some(target)) = (&path.imported_as, resolve(file, path)) {
                // `pub use attr::Attr` of a page begins at a file below it.
                let shown = [module_path(file), vec![name.clone()]].concat();
                handed_on.push((target, shown));
            }
        }
        let is_open =
            |module: &&FullPath| (1..=module.len()).all(|n| public.contains(&module[..n]));
        Self {
            modules: public.iter().filter(is_open).cloned().collect(),
            handed_on,
        }
    }

    fn has(&self, item: &FullPath) -> bool {
        let mut waiting = vec![item.clone()];
        let mut seen = BTreeSet::new();
        while let Some(path) = waiting.pop() {
            let module = &path[..path.len() - 1];
            if module.is_empty() || self.modules.contains(module) {
                return true;
            }
            for (target, shown) in &self.handed_on {
                if path.starts_with(target) {
                    let next = [&shown[..], &path[target.len()..]].concat();
                    if seen.insert(next.clone()) {
                        waiting.push(next);
                    }
                }
            }
        }
        false
    }
}

/// Reads the items of a file.
#[derive(Default)]
pub struct Items {
    signatures: Vec<Signature>,
    aliases: Vec<Signature>,
    private: Vec<FullPath>,
    /// What `pub use` hands on.
    reexports: Vec<NamedPath>,
}

/// The words that begin an item, after `pub` and the like.
const KINDS: [&str; 9] = [
    "fn", "struct", "enum", "union", "type", "trait", "const", "static", "use",
];

impl Items {
    /// The items of a file, which is this module.
    pub fn of(tokens: &[TokenTree], module: &[String]) -> Self {
        let mut items = Self::default();
        items.module(tokens, module, None);
        items
    }

    /// Items of a module, or of an `impl` or `trait` of `owner`.
    fn module(&mut self, tokens: &[TokenTree], module: &[String], owner: Option<&Owner>) {
        let mut at = 0;
        while at < tokens.len() {
            let public =
                is_ident(&tokens[at], "pub") && !is_group(tokens, at + 1, Delimiter::Parenthesis);
            if is_punct(tokens, at, '#') {
                at += 2;
            } else if is_ident(&tokens[at], "mod") {
                if let (Some(name), Some(TokenTree::Group(body))) =
                    (ident(tokens, at + 1), tokens.get(at + 2))
                    && name != "tests"
                {
                    let inner = [module, &[name]].concat();
                    self.module(&self::tokens(body.stream()), &inner, None);
                }
                at = end_of_item(tokens, at);
            } else if is_ident(&tokens[at], "impl") {
                let end = end_of_item(tokens, at);
                self.implementation(&tokens[at..end], module);
                at = end;
            } else if let Some((kind, name_at)) = kind_at(tokens, at) {
                let end = end_of_item(tokens, at);
                let public = public || owner.is_some_and(|owner| owner.all);
                self.item(&tokens[..end], &kind, name_at, (module, owner, public));
                at = end;
            } else {
                at += 1;
            }
        }
    }

    fn item(
        &mut self,
        tokens: &[TokenTree],
        kind: &str,
        name_at: usize,
        (module, owner, public): (&[String], Option<&Owner>, bool),
    ) {
        let name = ident(tokens, name_at).unwrap_or_default();
        let own_path = [module, std::slice::from_ref(&name)].concat();
        let line = tokens[name_at].span().start().line;
        let rest = &tokens[name_at + 1..];
        let shown = match owner {
            Some(owner) => format!("{}::{name}", owner.path[owner.path.len() - 1]),
            None => name,
        };
        let until = |mark: char| {
            let end = (0..rest.len()).find(|&at| is_punct(rest, at, mark));
            rest[..end.unwrap_or(rest.len())].to_vec()
        };
        let seen = match kind {
            "fn" => {
                let body = rest.iter().rposition(is_braces).unwrap_or(rest.len());
                rest[..body].to_vec()
            }
            "struct" | "union" => public_fields(rest),
            "const" | "static" => until('='),
            "trait" => {
                let body = rest.iter().rposition(is_braces).unwrap_or(rest.len());
                if let (true, Some(TokenTree::Group(body))) = (public, rest.get(body)) {
                    let owner = Owner {
                        path: own_path.clone(),
                        all: true,
                    };
                    self.module(&self::tokens(body.stream()), module, Some(&owner));
                }
                rest[..body].to_vec()
            }
            "use" => tokens[name_at..].to_vec(),
            _ => rest.to_vec(),
        };
        let mut paths = Vec::new();
        paths_in(&seen, &mut paths);
        let signature = || Signature {
            owner: owner.map_or(own_path.clone(), |owner| owner.path.clone()),
            shown: shown.clone(),
            line,
            paths: paths.clone(),
        };
        if kind == "type" && owner.is_none() {
            self.aliases.push(signature());
        }
        if !public && owner.is_none() {
            self.private.push(own_path.clone());
        }
        if public && kind == "use" {
            let text: TokenStream = tokens[name_at - 1..].iter().cloned().collect();
            let read = Names::read(&text.to_string()).unwrap_or_default();
            self.reexports.extend(read.paths);
            // Of what is handed on the module decides, as the name may be another.
            let mut handed_on = signature();
            handed_on.owner = [module, &["use".to_string()]].concat();
            handed_on.shown = "use".to_string();
            self.signatures.push(handed_on);
        } else if public {
            self.signatures.push(signature());
        }
    }

    /// `impl … { … }`: the head if it is of a trait, and the items of the body.
    fn implementation(&mut self, tokens: &[TokenTree], module: &[String]) {
        let Some(body) = tokens.iter().rposition(is_braces) else {
            return;
        };
        let head = &tokens[..body];
        let is_for = |&at: &usize| is_ident(&head[at], "for") && !is_punct(head, at + 1, '<');
        let of_trait = (0..head.len()).find(is_for);
        let type_at = of_trait.map_or_else(|| after_generics(head, 1), |at| at + 1);
        // The last name before generics: `&'a super::Type<'b>`.
        let mut path = Vec::new();
        paths_in(&head[type_at..], &mut path);
        let is_type = |path: &FullPath| {
            path.last()
                .is_some_and(|name| name.starts_with(char::is_uppercase))
        };
        let Some(path) = path.into_iter().find(is_type) else {
            return;
        };
        let name = path[path.len() - 1].clone();
        let owner = Owner {
            path: absolute(module, &path),
            all: of_trait.is_some(),
        };
        let body = match &tokens[body] {
            TokenTree::Group(group) => self::tokens(group.stream()),
            _ => return,
        };
        if of_trait.is_some() {
            let mut paths = Vec::new();
            paths_in(head, &mut paths);
            self.signatures.push(Signature {
                owner: owner.path.clone(),
                shown: format!("impl … for {name}"),
                line: head[0].span().start().line,
                paths,
            });
        }
        self.module(&body, module, Some(&owner));
    }
}

/// The type or trait around an item.
struct Owner {
    path: FullPath,
    /// Whether all of it is public, whether it says so or not.
    all: bool,
}

fn is_group(tokens: &[TokenTree], at: usize, delimiter: Delimiter) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

fn is_braces(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// The kind of the item that begins at `at`, and where its name is.
fn kind_at(tokens: &[TokenTree], at: usize) -> Option<(String, usize)> {
    let mut found = None;
    for (next, token) in tokens.iter().enumerate().skip(at) {
        match token {
            TokenTree::Ident(word) => match word.to_string().as_str() {
                // The last one counts: `const fn`.
                kind if KINDS.contains(&kind) => found = Some((kind.to_string(), next + 1)),
                "pub" | "unsafe" | "async" | "extern" => {}
                _ => break,
            },
            // `pub(crate)`, and the text of `extern "C"`.
            TokenTree::Group(_) | TokenTree::Literal(_) if next > at && found.is_none() => {}
            _ => break,
        }
    }
    found
}

/// Where an item ends: behind its braces or its semicolon.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    let is_use = |at: usize| ident(tokens, at).is_some_and(|word| word == "use");
    let of_use = (at..tokens.len().min(at + 3)).any(is_use);
    let is_value = kind_at(tokens, at).is_some_and(|(kind, _)| kind == "const" || kind == "static");
    let ends = |&end: &usize| {
        is_punct(tokens, end, ';') || !of_use && !is_value && is_braces(&tokens[end])
    };
    (at..tokens.len())
        .find(ends)
        .map_or(tokens.len(), |end| end + 1)
}

/// Behind `<…>` at `at`, if there is one.
fn after_generics(tokens: &[TokenTree], at: usize) -> usize {
    let mut depth = 0_usize;
    for next in at..tokens.len() {
        if is_punct(tokens, next, '<') {
            depth += 1;
        } else if is_punct(tokens, next, '>') && !is_punct(tokens, next.wrapping_sub(1), '-') {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return if next == at { at } else { next + 1 };
        }
    }
    tokens.len()
}

/// The generics of a struct and the types of its public fields.
fn public_fields(rest: &[TokenTree]) -> Vec<TokenTree> {
    let mut seen = Vec::new();
    for token in rest {
        match token {
            TokenTree::Group(group) => {
                let fields = tokens(group.stream());
                let (mut public, mut depth) = (false, 0_i32);
                for (at, field) in fields.iter().enumerate() {
                    if is_punct(&fields, at, '<') {
                        depth += 1;
                    } else if is_punct(&fields, at, '>')
                        && !is_punct(&fields, at.wrapping_sub(1), '-')
                    {
                        depth -= 1;
                    } else if is_punct(&fields, at, ',') && depth == 0 {
                        public = false;
                    } else if is_ident(field, "pub") {
                        public = !is_group(&fields, at + 1, Delimiter::Parenthesis);
                    }
                    if public {
                        seen.push(field.clone());
                    }
                }
            }
            other => seen.push(other.clone()),
        }
    }
    seen
}

/// A path as it is written in a module, from the crate's root.
fn absolute(module: &[String], path: &[String]) -> FullPath {
    let mut full = module.to_vec();
    for name in path {
        match name.as_str() {
            "crate" => full.clear(),
            "self" => {}
            "super" => drop(full.pop()),
            _ => full.push(name.clone()),
        }
    }
    full
}
