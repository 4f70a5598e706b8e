//! What line tables state of source files beyond their paths: below which directory a file is, the
//! checksum of what was compiled, and how sources of its language are named.

use gimli::constants as dw;
use gimli::{AttributeValue, DwLang, UnitRef};
use rustc_hash::FxHashMap;

use super::line_rows;
use super::unit::Unit;
use super::{Debug, Slice, names, scopes, text};

/// A source file as the line table of a unit states it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatedSource {
    /// Directories, each with the name of the file from there: that of the file, and that of the
    /// compilation if the file is below it. None for a file that is named from the root and is not
    /// below the directory of the compilation.
    pub places: Vec<(String, String)>,
    /// Whether it is below the directory of the compilation, or that of the unit's main source.
    pub is_near: bool,
    /// The MD5 of the file that was compiled (DWARF 5, section 6.2.4.1).
    pub digest: Option<[u8; 16]>,
    /// The number of the unit's language (DWARF 5, section 7.12).
    pub language: Option<u16>,
}

// The paths that are looked for, by the last part of each, with their places in the answer.
pub(super) type Wanted<'p> = FxHashMap<&'p [u8], Vec<(usize, &'p str)>>;

pub(super) fn wanted<'p>(paths: &[&'p str]) -> Wanted<'p> {
    let mut wanted = Wanted::default();
    for (place, path) in paths.iter().enumerate() {
        wanted
            .entry(last_part(path.as_bytes()))
            .or_default()
            .push((place, path));
    }
    wanted
}

// Fills in what the unit states of the wanted paths of which nothing is known yet.
pub(super) fn add<'b>(
    unit: &Unit<'b>,
    debug: &Debug<'b>,
    wanted: &Wanted<'_>,
    stated: &mut [Option<StatedSource>],
) {
    let main = unit.main(&debug.dwarf);
    let Some(header) = main.line_program.as_ref().map(|program| program.header()) else {
        return;
    };
    for number in 0..=header.file_names().len() as u64 {
        let Some(file) = header.file(number) else {
            continue;
        };
        let Some(name) = names::string(file.path_name(), main) else {
            continue;
        };
        let Some(paths) = wanted.get(last_part(name)) else {
            continue;
        };
        let Some(path) = line_rows::path(header, number, main) else {
            continue;
        };
        for &(place, _) in paths.iter().filter(|(_, wanted)| *wanted == path) {
            let Some(known) = stated.get_mut(place).filter(|it| it.is_none()) else {
                continue;
            };
            // Directory 0 is that of the compilation.
            let directory = file
                .directory(header)
                .filter(|_| file.directory_index() != 0);
            // A unit that is split in two states it in the other part.
            let language = scopes::language(unit.entries(debug).0);
            *known = Some(StatedSource {
                is_near: is_near(main, &path),
                places: places(main, directory, &text(name), &path, language),
                digest: header.file_has_md5().then(|| *file.md5()),
                language: language.map(|language| language.0),
            });
        }
    }
}

fn places<'b>(
    unit: UnitRef<'_, Slice<'b>>,
    directory: Option<AttributeValue<Slice<'b>>>,
    name: &str,
    path: &str,
    language: Option<DwLang>,
) -> Vec<(String, String)> {
    let mut places = Vec::new();
    let compiled_in = unit.comp_dir.map(|directory| text(directory.slice()));
    let compiled_in = compiled_in.unwrap_or_default();
    if !name.starts_with('/') {
        let directory = directory.and_then(|directory| names::string(directory, unit));
        let mut whole = compiled_in.to_string();
        line_rows::join(&mut whole, &text(directory.unwrap_or_default()));
        places.push((whole, name.to_owned()));
    }
    let below = path
        .strip_prefix(&*compiled_in)
        .filter(|_| !compiled_in.is_empty());
    if let Some(inside) = below.and_then(|rest| rest.strip_prefix('/')) {
        places.push((compiled_in.into_owned(), inside.to_owned()));
    }
    // Go names every file from the root, and compiles in no directory.
    if places.is_empty() && language == Some(gimli::DW_LANG_Go) {
        let split = path.rsplit_once('/');
        places.extend(split.map(|(directory, name)| (directory.to_owned(), name.to_owned())));
    }
    places
}

fn is_near(unit: UnitRef<'_, Slice<'_>>, path: &str) -> bool {
    let whole = |name: Option<&[u8]>| {
        let mut whole = String::new();
        for part in [unit.comp_dir.map(|it| it.slice()), name]
            .into_iter()
            .flatten()
        {
            line_rows::join(&mut whole, &text(part));
        }
        normal(&whole)
    };
    let mut main = whole(unit.name.map(|name| name.slice()));
    main.pop();
    let path = normal(path);
    let near = [whole(None), main];
    near.iter()
        .any(|near| !near.is_empty() && path.starts_with(near))
}

// The parts of a path, as they are where no link is on the way.
pub(super) fn normal(path: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part.to_owned()),
        }
    }
    parts
}

