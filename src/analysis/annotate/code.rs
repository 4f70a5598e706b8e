//! Weight by address of machine code.

use rustc_hash::FxHashMap;

use crate::profile::{
    AddressId, FunctionId, Listing, PlaceId, PlaceWeights, Places, Profile, Selection,
};

/// The weights of one address of a function's machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressWeights {
    /// The stated address: of the instruction, where the machine code is known. Else it is the address as
    /// it was sampled, of a call one inside of its instruction.
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

/// The stated addresses of a function's frames on all stacks, in order, each once.
pub fn addresses(profile: &Profile, function: FunctionId) -> Vec<u64> {
    let Some(places) = &profile.places else {
        return Vec::new();
    };
    let frames = machine_frames(profile, places, function);
    let mut addresses: Vec<u64> = frames
        .map(|(_, address)| places.addresses()[address])
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The frames of the function's machine code, with their addresses.
fn machine_frames(
    profile: &Profile,
    places: &Places,
    function: FunctionId,
) -> impl Iterator<Item = (PlaceId, AddressId)> {
    places.tree().enumerate().filter_map(move |(id, place)| {
        let path = &profile.paths[place.path];
        let is_it = path.function == function && !path.inlined;
        Some((id, place.address.filter(|_| is_it)?))
    })
}

/// The weights of the function's machine code; `None` where no address of it is known. With a listing
/// they are those of its instructions.
pub(super) fn weights(
    profile: &Profile,
    places: &Places,
    placed: &PlaceWeights,
    selection: &Selection,
    function: FunctionId,
    listing: Option<&Listing>,
) -> Option<CodeWeights> {
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
    let function_of = |id: PlaceId| profile.paths[places.tree()[id].path].function;
    // A sample may have a call on its stack and end at it, too: these are two addresses.
    let instruction = |address: AddressId| {
        let address = places.addresses()[address];
        let found = listing.and_then(|listing| {
            let place = listing.instruction_at(address)?;
            Some(listing.instructions[place].address)
        });
        found.unwrap_or(address)
    };
    let below: Vec<(PlaceId, u64)> = machine_frames(profile, places, function)
        .map(|(id, address)| (id, instruction(address)))
        .collect();
    let mut own: FxHashMap<u64, u64> = FxHashMap::default();
    let mut inlined_elsewhere = 0;
    for row in selection.rows() {
        let Some(id) = row.place else { continue };
        let Some(address) = places.tree()[id].address else {
            continue;
        };
        if function_of(machine_frame(id)) == function {
            *own.entry(instruction(address)).or_default() += row.weight;
        } else if function_of(id) == function {
            inlined_elsewhere += row.weight;
        }
    }
    if below.is_empty() && inlined_elsewhere == 0 {
        return None;
    }
    let all = below.iter().map(|&(place, _)| (place, ()));
    let total = placed.totals(all, std::iter::empty());
    let totals = placed.totals(below.iter().copied(), std::iter::empty());
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
