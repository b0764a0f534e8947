/* One scenario at a time; one cursor for the charts of all strategies. */

const view = { scenario: null, cards: [], interval: 0, strategy: 0, chosen: null };
const cards = document.getElementById("cards");
let waiting = 0;

/** Draw once before the next picture, however many events came. */
function later(draw) {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(draw);
}

function showScenario(number) {
  const scenario = scenarios[number];
  if (!scenario.unpacked) {
    scenario.runs = scenario.runs.map((run) => unpacked(run, scenario));
    scenario.unpacked = true;
  }
  Object.assign(view, { scenario, interval: 0, strategy: 0, chosen: null });
  document.title = `trimtab: ${scenario.title}`;
  document.getElementById("about").textContent = [scenario.title, scenario.text].filter(Boolean).join(". ");
  document.getElementById("runs-title").textContent = scenario.times ? "Replays" : "Runs of the first seed";
  showFigures(scenario);
  showLegend(scenario);
  view.cards = scenario.runs.map((run, nth) => newCard(run, nth));
  cards.replaceChildren(...view.cards.map((card) => card.element));
  cards.setAttribute("aria-valuemax", String(scenario.intervals - 1));
  document.getElementById("strategy").replaceChildren(...scenario.runs.map((run, nth) => made("option", run.strategy, { value: String(nth) })));
  drawAll();
  const first = scenario.runs[0].moves[0];
  moveTo(first ? first.interval : 0);
}

function newCard(run, nth) {
  const [ratio, map, over] = ["", "", "over"].map((name) => made("canvas", "", name ? { class: name } : {}));
  const chart = made("div", "", { class: "chart" }, [ratio, map, over]);
  const highest = short(run.highestRatio);
  ratio.setAttribute("role", "img");
  ratio.setAttribute("aria-label", `${run.strategy}: imbalance over time, at most ${highest} times the mean, ${run.moves.length} moves`);
  for (const canvas of [map, over]) canvas.setAttribute("aria-hidden", "true");
  const point = (event) => {
    const box = chart.getBoundingClientRect();
    const interval = Math.floor(((event.clientX - box.left) / box.width) * view.scenario.intervals);
    later(() => moveTo(interval, nth));
  };
  chart.addEventListener("pointermove", point);
  chart.addEventListener("pointerdown", point);
  const element = made("article", "", { class: "card" }, [made("h3", `${run.strategy}: ${run.moves.length + run.more_moves} moves`), chart]);
  return { element, chart, ratio, map, over, run };
}

function showLegend(scenario) {
  const stops = STOPS.map((each) => `rgb(${each.join(",")})`).join(",");
  document.getElementById("legend").replaceChildren(
    made("span", "usage 0 %"), made("span", "", { class: "scale", style: `background:linear-gradient(to right,${stops})` }), made("span", "100 % and more"),
    made("span", `limit ${short(scenario.limit_percent)} %`), made("span", `brokers from top: ${scenario.brokers[0]} to ${scenario.brokers[scenario.brokers.length - 1]}`),
  );
}

function drawAll() {
  const top = Math.max(...view.scenario.runs.map((run) => run.highestRatio));
  for (const card of view.cards) {
    drawRatio(card, view.scenario, top);
    drawMap(card, view.scenario);
    drawCursor(card, view.scenario, view.interval, view.chosen);
  }
}

/** Set the cursor, and with *strategy* which strategy's brokers and moves are shown. */
function moveTo(interval, strategy = view.strategy) {
  const { scenario } = view;
  view.interval = Math.min(scenario.intervals - 1, Math.max(0, interval));
  if (strategy !== view.strategy) view.chosen = null;
  view.strategy = strategy;
  document.getElementById("strategy").value = String(strategy);
  const told = scenario.runs.map((run) => `${run.strategy}: ${short(run.ratio[view.interval])} times the mean, ${(run.at.get(view.interval) || []).length} moves`);
  const time = timeOf(scenario, view.interval);
  document.getElementById("at-time").textContent = `${time}. ${told.join("; ")}`;
  cards.setAttribute("aria-valuenow", String(view.interval));
  cards.setAttribute("aria-valuetext", time);
  showTime();
}

function showTime() {
  const run = view.scenario.runs[view.strategy];
  for (const card of view.cards) drawCursor(card, view.scenario, view.interval, view.chosen);
  showBars(view.scenario, run, view.interval);
  showMoves(view.scenario, run, view.interval, view.chosen, choose);
  showWhy(view.scenario, run, view.chosen, view.interval);
}

function choose(move) {
  view.chosen = move;
  moveTo(move.interval);
  const button = document.querySelector("tr.chosen button");
  if (button) button.focus();
}

/** The next move of the strategy that is shown, or the previous one with -1. */
function nextMove(direction) {
  const { moves } = view.scenario.runs[view.strategy];
  const at = view.chosen ? moves.indexOf(view.chosen) + direction : moves.findIndex((move) => move.interval >= view.interval);
  if (moves[at]) {
    view.chosen = moves[at];
    moveTo(moves[at].interval);
  }
}

const KEYS = {
  ArrowLeft: () => moveTo(view.interval - 1), ArrowRight: () => moveTo(view.interval + 1),
  ArrowDown: () => moveTo(view.interval - 1), ArrowUp: () => moveTo(view.interval + 1),
  PageDown: () => moveTo(view.interval - Math.ceil(view.scenario.intervals / 20)),
  PageUp: () => moveTo(view.interval + Math.ceil(view.scenario.intervals / 20)),
  Home: () => moveTo(0), End: () => moveTo(view.scenario.intervals - 1), n: () => nextMove(1), p: () => nextMove(-1),
};

cards.addEventListener("keydown", (event) => {
  if (KEYS[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    KEYS[event.key]();
  }
});
document.getElementById("strategy").addEventListener("change", (event) => moveTo(view.interval, Number(event.target.value)));
const chooser = document.getElementById("scenario");
chooser.replaceChildren(...scenarios.map((each, nth) => made("option", each.name, { value: String(nth) })));
chooser.addEventListener("change", () => showScenario(Number(chooser.value)));
window.addEventListener("resize", () => later(drawAll));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
showScenario(0);
