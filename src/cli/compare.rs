//! `proftool compare`: what has changed between runs.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::hash::{BuildHasher, RandomState};
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use proftool::analysis::tree::{Collapse, Direction, Stacks};
use proftool::base::{About, CaveatKind, Caveats, Event, Unit};
use proftool::compare::{Comparison, Runs, Side, Work};
use proftool::export::{html, json, svg};
use proftool::input::SourceLines;
use proftool::profile::SumOfRuns;
use proftool::view::compare::Compared;
use proftool::view::{Names, Subject};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::advice::Situation;
use super::answer::{self, Forms};
use super::failure::{self, Misused, hinted, tell};
use super::look::{Format, Look};
use super::query::Query;
use super::query::open::Needs;
use super::record;

const ROWS: usize = 15;
/// What separates the two commands.
const SEPARATOR: &str = ":::";
/// What to do where the sides were recorded too far apart.
pub const IN_TURN: &str = "record both in turn: proftool compare -- OLD ::: NEW";

/// The arguments of `proftool compare`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    /// Recordings of before, one for each run.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "new", conflicts_with = "command")]
    base: Vec<PathBuf>,
    /// Recordings of after.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "base")]
    new: Vec<PathBuf>,
    /// Compare samples of FILE that these filters choose.
    #[arg(long, value_name = "FILTERS", allow_hyphen_values = true, requires = "new_only",
          conflicts_with_all = ["base", "command"])]
    base_only: Option<String>,
    /// With samples that these choose.
    #[arg(
        long,
        value_name = "FILTERS",
        allow_hyphen_values = true,
        requires = "base_only"
    )]
    new_only: Option<String>,
    /// Runs of each command.
    #[arg(long, value_name = "N", default_value = "10", requires = "command",
          value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How runs are recorded: "-F 4999 --counts".
    #[arg(
        long,
        value_name = "OPTIONS",
        allow_hyphen_values = true,
        requires = "command"
    )]
    record: Option<String>,
    /// Keep the recordings here.
    #[arg(long, value_name = "DIR", requires = "command")]
    keep: Option<PathBuf>,
    /// Compare weights per call of a function, or per event.
    #[arg(long, value_name = "NAME")]
    per_work: Option<String>,
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    look: Look,
    /// Two commands, separated by :::.
    #[arg(last = true, value_name = "OLD ARGS ::: NEW ARGS")]
    command: Vec<OsString>,
}

const MANUAL: &str = "\
Commands are run in turn in random order, without input and output; the first
turn does not count.";

const EXAMPLES: &str = "\
Examples:
  proftool compare --runs 10 -- ./old data ::: ./new data
  proftool compare --base old.*.data --new new.*.data
  proftool compare --base-only '--time 0..5' --new-only '--time 5..10'";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut runs = Runs::default();
    let mut compared = Read {
        per_work: args.per_work.clone(),
        sum: args.is_picture().then(SumOfRuns::default),
        ..Read::default()
    };
    let sides = if !args.command.is_empty() {
        args.run_commands(&mut |side, file| {
            compared.add(&mut runs, side, &args.query.of_file(file), args.runs == 1)
        })?
    } else if let (Some(base), Some(new)) = (&args.base_only, &args.new_only) {
        for (side, filters) in [(Side::Base, base), (Side::New, new)] {
            let words: Vec<String> = filters.split_whitespace().map(str::to_owned).collect();
            let query = args.query.with_filters(&words).map_err(|error| {
                Misused(format!("{filters:?}: {}", first_line(&error.to_string())))
            })?;
            compared.add(&mut runs, side, &query, true)?;
        }
        [base.clone(), new.clone()]
    } else if !args.base.is_empty() {
        for (side, files) in [(Side::Base, &args.base), (Side::New, &args.new)] {
            for file in files {
                compared.add(&mut runs, side, &args.query.of_file(file), files.len() == 1)?;
            }
        }
        [&args.base, &args.new].map(|files| named(files))
    } else {
        let text = "nothing to compare: --base FILE… --new FILE…, or -- OLD ::: NEW";
        return Err(Misused(text.into()).into());
    };
    let new = compared.sum.zip(compared.query);
    let event = compared.event.context("the recordings have no samples")?;
    let comparison = Comparison::of(event, &runs);
    let sides = [&*sides[0], &*sides[1]];
    let limit = args.look.limit(ROWS);
    let mut compared = Compared::of(&comparison, sides, args.look.names(), limit);
    compared.cost = args.cost(&comparison);
    let hint = match (comparison.apart, comparison.runs) {
        (Some(_), _) => Some(IN_TURN),
        (None, [1, 1]) => Some("five to twenty runs a side tell more: proftool help comparing"),
        _ => None,
    };
    if let Some(hint) = hint.filter(|_| args.look.output.format == Format::Text) {
        failure::line("hint", hint);
    }
    let forms = Forms {
        page: &|| compared.page(),
        table: &|| compared.table(),
        json: &|out, advice| json::compare::write(out, &compared, advice),
        dot: None,
    };
    let known = of_all_runs(&comparison.caveats, comparison.samples.iter().sum());
    let situation = args.query.shown_by("compare");
    if let Some((sum, query)) = new {
        return args.draw((sum, &query), &runs, &compared, (&known, &situation));
    }
    answer::give(&args.look.output, &situation, &known, &forms)
}

