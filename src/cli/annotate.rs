//! `proftool annotate`.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;
use std::sync::Arc;

use proftool::analysis::annotate::{Summary, Sums};
use proftool::export::json;
use proftool::input::{CodeError, MachineCode, SourceFiles, Syntax};
use proftool::profile::{FunctionId, Listing, NoSource, Profile, SourceText};
use proftool::view::Subject;
use proftool::view::annotate::{self, AnnotateView, InlinedCopy, Material, Options};
use proftool::view::page::Page;

use super::advice;
use super::answer::{self, Forms};
use super::choice;
use super::function;
use super::look::{Format, Look};
use super::query::Query;
use super::query::open::Needs;
use super::sources::{self, SourceChoice};

// The lines before and behind those with weight.
const CONTEXT: usize = 3;
// The functions in whose machine code an inlined one is listed.
const MOST_COPIES: usize = 8;

/// The arguments of `proftool annotate`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    /// Its name, label or symbol, a unique part, or a regular expression.
    function: String,
    #[command(flatten)]
    query: Query,
    /// Machine code, with source lines between instructions.
    #[arg(long)]
    asm: bool,
    #[command(flatten)]
    listing: ListingArgs,
    /// Lines around each line with samples [default: 3]
    #[arg(long, value_name = "N")]
    context: Option<usize>,
    /// What percentages are of.
    #[arg(long, value_parser = choice::BASE, default_value = "total")]
    base: annotate::Base,
    /// The whole function.
    #[arg(long, conflicts_with = "context")]
    all: bool,
    #[command(flatten)]
    look: Look,
}

/// How the code of a function is listed.
#[derive(clap::Args, Clone)]
pub struct ListingArgs {
    /// Syntax of machine code.
    #[arg(long, value_parser = choice::SYNTAX, default_value = "att")]
    pub syntax: Syntax,
    /// Where source files are.
    ///
    /// They are found in DIR by the end of their paths; with all, every file that you can read is
    /// shown.
    #[arg(long, value_name = "DIR|all", value_parser = sources::choice)]
    pub source: Option<SourceChoice>,
}

const MANUAL: &str = "\
self: samples taken in the line. total: samples taken in it or in what it
calls, each once per line. Inlined code counts for the total of the line that
it is inlined into, and for the self time of its own function.

With --asm, and without debug information, figures are those of the machine
code, with all that is inlined, as in perf annotate; --asm also lists an
inlined function in the code of those that it is inlined into. Kernel code is
that of the running kernel if it made the recording (/proc/kcore, for root),
else of a vmlinux with its build ID. Generated code is shown if the runtime
wrote a jitdump file (node --perf-prof, Java with perf's JVMTI agent); a
perf-PID.map has only names.

Source files are searched in --source DIR, at the recorded path, then in the
debug information (clang -gembed-source). JSON, CSV, redirected output and
pages (report --html) have the text of a file only if it looks like source:

  - below the directory of the compilation, or of the file in the line table,
    without symbolic links from there
  - readable for its group or all users; or named as source (.c, .rs), without
    a hard link, below the directory of the compilation or the main source
  - with the lines that are shown, and the MD5 that DWARF 5 states

For root, also on the screen, the owner of the program must be able to read it.
Files in /proc, /sys and /dev are never shown. A note has what is left out.";

const EXAMPLES: &str = "\
Examples:
  proftool annotate parse other.data         the function, then the file
  proftool annotate parse --asm --base self  percentages of perf annotate
  proftool annotate parse --source ~/src     with sources that have moved";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.query.open(Needs::ADDRESSES)?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let function = match function::find(&subject, &args.function, &args.query) {
        Ok(function) => function,
        Err(status) => return Ok(status),
    };
    let is_page = args.look.output.format == Format::Text;
    let limit = args.look.limit(0).filter(|&limit| limit > 0);
    // Programs get the whole function, unless they ask for less.
    let usual = if is_page {
        CONTEXT
    } else if limit.is_some() || args.look.has_min() {
        0
    } else {
        usize::MAX
    };
    let options = Options {
        limit,
        base: args.base,
        min: args.look.min(0.0),
        context: if args.all {
            usize::MAX
        } else {
            args.context.unwrap_or(usual)
        },
        assembly: args.asm,
    };
    let reading = args.query.reading(Needs::STACKS);
    let mut looking = Looking {
        sums: &Sums::of(&profile, &selection),
        code: &MachineCode::new(&profile, args.listing.syntax, &reading),
        sources: sources::files(
            args.listing.source.as_ref(),
            reading.symfs.as_deref(),
            sources::audience(is_page),
        ),
        owner: sources::owner(args.query.file()),
        left_out: BTreeMap::new(),
        with_inlined: args.asm && is_page,
        with_copies: args.asm,
    };
    let view = looking.view(&subject, function, &options);
    let forms = Forms {
        page: &|| view.page(&subject),
        table: &|| view.table(&subject),
        json: &|out, advice| json::annotate::write(out, &subject, &view, advice),
        dot: None,
    };
    let caveats = sources::with_left_out(&profile.caveats, &looking.left_out);
    answer::to(&args.query, &args.look, "annotate", &caveats, &forms)
}

pub struct Looking<'a> {
    pub sums: &'a Sums<'a>,
    pub code: &'a MachineCode<'a>,
    pub sources: SourceFiles,
    // The owner of the profile, by whose word files are sources where no program is known.
    pub owner: Option<u32>,
    // The source files that are not shown, though they are there.
    pub left_out: BTreeMap<String, NoSource>,
    // Whether the source files of inlined functions are read as well.
    pub with_inlined: bool,
    // Whether the machine code of other functions is shown as far as the function is inlined there.
    pub with_copies: bool,
}

