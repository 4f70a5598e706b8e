'use strict';
// The data of the page: reads the JSON document, unpacks columns of numbers, and writes numbers as the
// command line does. Nothing here computes a weight.
const page = JSON.parse(document.getElementById('data').textContent);
const functions = page ? page.functions : { names: [], modules: [], module_names: [], module_labels: [], owners: [], owner_names: [], owner_kinds: [], breaks: [], labels: [], short: [], symbols: [], quoted: [], in_quotes: [], cut_marks: [], shortened: [] };
const labelOf = new Map(functions.labels), shortOf = new Map(functions.short), quotedOf = new Map(functions.quoted), breaksOf = new Map(functions.breaks), symbolOf = new Map(functions.symbols), inQuotes = new Set(functions.in_quotes), cutMarks = new Set(functions.cut_marks), shortenedNames = new Set(functions.shortened);

/** What a function is shown as: no other function is shown so. */
const label = id => labelOf.get(id) ?? functions.names[id];
/** The same for where there is little room: the ends of long labels, which tell them apart, would be cut off. */
const brief = id => shortOf.get(id) ?? label(id);
/** The label as one word of a shell's command line. */
const quoted = id => quotedOf.get(id) ?? (inQuotes.has(id) ? `'${label(id)}'` : label(id));
/** Where the start of the short label may be left out. */
const breaks = id => breaksOf.get(id) ?? [];
const ownerKind = id => functions.owner_kinds[functions.owners[id]];
/** The function with a label, or -1. */
const functionOf = text => functions.names.findIndex((_, id) => label(id) === text);
const moduleLabels = new Map(functions.module_labels);
const moduleName = id => functions.module_names[functions.modules[id]];
/** What a module is shown as. */
const moduleOf = id => moduleLabels.get(functions.modules[id]) ?? moduleName(id);

/** Columns of numbers, read one after the other. */
class Columns {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }

  number() {
    let value = 0, scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (!(byte & 128)) return value;
      scale *= 128;
    }
  }

  /** As many numbers; weights need the 53 bits of a double. */
  column(count, Type = Float64Array) {
    const values = new Type(count), bytes = this.bytes;
    let at = this.at;
    for (let i = 0; i < count; i++) {
      let byte = bytes[at++], value = byte & 127;
      for (let scale = 128; byte & 128; scale *= 128) {
        byte = bytes[at++];
        value += (byte & 127) * scale;
      }
      values[i] = value;
    }
    this.at = at;
    return values;
  }
}

/** Unpacks columns: base64, deflate, bytes. */
async function unpack(text) {
  if (typeof DecompressionStream === 'undefined') throw new Error('This browser cannot inflate data (DecompressionStream); use one of 2023 or later.');
  const characters = atob(text), bytes = new Uint8Array(characters.length);
  for (let i = 0; i < characters.length; i++) bytes[i] = characters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Columns(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** `make` with the unpacked columns, once for each object and key. */
const made = new WeakMap();
function once(owner, key, make) {
  let known = made.get(owner);
  if (!known) made.set(owner, known = new Map());
  if (!known.has(key)) known.set(key, make());
  return known.get(key);
}

/** `part` of `whole` in percent, rounded half up. */
function percent(part, whole) {
  const units = (BigInt(part) * 20000n + BigInt(Math.max(whole, 1))) / (BigInt(Math.max(whole, 1)) * 2n);
  return `${units / 100n}.${String(units % 100n).padStart(2, '0')}`;
}

const grouped = value => String(value).replace(/\B(?=(\d{3})+$)/g, ',');

/** A weight with its unit: 1.235 s, 12.35 M cycles, 1,234 samples. */
function weight(value, event) {
  const steps = event.is_time ? [[1e9, ' s'], [1e6, ' ms'], [1e3, ' µs']] : [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']];
  const isScaled = event.is_time || event.unit !== 'samples' && value >= 100000;
  const step = isScaled && steps.find(([least]) => value >= least);
  let text = grouped(value);
  if (step) {
    const digits = String(Math.floor(value / step[0])).length, decimals = Math.max(0, 4 - digits);
    const scale = 10n ** BigInt(decimals), whole = BigInt(step[0]);
    const units = (BigInt(value) * scale * 2n + whole) / (whole * 2n);
    text = (decimals ? `${units / scale}.${String(units % scale).padStart(decimals, '0')}` : String(units)) + step[1];
  } else if (event.is_time) text += ' ns';
  if (event.is_time) return text;
  return event.unit === 'samples' ? numberOf(value, 'sample', text) : `${text} ${event.unit}`;
}

/** A weight as a column has it: time in milliseconds with three digits, which line up. */
function figure(value, event) {
  if (!event.is_time) return grouped(value);
  const micros = Math.round(value / 1e3);
  return `${grouped(Math.floor(micros / 1e3))}.${String(micros % 1e3).padStart(3, '0')}`;
}

/** A number of things: `1 frame`, `1,234 frames`. */
const numberOf = (count, thing, text = grouped(count)) => `${text} ${thing}${count === 1 ? '' : 's'}`;
