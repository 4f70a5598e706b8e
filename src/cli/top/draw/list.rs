//! The list: columns that stay where they are while figures change, names with what is left.

use std::borrow::Cow;

use proftool::base::{Unit, printable};
use proftool::export::shown::{self, Shown, fitted};
use proftool::names::{display_width, shortened};
use proftool::view::table::{Cell, Column, Role};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::app::App;
use super::super::listing::{Branch, Fold, Line, Look};
use super::{Paint, put};

const GAP: usize = 2;
// The width of figures, unless their title is longer.
const SHARE: usize = 6;
const FIGURE: usize = 8;
// Names have this width at least, as long as there are other columns that can go.
const NAME: usize = 24;
// This at least, and more on a wide screen.
const ASIDE: usize = 16;
// The part of a screen that an aside has.
const ASIDES: usize = 6;
// Steps to the side are drawn as far as this.
const STEPS: usize = 12;
// Columns that go first where there is little room.
const FIRST_TO_GO: [&str; 17] = [
    "module",
    "origin",
    "samples",
    "estimate",
    "total",
    "outside",
    "level",
    "self",
    "children",
    "weight",
    "via_collapsed_percent",
    "total_per_call",
    "self_per_call",
    "called",
    "in_only_percent",
    "total_max_percent",
    "total_percent",
];

pub fn draw(app: &App, paint: Paint, buffer: &mut Buffer, body: Rect) {
    let Some(shown) = app.shown() else {
        return;
    };
    let unit = &shown.whole.unit;
    let listing = &shown.listing;
    let room = usize::from(body.height.saturating_sub(1));
    let cursor = app.cursor();
    let visible: Vec<&Line> = listing.lines.iter().skip(cursor.top()).take(room).collect();
    let widths = widths(&listing.columns, &visible, unit, usize::from(body.width));
    if body.height == 0 {
        return;
    }
    let mut column = usize::from(body.x);
    for (title, &width) in listing.columns.iter().zip(&widths) {
        if width > 0 {
            let text = shown::title(title);
            let text = shortened(&text, width);
            let left = left_of(title.role, width, display_width(&text));
            put(buffer, cut(column + left), body.y, &text, paint.faint());
            column += width + GAP;
        }
    }
    let names: Vec<Vec<String>> = (listing.columns.iter().zip(&widths).enumerate())
        .map(|(at, (title, &width))| match title.role {
            Role::Name if width > 0 => texts(&visible, at, unit, width),
            _ => Vec::new(),
        })
        .collect();
    for (at, line) in visible.iter().enumerate() {
        let row = body.y + 1 + cut(at);
        let is_chosen = cursor.top() + at == cursor.index();
        if line.look == Look::Heading {
            heading(line, paint, buffer, body, row);
        } else {
            let mut place = usize::from(body.x);
            let columns = listing.columns.iter().zip(&widths).zip(&names);
            for (cell, ((title, &width), names)) in line.cells.iter().zip(columns) {
                if width == 0 {
                    continue;
                }
                let text = match names.get(at) {
                    Some(name) => Cow::Borrowed(&**name),
                    None => Cow::Owned(text_of(cell, unit).shortened(width).into_owned()),
                };
                let left = left_of(title.role, width, display_width(&text));
                let mut style = style_of(cell, title.role, paint);
                if line.look == Look::Chosen {
                    style = style.patch(paint.bold());
                }
                put(buffer, cut(place + left), row, &text, style);
                place += width + GAP;
            }
        }
        // Last, over the styles of the cells.
        if is_chosen {
            let whole = Rect {
                y: row,
                height: 1,
                ..body
            };
            buffer.set_style(whole.intersection(buffer.area), paint.chosen());
        }
    }
    if listing.lines.is_empty() && body.height > 1 {
        let text = super::text::empty(app, shown);
        put(buffer, body.x, body.y + 1, text, Style::new());
    }
}

fn heading(line: &Line, paint: Paint, buffer: &mut Buffer, body: Rect, row: u16) {
    let Some(Cell::Text(text)) = line.cells.first() else {
        return;
    };
    let text = printable(text);
    let text = shortened(&text, usize::from(body.width));
    put(buffer, body.x, row, &text, paint.bold());
}

fn cut(column: usize) -> u16 {
    u16::try_from(column).unwrap_or(u16::MAX)
}

// The free columns to the left of a text of this length.
fn left_of(role: Role, width: usize, length: usize) -> usize {
    match role {
        Role::Figure | Role::Spare | Role::Bound | Role::Heat => width.saturating_sub(length),
        Role::Name | Role::Code | Role::Word | Role::Aside => 0,
    }
}

fn style_of(cell: &Cell, role: Role, paint: Paint) -> Style {
    match cell {
        Cell::Share { part, whole } if role == Role::Heat => {
            let share = *part as f64 / (*whole).max(1) as f64;
            match share {
                0.10.. => paint.hot(),
                0.03.. => paint.warm(),
                _ => Style::new(),
            }
        }
        Cell::Name(name) if name.is_faint => paint.faint(),
        _ => Style::new(),
    }
}

fn text_of<'a>(cell: &'a Cell, unit: &Unit) -> Shown<'a> {
    match cell {
        Cell::Weight(0) => Shown::text("0"),
        _ => Shown::of(cell, unit),
    }
}

