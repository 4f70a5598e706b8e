//! What a page shows first, what its links lead to, and that what was chosen is in sight, in chromium.

use std::collections::BTreeSet;

use serde_json::Value;

use super::html_browser::used;
use crate::support;

/// A crate without modules, its library and the standard library.
const OWNERS: &str = "\
app::main;core::a;core::b;core::c;app::work;serde::parse 60
app::main;core::a;core::b;core::c;app::work;[kernel];app::work 10
app::main;core::a;core::b;core::c;app::rest 30
";

#[test]
fn the_first_screen_of_a_page_has_the_graph_and_the_table() {
    let case = support::cases("perf.data").into_iter().next().unwrap();
    let directory = support::directory("html_browser_first");
    std::fs::copy(case.join("perf.data"), directory.join("perf.data")).unwrap();
    let steps = "
      const top = it => it.getBoundingClientRect().top, event = current(), reasons = byId('reasons');
      const rows = [...document.querySelectorAll('#functions [data-function]')];
      const isClosed = !reasons.checkVisibility();
      byId('chip').click();
      await later(300);
      return {
        order: [byId('title'), byId('flame'), byId('heat'), rows[0], rows[3]].map(top), isClosed, isOpen: reasons.checkVisibility(),
        cells: rows.map(row => [row.dataset.self, row.cells ?? [...row.children].map(cell => cell.textContent)]),
        threads: [...byId('heat-names').children].map(it => it.textContent), wanted: event.time.threads,
        axis: [...byId('heat-axis').children].map(it => it.textContent) };";
    let Some(found) = used(&directory, "perf.data", steps) else {
        return;
    };
    let order: Vec<f64> = serde_json::from_value(found["order"].clone()).unwrap();
    assert!(order.is_sorted() && order[4] < 880.0, "{order:?}");
    assert_eq!(
        (&found["isClosed"], &found["isOpen"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    for row in found["cells"].as_array().unwrap() {
        let exact: f64 = row[0].as_str().unwrap().parse().unwrap();
        let shown = row[1][2].as_str().unwrap().replace(',', "");
        assert_eq!(shown, format!("{:.3}", exact / 1e6));
    }
    assert_eq!(found["threads"], found["wanted"]);
    let axis = found["axis"].as_array().unwrap();
    assert!(
        axis.len() > 1 && axis[0].as_str().unwrap().ends_with(" s"),
        "{axis:?}"
    );
}

#[test]
fn chains_of_runtime_code_are_folded_into_their_last_frame() {
    let directory = support::directory("html_browser_folds");
    std::fs::write(directory.join("stacks.folded"), OWNERS).unwrap();
    let steps = "
      await tab('flame');
      const walk = () => {
        const names = [];
        for (let i = neighbour(0, 'ArrowDown'); i >= 0; i = neighbour(i, 'ArrowDown')) names.push(`${flame.rows.row[i]} ${label(flame.tree.fn[i])}`);
        return names;
      };
      const folded = walk(), last = flame.tree.fn.findIndex(id => label(id) === 'core::c'), said = frameText(last);
      await set('folding', 'whole', 'change');
      const color = name => ownerColor(functions.owners[functionOf(name)], false, false);
      return { folded, said, whole: walk(), link: location.hash, colors: ['app::work', 'app::rest', 'core::a', 'serde::parse', '[kernel]'].map(color),
        owners: [...byId('flame-owners').children].map(it => it.textContent) };";
    let Some(found) = used(&directory, "stacks.folded", steps) else {
        return;
    };
    let folded = ["1 app::main", "2 core::c", "3 app::work", "4 serde::parse"];
    assert_eq!(found["folded"], serde_json::json!(folded), "{found}");
    let said = found["said"].as_str().unwrap();
    assert!(
        said.ends_with("⋯ 2 frames folded into it: core::a → core::b"),
        "{said}"
    );
    assert_eq!(found["whole"].as_array().unwrap().len(), 6);
    assert_eq!(found["link"], "#flame&fold=off");
    let colors: Vec<&str> = (found["colors"].as_array().unwrap().iter())
        .map(|it| it.as_str().unwrap())
        .collect();
    assert_eq!(colors[0], colors[1]);
    let different: BTreeSet<_> = colors[1..].iter().collect();
    assert_eq!(different.len(), 4, "{colors:?}");
    assert_eq!(found["owners"][0], "serde");
}

#[test]
fn a_link_leads_to_the_state_that_it_was_made_in() {
    let case = support::cases("perf.data").into_iter().next().unwrap();
    let directory = support::directory("html_browser_link");
    std::fs::copy(case.join("perf.data"), directory.join("perf.data")).unwrap();
    let steps = "
      const seen = () => ({ view: state.view, name: label(state.chosen), search: byId('search').value, degree: byId('degree').value,
        zoom: flame.zoom, frame: flame.chosen > 0 && label(flame.tree.fn[flame.chosen]), time: isBrushed(current()) && brushRange(current()), order: functionTable.sort });
      await set('time-last', Math.floor(byId('time-last').max * 0.8), 'input');
      await set('time-last', byId('time-last').value, 'change');
      [...document.querySelectorAll('#functions .head button')].find(it => it.textContent === 'total %').click();
      await set('search', 'a', 'input');
      await tab('flame');
      await set('degree', 'full', 'change');
      const ids = current().flat.functions, id = ids.findLast(id => timePart().figuresOf(id).total > 0 && flame.tree.fn.includes(id));
      choose(id);
      await later(500);
      const link = location.hash, before = seen();
      location.hash = '#overview';
      await later(600);
      const between = seen();
      location.hash = link;
      await later(800);
      return { link, before, between, after: seen() };";
    let Some(found) = used(&directory, "perf.data", steps) else {
        return;
    };
    assert_eq!(found["after"], found["before"], "{found}");
    assert_eq!(found["before"]["frame"], found["before"]["name"], "{found}");
    assert_eq!(found["between"]["search"], "");
    assert_eq!(found["between"]["time"], false);
    let link = found["link"].as_str().unwrap();
    for part in [
        "#flame&focus=",
        "&search=a",
        "&time=",
        "&sort=total",
        "&collapse=full",
    ] {
        assert!(link.contains(part), "{link}");
    }
}

#[test]
fn the_selected_function_is_in_the_drawing() {
    let directory = support::directory("html_browser_selected");
    let light = |i: u32| format!("main;middle{};leaf{i} {}\n", i % 9, 1000 - i);
    let stacks: String = (0..400).map(light).collect();
    std::fs::write(directory.join("stacks.folded"), stacks).unwrap();
    let steps = "
      await tab('graph');
      const found = [];
      for (const name of ['main', 'leaf60', 'leaf399', 'main']) {
        choose(functionOf(name));
        await later(500);
        found.push([drawing.nodes.has(state.chosen), drawing.nodes.size, byId('drawing-level').value]);
      }
      return { found };";
    let Some(found) = used(&directory, "stacks.folded", steps) else {
        return;
    };
    let expected = serde_json::json!([
        [true, 25, "0"],
        [true, 75, "1"],
        [true, 2, "around"],
        [true, 25, "0"]
    ]);
    assert_eq!(found["found"], expected);
}
