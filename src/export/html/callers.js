// The callers and callees of the chosen function, with what each hands up: the figures of `detail`.

/** For each function its pairs as caller and as callee. */
async function pairsOf(event) {
  const columns = await unpack(event.pairs), count = columns.number();
  const pairs = { caller: columns.column(count, Uint32Array), callee: columns.column(count, Uint32Array), weight: columns.column(count), marks: columns.column(count, Uint8Array), into: new Map(), from: new Map() };
  const add = (map, id, place) => { const list = map.get(id); if (list) list.push(place); else map.set(id, [place]); };
  for (let i = 0; i < count; i++) { add(pairs.from, pairs.caller[i], i); add(pairs.into, pairs.callee[i], i); }
  return pairs;
}

function neighbourTable(event, pairs, places, end, recursion, whole) {
  const rank = id => label(id);
  const order = [...places].sort((a, b) => pairs.weight[b] - pairs.weight[a] || (rank(end[a]) < rank(end[b]) ? -1 : 1));
  const row = place => {
    const marks = pairs.marks[place];
    const notes = [marks & recursion ? '* recursion' : '', marks & 4 ? 'inferred' : '', marks & 8 ? 'inlined' : ''].filter(Boolean).join(', ');
    return [percent(pairs.weight[place], whole), weight(pairs.weight[place], event), functionButton(end[place]), notes];
  };
  if (!order.length) return element('p', { className: 'quiet', textContent: 'none' });
  const titles = [{ number: '% of total' }, { number: 'weight' }, 'function', 'marks'];
  return longTable(order, place => place < 60, shown => table(titles, shown.map(row)));
}

async function showCallers() {
  const event = current(), id = state.chosen;
  const pairs = await once(event, 'pairs', () => pairsOf(event));
  if (event !== current() || id !== state.chosen) return;
  const place = event.flat.functions.indexOf(id), where = byId('callers');
  const command = event.commands.detail;
  showCommand('detail', command && place >= 0 ? command.join(quoted(id)) : null);
  if (place < 0) {
    where.replaceChildren(element('p', { textContent: 'The function is in no sample of this event.' }));
    return;
  }
  const own = event.flat.self_weights[place], total = event.flat.totals[place];
  const most = event.mostOf.get(place);
  const bound = most ? `, at most ${most[2] ? '' : '? '}${percent(most[1], event.total)} %` : '';
  where.replaceChildren(
    element('p', { textContent: `Self ${weight(own, event)} (${percent(own, event.total)} %), total ${weight(total, event)} (${percent(total, event.total)} %${bound}). Shares below are of this total.` }),
    element('div', { className: 'two' },
      element('div', {}, element('h2', { textContent: 'Distribution to callers' }), neighbourTable(event, pairs, pairs.into.get(id) ?? [], pairs.caller, 1, total)),
      element('div', {}, element('h2', { textContent: 'Contributions from descendants' }), neighbourTable(event, pairs, pairs.from.get(id) ?? [], pairs.callee, 2, total))),
    element('p', { className: 'quiet', textContent: 'A function is not its own descendant: its self time in recursive calls counts only in its own line. * marks recursion, where the lines can add up to more than 100 %.' }));
}
