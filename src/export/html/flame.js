// The flame graph: frames on a canvas, the outermost at the top. Only what is wider than a third of a
// pixel and within the frame's height is drawn, so that the number of nodes does not matter.
const FRAME = 19, LEAST = 0.34;
const STUB = 1, INFERRED = 2, INLINED = 4;
const flame = { tree: null, rows: null, degree: 'none', zoom: 0, chosen: -1, event: null, isSought: false, wanted: 0 };

/** The columns of a tree, with where each frame begins and ends; node 0 stands for all roots. */
async function treeOf(event, degree) {
  const columns = await unpack(event.trees[degree]);
  const count = columns.number(), left = columns.number(), roots = columns.number(), n = count + 1;
  const tree = { count: n, left, level: new Uint32Array(n), parent: new Int32Array(n), end: new Int32Array(n), start: new Float64Array(n), width: new Float64Array(n) };
  const up = columns.column(count, Uint32Array);
  const shift = (Type) => { const all = new Type(n); all.set(columns.column(count, Type), 1); return all; };
  tree.fn = shift(Uint32Array); tree.marks = shift(Uint8Array); tree.own = shift(Float64Array); tree.more = shift(Float64Array); tree.left_out = shift(Float64Array);
  tree.fn[0] = 0xffffffff;
  tree.left_out[0] = roots;
  const path = [0];
  for (let i = 1; i < n; i++) {
    path.length -= up[i - 1];
    tree.parent[i] = path[path.length - 1];
    tree.level[i] = path.length;
    path.push(i);
  }
  return counted(laidOut(tree));
}

/** Gives frames their width, end and place. */
function laidOut(tree) {
  const n = tree.count;
  for (let i = n - 1; i >= 0; i--) {
    tree.end[i] = Math.max(tree.end[i], i + 1);
    const isStub = tree.marks[i] & STUB;
    if (!isStub) tree.width[i] += tree.own[i] + tree.left_out[i];
    if (i === 0) break;
    const above = tree.parent[i];
    if (!isStub) tree.width[above] += tree.width[i];
    tree.end[above] = Math.max(tree.end[above], tree.end[i]);
  }
  // Children from the left; stubs, which end elsewhere, in the room of what ends in the caller itself.
  const free = new Float64Array(n);
  for (let i = 1; i < n; i++) {
    const above = tree.parent[i];
    tree.start[i] = free[above];
    if (tree.marks[i] & STUB) tree.width[i] = Math.min(tree.own[i], tree.start[above] + tree.width[above] - free[above]);
    free[above] += tree.width[i];
    free[i] = tree.start[i];
  }
  return tree;
}

/** Counts the frames that have a weight, and their levels. */
function counted(tree) {
  tree.frames = tree.deepest = 0;
  for (let i = 1; i < tree.count; i++) {
    if (!tree.own[i] && !tree.width[i] && !tree.more[i]) continue;
    tree.frames++;
    tree.deepest = Math.max(tree.deepest, tree.level[i]);
  }
  return tree;
}

const palette = new Map();
/** The hue of an owner: the user's own code first, so that it has the same one in each page. */
const hues = new Map();
function hueOf(owner) {
  if (!hues.size) {
    const rank = kind => ({ project: 0, library: 1, standard: 2 }[kind] ?? 3);
    const owners = [...functions.owner_kinds.keys()].sort((a, b) => rank(functions.owner_kinds[a]) - rank(functions.owner_kinds[b]));
    owners.forEach((it, place) => hues.set(it, (140 + place * 137.5) % 360));
  }
  return functions.owner_kinds[owner] === 'kernel' ? 28 : hues.get(owner);
}

