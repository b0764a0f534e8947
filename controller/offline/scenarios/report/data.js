/* The data, unpacked: levels as bytes, moves by interval.  Texts of a scenario only ever become text, never markup. */

const scenarios = JSON.parse(document.getElementById("data").textContent);

/** An element with text and attributes; children are appended. */
function made(name, text = "", attributes = {}, children = []) {
  const element = document.createElement(name);
  if (text !== "") element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** The bytes of base64 text. */
function bytes(text) {
  return Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
}

/** A run with its levels as bytes, and its moves by interval. */
function unpacked(run, scenario) {
  const brokers = scenario.brokers.length;
  const low = bytes(run.low);
  const high = bytes(run.high);
  const columns = high.length / brokers;
  const moves = run.moves.map(([interval, decided, bundle, source, destination, usage, connections, reason]) => ({
    interval, decided, source, destination, usage, connections, bundle: run.bundles[bundle], reason: run.reasons[reason],
  }));
  const at = new Map();
  for (const move of moves) {
    if (!at.has(move.interval)) at.set(move.interval, []);
    at.get(move.interval).push(move);
  }
  return { ...run, low, high, columns, moves, at, highestRatio: Math.max(...thinned(run.ratio, 2000)) };
}

/** At most so many values, each the highest of several: no peak is lost. */
function thinned(values, most) {
  const step = Math.max(1, Math.ceil(values.length / most));
  const found = [];
  for (let at = 0; at < values.length; at += step) found.push(Math.max(...values.slice(at, at + step)));
  return found;
}

/** Usage of a broker in the column of an interval, in percent: [lowest, highest], or null where it is away. */
function usageAt(run, scenario, interval, broker) {
  const column = Math.min(run.columns - 1, Math.floor(interval / run.step));
  const place = column * scenario.brokers.length + broker;
  if (run.high[place] === scenario.absent) return null;
  return [run.low[place] * scenario.percent_a_level, run.high[place] * scenario.percent_a_level];
}

/** The time of day of an interval, after the day's number; of a recording the time in UTC. */
function timeOf(scenario, interval) {
  if (scenario.times) return `interval ${interval}, ${new Date(scenario.times[interval]).toISOString().slice(0, 19)}Z`;
  const minutes = Math.round(scenario.start_hour * 60 + (interval * scenario.period_seconds) / 60);
  const two = (number) => String(number).padStart(2, "0");
  return `interval ${interval}, day ${Math.floor(minutes / 1440) + 1}, ${two(Math.floor(minutes / 60) % 24)}:${two(minutes % 60)}`;
}

/** A number of at most four digits. */
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)}k`;
  return String(Number(value.toPrecision(4)));
}
