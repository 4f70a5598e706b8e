//! Weight by address of machine code.

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

// `None` for rows without an address.
pub(super) fn machine_functions(
    profile: &Profile,
    places: &Places,
    selection: &Selection,
) -> Vec<Option<FunctionId>> {
    // The frame that has the address of a place and is no inlined call.
    let machine_frame = |mut id: PlaceId| {
        loop {
            let place = &places.tree()[id];
            match place.caller.filter(|_| profile.paths[place.path].inlined) {
                Some(caller) if places.tree()[caller].address == place.address => id = caller,
                _ => break id,
            }
        }
    };
    let has_address = |id: &PlaceId| places.tree()[*id].address.is_some();
    let function = |id| profile.paths[places.tree()[machine_frame(id)].path].function;
    let rows = selection.rows().iter();
    rows.map(|row| row.place.filter(has_address).map(function))
        .collect()
}

impl Sums<'_> {
    /// The stated addresses of a function's frames on all stacks, in order, each once.
    pub fn addresses(&self, function: FunctionId) -> Vec<u64> {
        let placed = self.placed.iter();
        let mut addresses: Vec<u64> = placed
            .flat_map(|placed| {
                let frames = self.machine_frames(placed, function);
                frames.map(|(_, address)| placed.places.addresses()[address])
            })
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    fn machine_frames(
        &self,
        placed: &Placed<'_>,
        function: FunctionId,
    ) -> impl Iterator<Item = (PlaceId, AddressId)> {
        placed.of_function(function).filter_map(|id| {
            let place = &placed.places.tree()[id];
            let is_inlined = self.profile.paths[place.path].inlined;
            Some((id, place.address.filter(|_| !is_inlined)?))
        })
    }

    // `None` where no address of it is known. With a listing the weights are those of its
    // instructions.
    pub(super) fn code(
        &self,
        placed: &Placed<'_>,
        function: FunctionId,
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
        let below: Vec<(PlaceId, u64)> = (self.machine_frames(placed, function))
            .map(|(id, address)| (id, instruction(address)))
            .collect();
        let mut own: FxHashMap<u64, u64> = FxHashMap::default();
        for row in placed.rows_within(self.selection, function) {
            let place = row.place.map(|id| &places.tree()[id]);
            if let Some(address) = place.and_then(|place| place.address) {
                *own.entry(instruction(address)).or_default() += row.weight;
            }
        }
        let elsewhere = self.rows_of(function).filter(|(row, _)| {
            let machine = placed.machine[*row];
            machine.is_some_and(|machine| machine != function)
        });
        let inlined_elsewhere = elsewhere.map(|(_, row)| row.weight).sum();
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
