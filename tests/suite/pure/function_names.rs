//! The names of functions in many languages: short, in twenty columns, and found by each of these.

use proftool::base::Language::{
    self, C, Cpp, D, Generated, Go, Haskell, Java, JavaScript, OCaml, Python, Ruby, Rust, Several,
    Swift, Unknown,
};
use proftool::base::{Event, WeightSum};
use proftool::names::search::{self, Found};
use proftool::names::{Form, Naming, display_width, in_form, of_text, shortened};
use proftool::profile::{Builder, Function, FunctionId, Module, Profile, Thread};
use proftool::view::Names;

/// What a column of a table has for names where a page is narrow.
const NARROW: usize = 20;

/// Language, full name, short form, and that in twenty columns; `=` for what is before it.
const NAMES: [(Language, &str, &str, &str); 82] = [
    (C, "main", "=", "="),
    (
        C,
        "__memmove_avx_unaligned_erms",
        "=",
        "__memmo…aligned_erms",
    ),
    (C, "Py_BytesMain", "=", "="),
    (C, "do_syscall_64", "=", "="),
    (C, "sqlite3VdbeExec", "=", "="),
    (C, "parse_args.constprop.0", "=", "parse_a….constprop.0"),
    (C, "finish_task_switch.isra.0", "=", "finish_…witch.isra.0"),
    (
        Cpp,
        "std::vector<int, std::allocator<int> >::push_back(int const&)",
        "std::vector::push_back",
        "…::vector::push_back",
    ),
    (Cpp, "void std::sort<int*>(int*, int*)", "std::sort", "="),
    (
        Cpp,
        "(anonymous namespace)::f(char) const",
        "(anonymous namespace)::f",
        "(…)::f",
    ),
    (Cpp, "A::operator()(int)", "A::operator()", "="),
    (
        Cpp,
        "std::ostream& operator<< <char>(std::ostream&, char)",
        "operator<<",
        "=",
    ),
    (
        Cpp,
        "main::{lambda(int)#1}::operator()(int) const",
        "main::{lambda#1}::operator()",
        "main::…::operator()",
    ),
    (
        Cpp,
        "non-virtual thunk to C::b(unsigned long)",
        "non-virtual thunk to C::b",
        "…::b",
    ),
    (
        Cpp,
        "std::map<int, a::B, std::less<int>, std::allocator<std::pair<int const, a::B> > >::at(int const&)",
        "std::map::at",
        "=",
    ),
    (
        Cpp,
        "clang::Sema::ActOnFinishFullExpr(clang::Expr*, clang::SourceLocation, bool)",
        "clang::Sema::ActOnFinishFullExpr",
        "…ActOnFinishFullExpr",
    ),
    (
        Cpp,
        "std::function<void ()>::operator()() const",
        "std::function::operator()",
        "std::…::operator()",
    ),
    (Cpp, "operator new(unsigned long)", "operator new", "="),
    (
        Cpp,
        "tree_node* build_call<tree_node*>(tree_node*) [clone .isra.0]",
        "build_call [clone .isra.0]",
        "build_c…one .isra.0]",
    ),
    (
        Cpp,
        "std::__cxx11::basic_string<char>::_M_append[abi:cxx11](char const*, unsigned long)",
        "std::__cxx11::basic_string::_M_append[abi:cxx11]",
        "…_M_appe…[abi:cxx11]",
    ),
    (
        Rust,
        "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
        "alloc::vec::Vec::drop",
        "alloc::…::Vec::drop",
    ),
    (
        Rust,
        "<T as core::convert::Into<U>>::into",
        "core::convert::Into::into",
        "core::…::Into::into",
    ),
    (
        Rust,
        "core::slice::<impl [T]>::sort",
        "core::slice::sort",
        "=",
    ),
    (
        Rust,
        "core::str::<impl core::ops::Index<I> for str>::index",
        "str::index",
        "=",
    ),
    (
        Rust,
        "<srv::_::<impl serde::Deserialize for srv::Item>::deserialize::__Visitor as serde::Visitor>::visit",
        "srv::Item::deserialize::__Visitor::visit",
        "…::__Visitor::visit",
    ),
    (
        Rust,
        "<<a::Item as b::Read>::read::Inner as c::Show>::show",
        "a::Item::read::Inner::show",
        "a::…::Inner::show",
    ),
    (
        Rust,
        "core::ptr::drop_in_place::<alloc::vec::Vec<u8>>",
        "core::ptr::drop_in_place",
        "…::drop_in_place",
    ),
    (Rust, "app::run::{{closure}}", "=", "…::run::{{closure}}"),
    (Rust, "core::fmt::write", "=", "="),
    (
        Rust,
        "std::sys::backtrace::__rust_begin_short_backtrace::<fn(), ()>",
        "std::sys::backtrace::__rust_begin_short_backtrace",
        "…__rust_…t_backtrace",
    ),
    (
        Rust,
        "<core::iter::adapters::map::Map<I, F> as core::iter::traits::iterator::Iterator>::fold",
        "core::iter::adapters::map::Map::fold",
        "core::…::Map::fold",
    ),
    (
        Rust,
        "core::ops::function::FnOnce::call_once{{vtable.shim}}",
        "=",
        "…call_on…able.shim}}",
    ),
    (Go, "main.main", "=", "="),
    (Go, "net/http.(*conn).serve", "=", "net/htt…*conn).serve"),
    (Go, "runtime.mallocgc", "=", "="),
    (
        Go,
        "encoding/json.(*decodeState).object",
        "=",
        "encodin…tate).object",
    ),
    (
        Go,
        "main.Map[go.shape.int,go.shape.string]",
        "=",
        "main.Ma…hape.string]",
    ),
    (Go, "main.main.func1", "=", "="),
    (
        Go,
        "type:.eq.net/http.http2FrameHeader",
        "=",
        "type:.e…2FrameHeader",
    ),
    (Go, "sort.Sort(Interface)", "=", "="),
    (Java, "A$P.<init>(int)", "=", "="),
    (
        Java,
        "java.lang.String.indexOf(int)",
        "=",
        "java.la…indexOf(int)",
    ),
    (
        Java,
        "java/util/HashMap.<clinit>",
        "=",
        "java/ut…Map.<clinit>",
    ),
    (
        Java,
        "Ljava/util/ArrayList;::<init>",
        "=",
        "Ljava/u…ist;::<init>",
    ),
    (
        Java,
        "com.example.app.OrderService$$Lambda$14.apply(java.lang.Object)",
        "=",
        "com.exa…lang.Object)",
    ),
    (
        Java,
        "void java.util.Collections.<T>sort(java.util.List<T>)",
        "=",
        "void ja…til.List<T>)",
    ),
    (Java, "Interpreter", "=", "="),
    (Java, "StubRoutines (1)", "=", "="),
    (JavaScript, "Socket.<anonymous>", "=", "="),
    (
        JavaScript,
        "LazyCompile:*fib /app/x.js:3",
        "=",
        "LazyCom… /app/x.js:3",
    ),
    (
        JavaScript,
        "JS:Socket.<anonymous> node:net:310:17",
        "=",
        "JS:Sock…e:net:310:17",
    ),
    (
        JavaScript,
        "(anonymous) file:///app/main.js:10:5",
        "=",
        "(anonym…main.js:10:5",
    ),
    (JavaScript, "RegExp:(a|b)<c>+", "=", "="),
    (JavaScript, "get <computed>", "=", "="),
    (
        JavaScript,
        "new Promise (<anonymous>)",
        "=",
        "ne…ise (<anonymous>)",
    ),
    (Python, "<module>", "=", "="),
    (
        Python,
        "py::<module>:/app/x.py",
        "=",
        "py::<mo…e>:/app/x.py",
    ),
    (
        Python,
        "py::Outer.<locals>.<lambda>:/srv/site-packages/pkg/mod.py",
        "=",
        "py::Out…s/pkg/mod.py",
    ),
    (Python, "fib (app.py:12)", "=", "="),
    (
        Python,
        "<listcomp> (/srv/worker/jobs.py:88)",
        "=",
        "<listco…/jobs.py:88)",
    ),
    (
        Python,
        "Dataset.__getitem__.<locals>.<genexpr>",
        "=",
        "Dataset…s>.<genexpr>",
    ),
    (Ruby, "block in Foo::Bar#each", "=", "block i…oo::Bar#each"),
    (Ruby, "<class:Foo>", "=", "="),
    (Ruby, "<main>", "=", "="),
    (
        Ruby,
        "block (2 levels) in <top (required)>",
        "=",
        "block (… (required)>",
    ),
    (Ruby, "Integer#times", "=", "="),
    (
        Ruby,
        "ActiveRecord::Relation#load (/gems/relation.rb:10)",
        "=",
        "ActiveR…ation.rb:10)",
    ),
    (OCaml, "Stdlib.List.@_123", "=", "="),
    (
        OCaml,
        "Stdlib.Map.Make.add_412",
        "=",
        "Stdlib.…Make.add_412",
    ),
    (
        OCaml,
        "Core.Hashtbl.(fun)_2211",
        "=",
        "Core.Ha…l.(fun)_2211",
    ),
    (
        OCaml,
        "Dune__exe.Main.<fun>_88",
        "=",
        "Dune__e…ain.<fun>_88",
    ),
    (D, "core.thread.Fiber.run", "=", "core.th…ad.Fiber.run"),
    (
        D,
        "std.algorithm.sort!(\"a < b\").sort(int[])",
        "=",
        "std.alg….sort(int[])",
    ),
    (
        Haskell,
        "base_GHCziBase_map_info",
        "=",
        "base_GH…ase_map_info",
    ),
    (Swift, "$s4main3fooyySiF", "=", "="),
    (
        Swift,
        "closure #1 (Swift.Int) -> () in main.run<A>(A) -> ()",
        "=",
        "closur…n<A>(A) -> ()",
    ),
    (
        Generated,
        "void [System.Private.CoreLib] System.Collections.Generic.List`1[int]::Add(!0)[Tier0]",
        "=",
        "void [S…d(!0)[Tier0]",
    ),
    (
        Several,
        "a::B<int>::run(int) or c::D::stop() or 3 more",
        "=",
        "a::B<int>::run(int)…",
    ),
    (
        Several,
        "java.util.ArrayList.get(int) or java.util.LinkedList.get(int)",
        "=",
        "java.util.ArrayList…",
    ),
    (Unknown, "f(int)", "=", "="),
    (Unknown, "foo<bar>", "=", "="),
    (
        Unknown,
        "a_function_whose_name_is_so_long_that_no_terminal_has_room_for_all_of_it",
        "=",
        "a_funct…or_all_of_it",
    ),
];

