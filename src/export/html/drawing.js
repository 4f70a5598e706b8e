// The call graph as a drawing. Where boxes and arcs are is computed before; the figures are those of the
// listing, or of the brushed part of time.
const SVG = document.querySelector('#drawing svg').namespaceURI, MARGIN = 12;
const drawing = { event: null, level: 0, shown: null, key: '', zoom: 1, nodes: new Map(), arcs: [], at: -1 };

function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const measuring = document.createElement('canvas').getContext('2d');
/** A text that fits into so many pixels, in a font. */
function shortened(text, room, font, cuts = []) {
  measuring.font = font;
  return fitted(measuring, text, room, cuts);
}

/** The lines of a listing's entry that are about a relation. */
const linesOf = (listing, entry, relation) => range(listing.first[entry], listing.first[entry + 1]).filter(line => listing.relation[line] === relation);

/** What is known of a call: the line of the callee in the entry of the caller. */
function callLine(listing, [caller, callee]) {
  const entry = listing.index.get(2 * caller);
  return entry === undefined ? undefined : linesOf(listing, entry, 3).find(line => listing.who[line] === 2 * callee + 2);
}

/** Total, self and calls of a function or a cycle, by its code. */
function entryFigures(event, listing, code, { part, calls }) {
  const entry = listing.index.get(code), line = entry === undefined ? undefined : linesOf(listing, entry, 1)[0];
  if (line === undefined) return null;
  const called = listing.called[line] ? event.graph.texts[listing.called[line] - 1] : '';
  if (part) return { ...(code % 2 ? part.cycle(listing, (code - 1) / 2, calls) : part.figuresOf(code / 2)), called };
  return { total: listing.total[line] - 1, self: listing.self[line] - 1, called, whole: event.total };
}

const shareText = (value, whole) => `${percent(Math.max(value, 0), whole)} %`;

function drawNode(event, listing, made, [id, x, y], time) {
  const [width, height] = made.node, own = entryFigures(event, listing, 2 * id, time);
  const cycle = listing.cycleOf.get(2 * id), name = label(id), short = brief(id);
  const figures = own ? `${shareText(own.total, own.whole)}  self ${shareText(own.self, own.whole)}` : 'no figures';
  const calls = own?.called ? `called ${own.called}` : '';
  const parts = own && own.whole ? [own.total, own.self].map(value => Math.max(0, Math.min(1, value / own.whole)) * (width - 2)) : [0, 0];
  // The text in the box may have less of the name than the description.
  const clip = shape('g', {},
    shape('rect', { class: 'box', width, height, rx: 4 }),
    shape('rect', { class: 'part', x: 1, y: 1, width: parts[0].toFixed(1), height: height - 2, rx: 3 }),
    shape('rect', { class: 'own', x: 1, y: height - 4, width: parts[1].toFixed(1), height: 3 }),
    shape('rect', { class: cutMarks.has(id) ? 'edge cut' : 'edge', width, height, rx: 4 }),
    shape('text', { x: 7, y: 16, class: 'title' }, shortened(short, width - 14, '600 12px system-ui, sans-serif', breaks(id))),
    shape('text', { x: 7, y: 31 }, figures));
  if (calls) clip.append(shape('text', { x: 7, y: 46 }, shortened(calls, width - 14, '11px system-ui, sans-serif')));
  const said = [`total ${figures}`, calls, cycle ? `member of cycle ${cycle}` : ''].filter(Boolean).join(', ');
  const node = shape('g', { class: 'node', role: 'button', tabindex: -1, transform: `translate(${x + MARGIN} ${y + MARGIN})`, 'aria-description': `${name}: ${said}` }, clip);
  node.addEventListener('click', () => { focusNode(id); choose(id); });
  node.addEventListener('pointermove', pointer => showTip(`${name}\n${moduleOf(id)}\n${said}`, pointer.clientX, pointer.clientY));
  node.addEventListener('pointerleave', () => showTip(''));
  node.addEventListener('focus', () => { drawing.at = id; });
  return node;
}

function drawCycle(event, listing, [number, x, y, width, height, members], time) {
  const own = entryFigures(event, listing, 2 * number + 1, time), all = listing.cycles[number]?.members.length ?? members;
  const shown = members < all ? `, ${members} of ${grouped(all)} members drawn` : `, ${all} members`;
  const figures = own ? `total ${own.total >= 0 ? shareText(own.total, own.whole) : 'not known'}, self ${shareText(own.self, own.whole)}${own.called ? `, called ${own.called}` : ''}` : '';
  const place = { class: 'cluster', transform: `translate(${x + MARGIN} ${y + MARGIN})` };
  const box = shape('g', place, shape('title', {}, `cycle ${number} as a whole${shown}; ${figures}`), shape('rect', { width, height, rx: 9 }));
  // Arrows that enter the cycle pass under its text.
  const text = shape('g', place,
    shape('text', { x: 12, y: 17, class: 'title' }, shortened(`cycle ${number}${shown}`, width - 24, '600 12px system-ui, sans-serif')),
    shape('text', { x: 12, y: 32 }, shortened(figures, width - 24, '11px system-ui, sans-serif')));
  return { box, text };
}

