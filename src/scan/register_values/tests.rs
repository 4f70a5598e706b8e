//! Calls through registers that are certain, and such that are not, as x86-64 code.

use super::super::flow::{Flow, Step, Wants};
use super::super::x86::{self, effects};
use super::{FollowedCode, decide};

/// Where the code lies, and another function.
const START: u64 = 0x1000;
const OTHER: u64 = 0x8000;

/// Instructions, put together one by one.
#[derive(Default)]
struct Code(Vec<u8>);

impl Code {
    fn bytes(mut self, bytes: &[u8]) -> Code {
        self.0.extend(bytes);
        self
    }

    /// An opcode, and the distance to an address.
    fn far(self, opcode: &[u8], to: u64) -> Code {
        let end = START + (self.0.len() + opcode.len() + 4) as u64;
        let distance = to.wrapping_sub(end) as u32;
        self.bytes(opcode).bytes(&distance.to_le_bytes())
    }

    fn here(&self) -> u64 {
        START + self.0.len() as u64
    }

    fn push_rbx(self) -> Code {
        self.bytes(b"\x53")
    }
    fn pop_rbx(self) -> Code {
        self.bytes(b"\x5b")
    }
    fn load_rbx(self, slot: u64) -> Code {
        self.far(b"\x48\x8b\x1d", slot)
    }
    fn load_rax(self, slot: u64) -> Code {
        self.far(b"\x48\x8b\x05", slot)
    }
    fn take_rax(self, address: u64) -> Code {
        self.far(b"\x48\x8d\x05", address)
    }
    fn call_rbx(self) -> Code {
        self.bytes(b"\xff\xd3")
    }
    fn call_rax(self) -> Code {
        self.bytes(b"\xff\xd0")
    }
    fn call(self) -> Code {
        self.far(b"\xe8", OTHER)
    }
    /// `jcc` over this number of bytes.
    fn skip(self, bytes: u8) -> Code {
        self.bytes(&[0x74, bytes])
    }
    fn ret(self) -> Code {
        self.bytes(b"\xc3")
    }

    /// What is found, without direct calls and jumps.
    fn found(&self) -> Vec<Flow> {
        let mut steps = Vec::new();
        let undecoded = x86::walk(&self.0, START, &Wants::default(), &mut steps);
        assert_eq!(undecoded, 0);
        let place = FollowedCode {
            end: self.here(),
            kept: effects::KEPT,
            followed: effects::candidates(&self.0, START, &steps),
        };
        let effects = effects::read(&self.0, START, place.followed).unwrap();
        decide(&effects, &place, &mut steps);
        let direct = |step: &Step| matches!(step.flow, Flow::Call(OTHER) | Flow::Jump(_));
        steps.retain(|step| !direct(step));
        steps.iter().map(|step| step.flow).collect()
    }
}

const A: u64 = 0x20_0000;
const B: u64 = 0x20_0008;
const CALL_A: Flow = Flow::CallSlot(A);
const LOAD_A: Flow = Flow::LoadSlot(A);
const LOAD_B: Flow = Flow::LoadSlot(B);

fn code() -> Code {
    Code::default()
}

#[test]
fn a_call_behind_its_load_is_certain() {
    let cases = [
        (code().load_rax(A).call_rax().ret(), vec![LOAD_A, CALL_A]),
        (code().load_rbx(A).call_rbx().ret(), vec![LOAD_A, CALL_A]),
        (
            code().take_rax(OTHER).call_rax().ret(),
            vec![Flow::Address(OTHER)],
        ),
        (
            // It may lead into the function itself.
            code().load_rax(A).bytes(b"\xff\xe0"),
            vec![LOAD_A, Flow::JumpUnknown],
        ),
        (
            code().load_rax(A).bytes(b"\x31\xff\x48\x89\xe6").call_rax(),
            vec![LOAD_A, CALL_A],
        ),
    ];
    for (code, expected) in cases {
        assert_eq!(code.found(), expected, "{:02x?}", code.0);
    }
}

#[test]
fn a_call_through_a_register_refers_to_the_field_of_the_load() {
    let code = code().load_rax(A).call_rax();
    let mut steps = Vec::new();
    x86::walk(&code.0, START, &Wants::default(), &mut steps);
    let place = FollowedCode {
        end: code.here(),
        kept: effects::KEPT,
        followed: u32::MAX,
    };
    let effects = effects::read(&code.0, START, place.followed).unwrap();
    decide(&effects, &place, &mut steps);
    let expected = Step {
        at: START + 7,
        length: 2,
        flow: CALL_A,
        field: START + 3,
    };
    assert_eq!(steps.last(), Some(&expected));
}

#[test]
fn a_changed_register_is_unknown() {
    let changes: [&[u8]; 8] = [
        b"\x31\xc0",         // xor  %eax,%eax
        b"\xb0\x00",         // mov  $0,%al
        b"\x48\x0f\x44\xc2", // cmove %rdx,%rax
        b"\x48\x92",         // xchg %rax,%rdx
        b"\x58",             // pop  %rax
        b"\x48\xff\xc0",     // inc  %rax
        b"\x48\x8b\x00",     // mov  (%rax),%rax
        b"\xe8\0\0\0\0",     // call
    ];
    for change in changes {
        let code = code().load_rax(A).bytes(change).call_rax().ret();
        assert!(code.found().contains(&Flow::CallUnknown), "{change:02x?}");
        assert!(code.found().contains(&LOAD_A), "{change:02x?}");
    }
}

