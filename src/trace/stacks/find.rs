//! From the links of a stack to frames: which image each address is in.

use crate::base::CodeAddress;

use super::super::chain::{Link, Space};
use super::super::memory::{FrameKey, FrameTable};
use super::super::{FrameAddress, FrameId, ImageId, ImageKind};
use super::{End, Memory, NOW, PAST, Stacks, UNMAPPED, User};

impl Stacks {
    /// Finds the frames of links, outermost first, and puts them into `found`, innermost first.
    /// Stops at a frame that is broken.
    pub(super) fn find_inwards(
        &mut self,
        user: User<'_>,
        memory: Memory,
        links: &[Link],
        found: &mut Vec<FrameId>,
    ) -> End {
        found.clear();
        let mut of_user = std::mem::take(self.found(user, memory, Space::User));
        let mut of_kernel = std::mem::take(self.found(user, memory, Space::Kernel));
        let mut user_is_mapped = None;
        let mut end = End::Mapped;
        for &link in links.iter().rev() {
            let is_user = link.space == Space::User;
            let known = match link.space {
                Space::User => &mut of_user,
                Space::Kernel => &mut of_kernel,
                Space::Other => {
                    found.push(self.guest_frame(link));
                    continue;
                }
            };
            let key = FrameKey::of(link.address, link.caller_by);
            let (frame, is_mapped) = match known.get(&key) {
                Some(&known) => known,
                None => {
                    let place = self.place_of(user, link);
                    // A chain that leads astray may have any number of such addresses: no frames
                    // are made of them.
                    if is_user && place.is_none() && user_is_mapped == Some(true) {
                        end = End::Broken;
                        break;
                    }
                    let new = (self.frame_at(user, link, place), place.is_some());
                    known.insert(key, new);
                    new
                }
            };
            if is_user {
                let innermost_is_mapped = *user_is_mapped.get_or_insert(is_mapped);
                if !is_mapped {
                    if innermost_is_mapped {
                        end = End::Broken;
                        break;
                    }
                    end = End::Unmapped;
                }
            }
            found.push(frame);
        }
        *self.found(user, memory, Space::User) = of_user;
        *self.found(user, memory, Space::Kernel) = of_kernel;
        end
    }

    fn guest_frame(&mut self, link: Link) -> FrameId {
        let image = self.image("[guest]", ImageKind::Guest);
        self.frame(FrameAddress {
            image,
            address: link.address,
            caller_by: link.caller_by,
        })
    }

    pub(super) fn place_of(&self, user: User<'_>, link: Link) -> Option<(ImageId, CodeAddress)> {
        match (link.space, user) {
            (Space::Kernel, _) => self.kernel.find(link.address),
            (_, User::Now(pid)) => {
                let process = self.processes.get(&pid);
                process.and_then(|process| process.find(link.address))
            }
            (_, User::Past(_, memory)) => memory.find_code(link.address),
        }
    }

    fn frame_at(
        &mut self,
        user: User<'_>,
        link: Link,
        place: Option<(ImageId, CodeAddress)>,
    ) -> FrameId {
        let (image, address) = place.unwrap_or_else(|| {
            let (User::Now(pid) | User::Past(pid, _)) = user;
            let image = match link.space {
                Space::Kernel => self.image("[kernel.kallsyms]", ImageKind::Kernel { text: None }),
                _ => self.image(UNMAPPED.clone(), ImageKind::Unmapped { pid }),
            };
            (image, link.address)
        });
        self.frame(FrameAddress {
            image,
            address,
            caller_by: link.caller_by,
        })
    }

    pub(super) fn found(&mut self, user: User<'_>, state: Memory, space: Space) -> &mut FrameTable {
        match (space, user) {
            (Space::Kernel, _) => self.kernel_found.at(state.1),
            (_, User::Now(pid)) => {
                if self.now.len() >= NOW && !self.now.contains_key(&pid) {
                    self.now.clear();
                }
                self.now.entry(pid).or_default().at(state.0)
            }
            (_, User::Past(_, memory)) => {
                if self.past.len() >= PAST && !self.past.contains_key(&memory.number) {
                    self.past.clear();
                }
                self.past.entry(memory.number).or_default()
            }
        }
    }
}
