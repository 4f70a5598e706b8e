//! Which source files are shown, on a screen and in a file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use proftool::base::Svma;
use proftool::binary::{Binary, StatedSource};
use proftool::input::{Audience, SourceClaim, SourceFiles, SourceOptions};
use proftool::profile::NoSource;

use crate::support::{compile_text, skipped};

const LINES: usize = 12;

/// The text of a file of as many lines as programs here say that their sources have.
fn lines(word: &str) -> String {
    (1..=LINES).map(|line| format!("{word} {line}\n")).collect()
}

/// Writes a file of this mode.
fn write(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A directory that everybody can enter, unlike that of the tests where it is below a private one.
fn open_directory(name: &str) -> PathBuf {
    let room = Path::new("/tmp").join(format!("proftool-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room).unwrap();
    fs::set_permissions(&room, Permissions::from_mode(0o755)).unwrap();
    room
}

/// What a program says that is compiled in `room` from lines of this file, by the path that it has.
fn claim(room: &Path, file: &str, flags: &[&str]) -> Option<(String, SourceClaim)> {
    let body: String = (2..=LINES)
        .map(|line| format!("#line {line} \"{file}\"\nx = x * 3 + {line};\n"))
        .collect();
    let text = format!(
        "unsigned f(unsigned x)\n{{\n{body}return x;\n}}\nint main(void) {{ return f(1); }}\n"
    );
    let program = compile_text(
        "gcc",
        &[&["-g", "-O0"], flags].concat(),
        &text,
        &room.join("program"),
    )?;
    let binary = Binary::open(&program).unwrap();
    let main = binary
        .functions()
        .iter()
        .find(|it| binary.function_name(it).is_some_and(|name| name == "f"));
    let near = main.unwrap().start;
    let read = binary.lines();
    let mut frames = Vec::new();
    let addresses = (near.0..near.0 + 200).map(Svma);
    let mut files: Vec<String> = addresses
        .flat_map(|at| {
            read.frames(at, &mut frames);
            frames
                .iter()
                .filter_map(|frame| frame.file.map(str::to_owned))
                .collect::<Vec<_>>()
        })
        .collect();
    let name = Path::new(file).file_name().unwrap();
    files.retain(|file| Path::new(file).file_name() == Some(name));
    let path = files.first().expect("the line table has the file").clone();
    let stated = read.stated_sources(near, &[&path]).remove(0);
    assert!(stated.is_some(), "{path}");
    let owners = binary.owners();
    Some((
        path,
        SourceClaim {
            stated,
            has_tables: true,
            owners,
        },
    ))
}

fn files(audience: Audience, takes_all: bool) -> SourceFiles {
    SourceFiles::new(&SourceOptions {
        audience,
        takes_all,
        ..SourceOptions::default()
    })
}

/// What is shown of a file in a page.
fn in_page((file, claim): &(String, SourceClaim)) -> Result<(), NoSource> {
    files(Audience::File, false)
        .read(file, claim, LINES as u32)
        .map(drop)
}

#[test]
fn a_page_has_no_private_file_that_is_not_source() {
    let room = open_directory("private");
    let home = room.join("home");
    write(&home.join("id_test"), &lines("secret"), 0o600);
    write(&home.join("config"), &lines("secret"), 0o644);
    write(&home.join("secret.c"), &lines("secret"), 0o600);
    fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
    let build = room.join("build");
    fs::create_dir(&build).unwrap();
    fs::hard_link(home.join("id_test"), build.join("hard.c")).unwrap();
    symlink(home.join("id_test"), build.join("soft.c")).unwrap();
    symlink(&home, build.join("src")).unwrap();
    let home = home.display().to_string();
    let private = [
        format!("{home}/id_test"),
        // Its mode says that all can read it, but nobody can enter its directory.
        format!("{home}/config"),
        // It is named as source is, but is not of what was compiled here.
        format!("{home}/secret.c"),
        "../home/id_test".to_owned(),
        "../home/secret.c".to_owned(),
        "../build/../home/./id_test".to_owned(),
        "hard.c".to_owned(),
        "src/id_test".to_owned(),
        "src/secret.c".to_owned(),
    ];
    let mut told = Vec::new();
    for file in &private {
        let Some(claim) = claim(&build, file, &[]) else {
            return;
        };
        told.push((file.as_str(), in_page(&claim)));
        let screen = files(Audience::Screen, false).read(&claim.0, &claim.1, 1);
        assert!(
            screen.is_ok(),
            "{file}: one's own files are shown on the screen"
        );
        let all = files(Audience::File, true).read(&claim.0, &claim.1, LINES as u32);
        assert!(all.is_ok(), "{file}: all were asked for");
    }
    let shown: Vec<_> = told.iter().filter(|(_, result)| result.is_ok()).collect();
    assert!(shown.is_empty(), "{shown:?}");
    let Some(soft) = claim(&build, "soft.c", &[]) else {
        return;
    };
    assert_eq!(
        in_page(&soft),
        Err(NoSource::Outside),
        "a link is not followed"
    );
    fs::remove_dir_all(room).unwrap();
}

#[test]
fn a_page_has_sources_that_all_can_read_and_those_of_a_strict_umask() {
    let room = open_directory("sources");
    let build = room.join("build");
    write(&room.join("include/shared"), &lines("int x;"), 0o644);
    write(&build.join("own.c"), &lines("int x;"), 0o600);
    write(&build.join("deep/own.h"), &lines("int x;"), 0o600);
    fs::set_permissions(&build, Permissions::from_mode(0o700)).unwrap();
    let shared = room.join("include/shared").display().to_string();
    for file in [
        &*shared,
        "../include/shared",
        "own.c",
        "deep/own.h",
        "deep/../own.c",
    ] {
        let Some(claim) = claim(&build, file, &[]) else {
            return;
        };
        assert_eq!(in_page(&claim), Ok(()), "{file}");
    }
    fs::remove_dir_all(room).unwrap();
}

#[test]
fn files_of_the_kernel_are_no_sources_by_any_path() {
    let room = open_directory("kernel");
    symlink("/proc", room.join("proc")).unwrap();
    let device = Path::new("/dev/shm").join(format!("proftool-{}.c", std::process::id()));
    let has_device = fs::write(&device, lines("secret")).is_ok();
    let mut paths = vec![
        "/proc/self/environ".to_owned(),
        "/./proc//self/../self/environ".to_owned(),
        "/sys/kernel/notes".to_owned(),
        room.join("proc/self/environ").display().to_string(),
    ];
    if has_device {
        paths.push(device.display().to_string());
    }
    for path in paths {
        let split = Path::new(&path);
        let (parent, name) = (split.parent().unwrap(), split.file_name().unwrap());
        let place = (
            parent.display().to_string(),
            name.to_str().unwrap().to_owned(),
        );
        let stated = StatedSource {
            places: vec![place],
            is_near: true,
            ..StatedSource::default()
        };
        let claim = SourceClaim {
            stated: Some(stated),
            has_tables: true,
            owners: vec![0],
        };
        for (audience, all) in [
            (Audience::Screen, false),
            (Audience::Screen, true),
            (Audience::File, false),
            (Audience::File, true),
        ] {
            let told = files(audience, all).read(&path, &claim, 1);
            assert_eq!(
                told.err(),
                Some(NoSource::OfSystem),
                "{path} {audience:?} {all}"
            );
        }
    }
    let _ = fs::remove_file(device);
    fs::remove_dir_all(room).unwrap();
}

#[test]
fn a_file_named_from_the_root_outside_of_the_compilation_is_left_out() {
    let room = open_directory("outside");
    let file = room.join("a.c");
    write(&file, &lines("int x;"), 0o644);
    let path = file.display().to_string();
    let stated = Some(StatedSource::default());
    let outside = SourceClaim {
        stated,
        has_tables: true,
        owners: Vec::new(),
    };
    assert_eq!(in_page(&(path.clone(), outside)), Err(NoSource::Outside));
    // A program has line tables, and none has the file.
    let unnamed = SourceClaim {
        has_tables: true,
        ..SourceClaim::default()
    };
    assert_eq!(in_page(&(path.clone(), unnamed)), Err(NoSource::Outside));
    // Profiles of other tools have no line tables: there the name has to be one of a source.
    assert_eq!(in_page(&(path, SourceClaim::default())), Ok(()));
    write(&room.join("notes"), &lines("secret"), 0o644);
    let notes = room.join("notes").display().to_string();
    assert_eq!(
        in_page(&(notes, SourceClaim::default())),
        Err(NoSource::Private)
    );
    fs::remove_dir_all(room).unwrap();
}

#[test]
fn a_page_has_no_text_that_was_not_compiled() {
    let room = open_directory("changed");
    write(&room.join("a.c"), &lines("int x;"), 0o644);
    let Some((path, stated)) = claim(&room, "a.c", &[]) else {
        return;
    };
    let read = |files: &mut SourceFiles, claim: &SourceClaim, last: usize| {
        files.read(&path, claim, last as u32).map(drop)
    };
    let mut page = files(Audience::File, false);
    assert_eq!(read(&mut page, &stated, LINES), Ok(()));
    assert_eq!(read(&mut page, &stated, LINES + 1), Err(NoSource::Changed));
    assert_eq!(
        read(&mut files(Audience::File, true), &stated, LINES + 1),
        Err(NoSource::Changed)
    );
    assert_eq!(
        read(&mut files(Audience::Screen, false), &stated, LINES + 1),
        Ok(())
    );
    let with = |digest: [u8; 16]| {
        let stated = stated.stated.clone().map(|it| StatedSource {
            digest: Some(digest),
            ..it
        });
        SourceClaim {
            stated,
            has_tables: true,
            owners: Vec::new(),
        }
    };
    assert_eq!(
        read(&mut page, &with([7; 16]), LINES),
        Err(NoSource::Changed)
    );
    assert_eq!(
        read(&mut files(Audience::Screen, false), &with([7; 16]), LINES),
        Ok(())
    );
    fs::remove_dir_all(room).unwrap();
}

#[test]
fn the_checksum_that_clang_states_is_compared() {
    let room = open_directory("checksum");
    let text = "int main(void)\n{\n\treturn 0;\n}\n";
    let flags = ["-gdwarf-5", "-O0"];
    let Some(program) = compile_text("clang", &flags, text, &room.join("program")) else {
        return;
    };
    let binary = Binary::open(&program).unwrap();
    let path = room.join("program.c").display().to_string();
    let stated = binary.lines().stated_sources(Svma(0), &[&path]).remove(0);
    assert!(
        stated
            .as_ref()
            .is_some_and(|stated| stated.digest.is_some()),
        "{stated:?}"
    );
    let claim = SourceClaim {
        stated,
        has_tables: true,
        owners: Vec::new(),
    };
    let told = || {
        files(Audience::File, false)
            .read(&path, &claim, 4)
            .map(drop)
    };
    assert_eq!(told(), Ok(()));
    fs::write(&path, "int main(void)\n{\n\treturn 1;\n}\n").unwrap();
    assert_eq!(told(), Err(NoSource::Changed));
    fs::remove_dir_all(room).unwrap();
}

#[test]
fn root_is_shown_no_file_that_the_owner_of_the_program_cannot_read() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skipped("only root can");
    }
    let room = open_directory("owner");
    let build = room.join("build");
    write(&build.join("own.c"), &lines("int x;"), 0o600);
    write(&build.join("root.c"), &lines("secret"), 0o600);
    write(&room.join("closed/all.c"), &lines("secret"), 0o644);
    fs::set_permissions(room.join("closed"), Permissions::from_mode(0o700)).unwrap();
    let user = 61_234;
    for of_user in [build.clone(), build.join("own.c")] {
        chown(of_user, Some(user), Some(user)).unwrap();
    }
    for (file, expected) in [
        ("own.c", Ok(())),
        ("root.c", Err(NoSource::NotOfOwner)),
        ("../closed/all.c", Err(NoSource::NotOfOwner)),
    ] {
        let Some((path, mut claim)) = claim(&build, file, &[]) else {
            return;
        };
        claim.owners = vec![user];
        for audience in [Audience::Screen, Audience::File] {
            let told = files(audience, false).read(&path, &claim, LINES as u32);
            assert_eq!(told.map(drop), expected, "{file} {audience:?}");
            let all = files(audience, true).read(&path, &claim, LINES as u32);
            assert_eq!(all.map(drop), Ok(()), "{file}: all were asked for");
        }
    }
    let Some((_, mut claim)) = claim(&build, "own.c", &[]) else {
        return;
    };
    claim.owners.clear();
    assert_eq!(
        claim.or_of(Some(user)).owners,
        [user],
        "a profile has an owner, too"
    );
    fs::remove_dir_all(room).unwrap();
}
