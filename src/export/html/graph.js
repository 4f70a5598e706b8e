// The call graph: the entries of the listing of `graph`, and cycles with their members.
const FEW = 25; // callers, members and callees of an entry before all are asked for
const CYCLES = 10, FEW_OF_CYCLE = 8;
const LINE = ['relation', 'who', 'total', 'self', 'children', 'samples', 'most', 'unknown', 'called', 'evidence', 'inferred'];

async function listingOf(event) {
  const columns = await unpack(event.graph.columns), count = columns.number();
  const codes = columns.column(count), lengths = columns.column(count, Uint32Array);
  const lines = lengths.reduce((sum, length) => sum + length, 0);
  const listing = { codes, first: new Uint32Array(count + 1), index: new Map(), cycleOf: new Map(), cycles: [] };
  lengths.forEach((length, i) => { listing.first[i + 1] = listing.first[i] + length; });
  for (const key of LINE) listing[key] = columns.column(lines);
  codes.forEach((code, i) => {
    listing.index.set(code, i);
    if (!(code % 2)) return;
    const number = (code - 1) / 2, members = [];
    for (let line = listing.first[i]; line < listing.first[i + 1]; line++) {
      if (listing.relation[line] === 2) { members.push(line); listing.cycleOf.set(listing.who[line] - 2, number); }
    }
    listing.cycles[number] = { entry: i, members };
  });
  return listing;
}

/** What a line is about: a button for a function, a text for what is none. */
function lineName(listing, line) {
  const who = listing.who[line];
  if (who < 2) return element('span', { textContent: who ? '<not known>' : '<spontaneous>' });
  const code = who - 2, index = listing.index.has(code) ? ` [${listing.index.get(code) + 1}]` : '';
  if (code % 2) return element('span', { textContent: `<cycle ${(code - 1) / 2} as a whole>${index}` });
  const cycle = listing.cycleOf.get(code);
  const mark = listing.inferred[line] ? '≈' : '';
  return element('span', {}, functionButton(code / 2, mark + label(code / 2)), `${cycle ? ` <cycle ${cycle}>` : ''}${index}`);
}

function lineRow(event, listing, line, entry) {
  const maybe = (value, show) => (value ? show(value - 1) : '');
  const total = maybe(listing.total[line], value => percent(value, event.total));
  const most = maybe(listing.most[line], value => (listing.unknown[line] ? '? ' : '') + percent(value, event.total));
  const relation = listing.relation[line], texts = event.graph.texts;
  const name = element('span', {}, ['← ', '', '· ', '→ '][relation], lineName(listing, line));
  return {
    kind: relation === 1 ? 'primary' : '',
    cells: [relation === 1 ? `[${entry + 1}]` : '', name, total, most === total ? '' : most,
      maybe(listing.self[line], value => weight(value, event)), listing.self[line] ? weight(listing.children[line], event) : '',
      maybe(listing.samples[line], grouped), listing.called[line] ? texts[listing.called[line] - 1] : '', listing.evidence[line] ? texts[listing.evidence[line] - 1] : ''],
  };
}

function entryTable(event, listing, entry, lines, most = FEW) {
  // On a narrow screen the function is what has to be seen first.
  const titles = ['index', 'function', { number: 'total %' }, { number: 'at most %' }, { number: 'self' }, { number: 'children' }, { number: 'samples' }, { number: 'called' }, 'evidence'];
  // Callers with the heaviest last, then what the entry is about, members and callees with the heaviest first.
  const count = [0, 0, 0, 0], rank = lines.map(line => count[listing.relation[line]]++);
  const few = place => {
    const relation = listing.relation[lines[place]];
    return (relation === 0 ? count[0] - 1 - rank[place] : rank[place]) < most;
  };
  return longTable(lines, few, shown => {
    const rows = shown.map(line => lineRow(event, listing, line, entry));
    const used = titles.map((_, i) => i === 1 || rows.some(row => row.cells[i] !== '' && row.cells[i] !== 'sampled'));
    const only = list => list.filter((_, i) => used[i]);
    return table(only(titles), rows.map(row => ({ kind: row.kind, cells: only(row.cells) })));
  });
}

const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);

async function showGraph() {
  const event = current(), id = state.chosen;
  const listing = await once(event, 'graph', () => listingOf(event));
  if (event !== current() || id !== state.chosen) return;
  const entry = listing.index.get(2 * id), where = byId('entry');
  const command = event.commands.graph;
  showCommand('graph', command && entry !== undefined ? command.join(quoted(id)) : null);
  drawGraph(event, listing);
  byId('graph-note').textContent = timePart() ? 'The entry below, and those of cycles, are about the whole time.' : '';
  where.replaceChildren(entry === undefined ? element('p', { textContent: 'The function is in no sample of this event.' }) : entryTable(event, listing, entry, range(listing.first[entry], listing.first[entry + 1])));
  if (listing.shown) {
    if (byId('cycles').firstChild !== listing.shown[0]) byId('cycles').replaceChildren(...listing.shown);
    return;
  }
  const found = listing.cycles.map((cycle, number) => [cycle, number]).filter(([cycle]) => cycle);
  const cycles = found.slice(0, CYCLES).map(([cycle, number]) => cycleBox(event, listing, cycle, number));
  if (found.length > CYCLES) cycles.push(element('p', { className: 'quiet', textContent: `${found.length - CYCLES} lighter cycles are left out here: ${(event.commands.cycles ?? [''])[0]}` }));
  listing.shown = cycles.length ? cycles : [element('p', { className: 'quiet', textContent: 'No functions call each other in a circle.' })];
  byId('cycles').replaceChildren(...listing.shown);
}

/** A cycle as a cluster: who enters it, its members, what they call outside. */
function cycleBox(event, listing, cycle, number) {
  const lines = range(listing.first[cycle.entry], listing.first[cycle.entry + 1]);
  return element('section', { className: 'cycle', 'aria-label': `Cycle ${number}` },
    element('h3', { textContent: `Cycle ${number}: ${cycle.members.length} functions that call each other` }),
    element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': `Entry of cycle ${number}` }, entryTable(event, listing, cycle.entry, lines, FEW_OF_CYCLE)));
}
