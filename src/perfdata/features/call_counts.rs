//! The section with counted calls: which call sites were counted, where they lead, and how often
//! each was passed.
//!
//! Only proftool writes and reads it. Its number is far above those of perf, which skips unknown
//! sections.
//!
//! ```text
//! u8 version = 2
//! number of programs that were started by exec and counted from their start
//! images   { path; build ID; stubs; where they were mapped; bias;
//!            imports { name }[]; open { start − the one before }[]; sites[] }[]
//! agents   { address; address of the function for debuggers; address of execve }[]
//! site     u8 flags: 1 counted, 2 tail call, 4 flags are saved, 8 at least,
//!             16 callee is an import, 32 counted for a part of the time
//!          address − that of the site before; caller − that of the site before;
//!          callee − address, or the number of the import; the number of calls, if counted
//! ```
//!
//! Numbers are LEB128, those that may be negative in zigzag; lists and texts begin with their
//! length. Version 1 has neither the number of programs nor where stubs were mapped.

use linux_perf_event_reader::Endianness;

use super::super::cursor::Cursor;
use super::super::error::Flaw;
use crate::base::BuildId;

const VERSION: u8 = 2;
// The version before, which is read as well.
const WITHOUT_PROGRAMS: u8 = 1;
// The most sites and imports of a section that are read; more than the largest programs have.
const LIMIT: usize = 1 << 22;

const COUNTED: u8 = 1;
const TAIL: u8 = 2;
const SAVES_FLAGS: u8 = 4;
const AT_LEAST: u8 = 8;
const IMPORT: u8 = 16;
const PART: u8 = 32;

/// The calls that a recorder counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// The files whose calls were counted.
    pub images: Vec<CountedImage>,
    /// The number of programs that processes became by exec and that counted from their start.
    pub followed: u64,
    /// Where programs report what they load and execute.
    pub agents: Vec<CountedAgent>,
}

/// Code in a program that reports what it loads and executes. It runs in the place of two
/// functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedAgent {
    /// Its address in memory.
    pub at: u64,
    /// The address in memory of the dynamic linker's function for debuggers; 0 if it is as before.
    pub on_loads: u64,
    /// That of `execve`; 0 if it is as before.
    pub on_execs: u64,
}

/// A file whose calls were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedImage {
    /// Its path, as in its mappings.
    pub path: Vec<u8>,
    pub build_id: Option<BuildId>,
    /// The offset of its stubs in the memory that the recorder shared with the program.
    pub stubs: u64,
    /// The address of its stubs where `bias` holds; 0 if it is not known. Where they are mapped
    /// elsewhere, in another process, the file is moved by the difference.
    pub stubs_at: u64,
    /// What is added to addresses stated in the file to get those in memory (wrapping).
    pub bias: u64,
    /// The linkage names of callees that other files define.
    pub imports: Vec<String>,
    /// The stated starts of functions that may be called from elsewhere than the sites, through
    /// pointers or by files in which nothing was counted; in order.
    pub open: Vec<u64>,
    /// The call sites in order of address. The number of a site is also that of its stub.
    pub sites: Vec<CountedSite>,
}

/// A direct call, a call through a slot, or a direct tail call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedSite {
    /// The stated address of the instruction.
    pub at: u64,
    /// The stated start of the function that it is in.
    pub caller: u64,
    pub callee: CountedCallee,
    /// The number of calls; `None` where they were not counted.
    pub calls: Option<u64>,
    /// Whether it is a jump: the callee returns to the caller's caller.
    pub is_tail: bool,
    /// Whether its stub saves the processor's flags on the stack.
    pub saves_flags: bool,
    /// Whether the caller may call this callee through a pointer as well, which was not counted.
    pub is_least: bool,
    /// Whether the site itself may have been passed more often: it did not count all the time.
    pub is_part: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountedCallee {
    /// The function of the same file that starts at this stated address.
    At(u64),
    /// The function of this name: a row of [`CountedImage::imports`].
    Import(u32),
}

