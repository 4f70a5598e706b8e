//! Direct calls to where no function starts.

use std::fs;
use std::path::Path;

use proftool::binary::Binary;
use proftool::scan::{self, CallKind, Callee};

use crate::support::{compile, directory};

/// `clear` is entered in its middle, `where_am_i` calls the next instruction, and `own` calls a
/// part of its own code.
const SOURCE: &str = r#"
    .text
    .globl  clear
    .type   clear, @function
clear:
    nop
    nop
.Lrest:
    nop
    ret
    .size   clear, .-clear
    .globl  user
    .type   user, @function
user:
    call    .Lrest
    call    clear
    ret
    .size   user, .-user
    .globl  where_am_i
    .type   where_am_i, @function
where_am_i:
    call    .Lnext
.Lnext:
    pop     %rax
    ret
    .size   where_am_i, .-where_am_i
    .globl  own
    .type   own, @function
own:
    call    .Linner
    ret
.Linner:
    nop
    ret
    .size   own, .-own
    .globl  _start
    .type   _start, @function
_start:
    call    user
    call    own
    call    where_am_i
    hlt
    .size   _start, .-_start
    .section .note.GNU-stack,"",@progbits
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn a_call_into_the_middle_of_a_function_is_a_call_of_it() {
    let directory = directory("scan-inside");
    fs::write(directory.join("inside.s"), SOURCE).unwrap();
    let flags = ["-nostdlib", "-static"];
    let program = directory.join("inside");
    let Some(program) = compile("gcc", &flags, Path::new("inside.s"), &program) else {
        return;
    };
    let binary = Binary::open(&program).unwrap();
    let calls = scan::calls(&binary, None).unwrap();
    let name = |id| {
        let name = binary.function_name(&calls.functions[id].symbol);
        name.unwrap().into_owned()
    };
    let mut arcs: Vec<String> = (calls.sites.iter())
        .filter(|site| site.kind == CallKind::Call)
        .map(|site| match site.callee {
            Callee::Function(callee) => format!("{} -> {}", name(site.caller), name(callee)),
            Callee::Import(_) => panic!("nothing is imported"),
        })
        .collect();
    arcs.sort();
    let expected = [
        "_start -> own",
        "_start -> user",
        "_start -> where_am_i",
        "user -> clear",
        "user -> clear",
    ];
    assert_eq!(arcs, expected);
    // `own` is not recursive: its call is in nobody else's code.
    assert_eq!((calls.inside_calls, calls.astray), (1, 1));
}
