// The flame graph of a part of time, in every degree. What ends in the frames where every call is one has
// sums by bucket; each of these frames leads to one of a collapsed tree, as a call does: to the frame of its
// function under the one that its caller leads to, and by a stub to the frame above that stands for it.

/** The tree of a degree in a part of time; the whole one where what ends in its frames then is not known. */
async function partTree(event, degree, whole, part) {
  if (!event.tree_times) return whole;
  const every = await once(event, 'tree-none', () => treeOf(event, 'none'));
  const then = await once(part, 'tree', async () => everyPart(every, await endsOf(event), part));
  if (degree === 'none') return then;
  const steps = stepsInto(event, degree, every, whole);
  return steps ? once(part, `tree-${degree}`, () => collapsedPart(every, then, whole, steps)) : whole;
}

/** Why the whole time is shown where a part of it is chosen. */
const whyWhole = event => (event.tree_times ? 'lighter frames are left out of this page, so it is not known where all collapsed calls led then' : 'this page has no times of its frames, as there are too many');

/** What ends in frames by time: twice the number of the frame, or one more for what is left out under it. */
const endsOf = event => once(event, 'tree-times', async () => {
  const columns = await unpack(event.tree_times), unit = columns.number(), count = columns.number();
  const code = columns.column(count, Uint32Array), bucket = columns.column(count, Uint32Array);
  for (let i = 1; i < count; i++) code[i] += code[i - 1];
  return { code, bucket, weight: columns.column(count).map(value => value * unit) };
});

/** A tree without weights, of the same frames. */
function emptied(tree) {
  const n = tree.count;
  return { ...tree, own: new Float64Array(n), more: new Float64Array(n), left_out: new Float64Array(n), start: new Float64Array(n), width: new Float64Array(n), end: new Int32Array(n) };
}

function everyPart(every, ends, { first, last }) {
  const part = emptied(every);
  for (let i = 0; i < ends.code.length; i++) {
    if (ends.bucket[i] < first || ends.bucket[i] > last) continue;
    const node = ends.code[i] >> 1;
    if (ends.code[i] & 1) part.left_out[node] += ends.weight[i]; else part.own[node] += ends.weight[i];
  }
  return counted(laidOut(part));
}

/** For each frame where every call is one the frame or stub of a collapsed tree that its call leads to, and
    the frame where that goes on; null where not all frames are in the page. */
function stepsInto(event, degree, every, tree) {
  if (every.left || tree.left) return null;
  return once(event, `steps-${degree}`, () => {
    const under = new Map(), step = new Uint32Array(every.count), at = new Uint32Array(every.count);
    const key = (parent, id) => parent * 2 ** 26 + id;
    for (let i = 1; i < tree.count; i++) under.set(key(tree.parent[i], tree.fn[i]), i);
    for (let i = 1; i < every.count; i++) {
      let node = step[i] = under.get(key(at[every.parent[i]], every.fn[i]));
      // A stub leads a number of levels up.
      if (tree.marks[node] & STUB) for (let up = tree.left_out[step[i]]; up > 0; up--) node = tree.parent[node];
      at[i] = node;
    }
    return { step, at };
  });
}

/** A collapsed tree in a part of time, of which `then` is the tree where every call is a frame. */
function collapsedPart(every, then, tree, { step, at }) {
  const part = emptied(tree), passes = new Float64Array(tree.count), open = new Uint32Array(tree.count), path = [];
  for (let i = 1; i < every.count; i++) {
    while (path.length >= every.level[i]) open[step[path.pop()]]--;
    path.push(i);
    part.own[at[i]] += then.own[i];
    // A sample counts once in what its stack passes: where it first comes there.
    if (!open[step[i]]++) passes[step[i]] += then.width[i];
  }
  for (let i = 1; i < tree.count; i++) {
    if (!(tree.marks[i] & STUB)) continue;
    part.own[i] = passes[i];
    part.left_out[i] = tree.left_out[i];
  }
  laidOut(part);
  for (let i = 1; i < tree.count; i++) if (!(tree.marks[i] & STUB)) part.more[i] = passes[i] - part.width[i];
  return counted(part);
}
