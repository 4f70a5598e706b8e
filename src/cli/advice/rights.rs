//! How a user gets the rights to see the kernel and other users' processes.

use proftool::base::shell_quoted;
use proftool::sampler::Rights;

// The capabilities with which the kernel can be recorded and its functions have names.
const KERNEL: &str = "cap_perfmon,cap_syslog";
// The capabilities with which every process can be recorded as well.
const EVERYTHING: &str = "cap_perfmon,cap_syslog,cap_sys_ptrace";

// How to record where `perf_event_paranoid` forbids it, at 3 and above.
pub const PARANOID: &str = "run proftool as root, or first run as root: sysctl \
    kernel.perf_event_paranoid=2 (user space only), or =1 (with the kernel)";

// How to record in a container that filters system calls.
pub const SECCOMP: &str = "start a container with: docker run --cap-add PERFMON --security-opt \
    seccomp=unconfined";

// The group whose members may run a program with capabilities, as the kernel's documents name it.
const GROUP: &str = "perf_users";

// Anybody who can run the program has its capabilities, so first nobody but a group may (Linux,
// Documentation/admin-guide/perf-security.rst, "Privileged Perf users groups"). Another owner would
// take them away again, so they come last.
fn setcap(rights: &Rights, capabilities: &str) -> String {
    let (name, program) = match &rights.program {
        Some(path) => (String::new(), shell_quoted(&path.to_string_lossy())),
        None => ("p=$(command -v proftool) && ".to_owned(), "\"$p\"".into()),
    };
    format!(
        "{name}groupadd -f {GROUP} && chgrp {GROUP} {program} && chmod o-rwx {program} && setcap \
         {capabilities}=ep {program} (then only members may run it: usermod -aG {GROUP} USER)"
    )
}

// The kernel's capabilities, for the program of another machine.
pub fn setcap_elsewhere() -> String {
    let elsewhere = Rights {
        program: None,
        ..Rights::look()
    };
    setcap(&elsewhere, KERNEL)
}

pub fn setcap_everything(rights: &Rights) -> String {
    setcap(rights, EVERYTHING)
}

pub fn to_see_the_kernel(rights: &Rights) -> String {
    let settings = settings(rights);
    if rights.contained {
        return match settings {
            Some(settings) => {
                format!("run outside of this container (user namespace), as root: {settings}")
            }
            None => "record outside of this container (user namespace), as root".to_owned(),
        };
    }
    let Some(settings) = settings else {
        return format!(
            "run proftool as root, or first run as root: {}",
            setcap(rights, KERNEL)
        );
    };
    match rights.kptr_restrict {
        // Nobody sees the names until this is changed.
        Some(2..) => format!("run proftool as root, or first run as root: {settings}"),
        _ => {
            let setcap = setcap(rights, KERNEL);
            format!("run proftool as root, or first run as root: {setcap}, or {settings}")
        }
    }
}

pub fn to_name_the_kernel(rights: &Rights) -> String {
    let elsewhere = || {
        "the settings allow them, but a container or security module hides them: record outside of \
         it"
        .to_owned()
    };
    if rights.syslog && !rights.contained {
        return match rights.kptr_restrict {
            Some(2..) => "run as root: sysctl kernel.kptr_restrict=0".to_owned(),
            _ => elsewhere(),
        };
    }
    match settings(rights) {
        None => elsewhere(),
        Some(settings) if rights.contained => {
            format!("run outside of this container (user namespace), as root: {settings}")
        }
        Some(settings) if rights.kptr_restrict.is_some_and(|level| level >= 2) => {
            format!("run as root: {settings}")
        }
        Some(settings) => format!("run as root: {}, or {settings}", setcap(rights, KERNEL)),
    }
}

// A process that this user may not record, as it belongs to others.
pub fn to_record_others(rights: &Rights) -> String {
    if rights.ptrace {
        "it belongs to another user namespace, or a security module protects it: record it from \
         outside of this container"
            .to_owned()
    } else {
        format!(
            "record it as its user or as root, or first run as root: {}",
            setcap_everything(rights)
        )
    }
}

