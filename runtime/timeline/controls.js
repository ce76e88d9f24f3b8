// Controls of the page: mouse and keys, details of a span, find, tables.

// --- hovered and selected spans

function spanAt(x, y) {
  const at = y - AXIS + view.scrollTop;
  if (x < LABEL || y < AXIS) return null;
  const row = rows.find(r => !r.heading && at >= r.y && at < r.y + r.height - GAP);
  if (!row) return null;
  const lane = row.lanes[Math.floor((at - row.y) / row.lane)], t = row.t, slack = 2 * perPixel, when = timeAt(x);
  if (!lane) return null;
  let best = null, distance = slack;
  for (let n = firstAfter(lane, when - slack); n < lane.list.length && lane.begin[n] <= when + slack; n++) {
    const away = Math.max(0, lane.begin[n] - when, when - lane.end[n]);
    if (away < distance || (!best && away <= distance)) { best = { t, i: lane.list[n] }; distance = away; }
    if (!away) break;
  }
  return best;
}
function facts({ t, i }) {
  const s = t.spans[i], l = locationOf(s), seconds = s[TIME] / 1e12, list = [];
  const rate = (v, unit) => amount(v, unit) + (seconds ? ', ' + amount(v / seconds, unit + '/s') : '');
  if (l.op && l.op !== textOf(s[NAME])) list.push(['op', l.op]);
  if (l.file) list.push(['line', placeOf(s)]);
  list.push([data.kinds[s[KIND]][0], 'command ' + s[COMMAND] + ' on ' + t.resources[s[RESOURCE]].name]);
  list.push(['time', time(s[TIME]) + ', from ' + time(s[BEGIN]) + ' to ' + time(s[BEGIN] + s[TIME]) + ', ' + percent(t.end ? s[TIME] / t.end : 0)]);
  if (s[FLOPS]) list.push(['computes', rate(s[FLOPS], 'flop')]);
  if (s[BYTES]) list.push(['moves', rate(s[BYTES], 'B')]);
  if (t.critical[i]) list.push(['critical', 'on the critical path']);
  return list;
}
function element(name, text, parent, cls) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  if (parent) parent.append(e);
  return e;
}
function showDetails() {
  const box = $('details');
  box.replaceChildren();
  if (!chosen) return void element('span', 'Click a command for its details.', box).style.setProperty('color', 'var(--faint)');
  const { t, i } = chosen;
  element('b', textOf(t.spans[i][NAME]), box);
  const list = element('dl', undefined, box);
  for (const [what, text] of facts(chosen)) { element('dt', what, list); element('dd', text, list); }
  const links = (what, spans) => {
    if (!spans.length) return;
    element('dt', what, list);
    const dd = element('dd', undefined, list);
    for (const k of spans.slice(0, 40)) {
      const a = element('a', titleOf(t.spans[k]), dd);
      a.tabIndex = 0;
      a.onclick = () => { choose({ t, i: k }); centre(t, k); };
      a.onkeydown = e => { if (e.key === 'Enter') a.onclick(); };
    }
    if (spans.length > 40) element('span', 'and ' + (spans.length - 40) + ' more', dd);
  };
  links('waited for', t.spans[i][AFTER]);
  links('waited for by', followersOf(t, i));
}
function choose(span) { chosen = span; showDetails(); redraw(); }
function hover(span, x, y) {
  const tip = $('tip');
  if ((span && span.i) !== (hovered && hovered.i) || (span && span.t) !== (hovered && hovered.t)) { hovered = span; redraw(); }
  tip.hidden = !span;
  if (!span) return;
  tip.replaceChildren();
  element('b', textOf(span.t.spans[span.i][NAME]), tip);
  for (const [what, text] of facts(span)) tip.append('\n' + (what === 'op' || what === 'line' ? text : what + ': ' + text));
  const { width: w, height: h } = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 8)) + 'px';
  tip.style.top = Math.max(4, y + 18 + h > innerHeight ? y - h - 10 : y + 18) + 'px';
}
/// The neighbour in the same lane.
function step(by) {
  if (!chosen) return;
  const { t, i } = chosen, s = t.spans[i], { list } = t.rows[s[RESOURCE]].lanes[s[LANE]], next = list[list.indexOf(i) + by];
  if (next === undefined) return;
  choose({ t, i: next });
  centre(t, next);
}

// --- find