impl Looking<'_> {
    // Source files and machine code as far as they are found.
    pub fn view(
        &mut self,
        subject: &Subject,
        function: FunctionId,
        options: &Options,
    ) -> AnnotateView {
        let (summary, material) = self.found(subject, function);
        annotate::arrange(subject, summary, material, options)
    }

    pub fn found(&mut self, subject: &Subject, function: FunctionId) -> (Summary, Material) {
        let profile = subject.profile;
        let addresses = self.sums.addresses(function, function).into_iter();
        let code = self.code.listing(function, addresses);
        let (code, mut no_code) = match code {
            Ok(code) => (Some(code), None),
            Err(CodeError::NoAddresses) => (None, None),
            Err(error) => (None, Some(advice::without_code(&error))),
        };
        let listing = code.as_ref();
        let summary = self.sums.within(function, listing);
        let copies = self.copies(function);
        if copies.is_empty() && code.is_none() && no_code.is_none() {
            let reason = match &summary.code {
                Some(_) => {
                    "it is inlined wherever samples were taken, so its code is in that of others"
                }
                None => "its addresses in a program or library are not known",
            };
            no_code = Some(reason.to_owned());
        }
        let mut files: Vec<String> = (summary.lines.iter())
            .filter_map(|row| Some(profile.lines[row.line?].file.clone()))
            .chain(
                listing
                    .iter()
                    .flat_map(|listing| files_of(listing, self.with_inlined)),
            )
            .chain(copies.iter().flat_map(|copy| files_of(&copy.code, true)))
            .collect();
        files.sort_unstable();
        files.dedup();
        let mut last = last_lines(profile, &summary, listing, self.with_inlined);
        for copy in &copies {
            add_last_lines(&mut last, &copy.code, true);
        }
        let claims = self.code.source_claims(function, &files);
        let owner = self.owner;
        let claims = claims.into_iter().map(|claim| claim.or_of(owner));
        let sources = (files.into_iter().zip(claims))
            .map(|(file, claim)| {
                let last = last.get(&*file).copied().unwrap_or(0);
                let source = self.sources.read(&file, &claim, last);
                let source = source.or_else(|why| embedded(code.as_ref(), &file).ok_or(why));
                if let Err(why) = source
                    && why != NoSource::NotFound
                {
                    self.left_out.insert(file.clone(), why);
                }
                (file, source)
            })
            .collect();
        let material = Material {
            code,
            copies,
            no_code,
            sources,
        };
        (summary, material)
    }

    // Where code cannot be listed, its weight is in the view's note.
    fn copies(&self, function: FunctionId) -> Vec<InlinedCopy> {
        if !self.with_copies {
            return Vec::new();
        }
        let holders = self.sums.holders(function).into_iter().take(MOST_COPIES);
        let copies = holders.filter_map(|(holder, self_weight)| {
            let addresses = self.sums.addresses(function, holder).into_iter();
            let code = self.code.inlined(function, addresses).ok()?;
            Some(InlinedCopy {
                holder,
                self_weight,
                weights: self.sums.inlined_into(holder, function, &code),
                code,
            })
        });
        copies.collect()
    }

    // Machine code where inlined functions are looked up, else lines.
    pub fn page(&mut self, subject: &Subject, function: FunctionId) -> Page {
        let options = Options {
            context: CONTEXT,
            assembly: self.with_inlined,
            ..Options::default()
        };
        self.view(subject, function, &options).page(subject)
    }
}

fn embedded(listing: Option<&Listing>, file: &str) -> Option<Arc<SourceText>> {
    let listing = listing?;
    let mut all = listing.embedded.iter();
    let (_, text) = all.find(|(name, _)| &listing.names[*name] == file)?;
    let text = SourceText::embedded(listing.file.clone(), text.to_string());
    Some(Arc::new(text))
}

// The last line of each source file that is shown.
fn last_lines<'a>(
    profile: &'a Profile,
    summary: &Summary,
    listing: Option<&'a Listing>,
    with_inlined: bool,
) -> HashMap<&'a str, u32> {
    let mut last = HashMap::new();
    for line in summary.lines.iter().filter_map(|row| row.line) {
        let known = last.entry(&*profile.lines[line].file).or_insert(0);
        *known = profile.lines[line].line.max(*known);
    }
    if let Some(listing) = listing {
        add_last_lines(&mut last, listing, with_inlined);
    }
    last
}

fn add_last_lines<'a>(last: &mut HashMap<&'a str, u32>, listing: &'a Listing, with_inlined: bool) {
    let positions = listing.positions.iter().filter(|_| with_inlined);
    let of_code = positions.map(|position| (position.file, position.line));
    for (file, line) in of_code.chain(listing.lines.iter().copied()) {
        let known = last.entry(&listing.names[file]).or_insert(0);
        *known = line.max(*known);
    }
}

// The source files of the function's own lines, or of all that is inlined into it, too.
fn files_of(listing: &Listing, with_inlined: bool) -> impl Iterator<Item = String> {
    let names = &listing.names;
    let positions = listing.positions.iter().filter(move |_| with_inlined);
    let of_instructions = positions.map(|position| position.file);
    let of_lines = listing.lines.iter().map(|&(file, _)| file);
    let mut files: Vec<_> = of_instructions.chain(of_lines).collect();
    files.sort_unstable();
    files.dedup();
    files.into_iter().map(|file| names[file].to_owned())
}
