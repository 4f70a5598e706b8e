// Source lines and machine code of the hottest functions, as `annotate` shows them.

function partsOf(parts, heading) {
  return parts.map(part => {
    if (part.heading) return element(heading, { textContent: part.heading });
    if (!part.table) {
      const [kind, text] = Object.entries(part)[0];
      return element('p', { className: kind === 'of_weights' ? 'plain' : kind, textContent: text });
    }
    const { titles, roles, rows } = part.table;
    const heads = titles.map((title, i) => ({ figure: { number: title }, heat: { number: title }, code: { code: title } }[roles[i]] ?? title));
    return element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': titles[titles.length - 1] }, table(heads, rows));
  });
}

async function showSource() {
  const event = current(), found = event.sources.find(source => source.function === state.chosen), where = byId('source'), part = timePart();
  const others = event.sources.map(source => element('li', {}, functionButton(source.function)));
  byId('source-list').replaceChildren(...others);
  byId('source-note').textContent = event.sources.length
    ? `This page has the lines of the ${event.sources.length === 1 ? 'function' : numberOf(event.sources.length, 'function')} with the most self weight whose lines or code were found:`
    : 'No source line and no machine code was found for the functions with the most self weight.';
  byId('source-kind').parentElement.hidden = !found;
  if (!found) {
    showCommand('source', null);
    where.replaceChildren(element('p', { textContent: `This page has no lines and no machine code of ${label(state.chosen)}.` }));
    return;
  }
  const kinds = { lines: found.lines, code: found.code }, picker = byId('source-kind');
  for (const option of picker.options) option.disabled = !kinds[option.value];
  if (!kinds[picker.value]) picker.value = found.lines ? 'lines' : 'code';
  const kind = picker.value, sums = part && await lineSums(event, part);
  if (event !== current() || found.function !== state.chosen || kind !== picker.value || part !== timePart()) return;
  showCommand('source', commandOf(event, kind === 'lines' ? 'source' : 'code', part, found.function));
  if (part && !part.figuresOf(found.function).total) {
    where.replaceChildren(element('p', { textContent: `The function is in no sample of the time ${brushRange(event)} s.` }));
    return;
  }
  where.replaceChildren(...partsOf(part ? sourcePart(event, found, kind, part, sums) : kinds[kind], 'h3'));
}
