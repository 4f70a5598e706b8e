// The table of functions: all rows of an event, sorted and searched. A row has the numbers of the event's
// own unit, as `flat` prints them for programs.
const ROWS = 20000; // More rows than this stand in the page only if a search or an order brings them up.
const CHUNK = 200;
const functionTable = { event: null, sort: 'self', rows: new Map(), filling: 0, drawn: '', watch: null };

/** Figures of rows: those of the whole event, or of the part of time that is chosen. */
function figures(event) {
  const part = timePart();
  return part ?? { self: event.flat.self_weights, total: event.flat.totals, whole: event.total };
}

function tableHead(event) {
  const unit = event.is_time ? 'ms' : event.unit;
  const column = (key, text, className) => {
    const cell = element('div', { role: 'columnheader', className });
    if (!key) { cell.textContent = text; return cell; }
    cell.setAttribute('aria-sort', functionTable.sort === key ? (key === 'name' ? 'ascending' : 'descending') : 'none');
    const button = element('button', { type: 'button', textContent: functionTable.sort === key ? `${text} ${key === 'name' ? '▴' : '▾'}` : text });
    button.addEventListener('click', () => { functionTable.sort = key; drawTable(); remember(); });
    cell.append(button);
    return cell;
  };
  return element('div', { role: 'row', className: 'row head' },
    column('self', 'self %', 'number'), column('total', 'total %', 'number'),
    column(null, `self, ${unit}`, 'number'), column(null, `total, ${unit}`, 'number'), ...(event.callsOf ? [column(null, 'calls', 'number calls')] : []),
    column('name', 'function', 'name'), column(null, 'module', 'module'));
}

/** Numbers of calls by others and by itself, as gprof has them: `5`, `1+29`, `≥3`. */
function callsText(known) {
  if (!known) return '';
  const [others, recursive, isLeast] = known;
  return (isLeast ? '≥' : '') + grouped(others ?? 0) + (recursive ? `+${grouped(recursive)}` : '');
}

function makeRow(event, place, self, total, whole) {
  const id = event.flat.functions[place];
  const cell = (className, text) => element('div', { role: 'cell', className, textContent: text });
  const mark = event.inferred.has(place) ? '≈' : '';
  const share = cell('number heat', percent(self, whole));
  share.style.setProperty('--share', `${100 * self / Math.max(whole, 1)}%`);
  const row = element('div', { role: 'row', className: 'row' },
    share, cell('number', percent(total, whole)),
    cell('number', figure(self, event)), cell('number', figure(total, event)), ...(event.callsOf ? [cell('number calls', callsText(event.callsOf.get(place)))] : []),
    element('div', { role: 'cell', className: 'name' }, element('button', { type: 'button', className: 'link', textContent: mark + brief(id), title: label(id), tabIndex: -1 })),
    cell('module', moduleOf(id)));
  row.dataset.function = functions.names[id];
  row.dataset.module = moduleName(id);
  row.dataset.self = self;
  row.dataset.total = total;
  row.id_ = id;
  return row;
}

/** The order of rows, as `flat --sort` has it: ties by name, which the event's own order has. Of the whole time there
    are functions, too, that were counted and took too little time for a sample. */
function rowOrder(event, { self, total, key }) {
  const ran = place => total[place] > 0 || self[place] > 0 || !key && event.callsOf?.has(place);
  const order = [...event.flat.functions.keys()].filter(ran);
  const rank = event.nameRank ??= nameRanks(event);
  const bySelf = (a, b) => self[b] - self[a] || total[b] - total[a];
  const byTotal = (a, b) => total[b] - total[a] || self[b] - self[a];
  const by = { self: bySelf, total: byTotal, name: () => 0 }[functionTable.sort];
  return order.sort((a, b) => by(a, b) || rank[a] - rank[b]);
}

function nameRanks(event) {
  const rank = new Uint32Array(event.flat.functions.length);
  event.flat.by_name.forEach((place, i) => { rank[place] = i; });
  return rank;
}

