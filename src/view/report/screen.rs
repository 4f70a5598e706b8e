//! The report on one screen: the answer first, doubts in one line.
//!
//! ```text
//!   what was run                        2 lines
//!   commands, where several work        at most 4 rows
//!   the hottest functions               3 rows and more
//!   the user's own code by total        what has a fifth of all, and more
//!   heaviest path                       at most 2 lines
//!   where: kernel, libraries, programs  1 line, adds up to 100 %
//!   stacks: how good they are           1 line
//!   next commands                       2 lines
//! ```

use super::page::what_is_counted;
use super::{HotLine, Report};
use crate::analysis::owners::OwnerKind;
use crate::analysis::sampling_error::SamplingError;
use crate::base::{About, CaveatKind};
use crate::profile::FunctionKind;
use crate::view::basis::Total;
use crate::view::flat::{self, Row};
use crate::view::page::{Block, Page};
use crate::view::question::Question;
use crate::view::table::{Cell, Column, Role, Table};
use crate::view::{Subject, certainty, number, quality};

/// The lines of a terminal, less one for the prompt.
const LINES: usize = 23;
/// The most characters of a list in a sentence.
const WIDTH: usize = 78;
/// The fewest lines of the two lists, with an empty one and the names of columns for each.
const LEAST: usize = 8;
/// The fewest rows of the hottest functions.
const FEWEST: usize = 3;
/// The most rows of commands.
const COMMANDS: usize = 4;
/// A function of the user's own with as large a part, one in so many, is shown before further hot
/// ones.
const FIFTH: u64 = 5;
/// Commands are listed where the second one has more than this part, one in so many.
const TWENTIETH: u64 = 20;
/// The most notes.
const DOUBTS: usize = 2;
/// What is missing in the code, not in stacks.
const ON_CODE: [CaveatKind; 2] = [CaveatKind::NoSymbols, CaveatKind::GeneratedCode];
/// The most characters of a name in a command.
const IN_COMMANDS: usize = 40;
/// The columns of which a program may have nothing.
const MAYBE_EMPTY: [&str; 5] = [
    flat::HALF_WIDTHS[0],
    flat::HALF_WIDTHS[1],
    "total_percent",
    "line",
    "module",
];
/// The most steps of a path.
const STEPS: usize = 8;

impl Report {
    /// The page for people, with as many rows as one screen has room for. `height` returns how many
    /// lines a page takes where it will be shown.
    pub fn first_screen(&self, subject: &Subject, height: &dyn Fn(&Page) -> usize) -> Page {
        let page = |blocks: Vec<Block>| Page {
            unit: subject.selection.event().unit.clone(),
            blocks,
        };
        let lines = |blocks: &[Block]| height(&page(blocks.to_vec()));
        let mut head = self.summary(subject);
        if let Some(Block::Heading(command)) = head.first_mut() {
            shorten(command);
        }
        head.extend(self.busy_commands(subject));
        let mut foot = vec![Block::Space];
        foot.extend(self.heaviest_path(subject));
        foot.extend(self.where_it_is(subject));
        foot.extend(self.how_sure(subject).map(Block::Line));
        foot.extend(better_stacks(subject));
        let next = Block::NextInBrief(self.first_questions(subject));
        let doubts = self.doubts(subject);
        let below = |noted: usize| -> Vec<Block> {
            let noted = doubts.iter().take(noted);
            foot.iter().chain(noted).chain([&next]).cloned().collect()
        };
        let room = |noted| LINES.saturating_sub(lines(&head) + lines(&below(noted)));
        // Functions go before notes; what was damaged is on stderr, too.
        let noted = (0..=doubts.len()).rev().find(|&noted| room(noted) >= LEAST);
        let noted = noted.unwrap_or_default();
        let lists = self.lists(subject, room(noted));
        let blocks = [head.clone(), lists, below(noted)].concat();
        page(blocks)
    }

