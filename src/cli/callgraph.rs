//! `proftool callgraph`: the call graph of a program or library, from its code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proftool::base::{CaveatKind, Caveats, IdVec};
use proftool::binary::{Binary, Error, demangle};
use proftool::callgraph::{ArcKind, CallGraph, Node};
use proftool::export::json;
use proftool::profile::{Builder, Function, FunctionId, FunctionKind, Module, Profile, Selection};
use proftool::scan::{self, CallKind, Callee, Calls};
use proftool::view::callgraph::{self, Options};
use proftool::view::name::short_name;
use proftool::view::{Figures, Subject};

use super::answer::{self, Forms};
use super::failure::{self, hinted};
use super::look::Look;

/// The functions that a text has when nothing is asked for.
const ROWS: usize = 20;
/// How many functions a hint names.
const SIMILAR: usize = 5;

/// The arguments of `proftool callgraph`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A program or shared library for x86-64 or AArch64.
    binary: PathBuf,
    /// Only this function, with all its callers and callees.
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    #[command(flatten)]
    look: Look,
}

const EXAMPLES: &str = "\
The code tells direct calls, jumps to other functions (tail calls), and calls of imported functions
by name. It does not tell what is called through a pointer; such calls are counted. Nothing is run.

Examples:
  proftool callgraph ./app                          the functions that call most, with callees
  proftool callgraph ./app --function parse         who calls parse, and what parse calls
  proftool callgraph ./app --format json | jq '.cycles'";

/// Answers.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let binary = Binary::open(&args.binary).map_err(|error| refused(&args.binary, &error))?;
    let calls = scan::calls(&binary, None).map_err(|error| refused(&args.binary, &error))?;
    let (profile, graph) = graph(&binary, &calls);
    let selection = Selection::nothing();
    let subject = Subject {
        profile: &profile,
        selection: &selection,
        names: args.look.names(),
        figures: Figures::All,
    };
    let about = match &args.function {
        Some(name) => named(&profile, name, &args.binary)?,
        None => Vec::new(),
    };
    let options = Options {
        limit: args.look.limit(ROWS),
        about,
    };
    let view = callgraph::arrange(&subject, &graph, &options);
    let forms = Forms {
        page: &|| view.page(&subject),
        table: &|| view.table(&subject),
        json: &|out| json::callgraph::write(out, &subject, &view),
    };
    answer::give(&args.look, &profile.caveats, &forms)
}

fn refused(path: &Path, error: &Error) -> anyhow::Error {
    let reason = failure::fragment(&error.to_string());
    let hint = match error {
        Error::NotElf => Some("an ELF program or shared library is needed".to_owned()),
        _ => None,
    };
    hinted(format!("could not open {}: {reason}", path.display()), hint)
}

/// The functions of the file and of its imports, and the calls between them.
fn graph(binary: &Binary, calls: &Calls) -> (Profile, CallGraph) {
    let mut builder = Builder::default();
    let path = binary.path();
    let module = builder.module(Module {
        name: path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned(),
        path: path.to_string_lossy().into_owned(),
    });
    let elsewhere = builder.module(Module {
        name: "[import]".into(),
        path: "[import]".into(),
    });
    let mut nodes = IdVec::new();
    let mut nameless = 0;
    let functions: Vec<FunctionId> = calls
        .functions
        .iter()
        .map(|function| {
            let symbol = &function.symbol;
            let start = symbol.start.0;
            nodes.push(Node {
                size: symbol.size,
                imported: false,
                indirect_calls: function.indirect_calls,
                indirect_jumps: function.indirect_jumps,
            });
            let (name, linkage_name, kind) = match binary.function_name(symbol) {
                Some(name) => named_by(&name),
                None => {
                    nameless += 1;
                    (format!("sub_{start:x}"), None, FunctionKind::Unknown)
                }
            };
            builder.function(Function {
                name,
                linkage_name,
                module,
                address: Some(start),
                kind,
            })
        })
        .collect();
    let imports: Vec<FunctionId> = calls
        .imports
        .iter()
        .map(|import| {
            nodes.push(Node {
                imported: true,
                ..Node::default()
            });
            let (name, linkage_name, kind) = named_by(import);
            builder.function(Function {
                name,
                linkage_name,
                module: elsewhere,
                address: None,
                kind,
            })
        })
        .collect();
    tell(builder.caveats(), binary, calls, nameless);
    let functions: IdVec<scan::CodeFunctionId, FunctionId> = functions.into();
    let imports: IdVec<scan::ImportId, FunctionId> = imports.into();
    let arcs = calls.sites.iter().filter_map(|site| {
        let callee = match site.callee {
            Callee::Function(id) => functions[id],
            Callee::Import(id) => imports[id],
        };
        let kind = match site.kind {
            CallKind::Call => ArcKind::Call,
            CallKind::Tail => ArcKind::Tail,
            CallKind::Import => ArcKind::Import,
            CallKind::Pointer => return None,
        };
        Some((functions[site.caller], callee, kind))
    });
    (builder.finish(), CallGraph::new(nodes, arcs))
}

/// The name for people, and the one in the symbol table where it differs.
fn named_by(linkage_name: &str) -> (String, Option<String>, FunctionKind) {
    let name = demangle(linkage_name).into_owned();
    let linkage_name = (name != linkage_name).then(|| linkage_name.to_owned());
    (name, linkage_name, FunctionKind::Named)
}

/// Says what is not known.
fn tell(caveats: &mut Caveats, binary: &Binary, calls: &Calls, nameless: u64) {
    let (indirect, _) = calls.indirect();
    let counts = [
        (CaveatKind::IndirectCalls, indirect),
        (CaveatKind::AstrayCalls, calls.astray),
        (CaveatKind::UndecodedCode, calls.undecoded),
    ];
    for (kind, count) in counts {
        if count > 0 {
            caveats.add(kind, count);
        }
    }
    if nameless > 0 && !binary.has_symbols() {
        caveats.add(CaveatKind::NamelessFunctions, nameless);
    }
    if calls.functions.is_empty() {
        caveats.add(CaveatKind::NoFunctions, 1);
    } else if calls.sites.is_empty() && indirect == 0 {
        caveats.add(CaveatKind::NoCalls, 1);
    }
    for problem in binary.problems().iter().chain(&calls.problems) {
        caveats.add_detail(CaveatKind::DamagedFile, 1, problem.as_str());
    }
}

/// The functions of this name: in full, as in the symbol table, or else short.
fn named(profile: &Profile, name: &str, path: &Path) -> anyhow::Result<Vec<FunctionId>> {
    let with = |is_it: &dyn Fn(&Function) -> bool| -> Vec<FunctionId> {
        let functions = profile.functions.enumerate();
        functions
            .filter(|(_, f)| is_it(f))
            .map(|(id, _)| id)
            .collect()
    };
    let exact = with(&|f| f.name == name || f.linkage_name.as_deref() == Some(name));
    if !exact.is_empty() {
        return Ok(exact);
    }
    let short = with(&|f| short_name(&f.name) == name);
    if !short.is_empty() {
        return Ok(short);
    }
    let similar = with(&|f| f.name.contains(name));
    let names: Vec<&str> = similar
        .iter()
        .take(SIMILAR)
        .map(|&id| profile.functions[id].name.as_str())
        .collect();
    let hint = (!names.is_empty()).then(|| format!("it has {}", names.join(", ")));
    let text = format!("{} has no function {name}", path.display());
    Err(hinted(text, hint))
}