// What is to be said of several runs: which samples there are, and stacks that lack callers, which
// changes totals. The document has all caveats of each run.
pub fn of_all_runs(caveats: &Caveats, samples: u64) -> Caveats {
    let mut known = Caveats::default();
    for kind in CaveatKind::all() {
        let least = match kind.subject() {
            About::Samples => 0,
            About::CutStacks | About::BrokenStacks => samples / 20,
            _ => continue,
        };
        let count = caveats.count(kind);
        if count > least {
            known.add(kind, count);
        }
    }
    known
}

// What the recordings have in common.
#[derive(Default)]
pub struct Read {
    pub event: Option<Event>,
    per_work: Option<String>,
    // The new runs, where they are shown, what that needs of them, and what was asked of the last.
    pub sum: Option<SumOfRuns>,
    needs: Option<Needs>,
    query: Option<Query>,
}

impl Read {
    // Adds up the new runs for views that need this of them.
    pub fn for_views(needs: Needs) -> Read {
        Read {
            sum: Some(SumOfRuns::default()),
            needs: Some(needs),
            ..Read::default()
        }
    }

    pub fn add(
        &mut self,
        runs: &mut Runs,
        side: Side,
        query: &Query,
        is_single: bool,
    ) -> anyhow::Result<()> {
        let needs = self.needs.filter(|_| side == Side::New);
        let needs = Needs {
            times: is_single,
            ..needs.unwrap_or(Needs {
                lines: SourceLines::OfSamples,
                ..Needs::STACKS
            })
        };
        let profile = query.open(needs)?;
        let selection = query.select(&profile)?;
        if selection.samples() == 0 && profile.counts.is_none() {
            bail!("{} has no samples to compare", query.file().display());
        }
        let event = selection.event();
        match &self.event {
            Some(first) if first != event => {
                let text = format!(
                    "{} has samples of {}, the first recording of {}",
                    query.file().display(),
                    event.name,
                    first.name
                );
                return Err(hinted(
                    text,
                    Some("choose one that all have: --event NAME".into()),
                ));
            }
            _ => self.event = Some(event.clone()),
        }
        let main = query.event(&profile)?.filter(|_| is_single);
        let times = main.and_then(|event| query.times(&profile, event));
        runs.add(side, &profile, &selection, times.as_ref());
        if let Some(name) = &self.per_work {
            let work = Work::of(&profile, name).ok_or_else(|| {
                let file = query.file().display();
                let text = format!("{file}: neither calls of {name} nor such an event");
                let hint = "all calls of the function have to be counted: --record --counts";
                hinted(text, Some(hint.into()))
            })?;
            runs.set_work(side, work);
        }
        if let (Side::New, Some(sum)) = (side, &mut self.sum) {
            sum.add(&profile);
            self.query = Some(query.clone());
        }
        Ok(())
    }
}

impl Args {
    // What recording adds to a run of the base, as a part of its time without: an estimate.
    fn cost(&self, comparison: &Comparison) -> Option<f64> {
        let event = &comparison.event;
        if event.unit != Unit::Nanoseconds || event.is_off_processor() {
            return None;
        }
        let base = self.command.split(|word| word == SEPARATOR).next()?;
        let base = (!base.is_empty()).then_some(base)?;
        let each = record::sample_cost(self.record.as_deref().unwrap_or_default(), base)?;
        let samples = comparison.samples[0] as f64 / comparison.runs[0] as f64;
        let taken = samples * each.as_nanos() as f64;
        Some(taken / (comparison.time.base - taken)).filter(|part| *part > 0.0)
    }

    fn is_picture(&self) -> bool {
        matches!(self.look.output.format, Format::Svg | Format::Html)
    }

