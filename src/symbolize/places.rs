//! From which lines the calls on stacks were made: address paths become places.
//!
//! ```text
//!   return address in main    main:9 { setup:31 }   inlined: setup, from line 9 of main
//!   return address in read    read:52
//!   address of the leaf       lex:7
//!
//!   main ◀─9─ setup ◀─31─ read ◀─52─ lex            the line of a call is its caller's
//! ```

use crate::profile::{AddressId, Builder, LineId, PathId, Place, PlaceId};
use crate::trace::{AddressPaths, FrameId};

/// The lines of one address.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameLines<'a> {
    /// Of its innermost frame: the line of what it calls.
    pub(super) innermost: Option<LineId>,
    /// Of the calls that are inlined there, outermost first: the lines of their callers.
    pub(super) inlined: &'a [Option<LineId>],
    pub(super) address: Option<AddressId>,
}

/// The place of each address path, whose call path `paths` has.
pub(super) fn of_paths<'a>(
    tree: &AddressPaths,
    paths: &[PathId],
    lines: impl Fn(FrameId) -> FrameLines<'a>,
    builder: &mut Builder,
) -> Vec<PlaceId> {
    // A call path may have more frames than addresses and inlined calls account for: who called
    // these is known, but not from where.
    let mut places: Vec<PlaceId> = Vec::with_capacity(paths.len());
    let mut frames: Vec<PathId> = Vec::new();
    for ((_, path), &innermost) in tree.enumerate().zip(paths) {
        let caller = path.caller.map(|caller| caller.index());
        let outside = caller.map(|caller| paths[caller]);
        // What this address adds to its caller's call path, innermost first.
        frames.clear();
        let mut at = Some(innermost);
        while let Some(frame) = at.filter(|_| at != outside) {
            frames.push(frame);
            at = builder.call_path(frame).caller;
        }
        let FrameLines {
            inlined, address, ..
        } = lines(path.frame);
        let called_from = path
            .caller
            .and_then(|caller| lines(tree[caller].frame).innermost);
        let mut place = caller.map(|caller| places[caller]);
        for (depth, &frame) in frames.iter().enumerate().rev() {
            let line = match inlined.len().checked_sub(depth + 1) {
                Some(call) => inlined[call],
                None if depth + 1 == frames.len() => called_from,
                None => None,
            };
            place = Some(builder.place_at(Place {
                caller: place,
                path: frame,
                line,
                // The function that has the address, and what is inlined there.
                address: address.filter(|_| depth <= inlined.len()),
            }));
        }
        places.extend(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Function, FunctionId, Line, LineId, Module, PathId, Profile};
    use crate::trace::{AddressPath, AddressPathId};

    /// Lines of calls and names of functions on a place, outermost first.
    fn told(profile: &Profile, mut place: Option<PlaceId>) -> String {
        let places = profile.places.as_ref().unwrap();
        let mut frames = Vec::new();
        while let Some(id) = place {
            let here = places.tree()[id];
            let line = here.line.map(|line| profile.lines[line].line.to_string());
            let function = profile.paths[here.path].function;
            let name = &profile.functions[function].name;
            frames.push(format!("{}:{name}", line.unwrap_or("?".into())));
            place = here.caller;
        }
        frames.reverse();
        frames.join(" ")
    }

    #[test]
    fn a_call_has_the_line_of_the_innermost_frame_of_its_callers_address() {
        let mut builder = Builder::default();
        let module = builder.module(Module {
            name: "app".into(),
            path: "/app".into(),
        });
        let functions: Vec<FunctionId> = ["main", "setup", "jump", "read", "lex"]
            .map(|name| builder.function(Function::named(name, module)))
            .into();
        let lines: Vec<LineId> = [9, 31, 52, 7]
            .map(|line| {
                builder.line(Line {
                    file: "a.c".into(),
                    line,
                })
            })
            .into();
        // main { setup } calls jump, which no address is left of; it became read, which has lex
        // inlined.
        let mut path = None;
        let mut to = |function: usize, inlined| {
            let here = builder.path(path, functions[function], inlined);
            path = Some(here);
            here
        };
        let (_, setup) = (to(0, false), to(1, true));
        let (_, _, lex) = (to(2, false), to(3, false), to(4, true));
        let frames = [0, 1].map(FrameId::new);
        let caller = Some(AddressPathId::new(0));
        let tree: AddressPaths = vec![
            AddressPath {
                caller: None,
                frame: frames[0],
            },
            AddressPath {
                caller,
                frame: frames[1],
            },
        ]
        .into();
        let inlined = [[Some(lines[0])], [Some(lines[2])]];
        let of = |frame: FrameId| FrameLines {
            innermost: Some(lines[[1, 3][frame.index()]]),
            inlined: &inlined[frame.index()],
            address: None,
        };
        let paths: [PathId; 2] = [setup, lex];
        let places = of_paths(&tree, &paths, of, &mut builder);
        let profile = builder.finish();
        assert_eq!(told(&profile, Some(places[0])), "?:main 9:setup");
        let lex = "?:main 9:setup 31:jump ?:read 52:lex";
        assert_eq!(told(&profile, Some(places[1])), lex);
    }
}
