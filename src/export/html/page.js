// Wires the views: which event, which function, what is searched.
const state = { event: 0, chosen: 0, isAsked: false, view: 'overview', search: '' };
const current = () => page.events[state.event];

/** Whether a function passes the search; null if nothing is searched. */
function matcher() {
  if (!state.search) return null;
  const wanted = state.search.toLowerCase();
  return once(functions, `search-${wanted}`, () => {
    const found = functions.names.map((name, id) => label(id).toLowerCase().includes(wanted) || shortOf.get(id)?.toLowerCase().includes(wanted) || moduleOf(id).toLowerCase().includes(wanted));
    return id => found[id] ?? false;
  });
}

const views = { overview: () => { drawTable(); return Promise.all([showTime(), showFlame()]); }, flame: showFlame, callers: showCallers, graph: showGraph, source: showSource };
let showTab = () => {};

/** The functions that the search finds: how many have a weight, and the one with the most self weight. */
function searchResult(wanted) {
  const event = current(), { self, total } = figures(event);
  let count = 0, first = -1;
  event.flat.functions.forEach((id, place) => {
    if (!wanted(id) || !(total[place] > 0 || self[place] > 0)) return;
    count++;
    if (first < 0 || self[place] > self[first] || self[place] === self[first] && total[place] > total[first]) first = place;
  });
  return { count, first: first < 0 ? -1 : event.flat.functions[first] };
}

/** Says what the search finds. It marks frames and boxes, and some views show a single function. */
function noteSearch() {
  const wanted = matcher(), note = byId('search-note');
  note.textContent = '';
  if (!wanted) return;
  const { count } = searchResult(wanted), selects = count === 1 ? 'function matches; Enter selects it' : 'functions match; Enter selects the one with the most self weight';
  note.textContent = count ? `${grouped(count)} ${selects}.` : `No function ${timePart() ? 'in the chosen time ' : ''}matches.`;
}

function refresh() {
  const isBare = !current().flat.functions.length;
  document.querySelector('main').classList.toggle('bare', isBare);
  byId('no-samples').hidden = !isBare || state.view === 'overview';
  if (isBare) return;
  noteTime();
  noteSearch();
  remember();
  Promise.resolve(views[state.view]?.()).catch(fail);
}

function fail(error) {
  byId('failure').hidden = false;
  byId('failure').textContent = String(error.message ?? error);
}

const aboutFunction = view => ['callers', 'graph', 'source'].includes(view);
let isGoing = false;

/** The part of the address that leads here: `#flame&focus=parse&search=lex`. */
function linkHere() {
  const event = current(), parts = new URLSearchParams();
  const put = (name, value) => { if (value) parts.set(name, value); };
  put('event', state.event && event.name);
  put('focus', (state.isAsked || aboutFunction(state.view)) && label(state.chosen));
  put('search', state.search);
  put('time', isBrushed(event) && brushRange(event));
  put('sort', functionTable.sort !== 'self' && functionTable.sort);
  put('collapse', byId('degree').value !== 'none' && byId('degree').value);
  put('fold', byId('folding').value !== 'folded' && 'off');
  put('frame', flame.event === event && flame.zoom);
  put('show', state.view === 'source' && byId('source-kind').value);
  put('drawing', state.view === 'graph' && drawing.level !== '0' && drawing.level);
  return `#${[state.view, ...String(parts).split('&')].filter(Boolean).join('&')}`;
}

/** Keeps where the reader is in the address, so that it can be handed on, and the browser's way back leads
    through events, views and functions. */
function remember() {
  const { event, view, chosen } = state, before = history.state;
  if (!view || isGoing) return;
  const isSame = before?.event === event && before.view === view && (before.chosen === chosen || !aboutFunction(view));
  try {
    history[before && !isSame ? 'pushState' : 'replaceState']({ event, view, chosen }, '', linkHere());
  } catch { /* Some browsers refuse where there are too many steps, and inside of other pages. */ }
}

