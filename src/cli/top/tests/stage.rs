//! A view without a terminal: keys go in, screens come out as text.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proftool::base::{Event, WeightSum};
use proftool::profile::{Builder, Function, FunctionId, FunctionKind, Module, Profile, Thread};
use proftool::view::flat::Sort;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::super::advice::Situation;
use super::super::super::query::focus;
use super::super::app::{Action, App};
use super::super::draw::{self, Paint};
use super::super::key::Key;
use super::super::prepare::Preparer;
use super::super::source::{Seen, Source, State, Written};
use super::super::text::Shown;

// `eval` and `apply` call each other, `sum` calls itself. Milliseconds.
pub const CALCULATOR: &str = "\
main [calc];parse [calc];lex [calc] 900
main [calc];parse [calc];lex [calc];memchr [libc.so.6] 600
main [calc];eval [calc];apply [calc] 700
main [calc];eval [calc];apply [calc];eval [calc];lookup [calc] 2400
main [calc];eval [calc];apply [calc];eval [calc];apply [calc];sum [calc] 500
main [calc];eval [calc];apply [calc];sum [calc];sum [calc];sum [calc] 1300
main [calc];eval [calc];lookup [calc];calc::table::Map<K, V>::find [calc];memcmp [libc.so.6] 1100
main [calc];print [calc];fputs [libc.so.6] 40";

// `lex` has become the hottest, and functions come in another order.
pub const LATER: &str = "\
main [calc];print [calc];fputs [libc.so.6] 60
main [calc];eval [calc];apply [calc];eval [calc];lookup [calc] 2500
main [calc];eval [calc];apply [calc] 700
main [calc];parse [calc];lex [calc] 9000";

// Weights are in milliseconds of cpu-clock, a sample each 10 ms. A function is its name and module.
pub fn profile(stacks: &str) -> Profile {
    built(stacks).0.finish()
}

// The profile before its end, and its functions by name and module.
pub fn built(stacks: &str) -> (Builder, HashMap<&str, FunctionId>) {
    let mut builder = Builder::default();
    let event = builder.event(Event::named("cpu-clock"));
    let mut functions = HashMap::new();
    for line in stacks.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let thread = builder.thread(Thread::new(1, 1, "calc"));
        let mut path = None;
        for frame in stack.split(';') {
            let (name, module) = frame.rsplit_once(" [").unwrap();
            let module = module.trim_end_matches(']');
            let function = *functions.entry(frame).or_insert_with(|| {
                let module = builder.module(Module {
                    name: module.into(),
                    path: module.into(),
                });
                let mut function = Function::named(name, module);
                function.language = proftool::names::of_text(name);
                if name.starts_with('[') {
                    function.kind = FunctionKind::Mark;
                }
                builder.function(function)
            });
            path = Some(builder.path(path, function, false));
        }
        let weight: u64 = weight.parse().unwrap();
        let count = weight.div_ceil(10);
        builder.sample(
            event,
            thread,
            path.unwrap(),
            None,
            WeightSum::equal(weight * 1_000_000, count),
        );
    }
    (builder, functions)
}

// What is shown after this number of seconds.
pub fn seen(number: u64, stacks: &str) -> Arc<Seen> {
    seen_of(number, profile(stacks))
}

pub fn seen_of(number: u64, profile: Profile) -> Arc<Seen> {
    let elapsed = Duration::from_secs(number * 5);
    Arc::new(Seen::all_of(number, profile, elapsed))
}

struct Nowhere;

impl Source for Nowhere {
    fn latest(&self) -> Option<Arc<Seen>> {
        None
    }
    fn set_half_life(&self, _: Option<Duration>) {}
    fn reset(&self) {}
    fn write(&self, _: &Seen, _: &std::path::Path) -> Result<Written, String> {
        Err("nothing to write".into())
    }
    fn state(&self) -> State {
        State::Recorded(None)
    }
    fn stop(&self) {}
}

pub struct Stage {
    pub app: App,
    preparer: Preparer,
    size: (u16, u16),
    pub paint: Paint,
    made: Option<(u64, u64)>,
}

impl Stage {
    // It has seen these stacks.
    pub fn new(width: u16, height: u16, stacks: &str) -> Stage {
        let mut stage = Stage {
            app: App::new(Sort::SelfWeight, None),
            preparer: Preparer::default(),
            size: (width, height),
            paint: Paint {
                color: false,
                unicode: true,
            },
            made: None,
        };
        stage.app.wish.resolve = Some(focus::resolved);
        stage.see(seen(1, stacks));
        stage
    }

    pub fn of_recording(width: u16, height: u16, stacks: &str) -> Stage {
        let mut stage = Stage::new(width, height, stacks);
        stage.app.state = State::Recorded(None);
        stage
    }

    pub fn size(&mut self, width: u16, height: u16) {
        self.size = (width, height);
        self.prepare();
    }

    pub fn see(&mut self, seen: Arc<Seen>) {
        self.app.see(Some(seen));
        self.prepare();
    }

    // Sees something new, of which nothing is made yet.
    pub fn see_only(&mut self, seen: Arc<Seen>) {
        self.app.see(Some(seen));
    }

    // What is wished and not there.
    fn prepare(&mut self) {
        let (width, height) = self.size;
        let area = ratatui::layout::Rect::new(0, 0, width, height);
        self.app.resize(draw::room(area));
        self.app.widen(usize::from(width));
        let Some(current) = self.app.current().cloned() else {
            return;
        };
        let asked = (current.number, self.app.wish.revision);
        if self.made != Some(asked) {
            self.made = Some(asked);
            let wish = &self.app.wish;
            let mut prepared = self.preparer.prepare(&current, wish);
            let situation = (&Nowhere as &dyn Source, &Situation::Top);
            prepared.page = self.preparer.page(&current, wish, situation);
            self.app.receive(prepared);
        }
    }

    pub fn key(&mut self, key: Key) -> Action {
        let action = self.app.key(key);
        self.prepare();
        action
    }

    pub fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            self.key(Key::Char(c));
        }
    }

    // Without spaces at the ends of lines.
    pub fn screen(&mut self) -> String {
        let (width, height) = self.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let shown = Shown {
            target: "./calc --fast (process 4711)".into(),
            how: "997 Hz, stacks: frame pointers".into(),
            situation: super::super::super::advice::Situation::Top,
        };
        let (app, paint) = (&mut self.app, self.paint);
        terminal
            .draw(|frame| {
                app.resize(draw::room(frame.area()));
                draw::draw(app, &shown, paint, frame.buffer_mut());
            })
            .unwrap();
        let buffer = terminal.backend().buffer();
        let mut text = String::new();
        for row in buffer.content.chunks(usize::from(width.max(1))) {
            let line: String = row.iter().map(|cell| cell.symbol()).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    // The function names of the list, in order, as far as they are on the screen.
    pub fn names(&self) -> Vec<String> {
        let shown = self.app.shown().unwrap();
        let name = |line: &super::super::listing::Line| {
            let id = line.function?;
            Some(shown.seen.profile.functions[id].name.clone())
        };
        shown.listing.lines.iter().filter_map(name).collect()
    }

    pub fn chosen(&self) -> String {
        let shown = self.app.shown().unwrap();
        let identity = shown.identity(self.app.cursor().index());
        identity.map_or(String::new(), |identity| identity.name.to_string())
    }
}

// The calculator on a terminal of the usual size.
pub fn stage() -> Stage {
    Stage::new(80, 24, CALCULATOR)
}