impl CallCounts {
    /// The path by which the kernel reports the mappings of stubs: that of the shared memory of the
    /// recorder.
    pub const MAPPING: &str = "/memfd:proftool-calls (deleted)";

    /// Returns the bytes of the section.
    pub fn section(&self) -> Vec<u8> {
        let mut body = vec![VERSION];
        put(&mut body, self.followed);
        put(&mut body, self.agents.len() as u64);
        for agent in &self.agents {
            for address in [agent.at, agent.on_loads, agent.on_execs] {
                put(&mut body, address);
            }
        }
        put(&mut body, self.images.len() as u64);
        for image in &self.images {
            put_bytes(&mut body, &image.path);
            let build_id = image.build_id.as_ref().map(BuildId::bytes);
            put_bytes(&mut body, build_id.unwrap_or_default());
            put(&mut body, image.stubs);
            put(&mut body, image.stubs_at);
            put(&mut body, image.bias);
            put(&mut body, image.imports.len() as u64);
            for name in &image.imports {
                put_bytes(&mut body, name.as_bytes());
            }
            put(&mut body, image.open.len() as u64);
            let mut before = 0;
            for &start in &image.open {
                put(&mut body, start.wrapping_sub(before));
                before = start;
            }
            put(&mut body, image.sites.len() as u64);
            let (mut at, mut caller) = (0, 0);
            for site in &image.sites {
                site.put(&mut body, at, caller);
                (at, caller) = (site.at, site.caller);
            }
        }
        body
    }

    /// Reads a section.
    ///
    /// # Errors
    /// What is wrong with it: it ends too soon, is of another version, or too large.
    pub(super) fn read(bytes: &[u8]) -> Result<CallCounts, Flaw> {
        let mut c = Cursor::new(bytes, Endianness::LittleEndian);
        let version = byte(&mut c)?;
        if version != VERSION && version != WITHOUT_PROGRAMS {
            return Err(refused("the version of counted calls", version.into()));
        }
        let mut left = LIMIT;
        let mut counts = CallCounts::default();
        if version == VERSION {
            counts.followed = number(&mut c)?;
            for _ in 0..taken(&mut c, &mut left)? {
                counts.agents.push(CountedAgent {
                    at: number(&mut c)?,
                    on_loads: number(&mut c)?,
                    on_execs: number(&mut c)?,
                });
            }
        }
        for _ in 0..number(&mut c)? {
            let mut image = CountedImage {
                path: text(&mut c)?.to_vec(),
                build_id: BuildId::new(text(&mut c)?),
                stubs: number(&mut c)?,
                stubs_at: if version == VERSION {
                    number(&mut c)?
                } else {
                    0
                },
                bias: number(&mut c)?,
                ..CountedImage::default()
            };
            for _ in 0..taken(&mut c, &mut left)? {
                let name = crate::base::utf8(text(&mut c)?).into_owned();
                image.imports.push(name);
            }
            let mut start = 0u64;
            for _ in 0..taken(&mut c, &mut left)? {
                start = start.wrapping_add(number(&mut c)?);
                image.open.push(start);
            }
            let (mut at, mut caller) = (0, 0);
            for _ in 0..taken(&mut c, &mut left)? {
                let site = CountedSite::read(&mut c, at, caller)?;
                (at, caller) = (site.at, site.caller);
                image.sites.push(site);
            }
            counts.images.push(image);
        }
        Ok(counts)
    }
}

impl CountedAgent {
    /// The bytes of its code.
    pub const SIZE: u64 = 4096;
    /// Where in it the code is that stands for `execve`; before it is that for debuggers.
    pub const EXECS: u64 = 0x200;
    // Where the code is that follows an `execve` without success.
    const FAILED: u64 = 0x31c;

