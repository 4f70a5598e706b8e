//! Where calls lead, and the calls before return addresses, each looked up alone.

use std::rc::Rc;

use crate::base::Svma;
use crate::scan::{self, Destination, Exits, Leaving, LeavingKind};
use crate::symbolize::definitions::Definition;
use crate::trace::ImageId;

use super::super::function_exits::{FunctionStart, To};
use super::kept_exits::KeptExits;
use super::{CodeReader, KEPT_EXITS};

/// How many functions are looked into for a call: programs have one in their first.
const LOOKED_INTO: usize = 4096;

/// Where a call leads, and the linkage name by which it calls, where it does by name.
pub(in crate::symbolize::repair) struct Called {
    pub(in crate::symbolize::repair) to: To,
    pub(in crate::symbolize::repair) name: Option<Rc<str>>,
}

/// The stated address behind an instruction.
pub(super) fn behind(leaving: &Leaving) -> u64 {
    leaving.at.0.wrapping_add(u64::from(leaving.length))
}

impl CodeReader<'_> {
    /// The call that returns to this stated address, if one of the function around it does. What else
    /// the function calls is not looked up: most functions are asked about one call.
    pub(in crate::symbolize::repair) fn call_before(
        &mut self,
        image: ImageId,
        end: u64,
    ) -> Option<Called> {
        let place = self.function_start(image, end.checked_sub(1)?)?;
        let exits = self.exits(place)?;
        let returns = self.returns.entry(place).or_insert_with(|| {
            let sites = (0..).zip(&exits.sites);
            let calls = sites
                .filter(|(_, site)| site.kind == LeavingKind::Call)
                .map(|(number, site)| (behind(site), number));
            let mut returns: Vec<(u64, u32)> = calls.collect();
            returns.sort_unstable();
            returns.into()
        });
        let found = returns.binary_search_by_key(&end, |&(end, _)| end).ok()?;
        let site = exits.sites.get(returns.get(found)?.1 as usize)?;
        let (to, name) = self.destination(image, site.to.clone());
        Some(Called { to, name })
    }

    /// Whether any of the first functions of a file contains a call.
    pub(in crate::symbolize::repair) fn has_calls(&mut self, image: ImageId) -> bool {
        let Some(binary) = self.binary(image) else {
            return false;
        };
        binary.functions().iter().take(LOOKED_INTO).any(|function| {
            let start = function.start.0;
            let exits = self.exits(FunctionStart { image, start });
            exits.is_some_and(|exits| {
                let mut sites = exits.sites.iter();
                sites.any(|site| site.kind == LeavingKind::Call)
            })
        })
    }

    /// How control leaves what starts here, alone; `None` where its code cannot be read.
    pub(super) fn exits(&mut self, place: FunctionStart) -> Option<Rc<Exits>> {
        if let Some(known) = self.exits.get(&place) {
            return known.clone();
        }
        let exits = match self.known_exits(place) {
            Some(known) => Some(known),
            None => self.single(place.image)?.leaving(Svma(place.start)),
        };
        let exits = exits.map(Rc::new);
        self.exits.insert(place, exits.clone());
        exits
    }

    /// The same as it was kept.
    fn known_exits(&mut self, place: FunctionStart) -> Option<Exits> {
        let binary = self.binary(place.image)?;
        let kept = self
            .kept_exits
            .entry(place.image)
            .or_insert_with(|| KeptExits::of(binary.kept(KEPT_EXITS)));
        kept.of_function(place.start)
    }

    /// Where the call leads, and by what name, that most likely returns to this stated address: see
    /// [`crate::scan::Single::likely_call_before`].
    pub(in crate::symbolize::repair) fn likely_call_before(
        &mut self,
        image: ImageId,
        behind: u64,
    ) -> Option<(To, Option<Rc<str>>)> {
        let to = self.single(image)?.likely_call_before(Svma(behind))?;
        Some(self.destination(image, to))
    }

    /// Where a call or jump leads, and by what name.
    pub(super) fn destination(&mut self, image: ImageId, to: Destination) -> (To, Option<Rc<str>>) {
        match to {
            Destination::Function(Svma(start)) => {
                let place = FunctionStart { image, start };
                let name = self.full_name(place);
                if name.is_some_and(|name| scan::is_thunk(&name)) {
                    (To::Unknown, None)
                } else {
                    (To::Function(self.whole(place)), None)
                }
            }
            Destination::Import(name) => {
                let to = self.import(image, &name);
                (to, Some(name.into()))
            }
            Destination::Unknown => (To::Unknown, None),
        }
    }

    /// The function that a file calls by this name: where only one file of the recording defines it,
    /// that one's. Which file a process would take it from is not known.
    pub(super) fn import(&self, image: ImageId, name: &str) -> To {
        let files = 0..self.files.len();
        let mut defined = files.filter_map(|file| {
            let start = self.definitions.exports(file).start(name.as_bytes())?;
            Some((file, start))
        });
        let own = self.files.iter().position(|&file| file == image);
        let Some((file, start)) = defined.next().filter(|_| own.is_some()) else {
            return To::Unknown;
        };
        if defined.next().is_some() {
            return To::Unknown;
        }
        self.defined(file, start)
    }

    /// The function that a file calls by this name: where several files of the recording define it,
    /// that of the first in the order of what the file needs.
    pub(in crate::symbolize::repair) fn first_import(
        &self,
        image: ImageId,
        name: &str,
    ) -> Option<To> {
        let own = self.files.iter().position(|&file| file == image)?;
        match self.definitions.of(own, name)? {
            Definition::Scanned(file, start) => Some(self.defined(file, start)),
            Definition::Elsewhere(..) => None,
        }
    }

    /// What a call leads to of the function that a file defines there.
    pub(super) fn defined(&self, file: usize, start: Svma) -> To {
        let image = self.files[file];
        let chooses = self
            .binary(image)
            .is_some_and(|binary| binary.chosen_name(start).is_some());
        let start = start.0;
        let place = FunctionStart { image, start };
        if chooses {
            To::ChosenBy(place)
        } else {
            To::Function(place)
        }
    }
}
