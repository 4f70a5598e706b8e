//! What keys do to samples while they are taken: pause, reset, and fade.

use std::time::Duration;

use super::super::source::State;
use super::super::text::seconds;
use super::{Action, App};

const HALF_LIFE: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(640);
impl App {
    pub(super) fn pause(&mut self) {
        let has_ended = matches!(self.state, State::Ended(_));
        self.paused = match self.paused.take() {
            Some(_) => None,
            None if has_ended => {
                self.message = Some("sampling has ended: nothing changes any more".into());
                None
            }
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
        self.fade_by(match self.wish.half_life {
            Some(_) => None,
            None => Some(HALF_LIFE),
        })
    }

    pub(super) fn fade_in(&mut self, other: impl Fn(Duration) -> Duration) -> Action {
        let Some(time) = self.wish.half_life else {
            self.message = Some("weights do not fade; press d to fade them".into());
            return Action::Nothing;
        };
        self.fade_by(Some(other(time).clamp(SHORTEST, LONGEST)))
    }

    fn fade_by(&mut self, half_life: Option<Duration>) -> Action {
        if let State::Ended(_) = self.state {
            self.message = Some("sampling has ended: weights stay as they are".into());
            return Action::Nothing;
        }
        self.wish.half_life = half_life;
        let then = if self.is_paused() {
            "when the display goes on, "
        } else {
            ""
        };
        self.message = Some(match half_life {
            Some(time) => format!("{then}weights halve every {}", seconds(time)),
            None => format!("{then}all samples count in full"),
        });
        Action::HalfLife(half_life)
    }
}