    /// Returns the address of the function for which the code at this offset runs, and how many
    /// bytes are on the stack there that were not at its start, where it waits: the registers that
    /// it has saved and, for `execve`, a return address.
    pub fn site(&self, offset: u64) -> Option<(u64, u64)> {
        let (function, pushed) = match offset {
            0..Self::EXECS => (self.on_loads, 9 * 8),
            Self::EXECS..Self::FAILED => (self.on_execs, 7 * 8),
            Self::FAILED..Self::SIZE => (self.on_execs, 2 * 8),
            _ => return None,
        };
        (function != 0).then_some((function, pushed))
    }
}

impl CountedImage {
    /// The bytes of a stub.
    pub const STUB_SIZE: u64 = 16;

    /// Returns the address in memory of the call site whose stub has this offset from the first,
    /// and how many bytes are on the stack there that were not at the site: a call has pushed its
    /// return address, and a stub that saves the flags has pushed them between its first
    /// instruction and its last but one.
    pub fn site_of_stub(&self, offset: u64) -> Option<(u64, u64)> {
        let number = usize::try_from(offset / CountedImage::STUB_SIZE).ok()?;
        let site = self.sites.get(number)?;
        let return_address = if site.is_tail { 0 } else { 8 };
        let flags = match offset % CountedImage::STUB_SIZE {
            1..10 if site.saves_flags => 8,
            _ => 0,
        };
        Some((self.bias.wrapping_add(site.at), return_address + flags))
    }
}

impl CountedSite {
    fn put(&self, body: &mut Vec<u8>, before: u64, caller: u64) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        body.push(
            flag(self.calls.is_some(), COUNTED)
                | flag(self.is_tail, TAIL)
                | flag(self.saves_flags, SAVES_FLAGS)
                | flag(self.is_least, AT_LEAST)
                | flag(self.is_part, PART)
                | flag(matches!(self.callee, CountedCallee::Import(_)), IMPORT),
        );
        put(body, self.at.wrapping_sub(before));
        put(body, zigzag(self.caller.wrapping_sub(caller)));
        put(
            body,
            match self.callee {
                CountedCallee::At(start) => zigzag(start.wrapping_sub(self.at)),
                CountedCallee::Import(row) => row.into(),
            },
        );
        if let Some(calls) = self.calls {
            put(body, calls);
        }
    }

    fn read(c: &mut Cursor<'_>, before: u64, caller: u64) -> Result<CountedSite, Flaw> {
        let flags = byte(c)?;
        let has = |flag: u8| flags & flag != 0;
        let at = before.wrapping_add(number(c)?);
        let caller = caller.wrapping_add(unzigzag(number(c)?));
        let callee = number(c)?;
        let callee = if has(IMPORT) {
            let row = u32::try_from(callee);
            CountedCallee::Import(row.map_err(|_| refused("the number of an import", callee))?)
        } else {
            CountedCallee::At(at.wrapping_add(unzigzag(callee)))
        };
        Ok(CountedSite {
            at,
            caller,
            callee,
            calls: if has(COUNTED) { Some(number(c)?) } else { None },
            is_tail: has(TAIL),
            saves_flags: has(SAVES_FLAGS),
            is_least: has(AT_LEAST),
            is_part: has(PART),
        })
    }
}

fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

fn put(body: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        body.push(number as u8 | 0x80);
        number >>= 7;
    }
    body.push(number as u8);
}

fn put_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    put(body, bytes.len() as u64);
    body.extend_from_slice(bytes);
}

const WHAT: &str = "counted calls";

fn byte(c: &mut Cursor<'_>) -> Result<u8, Flaw> {
    Ok(c.take(1, WHAT)?.first().copied().unwrap_or(0))
}

fn number(c: &mut Cursor<'_>) -> Result<u64, Flaw> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(c)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(refused("a number of ten bytes", number))
}

fn text<'a>(c: &mut Cursor<'a>) -> Result<&'a [u8], Flaw> {
    let length = number(c)?;
    c.take(length, WHAT)
}