/** The course of an arc: every second piece is a vertical line, the others are curves. */
function course(points) {
  let path = `M${points[0] + MARGIN} ${points[1] + MARGIN}`;
  for (let i = 2; i < points.length; i += 2) {
    const [x, y, px, py] = [points[i] + MARGIN, points[i + 1] + MARGIN, points[i - 2] + MARGIN, points[i - 1] + MARGIN];
    path += i % 4 === 2 ? `L${x} ${y}` : `C${px} ${(py + y) / 2} ${x} ${(py + y) / 2} ${x} ${y}`;
  }
  return path;
}

function drawCall(event, listing, call, { part, calls }) {
  const line = callLine(listing, call.ends), whole = part ? part.whole : event.total;
  const value = calls ? calls.of(...call.ends).weight : part || line === undefined ? -1 : listing.total[line] - 1;
  const share = Math.max(0, Math.min(1, value / Math.max(whole, 1)));
  const text = value >= 0 ? shareText(value, whole) : '';
  const called = line !== undefined && listing.called[line] ? `, called ${event.graph.texts[listing.called[line] - 1]}` : '';
  const { points } = call, end = points.length - 2, x = points[end] + MARGIN, y = points[end + 1] + MARGIN, up = call.is_upward ? 8 : -8;
  const arc = shape('g', { class: value === 0 ? 'arc none' : 'arc' },
    shape('title', {}, `${label(call.ends[0])} calls ${label(call.ends[1])}: ${text}${called}`),
    shape('path', { d: course(points), 'stroke-width': (1 + 4 * Math.sqrt(share)).toFixed(1) }),
    shape('polygon', { points: `${x},${y} ${x - 5},${y + up} ${x + 5},${y + up}` }));
  const place = call.label && shape('text', { class: 'weight', x: call.label[0] + MARGIN, y: call.label[1] + MARGIN + 4 }, text);
  return { ends: call.ends, arc, place };
}

/** How many callers and callees stand around a function, in lines of how many. */
const AROUND = 12, IN_LINE = 4, GAP = [24, 60];

/** A drawing of a function with its heaviest callers and callees. */
function drawingAround(event, listing, id) {
  const node = event.drawings[0]?.node ?? [172, 42], entry = listing.index.get(2 * id);
  const ends = relation => (entry === undefined ? [] : linesOf(listing, entry, relation).filter(line => listing.who[line] >= 2 && listing.who[line] % 2 === 0 && listing.who[line] !== 2 * id + 2));
  const sides = [0, 3].map(relation => {
    const lines = ends(relation).sort((a, b) => listing.total[b] - listing.total[a]);
    return { all: lines.length, ids: lines.slice(0, AROUND).map(line => (listing.who[line] - 2) / 2) };
  });
  const callers = sides[0].ids, callees = sides[1].ids.filter(it => !callers.includes(it));
  const columns = Math.max(1, Math.min(IN_LINE, Math.max(callers.length, callees.length)));
  const width = columns * (node[0] + GAP[0]) - GAP[0], step = node[1] + GAP[1];
  const lines = ids => Array.from({ length: Math.ceil(ids.length / columns) }, (_, i) => ids.slice(i * columns, (i + 1) * columns));
  const layers = [...lines(callers).reverse(), [id], ...lines(callees)], places = [];
  layers.forEach((ids, layer) => {
    const left = (width - ids.length * (node[0] + GAP[0]) + GAP[0]) / 2;
    ids.forEach((it, place) => places.push([it, Math.round(left + place * (node[0] + GAP[0])), layer * step]));
  });
  const at = new Map(places.map(([it, x, y]) => [it, [x + node[0] / 2, y]])), [x, y] = at.get(id);
  const call = (from, to) => {
    const [a, b] = [at.get(from), at.get(to)], isUpward = a[1] > b[1];
    const start = [a[0], a[1] + (isUpward ? 0 : node[1])], end = [b[0], b[1] + (isUpward ? node[1] : 0)];
    // The number stands where the arrow leaves the other function, not over another arrow's.
    const other = from === id ? end : start, side = other[1] > y ? -14 : 14;
    return { ends: [from, to], points: [...start, ...start, ...end], is_upward: isUpward, label: [other[0], other[1] + side] };
  };
  const calls = [...callers.map(it => call(it, id)), ...sides[1].ids.filter(it => !callers.includes(it)).map(it => call(id, it))];
  return { around: id, width, height: layers.length * step - GAP[1], node, functions: places, cycles: [], calls, hidden_functions: 0, hidden_calls: sides[0].all + sides[1].all - calls.length };
}

