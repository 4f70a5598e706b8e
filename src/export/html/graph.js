// The call graph: the entries of the listing of `graph`, and cycles with their members.
const FEW = 25; // callers, members and callees of an entry before all are asked for
const CYCLES = 10, FEW_OF_CYCLE = 8;
const LINE = ['relation', 'who', 'total', 'self', 'children', 'samples', 'called', 'evidence', 'inferred'];

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
  return element('span', {}, functionButton(code / 2, mark + brief(code / 2)), `${cycle ? ` <cycle ${cycle}>` : ''}${index}`);
}

/** The evidence for a call, and whether it is more than samples, as which it goes without saying. */
const evidenceOf = (event, listing, line) => (listing.evidence[line] ? event.graph.texts[listing.evidence[line] - 1] : '');
const isEvident = (event, listing, line) => [0, event.graph.sampled ?? 0].includes(listing.evidence[line]);

function lineRow(event, listing, line, entry, figures, whole) {
  const maybe = (value, show) => (value ? show(value - 1) : '');
  if (figures) return rowInPart(event, listing, line, entry, figures, whole);
  const total = maybe(listing.total[line], value => percent(value, event.total));
  const relation = listing.relation[line], texts = event.graph.texts;
  const name = element('span', {}, ['← ', '', '· ', '→ '][relation], lineName(listing, line));
  return {
    kind: relation === 1 ? 'primary' : '',
    cells: [relation === 1 ? `[${entry + 1}]` : '', name, total,
      maybe(listing.self[line], value => weight(value, event)), listing.self[line] ? weight(listing.children[line], event) : '',
      maybe(listing.samples[line], grouped), listing.called[line] ? texts[listing.called[line] - 1] : '', evidenceOf(event, listing, line)],
  };
}

/** The same in a part of time, in which the numbers of samples and bounds are not known. */
function rowInPart(event, listing, line, entry, figures, whole) {
  const relation = listing.relation[line], texts = event.graph.texts, hasParts = figures.self >= 0;
  const text = number => (number ? texts[number - 1] : '');
  return {
    kind: relation === 1 ? 'primary' : '',
    cells: [relation === 1 ? `[${entry + 1}]` : '', element('span', {}, ['← ', '', '· ', '→ '][relation], lineName(listing, line)), percent(figures.total, whole),
      hasParts ? weight(figures.self, event) : '', hasParts ? weight(figures.children, event) : '', '', text(listing.called[line]), evidenceOf(event, listing, line)],
  };
}

function entryTable(event, listing, entry, { part, calls }, most = FEW) {
  const found = calls ? linesInPart(listing, entry, part, calls) : range(listing.first[entry], listing.first[entry + 1]).map(line => ({ line }));
  const lines = found.map(it => it.line), figuresOf = new Map(found.map(it => [it.line, it.figures]));
  // On a narrow screen the function is what has to be seen first.
  const titles = ['index', 'function', { number: 'total %' }, { number: 'self' }, { number: 'children' }, { number: 'samples' }, { number: 'called' }, 'evidence'];
  // Callers with the heaviest last, then what the entry is about, members and callees with the heaviest first.
  const count = [0, 0, 0, 0], rank = lines.map(line => count[listing.relation[line]]++);
  const few = place => {
    const relation = listing.relation[lines[place]];
    return (relation === 0 ? count[0] - 1 - rank[place] : rank[place]) < most;
  };
  return longTable(lines, few, shown => {
    const rows = shown.map(line => lineRow(event, listing, line, entry, figuresOf.get(line), part?.whole));
    const used = titles.map((_, i) => i === 1 || rows.some((row, place) => row.cells[i] !== '' && (i < titles.length - 1 || !isEvident(event, listing, shown[place]))));
    const only = list => list.filter((_, i) => used[i]);
    const made = table(only(titles), rows.map(row => ({ kind: row.kind, cells: only(row.cells) })));
    made.classList.toggle('indexed', used[0]);
    return made;
  });
}

