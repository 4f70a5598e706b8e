// The time line: a heat map with a row for each thread, and a brush that filters what the views show.
// Sums of buckets are computed before; a part of time is a sum of them.
const HEAT_ROW = 16;
const brush = { first: 0, last: -1, event: null, drag: -1 };

async function timesOf(event) {
  const columns = await unpack(event.time.columns);
  const unit = columns.number(), buckets = columns.number();
  const weights = () => columns.column(buckets).map(value => value * unit);
  const times = { buckets, weights: weights(), threads: event.time.threads.map(weights) };
  const sums = columns.number(), counts = columns.column(event.time.functions.length, Uint32Array);
  const bucket = columns.column(sums, Uint32Array);
  times.own = columns.column(sums);
  times.total = columns.column(sums);
  times.innermost = columns.column(sums);
  times.bucket = bucket;
  const placeOf = new Map(event.flat.functions.map((id, place) => [id, place]));
  times.place = ownersOf(counts, bucket).map(i => placeOf.get(event.time.functions[i]));
  for (let i = 0; i < sums; i++) {
    times.own[i] *= unit;
    times.total[i] = times.own[i] + times.total[i] * unit;
    times.innermost[i] = times.total[i] - times.innermost[i] * unit;
  }
  return times;
}

const isBrushed = event => brush.event === event && brush.last >= brush.first && event.times;

/** The command's way to write a time. */
function seconds(nanoseconds) {
  const digits = String(nanoseconds).padStart(10, '0');
  return `${digits.slice(0, -9)}.${digits.slice(-9).replace(/0+$/, '') || '0'}`;
}

/** Where a bucket begins, in nanoseconds after the first sample; the last one ends where the part of time does that the page is about. */
const beginOf = (event, bucket) => Math.min(event.time.start + bucket * event.time.bucket, event.time.end ?? Infinity);
const brushRange = event => `${seconds(beginOf(event, brush.first))}..${seconds(beginOf(event, brush.last + 1))}`;

/** What functions have in the brushed part of time; null if all of it is shown. */
function timePart() {
  const event = current();
  if (!isBrushed(event)) return null;
  const key = `${brush.first}-${brush.last}`, times = event.times;
  return once(times, key, () => {
    const rows = event.flat.functions.length, own = new Float64Array(rows), total = new Float64Array(rows), innermost = new Float64Array(rows);
    for (let i = 0; i < times.bucket.length; i++) {
      if (times.bucket[i] < brush.first || times.bucket[i] > brush.last) continue;
      own[times.place[i]] += times.own[i];
      total[times.place[i]] += times.total[i];
      innermost[times.place[i]] += times.innermost[i];
    }
    const whole = times.weights.subarray(brush.first, brush.last + 1).reduce((sum, value) => sum + value, 0);
    const placeOf = new Map(event.flat.functions.map((id, place) => [id, place]));
    const figuresOf = id => { const place = placeOf.get(id) ?? -1; return { total: total[place] ?? 0, self: own[place] ?? 0, innermost: innermost[place] ?? 0, whole }; };
    // A cycle's self weight is that of its members; its total is not the sum of theirs.
    const cycle = (listing, number, calls) => {
      const sum = calls ? calls.cycle(number) : -1;
      return { self: membersOf(listing, number).reduce((sum, id) => sum + figuresOf(id).self, 0), total: sum, innermost: sum, whole };
    };
    return { self: own, total, whole, key, first: brush.first, last: brush.last, figuresOf, cycle };
  });
}

async function showTime() {
  const event = current(), place = byId('time');
  place.hidden = !event.time;
  if (!event.time) return;
  event.times = await once(event, 'times', () => timesOf(event));
  if (event !== current()) return;
  if (brush.event !== event) Object.assign(brush, { event, first: 0, last: -1 });
  for (const id of ['time-first', 'time-last']) byId(id).max = event.times.buckets - 1;
  showBrush();
}

/** Says where the whole time is shown although a part of it is chosen. */
function noteTime() {
  const isPart = page && timePart();
  if (isPart) byId('callers-time').textContent = noCallTimes(current());
  for (const note of document.querySelectorAll('.whole-time')) note.hidden = !isPart || note.id === 'callers-time' && (!!current().time.calls || !current().pairs);
}

function showBrush() {
  const event = current(), isPart = isBrushed(event), times = event.times;
  byId('time-first').value = isPart ? brush.first : 0;
  byId('time-last').value = isPart ? brush.last : times.buckets - 1;
  const say = (id, value) => byId(id).setAttribute('aria-valuetext', `${seconds(beginOf(event, value))} seconds`);
  say('time-first', Number(byId('time-first').value));
  say('time-last', Number(byId('time-last').value) + 1);
  byId('time-all').hidden = !isPart;
  noteTime();
  byId('time-note').textContent = isPart
    ? `Chosen: ${brushRange(event)} s, with ${weight(timePart().whole, event)}. The table, ${event.tree_times ? 'the flame graph, ' : ''}the source${event.time.calls ? ', callers, callees and the call graph' : event.graph ? ' and the boxes of the call graph' : ''} show this time. The facts above, names, marks and cycles are those of the whole time line, numbers of calls those of the whole recording; a command about a part may know a function by another name.`
    : `${times.buckets} buckets of ${weight(event.time.bucket, { is_time: true })}, from ${event.time.start ? `${seconds(event.time.start)} s after ` : ''}the first sample. Drag over the map, or move the sliders, to see a part of time in all views.`;
  nameThreads(event);
  drawHeat();
}