function find(text) {
  query = text.trim().toLowerCase();
  matches = [];
  matching = null;
  current = -1;
  if (query) {
    const strings = data.strings.map(s => s.toLowerCase().includes(query));
    const locations = data.locations.map(([op, file]) => strings[op] || strings[file]);
    matching = data.timelines.map(t => Uint8Array.from(t.spans, s => strings[s[NAME]] || (s[LOC] && locations[s[LOC]]) ? 1 : 0));
    matching.forEach((found, n) => found.forEach((yes, i) => { if (yes) matches.push({ t: data.timelines[n], i }); }));
  }
  $('found').textContent = query ? String(matches.length) : '';
  redraw();
}
function toMatch(by) {
  if (!matches.length) return;
  current = current < 0 ? (by > 0 ? 0 : matches.length - 1) : (current + by + matches.length) % matches.length;
  $('found').textContent = current + 1 + ' of ' + matches.length;
  const { t, i } = matches[current];
  choose(matches[current]);
  const wide = t.spans[i][TIME] / perPixel;
  if (wide < 3) zoomTo(t, i); else centre(t, i);
}

// --- mouse, touch, keys

let drag = null;
view.addEventListener('pointerdown', e => {
  const box = canvas.getBoundingClientRect();
  if (e.button || e.clientX > box.right) return; // on the scroll bar, which is right of the picture
  drag = { x: e.clientX, y: e.clientY, far: 0 };
  view.setPointerCapture(e.pointerId);
});
view.addEventListener('pointermove', e => {
  const box = canvas.getBoundingClientRect();
  if (!drag) return hover(spanAt(e.clientX - box.left, e.clientY - box.top), e.clientX, e.clientY);
  drag.far = Math.max(drag.far, Math.abs(e.clientX - drag.x), drag.far + Math.abs(e.clientY - drag.y));
  if (drag.far < 4) return;
  view.classList.add('moving');
  hover(null);
  pan(drag.x - e.clientX);
  view.scrollTop += drag.y - e.clientY;
  drag.x = e.clientX;
  drag.y = e.clientY;
});
view.addEventListener('pointerup', e => {
  const box = canvas.getBoundingClientRect();
  if (drag && drag.far < 4) choose(spanAt(e.clientX - box.left, e.clientY - box.top));
  drag = null;
  view.classList.remove('moving');
});
view.addEventListener('pointercancel', () => { drag = null; view.classList.remove('moving'); });
view.addEventListener('pointerleave', () => hover(null));
view.addEventListener('wheel', e => {
  e.preventDefault();
  const pixels = e.deltaMode === 1 ? 30 : e.deltaMode === 2 ? 300 : 1;
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) return pan((e.deltaX || e.deltaY) * pixels);
  zoom(Math.exp(Math.max(-300, Math.min(300, e.deltaY * pixels)) * 0.002), Math.max(LABEL, e.clientX - canvas.getBoundingClientRect().left));
}, { passive: false });
view.addEventListener('scroll', redraw);

function toggle(id, on, then) {
  $(id).setAttribute($(id).hasAttribute('aria-pressed') ? 'aria-pressed' : 'aria-expanded', String(on));
  then(on);
}
const toggleCritical = () => toggle('critical', !showCritical, on => { showCritical = on; redraw(); });
const toggleHelp = () => toggle('help', $('keys').hidden, on => { $('keys').hidden = !on; });
const KEYS = {
  '+': () => zoom(1 / 1.5), '=': () => zoom(1 / 1.5), '-': () => zoom(1.5), '_': () => zoom(1.5), 'w': () => zoom(1 / 1.5), 's': () => zoom(1.5),
  'ArrowLeft': () => pan(-plotWidth() / 8), 'ArrowRight': () => pan(plotWidth() / 8), 'a': () => pan(-plotWidth() / 8), 'd': () => pan(plotWidth() / 8),
  'f': fit, '0': fit, 'Home': fit, 'z': () => chosen && zoomTo(chosen.t, chosen.i), '[': () => step(-1), ']': () => step(1),
  '/': () => $('query').focus(), 'n': () => toMatch(1), 'p': () => toMatch(-1), 'c': toggleCritical, '?': toggleHelp,
  'Escape': () => { choose(null); $('query').value = ''; find(''); },
};
document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target === $('query')) {
    if (e.key === 'Enter') { e.preventDefault(); toMatch(e.shiftKey ? -1 : 1); }
    if (e.key === 'Escape') { $('query').blur(); KEYS.Escape(); }
    return;
  }
  if (!Object.hasOwn(KEYS, e.key)) return;
  e.preventDefault();
  KEYS[e.key]();
});
$('query').addEventListener('input', e => find(e.target.value));
$('in').onclick = () => zoom(1 / 1.5);
$('out').onclick = () => zoom(1.5);
$('fit').onclick = fit;
$('critical').onclick = toggleCritical;
$('help').onclick = toggleHelp;