// How sources, headers and generated sources are named that compilers of these languages read.
const ENDINGS: &[(&[DwLang], &[&str])] = &[
    (
        &[
            dw::DW_LANG_C,
            dw::DW_LANG_C89,
            dw::DW_LANG_C99,
            dw::DW_LANG_C11,
            dw::DW_LANG_C17,
            dw::DW_LANG_C_plus_plus,
            dw::DW_LANG_C_plus_plus_03,
            dw::DW_LANG_C_plus_plus_11,
            dw::DW_LANG_C_plus_plus_14,
            dw::DW_LANG_C_plus_plus_17,
            dw::DW_LANG_C_plus_plus_20,
            dw::DW_LANG_ObjC,
            dw::DW_LANG_ObjC_plus_plus,
            dw::DW_LANG_OpenCL,
        ],
        &[
            "c", "C", "cc", "cl", "cpp", "cxx", "c++", "cu", "def", "h", "H", "hh", "hpp", "hxx",
            "h++", "i", "ii", "inc", "inl", "ipp", "l", "ll", "m", "mm", "tcc", "tpp", "vala", "y",
            "yy",
        ],
    ),
    (&[dw::DW_LANG_Rust], &["rs"]),
    (&[dw::DW_LANG_Go], &["go", "s"]),
    (&[dw::DW_LANG_Mips_Assembler], &["asm", "inc", "s", "S"]),
    (
        &[
            dw::DW_LANG_Ada83,
            dw::DW_LANG_Ada95,
            dw::DW_LANG_Ada2005,
            dw::DW_LANG_Ada2012,
        ],
        &["ada", "adb", "ads"],
    ),
    (&[dw::DW_LANG_Crystal], &["cr"]),
    (&[dw::DW_LANG_D], &["d", "di"]),
    (
        &[
            dw::DW_LANG_Fortran77,
            dw::DW_LANG_Fortran90,
            dw::DW_LANG_Fortran95,
            dw::DW_LANG_Fortran03,
            dw::DW_LANG_Fortran08,
            dw::DW_LANG_Fortran18,
        ],
        &[
            "f", "F", "f03", "F03", "f08", "F08", "f77", "F77", "f90", "F90", "f95", "F95", "for",
            "fpp", "ftn", "inc",
        ],
    ),
    (&[dw::DW_LANG_Haskell], &["hs", "lhs"]),
    (&[dw::DW_LANG_Java], &["java"]),
    (&[dw::DW_LANG_Julia], &["jl"]),
    (&[dw::DW_LANG_Kotlin], &["kt", "kts"]),
    (
        &[dw::DW_LANG_Modula2, dw::DW_LANG_Modula3],
        &["def", "i3", "m3", "mod"],
    ),
    (&[dw::DW_LANG_OCaml], &["ml", "mli", "mll", "mly"]),
    (
        &[dw::DW_LANG_Pascal83, dw::DW_LANG_BORLAND_Delphi],
        &["inc", "pas", "pp"],
    ),
    (&[dw::DW_LANG_Python], &["py", "pyx"]),
    (&[dw::DW_LANG_Swift], &["swift"]),
    (&[dw::DW_LANG_Zig], &["zig"]),
    // Languages of profiles without debug information of this kind.
    (
        &[],
        &[
            "cjs", "cs", "ex", "exs", "fs", "js", "jsx", "lua", "mjs", "nim", "php", "pl", "pm",
            "r", "R", "rb", "scala", "ts", "tsx",
        ],
    ),
];

/// Whether a file of this name is a source of the language with this number in DWARF; of any
/// language, if it is not stated or its sources are not known here.
pub fn is_source_name(name: &str, language: Option<u16>) -> bool {
    let Some((stem, ending)) = last(name).rsplit_once('.') else {
        return false;
    };
    let is_of = |languages: &[DwLang]| languages.iter().any(|it| Some(it.0) == language);
    let is_known = ENDINGS.iter().any(|(languages, _)| is_of(languages));
    let mut rows = ENDINGS
        .iter()
        .filter(|(languages, _)| !is_known || is_of(languages));
    !stem.is_empty() && rows.any(|(_, endings)| endings.contains(&ending))
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_as_those_of_its_language_are() {
        let (c, rust) = (Some(dw::DW_LANG_C11.0), Some(dw::DW_LANG_Rust.0));
        for (name, language, expected) in [
            ("src/a.c", c, true),
            ("a.rs", c, false),
            ("secret.c", rust, false),
            ("lib.rs", rust, true),
            ("id_rsa", c, false),
            ("id_rsa", None, false),
            (".c", c, false),
            ("dir.c/key", c, false),
            ("main.go", None, true),
            ("app.py", Some(0x7fff), true),
            ("notes.txt", None, false),
            ("", None, false),
        ] {
            assert_eq!(is_source_name(name, language), expected, "{name}");
        }
    }
}
