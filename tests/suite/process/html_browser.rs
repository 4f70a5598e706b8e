//! What a page does when somebody uses it: its scripts run in chromium, where that is installed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support;
use crate::support::html::proftool;
use crate::support::record::{Room, can_record};
use crate::support::record_calls;
use crate::support::written::{CPU_CLOCK, Recording};

/// Runs steps, which return an object, in a page of a file; `None`, and the test reports that it is skipped,
/// where there is no chromium.
pub(super) fn used(directory: &Path, file: &str, steps: &str) -> Option<Value> {
    let page = proftool(&["export", "--to", "html", file], directory);
    let page = String::from_utf8(page).unwrap();
    // The policy of the page allows no script but its own.
    let (before, policy) = page
        .split_once("<meta http-equiv=\"Content-Security-Policy\"")
        .unwrap();
    let after = policy.split_once('>').unwrap().1;
    let driver = format!(
        "<script>(async () => {{
          const later = milliseconds => new Promise(done => setTimeout(done, milliseconds));
          const tab = async name => {{ byId(`tab-view-${{name}}`).click(); await later(400); }};
          const set = async (id, value, kind) => {{ byId(id).value = value; byId(id).dispatchEvent(new Event(kind)); await later(400); }};
          const press = (id, key) => byId(id).dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true }}));
          let found;
          try {{ await later(300); found = await (async () => {{ {steps} }})(); }} catch (error) {{ found = {{ error: String(error) }}; }}
          document.documentElement.replaceChildren(document.createElement('body'));
          document.body.textContent = 'found:' + btoa(unescape(encodeURIComponent(JSON.stringify(found)))) + ':end';
        }})();</script></body>"
    );
    let driven = format!("{before}{after}").replace("</body>", &driver);
    std::fs::write(directory.join("driven.html"), driven).unwrap();
    let profile = format!("--user-data-dir={}", directory.join("browser").display());
    let address = format!("file://{}", directory.join("driven.html").display());
    let said = support::ran(
        Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .args(["--window-size=1280,900", "--virtual-time-budget=20000"])
            .args([&profile, &address]),
    )?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let (_, found) = said.split_once("found:").expect(&said);
    let found = found.split_once(":end").unwrap().0;
    let found = STANDARD.decode(found).unwrap();
    let found: Value = serde_json::from_slice(&found).unwrap();
    assert!(found.get("error").is_none(), "{found}");
    Some(found)
}

const STACKS: &str = "main;parse;lex;parse;lex 40\nmain;parse;eval;parse 30\nmain;parse;lex 20\n";

#[test]
fn a_search_says_what_it_finds_and_enter_selects_it() {
    let directory = support::directory("html_browser_search");
    std::fs::write(directory.join("stacks.folded"), STACKS).unwrap();
    let steps = "
      await set('search', 'no such', 'input');
      const nothing = byId('search-note').textContent;
      await tab('graph');
      await set('search', 'eva', 'input');
      const one = byId('search-note').textContent;
      const marked = [...document.querySelectorAll('.node.found')].map(node => node.getAttribute('aria-description'));
      press('search', 'Enter');
      await later(300);
      return { nothing, one, marked, selected: document.querySelector('#view-graph .of-function').textContent };";
    let Some(found) = used(&directory, "stacks.folded", steps) else {
        return;
    };
    assert_eq!(found["nothing"], "No function matches.");
    assert_eq!(found["one"], "1 function matches; Enter selects it.");
    let marked = found["marked"].as_array().unwrap();
    assert_eq!(marked.len(), 1, "{found}");
    assert!(
        marked[0]
            .as_str()
            .unwrap()
            .starts_with("eval: total 33.33 %")
    );
    assert_eq!(found["selected"], "eval");
}

#[test]
fn figures_of_a_frame_go_with_the_tree_that_has_them() {
    let directory = support::directory("html_browser_flame");
    std::fs::write(directory.join("stacks.folded"), STACKS).unwrap();
    let steps = "
      await tab('flame');
      for (let i = 0; i < 4; i++) press('flame', 'ArrowDown');
      const before = byId('flame-status').textContent;
      await set('degree', 'full', 'change');
      return { before, after: byId('flame-status').textContent };";
    let Some(found) = used(&directory, "stacks.folded", steps) else {
        return;
    };
    assert!(
        found["before"].as_str().unwrap().contains("total "),
        "{found}"
    );
    assert_eq!(found["after"], "");
}

