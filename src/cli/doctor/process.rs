//! Whether a running process can be sampled, and what its files have.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proftool::base::{Runtime, printable};
use proftool::binary::{Binary, Finder};
use proftool::sampler::{Process, Rights, Trial};
use proftool::view::doctor::{Check, Status};

use super::super::advice::name_generated_code;
use super::super::advice::rights::to_record_others;
use super::super::failure::{fragment, hinted};
use super::{files, fine, told};

// The process, its program and the files that are mapped in it.
pub fn checks(pid: i32) -> anyhow::Result<Vec<Check>> {
    let process = Process::look(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => hinted(format!("there is no process {pid}"), None),
        _ => {
            let reason = fragment(&error.to_string());
            hinted(format!("could not inspect process {pid}: {reason}"), None)
        }
    })?;
    let subject = format!("process {pid} ({})", printable(&process.name));
    let mut checks = vec![sampling(&subject, &process)];
    if process.hidden {
        let found = "this user may not read its program and libraries";
        let remedy = if Rights::look().ptrace {
            "it belongs to another user namespace, or a security module protects it: run \
                     proftool doctor outside of this container"
        } else {
            "run proftool doctor as the user of the process, or as root"
        };
        checks.push(told(&subject, "files", Status::Warn, found, remedy));
        return Ok(checks);
    }
    let Some(program) = &process.program else {
        let found = "none: it is a kernel thread, or it has exited";
        checks.push(fine(&subject, "program", found));
        return Ok(checks);
    };
    checks.push(mounts(&subject, &process));
    checks.extend(deleted(&subject, &process));
    checks.extend(generated(&subject, &process));
    checks.extend(of_files(&subject, &process, program));
    Ok(checks)
}

fn sampling(subject: &str, process: &Process) -> Check {
    match &process.trial {
        Trial::Works => fine(subject, "sampling", "this user may sample it"),
        Trial::Refused { reason, forbidden } => {
            let remedy = if *forbidden {
                to_record_others(&Rights::look())
            } else {
                "proftool doctor shows what this machine allows".to_owned()
            };
            let found = format!("perf_event_open is refused: {reason}");
            told(subject, "sampling", Status::Bad, found, remedy)
        }
    }
}

fn mounts(subject: &str, process: &Process) -> Check {
    match &process.root {
        None => fine(subject, "files", "in this mount namespace"),
        Some(root) => told(
            subject,
            "files",
            Status::Warn,
            "in another mount namespace, such as a container: its paths lead to other files here",
            format!(
                "analyze recordings while it runs: proftool report --symfs {}",
                root.display()
            ),
        ),
    }
}

fn deleted(subject: &str, process: &Process) -> Option<Check> {
    let gone: Vec<String> = process
        .files
        .iter()
        .filter(|file| file.deleted)
        .map(|file| file.path.display().to_string())
        .collect();
    let first = gone.first()?;
    let found = match gone.len() {
        1 => format!("{first} was replaced or removed after the process started"),
        n => format!("{n} files were replaced or removed after the process started: {first} …"),
    };
    let remedy = "restart the process, so that names come from the files it runs";
    Some(told(subject, "changed files", Status::Bad, found, remedy))
}

fn generated(subject: &str, process: &Process) -> Option<Check> {
    if process.generated == 0 {
        return None;
    }
    let (map, there) = &process.perf_map;
    let size = process.generated.div_ceil(1024);
    if *there {
        let found = format!("{size} KiB, listed in {}", map.display());
        return Some(fine(subject, "code made at run time", found));
    }
    let names = process.files.iter().map(|file| file.path.to_string_lossy());
    let runtimes = names.filter_map(|name| Runtime::of_name(&name)).collect();
    let found = format!("{size} KiB without names: there is no {}", map.display());
    Some(told(
        subject,
        "code made at run time",
        Status::Warn,
        found,
        name_generated_code(&runtimes),
    ))
}

fn of_files(subject: &str, process: &Process, program: &Path) -> Vec<Check> {
    let finder = Finder::default();
    let stated = |path: &Path| finder.open_stated(process.root.as_deref(), path);
    // The link to the program leads to it even when its file is gone.
    let own = PathBuf::from(format!("/proc/{}/exe", process.pid));
    let binary = match stated(program).or_else(|_| finder.open_named(&own)) {
        Ok(binary) => binary,
        Err(error) => {
            let found = format!("{}: {}", program.display(), fragment(&error.to_string()));
            let remedy = "run proftool doctor as the user of the process, or as root";
            return vec![told(subject, "program", Status::Warn, found, remedy)];
        }
    };
    let libraries: Vec<Arc<Binary>> = process
        .files
        .iter()
        .filter(|file| file.path != program && !file.deleted)
        .filter_map(|file| stated(&file.path).ok())
        .map(Arc::new)
        .collect();
    files::with_libraries(&binary, &libraries)
}
