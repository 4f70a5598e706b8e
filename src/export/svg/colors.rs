//! Colours of frames: a hue for each module, and a shade for each function, so that frames next to
//! each other can be told apart.
//!
//! All are light enough for black text, and differ in lightness as well as in hue, so that they
//! differ for colour-blind people, too.

use crate::base::{Event, IdVec, Unit};
use crate::profile::{FunctionId, ModuleId, Profile};
use crate::view::changes::Tint;

pub(super) const HUES: usize = 8;
pub(super) const KERNEL: usize = HUES;
// The hue of all modules after the first eight.
pub(super) const OTHERS: usize = HUES + 1;
pub(super) const SHADES: usize = 3;

// Red, green and blue.
pub(super) type Palette = [[u8; 3]; HUES + 2];

// The colours of Okabe and Ito, lightened.
const RUNNING: Palette = [
    [0xf5, 0xb8, 0x4b],
    [0x8c, 0xcb, 0xf0],
    [0xf2, 0xe5, 0x7a],
    [0x5f, 0xc9, 0xa5],
    [0xdd, 0xa0, 0xc8],
    [0x9d, 0xb4, 0xf0],
    [0xc9, 0xc4, 0x8a],
    [0x86, 0xd6, 0xd6],
    [0xf0, 0x94, 0x6e],
    [0xc8, 0xc8, 0xc8],
];
// Blue and violet ones.
const WAITING: Palette = [
    [0x8c, 0xb8, 0xf0],
    [0xb9, 0xa6, 0xe6],
    [0x9c, 0xdc, 0xe8],
    [0xdc, 0xb4, 0xe6],
    [0xa8, 0xc8, 0xd8],
    [0x8f, 0xa2, 0xe0],
    [0xcf, 0xd8, 0xf5],
    [0x7f, 0xc2, 0xc9],
    [0x9a, 0xa8, 0xc0],
    [0xc8, 0xc8, 0xc8],
];
// Green ones.
const MEMORY: Palette = [
    [0x8f, 0xd6, 0x8f],
    [0xd2, 0xe0, 0x7a],
    [0x70, 0xc4, 0xa8],
    [0xb5, 0xe8, 0xc6],
    [0xa9, 0xc4, 0x78],
    [0x7f, 0xd6, 0xc6],
    [0xe3, 0xe8, 0xb0],
    [0x9a, 0xc8, 0xa0],
    [0xc4, 0xb5, 0x82],
    [0xc8, 0xc8, 0xc8],
];

// By tint, changes: only what is known to have changed is not grey.
const CHANGES: [[u8; 3]; 5] = [
    [0xd6, 0xd6, 0xd6],
    [0xf2, 0x6d, 0x5b],
    [0xfa, 0xc6, 0xbd],
    [0x62, 0xa3, 0xee],
    [0xc0, 0xdb, 0xf9],
];

const FAULTS: [&str; 3] = ["page-faults", "minor-faults", "major-faults"];

pub(super) fn of_changes() -> &'static [[u8; 3]] {
    &CHANGES
}

// The hue of a tint among those of changes.
pub(super) fn hue(tint: Tint) -> usize {
    match tint {
        Tint::Neutral => 0,
        Tint::Worse => 1,
        Tint::WorseByCallees => 2,
        Tint::Better => 3,
        Tint::BetterByCallees => 4,
    }
}

pub(super) fn palette(event: &Event) -> &'static Palette {
    let is_bytes = matches!(&event.unit, Unit::Count(what) if what == "bytes");
    if event.is_off_processor() {
        &WAITING
    } else if is_bytes || FAULTS.contains(&event.base()) {
        &MEMORY
    } else {
        &RUNNING
    }
}

// A shade of a hue, as CSS has it.
pub(super) fn shade([r, g, b]: [u8; 3], shade: usize) -> String {
    let part = [0u32, 14, 28][shade % SHADES];
    let mixed = |c: u8| u32::from(c) + (255 - u32::from(c)) * part / 100;
    format!("#{:02x}{:02x}{:02x}", mixed(r), mixed(g), mixed(b))
}

// What of a picture is a module's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    // The weight of its frames.
    pub frames: u64,
    // The weight of the samples taken in it.
    pub own: u64,
}

pub(super) struct Colors {
    hue_of: IdVec<ModuleId, usize>,
    // Those with the largest part of the picture first, each with its own weight.
    pub modules: Vec<(ModuleId, u64)>,
    // Functions have modules: else the hue is the function's.
    pub by_module: bool,
}

impl Colors {
    // Chooses hues for the modules of frames: of each the part of the picture and its own weight.
    pub fn new(profile: &Profile, parts: &IdVec<ModuleId, Part>) -> Colors {
        let mut drawn: Vec<(ModuleId, Part)> = parts
            .enumerate()
            .filter(|(id, part)| part.frames > 0 && !profile.modules[*id].name.is_empty())
            .map(|(id, &part)| (id, part))
            .collect();
        let name = |id: ModuleId| (&profile.modules[id].name, &profile.modules[id].path);
        drawn.sort_by(|a, b| {
            let order = b.1.frames.cmp(&a.1.frames);
            order.then_with(|| name(a.0).cmp(&name(b.0)))
        });
        let modules: Vec<(ModuleId, u64)> =
            drawn.into_iter().map(|(id, part)| (id, part.own)).collect();
        let mut hue_of = IdVec::filled(OTHERS, profile.modules.len());
        let mut next = 0;
        for &(id, _) in &modules {
            hue_of[id] = if profile.modules[id].is_kernel() {
                KERNEL
            } else if next < HUES {
                next += 1;
                next - 1
            } else {
                OTHERS
            };
        }
        Colors {
            hue_of,
            by_module: !modules.is_empty(),
            modules,
        }
    }

    pub fn hue(&self, module: ModuleId) -> usize {
        self.hue_of[module]
    }

    pub fn of(&self, profile: &Profile, function: FunctionId) -> (usize, usize) {
        let function = &profile.functions[function];
        let hash = hash(&function.name);
        if self.by_module {
            (self.hue(function.module), hash % SHADES)
        } else {
            (hash % HUES, hash / HUES % SHADES)
        }
    }
}

// The same for a name in each run and on each machine: FNV-1a.
fn hash(name: &str) -> usize {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = name.bytes().fold(0x811c_9dc5, step);
    (hash ^ (hash >> 16)) as usize
}
