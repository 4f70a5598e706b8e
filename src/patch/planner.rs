//! What the sampler asks: which files, which bytes, and what is recorded of them.

use std::path::Path;

use super::loaded_image::{Chosen, LoadedImage, LoaderStop};
use super::plan::{self, Change, ImagePlan, Installed, StubArea};
use super::sites::FileSites;
use super::{CallCounter, Images, PlannedFile, Reason};
use crate::base::Svma;
use crate::binary::{Binary, Error, Machine};
use crate::perfdata::{CallCounts, CountedImage};

impl CallCounter {
    /// Takes a program's code in before the program is started; the path has no symbolic links.
    ///
    /// # Errors
    /// Why its calls cannot be counted, as a lower-case fragment.
    pub(crate) fn prepare(&mut self, program: &Path) -> Result<(), String> {
        let path = program.to_owned();
        let Ok(binary) = Binary::open_stated(&path) else {
            // Whether it can be run at all is found out by running it.
            return Ok(());
        };
        check_machine(&binary)?;
        // What else is wrong with it is found again when it is loaded.
        self.prepared = self.sites_of(binary).ok().map(|file| (path, file));
        Ok(())
    }

    /// Where the dynamic linker at this path stops for debuggers.
    pub(crate) fn loader_stop(&mut self, loader: &Path) -> Option<LoaderStop> {
        if let Some(&known) = self.loaders.get(loader) {
            return known;
        }
        let found = loader_stop(loader);
        self.loaders.insert(loader.to_owned(), found);
        found
    }

    /// Whether calls in libraries are counted that are loaded when the program runs.
    pub(crate) fn loads_later(&self) -> bool {
        !matches!(self.images, Images::Program)
    }

    /// Takes note of a site that is counted no more, to keep the limit.
    pub(crate) fn gave_up(&mut self, file: usize, site: usize) {
        self.given_up.insert((file, site));
    }

    /// The address in memory of the word in which the dynamic linker notes where its list of loaded
    /// files is.
    pub(crate) fn loader_list(&mut self, program: &LoadedImage) -> Option<u64> {
        let binary = Binary::open_stated(&program.path).ok()?;
        let list = binary.needed().list?;
        Some(list.0.wrapping_add(bias(&binary, program)?))
    }

    /// The address in memory of a function that a library exports.
    pub(crate) fn function(&mut self, library: &LoadedImage, name: &str) -> Option<u64> {
        let binary = Binary::open_stated(&library.path).ok()?;
        let start = binary.exports().start(name.as_bytes())?;
        Some(start.0.wrapping_add(bias(&binary, library)?))
    }

    /// Chooses the files in which calls are counted. Images that are loaded when the program runs
    /// already are `later`.
    ///
    /// # Errors
    /// Why calls of the program cannot be counted, as a lower-case fragment.
    pub(crate) fn choose(
        &mut self,
        images: &[LoadedImage],
        is_later: bool,
    ) -> Result<Vec<Chosen>, String> {
        self.loads_later |= is_later && !images.is_empty();
        let mut all = Vec::new();
        for (number, image) in images.iter().enumerate() {
            if !self.images.picks(image) {
                if !image.mappings.is_empty()
                    && self.foreign_files.insert(image.identity)
                    && let Ok(binary) = Binary::open_stated(&image.path)
                {
                    self.foreign.extend(binary.imported_names());
                }
                continue;
            }
            match self.file_of(image) {
                Ok((file, bias, changes_code)) => all.push(Chosen {
                    image: number,
                    file,
                    bias,
                    changes_code,
                    stubs: self
                        .files
                        .get(file)
                        .map_or(0, |it| it.file.found.sites.len()),
                }),
                Err(reason) if image.is_program => {
                    return Err(format!("{}: {reason}", image.path.display()));
                }
                Err(reason) => self.refused(&image.path, &reason),
            }
        }
        Ok(all)
    }

    /// Returns what to write for a file that was chosen.
    pub(crate) fn plan(&mut self, file: usize, bias: u64, area: StubArea) -> ImagePlan {
        let file = self.files.get(file).map(|planned| &planned.file);
        file.map_or_else(ImagePlan::default, |file| plan::plan(file, bias, area))
    }

    /// Returns the changes of some sites of a file, which are in order.
    pub(crate) fn changes(
        &self,
        file: usize,
        bias: u64,
        area: StubArea,
        sites: &[usize],
    ) -> Vec<Change> {
        let file = self.files.get(file).map(|planned| &planned.file);
        file.map_or_else(Vec::new, |file| plan::changes(file, bias, area, sites))
    }

    /// Takes note of the sites of a plan that were left as they are, as memory had other bytes
    /// there.
    pub(crate) fn unchanged(&mut self, file: usize, plan: &ImagePlan, unchanged: &[usize]) {
        let Some(planned) = self.files.get_mut(file) else {
            return;
        };
        for (reason, sites) in [
            (Reason::Reach, &plan.out_of_reach[..]),
            (Reason::Changed, unchanged),
        ] {
            for &number in sites {
                if planned.unchanged.insert(number) {
                    self.left_alone.add(reason);
                }
            }
        }
    }