/** The drawing that was picked; the first of the larger ones, or one around the selected function, where that has it. */
function drawingOf(event, listing) {
  const id = state.chosen, has = made => made.functions.some(([it]) => it === id);
  const level = event.drawings.findIndex((made, i) => i >= Number(drawing.level) && has(made));
  if (drawing.level !== 'around' && level >= 0) return [event.drawings[level], level];
  return [once(event, `around-${id}`, () => drawingAround(event, listing, id)), `around-${id}`];
}

function drawGraph(event, listing, time) {
  const [made, level] = drawingOf(event, listing), frame = byId('drawing');
  const key = `${state.event}/${level}/${time.part?.key ?? ''}`;
  byId('drawing-level').value = made.around === undefined ? level : 'around';
  showDrawingNote(event, made, time);
  if (drawing.key === key) { markNodes(); return; }
  const isNew = drawing.event !== event || drawing.shown !== made;
  Object.assign(drawing, { event, shown: made, key, listing });
  drawing.arcs = made.calls.map(call => drawCall(event, listing, call, time));
  drawing.nodes = new Map(made.functions.map(function_ => [function_[0], drawNode(event, listing, made, function_, time)]));
  drawing.place = new Map(made.functions.map(([id, x, y]) => [id, [x, y]]));
  const cycles = made.cycles.map(cycle => drawCycle(event, listing, cycle, time));
  const svg = shape('svg', { role: 'group', 'aria-label': 'Call graph, callers above callees', viewBox: `0 0 ${made.width + 2 * MARGIN} ${made.height + 2 * MARGIN}` },
    ...cycles.map(it => it.box), shape('g', {}, ...drawing.arcs.map(it => it.arc)), ...cycles.map(it => it.text), shape('g', {}, ...drawing.nodes.values()),
    shape('g', { 'aria-hidden': 'true' }, ...drawing.arcs.filter(it => it.place).map(it => it.place)));
  // The frame loses its place while it is empty.
  const place = [frame.scrollLeft, frame.scrollTop];
  frame.replaceChildren(svg);
  drawing.svg = svg;
  if (isNew) {
    drawing.zoom = Math.min(1, Math.max(0.75, frame.clientWidth / (made.width + 2 * MARGIN)));
    drawing.at = drawing.nodes.has(state.chosen) ? state.chosen : made.functions[0]?.[0] ?? -1;
  }
  resizeDrawing(drawing.zoom);
  if (!isNew) frame.scrollTo(...place);
  markNodes();
  // The selected function, or the heaviest, which stands in the first layers.
  if (isNew && made.functions.length) showNode(state.isAsked ? state.chosen : made.functions[0][0], 'center');
}

function showDrawingNote(event, made, { part, calls: sums }) {
  const count = grouped(made.functions.length), all = made.functions.length + made.hidden_functions;
  if (made.around !== undefined) {
    const left = made.hidden_calls ? ` ${numberOf(made.hidden_calls, 'lighter call')} ${made.hidden_calls === 1 ? 'is' : 'are'} in the table below.` : '';
    byId('drawing-note').textContent = `${label(made.around)} with its heaviest callers and callees.${left}`;
    return;
  }
  const functions_ = made.hidden_functions ? `The ${count} functions with the largest totals, of ${grouped(all)}` : all === 1 ? 'The only function with samples' : `All ${count} functions with samples`;
  const calls = made.hidden_calls ? `, and the ${grouped(made.calls.length)} heaviest of ${grouped(made.calls.length + made.hidden_calls)} calls between them` : ', and all calls between them';
  const time = part ? ` Figures are those of the time ${brushRange(event)} s; which functions and calls are drawn, and what is a cycle, is that of the whole time.${sums ? '' : ' Calls have no figures by time, and a cycle no total.'}` : '';
  byId('drawing-note').textContent = `${functions_}${calls}.${time}`;
}

/** Marks the selected function with its callers and callees. */
function markNodes() {
  const near = new Set([state.chosen]);
  const isShown = drawing.nodes.has(state.chosen);
  for (const { ends, arc, place } of drawing.arcs) {
    const isNear = ends.includes(state.chosen);
    arc.classList.toggle('near', isNear);
    place?.classList.toggle('near', isNear);
    if (isNear) ends.forEach(id => near.add(id));
  }
  const wanted = matcher();
  for (const [id, node] of drawing.nodes) {
    node.classList.toggle('found', !!wanted?.(id));
    node.classList.toggle('chosen', id === state.chosen);
    node.classList.toggle('near', isShown && near.has(id));
    node.setAttribute('aria-pressed', id === state.chosen);
    node.setAttribute('tabindex', id === drawing.at ? 0 : -1);
  }
}

