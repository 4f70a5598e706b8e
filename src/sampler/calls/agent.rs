//! The code by which a program reports that it has loaded libraries or is about to execute another
//! program, and where it is entered.
//!
//! ```text
//!   _dl_debug_state   ret; padding               becomes   jmp loads
//!   execve            mov $59, %eax; syscall     becomes   call execs; nop
//!
//!   loads:  save registers; report 1; restore them; ret
//!   execs:  report 2; mov $59, %eax; syscall; it is still here: report 3; ret
//!   report: take the lock; who, what, ring = 1; wake the recorder; wait until ring is 0;
//!           free the lock
//! ```
//!
//! A thread that is about to execute a program keeps the lock if the program is followed. The
//! recorder frees it when the new program counts; if the call fails, the thread frees it. Where no
//! recorder listens (`open`, or for `execs` `hears_execs`, is 0) the code does nothing. If there is
//! no answer for a long time, the recorder was killed, and the code closes the bell.

use super::bell;
use crate::patch::Change;
use crate::perfdata::CountedAgent;

/// The code, which is followed by the page of the bell at a distance of 0x1000. It works at any
/// address. Where it waits it has as many bytes on the stack as [`CountedAgent`] states.
pub(super) fn code() -> Vec<u8> {
    let mut code = Assembler(Vec::new());
    loads(&mut code);
    code.0.resize(CountedAgent::EXECS as usize, 0xcc);
    execs(&mut code);
    code.0
}

/// Where in the code there is an instruction that returns and does nothing else.
pub(super) fn returns() -> u64 {
    let mut code = Assembler(Vec::new());
    loads(&mut code);
    code.here() as u64 - 1
}

#[rustfmt::skip]
fn loads(code: &mut Assembler) {
    code.put(&[
        0x50, // push %rax
        0x51, // push %rcx
        0x52, // push %rdx
        0x56, // push %rsi
        0x57, // push %rdi
        0x41, 0x50, // push %r8
        0x41, 0x51, // push %r9
        0x41, 0x52, // push %r10
        0x41, 0x53, // push %r11
        0x41, 0xb8, 1, 0, 0, 0, // mov $1,%r8d
    ]);
    let done = ring(code, bell::OPEN);
    code.land_far(done);
    code.put(&[
        0x41, 0x5b, // pop %r11
        0x41, 0x5a, // pop %r10
        0x41, 0x59, // pop %r9
        0x41, 0x58, // pop %r8
        0x5f, // pop %rdi
        0x5e, // pop %rsi
        0x5a, // pop %rdx
        0x59, // pop %rcx
        0x58, // pop %rax
        0xc3, // ret
    ]);
}

#[rustfmt::skip]
fn execs(code: &mut Assembler) {
    code.put(&[
        0x57, // push %rdi
        0x56, // push %rsi
        0x52, // push %rdx
        0x41, 0x50, // push %r8
        0x41, 0x51, // push %r9
        0x41, 0x52, // push %r10
        0x41, 0xb8, 2, 0, 0, 0, // mov $2,%r8d
        0x49, 0x89, 0xf9, // mov %rdi,%r9
    ]);
    let done = ring(code, bell::HEARS_EXECS);
    code.land_far(done);
    code.put(&[
        0x41, 0x5a, // pop %r10
        0x41, 0x59, // pop %r9
        0x41, 0x58, // pop %r8
        0x5a, // pop %rdx
        0x5e, // pop %rsi
        0x5f, // pop %rdi
        0xb8, 0x3b, 0, 0, 0, // mov $59,%eax (execve)
        0x0f, 0x05, // syscall
        0x50, // push %rax
        0xb8, 0xba, 0, 0, 0, // mov $186,%eax (gettid)
        0x0f, 0x05, // syscall
    ]);
    // It has kept the lock if it was followed.
    code.word(&[0x39, 0x05], bell::LOCK, &[]); // cmp %eax,lock
    let done = code.jump_far(Condition::NotEqual);
    code.put(&[0x41, 0xb8, 3, 0, 0, 0]); // mov $3,%r8d
    let ended = report(code);
    code.land_far(done);
    code.land_all(ended);
    code.put(&[
        0x58, // pop %rax
        0xc3, // ret
    ]);
}

/// Takes the lock and reports, if the word `hears` is not 0: `r8d` is what, and `r9` the path.
/// Returns the jump to where it is over; the code behind is there, too.
#[rustfmt::skip]
fn ring(code: &mut Assembler, hears: usize) -> FarForward {
    let begin = code.here();
    code.word(&[0x83, 0x3d], hears, &[0]); // cmpl $0,hears
    let done = code.jump_far(Condition::Equal);
    code.put(&[
        0xb8, 0xba, 0, 0, 0, // mov $186,%eax (gettid)
        0x0f, 0x05, // syscall
        0x89, 0xc2, // mov %eax,%edx
        0x31, 0xc0, // xor %eax,%eax
    ]);
    code.word(&[0xf0, 0x0f, 0xb1, 0x15], bell::LOCK, &[]); // lock cmpxchg %edx,lock
    let got = code.jump(Condition::Equal);
    code.put(&[0x89, 0xc2]); // mov %eax,%edx
    wait(code, bell::LOCK, begin);
    code.land(got);
    code.word(&[0x89, 0x15], bell::THREAD, &[]); // mov %edx,thread
    code.word(&[0x4c, 0x89, 0x0d], bell::PATH, &[]); // mov %r9,path
    code.put(&[
        0xb8, 0x27, 0, 0, 0, // mov $39,%eax (getpid)
        0x0f, 0x05, // syscall
    ]);
    code.word(&[0x89, 0x05], bell::PROCESS, &[]); // mov %eax,process
    let ended = report(code);
    code.land_all(ended);
    done
}

