// The flame graph: frames on a canvas, the outermost at the top. Only what is wider than a third of a
// pixel and within the frame's height is drawn, so that the number of nodes does not matter.
const FRAME = 19, LEAST = 0.34;
const STUB = 1, INFERRED = 2, INLINED = 4;
const flame = { tree: null, degree: 'none', zoom: 0, chosen: -1, hover: -1, event: null };

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
function frameColor(id, isDark, isFaint) {
  const key = `${functions.modules[id]}${isDark}${isFaint}`;
  if (!palette.has(key)) {
    const hue = moduleOf(id).startsWith('[kernel') ? 28 : (140 + functions.modules[id] * 137.5) % 360;
    palette.set(key, isDark ? `hsl(${hue} ${isFaint ? 14 : 42}% ${isFaint ? 24 : 34}%)` : `hsl(${hue} ${isFaint ? 22 : 68}% ${isFaint ? 90 : 78}%)`);
  }
  return palette.get(key);
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
  const base = tree.level[flame.zoom], top = frame.scrollTop;
  byId('flame-space').style.height = `${Math.max(0, (tree.deepest - base + 1) * FRAME - height)}px`;
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
  const rows = { first: Math.floor(top / FRAME), last: Math.ceil((top + height) / FRAME) };
  for (let i = flame.zoom; i < tree.end[flame.zoom];) {
    const x = (tree.start[i] - left) * scale, w = tree.width[i] * scale, row = tree.level[i] - base;
    if (w < LEAST || row > rows.last) { i = tree.end[i]; continue; }
    if (row >= rows.first) drawFrame(pen, tree, i, x, row * FRAME - top, w, { isDark, ink, ground, hatching, wanted });
    i++;
  }
}

function drawFrame(pen, tree, i, x, y, w, look) {
  const id = tree.fn[i], isAll = i === 0, isStub = tree.marks[i] & STUB;
  const isFaint = look.wanted && !isAll && !look.wanted(id);
  const inner = Math.max(w - 1, LEAST);
  pen.fillStyle = isAll || isStub ? look.ground : frameColor(id, look.isDark, isFaint);
  pen.fillRect(x, y + 1, inner, FRAME - 2);
  if (!isAll && (tree.marks[i] & INFERRED || cutMarks.has(id))) { pen.fillStyle = look.hatching; pen.fillRect(x, y + 1, inner, FRAME - 2); }
  if (isStub && w > 3) {
    pen.strokeStyle = look.ink; pen.setLineDash([3, 3]);
    pen.strokeRect(x + 0.5, y + 1.5, inner - 1, FRAME - 3);
    pen.setLineDash([]);
  }
  if (look.wanted && !isAll && !isFaint && w > 1) { pen.strokeStyle = look.isDark ? '#ff7bd5' : '#b0006d'; pen.lineWidth = 2; pen.strokeRect(x + 1, y + 2, Math.max(inner - 2, 1), FRAME - 4); pen.lineWidth = 1; }
  if (i === flame.chosen) { pen.strokeStyle = look.ink; pen.lineWidth = 2; pen.strokeRect(x + 1, y + 2, Math.max(inner - 2, 1), FRAME - 4); pen.lineWidth = 1; }
  if (w > 26) {
    const text = isAll ? `all: ${weight(tree.width[0], flame.event)}` : (isStub ? '↩ ' : '') + (tree.marks[i] & INFERRED ? '≈' : '') + brief(id);
    pen.fillStyle = look.ink;
    pen.fillText(fitted(pen, text, w - 8), x + 4, y + FRAME / 2 + 0.5);
  }
}

/** Where the last parts of a path begin, the longest first: not within arguments. */
function endings(name) {
  const found = [];
  let depth = 0;
  for (let i = 0; i < name.length; i++) {
    if (name[i] === '<' || name[i] === '(') depth++;
    else if ((name[i] === '>' || name[i] === ')') && depth) depth--;
    else if (!depth && name[i] === ':' && name[i + 1] === ':') found.push(i++);
  }
  return found;
}

/** The least room in which the start of a path is left out, in pixels. */
const NARROW = 84;

