//! Whose code a function is: of the project, a library, the standard library, the kernel.
//!
//! Where debug information says in which file a function is declared, that decides; else its name
//! and module do:
//!
//! | declared in | owner |
//! |---|---|
//! | `…/registry/src/INDEX/mio-1.0.3/…`, `…/vendor/mio/…` | the library `mio` |
//! | `/rustc/HASH/library/core/…`, `…/include/c++/…` | the standard library `core`, `std` |
//! | `/usr/include/boost/…` | the library `boost` |
//! | a directory in which the program was compiled | the project, by package or directory |
//! | elsewhere, or not known | by the crate or namespace in its name, else by its module |
//!
//! The directories in which a program was compiled are those of its debug information: cargo
//! compiles the crates of a workspace in the workspace, and those of a registry in the registry.
//! The user can name others.

mod charged;
mod classify;
mod schedulers;

pub use charged::{Charged, Share};
pub use schedulers::{Scheduled, scheduled};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::{IdVec, define_id};
use crate::profile::{FunctionId, Profile};

define_id! {
    /// An owner of code: see [`Owners`].
    pub OwnerId
}

/// What an owner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    /// The project that was compiled: the user's own code.
    Project,
    /// A crate, package or shared library that it uses.
    Library,
    /// A language's standard library, or what serves all programs: the C library, the loader.
    Standard,
    /// The kernel.
    Kernel,
    /// No code: a mark in a stack.
    Mark,
}

impl OwnerKind {
    /// The word for it, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            OwnerKind::Project => "project",
            OwnerKind::Library => "library",
            OwnerKind::Standard => "standard",
            OwnerKind::Kernel => "kernel",
            OwnerKind::Mark => "mark",
        }
    }
}

/// An owner of code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The crate, namespace, directory or module.
    pub name: String,
    /// What it is.
    pub kind: OwnerKind,
}

/// The owner of each function.
#[derive(Clone, Debug)]
pub struct Owners {
    /// The owners, in order of the first function of each.
    pub owners: IdVec<OwnerId, Owner>,
    of: IdVec<FunctionId, OwnerId>,
    starts: FxHashSet<FunctionId>,
}

impl Owners {
    /// Finds the owners of all functions on stacks. `own` are directories, and names of crates,
    /// packages and modules, that are the project; if there are none, the directories in which
    /// programs were compiled are.
    ///
    /// ```
    /// use proftool::analysis::owners::{OwnerKind, Owners};
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::FunctionId;
    ///
    /// let text = "main;app::run;<app::Item as core::fmt::Debug>::fmt;std::terminate() 3\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let owners = Owners::of_profile(&profile, &[]);
    /// assert_eq!(owners.of(FunctionId::new(1)).kind, OwnerKind::Project);
    /// assert_eq!(owners.of(FunctionId::new(3)).kind, OwnerKind::Standard);
    /// ```
    pub fn of_profile(profile: &Profile, own: &[String]) -> Owners {
        let rules = classify::Rules::new(profile, own);
        let on_stacks = profile.functions_on_stacks();
        let mut known: FxHashMap<Owner, OwnerId> = FxHashMap::default();
        let mut owners = IdVec::default();
        let mut of = IdVec::default();
        let nobody = Owner {
            name: String::new(),
            kind: OwnerKind::Mark,
        };
        for (id, function) in profile.functions.enumerate() {
            let owner = if on_stacks[id] {
                rules.owner(function)
            } else {
                nobody.clone()
            };
            let owner = *known
                .entry(owner)
                .or_insert_with_key(|owner| owners.push(owner.clone()));
            of.push(owner);
        }
        let functions = profile.functions.enumerate();
        let starts = functions.filter(|(_, function)| classify::is_start(function));
        Owners {
            owners,
            of,
            starts: starts.map(|(id, _)| id).collect(),
        }
    }

    /// The owner of a function.
    pub fn of(&self, function: FunctionId) -> &Owner {
        &self.owners[self.of[function]]
    }

    /// The number of the owner of a function.
    pub fn id_of(&self, function: FunctionId) -> OwnerId {
        self.of[function]
    }

    /// Whether a function only starts programs or threads.
    pub fn is_start(&self, function: FunctionId) -> bool {
        self.starts.contains(&function)
    }

    /// Whether a function is the user's own code.
    pub fn is_own(&self, function: FunctionId) -> bool {
        self.of(function).kind == OwnerKind::Project
    }

    /// Whether some function is the user's own code.
    pub fn has_own(&self) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|owner| owner.kind == OwnerKind::Project)
    }
}