/** Shows what the address says. */
async function goTo(address) {
  const [view, ...rest] = address.slice(1).split('&'), parts = new URLSearchParams(rest.join('&'));
  const index = Math.max(0, page.events.findIndex(event => event.name === parts.get('event'))), event = page.events[index];
  const said = (name, usual, known) => (known.includes(parts.get(name)) ? parts.get(name) : usual);
  const [first, last] = (parts.get('time') ?? '').split('..').map(text => Number(text || NaN) * 1e9);
  isGoing = true;
  try {
    if (index !== state.event) showEvent(index);
    byId('event').value = index;
    byId('search').value = state.search = parts.get('search') ?? '';
    functionTable.sort = said('sort', 'self', ['self', 'total', 'name']);
    byId('degree').value = said('collapse', 'none', Object.keys(event.trees));
    byId('folding').value = parts.get('fold') === 'off' ? 'whole' : 'folded';
    byId('source-kind').value = said('show', 'lines', ['lines', 'code']);
    byId('drawing-level').value = said('drawing', '0', [...byId('drawing-level').options].map(option => option.value));
    drawing.level = byId('drawing-level').value;
    flame.wanted = Number(parts.get('frame')) || 0;
    if (first < last && event.time) {
      event.times = await once(event, 'times', () => timesOf(event));
      const bucket = time => Math.round((time - event.time.start) / event.time.bucket);
      Object.assign(brush, { event, first: bucket(first), last: Math.min(event.times.buckets, bucket(last)) - 1 });
    } else if (brush.event === event) Object.assign(brush, { first: 0, last: -1 });
    const focus = parts.has('focus') ? functionOf(parts.get('focus')) : -1;
    state.isAsked = focus >= 0;
    choose(focus >= 0 ? focus : state.chosen, views[view] ? view : 'overview', focus < 0);
    await views[state.view]();
  } finally { isGoing = false; }
  remember();
}

/** Chooses a function, and shows it in a view; quietly if nobody asked for it. */
function choose(id, view, isQuiet) {
  state.chosen = id;
  if (!isQuiet) { state.isAsked = true; flame.isSought = true; }
  for (const heading of document.querySelectorAll('.of-function')) heading.textContent = label(id) ?? '';
  markChosen();
  if (view) {
    showTab(view);
    // What had the focus may be hidden now; from the tab the next stop is in the view.
    if (!isQuiet) byId(`tab-view-${view}`).focus({ preventScroll: true });
  } else if (!isQuiet) refresh();
}

function showEvent(index) {
  state.event = index;
  const event = current();
  if (!event.inferred) {
    event.inferred = new Set(event.flat.inferred);
    event.callsOf = event.flat.calls && new Map(event.flat.calls.map(([place, ...calls]) => [place, calls]));
  }
  state.chosen = event.flat.functions.includes(state.chosen) && index ? state.chosen : event.flat.functions[0] ?? 0;
  const command = element('p', { className: 'command', 'data-command': 'report' });
  const isBare = !event.flat.functions.length, notes = event.reliability.filter(part => part.note).length;
  byId('overview').replaceChildren(...partsOf(isBare ? [...event.facts, ...event.reliability] : event.facts, 'h2'), command);
  byId('reliability').hidden = isBare;
  byId('chip').textContent = [event.chip ?? 'How reliable is this?', notes ? numberOf(notes, 'note') : ''].filter(Boolean).join('; ');
  byId('reasons').replaceChildren(...partsOf(event.reliability, 'h2'));
  showCommand('report', commandOf(event, 'report'));
  offerDrawings(event);
  choose(state.chosen, null, true);
  refresh();
  prepareTrees(event);
}

function startTheme() {
  const system = matchMedia('(prefers-color-scheme: dark)'), picker = byId('theme');
  const apply = () => {
    const isDark = picker.value === 'dark' || picker.value === 'auto' && system.matches;
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    refresh();
  };
  picker.addEventListener('change', apply);
  system.addEventListener('change', apply);
  apply();
}

function startKeys() {
  let waiting = 0;
  const search = byId('search');
  search.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.search = search.value.trim(); refresh(); }, 120);
  });
  search.addEventListener('keydown', event => {
    if (event.key !== 'Enter') return;
    clearTimeout(waiting);
    state.search = search.value.trim();
    refresh();
    const wanted = matcher(), first = wanted ? searchResult(wanted).first : -1;
    if (first >= 0) choose(first);
    if (first >= 0 && state.view === 'graph') showNode(first, 'center');
  });
  document.addEventListener('keydown', event => {
    const isTyping = event.target.matches('input, select, textarea');
    if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === 'Escape') {
      showTip('');
      byId('reliability').open = false;
      if (state.search || isTyping) { search.value = ''; state.search = ''; search.blur(); refresh(); }
      else if (state.view === 'flame' && flame.tree) zoomTo(0);
    }
  });
}

function start() {
  if (!page) { fail('There are no samples in this page.'); return; }
  page.events.forEach((event, i) => byId('event').append(element('option', { value: i, textContent: event.name })));
  byId('event').addEventListener('change', () => showEvent(Number(byId('event').value)));
  startTable();
  startFlame();
  startTime();
  startDrawing();
  byId('source-kind').addEventListener('change', refresh);
  showTab = makeTabs(name => { state.view = name; refresh(); });
  state.view = '';
  startTheme();
  startKeys();
  byId('events').hidden = page.events.length === 1;
  showEvent(0);
  const follow = () => goTo(location.hash).catch(fail);
  follow();
  addEventListener('popstate', follow);
}

start();