/** The names of threads beside their rows. */
function nameThreads(event) {
  const names = byId('heat-names');
  if (names.event === event) return;
  names.event = event;
  names.replaceChildren(...event.time.threads.map(name => element('div', { role: 'listitem', textContent: name, title: name })));
}

/** How far two numbers on the axis are apart at least, in pixels. */
const TICK = 70;

/** The axis: round numbers of seconds after the first sample. */
function drawAxis(event, width) {
  const from = beginOf(event, 0) / 1e9, to = beginOf(event, event.times.buckets) / 1e9, length = Math.max(to - from, 1e-9);
  const least = length * TICK / Math.max(width, TICK), power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map(times => times * power).find(it => it >= least);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to; i++) {
    const tick = element('span', { textContent: `${(i * step).toFixed(decimals)} s` }), share = (i * step - from) / length;
    tick.style.left = `${100 * share}%`;
    // The last number ends at its line, or it would be cut off.
    tick.classList.toggle('last', (1 - share) * width < TICK / 2);
    ticks.push(tick);
  }
  byId('heat-axis').replaceChildren(...ticks);
}

function drawHeat() {
  const event = current(), times = event.times, canvas = byId('heat');
  if (!times || canvas.offsetParent === null) return;
  const ratio = devicePixelRatio || 1, width = byId('heat-axis').clientWidth, height = HEAT_ROW * times.threads.length;
  drawAxis(event, width);
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const style = getComputedStyle(document.documentElement), isDark = style.colorScheme === 'dark';
  const most = Math.max(1, ...times.threads.map(row => row.reduce((a, b) => Math.max(a, b), 0)));
  const w = width / times.buckets;
  times.threads.forEach((row, y) => {
    for (let i = 0; i < times.buckets; i++) {
      const heat = Math.sqrt(row[i] / most);
      pen.fillStyle = row[i] ? (isDark ? `hsl(${48 - 36 * heat} 85% ${24 + 38 * heat}%)` : `hsl(${48 - 40 * heat} 90% ${86 - 44 * heat}%)`) : style.getPropertyValue('--raised');
      pen.fillRect(i * w, y * HEAT_ROW, w + 0.5, HEAT_ROW - 1);
    }
  });
  if (brush.last < brush.first || brush.event !== event) return;
  pen.fillStyle = isDark ? '#000000a0' : '#ffffffb8';
  pen.fillRect(0, 0, brush.first * w, height);
  pen.fillRect((brush.last + 1) * w, 0, width, height);
  pen.strokeStyle = style.getPropertyValue('--accent'); pen.lineWidth = 2;
  pen.strokeRect(brush.first * w + 1, 1, (brush.last + 1 - brush.first) * w - 2, height - 2);
}

function setBrush(first, last) {
  const times = current().times;
  const isAll = first <= 0 && last >= times.buckets - 1;
  Object.assign(brush, isAll ? { first: 0, last: -1 } : { first, last });
  showBrush();
  drawTable();
  showFlame().catch(fail);
  remember();
}

function startTime() {
  const canvas = byId('heat');
  const spot = event => {
    const box = canvas.getBoundingClientRect(), times = current().times;
    const bucket = Math.floor((event.clientX - box.left) / box.width * times.buckets);
    return { bucket: Math.max(0, Math.min(times.buckets - 1, bucket)), row: Math.floor((event.clientY - box.top) / HEAT_ROW) };
  };
  canvas.addEventListener('pointerdown', event => {
    if (!current().times) return;
    canvas.setPointerCapture(event.pointerId);
    brush.drag = spot(event).bucket;
  });
  canvas.addEventListener('pointermove', event => {
    const times = current().times;
    if (!times) return;
    const { bucket, row } = spot(event);
    if (brush.drag >= 0) {
      Object.assign(brush, { first: Math.min(brush.drag, bucket), last: Math.max(brush.drag, bucket) });
      drawHeat();
    }
    const name = current().time.threads[row];
    const from = beginOf(current(), bucket);
    showTip(name ? `${name}\nfrom ${seconds(from)} s: ${weight(times.threads[row][bucket], current())}` : '', event.clientX, event.clientY);
  });
  canvas.addEventListener('pointerup', event => {
    if (brush.drag < 0) return;
    const { bucket } = spot(event), from = brush.drag;
    brush.drag = -1;
    setBrush(Math.min(from, bucket), Math.max(from, bucket));
  });
  canvas.addEventListener('pointerleave', () => showTip(''));
  const slide = () => {
    const [a, b] = [Number(byId('time-first').value), Number(byId('time-last').value)];
    setBrush(Math.min(a, b), Math.max(a, b));
  };
  byId('time-first').addEventListener('change', slide);
  byId('time-last').addEventListener('change', slide);
  byId('time-all').addEventListener('click', () => setBrush(0, Infinity));
  new ResizeObserver(() => requestAnimationFrame(drawHeat)).observe(canvas.parentElement);
}