function ownerColor(owner, isDark, isFaint) {
  const key = `${owner}${isDark}${isFaint}`;
  if (!palette.has(key)) {
    const isPale = ['standard', 'mark'].includes(functions.owner_kinds[owner]), hue = hueOf(owner);
    palette.set(key, isDark ? `hsl(${hue} ${isFaint ? 14 : isPale ? 18 : 44}% ${isFaint ? 24 : 34}%)` : `hsl(${hue} ${isFaint ? 22 : isPale ? 26 : 70}% ${isFaint ? 90 : isPale ? 84 : 76}%)`);
  }
  return palette.get(key);
}

/** The fewest frames that are folded, and what part of a chain's weight its last frame has at least. */
const SHORTEST = 3, NEARLY_ALL = 0.99;
const WITHIN = 1, BESIDE = 2;

/** The line of each frame, as chains of other people's code are folded into their last frame, or not. Of these, the
    others are `WITHIN`, and what is beside them and too light to matter is `BESIDE`. */
function rowsOf(tree, event, isFolded) {
  const n = tree.count, rows = { row: new Uint32Array(n), hidden: new Uint8Array(n), frames: new Uint32Array(n), first: new Int32Array(n), deepest: 0, folded: 0 };
  const hasOwn = functions.owner_kinds.includes('project');
  const isForeign = i => {
    const kind = ownerKind(tree.fn[i]);
    return !(tree.marks[i] & STUB) && kind !== 'mark' && (hasOwn ? kind !== 'project' : event.is_off_processor && kind === 'kernel');
  };
  const isKernel = i => ownerKind(tree.fn[i]) === 'kernel';
  const next = new Int32Array(n);
  for (let i = 1; isFolded && i < n; i++) {
    if (!isForeign(i)) continue;
    const above = tree.parent[i];
    // Not from the function that waits to the kernel, where threads leave their processor.
    const isJoined = rows.frames[above] && tree.width[i] >= NEARLY_ALL * tree.width[rows.first[above]] && !(event.is_off_processor && isKernel(above) !== isKernel(i));
    rows.first[i] = isJoined ? rows.first[above] : i;
    rows.frames[i] = isJoined ? rows.frames[above] + 1 : 1;
    if (isJoined) next[above] = i;
  }
  for (let i = 1; i < n; i++) {
    if (rows.frames[i] < SHORTEST || next[i]) continue;
    for (let inner = i, at = tree.parent[i]; inner !== rows.first[i]; inner = at, at = tree.parent[at]) {
      rows.hidden[at] = WITHIN;
      rows.folded++;
      for (let child = at + 1; child < tree.end[at]; child = tree.end[child]) if (child !== inner) rows.hidden[child] = BESIDE;
    }
  }
  for (let i = 1; i < n; i++) {
    const above = tree.parent[i];
    if (rows.hidden[above] === BESIDE) rows.hidden[i] = BESIDE;
    rows.row[i] = rows.row[above] + (rows.hidden[above] === WITHIN ? 0 : 1);
    if (rows.hidden[i] || next[i] || rows.frames[i] < SHORTEST) rows.frames[i] = 0;
    if (!rows.hidden[i] && (tree.width[i] || tree.own[i])) rows.deepest = Math.max(rows.deepest, rows.row[i]);
  }
  return rows;
}

/** The first frame from a place on that has a line, before `end`; -1 if there is none. */
function visible(i, end) {
  const { tree, rows } = flame;
  while (i < end) {
    if (!rows.hidden[i]) return i;
    i = rows.hidden[i] === BESIDE ? tree.end[i] : i + 1;
  }
  return -1;
}

/** The frame that has the line of a frame: of one in a chain the last. */
function shownFrame(i) {
  while (flame.rows.hidden[i] === BESIDE) i = flame.tree.parent[i];
  return visible(i, flame.tree.end[i]);
}

/** The frame whose line a frame's line is under. */
function frameAbove(i) {
  let above = flame.tree.parent[i];
  while (flame.rows.hidden[above]) above = flame.tree.parent[above];
  return above;
}

