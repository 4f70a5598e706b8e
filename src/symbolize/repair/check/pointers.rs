//! What is called through pointers.

use crate::trace::FrameId;

use super::super::explanation::Missing;
use super::super::function_exits::{FunctionStart, To, WayOut};
use super::{Checks, Site};

impl Checks<'_, '_> {
    /// Whether no pointer leads to a function, but one leads to functions that jump to it: called
    /// through a pointer, one of these made way for it.
    pub(super) fn is_only_jumped_to(&self, place: FunctionStart) -> bool {
        let entries = self.explanations.entries(place, false);
        entries.owner && !entries.itself
    }

    pub(in super::super) fn calls_pointer(&self, frame: FrameId) -> bool {
        matches!(self.site(frame), Site::Pointer)
    }

    pub(in super::super) fn may_leave_through_pointer(&self, missing: &Missing) -> bool {
        let function = self.code.function(missing.function);
        let leads_anywhere = |out: &&WayOut| matches!(out.to, To::Unknown) && out.name.is_none();
        let ways_out = function.iter().flat_map(|it| &it.ways_out);
        let mut sites = ways_out.filter(leads_anywhere).flat_map(|out| &out.sites);
        sites.any(|site| missing.left_at.contains(&site.end))
    }
}