/** As much of a text as there is room for: of a path its end, which tells functions apart. */
function fitted(pen, text, room) {
  // What has more letters need not be measured.
  const most = room / 2.5;
  const fits = part => part.length <= most && pen.measureText(part).width <= room;
  if (fits(text)) return text;
  if (room >= NARROW) {
    const end = endings(text).map(at => `…${text.slice(at)}`).find(fits);
    if (end) return end;
  }
  let low = 0, high = Math.min(text.length, Math.ceil(most));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle; else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : '';
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
  return lines.filter(Boolean).join('\n');
}

function frameAt(clientX, clientY) {
  const tree = flame.tree, frame = byId('flame'), box = byId('flame-canvas').getBoundingClientRect();
  if (!tree) return -1;
  const scale = frame.clientWidth / Math.max(tree.width[flame.zoom], 1e-9);
  const x = tree.start[flame.zoom] + (clientX - box.left) / scale;
  const level = tree.level[flame.zoom] + Math.floor((clientY - box.top + frame.scrollTop) / FRAME);
  for (let i = flame.zoom; i < tree.end[flame.zoom];) {
    const isInside = x >= tree.start[i] && x < tree.start[i] + tree.width[i];
    if (!isInside) { i = tree.end[i]; continue; }
    if (tree.level[i] === level) return i;
    i++;
  }
  return -1;
}

function zoomTo(i) {
  flame.zoom = flame.tree.marks[i] & STUB ? flame.tree.parent[i] : i;
  byId('flame').scrollTop = 0;
  drawFlame();
}

function chooseFrame(i, isQuiet) {
  if (i < 0 || i >= flame.tree.count) return;
  flame.chosen = i;
  byId('flame-status').textContent = frameText(i).replace(/\n/g, '; ');
  const frame = byId('flame'), y = (flame.tree.level[i] - flame.tree.level[flame.zoom]) * FRAME;
  if (y < frame.scrollTop) frame.scrollTop = y;
  if (y + FRAME > frame.scrollTop + frame.clientHeight) frame.scrollTop = y + FRAME - frame.clientHeight;
  if (i > 0) choose(flame.tree.fn[i], null, true);
  drawFlame();
}

async function showFlame() {
  const event = current(), degree = byId('degree').value, part = timePart();
  const whole = await once(event, `tree-${degree}`, () => treeOf(event, degree));
  const tree = part ? await partTree(event, degree, whole, part) : whole;
  if (event !== current() || degree !== byId('degree').value || part?.key !== timePart()?.key) return;
  const isPart = tree !== whole;
  showCommand('tree', commandOf(event, `tree-${degree}`, isPart ? part : null));
  if (flame.tree !== tree) {
    Object.assign(flame, { tree, degree, event, zoom: 0, chosen: -1 });
    // It was about a frame of the other tree, with its figures.
    byId('flame-status').textContent = '';
  }
  const left = tree.left ? ` ${numberOf(tree.left, 'lighter frame')} ${tree.left === 1 ? 'is' : 'are'} left out of this page.` : '';
  const range = isPart ? ` Time ${brushRange(event)} s.` : part ? ` The whole time is shown, not ${brushRange(event)} s: ${whyWhole(event)}.` : '';
  const frames = tree.width[0] ? `${numberOf(tree.frames, 'frame')}, ${numberOf(tree.deepest, 'level')}.` : 'No sample was taken in this part of time.';
  byId('flame-note').textContent = `${frames}${left}${range}`;
  drawFlame();
}

/** The frame beside another one, or -1. */
function neighbour(i, key) {
  const tree = flame.tree;
  if (i < 0) return 0;
  if (key === 'ArrowUp') return i === flame.zoom ? -1 : tree.parent[i];
  if (key === 'ArrowDown') return i + 1 < tree.end[i] ? i + 1 : -1;
  if (key === 'ArrowRight') { const next = tree.end[i]; return next < tree.end[tree.parent[i]] ? next : -1; }
  let before = tree.parent[i] + 1;
  if (i === 0 || before === i) return -1;
  while (tree.end[before] < i) before = tree.end[before];
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
  byId('degree').addEventListener('change', showFlame);
  byId('unzoom').addEventListener('click', () => zoomTo(0));
}