    /// Takes note of a file or process in which calls are not counted, and why, as a lower-case
    /// fragment.
    pub(crate) fn refused(&mut self, what: &Path, reason: &str) {
        let line = format!("{}: {reason}", what.display());
        if !self.unread.contains(&line) {
            self.unread.push(line);
        }
    }

    /// What is recorded of the files that count, with all counts at zero.
    pub(crate) fn counts(&self, installed: &[Installed]) -> CallCounts {
        let ways = self.other_ways();
        let images = installed.iter().filter_map(|installed| {
            let PlannedFile { path, file, .. } = self.files.get(installed.file)?;
            let ways = ways.get(installed.file)?;
            let mut rows: Vec<_> = { file.found.sites.iter() }
                .zip(&ways.is_least)
                .map(|(site, &is_least)| {
                    let mut row = site.row;
                    row.calls = site.patch.is_some().then_some(0);
                    (row.is_least, row.is_part) = (is_least, installed.is_part);
                    row
                })
                .collect();
            for &number in &installed.uncounted {
                if let Some(row) = rows.get_mut(number) {
                    row.calls = None;
                }
            }
            for &number in &installed.parts {
                if let Some(row) = rows.get_mut(number) {
                    row.is_part = true;
                }
            }
            Some(CountedImage {
                path: path.as_os_str().as_encoded_bytes().to_vec(),
                build_id: file.binary.build_id().cloned(),
                stubs: installed.area.offset,
                stubs_at: installed.area.stubs,
                bias: installed.bias,
                imports: file.found.imports.clone(),
                open: ways.open.clone(),
                sites: rows,
            })
        });
        CallCounts {
            images: images.collect(),
            ..CallCounts::default()
        }
    }
}

impl CallCounter {
    fn read(&self, path: &Path) -> Result<FileSites, String> {
        let binary = Binary::open_stated(path).map_err(|error| error.to_string())?;
        check_machine(&binary)?;
        self.sites_of(binary).map_err(|error| error.to_string())
    }

    fn sites_of(&self, binary: Binary) -> Result<FileSites, Error> {
        let binary = match &self.cache {
            Some(cache) => binary.keeping_in(cache),
            None => binary,
        };
        FileSites::of(binary)
    }

    /// The number of a file, which is read if it is new, where it is loaded, and whether the
    /// dynamic linker changes its code.
    fn file_of(&mut self, image: &LoadedImage) -> Result<(usize, u64, bool), String> {
        // Images that are mounted in turn have other files by the same device and inode.
        let is_it = |planned: &PlannedFile| {
            planned.identity == image.identity
                && !Binary::open(&image.path)
                    .is_ok_and(|binary| planned.file.binary.is_other_build(&binary))
        };
        let known = self.files.iter().position(is_it);
        let number = match known {
            Some(number) => number,
            None => {
                let prepared = self.prepared.take_if(|(path, _)| *path == image.path);
                let file = match prepared {
                    Some((_, file)) => file,
                    None => self.read(&image.path)?,
                };
                // Nothing is noted of a file that cannot be changed.
                bias(&file.binary, image).ok_or_else(not_shown)?;
                self.left_alone.merge(&file.found.left_alone);
                self.files.push(PlannedFile {
                    path: image.path.clone(),
                    identity: image.identity,
                    file,
                    unchanged: Default::default(),
                });
                self.files.len() - 1
            }
        };
        let planned = self.files.get(number).ok_or_else(not_shown)?;
        let bias = bias(&planned.file.binary, image).ok_or_else(not_shown)?;
        Ok((number, bias, planned.file.binary.needed().changes_code))
    }
}

fn not_shown() -> String {
    "no mapping shows its code".to_owned()
}

fn loader_stop(loader: &Path) -> Option<LoaderStop> {
    let binary = Binary::open_stated(loader).ok()?;
    let at = binary.exports().start(b"_dl_debug_state")?;
    let name = loader.file_name()?.to_string_lossy();
    Some(LoaderStop {
        at: at.0,
        // glibc stops before it loads libraries, and again when all of them are relocated; musl
        // stops once.
        stops: if name.starts_with("ld-musl") { 1 } else { 2 },
    })
}

fn check_machine(binary: &Binary) -> Result<(), String> {
    match binary.code() {
        Ok(code) if code.machine == Machine::X86_64 => Ok(()),
        _ => Err("it is not 64-bit x86 code".into()),
    }
}

/// What is added to the addresses that a file states to get those where it is loaded.
fn bias(binary: &Binary, image: &LoadedImage) -> Option<u64> {
    let code = binary.code().ok()?;
    let mut found = code.sections().filter_map(|(start, size)| {
        let end = Svma(start.0.saturating_add(size));
        let offset = code.piece(start, end)?.offset.0;
        let mapping = image.mappings.iter().find(|mapping| {
            let inside = offset.checked_sub(mapping.offset);
            inside.is_some_and(|inside| inside < mapping.end.saturating_sub(mapping.start))
        })?;
        let at = mapping.start.wrapping_add(offset - mapping.offset);
        Some(at.wrapping_sub(start.0))
    });
    found.next()
}
