//! Modifiers of an event: the letters of `cycles:upp`.

use super::error::EventError;

/// The modifiers of an event or a group. Nothing given is everything but guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sampler) struct Modifiers {
    user: bool,
    kernel: bool,
    hypervisor: bool,
    guest: bool,
    host: bool,
    precise: Option<u8>,
    pub(in crate::sampler) leader_samples: bool,
    /// The event is to be counted all the time, or not at all.
    pub(in crate::sampler) pinned: bool,
    /// No other event is counted meanwhile.
    pub(in crate::sampler) exclusive: bool,
    /// The group may be taken apart.
    pub(in crate::sampler) weak: bool,
}

impl Modifiers {
    pub(in crate::sampler) fn parse(event: &str, letters: &str) -> Result<Modifiers, EventError> {
        let mut modifiers = Modifiers::default();
        for letter in letters.chars() {
            match letter {
                'u' => modifiers.user = true,
                'k' => modifiers.kernel = true,
                'h' => modifiers.hypervisor = true,
                'G' => modifiers.guest = true,
                'H' => modifiers.host = true,
                'p' => modifiers.precise = Some((modifiers.precise.unwrap_or(0) + 1).min(3)),
                'P' => modifiers.precise = Some(3),
                'S' => modifiers.leader_samples = true,
                'D' => modifiers.pinned = true,
                'e' => modifiers.exclusive = true,
                'W' => modifiers.weak = true,
                _ => {
                    return Err(EventError::Modifier {
                        event: event.to_owned(),
                        letter,
                    });
                }
            }
        }
        Ok(modifiers)
    }

    pub(in crate::sampler) fn user_only() -> Modifiers {
        Modifiers {
            user: true,
            ..Modifiers::default()
        }
    }

    // Both, as the modifiers of a group add to those of its events.
    pub(in crate::sampler) fn and(self, other: Modifiers) -> Modifiers {
        Modifiers {
            user: self.user || other.user,
            kernel: self.kernel || other.kernel,
            hypervisor: self.hypervisor || other.hypervisor,
            guest: self.guest || other.guest,
            host: self.host || other.host,
            precise: self.precise.max(other.precise),
            leader_samples: self.leader_samples || other.leader_samples,
            pinned: self.pinned || other.pinned,
            exclusive: self.exclusive || other.exclusive,
            weak: self.weak || other.weak,
        }
    }

    /// The letters that tell what is counted, in their usual order; those that only tell how
    /// events are opened are left out.
    pub(in crate::sampler) fn letters(self) -> String {
        let all = [
            (self.user, "u"),
            (self.kernel, "k"),
            (self.hypervisor, "h"),
            (self.precise.is_some(), "ppp"),
            (self.guest, "G"),
            (self.host, "H"),
        ];
        let precise = usize::from(self.precise.unwrap_or(0));
        let given = all.iter().filter(|(given, _)| *given);
        given
            .map(|(_, letters)| match *letters {
                "ppp" => &letters[..precise],
                other => other,
            })
            .collect()
    }

    /// Whether a ring was chosen, and others are left out thereby.
    fn chosen(self) -> bool {
        self.user || self.kernel || self.hypervisor
    }

    pub(in crate::sampler) fn user(self) -> bool {
        self.user || !self.chosen()
    }

    pub(in crate::sampler) fn kernel(self) -> bool {
        self.kernel || !self.chosen()
    }

    pub(in crate::sampler) fn hypervisor(self) -> bool {
        self.hypervisor || !self.chosen()
    }

    pub(in crate::sampler) fn guest(self) -> bool {
        self.guest
    }

    pub(in crate::sampler) fn host(self) -> bool {
        self.host || !self.guest
    }

    /// How precise addresses are to be, 0 to 3.
    pub(in crate::sampler) fn precise(self) -> Option<u64> {
        self.precise.map(u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(letters: &str) -> Modifiers {
        Modifiers::parse("cycles", letters).unwrap()
    }

    #[test]
    fn a_chosen_modifier_excludes_the_others() {
        let rings = |m: Modifiers| (m.user(), m.kernel(), m.hypervisor(), m.guest(), m.host());
        assert_eq!(rings(parsed("")), (true, true, true, false, true));
        assert_eq!(rings(parsed("u")), (true, false, false, false, true));
        assert_eq!(rings(parsed("kh")), (false, true, true, false, true));
        assert_eq!(rings(parsed("G")), (true, true, true, true, false));
        assert_eq!(rings(parsed("uGH")), (true, false, false, true, true));
    }

    #[test]
    fn a_group_adds_to_its_events() {
        let both = parsed("pk").and(parsed("uppS"));
        assert_eq!(both.letters(), "ukpp");
        assert!(both.leader_samples && !both.weak);
        assert_eq!(parsed("DeWS").letters(), "");
        assert_eq!(parsed("P").precise(), Some(3));
        assert_eq!(parsed("ppppp").precise(), Some(3));
    }

    #[test]
    fn an_unknown_modifier_is_reported_with_those_that_exist() {
        let error = Modifiers::parse("cycles", "uz").unwrap_err().to_string();
        assert!(error.contains("cycles") && error.contains("'z'"), "{error}");
        for letter in "ukhGHpPSDeW".chars() {
            assert!(error.contains(&format!(" {letter} ")), "{letter}: {error}");
        }
        assert_eq!(error.lines().count(), 1);
    }
}
