//! What keys do to samples while they are taken: pause, reset, and fade.

use std::time::Duration;

use super::super::source::State;
use super::{Action, App};

/// The default half-life of weights.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// The shortest and the longest such time.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(640);
impl App {
    pub(super) fn pause(&mut self) {
        self.paused = match self.paused.take() {
            Some(_) => None,
            None => self.latest.clone(),
        };
    }

    pub(super) fn reset(&mut self) -> Action {
        self.paused = None;
        if let State::Ended(_) = self.state {
            self.message = Some("sampling has ended: there is nothing more to count".into());
            return Action::Nothing;
        }
        self.resets += 1;
        self.message = Some("counting from now on".into());
        Action::Reset
    }

    pub(super) fn fade(&mut self) -> Action {
        let half_life = match self.wish.half_life {
            Some(_) => None,
            None => Some(HALF_LIFE),
        };
        self.wish.half_life = half_life;
        Action::HalfLife(half_life)
    }

    pub(super) fn fade_in(&mut self, other: impl Fn(Duration) -> Duration) -> Action {
        let Some(time) = self.wish.half_life else {
            self.message = Some("weights do not fade; press d to fade them".into());
            return Action::Nothing;
        };
        let half_life = Some(other(time).clamp(SHORTEST, LONGEST));
        self.wish.half_life = half_life;
        Action::HalfLife(half_life)
    }
}
