//! A file without a build ID that is no longer the one that ran gives no names; one that still is gives them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::cli::proftool;
use crate::support::record::{can_record, is_root, perf};
use crate::support::repeated::repeated;
use crate::support::{compile_text, copy_program, directory, ran, skipped};

/// More than a second: perf's clock is known to that.
const LATER: Duration = Duration::from_millis(1500);

/// A program in two builds that differ in a name, at the same place one after the other.
struct Builds {
    directory: PathBuf,
}

impl Builds {
    fn of_c(test: &str) -> Option<Builds> {
        Builds::of_c_with(test, "none")
    }

    fn of_c_with(test: &str, build_id: &str) -> Option<Builds> {
        let directory = directory(&format!("file-identity-{test}"));
        let build_id = format!("-Wl,--build-id={build_id}");
        let flags = ["-O1", "-fno-omit-frame-pointer", &build_id];
        // A build ID does not depend on names, and perf keeps builds that it sees for the first time:
        // a test that is repeated needs others.
        let number = UNIX_EPOCH.elapsed().unwrap().as_nanos();
        for name in ["alpha", "gamma"] {
            let text = format!(
                "__attribute__((noinline)) void {name}(void)\n\
                 {{ for (volatile long i = 0; i < 150000000; i++); }}\n\
                 const char build[] = \"{name} {number}\";\n\
                 int main(void) {{ {name}(); return 0; }}\n"
            );
            compile_text("gcc", &flags, &text, &directory.join(name))?;
        }
        Some(Builds::first(directory))
    }

    fn of_go(test: &str) -> Option<Builds> {
        let directory = directory(&format!("file-identity-{test}"));
        for name in ["alpha", "gamma"] {
            let text = format!(
                "package main\n\n//go:noinline\nfunc {name}() (sum int) {{\n\
                 \tfor i := 0; i < 1000000000; i++ {{\n\t\tsum += i * sum\n\t}}\n\treturn\n}}\n\n\
                 func main() {{ println({name}()) }}\n"
            );
            let source = directory.join(format!("{name}.go"));
            fs::write(&source, text).unwrap();
            let mut go = Command::new("go");
            go.arg("build").arg("-o").arg(directory.join(name));
            ran(go.arg(&source).env("GO111MODULE", "off"))?;
        }
        Some(Builds::first(directory))
    }

    fn first(directory: PathBuf) -> Builds {
        let builds = Builds { directory };
        builds.write_over("alpha");
        builds
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn program(&self) -> PathBuf {
        self.file("program")
    }

    /// Writes a build into the file of the program, as some linkers do.
    fn write_over(&self, build: &str) {
        copy_program(self.file(build), self.program());
    }

    /// Puts a build in the place of the program, as another file.
    fn replace(&self, build: &str) {
        copy_program(self.file(build), self.file("new"));
        fs::rename(self.file("new"), self.program()).unwrap();
    }

    /// Removes the program before the build is written: it may well have the same inode.
    fn rebuild(&self, build: &str) {
        fs::remove_file(self.program()).unwrap();
        self.write_over(build);
    }

    fn recording(&self, recorder: &str, command: &[&str]) -> Option<PathBuf> {
        let data = self.file("data");
        let output = data.to_str().unwrap();
        let options = [
            "record",
            "-q",
            "-F",
            "999",
            "-e",
            "cpu-clock:u",
            "-o",
            output,
        ];
        if recorder == "perf" {
            perf(&[&options, command].concat())?;
        } else {
            let args = [&options[..], &["--"], command].concat();
            assert!(proftool(&args).output().unwrap().status.success());
        }
        Some(data)
    }

    fn recorded(&self, recorder: &str) -> Option<PathBuf> {
        self.recording(recorder, &[self.program().to_str().unwrap()])
    }
}

/// The table of functions, and what is said about it.
fn report(data: &Path) -> String {
    let output = proftool(&["flat", "--limit", "0"])
        .arg(data)
        .output()
        .unwrap();
    let texts = [output.stdout, output.stderr].concat();
    String::from_utf8(texts).unwrap()
}

/// Whether the report names a function of this build.
fn names(report: &str, build: &str) -> bool {
    report.contains(build)
}

/// Asserts that neither the recording nor a copy of it is given names of the second build.
fn refuses(data: &Path, reason: &str, case: &str) {
    let copy = data.with_extension("copy");
    fs::copy(data, &copy).unwrap();
    for data in [data, &copy] {
        let report = report(data);
        assert!(!names(&report, "gamma"), "{case}: {report}");
        assert!(report.contains(reason), "{case}: {report}");
    }
}

const NOT_USED: &str = "in files that are not the build that ran; not used";

type Change = (&'static str, fn(&Builds, &str));
const CHANGES: [Change; 3] = [
    ("write", Builds::write_over),
    ("replace", Builds::replace),
    ("rebuild", Builds::rebuild),
];

fn a_changed_file_has_no_names(builds: &Builds) {
    for recorder in ["perf", "proftool"] {
        for (change, make) in CHANGES {
            builds.rebuild("alpha");
            let Some(data) = builds.recorded(recorder) else {
                continue;
            };
            let before = report(&data);
            assert!(names(&before, "alpha"), "{before}");
            assert!(
                !before.contains("build ID") && !before.contains(NOT_USED),
                "{before}"
            );
            sleep(LATER);
            make(builds, "gamma");
            refuses(&data, NOT_USED, &format!("{recorder} {change}"));
        }
    }
}

#[test]
fn a_program_rebuilt_after_the_recording_gives_no_names() {
    repeated(|| {
        if !can_record() {
            return;
        }
        if let Some(builds) = Builds::of_c("after") {
            a_changed_file_has_no_names(&builds);
        }
    });
}

#[test]
fn a_go_program_rebuilt_after_the_recording_gives_no_names() {
    repeated(|| {
        if !can_record() {
            return;
        }
        if let Some(builds) = Builds::of_go("go") {
            a_changed_file_has_no_names(&builds);
        }
    });
}

#[test]
fn a_program_replaced_during_the_recording_has_the_names_of_its_last_build_only() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let Some(builds) = Builds::of_c("during") else {
            return;
        };
        for recorder in ["perf", "proftool"] {
            builds.rebuild("alpha");
            let run = "cd \"$0\" && ./program && sleep 1.2 && cp gamma new && mv new program && ./program";
            let here = builds.directory.to_str().unwrap().to_owned();
            let command = ["sh", "-c", run, here.as_str()];
            let Some(data) = builds.recording(recorder, &command) else {
                continue;
            };
            let report = report(&data);
            assert!(report.contains(NOT_USED), "{recorder}: {report}");
            let line = report.lines().find(|line| line.contains("gamma"));
            let share = line.and_then(|line| line.split_whitespace().next());
            let share: f64 = share.unwrap_or_else(|| panic!("{report}")).parse().unwrap();
            assert!((30.0..70.0).contains(&share), "{recorder}: {report}");
        }
    });
}

