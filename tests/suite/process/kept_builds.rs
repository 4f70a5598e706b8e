//! What is kept of one build is not used for another one in its place, although device, inode, size and
//! times are the same.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proftool::base::Svma;
use proftool::binary::{Binary, Finder};
use proftool::cache::Cache;

use crate::support::{self, ran, skipped};

/// Two programs of equal size; the one thing in which they differ is a name.
fn source(name: &str) -> String {
    format!(
        "static inline __attribute__((always_inline)) int {name}(int x) {{ return x * x + 7; }}\n\
         __attribute__((noinline)) int work_{name}(int x) {{ volatile int y = {name}(x); return y; }}\n\
         int main(int argc, char **argv) {{ return work_{name}(argc); }}\n"
    )
}

/// An image that is mounted read-only while the value lives.
struct Mounted(PathBuf);

impl Mounted {
    fn new(image: &Path, at: &Path) -> Option<Mounted> {
        fs::create_dir_all(at).unwrap();
        ran(Command::new("mount")
            .args(["-o", "loop,ro"])
            .arg(image)
            .arg(at))?;
        Some(Mounted(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn image(room: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let (root, image) = (room.join(name), room.join(format!("{name}.image")));
    fs::create_dir_all(&root).unwrap();
    let source_file = root.join("prog.c");
    fs::write(&source_file, source(name)).unwrap();
    let map = format!("-fdebug-prefix-map={}=/src", root.display());
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-g", "-o", "prog", "prog.c", &map]);
    ran(compiler.args(options).current_dir(&root))?;
    fs::remove_file(source_file).unwrap();
    let mut packer = Command::new("mksquashfs");
    packer.args([&root, &image]).args(["-noappend", "-quiet"]);
    ran(packer.args(["-all-time", "0", "-mkfs-time", "0"]))?;
    Some(image)
}

fn answers(binary: &Binary) -> Vec<String> {
    let (lines, mut frames) = (binary.lines(), Vec::new());
    let mut all = Vec::new();
    for function in binary.functions() {
        for at in (function.start.0..function.end().0).map(Svma) {
            lines.frames(at, &mut frames);
            all.push(format!("{at:?} {frames:?}"));
        }
    }
    all
}

#[test]
fn a_build_in_the_place_of_another_has_its_own_names() {
    let room = support::directory("kept-builds");
    for (kind, options) in [
        ("id", &["-Wl,--build-id"][..]),
        ("none", &["-Wl,--build-id=none"]),
    ] {
        let room = room.join(kind);
        let (cache, at) = (room.join("cache"), room.join("mounted"));
        let (mut states, mut found) = (Vec::new(), Vec::new());
        for name in ["alpha", "gamme"] {
            let Some(image) = image(&room, name, options) else {
                return;
            };
            let Some(mounted) = Mounted::new(&image, &at) else {
                return;
            };
            let program = mounted.0.join("prog");
            let state = fs::metadata(&program).unwrap();
            states.push((state.dev(), state.ino(), state.len(), state.ctime()));
            let open = || {
                let cache = Cache::open(&cache).map(Arc::new);
                let finder = Finder::new(None).with_cache(cache);
                finder.find(&program, None).unwrap()
            };
            let binary = open();
            let place = binary.place_to_keep("calls").unwrap();
            assert!(place.load().is_none(), "{kind} {name}");
            assert_eq!(place.store(name.as_bytes()), Some(()));
            let plain = answers(&Binary::open(&program).unwrap());
            assert_eq!(answers(&binary), plain, "{kind} {name}");
            assert_eq!(binary.keep_answers(), Some(()));
            // The same build has what was kept.
            let again = open();
            assert_eq!(
                again
                    .place_to_keep("calls")
                    .unwrap()
                    .load()
                    .unwrap()
                    .bytes(),
                name.as_bytes()
            );
            assert_eq!(answers(&again), plain);
            assert_eq!(again.memory_taken().debug_information, 0);
            found.push(plain);
        }
        assert_ne!(found[0], found[1]);
        if states[0] != states[1] {
            skipped("the images do not have the same state");
        }
    }
}