function hatch(context, color) {
  const tile = element('canvas', { width: 6, height: 6 }), pen = tile.getContext('2d');
  pen.strokeStyle = color;
  pen.beginPath(); pen.moveTo(-1, 7); pen.lineTo(7, -1); pen.moveTo(-1, 1); pen.lineTo(1, -1); pen.moveTo(5, 7); pen.lineTo(7, 5); pen.stroke();
  return context.createPattern(tile, 'repeat');
}

function drawFlame() {
  const tree = flame.tree, frame = byId('flame'), canvas = byId('flame-canvas');
  if (!tree || frame.offsetParent === null) return;
  const ratio = devicePixelRatio || 1, width = frame.clientWidth, height = frame.clientHeight;
  const { row, hidden } = flame.rows, base = row[flame.zoom], top = frame.scrollTop;
  byId('flame-space').style.height = `${Math.max(0, (flame.rows.deepest - base + 1) * FRAME - height)}px`;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const style = getComputedStyle(document.documentElement), isDark = style.colorScheme === 'dark';
  const ink = style.getPropertyValue('--ink'), ground = style.getPropertyValue('--ground');
  pen.fillStyle = ground; pen.fillRect(0, 0, width, height);
  pen.font = '12px system-ui, sans-serif'; pen.textBaseline = 'middle';
  const hatching = hatch(pen, isDark ? '#ffffff66' : '#00000055');
  const wanted = matcher();
  const scale = width / Math.max(tree.width[flame.zoom], 1e-9), left = tree.start[flame.zoom];
  const first = Math.floor(top / FRAME), last = Math.ceil((top + height) / FRAME);
  for (let i = flame.zoom; i < tree.end[flame.zoom];) {
    const x = (tree.start[i] - left) * scale, w = tree.width[i] * scale, line = row[i] - base;
    if (w < LEAST || line > last || hidden[i] === BESIDE) { i = tree.end[i]; continue; }
    if (line >= first && !hidden[i]) drawFrame(pen, tree, i, x, line * FRAME - top, w, { isDark, ink, ground, hatching, wanted });
    i++;
  }
}

function drawFrame(pen, tree, i, x, y, w, look) {
  const id = tree.fn[i], isAll = i === 0, isStub = tree.marks[i] & STUB;
  const isFaint = look.wanted && !isAll && !look.wanted(id);
  const inner = Math.max(w - 1, LEAST);
  pen.fillStyle = isAll || isStub ? look.ground : ownerColor(functions.owners[id], look.isDark, isFaint);
  pen.fillRect(x, y + 1, inner, FRAME - 2);
  if (!isAll && (tree.marks[i] & INFERRED || cutMarks.has(id))) { pen.fillStyle = look.hatching; pen.fillRect(x, y + 1, inner, FRAME - 2); }
  if (isStub && w > 3) {
    pen.strokeStyle = look.ink; pen.setLineDash([3, 3]);
    pen.strokeRect(x + 0.5, y + 1.5, inner - 1, FRAME - 3);
    pen.setLineDash([]);
  }
  if (look.wanted && !isAll && !isFaint && w > 1) { pen.strokeStyle = look.isDark ? '#ff7bd5' : '#b0006d'; pen.lineWidth = 2; pen.strokeRect(x + 1, y + 2, Math.max(inner - 2, 1), FRAME - 4); pen.lineWidth = 1; }
  if (!isAll && id === state.chosen && state.isAsked && w > 2) { pen.strokeStyle = look.ink; pen.strokeRect(x + 0.5, y + 1.5, Math.max(inner - 1, 1), FRAME - 3); }
  if (i === flame.chosen) { pen.strokeStyle = look.ink; pen.lineWidth = 2; pen.strokeRect(x + 1, y + 2, Math.max(inner - 2, 1), FRAME - 4); pen.lineWidth = 1; }
  if (w > 26) {
    const text = isAll ? `all: ${weight(tree.width[0], flame.event)}` : brief(id), frames = flame.rows.frames[i];
    const before = (frames ? `⋯${frames} ` : '') + (isStub ? '↩ ' : '') + (tree.marks[i] & INFERRED ? '≈' : '');
    pen.fillStyle = look.ink;
    pen.fillText(fitted(pen, text, w - 8, isAll ? [] : breaks(id), before), x + 4, y + FRAME / 2 + 0.5);
  }
}

