// Wires the views: which event, which function, what is searched.
const state = { event: 0, chosen: 0, view: 'overview', search: '' };
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

const views = { overview: () => { drawTable(); return showTime(); }, flame: showFlame, callers: showCallers, graph: showGraph, source: showSource };
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
let isGoingBack = false;

/** Keeps where the reader is, so that the browser's way back leads through events, views and functions. */
function remember() {
  const { event, view, chosen } = state, before = history.state;
  if (!view || isGoingBack) return;
  const isSame = before?.event === event && before.view === view && (before.chosen === chosen || !aboutFunction(view));
  try {
    history[before && !isSame ? 'pushState' : 'replaceState']({ event, view, chosen }, '');
  } catch { /* Some browsers refuse where there are too many steps, and inside of other pages. */ }
}

function goBack({ state: before }) {
  if (!page.events[before?.event] || !views[before.view]) return;
  isGoingBack = true;
  byId('event').value = before.event;
  if (before.event !== state.event) showEvent(before.event);
  choose(before.chosen, before.view);
  isGoingBack = false;
}

/** Chooses a function, and shows it in a view. */
function choose(id, view, isQuiet) {
  state.chosen = id;
  for (const heading of document.querySelectorAll('.of-function')) heading.textContent = label(id) ?? '';
  markChosen();
  if (view) {
    showTab(view);
    // What had the focus may be hidden now; from the tab the next stop is in the view.
    byId(`tab-view-${view}`).focus({ preventScroll: true });
  } else if (!isQuiet && aboutFunction(state.view)) refresh();
}

function showEvent(index) {
  state.event = index;
  const event = current();
  if (!event.mostOf) {
    event.mostOf = new Map(event.flat.at_most.map(most => [most[0], most]));
    event.inferred = new Set(event.flat.inferred);
    event.callsOf = event.flat.calls && new Map(event.flat.calls);
  }
  state.chosen = event.flat.functions.includes(state.chosen) && index ? state.chosen : event.flat.functions[0] ?? 0;
  const command = element('p', { className: 'command', 'data-command': 'report' });
  byId('overview').replaceChildren(...partsOf(event.overview, 'h2'), command);
  showCommand('report', commandOf(event, 'report'));
  offerDrawings(event);
  choose(state.chosen);
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
  showEvent(0);
  showTab('overview');
  addEventListener('popstate', goBack);
}

start();
