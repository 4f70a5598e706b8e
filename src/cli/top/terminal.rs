//! The terminal: whether there is one, what it can show, and its modes.

use std::io::{self, IsTerminal};

use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{DefaultTerminal, Frame, TerminalOptions, Viewport};
use terminal_size::{Height, Width, terminal_size_of};

// A window can claim 65535 columns and rows, which would take 200 GB.
const MOST: u16 = 1000;
// The size of a terminal that does not know its own.
const USUAL: (u16, u16) = (80, 24);

pub fn can_be_drawn_on() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stdout().is_terminal() && !is_dumb
}

pub fn area() -> Rect {
    let found = terminal_size_of(io::stdout());
    let (width, height) = found.map_or(USUAL, |(Width(width), Height(height))| (width, height));
    Rect::new(0, 0, width.min(MOST), height.min(MOST))
}

#[derive(Clone, Copy, Debug)]
pub struct Terminals {
    has_input: bool,
}

impl Terminals {
    // Those that standard input and output are now; output is one.
    pub fn now() -> Terminals {
        Terminals {
            has_input: io::stdin().is_terminal(),
        }
    }

    // Whether they are still there: of a terminal that was hung up not even the settings can be
    // read. A process without a controlling terminal gets no SIGHUP then.
    pub fn are_there(self) -> bool {
        io::stdout().is_terminal() && (!self.has_input || io::stdin().is_terminal())
    }
}

// The first of these variables that says anything decides.
pub fn has_unicode() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(set)
        .unwrap_or_default()
        .to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

// Given back however it is left.
pub struct Screen {
    // There until it is dropped.
    terminal: Option<DefaultTerminal>,
    area: Rect,
}

impl Screen {
    // On an error the terminal is given back.
    pub fn open() -> io::Result<Screen> {
        // A fixed area, as its size is not to be believed without a limit.
        let area = area();
        let viewport = Viewport::Fixed(area);
        let opened =
            ratatui::try_init_with_options(TerminalOptions { viewport }).and_then(|terminal| {
                execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
                Ok(Screen {
                    terminal: Some(terminal),
                    area,
                })
            });
        if opened.is_err() {
            let _ = ratatui::try_restore();
        }
        opened
    }

    fn terminal(&mut self) -> &mut DefaultTerminal {
        self.terminal.as_mut().expect("it is taken in drop only")
    }

    pub fn leave(&mut self) {
        let _ = self.terminal().show_cursor();
        let _ = ratatui::try_restore();
    }

    // Whatever its modes are now; everything is to be drawn again.
    pub fn enter(&mut self) -> io::Result<()> {
        // Else raw mode is taken for still set, although the shell has its own now.
        disable_raw_mode()?;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        self.clear()
    }

    // Clears the screen, in its present size.
    pub fn clear(&mut self) -> io::Result<()> {
        execute!(io::stdout(), Clear(ClearType::All))?;
        self.area = area();
        let area = self.area;
        self.terminal().resize(area)
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if self.area != area() {
            self.clear()?;
        }
        self.terminal().draw(draw).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let is_gone = self.terminal().show_cursor().is_err();
        let _ = ratatui::try_restore();
        if is_gone {
            // It would show the cursor again, and panic as it cannot say that it could not.
            std::mem::forget(self.terminal.take());
        }
    }
}