/// Reports `r8d`, waits for the answer, and frees the lock. Returns jumps to where it is over; the
/// code behind is there, too.
#[rustfmt::skip]
fn report(code: &mut Assembler) -> [Forward; 2] {
    code.word(&[0x44, 0x89, 0x05], bell::KIND, &[]); // mov %r8d,kind
    code.word(&[0xc7, 0x05], bell::RING, &[1, 0, 0, 0]); // movl $1,ring
    code.word(&[0x48, 0x8d, 0x3d], bell::RING, &[]); // lea ring,%rdi
    code.put(&[0xba, 0xff, 0xff, 0xff, 0x7f]); // mov $0x7fffffff,%edx
    wake(code);
    let until = code.here();
    code.word(&[0x83, 0x3d], bell::OPEN, &[0]); // cmpl $0,open
    let closed = code.jump(Condition::Equal);
    code.word(&[0x83, 0x3d], bell::RING, &[0]); // cmpl $0,ring
    let answered = code.jump(Condition::Equal);
    code.put(&[0xba, 1, 0, 0, 0]); // mov $1,%edx
    wait(code, bell::RING, until);
    code.land(answered);
    code.word(&[0x83, 0x3d], bell::KIND, &[2]); // cmpl $2,kind
    let keeps = code.jump(Condition::Equal);
    code.word(&[0x48, 0x8d, 0x3d], bell::LOCK, &[]); // lea lock,%rdi
    code.put(&[
        0xc7, 0x07, 0, 0, 0, 0, // movl $0,(%rdi)
        0xba, 1, 0, 0, 0, // mov $1,%edx
    ]);
    wake(code);
    [closed, keeps]
}

/// Waits while a word has the value of `edx`, and goes on at `then`. If that takes too long, nobody
/// listens any more.
#[rustfmt::skip]
fn wait(code: &mut Assembler, word: usize, then: usize) {
    code.word(&[0x48, 0x8d, 0x3d], word, &[]); // lea word,%rdi
    code.put(&[0x31, 0xf6]); // xor %esi,%esi (FUTEX_WAIT)
    code.word(&[0x4c, 0x8d, 0x15], bell::TIMEOUT, &[]); // lea timeout,%r10
    code.put(&[
        0xb8, 0xca, 0, 0, 0, // mov $202,%eax (futex)
        0x0f, 0x05, // syscall
        0x48, 0x83, 0xf8, 0x92, // cmp $-ETIMEDOUT,%rax
    ]);
    code.jump_back(Condition::NotEqual, then);
    // And what hears of programs to be executed, which is the word behind.
    code.word(&[0x48, 0xc7, 0x05], bell::OPEN, &[0, 0, 0, 0]); // movq $0,open
    code.jump_back(Condition::Always, then);
}

/// Wakes `edx` threads that wait for the word at `rdi`.
#[rustfmt::skip]
fn wake(code: &mut Assembler) {
    code.put(&[
        0xbe, 1, 0, 0, 0, // mov $1,%esi (FUTEX_WAKE)
        0xb8, 0xca, 0, 0, 0, // mov $202,%eax (futex)
        0x0f, 0x05, // syscall
    ]);
}

struct Assembler(Vec<u8>);

/// The place of a byte, the distance to a label that comes later.
struct Forward(usize);

/// The place of such a distance in four bytes.
struct FarForward(usize);

#[derive(Clone, Copy)]
enum Condition {
    Equal = 0x74,
    NotEqual = 0x75,
    Always = 0xeb,
}