// The settings with which anybody sees the kernel's functions, as far as they are not set already.
fn settings(rights: &Rights) -> Option<String> {
    let mut settings = Vec::new();
    if rights.paranoid.is_none_or(|level| level > 1) {
        settings.push("kernel.perf_event_paranoid=1");
    }
    if rights.kptr_restrict.is_some_and(|level| level > 0) {
        settings.push("kernel.kptr_restrict=0");
    }
    (!settings.is_empty()).then(|| format!("sysctl {}", settings.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(paranoid: i32, kptr_restrict: i32, syslog: bool) -> Rights {
        Rights {
            paranoid: Some(paranoid),
            kptr_restrict: Some(kptr_restrict),
            syslog,
            ptrace: false,
            contained: false,
            program: Some("/usr/bin/proftool".into()),
        }
    }

    #[test]
    fn settings_that_are_already_right_are_not_advised() {
        let setcap = "groupadd -f perf_users && chgrp perf_users /usr/bin/proftool && chmod o-rwx \
                      /usr/bin/proftool && setcap cap_perfmon,cap_syslog=ep /usr/bin/proftool \
                      (then only members may run it: usermod -aG perf_users USER)";
        for (state, expected) in [
            (
                (2, 0, false),
                format!("run as root: {setcap}, or sysctl kernel.perf_event_paranoid=1"),
            ),
            (
                (1, 1, false),
                format!("run as root: {setcap}, or sysctl kernel.kptr_restrict=0"),
            ),
            (
                (2, 1, false),
                format!(
                    "run as root: {setcap}, or sysctl kernel.perf_event_paranoid=1 \
                     kernel.kptr_restrict=0"
                ),
            ),
            (
                (1, 2, false),
                "run as root: sysctl kernel.kptr_restrict=0".to_owned(),
            ),
            (
                (2, 2, true),
                "run as root: sysctl kernel.kptr_restrict=0".to_owned(),
            ),
        ] {
            let (paranoid, kptr, syslog) = state;
            let advice = to_name_the_kernel(&rights(paranoid, kptr, syslog));
            assert_eq!(advice, expected, "{state:?}");
        }
        for hidden_elsewhere in [rights(1, 0, false), rights(2, 1, true)] {
            let advice = to_name_the_kernel(&hidden_elsewhere);
            assert!(advice.contains("container or security module"), "{advice}");
        }
        let advice = to_see_the_kernel(&rights(1, 0, false));
        let expected = format!("run proftool as root, or first run as root: {setcap}");
        assert_eq!(advice, expected);
    }

    #[test]
    fn capabilities_in_a_container_do_not_count() {
        let contained = Rights {
            contained: true,
            ..rights(2, 0, true)
        };
        for advice in [
            to_see_the_kernel(&contained),
            to_name_the_kernel(&contained),
        ] {
            assert!(
                advice.starts_with("run outside of this container"),
                "{advice}"
            );
            assert!(
                advice.ends_with("sysctl kernel.perf_event_paranoid=1"),
                "{advice}"
            );
        }
    }

    #[test]
    fn a_program_without_a_path_is_found_by_the_shell() {
        let nameless = Rights {
            program: None,
            ..rights(2, 0, false)
        };
        let advice = setcap_everything(&nameless);
        assert!(
            advice.starts_with("p=$(command -v proftool) && "),
            "{advice}"
        );
        assert!(advice.contains("=ep \"$p\""), "{advice}");
    }

    #[test]
    fn capabilities_are_given_only_to_a_program_that_not_everybody_may_run() {
        for program in [Some("/opt/my tools/proftool".into()), None] {
            let advice = setcap_everything(&Rights {
                program,
                ..rights(2, 0, false)
            });
            let places = ["chgrp perf_users", "chmod o-rwx", "setcap cap_perfmon"];
            let places = places.map(|part| advice.find(part).unwrap());
            assert!(places.is_sorted(), "{advice}");
        }
    }
}
