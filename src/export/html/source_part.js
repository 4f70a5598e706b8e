// Source lines and machine code in a part of time: the rows of the whole time with other figures.

/** What source lines and instructions have in a part of time, by number: self weight and total. */
async function lineSums(event, part) {
  const times = await once(event, 'line-times', async () => {
    const columns = await unpack(event.time.parts), unit = columns.number(), count = columns.number();
    const counts = columns.column(count, Uint32Array), sums = counts.reduce((sum, value) => sum + value, 0);
    const bucket = columns.column(sums, Uint32Array), owner = ownersOf(counts, bucket);
    const own = columns.column(sums), more = columns.column(sums);
    return { unit, count, bucket, owner, own, more };
  });
  return once(part, 'lines', () => {
    const own = new Float64Array(times.count + 1), total = new Float64Array(times.count + 1);
    for (let i = 0; i < times.bucket.length; i++) {
      if (times.bucket[i] < part.first || times.bucket[i] > part.last) continue;
      own[times.owner[i] + 1] += times.own[i] * times.unit;
      total[times.owner[i] + 1] += (times.own[i] + times.more[i]) * times.unit;
    }
    return { self: number => own[number] ?? 0, total: number => total[number] ?? 0 };
  });
}

/** What is shown of a function in a part of time, with sentences of the part in the place of those of the whole. */
function sourcePart(event, found, kind, part, sums) {
  const [unknown, code, elsewhere, outside] = found.sums, isCode = kind === 'code';
  const whole = isCode ? sums.total(code) : part.figuresOf(found.function).total;
  const cells = { self_percent: own => own && percent(own, whole), total_percent: (_, total) => total && percent(total, whole), self: own => own && weight(own, event), total: (_, total) => total && weight(total, event) };
  const shown = found[kind].filter(it => !it.of_weights).map(it => {
    if (!it.table?.parts) return it;
    const { keys, rows, parts } = it.table;
    const figures = rows.map((row, i) => row.map((text, column) => {
      const cell = parts[i] && cells[keys[column]];
      return cell ? cell(sums.self(parts[i]), sums.total(parts[i])) || '' : text;
    }));
    return { table: { ...it.table, rows: figures } };
  });
  const say = plain => shown.push({ plain });
  const both = number => `self ${percent(sums.self(number), whole)} % (${weight(sums.self(number), event)}), total ${percent(sums.total(number), whole)} % (${weight(sums.total(number), event)})`;
  if (!isCode && sums.total(unknown)) say(`Source line not known: ${both(unknown)}.`);
  if (isCode && sums.self(elsewhere)) say(`${weight(sums.self(elsewhere), event)}: self weight of the function where it is inlined into others, in their machine code.`);
  if (isCode && sums.self(outside)) say(`${weight(sums.self(outside), event)}: taken at addresses that are not in this list.`);
  const whose = isCode ? 'this machine code, with all that is inlined into it,' : 'the function';
  say(`Time ${brushRange(event)} s: self %, total % are shares of the total of ${whose} then (${weight(whole, event)}). The rows are the heaviest of the whole time; numbers of calls are those of the whole recording.`);
  return shown;
}
