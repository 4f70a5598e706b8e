// What calls and cycles have in the brushed part of time: sums of what they have in its buckets.

/** A call by its ends, as a key; an outermost function has the caller -1. */
const callKey = (caller, callee) => (caller + 1) * 2 ** 26 + callee;

/** Turns steps from one bucket to the next into buckets, and says of which each sum is. */
function ownersOf(counts, bucket) {
  const owner = new Uint32Array(bucket.length);
  let at = 0;
  counts.forEach((count, i) => {
    for (let k = 0, number = 0; k < count; k++, at++) { bucket[at] = number += bucket[at]; owner[at] = i; }
  });
  return owner;
}

async function callTimesOf(event) {
  const columns = await unpack(event.time.calls), unit = columns.number(), count = columns.number();
  const caller = columns.column(count), callee = columns.column(count), index = new Map();
  for (let i = 0; i < count; i++) index.set(callKey(caller[i] - 1, callee[i]), i);
  const sums = columns.number(), counts = columns.column(count, Uint32Array), bucket = columns.column(sums, Uint32Array);
  const owner = ownersOf(counts, bucket), weights = () => columns.column(sums).map(value => value * unit);
  const calls = { count, index, bucket, owner, weight: weights(), taken: weights(), elsewhere: weights(), self: weights() };
  const cycles = columns.number(), numbers = columns.column(cycles, Uint32Array), lengths = columns.column(cycles, Uint32Array);
  const all = lengths.reduce((sum, length) => sum + length, 0), buckets = columns.column(all, Uint32Array);
  const of = ownersOf(lengths, buckets).map(i => numbers[i]);
  return { ...calls, cycles: { bucket: buckets, number: of, total: columns.column(all).map(value => value * unit) } };
}

/** The same of a part of time; null where the page has no such sums. */
async function callPart(event, part) {
  if (!part || !event.time.calls) return null;
  const times = await once(event, 'call-times', () => callTimesOf(event));
  return once(part, 'calls', () => {
    const sum = { weight: new Float64Array(times.count), contributed: new Float64Array(times.count), total: new Float64Array(times.count), self: new Float64Array(times.count) };
    for (let i = 0; i < times.bucket.length; i++) {
      if (times.bucket[i] < part.first || times.bucket[i] > part.last) continue;
      const call = times.owner[i], weight = times.weight[i];
      sum.weight[call] += weight;
      sum.contributed[call] += weight - times.taken[i];
      sum.total[call] += weight - times.elsewhere[i];
      sum.self[call] += times.self[i];
    }
    const totals = new Map();
    times.cycles.bucket.forEach((bucket, i) => {
      if (bucket < part.first || bucket > part.last) return;
      const number = times.cycles.number[i];
      totals.set(number, (totals.get(number) ?? 0) + times.cycles.total[i]);
    });
    const none = { weight: 0, contributed: 0, total: 0, self: 0 };
    const of = (caller, callee) => {
      const call = times.index.get(callKey(caller, callee));
      return call === undefined ? none : { weight: sum.weight[call], contributed: sum.contributed[call], total: sum.total[call], self: sum.self[call] };
    };
    return { of, cycle: number => totals.get(number) ?? 0 };
  });
}

/** The functions of a cycle. */
const membersOf = (listing, number) => listing.cycles[number].members.map(line => (listing.who[line] - 2) / 2);

/** Whether all members of a cycle still reach each other by calls that were seen in a part of time. */
function isStillCycle(listing, number, calls) {
  const members = membersOf(listing, number), inside = new Set(members);
  const from = new Map(members.map(id => [id, []])), into = new Map(members.map(id => [id, []]));
  for (const id of members) {
    for (const line of linesOf(listing, listing.index.get(2 * id), 3)) {
      const other = (listing.who[line] - 2) / 2;
      if (!inside.has(other) || !calls.of(id, other).weight) continue;
      from.get(id).push(other);
      into.get(other).push(id);
    }
  }
  const reached = links => {
    const found = new Set([members[0]]);
    for (const id of found) for (const next of links.get(id)) found.add(next);
    return found.size === members.length;
  };
  return reached(from) && reached(into);
}

/** The figures of a line of an entry in a part of time; null where the line has nothing then. */
function lineInPart(listing, line, code, part, calls) {
  const relation = listing.relation[line], who = listing.who[line];
  if (relation === 1 || relation === 2) {
    const own = (relation === 1 ? code : who - 2), figures = own % 2 ? part.cycle(listing, (own - 1) / 2, calls) : part.figuresOf(own / 2);
    return { ...figures, children: figures.innermost - figures.self };
  }
  const other = who < 2 ? -1 : (who - 2) / 2, ends = code % 2 ? membersOf(listing, (code - 1) / 2) : [code / 2];
  const sum = { total: 0, self: 0, children: 0 };
  for (const end of ends) {
    const call = relation === 0 ? calls.of(other, end) : calls.of(end, other);
    sum.total += call.weight;
    sum.self += call.self;
    sum.children += call.total - call.self;
  }
  const cycle = other < 0 || code % 2 ? undefined : listing.cycleOf.get(code);
  const isWithin = 2 * other === code || cycle !== undefined && cycle === listing.cycleOf.get(2 * other);
  if (isWithin) Object.assign(sum, { self: -1, isSelf: 2 * other === code });
  // Numbers of calls are not known for a part: where there is no sample, nothing is known of a call.
  return sum.total ? sum : null;
}

/** The lines of an entry in a part of time with their figures, in the order of the listing. */
function linesInPart(listing, entry, part, calls) {
  const code = listing.codes[entry], found = [[], [], [], []];
  for (const line of range(listing.first[entry], listing.first[entry + 1])) {
    const figures = lineInPart(listing, line, code, part, calls);
    if (figures) found[listing.relation[line]].push({ line, figures });
  }
  // Calls of itself and inside of the cycle stand farthest from the function.
  const distance = ({ line, figures }) => (listing.who[line] < 2 ? 3 : figures.isSelf ? 2 : figures.self < 0 ? 1 : 0);
  const heavier = (a, b) => distance(a) - distance(b) || b.figures.total - a.figures.total;
  const [callers, primary, members, callees] = found;
  callers.reverse().sort(heavier).reverse();
  callees.sort(heavier);
  members.sort((a, b) => b.figures.innermost - a.figures.innermost || b.figures.total - a.figures.total);
  return [...callers, ...primary, ...members, ...callees];
}