function drawTable() {
  const event = current();
  const numbers = figures(event);
  const grid = byId('functions');
  const key = `${numbers.key ?? 'all'}`, drawn = [state.event, key, functionTable.sort, state.search].join('/');
  if (functionTable.drawn === drawn) return;
  const isFirst = functionTable.event !== event;
  functionTable.drawn = drawn;
  if (functionTable.event !== event || functionTable.key !== key) Object.assign(functionTable, { event, key, rows: new Map() });
  grid.classList.toggle('counted', !!event.callsOf);
  const wanted = matcher();
  const order = rowOrder(event, numbers).filter(place => !wanted || wanted(event.flat.functions[place]));
  const shown = order.slice(0, ROWS);
  grid.replaceChildren(element('div', { role: 'rowgroup' }, tableHead(event)));
  const turn = ++functionTable.filling;
  const fill = from => {
    if (turn !== functionTable.filling) return;
    const rows = shown.slice(from, from + (from ? CHUNK : 60)).map(place => {
      let row = functionTable.rows.get(place);
      if (!row) functionTable.rows.set(place, row = makeRow(event, place, numbers.self[place], numbers.total[place], numbers.whole));
      return row;
    });
    const group = element('div', { role: 'rowgroup', className: from ? 'rows' : '' }, ...rows);
    if (rows.length) grid.append(group);
    if (from === 0) rows[0]?.querySelector('button').setAttribute('tabindex', 0);
    const next = from + rows.length;
    if (next >= shown.length) return;
    // All rows of an event once; then as far as somebody scrolls.
    if (isFirst) {
      // The first rows are painted before the others are made.
      if (from === 0) requestAnimationFrame(() => setTimeout(fill, 0, next));
      else if ((from / CHUNK | 0) % 5 === 4) setTimeout(fill, 0, next);
      else fill(next);
      return;
    }
    functionTable.watch = new IntersectionObserver(seen => {
      if (!seen.some(it => it.isIntersecting)) return;
      functionTable.watch.disconnect();
      fill(next);
    }, { rootMargin: '600px' });
    functionTable.watch.observe(group.lastElementChild);
  };
  functionTable.watch?.disconnect();
  fill(0);
  markChosen();
  const all = event.flat.functions.length;
  byId('table-note').textContent = `${grouped(order.length)} of ${numberOf(all, 'function')}` + (shown.length < order.length ? `; the first ${grouped(ROWS)} are shown` : '') + leftOut(event) + aboutCalls(event, numbers.key);
  showCommand('flat', commandOf(event, `flat-${functionTable.sort}`, numbers.key ? numbers : null));
}

/** Says what there was no room for. */
function leftOut(event) {
  const { left_out: count, left_out_most: most } = event.flat, names = functions.shortened.length;
  return (count ? `. ${grouped(count)} more are left out of this page, which would be too large; each has a total of ${weight(most, event)} or less` : '')
    + (names ? `. ${grouped(names)} long names are shortened, as this page would be too large with them, and end with a number` : '');
}

/** Says what numbers of calls are. */
function aboutCalls(event, isPart) {
  if (!event.callsOf) return '';
  const isLeast = [...event.callsOf.values()].some(([, , isLeast]) => isLeast);
  return (isPart ? '. Numbers of calls are those of the whole recording' : '') + (isLeast ? '. ≥ at least: not all calls of the function can be counted' : '');
}

function markChosen() {
  for (const row of document.querySelectorAll('#functions .row[aria-current]')) { row.removeAttribute('aria-current'); row.classList.remove('chosen'); }
  const place = functionTable.event?.flat.functions.indexOf(state.chosen);
  const row = functionTable.rows.get?.(place);
  if (row) { row.setAttribute('aria-current', 'true'); row.classList.add('chosen'); }
}

function startTable() {
  const grid = byId('functions');
  grid.addEventListener('click', event => {
    const row = event.target.closest('[data-function]');
    if (row) choose(row.id_, event.target.closest('button') ? 'callers' : null);
  });
  grid.addEventListener('keydown', event => {
    const row = event.target.closest('[data-function]');
    const to = row && {
      ArrowDown: row.nextElementSibling ?? row.parentElement.nextElementSibling?.firstElementChild,
      ArrowUp: row.previousElementSibling ?? row.parentElement.previousElementSibling?.lastElementChild,
    }[event.key];
    if (!to?.dataset.function) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    const button = to.querySelector('button');
    button.tabIndex = 0;
    button.focus();
  });
}
