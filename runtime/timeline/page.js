'use strict';
// Draws the timelines that the page brings along. Times are picoseconds; names reach the page as text only.
const data = JSON.parse(document.getElementById('data').textContent);
// Indices into the array of a span.
const RESOURCE = 0, LANE = 1, KIND = 2, BEGIN = 3, TIME = 4, NAME = 5, LOC = 6, FLOPS = 7, BYTES = 8, COMMAND = 9, AFTER = 10;
const $ = id => document.getElementById(id);
const canvas = $('canvas'), view = $('view'), ctx = canvas.getContext('2d');
const AXIS = 24, HEADING = 26, GAP = 6, LABEL = 170, RIGHT = 12;
const end = Math.max(1, ...data.timelines.map(t => Math.max(t.end, t.lowerBound)));

// --- queries on the data

const textOf = n => data.strings[n];
const locationOf = s => { const [op, file, line] = data.locations[s[LOC]] || data.locations[0] || []; return { op: textOf(op) || '', file: textOf(file) || '', line }; };
const isKernel = s => data.kinds[s[KIND]][0] === 'kernel';
const titleOf = s => (isKernel(s) && locationOf(s).op) || textOf(s[NAME]);
/// Kernels have the shade of their title.
function fillOf(s) {
  if (!isKernel(s)) return data.kinds[s[KIND]][1];
  const op = (data.locations[s[LOC]] || [s[NAME]])[0];
  return data.shades[data.shadeOf[textOf(op) ? op : s[NAME]]];
}
const placeOf = s => { const l = locationOf(s); return l.file ? l.file + (l.line ? ':' + l.line : '') : ''; };

const UNITS = [[1e12, 's'], [1e9, 'ms'], [1e6, '\u00b5s'], [1e3, 'ns'], [1, 'ps']];
const unitOf = t => UNITS.find(u => t >= u[0]) || UNITS[4];
function time(t) {
  const [size, name] = unitOf(Math.abs(t)), v = t / size;
  return v.toFixed(size === 1 || v >= 100 ? 0 : v >= 10 ? 1 : 2) + ' ' + name;
}
function amount(v, unit) {
  let k = 0;
  for (; v >= 1000 && k < 6; k++) v /= 1000;
  return v.toFixed(v >= 100 || k === 0 ? 0 : v >= 10 ? 1 : 2) + ' ' + ['', 'k', 'M', 'G', 'T', 'P', 'E'][k] + unit;
}
const percent = v => (100 * v).toFixed(1) + '%';

// Rows: a heading per timeline, then its resources with their lanes, each with the numbers of its spans in order and totals for drawing.
const rows = [];
let contentHeight = 0;
data.timelines.forEach((t, number) => {
  rows.push({ t, y: contentHeight, height: HEADING, heading: true });
  contentHeight += HEADING;
  t.number = number;
  t.rows = t.resources.map(resource => {
    const lane = Math.max(3, Math.min(22, 176 / resource.lanes));
    const row = { t, resource, y: contentHeight, lane, height: lane * resource.lanes + GAP, lanes: [] };
    for (let i = 0; i < resource.lanes; i++) row.lanes.push([]);
    contentHeight += row.height;
    rows.push(row);
    return row;
  });
  t.spans.forEach((s, i) => t.rows[s[RESOURCE]].lanes[s[LANE]].push(i));
  for (const row of t.rows)
    row.lanes = row.lanes.map(list => ({ list, begin: Float64Array.from(list, i => t.spans[i][BEGIN]),
      end: Float64Array.from(list, i => t.spans[i][BEGIN] + t.spans[i][TIME]), kind: Uint8Array.from(list, i => t.spans[i][KIND]) }));
  t.critical = new Uint8Array(t.spans.length);
  for (const i of t.criticalPath) t.critical[i] = 1;
  t.bottom = contentHeight;
  contentHeight += 8;
});
let followers = null; // per timeline and span: spans that wait for it; computed at first use
function followersOf(t, i) {
  if (!followers) {
    followers = data.timelines.map(u => u.spans.map(() => []));
    data.timelines.forEach((u, n) => u.spans.forEach((s, k) => s[AFTER].forEach(before => followers[n][before].push(k))));
  }
  return followers[t.number][i];
}

// --- the view

