// Elements, tabs, commands to copy. Text from outside is only ever set as text.
const byId = id => document.getElementById(id);

/** An element with properties, attributes (names with a dash, role, for) and children. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.includes('-') || name === 'role' || name === 'scope') made.setAttribute(name, value);
    else if (name === 'share') made.style.setProperty('--share', value);
    else made[name] = value;
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

/** A button that chooses a function. */
function functionButton(id, text) {
  const button = element('button', { type: 'button', className: 'link', textContent: text ?? brief(id), title: `${label(id)}\n${moduleOf(id)}` });
  button.addEventListener('click', () => choose(id));
  return button;
}

/** A table; titles of numbers are in {number}, of code in {code}; cells are texts or elements. */
function table(titles, rows, caption) {
  const kinds = titles.map(title => (title.number !== undefined ? 'number' : title.code !== undefined ? 'code' : ''));
  const head = element('tr', {}, ...titles.map((title, i) => element('th', { scope: 'col', className: kinds[i], textContent: title.number ?? title.code ?? title })));
  const body = rows.map(row => {
    const cells = row.cells ?? row;
    return element('tr', { className: row.kind ?? '' }, ...cells.map((cell, i) => {
      const inside = cell instanceof Node;
      const made = element('td', { className: kinds[i] });
      if (inside) made.append(cell); else made.textContent = cell ?? '';
      return made;
    }));
  });
  const about = caption ? element('caption', { textContent: caption, className: 'quiet' }) : null;
  return element('table', {}, about, element('thead', {}, head), element('tbody', {}, ...body));
}

/** A table of few rows of `items`, with a button for all of them; `make` makes a table of some. */
function longTable(items, few, make) {
  const shown = items.filter((_, place) => few(place));
  const place = element('div', { className: 'scroll' }, make(shown));
  if (shown.length === items.length) return place;
  const all = element('button', { type: 'button', textContent: `Show all ${grouped(items.length)} rows` });
  all.addEventListener('click', () => place.replaceChildren(make(items)));
  place.append(all);
  return place;
}

/** Shows a command with a button that copies it; none where there is no command. */
function showCommand(key, command) {
  for (const place of document.querySelectorAll(`[data-command="${key}"]`)) {
    place.replaceChildren();
    place.hidden = !command;
    if (!command) continue;
    const copy = element('button', { type: 'button', textContent: 'Copy as command' });
    copy.addEventListener('click', async () => {
      const done = await copyText(command);
      copy.textContent = done ? 'Copied' : 'Select and copy it';
      setTimeout(() => { copy.textContent = 'Copy as command'; }, 1500);
    });
    place.append(copy, element('code', { textContent: command }));
  }
}

/** The command of a view, of a part of time where that is shown, about a function where it takes one. */
function commandOf(event, view, part, id) {
  const parts = (part ? event.part_commands : event.commands)?.[view];
  // A function that is in no sample of the part is not known to a command about it, nor is one by a part of its name.
  if (!parts || shortenedNames.has(id) || part && id !== undefined && !part.figuresOf(id).total) return null;
  // A function may be called otherwise where there are fewer of them.
  const name = id === undefined ? [] : [part ? symbolOf.get(id) ?? quoted(id) : quoted(id)];
  const values = part ? [...name, brushRange(event)] : name;
  return parts.map((text, i) => text + (values[i] ?? '')).join('');
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A file has no clipboard in some browsers.
    const area = element('textarea', { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/** Tabs for the sections with a title; `onShow` is called with the name of the one that is shown. */
function makeTabs(onShow) {
  const views = [...document.querySelectorAll('section.view')];
  const tabs = views.map(view => element('button', { type: 'button', role: 'tab', id: `tab-${view.id}`, 'aria-controls': view.id, textContent: view.dataset.title }));
  const show = index => {
    // A view begins at its top; an event that is changed stays where it is.
    if (views[index].hidden) scrollTo(0, 0);
    views.forEach((view, i) => { view.hidden = i !== index; });
    tabs.forEach((tab, i) => { tab.setAttribute('aria-selected', i === index); tab.tabIndex = i === index ? 0 : -1; });
    onShow(views[index].id.replace('view-', ''));
  };
  tabs.forEach((tab, i) => {
    views[i].setAttribute('role', 'tabpanel');
    views[i].setAttribute('aria-labelledby', tab.id);
    tab.addEventListener('click', () => show(i));
    tab.addEventListener('keydown', event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (i + step + tabs.length) % tabs.length;
      tabs[next].focus();
      show(next);
    });
  });
  byId('tabs').append(...tabs);
  return name => show(views.findIndex(view => view.id === `view-${name}`));
}

/** The tip beside the pointer. */
function showTip(text, x, y) {
  const tip = byId('tip');
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = '0';
  tip.style.top = '0';
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
}