#[test]
fn a_drawing_keeps_its_place_when_the_time_changes() {
    let case = support::cases("perf.data").into_iter().next().unwrap();
    let directory = support::directory("html_browser_place");
    std::fs::copy(case.join("perf.data"), directory.join("perf.data")).unwrap();
    let steps = "
      await tab('graph');
      for (let i = 0; i < 12; i++) byId('drawing-larger').click();
      byId('drawing').scrollTo(120, 90);
      const place = () => [byId('drawing').scrollLeft, byId('drawing').scrollTop];
      const before = place(), of = drawing.key;
      await tab('overview');
      await set('time-last', Number(byId('time-last').max) - 1, 'input');
      await set('time-last', byId('time-last').value, 'change');
      await tab('graph');
      return { before, after: place(), is_drawn_anew: of !== drawing.key };";
    let Some(found) = used(&directory, "perf.data", steps) else {
        return;
    };
    assert_eq!(found["is_drawn_anew"], true);
    assert_eq!(found["before"], serde_json::json!([120, 90]));
    assert_eq!(found["after"], found["before"]);
}

#[test]
fn a_page_without_samples_says_so_in_every_view() {
    let directory = support::directory("html_browser_empty");
    let recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.write(&directory.join("perf.data"));
    let steps = "
      const shown = [];
      for (const view of ['overview', 'flame', 'callers', 'graph', 'source']) {
        await tab(view);
        shown.push(document.querySelector('main').innerText.trim());
      }
      return { shown };";
    let Some(found) = used(&directory, "perf.data", steps) else {
        return;
    };
    let shown = found["shown"].as_array().unwrap();
    let overview = shown[0].as_str().unwrap();
    assert!(overview.contains("no samples were recorded"), "{overview}");
    assert!(!overview.contains("recorded over"), "{overview}");
    for view in &shown[1..] {
        assert_eq!(view, "This event has no samples.");
    }
}

#[test]
fn one_thing_is_one() {
    let directory = support::directory("html_browser_one");
    std::fs::write(directory.join("stacks.folded"), "main 1\n").unwrap();
    let steps = "
      const table = byId('table-note').textContent;
      await tab('flame');
      const frame = frameText(0), frames = byId('flame-note').textContent;
      await tab('graph');
      return { table, frame, frames, drawing: byId('drawing-note').textContent };";
    let Some(found) = used(&directory, "stacks.folded", steps) else {
        return;
    };
    assert_eq!(found["table"], "1 of 1 function");
    assert_eq!(found["frame"], "all samples: 1 sample");
    assert_eq!(found["frames"], "1 frame, 1 level.");
    let drawing = found["drawing"].as_str().unwrap();
    assert!(drawing.starts_with("The only function"), "{drawing}");
}

#[test]
fn a_path_is_shortened_at_its_start_so_that_functions_differ() {
    let directory = support::directory("html_browser_paths");
    let path = "company::department::library";
    let stacks = format!(
        "main;{path}::reader;{path}::writer 40\nmain;{path}::parser::run<{path}::a, {path}::b> 50\n"
    );
    std::fs::write(directory.join("stacks.folded"), stacks).unwrap();
    let steps = "
      await tab('graph');
      const boxes = [...document.querySelectorAll('.node .title')].map(title => title.textContent);
      return { boxes, narrow: fitted(measuring, 'company::department', 40) };";
    let Some(found) = used(&directory, "stacks.folded", steps) else {
        return;
    };
    let boxes = found["boxes"].as_array().unwrap();
    let mut names: Vec<&str> = boxes.iter().map(|name| name.as_str().unwrap()).collect();
    names.sort_unstable();
    let expected = [
        "main",
        "…::library::parser::run",
        "…::library::reader",
        "…::library::writer",
    ];
    assert_eq!(names, expected);
    let narrow = found["narrow"].as_str().unwrap();
    assert!(narrow.starts_with('c') && narrow.ends_with('…'), "{narrow}");
}

/// A box of two members is narrow: the number of those that are drawn has to stand in it.
#[test]
fn the_box_of_a_cycle_has_room_for_its_members() {
    let directory = support::directory("html_browser_cycle");
    std::fs::write(directory.join("stacks.folded"), STACKS).unwrap();
    let steps = "
      await tab('graph');
      return { title: document.querySelector('.cluster .title').textContent };";
    let Some(found) = used(&directory, "stacks.folded", steps) else {
        return;
    };
    assert_eq!(found["title"], "cycle 1, 3 members");
}

/// The calls of a function, as `flat` writes them for people: by others and by itself.
fn calls_in_text(row: &Value) -> String {
    let (others, recursive) = (row["calls"].as_u64(), row["recursive_calls"].as_u64());
    let mark = if row["calls_at_least"] == true {
        "≥"
    } else {
        ""
    };
    match (others, recursive.unwrap_or(0)) {
        (None, 0) => String::new(),
        (others, 0) => format!("{mark}{}", others.unwrap_or(0)),
        (others, recursive) => format!("{mark}{}+{recursive}", others.unwrap_or(0)),
    }
}

