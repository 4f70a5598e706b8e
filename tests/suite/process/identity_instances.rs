//! Which functions are two although debug information has one name and one place for them.

use std::fs;
use std::process::Command;

use proftool::profile::Profile;

use crate::support::identity::{profile, recursive};
use crate::support::{directory, ran};

use super::identity::{INLINE, build, named};

/// How many functions have this in their names.
fn count(profile: &Profile, name: &str) -> usize {
    let functions = profile.functions.iter();
    functions.filter(|it| it.name.contains(name)).count()
}

/// Two instances of a template over closures: `outer` calls one, which leads to the other.
fn instances(attribute: &str) -> String {
    format!(
        "#include \"in.h\"\ntemplate <class F> struct Call {{ __attribute__(({attribute})) \
         static void invoke(F f) {{ f(); leaf(1); }} }};\n\
         OUT void inner(int n) {{ auto f = [n] {{ leaf(n); }}; Call<decltype(f)>::invoke(f); leaf(7); }}\n\
         OUT void outer(int n) {{ auto f = [n] {{ inner(n); leaf(4); }}; Call<decltype(f)>::invoke(f); leaf(8); }}\n\
         int main() {{ outer(3); return 0; }}\n\
         OUT void leaf(int n) {{ asm volatile(\"\" : : \"r\"(n)); }}\n"
    )
}

#[test]
fn instances_of_a_template_are_two_without_linkage_names() {
    for attribute in ["noinline", "always_inline"] {
        let source = instances(attribute);
        for (index, compiler) in [
            ["g++", "-O2", "-g"],
            ["g++", "-O2", "-g1"],
            ["g++", "-O1", "-g1"],
            ["clang++", "-O2", "-gline-tables-only"],
        ]
        .iter()
        .enumerate()
        {
            let name = format!("instances-{attribute}-{index}");
            let sources = [("in.h", INLINE), ("it.cc", &*source)];
            let Some(program) = build(&name, compiler, &sources) else {
                continue;
            };
            let profile = profile(&program);
            assert_eq!(count(&profile, "invoke"), 2, "{attribute}: {compiler:?}");
            let recursive = recursive(&profile);
            assert!(
                recursive.is_empty(),
                "{attribute}: {compiler:?}: {recursive:?}"
            );
        }
    }
}

#[test]
fn instances_of_a_template_in_two_units_are_two() {
    let header = format!(
        "{INLINE}template <class T> struct Tree {{ __attribute__((always_inline)) \
         T walk(T n, T (*f)(T)) {{ leaf(1); T r = f(n); leaf(2); return r; }} }};\nint ints(int n);\n"
    );
    let a = "#include \"in.h\"\nOUT static int end(int n) { leaf(n); return n; }\n\
        OUT int ints(int n) { Tree<int> t; return t.walk(n, end) + 1; }\n\
        OUT void leaf(int n) { asm volatile(\"\" : : \"r\"(n)); }\n";
    let b = "#include \"in.h\"\nOUT static double down(double n) { leaf(9); return ints(n) + 1; }\n\
        int main(int c, char **) { Tree<double> t; return t.walk(c, down) > 3; }\n";
    let sources = [("in.h", &*header), ("a.cc", a), ("b.cc", b)];
    for (index, compiler) in [
        ["g++", "-O2", "-g1", "-w"],
        ["clang++", "-O2", "-g", "-w"],
        ["clang++", "-O2", "-gline-tables-only", "-w"],
    ]
    .iter()
    .enumerate()
    {
        let Some(program) = build(&format!("trees-{index}"), compiler, &sources) else {
            continue;
        };
        let profile = profile(&program);
        assert_eq!(count(&profile, "walk"), 2, "{compiler:?}");
        assert!(recursive(&profile).is_empty(), "{compiler:?}");
    }
}