    /// The lists of functions in about this number of lines.
    fn lists(&self, subject: &Subject, room: usize) -> Vec<Block> {
        // An empty line, and the names of the columns.
        const AROUND: usize = 2;
        if self.functions.is_empty() {
            return Vec::new();
        }
        let what = what_is_counted(subject.selection.event());
        if !self.waits.is_empty() {
            let rows = room.saturating_sub(AROUND + 2).max(FEWEST);
            let mut blocks = vec![Block::Space];
            blocks.extend(self.waits_blocks(subject, what, rows));
            return blocks;
        }
        let whole = subject.selection.total();
        // By self weight only, where totals are not known from stacks.
        let mut own = self.by_total_in_brief(subject);
        let is_large = |part: u64| part >= whole.div_ceil(FIFTH);
        let large = own.iter().filter(|(row, _)| is_large(row.total)).count();
        let most = self.functions.len();
        let room = room.saturating_sub(AROUND * (1 + usize::from(!own.is_empty())));
        let mut hot = FEWEST.min(most);
        let mut shown = large
            .min(room.saturating_sub(hot))
            .max(usize::from(!own.is_empty()));
        while hot + shown < room && (hot < most || shown < own.len()) {
            // Whichever has more to say: half as many of the user's own as of all.
            if hot < most && (hot <= shown || shown >= own.len()) {
                hot += 1;
            } else {
                shown += 1;
            }
        }
        let mut blocks = vec![Block::Space, Block::Table(self.hot_table(subject, hot))];
        if !own.is_empty() {
            own.truncate(shown);
            let table = self.own_table(subject, &own);
            blocks.extend([Block::Space, Block::Table(table)]);
        }
        blocks
    }

    /// The first functions by self weight.
    fn hot_table(&self, subject: &Subject, rows: usize) -> Table {
        let known = self.known();
        let [of_self, of_total] = flat::HALF_WIDTHS;
        let mut table = Table::new(vec![
            Column::new("self_percent", "self %", Role::Heat),
            Column::new(of_self, flat::HALF_WIDTH, Role::Figure),
            Column::new("total_percent", "total %", Role::Figure),
            Column::new(of_total, flat::HALF_WIDTH, Role::Figure),
            Column::new("name", "hottest functions", Role::Name),
            Column::new("line", "line", Role::Aside),
            Column::new("module", "module", Role::Aside),
        ]);
        let whole = subject.selection.total();
        let share = |part: u64| Cell::Share { part, whole };
        for (row, line) in self.functions.iter().take(rows) {
            let total = match known {
                Some(Total::Measured) => share(row.total),
                _ => Cell::Nothing,
            };
            let [of_self, of_total] = half_widths(row, whole);
            table.rows.push(vec![
                share(row.self_weight),
                of_self,
                total,
                of_total,
                Cell::name(row.name.clone()),
                place(line.as_ref()),
                match &*row.module {
                    "" => Cell::Nothing,
                    module => Cell::Text(place_name(module).to_owned()),
                },
            ]);
        }
        table.without_empty(&MAYBE_EMPTY)
    }

