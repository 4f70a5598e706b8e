//! Machine code that cannot be shown: what can be done about it.

use proftool::binary;
use proftool::input::CodeError;

// The text is followed by a full stop.
pub fn without_code(error: &CodeError) -> String {
    let advice = match error {
        CodeError::Kernel { source } => match source {
            // The kernel was built without it: no right would help.
            binary::Error::NotFound => ". Install the debug symbols of this kernel",
            _ => ". Run the command as root, or install the debug symbols of this kernel",
        },
        CodeError::OtherKernel => {
            ". Look at the recording under the kernel that it was made with, and record with the \
             right to see kernel addresses (as root, or sysctl kernel.kptr_restrict=0)"
        }
        CodeError::NotKept => {
            ". To have the code: proftool record -- node --perf-prof …, or java with perf's JVMTI \
             agent (-agentpath:libperf-jvmti.so)"
        }
        _ => "",
    };
    format!("{error}{advice}")
}