/// Builds two sources of one name, whose folders are mapped to one, each with a `step` of its own.
fn same_path(name: &str, compiler: &str, flags: &[&str], attribute: &str) -> Option<Profile> {
    let directory = directory(&format!("identity-{name}"));
    fs::write(directory.join("in.h"), INLINE).unwrap();
    let step = format!("{attribute} static void step(int n)");
    for (folder, text) in [
        (
            "a",
            format!(
                "#include \"in.h\"\n\n{step} {{ leaf(n); leaf(4); }}\nOUT void a_run(int n) {{ step(n); leaf(1); }}\n"
            ),
        ),
        (
            "b",
            format!(
                "#include \"in.h\"\nvoid a_run(int);\n{step} {{ a_run(n); leaf(5); }}\nOUT void b_run(int n) {{ step(n); leaf(2); }}\n\
                 int main(int c, char **v) {{ b_run(c); return 0; }}\nOUT void leaf(int n) {{ __asm__ volatile(\"\" : : \"r\"(n)); }}\n"
            ),
        ),
    ] {
        let folder = directory.join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("util.c"), text).unwrap();
        let mut command = Command::new(compiler);
        command.current_dir(&folder).args(flags);
        command.arg(format!("-ffile-prefix-map={}=.", folder.display()));
        ran(command.args(["-I..", "-c", "util.c", "-o", "util.o"]))?;
    }
    let mut link = Command::new(compiler);
    link.current_dir(&directory).args(flags);
    ran(link.args(["a/util.o", "b/util.o", "-o", "it"]))?;
    Some(profile(&directory.join("it")))
}

#[test]
fn functions_of_two_sources_with_one_path_are_two() {
    for attribute in ["OUT", "IN"] {
        let inlined = if attribute == "IN" { "inlined" } else { "not" };
        let attribute = if attribute == "IN" {
            "__attribute__((always_inline)) inline"
        } else {
            attribute
        };
        for (index, (compiler, flags)) in [
            ("gcc", vec!["-O2", "-g"]),
            ("gcc", vec!["-O2", "-g1"]),
            ("gcc", vec!["-O2", "-g", "-flto"]),
            ("clang", vec!["-O2", "-g", "-w"]),
            ("clang", vec!["-O2", "-gline-tables-only", "-w"]),
        ]
        .into_iter()
        .enumerate()
        {
            // After link-time optimization nothing is left of units that are inlined as a whole.
            if inlined == "inlined" && flags.contains(&"-flto") {
                continue;
            }
            let name = format!("one-path-{inlined}-{index}");
            let Some(profile) = same_path(&name, compiler, &flags, attribute) else {
                continue;
            };
            let steps = profile.functions.iter();
            let steps = steps.filter(|it| it.name.starts_with("step")).count();
            assert_eq!(steps, 2, "{inlined}: {compiler} {flags:?}");
            let recursive = recursive(&profile);
            assert!(
                recursive.is_empty(),
                "{inlined}: {compiler} {flags:?}: {recursive:?}"
            );
        }
    }
}

#[test]
fn a_function_of_a_header_is_one_with_any_debug_information() {
    let header = format!("{INLINE}IN void shared(int n) {{ leaf(n); leaf(n + 1); }}\n");
    let a =
        "#include \"in.h\"\nvoid b_run(void);\nint main(void) { shared(1); b_run(); return 0; }\n";
    let b = "#include \"in.h\"\nvoid b_run(void) { shared(2); leaf(3); }\n\
        OUT void leaf(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\n";
    let sources = [("in.h", &*header), ("a.c", a), ("b.c", b)];
    for (index, compiler) in [
        ["gcc", "-O2", "-g", "-w"],
        ["gcc", "-O2", "-g1", "-w"],
        ["clang", "-O2", "-g", "-w"],
        ["clang", "-O2", "-gline-tables-only", "-w"],
        ["g++", "-O2", "-g", "-w"],
    ]
    .iter()
    .enumerate()
    {
        let Some(program) = build(&format!("shared-{index}"), compiler, &sources) else {
            continue;
        };
        let profile = profile(&program);
        let name = if compiler[0] == "g++" {
            "shared(int)"
        } else {
            "shared"
        };
        assert_eq!(named(&profile, name).len(), 1, "{compiler:?}");
    }
}
