//! The programs of a recording, by the number of samples in their processes.
//!
//! The program of a process is the file that its last exec started, before the sample; a child has
//! its parent's until it executes another.
//!
//! ```text
//!   FORK 7 ← 5     COMM 7 exec    MMAP 7 /usr/libexec/cc1plus    MMAP 7 ld.so    SAMPLE 7
//!   g++, as 5 is   another        … is this one                  a library       of cc1plus
//! ```

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustc_hash::FxBuildHasher;

use super::Error;
use crate::base::BuildId;
use crate::perfdata::{Body, Mapping, Pass, Reader};

/// A program that was sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledProgram {
    /// Its file, as its process has it.
    pub path: PathBuf,
    /// The build of the file, where the recording has it.
    pub build_id: Option<BuildId>,
    /// The samples in its processes, of all events.
    pub samples: u64,
}

/// The programs of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledPrograms {
    /// Those with samples: most samples first, then by path.
    pub programs: Vec<SampledProgram>,
    /// All samples, also of the kernel's threads and of processes whose program is not known.
    pub samples: u64,
}

/// Counts the samples of each program of a recording.
///
/// # Errors
///
/// If the recording cannot be read.
pub fn sampled_programs(path: &Path) -> Result<SampledPrograms, Error> {
    let mut reader = Reader::open(path).map_err(Error::of(path))?;
    loop {
        let mut count = Count::default();
        let pass = reader
            .visit(
                |_| {},
                |_, record| match &record.body {
                    Body::Sample(sample) => count.sample(sample.pid),
                    Body::Mapping(mapping) => count.map(mapping),
                    Body::Name { pid, exec, .. } if *exec => count.exec(*pid),
                    Body::Fork(task) if task.pid != task.parent_pid => {
                        count.fork(task.pid, task.parent_pid);
                    }
                    _ => {}
                },
            )
            .map_err(Error::of(path))?;
        if pass == Pass::Done {
            return Ok(count.finish(&reader));
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Running {
    // An index of [`Count::programs`].
    program: Option<usize>,
    // Whether its next mapping is that of its program.
    is_starting: bool,
}

#[derive(Default)]
struct Count {
    processes: HashMap<i32, Running, FxBuildHasher>,
    indices: HashMap<Vec<u8>, usize, FxBuildHasher>,
    programs: Vec<SampledProgram>,
    samples: u64,
}

impl Count {
    fn sample(&mut self, pid: Option<i32>) {
        self.samples += 1;
        let process = pid.and_then(|pid| self.processes.get(&pid));
        if let Some(index) = process.and_then(|process| process.program) {
            self.programs[index].samples += 1;
        }
    }

    fn exec(&mut self, pid: i32) {
        self.processes.entry(pid).or_default().is_starting = true;
    }

    fn fork(&mut self, pid: i32, parent: i32) {
        let program = self.processes.get(&parent).and_then(|p| p.program);
        let is_starting = program.is_none();
        let child = Running {
            program,
            is_starting,
        };
        self.processes.insert(pid, child);
    }

    // The kernel maps the program before its loader. The mappings of a process that was there
    // before the recording are listed by address, which has the program first, too.
    fn map(&mut self, mapping: &Mapping<'_>) {
        let path = mapping.path;
        let is_file = path.starts_with(b"/") && !path.starts_with(b"//");
        if !is_file || !mapping.executable {
            return;
        }
        let process = self.processes.entry(mapping.pid).or_insert(Running {
            program: None,
            is_starting: true,
        });
        if !process.is_starting {
            return;
        }
        process.is_starting = false;
        let index = *self.indices.entry(path.to_vec()).or_insert_with(|| {
            self.programs.push(SampledProgram {
                path: PathBuf::from(OsStr::from_bytes(path)),
                build_id: mapping.build_id.clone(),
                samples: 0,
            });
            self.programs.len() - 1
        });
        process.program = Some(index);
    }

    fn finish(mut self, reader: &Reader) -> SampledPrograms {
        self.programs.retain(|program| program.samples > 0);
        for program in &mut self.programs {
            if program.build_id.is_none() {
                let mut listed = reader.features().build_ids.iter();
                let same = listed.find(|file| Path::new(&file.path) == program.path);
                program.build_id = same.map(|file| file.build_id.clone());
            }
        }
        self.programs
            .sort_by(|a, b| (b.samples, &a.path).cmp(&(a.samples, &b.path)));
        SampledPrograms {
            programs: self.programs,
            samples: self.samples,
        }
    }
}
