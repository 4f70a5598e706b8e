//! Why a command cannot be started.

/// Why a command cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// There is no such program.
    #[error("program not found: {program}")]
    NotFound {
        /// The program, and where it was looked for.
        program: String,
    },
    /// It is there, but cannot be run.
    #[error("cannot run {program}: {reason}")]
    NotExecutable {
        /// The program.
        program: String,
        /// What the system says.
        reason: String,
    },
    /// No word was given, or one with a zero byte inside.
    #[error("not a command: {problem}")]
    Unusable {
        /// What is wrong.
        problem: String,
    },
}
