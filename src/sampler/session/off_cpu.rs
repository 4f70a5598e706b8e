//! Off-CPU time: what is recorded for it in addition to the requested events.
//!
//! ```text
//!   SWITCH records      when each thread leaves and enters a processor; of the first event, as it
//!                       has all records about threads; allowed for everyone who may record
//!   context-switches    a sample of each time that a thread leaves, with its stack; it happens in
//!                       the kernel, so only for those who may see the kernel
//! ```

use perf_event_open_sys::bindings::perf_event_attr;

use super::request::Request;
use crate::sampler::events::event::EventSpec;

// How many times larger ring buffers are than for samples alone: threads that wait for each other
// switch a hundred thousand times a second.
const LARGER: usize = 8;

/// The size of each ring buffer when nothing is said; for samples alone it would be `usual`, and it
/// is never more than `most`.
pub(in crate::sampler) fn ring_bytes(usual: usize, most: usize) -> usize {
    usual.saturating_mul(LARGER).min(most).max(usual)
}

impl Request {
    pub(in crate::sampler) fn add_off_cpu(&mut self) {
        self.off_cpu = true;
        self.events.push(EventSpec::context_switches());
        // It is no event of hardware, whose address could be more or less precise.
        self.precise.push(0);
    }

    pub(in crate::sampler) fn ask_for_switches(&self, attrs: &mut [perf_event_attr]) {
        if !self.off_cpu {
            return;
        }
        if let Some(first) = attrs.first_mut() {
            first.set_context_switch(1);
        }
        // Whatever rate was chosen for the others: a switch that is left out is an interval
        // without a stack.
        if let (true, Some(last)) = (self.has_switch_stacks(), attrs.last_mut()) {
            last.set_freq(0);
            last.__bindgen_anon_1.sample_period = 1;
        }
    }

    pub(in crate::sampler) fn has_switch_stacks(&self) -> bool {
        self.off_cpu && self.common.allowed.kernel
    }

    /// Takes the kernel back, and with it what happens only there: the stacks of switches.
    pub(in crate::sampler) fn take_kernel_back(&mut self) {
        if self.has_switch_stacks() {
            self.events.pop();
            self.precise.pop();
        }
        self.common.allowed.kernel = false;
    }
}