let from = 0, perPixel = Infinity, width = 0, height = 0; // time at the left edge, time per pixel, size of the canvas
let showCritical = true, chosen = null, hovered = null, query = '', matches = [], matching = null, current = -1;
const plotWidth = () => Math.max(10, width - LABEL - RIGHT);
const xOf = t => LABEL + (t - from) / perPixel;
const timeAt = x => from + (x - LABEL) * perPixel;
function limit() {
  perPixel = Math.min(Math.max(perPixel, Math.min(1, end / 1e4) / 10), end * 1.02 / plotWidth());
  from = Math.min(Math.max(from, -0.005 * end), Math.max(-0.005 * end, end * 1.015 - plotWidth() * perPixel));
}
function fit() { perPixel = Infinity; from = -0.005 * end; redraw(); }
function zoom(factor, x = LABEL + plotWidth() / 2) {
  const t = timeAt(x);
  perPixel *= factor;
  limit();
  from = t - (x - LABEL) * perPixel;
  redraw();
}
function pan(pixels) { from += pixels * perPixel; redraw(); }
function zoomTo(t, i) {
  const s = t.spans[i];
  perPixel = Math.max(1, s[TIME]) * 2 / plotWidth();
  limit();
  centre(t, i);
}
function centre(t, i) {
  const s = t.spans[i], row = t.rows[s[RESOURCE]], y = row.y + s[LANE] * row.lane;
  from = s[BEGIN] + s[TIME] / 2 - plotWidth() * perPixel / 2;
  if (y < view.scrollTop || y + row.lane > view.scrollTop + height - AXIS) view.scrollTop = y - (height - AXIS) / 2;
  redraw();
}
let pending = false;
function redraw() {
  limit();
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; draw(); });
}
function resize() {
  width = view.clientWidth;
  $('space').style.height = AXIS + contentHeight + 'px';
  height = Math.min(view.clientHeight, AXIS + contentHeight);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  limit();
  draw(); // at once, as resizing clears the canvas
}

// --- drawing

