/* The charts of a run: a line of imbalance with bars of moves, and a map of usage.  Pictures are drawn once; the cursor and the
   arcs near it lie on a canvas of their own. */

const RATIO_HEIGHT = 90;
const ARCS_AT_ONCE = 120;
/* From dark blue over grey to yellow: it also reads without colours, as dark and light. */
const STOPS = [[0, 32, 77], [65, 76, 109], [124, 123, 120], [188, 175, 111], [255, 234, 70]];

/** The colour of a usage in percent, as [red, green, blue]; from 100 on it is the last one. */
function colour(percent) {
  const place = (Math.min(100, Math.max(0, percent)) / 100) * (STOPS.length - 1);
  const below = Math.min(STOPS.length - 2, Math.floor(place));
  return STOPS[below].map((from, part) => Math.round(from + (STOPS[below + 1][part] - from) * (place - below)));
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A canvas of so many pixels of the page, sharp on every screen. */
function sized(canvas, width, height) {
  const scale = Math.min(3, window.devicePixelRatio || 1);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

function mapHeight(scenario) {
  return Math.min(420, Math.max(90, scenario.brokers.length * 12));
}

/** The line of imbalance; all strategies have the same scale. */
function drawRatio(card, scenario, top) {
  const width = card.chart.clientWidth;
  const pen = sized(card.ratio, width, RATIO_HEIGHT);
  card.ratio.style.height = `${RATIO_HEIGHT}px`;
  const bars = 22;
  const y = (value) => 4 + (RATIO_HEIGHT - bars - 8) * (1 - (value - 1) / Math.max(0.05, top - 1));
  pen.strokeStyle = css("--line");
  pen.strokeRect(0.5, 0.5, width - 1, RATIO_HEIGHT - 1);
  const shares = thinned(card.run.ratio, Math.max(1, Math.floor(width)));
  pen.strokeStyle = css("--text");
  pen.lineWidth = 1.5;
  pen.beginPath();
  shares.forEach((value, at) => pen.lineTo(((at + 0.5) / shares.length) * width, y(value)));
  pen.stroke();
  drawBars(pen, card.run, scenario, width, bars);
  pen.fillStyle = css("--quiet");
  pen.font = "12px system-ui, sans-serif";
  pen.fillText(`${short(top)} times the mean`, 4, 14);
}

function drawBars(pen, run, scenario, width, height) {
  const counts = new Array(Math.max(1, Math.min(scenario.intervals, Math.floor(width / 2)))).fill(0);
  for (const move of run.moves) counts[Math.min(counts.length - 1, Math.floor((move.interval / scenario.intervals) * counts.length))] += 1;
  const most = Math.max(1, ...counts);
  pen.fillStyle = css("--mark");
  counts.forEach((count, at) => {
    const size = count ? Math.max(2, (count / most) * height) : 0;
    pen.fillRect((at / counts.length) * width, RATIO_HEIGHT - size, Math.max(1, width / counts.length - 0.5), size);
  });
}

/** The map: a column of pixels for each column of the data, stretched. */
function drawMap(card, scenario) {
  const { run } = card;
  const brokers = scenario.brokers.length;
  const picture = new ImageData(run.columns, brokers);
  const palette = Array.from({ length: 256 }, (_, level) => colour(level * scenario.percent_a_level));
  for (let column = 0; column < run.columns; column += 1) {
    for (let broker = 0; broker < brokers; broker += 1) {
      const level = run.high[column * brokers + broker];
      const place = (broker * run.columns + column) * 4;
      const [red, green, blue] = palette[level];
      picture.data.set(level === scenario.absent ? [0, 0, 0, 0] : [red, green, blue, 255], place);
    }
  }
  const small = document.createElement("canvas");
  small.width = run.columns;
  small.height = brokers;
  small.getContext("2d").putImageData(picture, 0, 0);
  const width = card.chart.clientWidth;
  const pen = sized(card.map, width, mapHeight(scenario));
  card.map.style.height = `${mapHeight(scenario)}px`;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 0, 0, width, mapHeight(scenario));
}

/** The cursor, and the moves around it as arcs. */
function drawCursor(card, scenario, interval, chosen) {
  const width = card.chart.clientWidth;
  const height = RATIO_HEIGHT + mapHeight(scenario);
  const pen = sized(card.over, width, height);
  const x = (at) => ((at + 0.5) / scenario.intervals) * width;
  const y = (broker) => RATIO_HEIGHT + ((broker + 0.5) / scenario.brokers.length) * mapHeight(scenario);
  const arcs = card.run.moves.length <= ARCS_AT_ONCE ? card.run.moves : around(card.run.moves, interval);
  for (const move of arcs) {
    const bulge = Math.min(24, 6 + Math.abs(y(move.source) - y(move.destination)) / 6);
    for (const [stroke, line] of [["#000", 3], [move === chosen ? "#ff5a4d" : "#fff", 1.4]]) {
      pen.strokeStyle = stroke;
      pen.lineWidth = move === chosen ? line + 1 : line;
      pen.beginPath();
      pen.moveTo(x(move.interval), y(move.source));
      pen.quadraticCurveTo(x(move.interval) + bulge, (y(move.source) + y(move.destination)) / 2, x(move.interval), y(move.destination));
      pen.stroke();
    }
    pen.fillStyle = "#fff";
    pen.beginPath();
    pen.arc(x(move.interval), y(move.destination), 2.5, 0, 2 * Math.PI);
    pen.fill();
  }
  pen.fillStyle = css("--mark");
  pen.fillRect(x(interval) - 0.75, 0, 1.5, height);
}

/** The moves nearest to an interval; *moves* are in order of time. */
function around(moves, interval) {
  let first = moves.findIndex((move) => move.interval >= interval);
  if (first < 0) first = moves.length;
  const from = Math.max(0, first - ARCS_AT_ONCE / 2);
  return moves.slice(from, from + ARCS_AT_ONCE);
}
