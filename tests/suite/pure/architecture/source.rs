//! What the checks need of a source file, read from its tokens once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use proc_macro2::TokenStream;

use super::names::{Names, tokens};
use super::signatures::Items;
use super::tree::module_path;
use super::{errors, speech};

/// What is found in a file.
pub struct Source {
    pub names: Names,
    pub items: Items,
    /// String literals without docs and tests, with their lines.
    pub literals: Vec<(usize, String)>,
    /// Errors that are tuples, with their lines.
    pub tuples: Vec<(usize, String)>,
}

/// The sources by their paths.
pub type Sources<'a> = BTreeMap<&'a str, Arc<Source>>;

/// By path and text. Two tests check all of this crate, of which one changes three files.
type Read = HashMap<(String, String), Result<Arc<Source>, String>>;
static READ: LazyLock<Mutex<Read>> = LazyLock::new(Mutex::default);

impl Source {
    /// Reads a file; `Err` if it is no Rust. The other test waits meanwhile, and has the answer then.
    pub fn of(file: &str, text: &str) -> Result<Arc<Source>, String> {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry((file.to_string(), text.to_string()))
            .or_insert_with(|| Self::read(file, text).map(Arc::new))
            .clone()
    }

    fn read(file: &str, text: &str) -> Result<Source, String> {
        let stream: TokenStream = text.parse().map_err(|_| "no Rust tokens".to_string())?;
        let all = tokens(stream.clone());
        Ok(Source {
            names: Names::of(&all),
            items: Items::of(&all, &module_path(file)),
            tuples: errors::in_tokens(&all),
            literals: speech::literals(stream),
        })
    }
}