const MONO = '11px "DejaVu Sans Mono", Menlo, Consolas, monospace', SANS = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['page', 'text', 'faint', 'line', 'row', 'accent', 'focus', 'find']) colors[name] = style.getPropertyValue('--' + name).trim();
}
const widths = new Map();
function widthOf(text) {
  const key = ctx.font + text;
  let w = widths.get(key);
  if (w === undefined) widths.set(key, w = ctx.measureText(text).width);
  return w;
}
/// Elided text, never wider than its box: a slight excess is condensed.
function label(text, x, y, room) {
  const all = widthOf(text), letters = all > room * 1.08 ? Array.from(text) : [], fits = Math.floor(letters.length * room / all);
  if (all <= room * 1.08) ctx.fillText(text, x, y, room);
  else if (fits >= 3) ctx.fillText(letters.slice(0, fits - 1).join('') + '\u2026', x, y, room);
}
function ticks() {
  const least = perPixel * 90;
  let step = Math.pow(10, Math.floor(Math.log10(least)));
  step = Math.max(1, [1, 2, 5, 10].map(f => f * step).find(s => s >= least));
  const visibleEnd = Math.min(end, timeAt(width));
  const [size, name] = unitOf(Math.max(visibleEnd, step));
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / step) - 1e-9)));
  const marks = [];
  for (let t = Math.ceil(Math.max(0, from) / step) * step; t <= visibleEnd; t += step) marks.push([t, (t / size).toFixed(digits) + ' ' + name]);
  return marks;
}
function draw() {
  ctx.fillStyle = colors.page;
  ctx.fillRect(0, 0, width, height);
  const top = AXIS - view.scrollTop, right = width - RIGHT; // where rows begin
  const yOf = y => y + top;
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, AXIS, width, height - AXIS);
  ctx.clip();
  ctx.textBaseline = 'middle';
  for (const row of rows)
    if (!row.heading) {
      ctx.fillStyle = colors.row;
      ctx.fillRect(LABEL, yOf(row.y), right - LABEL, row.height - GAP / 2);
    }
  const marks = ticks();
  ctx.fillStyle = colors.line;
  for (const [t] of marks) if (xOf(t) >= LABEL) ctx.fillRect(Math.round(xOf(t)), AXIS, 1, height);
  ctx.fillStyle = colors.page;
  for (const row of rows) if (row.heading) ctx.fillRect(0, yOf(row.y), width, HEADING);

  ctx.save();
  ctx.beginPath();
  ctx.rect(LABEL, AXIS, right - LABEL, height - AXIS);
  ctx.clip();
  for (const row of rows) {
    if (row.heading || yOf(row.y) > height || yOf(row.y + row.height) < AXIS) continue;
    row.lanes.forEach((spans, lane) => drawLane(row, spans, yOf(row.y + lane * row.lane) + 1, Math.max(1, row.lane - (row.lane > 8 ? 2 : 1))));
  }
  if (showCritical) data.timelines.forEach(t => drawPath(t, yOf));
  for (const t of data.timelines)
    if (t.lowerBound) {
      ctx.strokeStyle = colors.text;
      ctx.lineWidth = 1.5;
      ctx.setLineDash([5, 3]);
      line(xOf(t.lowerBound), yOf(t.rows.length ? t.rows[0].y - 4 : 0), xOf(t.lowerBound), yOf(t.bottom));
      ctx.setLineDash([]);
    }
  if (chosen) drawWaits(chosen, yOf);
  ctx.restore();

  ctx.textAlign = 'left';
  for (const row of rows) {
    const y = yOf(row.y);
    if (y > height || yOf(row.y + row.height) < AXIS) continue;
    ctx.fillStyle = colors.text;
    if (row.heading) {
      const t = row.t,
            bound = t.lowerBound
                        ? ', ' + (t.end / t.lowerBound).toFixed(3) + ' times the lower bound of ' + time(t.lowerBound)
                        : '',
            sideBySide = t.sideBySide === undefined ? '' : ', side by side ' + t.sideBySide.toFixed(2);
      ctx.font = '600 ' + SANS;
      label(t.kind + (t.machine ? ' on ' + t.machine : '') + ': ' + time(t.end) + bound + sideBySide, 10,
            y + HEADING / 2 + 1, width - 20);
    } else {
      ctx.font = SANS;
      ctx.fillStyle = colors.text;
      label(row.resource.name, 10, y + (row.height - GAP / 2) / 2, LABEL - 68);
      ctx.fillStyle = colors.faint;
      ctx.textAlign = 'right';
      ctx.fillText(percent(row.t.end ? row.resource.busy / row.t.end : 0), LABEL - 10, y + (row.height - GAP / 2) / 2);
      ctx.textAlign = 'left';
    }
  }
  ctx.restore();

  ctx.fillStyle = colors.faint;
  ctx.font = SANS;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'center';
  for (const [t, text] of marks) if (xOf(t) >= LABEL && xOf(t) < right - 10) ctx.fillText(text, Math.max(xOf(t), LABEL), AXIS / 2);
  ctx.textAlign = 'left';
  ctx.fillStyle = colors.line;
  ctx.fillRect(0, AXIS - 1, width, 1);
}
function line(x1, y1, x2, y2) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}
/// The first span of a lane that ends after a time. Spans of a lane do not overlap, so their ends are in order as well.
function firstAfter({ end }, when) {
  let lo = 0, hi = end.length;
  while (lo < hi) {
    const mid = lo + hi >> 1;
    if (end[mid] < when) lo = mid + 1; else hi = mid;
  }
  return lo;
}
/// Spans narrower than a pixel or two are aggregated per column of pixels, whose opacity shows how busy it is.
function drawLane(row, lane, y, h) {
  const t = row.t, { list, begin, end, kind } = lane, found = matching && matching[t.number], last = timeAt(width), narrow = 1.5 * perPixel, work = new Float64Array(data.kinds.length);
  let column = -1, total = 0, critical = false, hit = false;
  const flush = () => {
    if (column < 0) return;
    let most = 0;
    for (let k = 1; k < work.length; k++) if (work[k] > work[most]) most = k;
    ctx.globalAlpha = (0.45 + 0.55 * Math.min(1, total)) * (matching && !hit ? 0.2 : 1);
    ctx.fillStyle = data.kinds[most][1];
    ctx.fillRect(column, y, 1, h);
    ctx.globalAlpha = 1;
    if (critical && showCritical) { ctx.fillStyle = colors.accent; ctx.fillRect(column, y + h - 2, 1, 2); }
    if (hit) { ctx.fillStyle = colors.find; ctx.fillRect(column, y, 1, 2); }
    work.fill(0);
    column = -1; total = 0; critical = hit = false;
  };
  ctx.font = MONO;
  for (let n = firstAfter(lane, from); n < list.length && begin[n] <= last; n++) {
    const i = list[n];
    if (end[n] - begin[n] < narrow) {
      const x = xOf(begin[n]), part = (end[n] - begin[n]) / perPixel;
      if (Math.floor(x) !== column) { flush(); column = Math.floor(x); }
      work[kind[n]] += Math.max(part, 1e-3);
      total += part;
      critical = critical || t.critical[i];
      hit = hit || (found && found[i]);
      continue;
    }
    flush();
    const left = Math.max(xOf(begin[n]), LABEL - 3), right = Math.min(xOf(end[n]), width + 3), wide = right - left;
    const matched = found && found[i], box = wide > 4 ? wide - 1 : wide;
    ctx.globalAlpha = matching && !matched ? 0.2 : 1;
    ctx.fillStyle = fillOf(t.spans[i]);
    if (box > 8 && ctx.roundRect) { ctx.beginPath(); ctx.roundRect(left, y, box, h, 2); ctx.fill(); } else ctx.fillRect(left, y, box, h);
    if (box > 26 && h >= 12 && !(matching && !matched)) { ctx.fillStyle = '#fff'; label(titleOf(t.spans[i]), left + 5, y + h / 2 + 0.5, box - 9); }
    ctx.globalAlpha = 1;
    if (matched) frame(left, y, box, h, colors.find);
    if (showCritical && t.critical[i]) {
      ctx.fillStyle = colors.accent;
      ctx.fillRect(left, y + h - Math.min(2.5, h / 2), box, Math.min(2.5, h / 2));
    }
    if (same(hovered, t, i) || same(chosen, t, i)) frame(left, y, box, h, colors.text);
  }
  flush();
}
const same = (ref, t, i) => ref && ref.t === t && ref.i === i;
function frame(x, y, w, h, color) {
  ctx.strokeStyle = color;
  ctx.lineWidth = Math.min(2, w / 2, h / 2);
  ctx.strokeRect(x + 1, y + 1, Math.max(0, w - 2), Math.max(0, h - 2));
}
function middle(t, i, yOf) {
  const s = t.spans[i], row = t.rows[s[RESOURCE]];
  return yOf(row.y + (s[LANE] + 0.5) * row.lane);
}
function drawPath(t, yOf) {
  ctx.strokeStyle = colors.accent;
  ctx.lineWidth = 1.5;
  const stripe = i => middle(t, i, yOf) + Math.max(0, t.rows[t.spans[i][RESOURCE]].lane / 2 - 3);
  for (let k = 1; k < t.criticalPath.length; k++) {
    const a = t.criticalPath[k - 1], b = t.criticalPath[k], x1 = xOf(t.spans[a][BEGIN] + t.spans[a][TIME]), x2 = xOf(t.spans[b][BEGIN]);
    const y1 = stripe(a), y2 = stripe(b);
    if (y1 !== y2 && x2 >= LABEL && x1 <= width) line(x1, y1, x2, y2);
  }
}
/// Draws arrows from the spans that the selected one waited for, and to those that waited for it.
function drawWaits({ t, i }, yOf) {
  ctx.fillStyle = colors.text;
  const arrow = (a, b) => {
    const x1 = xOf(t.spans[a][BEGIN] + t.spans[a][TIME]), x2 = xOf(t.spans[b][BEGIN]), y1 = middle(t, a, yOf), y2 = middle(t, b, yOf);
    const bend = Math.max(12, Math.min(60, Math.abs(x2 - x1) / 2));
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    for (const [color, thick] of [[colors.page, 4], [colors.text, 1.5]]) { // with an outline, for contrast with the spans it crosses
      ctx.strokeStyle = color;
      ctx.lineWidth = thick;
      ctx.stroke();
    }
    ctx.beginPath();
    ctx.moveTo(x2, y2);
    ctx.lineTo(x2 - 6, y2 - 3.5);
    ctx.lineTo(x2 - 6, y2 + 3.5);
    ctx.fill();
  };
  for (const before of t.spans[i][AFTER]) arrow(before, i);
  for (const next of followersOf(t, i)) arrow(i, next);
}
