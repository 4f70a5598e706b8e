//! What each address is: a physical function, the calls inlined there, and their lines.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use crate::base::{IdVec, Interner, Language, NameId};
use crate::binary::DefinitionId;
use crate::profile::{Builder, FunctionId, Line, LineId};
use crate::trace::{AddressPathId, FrameId, ImageId};

use super::address_lookup::{Answers, ByChunk, Physical};
use super::distinct_addresses::DistinctAddresses;
use super::identity::Identities;
use super::limits::{self, TextLeft};
use super::places::FrameLines;
use super::repair::Checked;

/// What one address is: a physical function and the calls inlined there.
#[derive(Clone, Copy, Debug)]
struct Resolved {
    physical: FunctionId,
    /// The calls inlined there, outermost first, in [`Resolution::inlined`].
    inlined: (u32, u32),
    line: Option<LineId>,
    named: bool,
    /// Whether the name may belong to any of several functions.
    ambiguous: bool,
}

/// What every address is.
pub(super) struct Resolution {
    frames: IdVec<FrameId, Option<Resolved>>,
    inlined: Vec<FunctionId>,
    call_lines: Vec<Option<LineId>>,
}

impl Resolution {
    pub(super) fn physical(&self, frame: FrameId) -> FunctionId {
        let resolved = self.frames[frame].expect("every frame was planned for");
        resolved.physical
    }

    pub(super) fn is_named(&self, frame: FrameId) -> bool {
        self.frames[frame].is_some_and(|resolved| resolved.named)
    }

    /// Whether the name of the function at an address may belong to any of several functions.
    pub(super) fn is_ambiguous(&self, frame: FrameId) -> bool {
        self.frames[frame].is_some_and(|resolved| resolved.ambiguous)
    }

    /// The line of the innermost function at an address, where it is known.
    pub(super) fn line(&self, frame: FrameId) -> Option<LineId> {
        self.frames[frame].and_then(|resolved| resolved.line)
    }

    pub(super) fn inlined(&self) -> &[FunctionId] {
        &self.inlined
    }

    pub(super) fn lines(&self, frame: FrameId) -> FrameLines<'_> {
        self.frames[frame].map_or(FrameLines::default(), |resolved| FrameLines {
            innermost: resolved.line,
            inlined: (self.call_lines)
                .get(resolved.inlined.0 as usize..resolved.inlined.1 as usize)
                .unwrap_or_default(),
            address: None,
        })
    }

    /// The calls that are inlined at an address, outermost first.
    pub(super) fn inlined_at(&self, place: FrameId) -> &[FunctionId] {
        let (from, to) = self.frames[place].map_or((0, 0), |resolved| resolved.inlined);
        let inlined = self.inlined.get(from as usize..to as usize);
        inlined.unwrap_or_default()
    }

    fn all_at(&self, place: FrameId) -> impl Iterator<Item = FunctionId> {
        let physical = self.frames[place].map(|resolved| resolved.physical);
        physical
            .into_iter()
            .chain(self.inlined_at(place).iter().copied())
    }

    /// The functions of which some are missing outside of the innermost frame of a path, `None` if
    /// there may be others: between the stack's frames, and inlined at the call in its caller, if
    /// that was restored in part.
    pub(super) fn candidates(
        &self,
        checked: &Checked,
        path: AddressPathId,
        restored_in_part: Option<AddressPathId>,
    ) -> Option<Vec<FunctionId>> {
        let mut functions = Vec::new();
        if checked.states[path].across_gap {
            let places = checked.places_of(path)?;
            functions.extend(places.iter().flat_map(|&place| self.all_at(place)));
        }
        if let Some(caller) = restored_in_part {
            let places = checked.places_of(caller)?;
            functions.extend(places.iter().flat_map(|&place| self.inlined_at(place)));
        }
        Some(functions)
    }

    /// The calls that are inlined at each of these addresses, outermost first, and whether there
    /// are others at some, or the addresses are not known.
    pub(super) fn inlined_at_all(&self, places: &[FrameId]) -> (&[FunctionId], bool) {
        let inlined = |place: &FrameId| self.inlined_at(*place);
        let Some((first, others)) = places.split_first() else {
            return (&[], true);
        };
        let first = inlined(first);
        let shared = others.iter().map(|other| {
            let both = first.iter().zip(inlined(other));
            both.take_while(|(one, other)| one == other).count()
        });
        let shared = shared.min().unwrap_or(first.len());
        let is_more = places.iter().any(|place| inlined(place).len() > shared);
        (&first[..shared], is_more)
    }

    /// Which functions are inlined into which at the sampled places: caller and callee, each pair
    /// once.
    pub(super) fn contained(&self) -> FxHashSet<(FunctionId, FunctionId)> {
        let mut contained = FxHashSet::default();
        for resolved in self.frames.iter().flatten() {
            let (from, to) = resolved.inlined;
            let mut caller = resolved.physical;
            for &function in &self.inlined[from as usize..to as usize] {
                contained.insert((caller, function));
                caller = function;
            }
        }
        contained
    }

    /// Cuts what is inlined at addresses where the stacks would have too much of it together.
    /// Returns the depth below which it is left out.
    pub(super) fn limit_inlined(&mut self, checked: &Checked) -> Option<usize> {
        let mut uses: IdVec<FrameId, u64> = IdVec::filled(0, self.frames.len());
        for path in checked.paths.iter() {
            uses[path.frame] += 1;
        }
        let inlined = |frame: FrameId| {
            let (from, to) = self.frames[frame].map_or((0, 0), |resolved| resolved.inlined);
            to.saturating_sub(from) as usize
        };
        let depth = limits::depth_on_stacks(inlined, &uses)?;
        for resolved in self.frames.iter_mut().flatten() {
            let (from, to) = resolved.inlined;
            let end = from.saturating_add(u32::try_from(depth).unwrap_or(u32::MAX));
            if end < to {
                resolved.inlined = (from, end);
                let line = self.call_lines.get(end as usize);
                resolved.line = line.copied().flatten();
            }
        }
        Some(depth)
    }
}