    /// The functions of the user's own code by total, as far as it has names; of a program without
    /// any, all functions with names. Nothing where totals are not known from stacks.
    fn by_total_in_brief<'a>(&'a self, subject: &Subject) -> Vec<&'a (Row, Option<HotLine>)> {
        let functions = &subject.profile.functions;
        let is_named = |it: &&(Row, _)| functions[it.0.function].kind == FunctionKind::Named;
        if self.known() != Some(Total::Measured) {
            return Vec::new();
        }
        let own: Vec<_> = self.own.iter().filter(is_named).collect();
        // A script that starts a runtime is not what the user asks about.
        let least = subject.selection.total() / TWENTIETH;
        match own.iter().any(|(row, _)| row.total >= least) {
            true => own,
            false => {
                let starts = |row: &Row| self.charged.owners.is_start(row.function);
                let all = self.all.iter().filter(is_named);
                all.filter(|(row, _)| !starts(row)).collect()
            }
        }
    }

    /// These functions by total.
    fn own_table(&self, subject: &Subject, rows: &[&(Row, Option<HotLine>)]) -> Table {
        let is_own = |row: &Row| self.charged.owners.is_own(row.function);
        let title = match rows.iter().all(|(row, _)| is_own(row)) {
            true => "your code, by total",
            false => "functions by total",
        };
        let [of_self, of_total] = flat::HALF_WIDTHS;
        let mut table = Table::new(vec![
            Column::new("total_percent", "total %", Role::Heat),
            Column::new(of_total, flat::HALF_WIDTH, Role::Figure),
            Column::new("self_percent", "self %", Role::Figure),
            Column::new(of_self, flat::HALF_WIDTH, Role::Figure),
            Column::new("name", title, Role::Name),
            Column::new("line", "line", Role::Aside),
        ]);
        let whole = subject.selection.total();
        let share = |part: u64| Cell::Share { part, whole };
        for (row, line) in rows {
            let [of_self, of_total] = half_widths(row, whole);
            table.rows.push(vec![
                share(row.total),
                of_total,
                share(row.self_weight),
                of_self,
                Cell::name(row.name.clone()),
                place(line.as_ref()),
            ]);
        }
        table.without_empty(&MAYBE_EMPTY)
    }

    /// The commands, where several have work to do.
    fn busy_commands(&self, subject: &Subject) -> Vec<Block> {
        let whole = subject.selection.total();
        let is_busy = |(_, part): &&(String, u64)| *part > whole / TWENTIETH;
        let busy = self.commands.iter().filter(is_busy).count();
        if busy < 2 {
            return Vec::new();
        }
        let mut table = Table::new(vec![
            Column::new("percent", "%", Role::Heat),
            Column::new("name", "command", Role::Name),
        ]);
        for (name, part) in self.commands.iter().take(busy.min(COMMANDS)) {
            let share = Cell::Share { part: *part, whole };
            table.rows.push(vec![share, Cell::Text(name.clone())]);
        }
        vec![Block::Space, Block::Table(table)]
    }

    /// The heaviest chain of calls: the user's own functions on it, and where it divides.
    fn heaviest_path(&self, subject: &Subject) -> Option<Block> {
        let hot = self.hot.as_ref()?;
        let calls = &hot.tree.calls;
        let owners = &self.charged.owners;
        let path: Vec<_> = calls.nodes.ids().take(hot.first).collect();
        let nodes: Vec<_> = path.iter().map(|&id| calls.nodes.at(id)).collect();
        let weight = |place: usize| nodes.get(place).map_or(0, |node| node.weight());
        let mut steps: Vec<usize> = (0..nodes.len())
            .filter(|&place| {
                let owner = owners.of(nodes[place].function).kind;
                // A step that passes nearly all on says little, unless it is the user's own.
                let divides = weight(place + 1) < weight(place) / 10 * 9;
                owner == OwnerKind::Project || divides && owner != OwnerKind::Mark
            })
            .collect();
        steps.truncate(STEPS);
        if steps.len() < 2 {
            return None;
        }
        let labels = subject.labels(steps.iter().map(|&step| nodes[step].function));
        let step = |&step: &usize| {
            let node = &nodes[step];
            (labels.label(node.function), node.weight())
        };
        Some(Block::Path {
            title: "heaviest path",
            steps: steps.iter().map(step).collect(),
            whole: subject.selection.total(),
        })
    }

    /// The kernel, libraries and programs by self weight, in one line.
    fn where_it_is(&self, subject: &Subject) -> Option<Block> {
        let whole = subject.selection.total();
        let is_known = self.places.iter().any(|(name, _)| !name.is_empty());
        // Threads leave their processor in the kernel, always.
        let is_off = subject.selection.event().is_off_processor();
        if !is_known || whole == 0 || is_off {
            return None;
        }
        let share = |part| format!("{} %", number::percent(part, whole, 1));
        let mut text = String::from("where: ");
        let mut left = whole;
        for (place, (name, part)) in self.places.iter().enumerate() {
            let item = format!("{} {}", place_name(name), share(*part));
            let rest = format!(", {} more {}", self.places.len() - place, share(left));
            let width = [&*text, ", ", &item, &rest].map(|text| text.chars().count());
            if place > 0 && width.iter().sum::<usize>() > WIDTH {
                text.push_str(&rest);
                break;
            }
            if place > 0 {
                text.push_str(", ");
            }
            text.push_str(&item);
            left = left.saturating_sub(*part);
        }
        Some(Block::Line(text))
    }

    /// How good the stacks are, and how exact the share of the hottest function is, in one line.
    pub fn how_sure(&self, subject: &Subject) -> Option<String> {
        if subject.selection.samples() == 0 {
            return None;
        }
        let mut parts = Vec::new();
        let quality = subject.profile.quality.filter(|quality| quality.stacks > 0);
        if let Some(quality) = quality {
            let complete = number::percent(quality.rooted, quality.stacks, 1);
            let of = match subject.is_part() {
                true => "stacks of the whole file",
                false => "stacks",
            };
            let mut text = format!("{of}: {complete} % complete");
            let whole = subject.selection.total();
            if let Some(points) = self.largest_doubt(whole).filter(|&points| points >= 1.0) {
                let noun = if points < 1.5 { "point" } else { "points" };
                text.push_str(&format!("; totals may be up to {points:.0} {noun} too low"));
            }
            parts.push(text);
        }
        if let Some(legend) = self.interval_legend(subject) {
            parts.push(legend);
            return Some(parts.join("; "));
        }
        match (self.functions.first(), self.sampling_error) {
            (
                Some((row, _)),
                SamplingError::Sampled {
                    half_width,
                    effective_samples: _,
                },
            ) => {
                let share = row.self_weight as f64 / subject.selection.total().max(1) as f64;
                // The half width is that of a share of one half.
                let first = 100.0 * half_width * 2.0 * (share * (1.0 - share)).sqrt();
                let most = 100.0 * half_width;
                parts.push(format!("±{most:.1} (hottest ±{first:.1})"));
            }
            _ => {
                let line = certainty::line(subject, &self.sampling_error);
                parts.extend(line.map(|line| match parts.is_empty() {
                    true => line,
                    // It goes on.
                    false => line[..1].to_lowercase() + &line[1..],
                }));
            }
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// What the intervals are, if they are shown.
    pub(super) fn interval_legend(&self, subject: &Subject) -> Option<String> {
        let first = self.functions.first().map(|(row, _)| row);
        let whole = subject.selection.total();
        let of = self.by_total.intervals?;
        Some(flat::interval_legend(of, first, whole))
    }

    /// By how many points a total that is shown may be too low, where stacks lack callers.
    fn largest_doubt(&self, whole: u64) -> Option<f64> {
        let rows = self.functions.iter().chain(&self.own).map(|(row, _)| row);
        let doubts = rows.filter_map(|row| Some(row.total_max?.weight.saturating_sub(row.total)));
        let largest = doubts.max()?;
        Some(100.0 * largest as f64 / whole.max(1) as f64)
    }

    /// What else has to be known: facts on the recording and the program, not on few samples.
    fn doubts(&self, subject: &Subject) -> Vec<Block> {
        let samples = subject.profile.quality.map_or(0, |quality| quality.stacks);
        let caveats = subject.profile.caveats.iter();
        let counts = caveats.filter(|caveat| match caveat.kind.is_minor() {
            true => ON_CODE.contains(&caveat.kind) && caveat.count > samples / TWENTIETH,
            false => true,
        });
        let all: Vec<_> = counts.collect();
        let shown = all.iter().take(DOUBTS);
        let mut blocks: Vec<Block> = shown.map(|it| Block::Brief((*it).clone())).collect();
        let more = all.len().saturating_sub(DOUBTS);
        if more > 0 {
            blocks.push(Block::Line(format!("note: {more} more")));
        }
        blocks
    }

    /// Where to go on from here: to what the user's own code calls, and to the hottest function.
    fn first_questions(&self, subject: &Subject) -> Vec<Question> {
        if self.known() != Some(Total::Measured) || !self.waits.is_empty() {
            return self.next.iter().take(2).cloned().collect();
        }
        let whole = subject.selection.total();
        let named = self.by_total_in_brief(subject);
        // What is nearly on all samples leads to the tree of all, and what calls little to nothing.
        let divides = |it: &&&(Row, _)| it.0.total < whole / TWENTIETH * (TWENTIETH - 1);
        let calls = |it: &&&(Row, _)| it.0.total.saturating_sub(it.0.self_weight) > whole / FIFTH;
        let is_short = |name: &str| name.chars().count() <= IN_COMMANDS;
        let mut roots = named.iter().filter(divides).filter(calls);
        let root = roots.find(|it| is_short(&it.0.name.text));
        let tree = root.map_or(Question::CallTree, |it| {
            Question::Below(it.0.name.text.clone())
        });
        let mut hottest = self.functions.iter();
        let hottest = hottest.find(|(row, _)| is_short(&row.name.text));
        let detail = hottest.map(|(row, _)| Question::Detail(row.name.text.clone()));
        [Some(tree), detail].into_iter().flatten().collect()
    }
}

/// What would help, where more stacks are incomplete than one in so many.
fn better_stacks(subject: &Subject) -> Option<Block> {
    let quality = subject.profile.quality?;
    let incomplete = quality.stacks - quality.rooted.min(quality.stacks);
    if incomplete <= quality.stacks / TWENTIETH {
        return None;
    }
    let remedy = quality::remedies(subject.profile).first().copied();
    let caveats = subject.profile.caveats.iter();
    let ended = caveats.filter(|caveat| {
        matches!(
            caveat.kind.subject(),
            About::CutStacks | About::BrokenStacks
        ) && caveat.remedy().is_some()
    });
    let worst = ended.max_by_key(|caveat| caveat.count);
    let of_worst = || worst.cloned().map(Block::RemedyOf);
    remedy.map(Block::BetterStacks).or_else(of_worst)
}

/// A command line in one line of the screen.
fn shorten(command: &mut String) {
    if let Some((at, _)) = command.char_indices().nth(WIDTH) {
        command.truncate(at);
        command.push('…');
    }
}

/// Half the widths of the intervals of a function's self weight and total.
fn half_widths(row: &Row, whole: u64) -> [Cell; 2] {
    match row.half_widths {
        Some(widths) => widths.map(|part| Cell::Share { part, whole }),
        None => [Cell::Nothing, Cell::Nothing],
    }
}

/// The file and the line, without the directory.
fn place(line: Option<&HotLine>) -> Cell {
    line.map_or(Cell::Nothing, |line| {
        let file = line.file.rsplit('/').next().unwrap_or(&line.file);
        Cell::Text(format!("{file}:{}", line.line))
    })
}

/// What people call a module: `libc` for `libc.so.6`, `kernel` for `[kernel]`.
pub fn place_name(module: &str) -> &str {
    match module {
        "" => "unknown",
        _ if module.starts_with('[') => module.trim_matches(['[', ']']),
        _ => {
            // `.so` ends the name or stands before a version: not in `my.sort`.
            let ends = |at: &usize| matches!(module.as_bytes().get(at + 3), None | Some(b'.'));
            let at = module.match_indices(".so").map(|(at, _)| at).find(ends);
            at.map_or(module, |at| &module[..at])
        }
    }
}
