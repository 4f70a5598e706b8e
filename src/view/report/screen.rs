//! The report on one screen: the first rows of each list, and the rest in a sentence each.

use super::Report;
use super::page::{hot_heading, in_code, what_is_counted};
use crate::view::basis::Total;
use crate::view::page::{Block, Page};
use crate::view::question::Question;
use crate::view::tree::HotLines;
use crate::view::{Subject, caveats, certainty, number, owners, quality, range};

/// The lines of the screen, as long as its parts have room for their first rows.
const LINES: usize = 40;
/// The most characters of a list in a sentence.
const WIDTH: usize = 80;
/// The fewest rows of the first list, and the most while other lists need room.
const SELF_ROWS: [usize; 2] = [4, 8];
/// The fewest and the most lines of the hot paths.
const HOT_LINES: [usize; 2] = [4, 14];
/// The lines of both lists when they are shortest, with their headings and the legend.
const LISTS: usize = 15;
/// A shorter list of totals is left out, if hot paths show the largest ones.
const TOTAL_ROWS: usize = 3;

/// Returns how many lines blocks take.
type Height<'a> = &'a dyn Fn(&[Block]) -> usize;

impl Report {
    /// The page for people, with as many rows as one screen has room for. `height` returns how many lines
    /// a page takes where it will be shown.
    pub fn first_screen(&self, subject: &Subject, height: &dyn Fn(&Page) -> usize) -> Page {
        let page = |blocks: Vec<Block>| Page {
            unit: subject.selection.event().unit.clone(),
            blocks,
        };
        let height: Height = &|blocks| height(&page(blocks.to_vec()));
        let what = what_is_counted(subject.selection.event());
        let head = self.summary(subject);
        let mut foot = self.who_in_brief(subject, what);
        if let Some(found) = &self.in_code {
            foot.extend(in_code(found));
        }
        foot.push(Block::Space);
        foot.push(Block::Heading("How reliable is this?".into()));
        foot.extend(self.trust_in_brief(subject));
        foot.extend(certainty::line(subject, &self.sampling_error).map(Block::Line));
        if !self.next.is_empty() {
            let is_first =
                |question: &&Question| !matches!(question, Question::Recursion | Question::Totals);
            let mut next: Vec<Question> = self.next.iter().filter(is_first).cloned().collect();
            // Where there is more to know of the figures, less is said of where to go on.
            let rest = height(&head) + height(&foot) + LISTS;
            if rest + height(&[Block::Next(next.clone())]) > LINES && next.len() > 2 {
                next.drain(1..next.len() - 1);
            }
            foot.push(Block::Next(next));
        }
        let fixed = height(&head) + height(&foot);
        let mut lists = Vec::new();
        if !self.functions.is_empty() {
            lists = self.lists(subject, what, LINES.saturating_sub(fixed), height);
        }
        let blocks = head.into_iter().chain(lists).chain(foot).collect();
        page(range::settled(blocks))
    }