const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);

async function showGraph() {
  const event = current(), id = state.chosen, part = timePart();
  for (const part of document.querySelectorAll('.of-graph')) part.hidden = !event.graph;
  if (!event.graph) {
    byId('graph-note').textContent = noCallers;
    showCommand('graph', commandOf(event, 'graph', null, id));
    byId('entry').replaceChildren();
    return;
  }
  const listing = await once(event, 'graph', () => listingOf(event));
  const time = { part, calls: await callPart(event, part) };
  if (event !== current() || id !== state.chosen || part !== timePart()) return;
  const entry = listing.index.get(2 * id), where = byId('entry');
  showCommand('graph', entry === undefined ? null : commandOf(event, 'graph', time.calls && time.part, id));
  drawGraph(event, listing, time);
  const changed = listing.cycleOf.get(2 * id);
  byId('graph-note').textContent = [timeNote(event, time), time.calls && changed ? cycleNote(event, listing, changed, time.calls) : ''].join(' ').trim();
  const isNothing = time.calls && !part.figuresOf(id).total;
  const nothing = entry === undefined ? 'The function is in no sample of this event.' : isNothing ? `The function is in no sample of the time ${brushRange(event)} s.` : '';
  where.replaceChildren(nothing ? element('p', { textContent: nothing }) : entryTable(event, listing, entry, time));
  const owner = time.calls ? part : listing;
  if (owner.shown) {
    if (byId('cycles').firstChild !== owner.shown[0]) byId('cycles').replaceChildren(...owner.shown);
    return;
  }
  const found = listing.cycles.map((cycle, number) => [cycle, number]).filter(([cycle]) => cycle);
  const cycles = found.slice(0, CYCLES).map(([cycle, number]) => cycleBox(event, listing, cycle, number, time));
  if (found.length > CYCLES) cycles.push(element('p', { className: 'quiet', textContent: `${found.length - CYCLES} lighter cycles are left out here: ${commandOf(event, 'cycles')}` }));
  owner.shown = cycles.length ? cycles : [element('p', { className: 'quiet', textContent: 'No functions call each other in a circle.' })];
  byId('cycles').replaceChildren(...owner.shown);
}

/** A cycle as a cluster: who enters it, its members, what they call outside. */
function cycleBox(event, listing, cycle, number, time) {
  const isNothing = time.calls && !time.calls.cycle(number), note = time.calls ? cycleNote(event, listing, number, time.calls) : '';
  const entry = () => element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': `Entry of cycle ${number}` }, entryTable(event, listing, cycle.entry, time, FEW_OF_CYCLE));
  return element('section', { className: 'cycle', 'aria-label': `Cycle ${number}` },
    element('h3', { textContent: `Cycle ${number}: ${cycle.members.length} functions that call each other` }),
    isNothing ? element('p', { textContent: `It is in no sample of the time ${brushRange(event)} s.` }) : note ? element('p', { className: 'quiet', textContent: note }) : null,
    isNothing ? null : entry());
}

/** Says which part of time the listing is about. */
function timeNote(event, { part, calls }) {
  if (!part) return '';
  return calls ? `The entry below, and those of cycles, are about the time ${brushRange(event)} s. Indexes and cycles are those of the whole time; numbers of samples are known for all of it only.` : noCallTimes(event);
}

/** Says why callers and callees are those of the whole time. */
const noCallTimes = event => `A part of time is chosen in the overview. Callers and callees are those of the whole time: ${event.time.is_without_calls ? 'there are too many of them for this page to have them by time' : 'without call stacks, their weights are estimates'}.`;

/** What is different in a part of time in which not all members of a cycle call each other. */
function cycleNote(event, listing, number, calls) {
  if (isStillCycle(listing, number, calls)) return '';
  return `In the time ${brushRange(event)} s the members of cycle ${number} do not all call each other. Self and children are shared out as if they did; the command forms other cycles then.`;
}
