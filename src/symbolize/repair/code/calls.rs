//! Where calls lead, and the calls before return addresses, each looked up alone.

use std::rc::Rc;

use crate::base::Svma;
use crate::cache::Kept;
use crate::scan::{self, Destination, Exits, Leaving, LeavingKind};
use crate::symbolize::definitions::Definition;
use crate::trace::ImageId;

use super::super::function_exits::{FunctionStart, To};
use super::{Code, KEPT_EXITS};

// How many functions are looked into for a call: programs have one in their first.
const LOOKED_INTO: usize = 4096;

/// Where a call leads, and the linkage name by which it calls, where it does by name.
pub(in super::super) struct Called {
    pub(in super::super) to: To,
    pub(in super::super) name: Option<Rc<str>>,
}

pub(super) fn behind(leaving: &Leaving) -> u64 {
    leaving.at.0.wrapping_add(u64::from(leaving.length))
}

impl Code<'_> {
    /// The call that returns to this stated address, if one of the function around it does.
    pub(in super::super) fn call_before(&self, image: ImageId, end: u64) -> Option<Called> {
        // What else the function calls is not looked up: most functions are asked about one call.
        let place = self.function_start(image, end.checked_sub(1)?)?;
        let exits = self.exits(place)?;
        let returns = self.returns.get(&place, || {
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
    pub(in super::super) fn has_calls(&self, image: ImageId) -> bool {
        let Some(binary) = self.binary(image) else {
            return false;
        };
        binary.functions().iter().take(LOOKED_INTO).any(|function| {
            let exits = self.exits(FunctionStart::of(image, function.start));
            exits.is_some_and(|exits| {
                let mut sites = exits.sites.iter();
                sites.any(|site| site.kind == LeavingKind::Call)
            })
        })
    }

    /// How control leaves what starts here, alone; `None` where its code cannot be read.
    pub(super) fn exits(&self, place: FunctionStart) -> Option<Rc<Exits>> {
        self.exits.get(&place, || {
            let binary = self.binary(place.image)?;
            let kept = self.kept_exits[place.image]
                .get_or_init(|| Kept::open(binary.place_to_keep(KEPT_EXITS)));
            let key = place.start.to_be_bytes();
            if let Some(known) = kept.get::<Exits>(&key) {
                return Some(Rc::new(known));
            }
            // The tables of a file take long to read, and what was kept needs none.
            let found = self.single(place.image)?.leaving(Svma(place.start))?;
            kept.add(key, &found);
            Some(Rc::new(found))
        })
    }

    /// Where the call leads, and by what name, that most likely returns to this stated address: see
    /// [`crate::scan::Single::likely_call_before`].
    pub(in super::super) fn likely_call_before(
        &self,
        image: ImageId,
        behind: u64,
    ) -> Option<(To, Option<Rc<str>>)> {
        let to = self.single(image)?.likely_call_before(Svma(behind))?;
        Some(self.destination(image, to))
    }

    /// Where a call or jump leads, and by what name.
    pub(super) fn destination(&self, image: ImageId, to: Destination) -> (To, Option<Rc<str>>) {
        match to {
            Destination::Function(start) => {
                let place = FunctionStart::of(image, start);
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

    /// The function that a file calls by this name: where only one file of the recording defines
    /// it, that one's.
    pub(super) fn import(&self, image: ImageId, name: &str) -> To {
        // Which file a process would take it from is not known.
        let files = 0..self.files.len();
        let mut defined = files.filter_map(|file| {
            let start = self.definitions.exports(file).start(name.as_bytes())?;
            Some((file, start))
        });
        match (self.file(image), defined.next(), defined.next()) {
            (Some(_), Some((file, start)), None) => self.defined(file, start),
            _ => To::Unknown,
        }
    }

    /// The function that a file calls by this name: where several files of the recording define it,
    /// that of the first in the order of what the file needs.
    pub(in super::super) fn first_import(&self, image: ImageId, name: &str) -> Option<To> {
        match self.definitions.of(self.file(image)?, name)? {
            Definition::Scanned(file, start) => Some(self.defined(file, start)),
            Definition::Elsewhere(..) => None,
        }
    }

    pub(super) fn defined(&self, file: usize, start: Svma) -> To {
        let place = FunctionStart::of(self.files[file], start);
        if self.chooses(place) {
            To::ChosenBy(place)
        } else {
            To::Function(place)
        }
    }
}