// The names of a column in this width, after the lines of a tree. Different ones stay different
// where they are shortened, as far as the width allows.
fn texts(lines: &[&Line], column: usize, unit: &Unit, width: usize) -> Vec<String> {
    let whole: Vec<(String, Shown)> = lines
        .iter()
        .map(|line| {
            let cell = line.cells.get(column);
            let cell = cell.filter(|_| line.look != Look::Heading);
            let cell = cell.unwrap_or(&Cell::Nothing);
            let branch = line.branch.as_ref().map_or(String::new(), guide);
            let before = branch + &shown::before(cell, width / 2);
            let before = shortened(&before, width).into_owned();
            (before, text_of(cell, unit))
        })
        .collect();
    let room = |before: &str| width.saturating_sub(display_width(before));
    let names: Vec<(&Shown, usize)> = { whole.iter() }
        .map(|(before, text)| (text, room(before)))
        .collect();
    let names = fitted(&names);
    (whole.iter().zip(names))
        .map(|((before, text), name)| match room(before) {
            room if display_width(&name) <= room => before.clone() + &name,
            room => before.clone() + &text.shortened(room),
        })
        .collect()
}

// Steps to the side, and what can be done.
fn guide(branch: &Branch) -> String {
    let steps = branch.steps as usize;
    let mut guide = if steps > STEPS {
        format!("⋯{} {}", branch.level, "  ".repeat(STEPS / 2))
    } else {
        "  ".repeat(steps)
    };
    guide.push(if branch.is_only { '↳' } else { ' ' });
    guide.push(match branch.fold {
        Fold::Leaf => ' ',
        Fold::Closed => '▸',
        Fold::Open => '▾',
        Fold::Stub(_) => '↑',
    });
    guide.push(' ');
    guide
}

// 0 for a column that is left out. Columns of figures have a fixed width as a rule, so that nothing
// jumps when figures change.
fn widths(columns: &[Column], lines: &[&Line], unit: &Unit, width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let title = display_width(&shown::title(column));
        let lines = lines.iter().filter(|line| line.look != Look::Heading);
        let cells = lines.filter_map(|line| line.cells.get(at));
        let length = |cell: &Cell| text_of(cell, unit).width();
        widths.push(match column.role {
            Role::Name | Role::Code => NAME,
            Role::Aside => ASIDE.max(width / ASIDES).max(title),
            Role::Heat => SHARE.max(title),
            Role::Word => cells.map(length).max().unwrap_or(0).max(title),
            Role::Figure | Role::Spare | Role::Bound => {
                let is_share = column.key.ends_with("percent");
                let usual = if is_share { SHARE } else { FIGURE };
                let usual = if column.key == "level" { 0 } else { usual };
                cells.map(length).max().unwrap_or(0).max(usual).max(title)
            }
        });
    }
    let used = |widths: &[usize]| {
        let shown = widths.iter().filter(|&&width| width > 0).count();
        widths.iter().sum::<usize>() + GAP * shown.saturating_sub(1)
    };
    for key in FIRST_TO_GO {
        if used(&widths) <= width {
            break;
        }
        // The share says the same as the largest total or the weight.
        let Some(at) = columns.iter().position(|column| column.key == key) else {
            continue;
        };
        // A total would look exact without what it is at most. Where it is the last figure both
        // stay, and names get less room.
        let is_bound = |at: usize| columns.get(at).is_some_and(|it| it.role == Role::Bound);
        let first = if is_bound(at) {
            at.saturating_sub(1)
        } else {
            at
        };
        let goes = first..=first + usize::from(is_bound(first + 1));
        let is_figure = |it: &usize| !matches!(columns[*it].role, Role::Name | Role::Aside);
        let mut others = (0..columns.len()).filter(is_figure);
        if others.any(|it| !goes.contains(&it) && widths[it] > 0) {
            widths[goes].fill(0);
        }
    }
    let names: Vec<usize> = (0..columns.len())
        .filter(|&at| columns[at].role == Role::Name)
        .collect();
    let others = used(&widths) - names.len() * NAME;
    if let Some(&name) = names.last() {
        widths[name] = width.saturating_sub(others).max(1);
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::{Column, Line, Look, Role, Unit, display_width, texts, widths};

    #[test]
    fn different_names_stay_different_where_they_are_shortened() {
        let of = |key: &str| {
            format!("std::_Hashtable<{key}, std::allocator<int>>::_M_deallocate_buckets")
        };
        let names = [
            of("std::pair<int, long>"),
            of("std::pair<int, char>"),
            "main".to_owned(),
        ];
        let lines = names.clone().map(|name| Line {
            look: Look::Plain,
            ..Line::heading(0, name)
        });
        let lines: Vec<&Line> = lines.iter().collect();
        for width in 40..90 {
            let shown = texts(&lines, 0, &Unit::Nanoseconds, width);
            assert!(
                shown.iter().all(|text| display_width(text) <= width),
                "{shown:?}"
            );
            assert_ne!(shown[0], shown[1]);
        }
    }

    #[test]
    fn a_total_is_not_shown_without_what_it_is_at_most() {
        let columns = [
            Column::new("self_percent", "self %", Role::Heat),
            Column::new("total_percent", "total %", Role::Figure),
            Column::new("total_max_percent", "at most %", Role::Bound),
            Column::new("name", "function", Role::Name),
        ];
        let shown = |width| widths(&columns, &[], &Unit::Nanoseconds, width);
        assert!(shown(100).iter().all(|&width| width > 0));
        for width in 0..100 {
            let [_, total, most, _] = shown(width)[..] else {
                panic!("other columns");
            };
            assert_eq!(total > 0, most > 0, "at {width} columns");
        }
        // Where it is the last figure it stays, and its upper end too.
        for width in 0..100 {
            let widths = widths(&columns[1..], &[], &Unit::Nanoseconds, width);
            assert!(widths[0] > 0 && widths[1] > 0, "at {width} columns");
        }
    }
}