/** The least room in which the start of a path is left out, in pixels. */
const NARROW = 84;

/** As much of a text as there is room for, after what stands before it: of a path its end, which tells functions apart. */
function fitted(pen, text, room, cuts = [], before = '') {
  // What has more letters need not be measured.
  const most = room / 2.5;
  const fits = part => part.length <= most && pen.measureText(part).width <= room;
  if (fits(before + text)) return before + text;
  if (room >= NARROW) {
    const end = cuts.map(at => `${before}…${text.slice(at)}`).find(fits);
    if (end) return end;
  }
  const whole = before + text;
  let low = 0, high = Math.min(whole.length, Math.ceil(most));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${whole.slice(0, middle)}…`).width <= room) low = middle; else high = middle - 1;
  }
  return low ? `${whole.slice(0, low)}…` : '';
}

/** What is said of a frame: the figures that `tree` prints. */
function frameText(i) {
  const tree = flame.tree, event = flame.event, all = tree.width[0];
  if (i === 0) return `all samples: ${weight(all, event)}`;
  const id = tree.fn[i], lines = [label(id), moduleOf(id)];
  if (tree.marks[i] & STUB) {
    lines.push(`collapsed call, continues ${numberOf(tree.left_out[i], 'level')} above`, `through it: ${weight(tree.own[i], event)} (${percent(tree.own[i], all)} %)`);
    return lines.filter(Boolean).join('\n');
  }
  const total = tree.width[i] + tree.more[i];
  lines.push(`total ${weight(total, event)} (${percent(total, all)} %), self here ${weight(tree.own[i], event)} (${percent(tree.own[i], all)} %)`);
  if (tree.more[i]) lines.push(`drawn: ${weight(tree.width[i], event)} end in or under it; ${weight(tree.more[i], event)} more pass it and end elsewhere, after a collapsed call`);
  if (tree.left_out[i]) lines.push(`left out under it: ${weight(tree.left_out[i], event)} in lighter calls`);
  if (tree.marks[i] & INFERRED) lines.push('≈ in most samples here not recorded, but restored from the code');
  if (tree.marks[i] & INLINED) lines.push('inlined into its caller');
  if (flame.rows.frames[i]) lines.push(foldText(i));
  return lines.filter(Boolean).join('\n');
}

/** The frames that are folded into one, the outermost first. */
function foldText(i) {
  const names = [];
  for (let at = flame.tree.parent[i]; flame.rows.hidden[at] === WITHIN; at = flame.tree.parent[at]) names.unshift(brief(flame.tree.fn[at]));
  const few = names.length > 8 ? [...names.slice(0, 4), `… ${names.length - 7} more`, ...names.slice(-3)] : names;
  return `⋯ ${numberOf(names.length, 'frame')} folded into it: ${few.join(' → ')}`;
}

function frameAt(clientX, clientY) {
  const tree = flame.tree, frame = byId('flame'), box = byId('flame-canvas').getBoundingClientRect();
  if (!tree) return -1;
  const scale = frame.clientWidth / Math.max(tree.width[flame.zoom], 1e-9);
  const x = tree.start[flame.zoom] + (clientX - box.left) / scale;
  const { row, hidden } = flame.rows, line = row[flame.zoom] + Math.floor((clientY - box.top + frame.scrollTop) / FRAME);
  for (let i = flame.zoom; i < tree.end[flame.zoom];) {
    const isInside = x >= tree.start[i] && x < tree.start[i] + tree.width[i];
    if (!isInside || hidden[i] === BESIDE) { i = tree.end[i]; continue; }
    if (row[i] === line && !hidden[i]) return i;
    i++;
  }
  return -1;
}

function zoomTo(i) {
  flame.zoom = flame.tree.marks[i] & STUB ? flame.tree.parent[i] : i;
  byId('flame').scrollTop = 0;
  drawFlame();
  remember();
}

/** Marks a frame, and scrolls as far as it is outside of the graph. */
function markFrame(i) {
  flame.chosen = i;
  byId('flame-status').textContent = frameText(i).replace(/\n/g, '; ');
  const frame = byId('flame'), y = (flame.rows.row[i] - flame.rows.row[flame.zoom]) * FRAME;
  if (y < frame.scrollTop) frame.scrollTop = y;
  if (y + FRAME > frame.scrollTop + frame.clientHeight) frame.scrollTop = y + FRAME - frame.clientHeight;
}

function chooseFrame(i) {
  if (i < 0 || i >= flame.tree.count) return;
  markFrame(i);
  if (i > 0) { state.isAsked = true; choose(flame.tree.fn[i], null, true); }
  drawFlame();
  remember();
}

/** How wide a frame is at least that somebody looks for, in pixels. */
const SOUGHT = 40;

/** Brings the widest frame of the selected function into the graph. */
function seekFrame() {
  const { tree, rows } = flame;
  let widest = -1;
  for (let i = 1; i < tree.count; i++) {
    if (tree.fn[i] === state.chosen && !(tree.marks[i] & STUB) && (widest < 0 || tree.width[i] > tree.width[widest])) widest = i;
  }
  if (widest < 0 || !tree.width[widest]) {
    flame.chosen = -1;
    byId('flame-status').textContent = `${label(state.chosen)} has no frame of its own here: its calls are collapsed, or too light.`;
    return;
  }
  const i = shownFrame(widest), width = byId('flame').clientWidth || SOUGHT;
  const isInside = i >= flame.zoom && i < tree.end[flame.zoom];
  const holds = above => tree.width[i] / Math.max(tree.width[above], 1e-9) * width >= SOUGHT;
  if (!isInside || !holds(flame.zoom)) {
    flame.zoom = i;
    for (let above = frameAbove(i); i && flame.zoom && holds(above); above = frameAbove(above)) flame.zoom = above;
  }
  markFrame(i);
}

async function showFlame() {
  const event = current(), degree = byId('degree').value, part = timePart();
  const home = byId(`flame-place-${state.view}`), block = byId('flame-graph');
  if (home && block.parentElement !== home) home.append(block);
  const whole = await once(event, `tree-${degree}`, () => treeOf(event, degree));
  const tree = part ? await partTree(event, degree, whole, part) : whole;
  if (event !== current() || degree !== byId('degree').value || part?.key !== timePart()?.key) return;
  const isPart = tree !== whole, folding = byId('folding').value;
  showCommand('tree', commandOf(event, `tree-${degree}`, isPart ? part : null));
  const isNew = flame.tree !== tree;
  Object.assign(flame, { tree, degree, event, rows: once(tree, folding, () => rowsOf(tree, event, folding === 'folded')) });
  if (isNew) {
    Object.assign(flame, { zoom: 0, chosen: -1 });
    // It was about a frame of the other tree, with its figures.
    byId('flame-status').textContent = '';
  }
  if (flame.wanted && flame.wanted < tree.count) flame.zoom = flame.wanted;
  flame.wanted = 0;
  flame.zoom = shownFrame(flame.zoom);
  if (flame.chosen > 0) flame.chosen = shownFrame(flame.chosen);
  byId('flame').style.setProperty('--rows', flame.rows.deepest + 1);
  if (flame.isSought) seekFrame();
  flame.isSought = false;
  const left = tree.left ? ` ${numberOf(tree.left, 'lighter frame')} ${tree.left === 1 ? 'is' : 'are'} left out of this page.` : '';
  const range = isPart ? ` Time ${brushRange(event)} s.` : part ? ` The whole time is shown, not ${brushRange(event)} s: ${whyWhole(event)}.` : '';
  const frames = tree.width[0] ? `${numberOf(tree.frames, 'frame')}, ${numberOf(tree.deepest, 'level')}.` : 'No sample was taken in this part of time.';
  const folded = flame.rows.folded ? ` ${numberOf(flame.rows.folded, 'frame')} folded.` : '';
  byId('flame-note').textContent = `${frames}${folded}${left}${range}`;
  showOwners(event);
  drawFlame();
  remember();
}

/** What the colours stand for: the owners with the most self weight. */
const OWNERS = 8;
function showOwners(event) {
  const isDark = document.documentElement.dataset.theme === 'dark', key = `${state.event}/${isDark}`, list = byId('flame-owners');
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  const weights = new Map();
  event.flat.functions.forEach((id, place) => {
    const owner = functions.owners[id];
    weights.set(owner, (weights.get(owner) ?? 0) + event.flat.self_weights[place]);
  });
  const owners = [...weights.keys()].filter(owner => functions.owner_kinds[owner] !== 'mark').sort((a, b) => weights.get(b) - weights.get(a));
  const items = owners.slice(0, OWNERS).map(owner => {
    const sample = element('span', { className: 'sample', 'aria-hidden': 'true' });
    sample.style.background = ownerColor(owner, isDark, false);
    return element('li', {}, sample, functions.owner_names[owner]);
  });
  if (owners.length > OWNERS) items.push(element('li', { textContent: `${owners.length - OWNERS} more` }));
  list.replaceChildren(...items);
}

/** The frame beside another one, or -1. */
function neighbour(i, key) {
  const tree = flame.tree;
  if (i < 0) return 0;
  if (key === 'ArrowUp') return i === flame.zoom ? -1 : frameAbove(i);
  if (key === 'ArrowDown') return visible(i + 1, tree.end[i]);
  if (i === 0) return -1;
  const above = frameAbove(i);
  if (key === 'ArrowRight') return visible(tree.end[i], tree.end[above]);
  let before = -1;
  for (let at = visible(above + 1, i); at >= 0; at = visible(tree.end[at], i)) before = at;
  return before;
}

/** Unpacks the trees of an event while nothing else is to be done. */
function prepareTrees(event) {
  const idle = window.requestIdleCallback ?? (call => setTimeout(call, 200));
  const degrees = Object.keys(event.trees).sort((a, b) => (b === 'none') - (a === 'none'));
  const next = async () => {
    const degree = degrees.shift();
    if (!degree || event !== current()) return;
    await once(event, `tree-${degree}`, () => treeOf(event, degree));
    idle(start);
  };
  // What fails here fails again, and is reported, when the graph is shown.
  const start = () => next().catch(() => {});
  idle(start);
}

function startFlame() {
  const frame = byId('flame');
  const schedule = () => requestAnimationFrame(drawFlame);
  frame.addEventListener('scroll', schedule, { passive: true });
  new ResizeObserver(schedule).observe(frame);
  frame.addEventListener('pointermove', event => {
    const i = frameAt(event.clientX, event.clientY);
    showTip(i < 0 ? '' : frameText(i), event.clientX, event.clientY);
  });
  frame.addEventListener('pointerleave', () => showTip(''));
  frame.addEventListener('click', event => {
    const i = frameAt(event.clientX, event.clientY);
    if (i >= 0) { chooseFrame(i); zoomTo(i); }
  });
  frame.addEventListener('keydown', event => {
    if (!flame.tree) return;
    if (event.key.startsWith('Arrow')) {
      event.preventDefault();
      chooseFrame(neighbour(flame.chosen, event.key));
    } else if (event.key === 'Enter' && flame.chosen >= 0) zoomTo(flame.chosen);
  });
  for (const id of ['degree', 'folding']) byId(id).addEventListener('change', showFlame);
  byId('unzoom').addEventListener('click', () => zoomTo(0));
}
