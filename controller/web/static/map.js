// The map: rows x time on a canvas.  It asks the server for the cells that it can draw, and never for more.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const box = document.querySelector("[data-map]");
  if (!box) return;
  const find = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const field = find(".field", box), week = find(".week", box), scale = find(".scale", box), tip = find(".tip", box);
  const busy = find(".busy", box), failed = find("[data-failed]", box), details = find("[data-details]");
  const data = box.dataset, MINUTE = 60_000, LANE = 24, AXIS = 24;
  const SHORTEST = 10 * MINUTE, MOST_ROWS = 512, MOST_COLUMNS = 2048, NO_DATA = 255, OWNED = 254;
  const VOID = [26, 30, 38], ACCENT = [92, 202, 215], RED = "#ff5a4d", NIGHT = "#0b0d12";
  // Cividis, in both themes: two colleagues see the same picture.
  const CIVIDIS = ["00224e", "083370", "35456c", "4f576c", "666970", "7d7c78", "948e77", "aea371", "c8b866", "e5cf52", "fee838"]
    .map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));

  const limit = data.limit === "" ? null : Number(data.limit), period = Number(data.period);
  let oldest = Number(data.oldest), end = Number(data.end);
  const query = JSON.parse(data.query);
  const view = {
    rows: query.rows, metric: query.metric, order: query.order ?? "usage", span: query.span ?? 0,
    namespace: query.namespace ?? "", owner: query.owner ?? "", moves: query.moves !== 0,
    since: Number(data.since), until: Number(data.until),
  };
  let chosen = data.row && data.at ? { name: data.row, at: Number(data.at) } : null;
  let cursor = { row: 0, at: view.until - period }, mark = null, marked = null;
  let tile = null, whole = null, happened = { moves: [], counts: [], bands: [], since: 0, until: 0 };
  box.hidden = false;
  for (const each of all("[data-no-script]")) each.hidden = true;
  for (const each of all("details[data-table]")) each.open = false;

  // ---- tiles ----

  const cache = new Map();
  function parameters(extra = {}) {
    const given = { rows: view.rows, metric: view.metric, ...extra };
    if (view.order !== "usage") given.order = view.order;
    if (view.namespace) given.namespace = view.namespace;
    if (view.owner && view.metric === "owner") given.owner = view.owner;
    return given;
  }
  function address(path, given) {
    const url = new URL(path, location.href);
    for (const [key, value] of Object.entries(given)) url.searchParams.set(key, value);
    return url;
  }
  async function ask(path, given) {
    const answer = await fetch(address(path, given));
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return answer;
  }
  async function load(since, until, height, extra = {}) {
    const { width } = geometry();
    let column = period;
    while ((until - since) / column > Math.min(width, MOST_COLUMNS - 2)) column *= 2;
    const from = Math.floor(since / column) * column, to = Math.ceil(until / column) * column;
    const given = parameters({ since: from, until: to, width: (to - from) / column, height, ...extra });
    const key = address(data.tile, given).search;
    if (cache.has(key)) return cache.get(key);
    const made = read(await (await ask(data.tile, given)).arrayBuffer());
    if (to < end) cache.set(key, made);
    if (cache.size > 32) cache.delete(cache.keys().next().value);
    return made;
  }
  function read(bytes) {
    const length = new DataView(bytes).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    const cells = new Uint8Array(bytes, 4 + length), rows = header.rows.length;
    const made = { ...header, cells, count: rows, index: new Map(), colours: colours(header) };
    header.rows.forEach((row, at) => { if (row[0]) made.index.set(row[0], at); });
    made.bands = bands(header.rows);
    paint(made);
    return made;
  }
  // Namespaces as bands, where rows are bundles.
  function bands(rows) {
    const found = [];
    rows.forEach((row, at) => {
      const cut = /^(.*)\/0x[0-9a-f]{8}_0x[0-9a-f]{8}$/.exec(row[0]);
      if (!cut) return;
      if (found.length && found.at(-1).name === cut[1] && found.at(-1).first + found.at(-1).count === at) found.at(-1).count++;
      else found.push({ name: cut[1], first: at, count: 1 });
    });
    return found;
  }
  // A colour for each code: a usage is quiet until it matters; a rate is nearly linear up to its fixed top.
  function colours(header) {
    const power = header.unit === "percent" ? 1.8 : 1.15;
    return Array.from({ length: 256 }, (_, code) => {
      if (code === NO_DATA) return VOID;
      if (!header.values.length) {
        if (code === OWNED) return ACCENT;
        const grey = code === 0 ? 20 : 46 + (code * 41) % 92;
        return [grey, grey, grey + 8];
      }
      const place = Math.min(1, Math.max(0, header.values[code] / header.top)) ** power * 10;
      const low = Math.min(9, Math.floor(place));
      return CIVIDIS[low].map((from, at) => from + (CIVIDIS[low + 1][at] - from) * (place - low));
    });
  }
  function paint(made) {
    const { columns, count, cells } = made, image = document.createElement("canvas");
    image.width = Math.max(1, columns);
    image.height = Math.max(1, count);
    const context = image.getContext("2d"), pixels = context.createImageData(image.width, image.height);
    const words = new Uint32Array(pixels.data.buffer);
    const table = new Uint32Array(made.colours.map(([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0));
    for (let at = 0; at < columns * count; at++) words[at] = table[cells[at]];
    context.putImageData(pixels, 0, 0);
    made.image = image;
    made.histogram = new Uint32Array(256);
    for (let at = 0; at < columns * count; at++) made.histogram[cells[at]]++;
    // Runs of cells without data, and above the limit: they do not depend on colour alone.
    made.empty = [];
    made.over = [];
    const first = limit !== null && made.unit === "percent" ? made.values.findIndex((value) => value > limit) : -1;
    const kind = (code) => code === NO_DATA ? 1 : first >= 0 && code >= first ? 2 : 0;
    for (let row = 0, at = 0; row < count; row++, at += columns) {
      for (let column = 0; column < columns;) {
        const what = kind(cells[at + column]), begin = column;
        while (column < columns && kind(cells[at + column]) === what) column++;
        if (what === 1) made.empty.push([row, begin, column]);
        else if (what === 2) made.over.push([row, begin, column]);
      }
    }
  }

  // ---- what is loaded when ----

  // The first of several zooms is shown at once; those that follow quickly wait for each other.
  const CALM = 250;
  let wanted = 0, timer = 0, askedAt = -CALM;
  function later(wait = performance.now() - askedAt > CALM ? 0 : 60) {
    askedAt = performance.now();
    clearTimeout(timer);
    timer = setTimeout(refresh, wait);
  }
  async function refresh() {
    const ticket = ++wanted, slow = setTimeout(() => { busy.hidden = false; }, 300);
    try {
      const { height } = geometry();
      const [cells, news] = await Promise.all([
        load(view.since, view.until, Math.max(1, Math.min(MOST_ROWS, Math.floor(height)))),
        ask(data.happened, { since: view.since, until: view.until }).then((answer) => answer.json()),
      ]);
      if (ticket !== wanted) return;
      tile = cells;
      happened = { ...news, since: view.since, until: view.until };
      failed.hidden = true;
      tellTitle();
      tellSpan();
      draw();
      box.dataset.ready = String(ticket);
      if (!whole || whole.key !== wholeKey()) {
        const key = wholeKey();
        whole = await load(oldest, end, 1, view.metric === "owner" ? { metric: "rate" } : {});
        whole.key = key;
        draw();
      }
    } catch (error) {
      if (ticket !== wanted) return;
      failed.textContent = `Not loaded: ${error.message}`;
      failed.hidden = false;
    } finally {
      clearTimeout(slow);
      if (ticket === wanted) busy.hidden = true;
    }
  }
  const wholeKey = () => [view.rows, view.metric, view.namespace, oldest, end].join("|");

  // ---- geometry ----

  function geometry() {
    const wide = field.clientWidth, high = field.clientHeight;
    const gutter = wide < 500 ? (view.rows === "brokers" ? 64 : 8) : view.rows === "brokers" ? 112 : 192;
    return { wide, high, left: gutter, width: Math.max(1, wide - gutter - 8), height: high - LANE - AXIS };
  }
  const xOf = (at, { left, width }) => left + (at - view.since) / (view.until - view.since) * width;
  function place(event) {
    const shape = geometry(), bounds = field.getBoundingClientRect();
    const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
    const share = Math.max(0, Math.min(.999999, (x - shape.left) / shape.width));
    const at = view.since + share * (view.until - view.since);
    const rows = tile?.count ?? 1;
    return { x, y, at, row: Math.max(0, Math.min(rows - 1, Math.floor((y - LANE) / shape.height * rows))) };
  }
  function prepare(canvas) {
    const ratio = devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
    if (canvas.width !== Math.round(wide * ratio)) canvas.width = Math.round(wide * ratio);
    if (canvas.height !== Math.round(high * ratio)) canvas.height = Math.round(high * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, wide, high);
    context.textBaseline = "middle";
    context.font = `11px ${getComputedStyle(canvas).fontFamily}`;
    return context;
  }
  function ground() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => {
      find(".scale", box).style.color = `var(${name})`;
      return getComputedStyle(scale).color;
    };
    return { ink: of("--ink"), faint: of("--ink-3"), panel: of("--panel"), family: style.fontFamily };
  }
  let paper = null;
  const hatch = (() => {
    const small = document.createElement("canvas");
    small.width = small.height = 8;
    const context = small.getContext("2d");
    context.strokeStyle = "#5a6270";
    context.beginPath();
    for (const at of [-8, 0, 8]) { context.moveTo(at, 8); context.lineTo(at + 8, 0); }
    context.stroke();
    return small;
  })();

  // ---- drawing ----

  let frame = 0;
  function draw() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(drawNow);
  }
  function drawNow() {
    paper ??= ground();
    const shape = geometry(), context = prepare(field);
    context.fillStyle = NIGHT;
    context.fillRect(shape.left, LANE, shape.width, shape.height);
    if (tile) {
      context.save();
      context.beginPath();
      context.rect(shape.left, LANE, shape.width, shape.height);
      context.clip();
      drawCells(context, shape);
      if (view.moves) drawMoves(context, shape);
      drawSpan(context, shape);
      drawChosen(context, shape);
      context.restore();
      drawLabels(context, shape);
    }
    drawLane(context, shape);
    drawAxis(context, shape);
    drawWeek();
    drawScale();
    box.dataset.drawn = String(Number(box.dataset.drawn ?? 0) + 1);
  }
  function drawCells(context, shape) {
    const step = shape.height / Math.max(1, tile.count);
    const left = xOf(tile.since, shape), right = xOf(tile.since + tile.columns * tile.column, shape);
    context.imageSmoothingEnabled = false;
    context.drawImage(tile.image, left, LANE, right - left, shape.height);
    const x = (column) => left + column / tile.columns * (right - left);
    context.fillStyle = context.createPattern(hatch, "repeat");
    for (const [row, from, to] of tile.empty) context.fillRect(x(from), LANE + row * step, x(to) - x(from), step);
    context.fillStyle = RED;
    const edge = Math.max(1, Math.min(3, step * .3));
    for (const [row, from, to] of tile.over) context.fillRect(x(from), LANE + row * step, Math.max(1, x(to) - x(from)), edge);
    context.fillStyle = NIGHT;
    if (step > 14) for (let row = 1; row < tile.count; row++) context.fillRect(shape.left, LANE + row * step - 1, shape.width, 2);
    for (const band of tile.bands) if (band.first) context.fillRect(shape.left, LANE + band.first * step - 1, shape.width, 2);
  }
  const namespaceOf = (bundle) => bundle.slice(0, bundle.lastIndexOf("/"));
  const bundleRow = (bundle) => tile.index.get(bundle) ?? tile.index.get(namespaceOf(bundle));
  function drawMoves(context, shape) {
    const step = shape.height / Math.max(1, tile.count), y = (row) => LANE + (row + .5) * step, beside = new Map();
    for (const [at, action, bundle, source, destination] of happened.moves) {
      const shift = beside.get(at) ?? 0;
      beside.set(at, shift + 1);
      const x = Math.min(shape.left + shape.width - 6, xOf(at + period / 2, shape) + shift * 5);
      const from = view.rows === "brokers" ? tile.index.get(source) : bundleRow(bundle);
      const to = view.rows === "brokers" ? tile.index.get(destination) : undefined;
      if (from === undefined) continue;
      for (const [colour, thick] of [[NIGHT, 4.5], ["#fff", 1.75]]) {
        context.strokeStyle = context.fillStyle = colour;
        context.lineWidth = thick;
        context.beginPath();
        if (to === undefined || to === from) {
          const half = Math.max(3, Math.min(10, step / 2));
          if (action === "split") { context.moveTo(x - 4, y(from)); context.lineTo(x + 4, y(from)); }
          context.moveTo(x, y(from) - half);
          context.lineTo(x, y(from) + half);
          context.stroke();
          continue;
        }
        const down = Math.sign(to - from);
        context.moveTo(x, y(from));
        context.lineTo(x, y(to) - down * 2);
        context.moveTo(x - 4, y(to) - down * 6);
        context.lineTo(x, y(to));
        context.lineTo(x + 4, y(to) - down * 6);
        context.stroke();
        context.beginPath();
        context.arc(x, y(from), thick > 3 ? 4 : 2.75, 0, 7);
        context.fill();
      }
    }
  }
  function drawSpan(context, shape) {
    if (!marked) return;
    const left = xOf(Math.min(...marked), shape), right = xOf(Math.max(...marked), shape);
    context.fillStyle = "#0b0d12a0";
    context.fillRect(shape.left, LANE, left - shape.left, shape.height);
    context.fillRect(right, LANE, shape.left + shape.width - right, shape.height);
    context.fillStyle = "#fff";
    context.fillRect(left - 1, LANE, 2, shape.height);
    context.fillRect(right - 1, LANE, 2, shape.height);
  }
  function drawChosen(context, shape) {
    const step = shape.height / Math.max(1, tile.count);
    const outline = (row, at, colour, thick) => {
      const from = Math.floor(at / tile.column) * tile.column, x = xOf(from, shape);
      context.strokeStyle = colour;
      context.lineWidth = thick;
      context.strokeRect(x - 1, LANE + row * step - 1, Math.max(4, xOf(from + tile.column, shape) - x) + 2, Math.max(4, step) + 1);
    };
    const row = chosen ? rowOf(chosen.name) : undefined;
    if (row !== undefined) {
      outline(row, chosen.at, NIGHT, 5);
      outline(row, chosen.at, `rgb(${ACCENT})`, 2.5);
    }
    if (document.activeElement === field) {
      const x = xOf(cursor.at, shape);
      context.strokeStyle = "#ffffffb0";
      context.lineWidth = 1;
      context.setLineDash([2, 3]);
      context.beginPath();
      context.moveTo(x, LANE);
      context.lineTo(x, LANE + shape.height);
      context.stroke();
      context.setLineDash([]);
      outline(cursor.row, cursor.at, "#fff", 1.5);
    }
  }
  function drawLane(context, shape) {
    const { counts, bands } = happened, bin = (happened.until - happened.since) / Math.max(1, counts.length);
    context.fillStyle = paper.faint;
    counts.forEach((count, at) => {
      if (!count) return;
      const x = xOf(happened.since + (at + .5) * bin, shape), high = Math.min(14, 3 + count * 2);
      if (x >= shape.left && x <= shape.left + shape.width) context.fillRect(x - 1.5, LANE - 2 - high, 3, high);
    });
    let free = 0;
    for (const [since, until, text] of bands) {
      if (until < view.since || since > view.until) continue;
      const left = Math.max(shape.left, xOf(since, shape)), right = Math.min(shape.left + shape.width, xOf(until, shape));
      context.strokeStyle = paper.faint;
      context.lineWidth = 1;
      context.strokeRect(left + .5, 3.5, Math.max(3, right - left), 15);
      const long = context.measureText(text).width, inside = right - left > long + 12, x = inside ? left + 5 : right + 5;
      if (x < free || x + long > shape.left + shape.width) continue;
      context.fillStyle = paper.panel;
      context.fillRect(x - 2, 4, long + 4, 14);
      context.fillStyle = paper.ink;
      context.textAlign = "left";
      context.fillText(text, x, 11.5);
      free = x + long + 4;
    }
    if (shape.left > 100) { context.fillStyle = paper.faint; context.textAlign = "right"; context.fillText("events", shape.left - 8, 12); }
  }
  function drawLabels(context, shape) {
    const step = shape.height / Math.max(1, tile.count), y = (row) => LANE + (row + .5) * step;
    if (shape.left < 20) return;
    context.textAlign = "right";
    const room = shape.left - 16, narrow = shape.left < 100;
    if (tile.bands.length && view.rows === "keyspace" && !view.namespace) {
      let free = -Infinity;
      for (const band of tile.bands) {
        const top = LANE + band.first * step + 8;
        context.fillStyle = paper.faint;
        context.fillRect(shape.left - 5, LANE + band.first * step + 1, 1.5, Math.max(1, band.count * step - 3));
        if (top < free) continue;
        context.fillStyle = paper.ink;
        context.fillText(shorten(context, band.name, room), shape.left - 9, top);
        if (band.count * step > 32) { context.fillStyle = paper.faint; context.fillText(`${band.count} bundles`, shape.left - 9, top + 15); }
        free = top + (band.count * step > 32 ? 30 : 15);
      }
      return;
    }
    const every = Math.max(1, Math.ceil(15 / step)), mine = chosen ? rowOf(chosen.name) : undefined;
    // Thin rows: the first label stays clear of the lane above.
    for (let row = Math.max(0, Math.ceil(7 / step - .5)); row < tile.count; row += every) {
      context.fillStyle = paper.faint;
      context.fillText(shorten(context, labelOf(row, narrow), room), shape.left - 8, y(row));
    }
    if (mine !== undefined) {
      context.font = `600 11px ${paper.family}`;
      context.fillStyle = paper.panel;
      context.fillRect(0, y(mine) - 8, shape.left - 2, 16);
      context.fillStyle = paper.ink;
      context.fillText(shorten(context, labelOf(mine, narrow), room), shape.left - 8, y(mine));
      context.font = `11px ${paper.family}`;
    }
  }
  // A name that does not fit loses its middle; its ending, where names differ, stays.
  function shorten(context, text, room) {
    if (context.measureText(text).width <= room) return text;
    for (let size = text.length - 1; size > 4; size--) {
      const short = `${text.slice(0, Math.ceil(size * .4))}…${text.slice(-Math.floor(size * .6))}`;
      if (context.measureText(short).width <= room) return short;
    }
    return text.slice(-4);
  }
  const STEPS = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 14400].map((minutes) => minutes * MINUTE);
  // Times at which a new *step* begins on the clock that is shown; of each by itself, since clocks may be changed in between.
  function ticks(since, until, step) {
    const zoneAt = (at) => trimtab.isLocal ? new Date(at).getTimezoneOffset() * MINUTE : 0, found = [];
    for (let local = Math.ceil((since - zoneAt(since)) / step) * step; ; local += step) {
      const at = local + zoneAt(local + zoneAt(local));
      if (at >= until) return found;
      found.push(at);
    }
  }
  const tickText = (at, step) => step >= 1440 * MINUTE ? dayOf(at) : trimtab.clock(at, false);
  function drawAxis(context, shape) {
    const long = view.until - view.since, step = STEPS.find((each) => long / each <= shape.width / 64) ?? STEPS.at(-1);
    context.textAlign = "center";
    context.fillStyle = paper.faint;
    for (const at of ticks(view.since, view.until, step)) {
      const x = xOf(at, shape);
      if (x < shape.left + 14 || x > shape.left + shape.width - 18) continue;
      context.fillRect(x, LANE + shape.height, 1, 4);
      context.fillText(tickText(at, step), x, shape.high - 11);
    }
  }
  function dayOf(at) {
    const date = new Date(at);
    return trimtab.isLocal ? `${date.getDate()} ${trimtab.months[date.getMonth()]}` : `${date.getUTCDate()} ${trimtab.months[date.getUTCMonth()]}`;
  }
  function drawWeek() {
    const shape = geometry(), context = prepare(week), long = Math.max(1, end - oldest);
    const x = (at) => shape.left + (at - oldest) / long * shape.width;
    context.fillStyle = NIGHT;
    context.fillRect(shape.left, 8, shape.width, 20);
    if (whole) {
      context.imageSmoothingEnabled = false;
      context.save();
      context.beginPath();
      context.rect(shape.left, 0, shape.width, 40);
      context.clip();
      const right = x(whole.since + whole.columns * whole.column);
      context.drawImage(whole.image, x(whole.since), 8, right - x(whole.since), 20);
      context.fillStyle = RED;
      for (const [, from, to] of whole.over) context.fillRect(x(whole.since + from * whole.column), 4, Math.max(1, x(whole.since + to * whole.column) - x(whole.since + from * whole.column)), 2);
      context.restore();
    }
    context.fillStyle = paper.faint;
    context.textAlign = "right";
    if (shape.left > 60) context.fillText(shape.left > 100 ? view.rows === "brokers" ? "fullest of all" : "busiest of all" : view.rows === "brokers" ? "fullest" : "busiest", shape.left - 8, 18);
    context.textAlign = "center";
    const step = STEPS.find((each) => long / each <= shape.width / 72) ?? STEPS.at(-1);
    for (const at of ticks(oldest, end, step)) {
      if (x(at) > shape.left + 20 && x(at) < shape.left + shape.width - 20) context.fillText(tickText(at, step), x(at), 44);
    }
    context.strokeStyle = paper.ink;
    context.lineWidth = 2;
    const left = Math.min(x(view.since), shape.left + shape.width - 6);
    context.strokeRect(left, 4, Math.max(6, x(view.until) - left), 28);
  }
  function drawScale() {
    const context = prepare(scale), wide = scale.clientWidth - 28;
    if (!tile) return;
    if (!tile.values.length) {
      context.fillStyle = `rgb(${ACCENT})`;
      context.fillRect(0, 26, 16, 12);
      context.fillStyle = paper.ink;
      context.textAlign = "left";
      context.fillText(shorten(context, `owned by ${labelOfBroker(view.owner) || "?"}`, scale.clientWidth - 24), 22, 32);
      return;
    }
    const most = Math.max(1, ...tile.histogram.subarray(0, 255)), last = tile.values.length - 1;
    for (let code = 0; code <= last; code++) {
      // Codes may be closer together at one end: each fills the scale up to the next.
      const x = Math.min(1, tile.values[code] / tile.top) * wide;
      const next = code < last ? Math.min(1, tile.values[code + 1] / tile.top) * wide : wide;
      context.fillStyle = `rgb(${tile.colours[code].map(Math.round)})`;
      context.fillRect(x, 16, next - x + 1, 8);
      const high = tile.histogram[code] / most * 14;
      context.fillStyle = paper.faint;
      if (high > .3) context.fillRect(x, 15 - Math.max(1, high), Math.max(1, next - x), Math.max(1, high));
    }
    context.fillStyle = paper.faint;
    for (const share of [0, .5, 1]) {
      context.textAlign = share ? "center" : "left";
      context.fillText(`${short(Number((tile.top * share).toPrecision(3)))}${share === 1 ? unit() : ""}`, share * wide, 33);
    }
    if (limit !== null && tile.unit === "percent") { context.fillStyle = RED; context.fillRect(limit / tile.top * wide - 1, 13, 2, 14); }
  }

  // ---- words ----

  const unit = () => tile.unit === "percent" ? " %" : tile.unit === "msg/s" ? " /s" : tile.unit === "bytes/s" ? " B/s" : "";
  function short(value) {
    let power = 0;
    while (Math.abs(value) >= 9999.5 && power < 4) { value /= 1000; power++; }
    return `${value >= 100 || power === 0 ? Math.round(value).toLocaleString("en") : value.toFixed(1)}${["", "k", "M", "G", "T"][power]}`;
  }
  function labelOfBroker(name) {
    let text = name;
    if (data.ending && text.endsWith(data.ending)) text = text.slice(0, -data.ending.length);
    if (data.beginning && text.startsWith(data.beginning)) text = text.slice(data.beginning.length);
    return text || name;
  }
  function labelOf(row, narrow = false) {
    const [name, count, first] = tile.rows[row];
    if (view.rows === "brokers") {
      const label = labelOfBroker(name || first);
      if (narrow) return label.slice(label.startsWith(data.kind) ? data.kind.length : 0) || label;
      return name ? label : `${label} +${count - 1}`;
    }
    if (!name) return `${count.toLocaleString("en")} more`;
    return view.namespace && namespaceOf(name) === view.namespace ? name.slice(name.lastIndexOf("/") + 1) : name;
  }
  function rowOf(name) {
    const exact = tile.index.get(name);
    return exact ?? (tile.rows.findIndex((row) => row[1] > 1 && (row[2] === name || row[3] === name)) + 1 || undefined);
  }
  function valueAt(row, at) {
    const column = Math.floor((at - tile.since) / tile.column);
    const code = column >= 0 && column < tile.columns ? tile.cells[row * tile.columns + column] : NO_DATA;
    if (code === NO_DATA) return "no data";
    const isOne = tile.rows[row][0];
    if (!tile.values.length) return code === OWNED ? `${isOne ? "" : "one is "}owned by ${labelOfBroker(view.owner)}` : code === 0 ? "no owner" : "another owner; click to see which";
    return `${short(tile.values[code])}${unit()}`;
  }
  function point(where) {
    if (!tile?.count) return;
    tip.hidden = false;
    tip.textContent = `${labelOf(where.row)}  ${columnOf(where.at)}  ${valueAt(where.row, where.at)}`;
    nameHottest(where);
    putTip(where);
  }
  // The time of the whole column that the value is of.
  function columnOf(at) {
    const begin = tile.since + Math.floor((at - tile.since) / tile.column) * tile.column;
    return tile.column > period ? `${trimtab.clock(begin)} to ${trimtab.clock(begin + tile.column, false)}` : trimtab.clock(begin);
  }
  function putTip(where) {
    const x = Math.max(0, Math.min(where.x + 12, field.clientWidth - tip.offsetWidth - 8));
    tip.style.transform = `translate(${x}px, ${Math.max(4, where.y - 36)}px)`;
  }
  // The hottest topic of a bundle, once the pointer rests on one of its cells: the server may have to ask brokers.
  const hottest = new Map();
  let resting = 0, pointed = "";
  function nameHottest(where) {
    clearTimeout(resting);
    const [name, count = 1] = tile.rows[where.row], at = tile.since + Math.floor((where.at - tile.since) / tile.column) * tile.column;
    const key = pointed = `${name} ${at} ${tile.column}`;
    if (view.rows !== "keyspace" || !tile.bands.length || !name || count > 1) return;
    const add = () => {
      if (key !== pointed || tip.hidden || !hottest.get(key)) return;
      tip.textContent += `  ${hottest.get(key)}`;
      putTip(where);
    };
    if (hottest.has(key)) { add(); return; }
    resting = setTimeout(async () => {
      try {
        const answer = await fetch(address(data.hot, { rows: "keyspace", metric: view.metric, row: name, at, column: tile.column }));
        if (!answer.ok) return;
        hottest.set(key, (await answer.json()).text);
        if (hottest.size > 256) hottest.delete(hottest.keys().next().value);
        add();
      } catch { /* the next rest asks again */ }
    }, 200);
  }
  function lasting(ms) {
    const minutes = Math.round(ms / MINUTE), hours = Math.floor(minutes / 60);
    if (minutes < 180) return `${minutes} min`;
    return hours < 48 ? `${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ""}` : `${Math.floor(hours / 24)} d${hours % 24 ? ` ${hours % 24} h` : ""}`;
  }
  // The same sentence as the server's, about the span that is loaded.
  function tellTitle() {
    const title = document.querySelector("[data-title]");
    if (!title || !tile.values.length) return;
    const folds = tile.rows.some((row) => row[1] > 1), isBrokers = view.rows === "brokers";
    const what = isBrokers ? "broker" : tile.bands.length ? "bundle" : "namespace";
    const key = find("[data-folded]", box);
    key.hidden = !folds;
    key.textContent = isBrokers ? "+1: the row has one broker more" : `last row: ${labelOf(tile.count - 1)} ${what}s, the less busy ones`;
    const highest = new Int16Array(tile.count).fill(-1);
    for (let row = 0, at = 0; row < tile.count; row++) {
      for (let column = 0; column < tile.columns; column++, at++) if (tile.cells[at] !== NO_DATA && tile.cells[at] > highest[row]) highest[row] = tile.cells[at];
    }
    const rows = [...highest.keys()].filter((row) => highest[row] >= 0).sort((a, b) => highest[b] - highest[a]);
    const bound = limit !== null && tile.unit === "percent", over = bound ? rows.filter((row) => tile.values[highest[row]] > limit).length : 0;
    if (!rows.length) title.textContent = "There is no data in this span";
    else if (over && folds) title.textContent = `At least ${over.toLocaleString("en")} broker${over > 1 ? "s" : ""} went above the limit of ${Math.round(limit)} %`;
    else if (over) title.textContent = `${labelOf(rows[0])}${over > 1 ? ` and ${over - 1} other ${what}${over > 2 ? "s" : ""}` : ""} went above the limit of ${Math.round(limit)} %`;
    else if (bound && view.rows === "brokers") title.textContent = `No broker went above the limit of ${Math.round(limit)} %`;
    else if (tile.rows[rows[0]][0]) title.textContent = `${labelOf(rows[0])} is the busiest ${what}`;
    else title.textContent = `The busiest ${what} is in the row ${labelOf(rows[0])}`;
  }
  function tellSpan() {
    const [since, until] = marked ? [Math.min(...marked), Math.max(...marked)] : [view.since, view.until];
    const text = find("[data-span]:not(a)", document.querySelector("aside"));
    if (text) text.textContent = `${trimtab.span(since, until)}, ${lasting(until - since)}${marked ? ", chosen" : ""}`;
    for (const link of all("[data-span-link]")) {
      const url = new URL(link.href);
      url.searchParams.set("since", Math.round(since));
      url.searchParams.set("until", Math.round(until));
      link.href = url;
    }
  }

  // ---- what a person does ----

  function remember(push = false) {
    const given = parameters();
    if (view.span) given.span = view.span; else Object.assign(given, { since: Math.round(view.since), until: Math.round(view.until) });
    if (!view.moves) given.moves = 0;
    if (chosen) Object.assign(given, { row: chosen.name, at: chosen.at });
    const url = address(data.href, given);
    history[push ? "pushState" : "replaceState"](null, "", url);
    for (const link of all("[data-set]")) {
      const change = JSON.parse(link.dataset.set);
      const current = Object.entries(change).every(([key, value]) => key === "metric" && "rows" in change || String(view[key]) === String(value));
      if (current) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }
  function show(since, until, { span = 0, wait } = {}) {
    const long = Math.max(SHORTEST, Math.min(until - since, Math.max(SHORTEST, end - oldest)));
    const begin = Math.max(Math.min(oldest, end - long), Math.min(end - long, since));
    // Whole milliseconds: a place on the screen is between two of them.
    Object.assign(view, { since: Math.round(begin), until: Math.round(begin + long), span });
    remember();
    tellSpan();
    draw();
    later(wait);
  }
  function zoom(factor, about) {
    const long = view.until - view.since, wanted = Math.max(SHORTEST, Math.min(end - oldest, long * factor));
    show(about - (about - view.since) / long * wanted, about - (about - view.since) / long * wanted + wanted);
  }
  function into() {
    const [since, until] = [Math.min(...marked), Math.max(...marked)];
    marked = mark = null;
    show(since, until, { wait: 0 });
  }
  async function choose(row, at) {
    const [name, , first] = tile.rows[row];
    chosen = { name: name || first, at: Math.floor(at / period) * period };
    remember(true);
    draw();
    await describe();
  }
  async function describe() {
    const picked = chosen;
    details.hidden = !picked;
    if (!picked) return;
    try {
      const answer = await fetch(address(data.cell, parameters({ since: Math.round(view.since), until: Math.round(view.until), row: picked.name, at: picked.at })));
      if (picked !== chosen || !answer.ok) return;
      const part = new DOMParser().parseFromString(await answer.text(), "text/html");
      details.replaceChildren(...part.body.childNodes);
      dispatchEvent(new Event("trimtab-times"));
    } catch { /* the next choice asks again */ }
  }

  let down = null;
  field.addEventListener("pointerdown", (event) => { down = place(event); field.setPointerCapture(event.pointerId); });
  field.addEventListener("pointermove", (event) => {
    const where = place(event);
    point(where);
    if (down && Math.abs(where.x - down.x) > 6) { marked = [down.at, where.at]; tellSpan(); draw(); }
  });
  field.addEventListener("pointerup", (event) => {
    const where = place(event);
    if (down && Math.abs(where.x - down.x) <= 6 && tile?.count && where.x >= geometry().left && where.y >= LANE) {
      if (!(marked && where.at > Math.min(...marked) && where.at < Math.max(...marked))) marked = null;
      cursor = { row: where.row, at: where.at };
      tellSpan();
      choose(where.row, where.at);
    }
    down = null;
  });
  field.addEventListener("pointerleave", () => { tip.hidden = true; });
  field.addEventListener("dblclick", (event) => { if (marked) into(); else zoom(.4, place(event).at); });
  field.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : .8, place(event).at);
  }, { passive: false });
  for (const kind of ["focus", "blur"]) field.addEventListener(kind, draw);
  field.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !tile?.count) return;
    const far = event.shiftKey ? 10 : 1, time = Math.max(period, tile.column) * far, key = event.key;
    const steps = { ArrowLeft: [-time, 0], ArrowRight: [time, 0], ArrowUp: [0, -far], ArrowDown: [0, far] }[key];
    if (steps) {
      cursor = {
        at: Math.max(oldest, Math.min(end - 1, cursor.at + steps[0])),
        row: Math.max(0, Math.min(tile.count - 1, cursor.row + steps[1])),
      };
      const long = view.until - view.since;
      if (cursor.at < view.since || cursor.at >= view.until) show(cursor.at - long / 2, cursor.at + long / 2);
      if (mark !== null) { marked = [mark, cursor.at]; tellSpan(); }
      const shape = geometry();
      point({ ...cursor, x: xOf(cursor.at, shape), y: LANE + cursor.row / tile.count * shape.height });
      draw();
    } else if (key === "+" || key === "=") zoom(.5, cursor.at);
    else if (key === "-") zoom(2, cursor.at);
    else if (key === "0") show(oldest, end);
    else if (key === "b") {
      mark = mark === null ? cursor.at : null;
      if (mark !== null) marked = [mark, mark + period];
      tellSpan();
      draw();
    } else if (key === "Enter") { if (marked) into(); else choose(cursor.row, cursor.at); }
    else if (key === "Escape") { marked = mark = chosen = null; remember(); tellSpan(); describe(); draw(); }
    else if (key === "m") toggleMoves();
    else if (key === "v") apply(view.rows === "brokers" ? { rows: "keyspace", metric: "rate" } : { rows: "brokers", metric: "usage" });
    else return;
    event.preventDefault();
  });
  function jump(event) {
    const shape = geometry(), bounds = week.getBoundingClientRect(), long = view.until - view.since;
    const at = oldest + (event.clientX - bounds.left - shape.left) / shape.width * (end - oldest);
    show(at - long / 2, at + long / 2);
  }
  week.addEventListener("pointerdown", (event) => { week.setPointerCapture(event.pointerId); jump(event); });
  week.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });

  // Another span is drawn at once; other rows and metrics have controls of their own, which come with their page.
  function apply(change) {
    if ("span" in change) {
      const span = Number(change.span);
      marked = mark = null;
      show(end - span * MINUTE, end, { span, wait: 0 });
      return;
    }
    const given = parameters({ namespace: "", ...change });
    for (const name of ["namespace", "owner"]) if (!given[name]) delete given[name];
    if (view.span) given.span = view.span; else Object.assign(given, { since: Math.round(view.since), until: Math.round(view.until) });
    location.href = address(data.href, given);
  }
  for (const link of all("[data-set]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      const change = JSON.parse(link.dataset.set);
      if (!("span" in change) && !("order" in change)) return;
      event.preventDefault();
      if ("order" in change) { view.order = change.order; chosen = null; describe(); remember(); later(0); } else apply(change);
    });
  }
  const form = find("[data-metric-form]");
  for (const control of all("select, [name=owner]", form)) {
    control.addEventListener("change", () => {
      const metric = find("[name=metric]", form).value;
      // The server knows the whole name of a broker, and what a title says of it.
      if (control.name === "owner" || (metric === "owner") !== (view.metric === "owner")) {
        apply({ metric, owner: find("[name=owner]", form)?.value ?? "", namespace: view.namespace });
        return;
      }
      view.metric = metric;
      remember();
      later(0);
    });
  }
  const moves = find("[data-moves]");
  moves.hidden = false;
  function toggleMoves() {
    view.moves = !view.moves;
    moves.setAttribute("aria-pressed", String(view.moves));
    remember();
    draw();
  }
  moves.addEventListener("click", toggleMoves);
  addEventListener("popstate", () => location.reload());
  addEventListener("trimtab-redraw", () => { paper = null; tellSpan(); draw(); });
  // Paper is light, whatever the screen is.
  matchMedia("print").addEventListener("change", () => { paper = null; drawNow(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { paper = null; draw(); });
  // A new interval: a map that ends with the newest one goes on with it.
  addEventListener("trimtab-interval", (event) => {
    const next = Number(event.detail.interval) + period;
    if (!next || next <= end) return;
    const isNewest = view.until >= end, long = view.until - view.since;
    end = next;
    if (isNewest) show(end - long, end, { span: view.span }); else draw();
  });
  new ResizeObserver(() => { draw(); later(); }).observe(field);
  refresh();
});
