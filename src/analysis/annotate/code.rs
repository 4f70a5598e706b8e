//! Weight by address of machine code.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{Placed, Sums};
use crate::profile::{AddressId, FunctionId, Listing, PlaceId, Places, Profile, Selection};

/// The weights of one address of a function's machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressWeights {
    /// The stated address: of the instruction, where the machine code is known. Else it is the
    /// address as it was sampled, of a call one inside of its instruction.
    pub address: u64,
    /// The weight of the samples taken there.
    pub self_weight: u64,
    /// The weight of the samples taken there and in what is called from there.
    pub total: u64,
}

/// The weights of a function's machine code, which has the code of all that is inlined into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeWeights {
    /// Those of each address, in order.
    pub addresses: Vec<AddressWeights>,
    /// The weight of the samples taken in this code.
    pub self_weight: u64,
    /// The weight of the samples taken in this code and in what it calls.
    pub total: u64,
    /// The self weight of the function where it is inlined into others: it is in their code.
    pub inlined_elsewhere: u64,
}

// The frames that share the address of a place, from the innermost inlined call to the function
// whose machine code it is.
fn frames_at<'a>(
    profile: &'a Profile,
    places: &'a Places,
    id: PlaceId,
) -> impl Iterator<Item = FunctionId> {
    let caller = |id: &PlaceId| {
        let place = &places.tree()[*id];
        let caller = place.caller.filter(|_| profile.paths[place.path].inlined)?;
        (places.tree()[caller].address == place.address).then_some(caller)
    };
    let function = |id: PlaceId| profile.paths[places.tree()[id].path].function;
    std::iter::successors(Some(id), caller).map(function)
}

// `None` for a place without an address.
fn machine_function(profile: &Profile, places: &Places, id: PlaceId) -> Option<FunctionId> {
    places.tree()[id].address?;
    frames_at(profile, places, id).last()
}

// `None` for rows without an address.
pub(super) fn machine_functions(
    profile: &Profile,
    places: &Places,
    selection: &Selection,
) -> Vec<Option<FunctionId>> {
    let function = |id| machine_function(profile, places, id);
    let rows = selection.rows().iter();
    rows.map(|row| row.place.and_then(function)).collect()
}

impl Sums<'_> {
    /// The stated addresses of a function's frames on all stacks, in order, each once: of those in
    /// the machine code of `holder`, which is the function itself or one that it is inlined into.
    pub fn addresses(&self, function: FunctionId, holder: FunctionId) -> Vec<u64> {
        let placed = self.placed.iter();
        let mut addresses: Vec<u64> = placed
            .flat_map(|placed| {
                let frames = self.frames_in(placed, function, holder);
                frames.map(|(_, address)| placed.places.addresses()[address])
            })
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// The other functions in whose machine code samples were taken in this one, with its self
    /// weight there, the heaviest first.
    pub fn holders(&self, function: FunctionId) -> Vec<(FunctionId, u64)> {
        let mut of: FxHashMap<FunctionId, u64> = FxHashMap::default();
        if let Some(placed) = &self.placed {
            for (number, row) in self.rows_of(function) {
                if let Some(holder) = placed.machine[number].filter(|&it| it != function) {
                    *of.entry(holder).or_default() += row.weight;
                }
            }
        }
        let mut holders: Vec<_> = of.into_iter().collect();
        holders.sort_unstable_by_key(|&(holder, weight)| (Reverse(weight), holder));
        holders
    }

    /// The weights of a function where it is inlined into `holder`, by the instructions of
    /// `listing`.
    pub fn inlined_into(
        &self,
        holder: FunctionId,
        function: FunctionId,
        listing: &Listing,
    ) -> CodeWeights {
        let placed = self.placed.as_ref();
        let code = placed.and_then(|placed| self.code(placed, function, holder, Some(listing)));
        code.unwrap_or_default()
    }

    fn frames_in(
        &self,
        placed: &Placed<'_>,
        function: FunctionId,
        holder: FunctionId,
    ) -> impl Iterator<Item = (PlaceId, AddressId)> {
        let places = placed.places;
        placed.of_function(function).filter_map(move |id| {
            let place = &places.tree()[id];
            let is_inlined = self.profile.paths[place.path].inlined;
            let is_in = match holder == function {
                true => !is_inlined,
                false => is_inlined && machine_function(self.profile, places, id) == Some(holder),
            };
            Some((id, place.address.filter(|_| is_in)?))
        })
    }

    // `None` where no address of it is known. With a listing the weights are those of its
    // instructions.
    pub(super) fn code(
        &self,
        placed: &Placed<'_>,
        function: FunctionId,
        holder: FunctionId,
        listing: Option<&Listing>,
    ) -> Option<CodeWeights> {
        let places = placed.places;
        // A sample may have a call on its stack and end at it, too: these are two addresses.
        let instruction = |address: AddressId| {
            let address = places.addresses()[address];
            let found = listing.and_then(|listing| {
                let place = listing.instruction_at(address)?;
                Some(listing.instructions[place].address)
            });
            found.unwrap_or(address)
        };
        let below: Vec<(PlaceId, u64)> = (self.frames_in(placed, function, holder))
            .map(|(id, address)| (id, instruction(address)))
            .collect();
        let mut own: FxHashMap<u64, u64> = FxHashMap::default();
        for row in placed.rows_within(self.selection, holder) {
            let Some(id) = row.place else { continue };
            let mut frames = frames_at(self.profile, places, id);
            if let Some(address) = places.tree()[id].address
                && frames.any(|frame| frame == function)
            {
                *own.entry(instruction(address)).or_default() += row.weight;
            }
        }
        let elsewhere = self.holders(function).into_iter();
        let inlined_elsewhere = elsewhere.map(|(_, weight)| weight).sum();
        if below.is_empty() && inlined_elsewhere == 0 {
            return None;
        }
        let all = below.iter().map(|&(place, _)| (place, ()));
        let total = placed.weights.totals(all, std::iter::empty());
        let totals = placed
            .weights
            .totals(below.iter().copied(), std::iter::empty());
        let mut addresses: Vec<AddressWeights> = totals
            .into_iter()
            .map(|(address, total)| AddressWeights {
                address,
                self_weight: own.get(&address).copied().unwrap_or(0),
                total,
            })
            .filter(|weights| weights.total > 0)
            .collect();
        addresses.sort_unstable_by_key(|weights| weights.address);
        Some(CodeWeights {
            self_weight: addresses.iter().map(|weights| weights.self_weight).sum(),
            addresses,
            total: total.get(&()).copied().unwrap_or(0),
            inlined_elsewhere,
        })
    }
}