#[test]
fn calls_in_a_page_are_those_of_the_command_line() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let text = "#include <stdlib.h>\n\
        __attribute__((noipa)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n\
        __attribute__((noipa)) long twice(long n) { return fib(n) + fib(n); }\n\
        int main(void) { return twice(33) + (getenv(\"none\") != 0) + fib(25) == 0; }\n";
    let Some(program) = record_calls::built(&room, text, &[], "prog") else {
        return;
    };
    record_calls::counted(&room, &["-F", "4999"], &[program.to_str().unwrap()]);
    let steps = "
      await later(300);
      const table = Object.fromEntries([...document.querySelectorAll('#functions [data-function]')].map(row => [row.dataset.function, row.querySelector('.calls').textContent]));
      const legend = byId('table-note').textContent;
      choose(functions.names.indexOf('fib'), 'callers');
      await later(500);
      const titles = [...document.querySelectorAll('#callers table:first-of-type th')].map(cell => cell.textContent);
      const callers = Object.fromEntries([...document.querySelector('#callers table').rows].slice(1).map(row => [row.cells[3].textContent, row.cells[2].textContent]));
      await tab('overview');
      await set('time-first', 1, 'input');
      await set('time-first', 1, 'change');
      const inPart = byId('table-note').textContent;
      byId('time-all').click();
      await later(300);
      await set('time-last', Math.floor(byId('time-last').max * 0.6), 'input');
      await set('time-last', byId('time-last').value, 'change');
      choose(functions.names.indexOf('main'), 'graph');
      for (let i = 0; i < 20 && !document.querySelector('#view-graph table'); i++) await later(200);
      const entry = document.querySelector('#view-graph').textContent;
      return { table, legend, titles, callers, inPart, entry };";
    let Some(found) = used(&room.0, "out.data", steps) else {
        return;
    };
    let json = |args: &[&str]| -> Value {
        let text = record_calls::answer(&room, &[args, &["--format", "json"]].concat()).stdout;
        serde_json::from_slice(&text).unwrap()
    };
    let table: BTreeMap<String, String> = serde_json::from_value(found["table"].clone()).unwrap();
    let flat = json(&["flat", "out.data", "--limit", "0"]);
    let rows = flat["functions"].as_array().unwrap();
    let mut known = 0;
    for row in rows {
        let shown = table[row["name"].as_str().unwrap()].replace(',', "");
        assert_eq!(shown, calls_in_text(row), "{row}");
        known += usize::from(!shown.is_empty());
    }
    assert!(known >= 2, "{found}");
    assert_eq!(table["fib"], "3+23,054,328");
    let has_least = rows.iter().any(|row| row["calls_at_least"] == true);
    let says_so = |note: &Value| note.as_str().unwrap().contains("≥ at least");
    assert_eq!(says_so(&found["legend"]), has_least);
    let callers: BTreeMap<String, String> =
        serde_json::from_value(found["callers"].clone()).unwrap();
    let detail = json(&["detail", "fib", "out.data"]);
    for row in detail["callers"].as_array().unwrap() {
        let shown = callers[row["name"].as_str().unwrap()].replace(',', "");
        assert_eq!(shown, calls_in_text(row), "{row}");
    }
    assert_eq!(found["titles"][2], "calls");
    // main calls fib at the end only, and a part of time does not have the counted call either.
    let entry = found["entry"].as_str().unwrap();
    assert!(
        entry.contains("→ twice") && !entry.contains("→ fib"),
        "{entry}"
    );
    let note = found["inPart"].as_str().unwrap();
    assert!(
        note.contains("Numbers of calls are those of the whole recording"),
        "{note}"
    );
}

#[test]
fn the_way_back_leads_through_views_and_functions() {
    let directory = support::directory("html_browser_back");
    std::fs::write(directory.join("stacks.folded"), STACKS).unwrap();
    let steps = "
      const place = () => `${state.view} ${label(state.chosen)} ${document.activeElement.id}`;
      const first = history.length;
      const back = async () => {
        if (history.length === first) throw new Error('there is no way back');
        history.back();
        await later(500);
      };
      const button = (where, name) => [...document.querySelectorAll(`${where} button`)].find(it => it.textContent === name);
      button('#functions', 'lex').focus();
      button('#functions', 'lex').click();
      await later(400);
      const places = [place()];
      button('#callers', 'parse').click();
      await later(400);
      places.push(place());
      await tab('flame');
      await back();
      places.push(place());
      await set('search', 'lex', 'input');
      await back();
      places.push(place());
      await back();
      places.push(place());
      return { places };";
    let Some(found) = used(&directory, "stacks.folded", steps) else {
        return;
    };
    let found: Vec<String> = serde_json::from_value(found["places"].clone()).unwrap();
    // A hidden button cannot keep the focus: it goes to the tab.
    assert_eq!(found[0], "callers lex tab-view-callers");
    let views: Vec<&str> = found
        .iter()
        .map(|place| place.rsplit_once(' ').unwrap().0)
        .collect();
    let expected = [
        "callers lex",
        "callers parse",
        "callers parse",
        "callers lex",
        "overview lex",
    ];
    assert_eq!(views, expected);
}
