//! Names qualified by what stands around an entry, as demanglers print them, for functions that
//! have no linkage name: `(anonymous namespace)::handle(int)`,
//! `run()::{lambda(int)#1}::operator()(int) const`.

use gimli::constants as dw;
use gimli::{AttributeValue, DwAt, DwLang, UnitOffset, UnitRef};

use super::definition::{self, At};
use super::{Debug, Slice, names, text};
use crate::base::Language;
use crate::binary::budget::Account;
use crate::binary::demangle;

// Scopes that are named around a function, and steps that a type may take.
const STEPS: usize = 16;
const PARAMETERS: usize = 64;

// Namespaces, types and functions with what stands in them.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    // Sorted by offset; a parent stands before its children.
    scopes: Vec<Scope>,
    // Whether there are types: where there are none (`-g1`), parameters are not known either.
    pub(super) has_types: bool,
}

#[derive(Clone, Copy, Debug)]
struct Scope {
    entry: usize,
    parent: Option<u32>,
}

impl Scopes {
    // The whole unit, up to the first entry that cannot be read.
    pub(super) fn read(unit: UnitRef<'_, Slice<'_>>, account: &Account) -> Scopes {
        let mut scopes = Scopes::default();
        // What was read before an error stays.
        let _ = scopes.add_all(unit, account);
        scopes
    }

    fn add_all(&mut self, unit: UnitRef<'_, Slice<'_>>, account: &Account) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        let mut open: Vec<(isize, u32)> = Vec::new();
        while !entries.is_empty() {
            let (entry, depth) = (entries.next_offset().0, entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            entries.skip_attributes(abbreviation.attributes())?;
            while open.last().is_some_and(|&(outer, _)| outer >= depth) {
                open.pop();
            }
            self.has_types |= abbreviation.tag() == gimli::DW_TAG_base_type;
            if !is_scope(abbreviation.tag()) || !account.take_entries(1) {
                continue;
            }
            let index = u32::try_from(self.scopes.len()).unwrap_or(u32::MAX);
            let parent = open.last().map(|&(_, parent)| parent);
            self.scopes.push(Scope { entry, parent });
            if abbreviation.has_children() {
                open.push((depth, index));
            }
        }
        Ok(())
    }

    fn index(&self, entry: UnitOffset) -> Option<usize> {
        let found = self.scopes.binary_search_by_key(&entry.0, |s| s.entry);
        found.ok()
    }

    // Innermost first.
    fn around(&self, index: usize) -> impl Iterator<Item = usize> {
        let parent = |&at: &usize| Some(self.scopes.get(at)?.parent? as usize);
        std::iter::successors(parent(&index), parent)
    }

    fn offset(&self, index: usize) -> Option<UnitOffset> {
        Some(UnitOffset(self.scopes.get(index)?.entry))
    }
}

fn is_scope(tag: gimli::DwTag) -> bool {
    is_type(tag) || tag == gimli::DW_TAG_namespace || tag == gimli::DW_TAG_subprogram
}

fn is_type(tag: gimli::DwTag) -> bool {
    [
        gimli::DW_TAG_class_type,
        gimli::DW_TAG_structure_type,
        gimli::DW_TAG_union_type,
    ]
    .contains(&tag)
}

// The call operator of a closure type has no line of its own.
pub(super) fn closure_line<'b>(at: At<'_, 'b>, scopes: &Scopes) -> Option<(u64, u32)> {
    let around = scopes.around(scopes.index(at.offset)?).next()?;
    let offset = scopes.offset(around)?;
    if !is_type(tag(at.unit, offset)?) || name(at.unit, offset).is_some() {
        return None;
    }
    let file = attribute(at.unit, offset, gimli::DW_AT_decl_file)?;
    let line = attribute(at.unit, offset, gimli::DW_AT_decl_line)?.udata_value();
    let line = definition::number(line);
    (line > 0).then_some((definition::file(at.unit, file)?, line))
}

