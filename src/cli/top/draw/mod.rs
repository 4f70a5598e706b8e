//! Draws what is on the screen: state in, characters in a buffer out.
//!
//! ```text
//!   100 % = 12.35 s of cpu-clock, 12,345 samples since the start      1:23    what 100 % is
//!   ./app · 997 samples/s · no losses · cumulative                            what is sampled
//!   1 flat  2 graph  3 tree  4 cycles       340 functions · by self           views
//!    self %  total %      self     total  function            module          the list
//!   …
//!   ? help  q quit  Enter callers, callees  s sort  …                         keys
//! ```
//!
//! Where there is little room, lines leave in this order: keys, views, what is sampled, headings.

mod ascii;
mod list;
mod page;
mod parts;

use proftool::base::printable;
use proftool::names::{Form, display_width, in_form, last_columns};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::app::{App, Overlay};
use super::prompt::{Prompt, Purpose};
use super::text::{self, Shown};
use super::wish::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    pub color: bool,
    // Whether there may be characters beyond ASCII.
    pub unicode: bool,
}

impl Paint {
    fn color(self, color: Color) -> Style {
        if self.color {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }

    fn hot(self) -> Style {
        self.color(Color::Red)
    }

    fn warm(self) -> Style {
        self.color(Color::Yellow)
    }

    fn faint(self) -> Style {
        if self.color {
            Style::new().add_modifier(Modifier::DIM)
        } else {
            Style::new()
        }
    }

    fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

// Which lines of a screen there is room for.
struct Rooms {
    whole: Option<u16>,
    facts: Option<u16>,
    views: Option<u16>,
    body: Rect,
    keys: Option<u16>,
}

impl Rooms {
    fn of(area: Rect) -> Rooms {
        let mut row = area.y;
        let mut take = |least: u16| {
            (area.height >= least).then(|| {
                row += 1;
                row - 1
            })
        };
        let (whole, facts, views) = (take(1), take(6), take(7));
        let keys = (area.height >= 8).then(|| area.bottom() - 1);
        let below = u16::from(keys.is_some());
        Rooms {
            whole,
            facts,
            views,
            body: Rect {
                y: row,
                height: area.bottom().saturating_sub(row + below),
                ..area
            },
            keys,
        }
    }
}

// How many lines of a list a screen of this size has room for.
pub fn room(area: Rect) -> usize {
    usize::from(Rooms::of(area).body.height.saturating_sub(1))
}

pub fn draw(app: &mut App, shown: &Shown, paint: Paint, buffer: &mut Buffer) {
    let rooms = Rooms::of(buffer.area);
    let body = rooms.body;
    let names_picked = rooms.whole.map(|row| whole(app, paint, buffer, row));
    if let Some(row) = rooms.facts {
        let mut facts = text::facts(app, shown);
        // What is looked at is said where there is room.
        let picked = text::picked(&app.wish).filter(|_| names_picked == Some(false));
        facts.splice(0..0, picked);
        let line = parts::joined(&facts, " · ", usize::from(buffer.area.width));
        put(buffer, 0, row, &line, paint.faint());
    }
    if let Some(row) = rooms.views {
        views(app, paint, buffer, row);
    }
    let lines = match app.overlay {
        Some((Overlay::Help, place)) => {
            page::draw(super::help::text(app), (place, None), paint, buffer, body)
        }
        Some((Overlay::Page, place)) => {
            let text = app.page().unwrap_or("…");
            page::draw(text, (place, app.found()), paint, buffer, body)
        }
        Some((Overlay::Info, place)) => {
            let info = super::info::page(app, &shown.situation, usize::from(body.width));
            page::draw(&info, (place, None), paint, buffer, body)
        }
        None => {
            list::draw(app, paint, buffer, body);
            0
        }
    };
    // A page that is not there yet has no end.
    if app.overlay.is_some_and(|(it, _)| it != Overlay::Page) || app.page().is_some() {
        app.fit(lines);
    }
    // A prompt or message gets a line even if there is no line for keys.
    let below = rooms.keys.or((body.height > 0).then(|| body.bottom() - 1));
    match (&app.prompt, &app.message, below) {
        (Some(asked), _, Some(row)) => prompt(asked, paint, buffer, row),
        (None, Some(message), Some(row)) => {
            clear(buffer, row);
            put(buffer, 0, row, message, paint.bold());
        }
        _ => {
            if let Some(row) = rooms.keys {
                keys(app, paint, buffer, row);
            }
        }
    }
    if !paint.unicode {
        ascii::replace(buffer);
    }
}

// What 100 % is, and on the right whether it runs. Returns whether there was room for all that keys
// chose to look at.
fn whole(app: &App, paint: Paint, buffer: &mut Buffer, row: u16) -> bool {
    let state = text::state(app);
    let width = usize::from(buffer.area.width);
    let line = match app.shown() {
        None => "waiting for samples".to_owned(),
        Some(shown) => {
            // Of several events one is looked at.
            let samples = if shown.events.len() > 1 || app.wish.picks() || app.is_recording() {
                shown.whole.samples
            } else {
                shown.seen.samples
            };
            let since = text::Since::of(app, &shown.seen);
            let counted = (samples, shown.seen.half_life);
            let whole = text::whole(&shown.whole, &app.wish, counted, since);
            let beside = width.saturating_sub(display_width(&state) + 2);
            // What 100 % is must be readable in full, and the pause must be visible.
            let first = whole.first().map_or(0, |first| display_width(first));
            let room = if first > beside && !app.is_paused() {
                width
            } else {
                beside
            };
            parts::joined(&whole, ", ", room)
        }
    };
    put(buffer, 0, row, &line, paint.bold());
    let used = display_width(&line);
    let length = display_width(&state);
    if used + 2 + length <= width {
        let style = if app.is_paused() {
            paint.chosen()
        } else {
            paint.bold()
        };
        put(buffer, (width - length) as u16, row, &state, style);
    }
    text::picked(&app.wish).is_none_or(|picked| line.contains(&*printable(&picked)))
}

fn views(app: &App, paint: Paint, buffer: &mut Buffer, row: u16) {
    let mut column = 0;
    for (number, view) in (1..).zip(View::ALL) {
        let style = if view == app.wish.view {
            paint.chosen()
        } else {
            Style::new()
        };
        let text = format!(" {number} {} ", view.name());
        column = put(buffer, column, row, &text, style);
    }
    let mut about = Vec::new();
    if app.wish.search.is_on() {
        let pattern = app
            .wish
            .search
            .0
            .as_ref()
            .map_or("", |regex| regex.as_str());
        about.push(format!("lines with /{pattern}/"));
    }
    if let Some(shown) = app.shown() {
        if let Some(gone) = shown.about.as_ref().filter(|_| shown.is_gone) {
            let name = in_form(&gone.name, gone.language, Form::Short);
            about.push(format!("{name} is in no stack"));
        }
        about.extend(shown.listing.about.iter().cloned());
        if shown.events.len() > 1 {
            about.push(format!("event {}", shown.whole.event));
        }
        if let Some(name) = &app.wish.event
            && shown.seen.profile.event_named(name).is_none()
        {
            about.push(format!("event {name} has no samples yet"));
        }
    }
    if app.wish.view == View::Flat {
        about.push(format!("by {}", text::order(&app.wish)));
    }
    let room = usize::from(buffer.area.width.saturating_sub(column + 1));
    let line = parts::joined(&about, " · ", room);
    put(buffer, column + 1, row, &line, paint.warm());
}

fn keys(app: &App, paint: Paint, buffer: &mut Buffer, row: u16) {
    let mut column = 0;
    for (key, what) in text::keys(app) {
        let length = (display_width(key) + display_width(what) + 3) as u16;
        if column + length > buffer.area.width {
            break;
        }
        column = put(buffer, column, row, key, paint.bold());
        column = put(buffer, column + 1, row, what, paint.faint()) + 2;
    }
}

fn prompt(prompt: &Prompt, paint: Paint, buffer: &mut Buffer, row: u16) {
    clear(buffer, row);
    let question = match prompt.purpose {
        Purpose::Search => "lines with: ",
        Purpose::Focus => "only stacks with: ",
        Purpose::Find => "find: ",
        Purpose::Who => "only command, process or thread: ",
        Purpose::Time => "only time, in seconds (A..B): ",
        Purpose::Write => "write to: ",
    };
    let width = usize::from(buffer.area.width);
    let column = put(buffer, 0, row, question, paint.bold());
    let room = width.saturating_sub(usize::from(column) + 1);
    // Of a long answer the end is seen, where characters come and go.
    let text = printable(&prompt.text);
    let end = last_columns(&text, room);
    let style = if prompt.is_old {
        paint.chosen()
    } else {
        Style::new()
    };
    let column = put(buffer, column, row, end, style);
    let column = put(buffer, column, row, " ", paint.chosen());
    let room = width.saturating_sub(usize::from(column) + 1);
    match &prompt.wrong {
        Some(wrong) => {
            put(buffer, column + 1, row, wrong, paint.hot());
        }
        None => {
            let hint = parts::joined(&prompt.hints, ", ", room);
            put(buffer, column + 1, row, &hint, paint.faint());
        }
    }
}

fn clear(buffer: &mut Buffer, row: u16) {
    let line = Rect {
        y: row,
        height: 1,
        ..buffer.area
    };
    for column in line.left()..line.right() {
        buffer[(column, row)].reset();
    }
}

// A text from outside, as far as there is room; gives the column behind it.
fn put(buffer: &mut Buffer, column: u16, row: u16, text: &str, style: Style) -> u16 {
    let area = buffer.area;
    if column >= area.right() || row >= area.bottom() {
        return area.right();
    }
    let room = usize::from(area.right() - column);
    buffer
        .set_stringn(column, row, printable(text), room, style)
        .0
}