#[test]
fn calls_keep_a_register_that_holds_nothing_else() {
    let twice = code().push_rbx().load_rbx(A).call_rbx().call().call_rbx();
    assert_eq!(twice.pop_rbx().ret().found(), [LOAD_A, CALL_A, CALL_A]);
    // Not saved: it may be an argument of another convention.
    let unsaved = code().load_rbx(A).call_rbx().call_rbx().ret();
    assert_eq!(unsaved.found(), [LOAD_A, CALL_A, Flow::CallUnknown]);
    // Something else is put into it: the unwinder might enter in between.
    let reused = code()
        .push_rbx()
        .load_rbx(A)
        .call_rbx()
        .call_rbx()
        .bytes(b"\x48\x89\xc3")
        .pop_rbx()
        .ret();
    assert_eq!(reused.found(), [LOAD_A, CALL_A, Flow::CallUnknown]);
    // Before the load it is the caller's.
    let before = code()
        .push_rbx()
        .skip(7)
        .load_rbx(A)
        .call_rbx()
        .pop_rbx()
        .ret();
    assert_eq!(before.found(), [LOAD_A, Flow::CallUnknown]);
    // And so it is when it was fetched back.
    let after = code().push_rbx().load_rbx(A).pop_rbx().call_rbx().ret();
    assert_eq!(after.found(), [LOAD_A, Flow::CallUnknown]);
}

#[test]
fn paths_that_meet_must_agree() {
    // je over `load A; jmp` to `load B`, and the call behind both.
    let either = |b| {
        let code = code().skip(9).load_rax(A).bytes(b"\xeb\x07");
        code.load_rax(b).call_rax().ret()
    };
    assert_eq!(either(B).found(), [LOAD_A, LOAD_B, Flow::CallUnknown]);
    assert_eq!(either(A).found(), [LOAD_A, LOAD_A, CALL_A]);
    // A way around the load.
    let around = code().skip(7).load_rax(A).call_rax().ret();
    assert_eq!(around.found(), [LOAD_A, Flow::CallUnknown]);
}

#[test]
fn a_loop_keeps_what_it_does_not_change() {
    // load; push; again: call; jne again
    let again = code().push_rbx().load_rbx(A).call_rbx().bytes(b"\x75\xfc");
    assert_eq!(again.pop_rbx().ret().found(), [LOAD_A, CALL_A]);
    // again: call *%rax; je again: the second time rax is what the callee returned.
    let clobbered = code().load_rax(A).call_rax().bytes(b"\x74\xfc").ret();
    assert_eq!(clobbered.found(), [LOAD_A, Flow::CallUnknown]);
    // again: call *%rbx; mov (%rcx),%rbx; jne again
    let changed = code()
        .push_rbx()
        .load_rbx(A)
        .call_rbx()
        .bytes(b"\x48\x8b\x19\x75\xf9")
        .ret();
    assert_eq!(changed.found(), [LOAD_A, Flow::CallUnknown]);
}

#[test]
fn hidden_entries_make_calls_uncertain() {
    // A table of a switch might lead between load and call.
    let table = |code: Code| code.bytes(b"\xff\x24\xc5\0\0\0\0");
    let code_a = table(code().load_rax(A).call_rax());
    assert_eq!(
        code_a.found(),
        [LOAD_A, Flow::CallUnknown, Flow::JumpUnknown]
    );
    // But there is nothing else that rbx may hold.
    let sole = table(code().push_rbx().load_rbx(A).call_rbx());
    assert_eq!(sole.found(), [LOAD_A, CALL_A, Flow::JumpUnknown]);
    let behind = sole.call_rbx().pop_rbx().ret();
    assert_eq!(behind.found(), [LOAD_A, CALL_A, Flow::JumpUnknown, CALL_A]);
    // A jump to the inside of an instruction.
    let inside = code().load_rax(A).call_rax().bytes(b"\x74\xfa").ret();
    assert_eq!(inside.found(), [LOAD_A, Flow::CallUnknown]);
    let tail = code().far(b"\x0f\x84", OTHER).load_rax(A).call_rax().ret();
    assert_eq!(tail.found(), [LOAD_A, CALL_A]);
    // Behind the return the unwinder enters, puts something else into rax and goes back.
    let join = START + 7;
    let pad = code()
        .load_rax(A)
        .call_rax()
        .ret()
        .call()
        .far(b"\xe9", join);
    assert_eq!(pad.found(), [LOAD_A, Flow::CallUnknown]);
    // The same, entered behind the return without a call.
    let pad = code().load_rax(A).call_rax().ret().far(b"\xe9", join);
    assert_eq!(pad.found(), [LOAD_A, Flow::CallUnknown]);
    // A jump through a register that was loaded is no more visible.
    let through = code()
        .load_rax(B)
        .skip(2)
        .bytes(b"\xff\xe0")
        .load_rax(A)
        .call_rax()
        .ret();
    assert_eq!(
        through.found(),
        [LOAD_B, Flow::JumpUnknown, LOAD_A, Flow::CallUnknown]
    );
}

#[test]
fn a_load_is_also_a_step() {
    // test %rax,%rax before the call.
    let tested = code().load_rax(A).bytes(b"\x48\x85\xc0").call_rax().ret();
    assert_eq!(tested.found(), [LOAD_A, CALL_A]);
    let stored = code()
        .push_rbx()
        .load_rbx(A)
        .call_rbx()
        .bytes(b"\x48\x89\x1f");
    assert_eq!(stored.pop_rbx().ret().found(), [LOAD_A, CALL_A]);
}