// The qualified name of the function `own` whose entry is `at`.
pub(super) fn qualified<'d, 'b>(
    at: At<'d, 'b>,
    own: &str,
    scopes: &Scopes,
    debug: &'d Debug<'b>,
) -> String {
    let Some(index) = scopes.index(at.offset) else {
        return own.to_owned();
    };
    let mut parts = vec![own.to_owned()];
    if scopes.has_types
        && let Some((parameters, is_const)) = parameters(at.unit, at.offset, scopes)
    {
        let suffix = if is_const { " const" } else { "" };
        parts = vec![format!("{own}({parameters}){suffix}")];
    }
    for around in scopes.around(index).take(STEPS) {
        let Some(offset) = scopes.offset(around) else {
            break;
        };
        match tag(at.unit, offset) {
            Some(gimli::DW_TAG_subprogram) => {
                let outer = At { offset, ..at };
                let Some(outer) = definition::of(outer, debug) else {
                    break;
                };
                if let Some(linkage) = outer.linkage_name {
                    parts.push(demangle(&text(linkage)).into_owned());
                    break;
                }
                parts.push(text(outer.name.unwrap_or_default()).into_owned());
            }
            _ => parts.push(scope_name(at.unit, around, scopes, &debug.account)),
        }
    }
    parts.reverse();
    parts.join("::")
}

fn scope_name(
    unit: UnitRef<'_, Slice<'_>>,
    index: usize,
    scopes: &Scopes,
    account: &Account,
) -> String {
    let Some(offset) = scopes.offset(index) else {
        return String::new();
    };
    if let Some(name) = name(unit, offset) {
        return text(name).into_owned();
    }
    if tag(unit, offset) == Some(gimli::DW_TAG_namespace) {
        return "(anonymous namespace)".to_owned();
    }
    // A closure is named by the parameters of its call operator, and numbered among the closures of
    // the same function that have the same ones.
    let parent = scopes.scopes.get(index).and_then(|scope| scope.parent);
    let Some(signature) = closure(unit, index, scopes) else {
        return "{unnamed type}".to_owned();
    };
    let siblings = scopes
        .scopes
        .get(..index)
        .unwrap_or_default()
        .iter()
        .enumerate()
        .filter(|(_, s)| s.parent == parent);
    // Each of many closures of one scope looks at all before it.
    let siblings = siblings.take_while(|_| account.take_entries(1));
    let before = siblings.filter(|&(i, scope)| {
        let offset = UnitOffset(scope.entry);
        tag(unit, offset).is_some_and(is_type)
            && name(unit, offset).is_none()
            && closure(unit, i, scopes).as_ref() == Some(&signature)
    });
    let number = before.count().saturating_add(1);
    format!("{{lambda({signature})#{number}}}")
}

// The parameters of the call operator.
fn closure(unit: UnitRef<'_, Slice<'_>>, index: usize, scopes: &Scopes) -> Option<String> {
    let inside = scopes.scopes.get(index.checked_add(1)?..)?.iter();
    // Members come next, before anything whose parent stands further out.
    let mut inside = inside.take_while(|s| s.parent.is_some_and(|p| p as usize >= index));
    let operator = inside.find(|scope| {
        scope.parent.is_some_and(|parent| parent as usize == index)
            && name(unit, UnitOffset(scope.entry)) == Some(b"operator()")
    })?;
    Some(parameters(unit, UnitOffset(operator.entry), scopes)?.0)
}

// The types of the parameters of a function, and whether it is a `const` member; `None` where a
// type cannot be printed.
fn parameters(
    unit: UnitRef<'_, Slice<'_>>,
    offset: UnitOffset,
    scopes: &Scopes,
) -> Option<(String, bool)> {
    let mut entries = unit.entries_raw(Some(offset)).ok()?;
    let function = entries.read_abbreviation().ok()??;
    entries.skip_attributes(function.attributes()).ok()?;
    let (mut types, mut is_const) = (Vec::new(), false);
    while function.has_children() && !entries.is_empty() && entries.next_depth() > 0 {
        let depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation().ok()? else {
            if entries.next_depth() < 1 {
                break;
            }
            continue;
        };
        let is_parameter = abbreviation.tag() == gimli::DW_TAG_formal_parameter && depth == 1;
        let (mut of, mut is_artificial) = (None, false);
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            match attribute.name() {
                gimli::DW_AT_type => of = Some(attribute.value()),
                gimli::DW_AT_artificial => is_artificial = true,
                _ => {}
            }
        }
        if !is_parameter || types.len() >= PARAMETERS {
            continue;
        }
        let of = type_name(unit, of?, scopes)?;
        if is_artificial {
            // What `this` points to.
            is_const |= types.is_empty() && of.contains(" const*");
        } else {
            types.push(of);
        }
    }
    Some((types.join(", "), is_const))
}