    // The flame graph of the new runs, and the page around it.
    fn draw(
        &self,
        (sum, query): (SumOfRuns, &Query),
        runs: &Runs,
        compared: &Compared,
        (caveats, situation): (&Caveats, &Situation),
    ) -> anyhow::Result<ExitCode> {
        let profile = sum.finish();
        query.refuse_without_stacks(&profile, "a flame graph")?;
        let selection = query.select(&profile)?;
        let subject = Subject::new(&profile, &selection, self.look.names_or(Names::Full));
        let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
        let picture = svg::Picture {
            tree: &tree,
            layout: &tree.flame_layout(svg::least(selection.total())),
            direction: Direction::TopDown,
            depth: None,
        };
        let places = compared.comparison.places(runs, Side::New, &profile);
        let changes = compared.frames(&places);
        let output = &self.look.output;
        answer::give_written(output, situation, caveats, &|out| match output.format {
            Format::Html => {
                html::changes::write(out, &compared.page(), &subject, (&picture, &changes))
            }
            _ => svg::write_changes(out, &subject, &picture, &changes),
        })
    }

    // Runs both commands, and reads each recording as it is made. Returns the names of the sides.
    fn run_commands(
        &self,
        read: &mut dyn FnMut(Side, &Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<[String; 2]> {
        let mut commands = self.command.split(|word| word == SEPARATOR);
        let sides = match (commands.next(), commands.next(), commands.next()) {
            (Some(base), Some(new), None) if !base.is_empty() && !new.is_empty() => [base, new],
            _ => {
                let text =
                    "two commands are compared, separated by ':::': -- OLD ARGS ::: NEW ARGS";
                return Err(Misused(text.into()).into());
            }
        };
        let place = Place::new(self.keep.as_deref())?;
        // The recordings are removed before it ends. At a second signal there is no time for it.
        let is_stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let status = 128 + signal;
            flag::register_conditional_shutdown(signal, status, Arc::clone(&is_stopped))?;
            flag::register(signal, Arc::clone(&is_stopped))?;
        }
        let options = self.record.as_deref().unwrap_or_default();
        let record = |side: Side, number: u32| -> anyhow::Result<PathBuf> {
            let name = match side {
                Side::Base => "base",
                Side::New => "new",
            };
            let file = place.directory.join(format!("{name}.{number}.data"));
            recorded(&file, options, sides[side as usize])?;
            Ok(file)
        };
        let mut random = RandomState::new().hash_one(std::process::id());
        for number in 0..=self.runs {
            // Either may be the first of a turn, so that what changes meanwhile is not of one side.
            let order = match random & 1 {
                0 => [Side::Base, Side::New],
                _ => [Side::New, Side::Base],
            };
            random = random.rotate_right(1);
            for side in order {
                if std::io::stderr().is_terminal() {
                    let side = format!("{side:?}").to_lowercase();
                    let what = match number {
                        0 => "before the first".to_owned(),
                        number => format!("{number} of {}", self.runs),
                    };
                    tell(&format!("run {what}, {side}"));
                }
                let made = record(side, number);
                anyhow::ensure!(!is_stopped.load(Ordering::Relaxed), "interrupted");
                let file = made?;
                if number > 0 {
                    read(side, &file)?;
                }
                if self.keep.is_none() || number == 0 {
                    std::fs::remove_file(&file)?;
                }
            }
        }
        let command = |words: &[OsString]| {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        Ok(sides.map(command))
    }
}

// Where recordings are made.
struct Place {
    directory: PathBuf,
    is_own: bool,
}

impl Place {
    fn new(kept: Option<&Path>) -> anyhow::Result<Place> {
        if let Some(directory) = kept {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("could not create {}", directory.display()))?;
            return Ok(Place {
                directory: directory.to_owned(),
                is_own: false,
            });
        }
        // Of nobody else: a name that can be guessed in a directory of all users is refused if it
        // exists.
        let name = format!("proftool-compare-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .with_context(|| format!("could not create {}", directory.display()))?;
        Ok(Place {
            directory,
            is_own: true,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_own {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

fn recorded(file: &Path, options: &str, command: &[OsString]) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("could not find this program")?;
    let output = Command::new(program)
        .args(["record", "--quiet", "--output"])
        .arg(file)
        .args(options.split_whitespace())
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .context("could not start the recording")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // What went wrong, without what is advised.
    let is_advice = |line: &&str| ["hint:", "note:"].iter().any(|it| line.starts_with(it));
    let said = said.lines().rfind(|line| !is_advice(line));
    let said = said.map(|line| format!(": {line}")).unwrap_or_default();
    let name = command.first().map_or(OsStr::new(""), |name| name);
    let text = format!("{}: {}{said}", name.display(), output.status);
    let hint = "only runs that end well are compared";
    Err(hinted(text, Some(hint.into())))
}

// The first of these, and whether there are more.
pub fn named(files: &[PathBuf]) -> String {
    let first = files
        .first()
        .map_or(Path::new(""), PathBuf::as_path)
        .display();
    match files.len() {
        0 | 1 => first.to_string(),
        _ => format!("{first} …"),
    }
}

fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line)
}
