// The callers and callees of the chosen function, with what each hands up: the figures of `detail`.

/** For each function its pairs as caller and as callee. */
async function pairsOf(event) {
  const columns = await unpack(event.pairs), count = columns.number();
  const pairs = { caller: columns.column(count, Uint32Array), callee: columns.column(count, Uint32Array), weight: columns.column(count), marks: columns.column(count, Uint8Array), calls: event.callsOf && columns.column(count), into: new Map(), from: new Map() };
  const add = (map, id, place) => { const list = map.get(id); if (list) list.push(place); else map.set(id, [place]); };
  for (let i = 0; i < count; i++) { add(pairs.from, pairs.caller[i], i); add(pairs.into, pairs.callee[i], i); }
  return pairs;
}

function neighbourTable(event, pairs, places, end, recursion, whole, calls) {
  const rank = id => label(id);
  const inPart = calls && new Map(places.map(place => [place, calls.of(pairs.caller[place], pairs.callee[place])]));
  const weightOf = place => (inPart ? inPart.get(place).contributed : pairs.weight[place]);
  const seen = inPart ? places.filter(place => inPart.get(place).weight > 0) : [...places];
  const order = seen.sort((a, b) => weightOf(b) - weightOf(a) || (rank(end[a]) < rank(end[b]) ? -1 : 1));
  const isCounted = pairs.calls && places.some(place => pairs.calls[place]);
  const callsOf = place => { const code = pairs.calls[place]; return code && (code % 2 ? '' : '≥') + grouped(Math.floor((code - 1) / 2)); };
  const row = place => {
    const marks = pairs.marks[place];
    const notes = [marks & recursion ? '* recursion' : '', marks & 4 ? 'inferred' : '', marks & 8 ? 'inlined' : ''].filter(Boolean).join(', ');
    return [percent(weightOf(place), whole), weight(weightOf(place), event), ...(isCounted ? [callsOf(place) || ''] : []), functionButton(end[place]), notes];
  };
  if (!order.length) return element('p', { className: 'quiet', textContent: 'none' });
  const titles = [{ number: '% of total' }, { number: 'weight' }, ...(isCounted ? [{ number: 'calls' }] : []), 'function', 'marks'];
  return longTable(order, place => place < 60, shown => {
    const rows = shown.map(row), columns = titles.length - (rows.some(cells => cells.at(-1)) ? 0 : 1);
    return table(titles.slice(0, columns), rows.map(cells => cells.slice(0, columns)));
  });
}

/** Says why a page has no callers and callees. */
const noCallers = 'This page has no callers and callees: there are too many functions to have all of them.';

async function showCallers() {
  const event = current(), id = state.chosen, part = timePart();
  if (!event.pairs) {
    showCommand('detail', commandOf(event, 'detail', null, id));
    byId('callers').replaceChildren(element('p', { textContent: noCallers }));
    return;
  }
  const pairs = await once(event, 'pairs', () => pairsOf(event));
  const calls = await callPart(event, part);
  if (event !== current() || id !== state.chosen || part !== timePart()) return;
  const place = event.flat.functions.indexOf(id), where = byId('callers');
  showCommand('detail', place >= 0 ? commandOf(event, 'detail', calls && part, id) : null);
  if (place < 0) {
    where.replaceChildren(element('p', { textContent: 'The function is in no sample of this event.' }));
    return;
  }
  const figures = calls ? part.figuresOf(id) : { self: event.flat.self_weights[place], total: event.flat.totals[place], whole: event.total };
  const { self: own, total, whole } = figures;
  where.replaceChildren(
    element('p', { textContent: `Self ${weight(own, event)} (${percent(own, whole)} %), total ${weight(total, event)} (${percent(total, whole)} %)${calls ? ` in the time ${brushRange(event)} s` : ''}. Shares below are of this total.` }),
    element('div', { className: 'two' },
      element('div', {}, element('h2', { textContent: 'Distribution to callers' }), neighbourTable(event, pairs, pairs.into.get(id) ?? [], pairs.caller, 1, total, calls)),
      element('div', {}, element('h2', { textContent: 'Contributions from descendants' }), neighbourTable(event, pairs, pairs.from.get(id) ?? [], pairs.callee, 2, total, calls))),
    element('p', { className: 'quiet', textContent: 'A function is not its own descendant: its self time in recursive calls counts only in its own line. * marks recursion, where the lines can add up to more than 100\u00a0%.' + (calls && pairs.calls ? ' Numbers of calls are those of the whole recording.' : '') }));
}