// --- legend and tables

function legend() {
  const used = new Set(data.timelines.flatMap(t => [...new Set(t.spans.map(s => s[KIND]))]));
  const entry = (text, cls, color) => {
    const span = element('span', undefined, $('legend')), mark = element('i', undefined, span, cls);
    if (color) mark.style.background = color;
    span.append(text);
  };
  data.kinds.forEach(([name, color], k) => { if (used.has(k)) entry(name, '', color); });
  const hasPath = data.timelines.some(t => t.criticalPath.length);
  if (hasPath) entry('critical path', 'critical');
  $('critical').hidden = !hasPath;
  if (data.timelines.some(t => t.lowerBound)) entry('lower bound: no order of these commands ends earlier', 'bound');
}
function table(parent, title, heads, lines) {
  const box = element('div', undefined, parent);
  element('h3', title, box);
  const body = element('table', undefined, box), head = element('tr', undefined, element('thead', undefined, body)), rowsOf = element('tbody', undefined, body);
  for (const text of heads) element('th', text, head);
  for (const { cells, share, color, action } of lines) {
    const tr = element('tr', undefined, rowsOf, action ? 'link' : '');
    cells.forEach((text, k) => { const td = element('td', text, tr); if (!k) td.title = text; });
    const bar = element('div', undefined, element('td', undefined, tr, 'bar'));
    bar.style.width = Math.min(100, 100 * share) + '%';
    bar.style.background = color;
    if (action) tr.onclick = action;
  }
}
/// Totals over the commands of one title, by title.
function groupsOf(t) {
  const groups = new Map();
  for (const s of t.spans) {
    const name = titleOf(s), g = groups.get(name) || { name, color: fillOf(s), n: 0, time: 0, flops: 0, bytes: 0 };
    g.n++;
    g.time += s[TIME];
    g.flops += s[FLOPS];
    g.bytes += s[BYTES];
    groups.set(name, g);
  }
  return groups;
}
function tables() {
  const all = data.timelines.map(groupsOf);
  for (const t of data.timelines) {
    element('h2', t.kind + (t.machine ? ' on ' + t.machine : ''), $('tables'));
    const pair = element('div', undefined, $('tables'), 'pair'), counts = t.resources.map(() => 0), groups = all[t.number];
    for (const s of t.spans) counts[s[RESOURCE]]++;
    const others = data.timelines.filter(u => u !== t); // shown next to its own times
    const share = v => (t.end ? v / t.end : 0);
    table(pair, 'Resources', ['resource', 'commands', 'busy', 'share', ''], t.resources.map((r, k) => (
      { cells: [r.name, counts[k], time(r.busy), percent(share(r.busy))], share: share(r.busy), color: 'var(--focus)' })));
    const most = [...groups.values()].sort((a, b) => b.time - a.time).slice(0, 20);
    const longest = Math.max(1, most.length && share(most[0].time)); // the sum over several resources may exceed the length of the call
    const rate = (v, g, unit) => (v && g.time ? amount(v / (g.time / 1e12), unit) : '');
    table(pair, groups.size > most.length ? 'Where the time goes: the first ' + most.length + ' of ' + groups.size : 'Where the time goes',
      ['op or command', 'number', 'time', ...others.map(u => u.kind), 'of the call', 'flop/s', 'B/s', ''], most.map(g => (
        { cells: [g.name, g.n, time(g.time), ...others.map(u => (all[u.number].has(g.name) ? time(all[u.number].get(g.name).time) : '')),
          percent(share(g.time)), rate(g.flops, g, ''), rate(g.bytes, g, '')],
          share: share(g.time) / longest, color: g.color, action: () => { $('query').value = g.name; find(g.name); scrollTo({ top: 0, behavior: 'smooth' }); } })));
  }
}

$('title').textContent = document.title;
readColors();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColors(); redraw(); });
legend();
tables();
showDetails();
resize();
new ResizeObserver(resize).observe(view);
