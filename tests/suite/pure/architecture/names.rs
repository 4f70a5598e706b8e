//! What a file names: its paths, modules, exported macros, and where it says `unsafe`.
//!
//! Works on tokens rather than on a syntax tree, so that the insides of macros are seen too, and
//! comments, docs and strings are not. Nested `use` trees come out as single paths:
//!
//! ```text
//! use crate::{base::Id, binary::*};   ->   crate::base::Id    crate::binary::*
//! ```

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path of at least two names, or of one in a `use`.
#[derive(Clone, Debug)]
pub struct NamedPath {
    /// `*` at the end for a glob.
    pub segments: Vec<String>,
    /// The modules inside the file around it.
    pub inside: Vec<String>,
    /// The name that a `use` gives it; none for a path in code.
    pub imported_as: Option<String>,
    pub line: usize,
}

/// `mod name`, with or without its body.
#[derive(Clone, Debug)]
pub struct Module {
    pub name: String,
    pub public: bool,
    pub line: usize,
}

/// All that is named in a file.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub paths: Vec<NamedPath>,
    pub modules: Vec<Module>,
    /// `#[macro_export]` puts these at the root of the crate, whichever room they are from.
    pub exported_macros: Vec<String>,
    pub unsafe_lines: Vec<usize>,
}

impl Names {
    /// Of the source text of a file; `Err` if it is no Rust.
    pub fn read(text: &str) -> Result<Self, String> {
        let stream: TokenStream = text.parse().map_err(|_| "no Rust tokens".to_string())?;
        Ok(Self::of(&tokens(stream)))
    }

    /// Of the tokens of a file.
    pub fn of(tokens: &[TokenTree]) -> Self {
        let mut names = Self::default();
        names.walk(tokens, &mut Vec::new());
        names
    }

    fn walk(&mut self, tokens: &[TokenTree], inside: &mut Vec<String>) {
        let mut at = 0;
        while at < tokens.len() {
            at = match &tokens[at] {
                TokenTree::Group(group) => {
                    self.walk(&self::tokens(group.stream()), inside);
                    at + 1
                }
                TokenTree::Ident(word) => {
                    let line = word.span().start().line;
                    match (word.to_string().as_str(), ident(tokens, at + 1)) {
                        ("unsafe", _) => {
                            self.unsafe_lines.push(line);
                            at + 1
                        }
                        ("mod", Some(name)) => self.module(tokens, at, name, inside),
                        ("macro_rules", _) => {
                            self.exported_macros.extend(ident(tokens, at + 2));
                            at + 2
                        }
                        ("crate", Some(name)) if at > 0 && is_ident(&tokens[at - 1], "extern") => {
                            self.push(vec![name], None, line, inside);
                            at + 2
                        }
                        ("use", _) if !is_punct(tokens, at + 1, '<') => {
                            let end = (at..tokens.len())
                                .find(|&i| is_punct(tokens, i, ';'))
                                .unwrap_or(tokens.len());
                            self.use_tree(&tokens[at + 1..end], &[], inside);
                            end
                        }
                        _ if is_member(tokens, at) => at + 1,
                        _ => self.plain_path(tokens, at, inside),
                    }
                }
                _ => at + 1,
            };
        }
    }

    fn module(
        &mut self,
        tokens: &[TokenTree],
        at: usize,
        name: String,
        inside: &mut Vec<String>,
    ) -> usize {
        self.modules.push(Module {
            name: name.clone(),
            public: at > 0 && is_ident(&tokens[at - 1], "pub"),
            line: tokens[at].span().start().line,
        });
        if let Some(TokenTree::Group(body)) = tokens.get(at + 2) {
            inside.push(name);
            self.walk(&self::tokens(body.stream()), inside);
            inside.pop();
            return at + 3;
        }
        at + 2
    }

    /// Reads `a::b::c` from `at`, which is its first name, and gives where it ends.
    fn plain_path(&mut self, tokens: &[TokenTree], mut at: usize, inside: &[String]) -> usize {
        let line = tokens[at].span().start().line;
        let mut segments = vec![tokens[at].to_string()];
        at += 1;
        while is_colons(tokens, at) {
            let Some(name) = ident(tokens, at + 2) else {
                if let Some(TokenTree::Group(group)) = tokens.get(at + 2) {
                    let tree = self::tokens(group.stream());
                    self.use_tree(&tree, &segments, inside);
                    return at + 3;
                }
                break;
            };
            segments.push(name);
            at += 3;
        }
        if segments.len() > 1 {
            self.push(segments, None, line, inside);
        }
        at
    }

    /// Reads one or more branches of a `use` tree below `prefix`.
    fn use_tree(&mut self, tokens: &[TokenTree], prefix: &[String], inside: &[String]) {
        for branch in
            tokens.split(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == ','))
        {
            let mut segments = prefix.to_vec();
            let mut line = 0;
            let mut alias = None;
            for (at, token) in branch.iter().enumerate() {
                if line == 0 {
                    line = token.span().start().line;
                }
                match token {
                    TokenTree::Ident(word) if word == "as" => {
                        alias = ident(branch, at + 1);
                        break;
                    }
                    TokenTree::Ident(word) => segments.push(word.to_string()),
                    TokenTree::Punct(star) if star.as_char() == '*' => segments.push("*".into()),
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                        self.use_tree(&self::tokens(group.stream()), &segments, inside);
                        segments.clear();
                    }
                    _ => {}
                }
            }
            if let Some(last) = segments.last() {
                let name = alias.unwrap_or_else(|| last.clone());
                self.push(segments, Some(name), line, inside);
            }
        }
    }

    fn push(
        &mut self,
        segments: Vec<String>,
        imported_as: Option<String>,
        line: usize,
        inside: &[String],
    ) {
        self.paths.push(NamedPath {
            segments,
            imported_as,
            inside: inside.to_vec(),
            line,
        });
    }
}

pub fn tokens(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

pub fn ident(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        // `macro_rules! name`: the mark between is passed over by its caller.
        _ => None,
    }
}

pub fn is_ident(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

pub fn is_punct(tokens: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(found)) if found.as_char() == mark)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens, at, ':') && is_punct(tokens, at + 1, ':')
}

/// Whether the name at `at` belongs to what stands before it: `x.name`, `<T>::name`.
fn is_member(tokens: &[TokenTree], at: usize) -> bool {
    let before = |back: usize, mark| at >= back && is_punct(tokens, at - back, mark);
    let field = before(1, '.') && !before(2, '.');
    let associated = before(1, ':') && before(2, ':') && before(3, '>');
    field || associated
}
