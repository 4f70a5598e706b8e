//! How to get complete stacks, and names of generated code.

/// How to build with frame pointers.
pub const BUILD_WITH_FRAME_POINTERS: &str = "build with frame pointers: C and C++: \
    -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer; Rust: RUSTFLAGS=\"-C \
    force-frame-pointers=yes\"";

/// How to get the names of functions that a runtime compiles.
pub const NAME_GENERATED_CODE: &str = "have the runtime write a symbol map: node \
    --perf-basic-prof --interpreted-frames-native-stack; java -XX:+UnlockDiagnosticVMOptions \
    -XX:+DumpPerfMapAtExit (17+, at its exit); python3 -X perf (3.12+)";

/// Returns how to get complete stacks where they were recorded by frame pointers. Several hints end with it, and a
/// page says it once; it has the option alone, so that these hints take two lines of a terminal.
pub fn frame_pointers() -> &'static str {
    "record with DWARF unwinding (-g dwarf), or build with frame pointers (proftool help stacks)"
}

/// Returns how to get complete stacks of what a runtime compiles.
pub fn in_generated_code() -> &'static str {
    "run java with -XX:+PreserveFramePointer; record java and node by frame pointers (-g fp)"
}