impl Assembler {
    fn here(&self) -> usize {
        self.0.len()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    fn word(&mut self, opcode: &[u8], word: usize, immediate: &[u8]) {
        self.put(opcode);
        let behind = self.here() + 4 + immediate.len();
        let distance = (CountedAgent::SIZE as usize + word - behind) as u32;
        self.put(&distance.to_le_bytes());
        self.put(immediate);
    }

    /// A jump to a label that comes later, in less than 128 bytes.
    fn jump(&mut self, condition: Condition) -> Forward {
        self.put(&[condition as u8, 0]);
        Forward(self.here() - 1)
    }

    fn jump_far(&mut self, condition: Condition) -> FarForward {
        self.put(&[0x0f, condition as u8 + 0x10, 0, 0, 0, 0]);
        FarForward(self.here() - 4)
    }

    fn land(&mut self, Forward(place): Forward) {
        let distance = i8::try_from(self.here() - place - 1).expect("the label is near");
        if let Some(field) = self.0.get_mut(place) {
            *field = distance.cast_unsigned();
        }
    }

    fn land_far(&mut self, FarForward(place): FarForward) {
        let distance = (self.here() - place - 4) as u32;
        if let Some(field) = self.0.get_mut(place..place + 4) {
            field.copy_from_slice(&distance.to_le_bytes());
        }
    }

    fn land_all(&mut self, jumps: [Forward; 2]) {
        for jump in jumps {
            self.land(jump);
        }
    }

    /// A jump to a label that is less than 128 bytes before.
    fn jump_back(&mut self, condition: Condition, to: usize) {
        let distance = to as i64 - (self.here() as i64 + 2);
        let distance = i8::try_from(distance).expect("the label is near");
        self.put(&[condition as u8, distance.cast_unsigned()]);
    }
}

/// The change by which the function that the dynamic linker calls for debuggers, whose first bytes
/// these are, reports loaded libraries; `None` if it is not as expected.
pub(super) fn on_loads(at: u64, bytes: &[u8; 16], agent: u64) -> Option<Change> {
    let (at, rest) = behind_landing_pad(at, bytes);
    let (&ret, padding) = rest.split_first()?;
    // Functions begin at multiples of 16, and this one ends in the same 16 bytes.
    let is_inside = at % 16 <= 16 - 5;
    if ret != 0xc3 || !is_inside || !is_padding(padding) {
        return None;
    }
    let mut new = [0; 8];
    new[0] = 0xe9;
    new[1..5].copy_from_slice(&distance(at + 5, agent)?);
    Some(change(at, rest, new, 5))
}

/// The change by which `execve`, whose first bytes these are, reports what is to be executed.
pub(super) fn on_execs(at: u64, bytes: &[u8; 16], agent: u64) -> Option<Change> {
    let (at, rest) = behind_landing_pad(at, bytes);
    if !rest.starts_with(&[0xb8, 0x3b, 0, 0, 0, 0x0f, 0x05]) {
        return None;
    }
    let mut new = [0; 8];
    new[0] = 0xe8;
    new[1..5].copy_from_slice(&distance(at + 5, agent + CountedAgent::EXECS)?);
    new[5..7].copy_from_slice(&[0x66, 0x90]);
    Some(change(at, rest, new, 7))
}

/// Without the instruction at which indirect calls arrive (`endbr64`), if there is one.
fn behind_landing_pad(at: u64, bytes: &[u8; 16]) -> (u64, &[u8]) {
    match bytes.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]) {
        Some(rest) => (at + 4, rest),
        None => (at, bytes),
    }
}

// Whether an instruction that does nothing begins there, or bytes that are never executed.
fn is_padding(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let [0x66 | 0x2e, after @ ..] = rest {
        rest = after;
    }
    rest.starts_with(&[0x0f, 0x1f]) || matches!(rest, [0x90, ..] | [0xcc, ..] | [0, 0, 0, 0, ..])
}

fn distance(from: u64, to: u64) -> Option<[u8; 4]> {
    let distance = i32::try_from(to.wrapping_sub(from).cast_signed()).ok()?;
    Some(distance.to_le_bytes())
}

fn change(at: u64, bytes: &[u8], new: [u8; 8], length: u8) -> Change {
    let mut old = [0; 8];
    for (to, from) in old.iter_mut().zip(bytes).take(length.into()) {
        *to = *from;
    }
    Change {
        at,
        length,
        old,
        new,
        site: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_are_as_expected_are_changed() {
        let padded = [
            0xc3, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0,
        ];
        let change = on_loads(0x2060, &padded, 0x10_0000).unwrap();
        assert_eq!((change.at, change.length), (0x2060, 5));
        assert_eq!(change.old[..5], padded[..5]);
        assert_eq!(change.new[..5], [0xe9, 0x9b, 0xdf, 0x0f, 0]);
        let mut marked = [0x90; 16];
        marked[..5].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0xc3]);
        assert_eq!(on_loads(0x2060, &marked, 0x10_0000).unwrap().at, 0x2064);
        // Another function begins at once.
        assert_eq!(on_loads(0x206c, &padded, 0x10_0000), None);
        let mut code = padded;
        code[1] = 0x48;
        assert_eq!(on_loads(0x2060, &code, 0x10_0000), None);
        // Out of reach.
        assert_eq!(on_loads(0x2060, &padded, 1 << 40), None);

        let mut execve = [0; 16];
        execve[..7].copy_from_slice(&[0xb8, 0x3b, 0, 0, 0, 0x0f, 0x05]);
        let change = on_execs(0x1000, &execve, 0x3000).unwrap();
        assert_eq!(change.new[..7], [0xe8, 0xfb, 0x21, 0, 0, 0x66, 0x90]);
        execve[1] = 0x3c;
        assert_eq!(on_execs(0x1000, &execve, 0x3000), None);
    }
}