function focusNode(id) {
  const node = drawing.nodes.get(id);
  if (!node) return;
  drawing.nodes.get(drawing.at)?.setAttribute('tabindex', -1);
  drawing.at = id;
  node.setAttribute('tabindex', 0);
  node.focus({ preventScroll: true });
  showNode(id);
}

/** Scrolls as far as a box is outside of the frame. */
function showNode(id, block) {
  const frame = byId('drawing'), place = drawing.place?.get(id);
  if (!place) return;
  const [width, height] = drawing.shown.node.map(length => length * drawing.zoom);
  const [x, y] = place.map(length => (length + MARGIN) * drawing.zoom);
  if (block === 'center') {
    frame.scrollLeft = x + width / 2 - frame.clientWidth / 2;
    frame.scrollTop = y - 24;
    return;
  }
  frame.scrollLeft = Math.max(Math.min(frame.scrollLeft, x - 8), x + width + 8 - frame.clientWidth);
  frame.scrollTop = Math.max(Math.min(frame.scrollTop, y - 8), y + height + 8 - frame.clientHeight);
}

function resizeDrawing(zoom) {
  const frame = byId('drawing'), made = drawing.shown;
  if (!made) return;
  const before = drawing.zoom, middle = [frame.scrollLeft + frame.clientWidth / 2, frame.scrollTop + frame.clientHeight / 2];
  drawing.zoom = Math.max(0.1, Math.min(3, zoom));
  drawing.svg.setAttribute('width', Math.round((made.width + 2 * MARGIN) * drawing.zoom));
  drawing.svg.setAttribute('height', Math.round((made.height + 2 * MARGIN) * drawing.zoom));
  frame.scrollLeft = middle[0] * drawing.zoom / before - frame.clientWidth / 2;
  frame.scrollTop = middle[1] * drawing.zoom / before - frame.clientHeight / 2;
}

/** The box that an arrow key leads to: the heaviest caller or callee, or the next in the same layer. */
function nextNode(id, key) {
  if (key === 'ArrowUp') return drawing.arcs.find(it => it.ends[1] === id)?.ends[0];
  if (key === 'ArrowDown') return drawing.arcs.find(it => it.ends[0] === id)?.ends[1];
  const [x, y] = drawing.place.get(id), sign = key === 'ArrowRight' ? 1 : -1;
  const beside = [...drawing.place].filter(([, place]) => Math.abs(place[1] - y) < drawing.shown.node[1] && sign * (place[0] - x) > 0);
  return beside.sort((a, b) => sign * (a[1][0] - b[1][0]))[0]?.[0];
}

function startDrawing() {
  const frame = byId('drawing'), grip = { at: null };
  byId('drawing-level').addEventListener('change', () => { drawing.level = byId('drawing-level').value; refresh(); });
  byId('drawing-larger').addEventListener('click', () => resizeDrawing(drawing.zoom * 1.25));
  byId('drawing-smaller').addEventListener('click', () => resizeDrawing(drawing.zoom / 1.25));
  byId('drawing-fit').addEventListener('click', () => resizeDrawing(Math.min(1, frame.clientWidth / (drawing.shown.width + 2 * MARGIN), frame.clientHeight / (drawing.shown.height + 2 * MARGIN))));
  byId('drawing-find').addEventListener('click', () => focusNode(state.chosen));
  frame.addEventListener('wheel', event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    resizeDrawing(drawing.zoom * Math.exp(-event.deltaY / 300));
  }, { passive: false });
  frame.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse' && !event.target.closest('.node')) grip.at = [event.clientX + frame.scrollLeft, event.clientY + frame.scrollTop];
  });
  addEventListener('pointermove', event => { if (grip.at) frame.scrollTo(grip.at[0] - event.clientX, grip.at[1] - event.clientY); });
  addEventListener('pointerup', () => { grip.at = null; });
  frame.addEventListener('keydown', event => {
    const isNode = event.target.closest('.node');
    if (event.key === '+' || event.key === '-') resizeDrawing(drawing.zoom * (event.key === '+' ? 1.25 : 0.8));
    else if (isNode && event.key.startsWith('Arrow')) focusNode(nextNode(drawing.at, event.key));
    else if (isNode && (event.key === 'Enter' || event.key === ' ')) choose(drawing.at);
    else return;
    event.preventDefault();
  });
}

/** Offers the drawings of an event. */
function offerDrawings(event) {
  const options = event.drawings.map((made, i) => element('option', { value: i, textContent: made.hidden_functions ? `${made.functions.length} heaviest functions` : made.functions.length === 1 ? 'the only function' : `all ${made.functions.length} functions` }));
  byId('drawing-level').replaceChildren(...options, element('option', { value: 'around', textContent: 'the selected function' }));
  drawing.level = '0';
}
