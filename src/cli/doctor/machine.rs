//! What the machine lets this user record.

use proftool::sampler::{Capabilities, Options, Trial};
use proftool::view::doctor::{Check, Status};

use super::super::advice::rights::{PARANOID, SECCOMP, setcap_everything, to_name_the_kernel};
use super::{fine, told};

const SUBJECT: &str = "this machine";
// The frames of a call chain when nothing was changed.
const USUAL_FRAMES: u16 = 127;

pub fn checks() -> Vec<Check> {
    of(&Capabilities::look())
}

fn of(machine: &Capabilities) -> Vec<Check> {
    let mut checks = vec![recording(machine), privilege(machine), paranoid(machine)];
    checks.push(kernel(machine));
    checks.push(cycles(machine));
    checks.push(copies(machine));
    checks.push(buffers(machine));
    checks.extend(frames(machine));
    checks.extend(rate(machine));
    checks
}

fn recording(machine: &Capabilities) -> Check {
    match &machine.clock {
        Trial::Works => fine(
            SUBJECT,
            "recording",
            "this user may record their own programs",
        ),
        Trial::Refused { reason, .. } => {
            let remedy = match machine.rights.paranoid {
                Some(3..) => PARANOID.to_owned(),
                _ if machine.seccomp => format!("a seccomp filter is set; {SECCOMP}"),
                _ => "a sandbox or security module may forbid it, or the kernel is built without \
                      CONFIG_PERF_EVENTS; try as root, or outside the container"
                    .to_owned(),
            };
            let found = format!("perf_event_open is refused: {reason}");
            told(SUBJECT, "recording", Status::Bad, found, remedy)
        }
    }
}

fn privilege(machine: &Capabilities) -> Check {
    let seccomp = if machine.seccomp {
        "; a seccomp filter is set"
    } else {
        ""
    };
    let found = match (machine.root, machine.perfmon) {
        (true, _) => "root: no setting below limits recording",
        (false, true) => "CAP_PERFMON: this user may record the kernel and all processes",
        (false, false) if machine.rights.contained => {
            "none: capabilities in a user namespace, as in containers, do not count"
        }
        (false, false) => "none (no CAP_PERFMON)",
    };
    let check = fine(SUBJECT, "privilege", format!("{found}{seccomp}"));
    let remedy = (!machine.perfmon).then(|| {
        let whole = "to record the kernel and other users' programs";
        let setcap = setcap_everything(&machine.rights);
        if machine.rights.contained {
            format!("{whole}, record outside of this container (user namespace)")
        } else {
            format!("{whole}, run as root: {setcap}")
        }
    });
    Check { remedy, ..check }
}

fn paranoid(machine: &Capabilities) -> Check {
    let name = "kernel.perf_event_paranoid";
    let Some(level) = machine.rights.paranoid else {
        let remedy = "mount /proc, or check the kernel's configuration for CONFIG_PERF_EVENTS";
        return told(SUBJECT, name, Status::Warn, "cannot be read", remedy);
    };
    let allows = match (machine.kernel.works(), machine.everything.works()) {
        (_, true) => "this user may record the kernel, all programs and whole processors",
        (true, false) => "this user may record their own programs, including kernel time",
        (false, false) if machine.clock.works() => {
            "this user may record their own programs, without kernel time"
        }
        (false, false) => "this user may record nothing",
    };
    let found = format!("{level}: {allows}");
    if machine.kernel.works() {
        return fine(SUBJECT, name, found);
    }
    let remedy = if !machine.clock.works() && level <= 2 {
        "this setting is not the reason: see recording, above"
    } else {
        "run as root: sysctl kernel.perf_event_paranoid=1 (adds kernel time) or =0 (also adds \
         whole processors)"
    };
    told(SUBJECT, name, Status::Warn, found, remedy)
}

fn kernel(machine: &Capabilities) -> Check {
    let level = machine
        .rights
        .kptr_restrict
        .map_or_else(|| "?".to_owned(), |level| level.to_string());
    if machine.kernel_symbols {
        let found = format!("{level}: kernel functions have names");
        return fine(SUBJECT, "kernel.kptr_restrict", found);
    }
    let remedy = to_name_the_kernel(&machine.rights);
    let found =
        format!("{level}: the kernel hides its addresses, so kernel functions have no names");
    told(SUBJECT, "kernel.kptr_restrict", Status::Warn, found, remedy)
}

fn cycles(machine: &Capabilities) -> Check {
    let name = "hardware counters";
    match &machine.cycles {
        Trial::Works => fine(SUBJECT, name, "cycles can be counted"),
        Trial::Refused {
            forbidden: true,
            reason,
        } => {
            let remedy = "see recording, above";
            told(
                SUBJECT,
                name,
                Status::Warn,
                format!("refused: {reason}"),
                remedy,
            )
        }
        Trial::Refused { .. } => told(
            SUBJECT,
            name,
            Status::Warn,
            "none, as in many virtual machines; proftool samples cpu-clock, which measures time \
             but not cache misses or branches",
            "expose the host's counters to the virtual machine (QEMU: -cpu host,pmu=on), or record \
             on the host",
        ),
    }
}

