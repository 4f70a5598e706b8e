//! The languages of functions, which decide how their names may be shortened.

use serde::{Deserialize, Serialize};

/// The language that a function's name is written in, as far as something states it: the mangling
/// of its symbol, debug information, the kind of image, the ending of its source file. It is never
/// guessed where one of these is known, as `A$P.<init>(int)` of Java and `A::f<int>(int)` of C++
/// are made of the same characters.
///
/// ```
/// use proftool::base::Language;
/// assert_eq!(Language::of_source("/srv/app.rs"), Some(Language::Rust));
/// assert_eq!(Language::of_source("Makefile"), None);
/// assert!(Language::Cpp.has_arguments() && !Language::Java.has_arguments());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of languages say what they are")]
pub enum Language {
    /// Nothing states it.
    #[default]
    Unknown,
    C,
    Cpp,
    D,
    Go,
    Haskell,
    Java,
    JavaScript,
    OCaml,
    Python,
    Ruby,
    Rust,
    Swift,
    /// That of a virtual machine, which compiled the function while the program ran.
    Generated,
    /// Code of a virtual machine at an address that several functions had: `A or B`.
    Several,
}

/// The endings of source files.
const ENDINGS: [(&str, Language); 24] = [
    ("c", Language::C),
    ("cc", Language::Cpp),
    ("cpp", Language::Cpp),
    ("cxx", Language::Cpp),
    ("hh", Language::Cpp),
    ("hpp", Language::Cpp),
    ("d", Language::D),
    ("go", Language::Go),
    ("hs", Language::Haskell),
    ("java", Language::Java),
    ("kt", Language::Java),
    ("scala", Language::Java),
    ("js", Language::JavaScript),
    ("mjs", Language::JavaScript),
    ("cjs", Language::JavaScript),
    ("ts", Language::JavaScript),
    ("tsx", Language::JavaScript),
    ("jsx", Language::JavaScript),
    ("ml", Language::OCaml),
    ("py", Language::Python),
    ("pyx", Language::Python),
    ("rb", Language::Ruby),
    ("rs", Language::Rust),
    ("swift", Language::Swift),
];

impl Language {
    /// That of a source file with this path, by its ending.
    pub fn of_source(path: &str) -> Option<Language> {
        let (_, ending) = path.rsplit_once('.')?;
        let known = ENDINGS.iter().find(|(known, _)| *known == ending);
        known.map(|&(_, language)| language)
    }

    /// Whether names consist of a path, arguments and parameters, which can be left out. Those of
    /// other languages stay whole.
    pub fn has_arguments(self) -> bool {
        matches!(self, Language::Cpp | Language::Rust)
    }
}