#[test]
fn a_program_written_over_during_the_recording_gives_no_names() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let Some(builds) = Builds::of_c("over") else {
            return;
        };
        for recorder in ["perf", "proftool"] {
            builds.rebuild("alpha");
            let run = "cd \"$0\" && ./program && sleep 1.2 && cp gamma program && ./program";
            let here = builds.directory.to_str().unwrap().to_owned();
            let command = ["sh", "-c", run, here.as_str()];
            if let Some(data) = builds.recording(recorder, &command) {
                refuses(&data, NOT_USED, recorder);
            }
        }
    });
}

/// perf lists the build ID that it reads at the end, outside, and links that file into its cache.
#[test]
fn a_program_of_another_mount_has_no_names_of_the_one_at_its_path() {
    repeated(|| {
        if !can_record() || !is_root() {
            return skipped("needs root, for a mount");
        }
        let Some(builds) = Builds::of_c_with("mount", "sha1") else {
            return;
        };
        for recorder in ["perf", "proftool"] {
            builds.rebuild("gamma");
            let run = "cd \"$0\" && mount --bind alpha program && \"$0\"/program && sleep 1.5";
            let here = builds.directory.to_str().unwrap().to_owned();
            let command = ["unshare", "-m", "sh", "-c", run, here.as_str()];
            let Some(data) = builds.recording(recorder, &command) else {
                continue;
            };
            let report = report(&data);
            assert!(!names(&report, "gamma"), "{recorder}: {report}");
        }
    });
}

#[test]
fn an_equal_build_in_another_file_still_has_its_names() {
    repeated(|| {
        if !can_record() {
            return;
        }
        for builds in [Builds::of_c("equal"), Builds::of_go("equal-go")] {
            let Some(builds) = builds else {
                continue;
            };
            let Some(data) = builds.recorded("proftool") else {
                return;
            };
            builds.replace("alpha");
            let report = report(&data);
            assert!(
                names(&report, "alpha") && !report.contains(NOT_USED),
                "{report}"
            );
            assert!(!report.contains("build ID"), "{report}");
        }
    });
}

#[test]
fn a_change_of_the_mode_is_reported_and_the_names_stay() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let Some(builds) = Builds::of_c("mode") else {
            return;
        };
        let Some(data) = builds.recorded("perf") else {
            return;
        };
        sleep(LATER);
        let chmod = Command::new("chmod")
            .arg("700")
            .arg(builds.program())
            .status();
        assert!(chmod.unwrap().success());
        let report = report(&data);
        assert!(names(&report, "alpha"), "{report}");
        assert!(report.contains("may have changed since"), "{report}");
    });
}
