//! How to get complete stacks, and names of generated code.

use std::collections::BTreeSet;

use proftool::base::Runtime;

// By the runtimes that compile functions in no file. Without a runtime that is known, the program
// itself would have to list them.
pub fn name_generated_code(runtimes: &BTreeSet<Runtime>) -> String {
    let flags: Vec<&str> = runtimes.iter().filter_map(symbol_map).collect();
    if flags.is_empty() {
        return "if the program generates code, have it list its functions in /tmp/perf-PID.map or \
                a jitdump file"
            .to_owned();
    }
    format!("have the runtime write a symbol map: {}", flags.join("; "))
}

fn symbol_map(runtime: &Runtime) -> Option<&'static str> {
    Some(match runtime {
        Runtime::Node => "node --perf-basic-prof --interpreted-frames-native-stack",
        Runtime::Java => {
            "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (17+, at its exit)"
        }
        Runtime::Python => "python3 -X perf (3.12+)",
        Runtime::DotNet => "DOTNET_PerfMapEnabled=1 in the environment of dotnet",
        Runtime::Ruby => "ruby --yjit --yjit-perf=map (3.3+)",
        Runtime::Erlang => "erl +JPperf map (25+)",
        _ => return None,
    })
}

// Several hints end with it, and a page says it once; it has the option alone, so that these hints
// take two lines of a terminal.
pub fn frame_pointers() -> &'static str {
    "record without -g, so that proftool chooses, or build with frame pointers (proftool help \
     stacks)"
}

pub fn in_generated_code(runtimes: &BTreeSet<Runtime>) -> &'static str {
    let is_java = runtimes.contains(&Runtime::Java);
    match (is_java, runtimes.contains(&Runtime::Node)) {
        (true, false) => "run java with -XX:+PreserveFramePointer; record without -g",
        (true, true) => {
            "run java with -XX:+PreserveFramePointer, and record java and node without -g"
        }
        (false, true) => "record node without -g",
        (false, false) => "have the generated code keep frame pointers, and record without -g",
    }
}