    /// The lists of functions, in about this number of lines.
    fn lists(&self, subject: &Subject, what: &str, room: usize, height: Height) -> Vec<Block> {
        // An empty line, the heading and the names of the columns.
        const AROUND: usize = 3;
        let [fewest, most] = SELF_ROWS;
        let all = if self.waits.is_empty() {
            self.functions.len()
        } else {
            self.waits.len()
        };
        let mut rows = (room.saturating_sub(2 * AROUND) / 2)
            .clamp(fewest, most)
            .min(all);
        // A short list is shown whole: a row that is left out may be the one that was looked for.
        if all <= most {
            rows = all;
        }
        let first = |rows| match self.waits.is_empty() {
            true => self.by_self(subject, what, rows),
            false => self.waits_blocks(subject, what, rows),
        };
        let mut left = room.saturating_sub(1 + height(&first(rows)));
        let [shortest, longest] = HOT_LINES;
        let hot = self.hot.as_ref().map(|hot| {
            let legend = usize::from(hot.at_most.is_some());
            let lines = left
                .saturating_sub(AROUND + legend)
                .clamp(shortest, longest);
            let lines = HotLines::new(subject, hot, &self.charged.owners, lines);
            let table = lines.table(subject);
            let by_self = self.self_table(subject);
            let ranges = range::cells(&table).chain(range::cells(&by_self));
            let legend = range::short_legend(ranges);
            let heading = Block::Heading(hot_heading(&lines, what));
            (vec![Block::Space, heading, Block::Table(table)], legend)
        });
        if let Some((blocks, _)) = &hot {
            left = left.saturating_sub(height(blocks));
        }
        let mut totals = self.totals(subject, what, usize::MAX);
        let all = totals.iter().map(|block| match block {
            Block::Table(table) => table.rows.len(),
            _ => 0,
        });
        let around = height(&totals).saturating_sub(all.sum());
        if hot.is_none() || left >= around + TOTAL_ROWS {
            let rows = left.saturating_sub(around).max(TOTAL_ROWS);
            totals = self.totals(subject, what, rows);
        } else {
            // The paths show the largest totals.
            totals.clear();
            let legend = hot.iter().map(|(blocks, legend)| {
                let all: Vec<Block> = blocks.iter().chain(legend).cloned().collect();
                height(&all) - height(blocks)
            });
            rows += left.saturating_sub(legend.sum());
        }
        let mut blocks = vec![Block::Space];
        blocks.extend(first(rows));
        if let Some((hot, legend)) = hot {
            blocks.extend(hot);
            blocks.extend(legend.filter(|_| totals.is_empty()));
        }
        blocks.extend(totals);
        blocks
    }

    /// The heaviest owners, commands and threads, a sentence each.
    fn who_in_brief(&self, subject: &Subject, what: &str) -> Vec<Block> {
        let whole = subject.selection.total();
        let sentence = |title: String, rows: Vec<(String, u64)>| {
            if rows.len() < 2 {
                return None;
            }
            let mut text = format!("{title}: ");
            let count = rows.len();
            for (number, (name, part)) in rows.into_iter().enumerate() {
                let part = format!("{name} {} %", number::percent(part, whole, 2));
                let more = format!(", {} more", count - number);
                let width = [&*text, ", ", &part, &more].map(|text| text.chars().count());
                // The first name is shown even where it is too wide.
                if number > 0 && width.iter().sum::<usize>() > WIDTH {
                    text.push_str(&more);
                    break;
                }
                text.push_str(if number > 0 { ", " } else { "" });
                text.push_str(&part);
            }
            Some(Block::Line(text))
        };
        let mut blocks = Vec::new();
        if self.known() == Some(Total::Measured) {
            let shares = self.charged.shares.iter();
            let shares =
                shares.map(|share| (owners::name(&self.charged, share).to_owned(), share.weight));
            let mut letters = what.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase());
            let what: String = first.into_iter().chain(letters).collect();
            let title = format!("{what} by crate, library or directory");
            blocks.extend(sentence(title, shares.collect()));
        }
        // Threads are named by their commands: a list of about as many says nothing more.
        let commands = self.commands.clone();
        if commands.len() * 2 <= self.threads.len() {
            blocks.extend(sentence("Commands".into(), commands));
        }
        let threads = self.threads.iter().map(|&(id, weight)| {
            let thread = &subject.profile.threads[id];
            (format!("{} (tid {})", thread.comm, thread.tid), weight)
        });
        blocks.extend(sentence("Threads".into(), threads.collect()));
        if !blocks.is_empty() {
            blocks.insert(0, Block::Space);
        }
        blocks
    }

    /// What is not known, and how good the stacks are.
    fn trust_in_brief(&self, subject: &Subject) -> Vec<Block> {
        let profile = subject.profile;
        let mut blocks = caveats::notes_in_brief(profile);
        let has_caveats = !blocks.is_empty();
        blocks.extend(quality::sentence(profile).map(Block::Line));
        let has_stacks = blocks.len() > usize::from(has_caveats);
        if !has_caveats {
            blocks.insert(0, self.without_caveats(subject));
        }
        blocks.extend(
            quality::remedies(profile)
                .into_iter()
                .map(Block::BetterStacks),
        );
        if subject.is_part() && (has_caveats || has_stacks) {
            let scope = "Notes and stacks describe the whole file, not only the samples shown:";
            blocks.insert(0, Block::Line(scope.into()));
        }
        blocks
    }
}