fn copies(machine: &Capabilities) -> Check {
    let name = "copies of stacks";
    match (&machine.copies, machine.clock.works()) {
        (Trial::Works, _) => fine(SUBJECT, name, "can be recorded (-g dwarf)"),
        (Trial::Refused { .. }, false) => {
            let remedy = "see recording, above";
            told(
                SUBJECT,
                name,
                Status::Warn,
                "not tested, as recording is refused",
                remedy,
            )
        }
        (Trial::Refused { reason, .. }, true) => told(
            SUBJECT,
            name,
            Status::Warn,
            format!("the kernel refuses them: {reason}"),
            "build programs with frame pointers: -fno-omit-frame-pointer",
        ),
    }
}

fn buffers(machine: &Capabilities) -> Check {
    let name = "kernel.perf_event_mlock_kb";
    let setting = machine
        .mlock_kib
        .map_or_else(|| "?".to_owned(), |kib| kib.to_string());
    let Some(kib) = machine.ring_kib() else {
        let found = format!("{setting}; no limit for this user");
        return fine(SUBJECT, name, found);
    };
    let locked = machine
        .locked_kib
        .map_or_else(|| "no limit".to_owned(), |kib| format!("{kib} KiB"));
    let found =
        format!("{setting}, with {locked} of locked memory: {kib} KiB of buffer per processor");
    if kib as usize * 1024 >= Options::RING_BYTES {
        return fine(SUBJECT, name, found);
    }
    let remedy = "samples may be lost; run as root: sysctl kernel.perf_event_mlock_kb=4096";
    told(SUBJECT, name, Status::Warn, found, remedy)
}

fn frames(machine: &Capabilities) -> Option<Check> {
    let name = "kernel.perf_event_max_stack";
    let frames = machine.max_stack?;
    let found = format!("{frames}: frame-pointer stacks have at most {frames} frames");
    let deeper = "for deep recursion, run as root: sysctl kernel.perf_event_max_stack=1024";
    if frames >= USUAL_FRAMES {
        let remedy = (frames < 512).then(|| deeper.to_owned());
        return Some(Check {
            remedy,
            ..fine(SUBJECT, name, found)
        });
    }
    Some(told(SUBJECT, name, Status::Warn, found, deeper))
}

fn rate(machine: &Capabilities) -> Option<Check> {
    let name = "kernel.perf_event_max_sample_rate";
    let rate = machine.max_sample_rate?;
    let found = format!("at most {rate} samples per second");
    if rate >= Options::FREQUENCY {
        return Some(fine(SUBJECT, name, found));
    }
    let usual = Options::FREQUENCY;
    let found = format!("{found}, below the default of {usual}");
    let remedy = "the kernel lowers it when samples take too long; run as root: sysctl \
                  kernel.perf_event_max_sample_rate=100000";
    Some(told(SUBJECT, name, Status::Warn, found, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_its_setting() {
        let mut machine = Capabilities::look();
        let refused = Trial::Refused {
            reason: "permission denied".into(),
            forbidden: true,
        };
        machine.root = false;
        machine.perfmon = false;
        machine.lock_limited = true;
        machine.rights.paranoid = Some(3);
        machine.rights.kptr_restrict = Some(1);
        machine.rights.syslog = false;
        machine.rights.contained = false;
        machine.mlock_kib = Some(16);
        machine.locked_kib = Some(0);
        machine.max_stack = Some(32);
        machine.max_sample_rate = Some(100);
        machine.clock = refused.clone();
        machine.kernel = refused.clone();
        machine.everything = refused.clone();
        machine.cycles = refused.clone();
        machine.copies = refused;
        machine.kernel_symbols = false;
        let checks = of(&machine);
        for knob in [
            "kernel.perf_event_paranoid=2",
            "kernel.perf_event_paranoid=1",
            "cap_perfmon",
            "kernel.kptr_restrict=0",
            "kernel.perf_event_mlock_kb=",
            "kernel.perf_event_max_stack=",
            "kernel.perf_event_max_sample_rate=",
        ] {
            let mut remedies = checks.iter().filter_map(|check| check.remedy.as_ref());
            assert!(remedies.any(|remedy| remedy.contains(knob)), "{knob}");
        }
        let wrong = |check: &&Check| check.status != Status::Ok;
        assert!(
            checks
                .iter()
                .filter(wrong)
                .all(|check| check.remedy.is_some())
        );
        // A container refuses although the settings allow.
        machine.rights.paranoid = Some(2);
        machine.seccomp = true;
        let remedy = of(&machine)[0].remedy.clone().unwrap();
        assert!(remedy.contains("seccomp=unconfined"), "{remedy}");
    }
}