/// The rows with nothing left out.
fn names() -> impl Iterator<Item = (Language, &'static str, &'static str, &'static str)> {
    let same = |it, before| if it == "=" { before } else { it };
    NAMES
        .into_iter()
        .map(move |(language, full, short, narrow)| {
            let short = same(short, full);
            (language, full, short, same(narrow, short))
        })
}

fn profile() -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let (name, path) = ("app".into(), "/bin/app".into());
    let module = builder.module(Module { name, path });
    let thread = builder.thread(Thread::new(1, 1, "app"));
    for (language, full, ..) in names() {
        let function = Function::named(full, module);
        let function = builder.function(Function {
            language,
            ..function
        });
        let path = builder.path(None, function, false);
        builder.sample(event, thread, path, None, WeightSum::of(1));
    }
    builder.finish()
}

#[test]
fn names_are_shortened_by_the_rules_of_their_language() {
    for (language, full, short, narrow) in names() {
        assert_eq!(in_form(full, language, Form::Short), short);
        assert_eq!(shortened(short, NARROW), narrow);
        assert!(display_width(narrow) <= NARROW, "{narrow}");
    }
}

#[test]
fn a_text_is_taken_for_a_name_with_arguments_only_if_no_other_language_has_such() {
    for (language, full, short, _) in names() {
        let stated = language.has_arguments();
        let is_plain = !full.contains("::") && full == short;
        // The two names of no language have the form of functions and types of C++.
        assert!(
            of_text(full).has_arguments() == stated || is_plain,
            "{full}"
        );
    }
}

#[test]
fn a_function_is_found_by_each_form_of_its_name() {
    let profile = profile();
    let ids: Vec<FunctionId> = profile.functions.ids().collect();
    for (id, (_, full, short, narrow)) in profile.functions.ids().zip(names()) {
        for naming in [Names::Short, Names::Full].map(|names| Naming {
            profile: &profile,
            names,
        }) {
            for text in [full, short, narrow] {
                assert_eq!(search::find(&naming, &ids, text), Found::One(id), "{text}");
            }
        }
    }
}