pub(super) fn resolve(
    checked: &Checked,
    addresses_of_images: &DistinctAddresses,
    answers: &ByChunk,
    identities: &mut Identities,
    builder: &mut Builder,
) -> Resolution {
    let mut resolution = Resolution {
        frames: IdVec::filled(None, checked.frames.len()),
        inlined: Vec::new(),
        call_lines: Vec::new(),
    };
    for (image, plan) in addresses_of_images.enumerate() {
        let answers = answers.of_image(image);
        learn(image, answers.clone(), identities);
        let mut addresses = plan.iter();
        for answers in answers {
            let mut inlined = answers.inlined.iter();
            // Each definition is asked for once, when it is first needed.
            let mut functions = vec![None; answers.definitions.len()];
            let mut call_lines = answers.call_lines.iter();
            for physical in &answers.physical {
                let &(_, frame) = addresses.next().expect("no more answers than addresses");
                let described = named(image, physical, answers, identities);
                let name = described.as_deref();
                let function =
                    identities.physical(builder, checked.frames[frame], physical.start, name);
                if physical.is_ambiguous {
                    builder.set_language(function, Language::Several);
                }
                if let (Some(start), Some(name)) = (physical.start, name) {
                    let definition = physical
                        .definition
                        .map(|place| answers.definitions[place as usize]);
                    identities.declare(function, image, start, name, definition);
                }
                let from = resolution.inlined.len() as u32;
                for &place in inlined.by_ref().take(physical.inlined as usize) {
                    let place = place as usize;
                    let line = call_lines.next();
                    let found = *functions[place].get_or_insert_with(|| {
                        identities.inlined(builder, image, answers.definitions[place])
                    });
                    let Some(found) = found else { continue };
                    resolution.inlined.push(found);
                    let line = line.map(|line| {
                        line_of(*line, &answers.names, identities.text_left(), builder)
                    });
                    resolution.call_lines.extend(line);
                }
                let left = identities.text_left();
                let line = line_of(physical.line, &answers.names, left, builder);
                resolution.frames[frame] = Some(Resolved {
                    physical: function,
                    inlined: (from, resolution.inlined.len() as u32),
                    line,
                    named: name.is_some(),
                    ambiguous: physical.is_ambiguous,
                });
            }
        }
        // Where there is nothing to look up in, there are no answers.
        for &(_, frame) in addresses {
            let end = resolution.inlined.len() as u32;
            resolution.frames[frame] = Some(Resolved {
                physical: identities.physical(builder, checked.frames[frame], None, None),
                inlined: (end, end),
                line: None,
                named: false,
                ambiguous: false,
            });
        }
    }
    resolution
}

/// The linkage name of what is at an address: that of its symbol, else that of its definition.
fn named<'n>(
    image: ImageId,
    physical: &Physical,
    answers: &'n Answers,
    identities: &mut Identities,
) -> Option<Cow<'n, str>> {
    if let Some(name) = physical.name {
        return Some(Cow::Borrowed(&answers.names[name]));
    }
    let definition = answers.definitions.get(physical.definition? as usize)?;
    identities.name(image, *definition).map(Cow::Owned)
}

/// Lets the definitions of an image be known before its functions are made, so that these do not
/// depend on which of their copies comes first.
fn learn<'a>(
    image: ImageId,
    answers: impl Iterator<Item = &'a Answers>,
    identities: &mut Identities,
) {
    let mut definitions: Vec<DefinitionId> = Vec::new();
    let mut code = Vec::new();
    for answers in answers {
        definitions.extend(&answers.definitions);
        for physical in &answers.physical {
            if let (Some(start), Some(place)) = (physical.start, physical.definition)
                && let Some(name) = named(image, physical, answers, identities)
            {
                code.push((start, name, answers.definitions[place as usize]));
            }
        }
    }
    definitions.sort_unstable();
    definitions.dedup();
    code.sort_unstable();
    code.dedup();
    identities.learn(image, &definitions, &code);
}

fn line_of(
    line: Option<(NameId, u32)>,
    names: &Interner,
    left: &mut TextLeft,
    builder: &mut Builder,
) -> Option<LineId> {
    let (file, line) = line?;
    let file = names[file].to_owned();
    let bytes = file.len();
    if !left.has_path(bytes) {
        return None;
    }
    let line = builder.line(Line { file, line });
    left.take_path(line, bytes);
    Some(line)
}