/// The length of a list, which is taken from what is left for all lists.
fn taken(c: &mut Cursor<'_>, left: &mut usize) -> Result<usize, Flaw> {
    let length = number(c)?;
    let rest = usize::try_from(length)
        .ok()
        .and_then(|length| left.checked_sub(length));
    *left = rest.ok_or_else(|| refused("the number of counted calls", length))?;
    Ok(length as usize)
}

fn refused(what: &'static str, value: u64) -> Flaw {
    Flaw::Value { what, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{
        ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

    #[test]
    fn a_stub_belongs_to_its_site() {
        let site = |at, is_tail, saves_flags| CountedSite {
            at,
            caller: 0,
            callee: CountedCallee::At(0),
            calls: None,
            is_tail,
            saves_flags,
            is_least: false,
            is_part: false,
        };
        let image = CountedImage {
            bias: 0x1000,
            sites: vec![site(0x10, false, false), site(0x20, true, true)],
            ..CountedImage::default()
        };
        let found = [0, 15, 16, 17, 25, 26, 31, 32].map(|offset| image.site_of_stub(offset));
        let (call, tail) = (Some((0x1010, 8)), Some((0x1020, 0)));
        let saved = Some((0x1020, 8));
        assert_eq!(found, [call, call, tail, saved, saved, tail, tail, None]);
    }

    #[test]
    fn the_version_before_is_read() {
        // One image without sites, at offset 0x2000 and moved by 5.
        let old = [1, 1, 1, b'a', 0, 0x80, 0x40, 5, 0, 0, 0];
        let read = CallCounts::read(&old).unwrap();
        let image = CountedImage {
            path: b"a".to_vec(),
            stubs: 0x2000,
            bias: 5,
            ..CountedImage::default()
        };
        assert_eq!((read.images, read.followed), (vec![image], 0));
    }

    fn counts() -> impl Strategy<Value = CallCounts> {
        let callee = prop_oneof![
            any::<u64>().prop_map(CountedCallee::At),
            any::<u32>().prop_map(CountedCallee::Import)
        ];
        let site = (
            (any::<u64>(), any::<u64>(), callee, any::<Option<u64>>()),
            any::<[bool; 4]>(),
        )
            .prop_map(|((at, caller, callee, calls), flags)| CountedSite {
                at,
                caller,
                callee,
                calls,
                is_tail: flags[0],
                saves_flags: flags[1],
                is_least: flags[2],
                is_part: flags[3],
            });
        let image = (
            any::<Vec<u8>>(),
            any::<[u8; 20]>(),
            any::<[u64; 3]>(),
            vec("[a-z]{0,9}", 0..3),
            any::<Vec<u64>>(),
            vec(site, 0..20),
        )
            .prop_map(
                |(path, id, [stubs, stubs_at, bias], imports, open, sites)| CountedImage {
                    stubs_at,
                    open,
                    path,
                    build_id: BuildId::new(&id),
                    stubs,
                    bias,
                    imports,
                    sites,
                },
            );
        let agent = any::<[u64; 3]>().prop_map(|[at, on_loads, on_execs]| CountedAgent {
            at,
            on_loads,
            on_execs,
        });
        (vec(image, 0..3), vec(agent, 0..3), any::<u64>()).prop_map(|(images, agents, followed)| {
            CallCounts {
                images,
                agents,
                followed,
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn what_is_written_is_read_again(counts in counts()) {
            let read = CallCounts::read(&counts.section()).map_err(|flaw| flaw.to_string());
            prop_assert_eq!(read, Ok(counts));
        }

        #[test]
        fn a_part_of_a_section_is_refused(counts in counts(), part in 0.0..1.0) {
            let section = counts.section();
            let length = (section.len() as f64 * part) as usize;
            prop_assert!(CallCounts::read(&section[..length]).is_err());
        }

        #[test]
        fn any_bytes_give_an_answer(mut bytes: Vec<u8>) {
            let _ = CallCounts::read(&bytes);
            for version in [VERSION, WITHOUT_PROGRAMS] {
                bytes.insert(0, version);
                let _ = CallCounts::read(&bytes);
            }
        }
    }
}
