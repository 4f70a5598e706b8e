//! What programs say of source files.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Keeper, MachineCode};
use crate::base::Svma;
use crate::binary::Binary;
use crate::input::source_files::SourceClaim;
use crate::profile::{FunctionId, ModuleId};

impl MachineCode<'_> {
    /// What line tables of its module, or of the running kernel, state of a function's files.
    pub fn source_claims(&self, function: FunctionId, files: &[String]) -> Vec<SourceClaim> {
        let module = self.profile.functions[function].module;
        let mut claims = self.claims.borrow_mut();
        let is_known = |file: &&String| claims.contains_key(&(module, (*file).clone()));
        let new: Vec<&str> = files
            .iter()
            .filter(|file| !is_known(file))
            .map(|it| &**it)
            .collect();
        if !new.is_empty() {
            let near = self.profile.functions[function].address;
            let found = self.claims_of(module, Svma(near.unwrap_or(0)), &new);
            let keys = new.iter().map(|&file| (module, file.to_owned()));
            claims.extend(keys.zip(found));
        }
        let known = |file: &String| claims.get(&(module, file.clone())).cloned();
        files
            .iter()
            .map(|file| known(file).unwrap_or_default())
            .collect()
    }

    fn claims_of(&self, module: ModuleId, near: Svma, files: &[&str]) -> Vec<SourceClaim> {
        match Keeper::of(self.profile, module) {
            Keeper::File => match self.file(module) {
                Ok(binary) => of_binary(&binary, near, files),
                Err(_) => vec![SourceClaim::default(); files.len()],
            },
            Keeper::Kernel => {
                let claims = self.kernel.with_file(&self.finder, |binary, moved| {
                    of_binary(binary, Svma(near.0.wrapping_sub(moved)), files)
                });
                claims.unwrap_or_else(|| vec![SourceClaim::default(); files.len()])
            }
            // The recording holds the code, and another file may be at its path by now.
            Keeper::JitDump if self.profile.generated_code.contains_key(&module) => {
                vec![SourceClaim::default(); files.len()]
            }
            Keeper::JitDump | Keeper::Generated => {
                let path = Path::new(&self.profile.modules[module].path);
                let root = self.options.symfs.as_deref().unwrap_or(Path::new("/"));
                let path = root.join(path.strip_prefix("/").unwrap_or(path));
                let claim = SourceClaim {
                    owners: std::fs::metadata(path)
                        .iter()
                        .map(MetadataExt::uid)
                        .collect(),
                    ..SourceClaim::default()
                };
                vec![claim; files.len()]
            }
        }
    }
}

fn of_binary(binary: &Binary, near: Svma, files: &[&str]) -> Vec<SourceClaim> {
    let stated = binary.lines().stated_sources(near, files);
    let (has_tables, owners) = (binary.has_debug_info(), binary.owners());
    let claim = |stated| SourceClaim {
        stated,
        has_tables,
        owners: owners.clone(),
    };
    stated.into_iter().map(claim).collect()
}