// A type as demanglers print it: `char const*`.
fn type_name(
    unit: UnitRef<'_, Slice<'_>>,
    of: AttributeValue<Slice<'_>>,
    scopes: &Scopes,
) -> Option<String> {
    let mut marks: Vec<&str> = Vec::new();
    let mut of = Some(of);
    let mut base = "void".to_owned();
    for _ in 0..STEPS {
        let offset = match of {
            Some(AttributeValue::UnitRef(offset)) => offset,
            Some(_) => return None,
            None => break,
        };
        marks.push(match tag(unit, offset)? {
            gimli::DW_TAG_pointer_type => "*",
            gimli::DW_TAG_reference_type => "&",
            gimli::DW_TAG_rvalue_reference_type => "&&",
            gimli::DW_TAG_const_type => " const",
            gimli::DW_TAG_volatile_type => " volatile",
            gimli::DW_TAG_typedef => "",
            other if is_type(other) => {
                base = type_in_scope(unit, offset, scopes);
                break;
            }
            gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type => {
                base = base_name(&text(name(unit, offset)?)).to_owned();
                break;
            }
            _ => return None,
        });
        of = attribute(unit, offset, gimli::DW_AT_type);
    }
    marks.reverse();
    // `const` is not part of the signature for an object passed by value, but it is for one behind
    // a pointer.
    while marks.last().is_some_and(|mark| mark.starts_with(' ')) {
        marks.pop();
    }
    Some(base + &marks.concat())
}

fn type_in_scope(unit: UnitRef<'_, Slice<'_>>, offset: UnitOffset, scopes: &Scopes) -> String {
    let own = text(name(unit, offset).unwrap_or(b"{closure}")).into_owned();
    let mut parts = vec![own];
    if let Some(index) = scopes.index(offset) {
        for around in scopes.around(index).take(STEPS) {
            let outer = scopes.offset(around).and_then(|outer| name(unit, outer));
            parts.extend(outer.map(|outer| text(outer).into_owned()));
        }
    }
    parts.reverse();
    parts.join("::")
}

// What C++ names call a type that debug information calls otherwise.
fn base_name(name: &str) -> &str {
    match name {
        "long int" => "long",
        "long unsigned int" => "unsigned long",
        "unsigned int" => "unsigned int",
        "short int" => "short",
        "short unsigned int" => "unsigned short",
        "long long int" => "long long",
        "long long unsigned int" => "unsigned long long",
        other => other,
    }
}

pub(super) fn language(unit: UnitRef<'_, Slice<'_>>) -> Option<DwLang> {
    let root = unit.entries_raw(None).ok()?.next_offset();
    match attribute(unit, root, gimli::DW_AT_language)? {
        AttributeValue::Language(language) => Some(language),
        _ => None,
    }
}

pub(super) fn names_language(unit: UnitRef<'_, Slice<'_>>) -> Language {
    match language(unit) {
        Some(
            dw::DW_LANG_C_plus_plus
            | dw::DW_LANG_C_plus_plus_03
            | dw::DW_LANG_C_plus_plus_11
            | dw::DW_LANG_C_plus_plus_14
            | dw::DW_LANG_C_plus_plus_17
            | dw::DW_LANG_C_plus_plus_20,
        ) => Language::Cpp,
        Some(
            dw::DW_LANG_C
            | dw::DW_LANG_C89
            | dw::DW_LANG_C99
            | dw::DW_LANG_C11
            | dw::DW_LANG_C17
            | dw::DW_LANG_Mips_Assembler,
        ) => Language::C,
        Some(dw::DW_LANG_D) => Language::D,
        Some(dw::DW_LANG_Go) => Language::Go,
        Some(dw::DW_LANG_Haskell) => Language::Haskell,
        Some(dw::DW_LANG_Java) => Language::Java,
        Some(dw::DW_LANG_OCaml) => Language::OCaml,
        Some(dw::DW_LANG_Rust) => Language::Rust,
        Some(dw::DW_LANG_Swift) => Language::Swift,
        _ => Language::Unknown,
    }
}

fn tag(unit: UnitRef<'_, Slice<'_>>, offset: UnitOffset) -> Option<gimli::DwTag> {
    let mut entries = unit.entries_raw(Some(offset)).ok()?;
    Some(entries.read_abbreviation().ok()??.tag())
}

fn name<'b>(unit: UnitRef<'_, Slice<'b>>, offset: UnitOffset) -> Option<&'b [u8]> {
    names::string(attribute(unit, offset, gimli::DW_AT_name)?, unit)
}

fn attribute<'b>(
    unit: UnitRef<'_, Slice<'b>>,
    offset: UnitOffset,
    wanted: DwAt,
) -> Option<AttributeValue<Slice<'b>>> {
    let mut entries = unit.entries_raw(Some(offset)).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec).ok()?;
        if attribute.name() == wanted {
            return Some(attribute.value());
        }
    }
    None
}
