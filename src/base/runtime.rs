//! Runtimes, which compile code while a program runs.

/// A runtime that can list the functions it compiles, each in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Runtime {
    /// Node.js.
    Node,
    /// A Java virtual machine.
    Java,
    /// CPython, with trampolines for its functions.
    Python,
    /// The runtime of .NET.
    DotNet,
    /// Ruby, with YJIT.
    Ruby,
    /// Erlang's virtual machine.
    Erlang,
}

// How the names of programs and libraries begin. What follows is a version or nothing.
const NAMES: [(&str, Runtime); 14] = [
    ("node", Runtime::Node),
    ("nodejs", Runtime::Node),
    ("libnode.so", Runtime::Node),
    ("java", Runtime::Java),
    ("libjvm.so", Runtime::Java),
    ("python", Runtime::Python),
    ("libpython", Runtime::Python),
    ("dotnet", Runtime::DotNet),
    ("libcoreclr.so", Runtime::DotNet),
    ("libclrjit.so", Runtime::DotNet),
    ("ruby", Runtime::Ruby),
    ("libruby.so", Runtime::Ruby),
    ("libruby-", Runtime::Ruby),
    ("beam.smp", Runtime::Erlang),
];

impl Runtime {
    /// Returns the runtime that a file or a command belongs to, by its name.
    ///
    /// ```
    /// use proftool::base::Runtime;
    /// assert_eq!(Runtime::of_name("/usr/bin/python3.12"), Some(Runtime::Python));
    /// assert_eq!(Runtime::of_name("/opt/jdk/lib/server/libjvm.so"), Some(Runtime::Java));
    /// assert_eq!(Runtime::of_name("/usr/bin/nodeinfo"), None);
    /// ```
    pub fn of_name(path: &str) -> Option<Runtime> {
        let path = path.trim_end_matches(" (deleted)");
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_version = |rest: &str| !rest.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let of = |(begin, _): &&(&str, Runtime)| name.strip_prefix(begin).is_some_and(is_version);
        NAMES.iter().find(of).map(|&(_, runtime)| runtime)
    }
}
