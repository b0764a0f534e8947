/* What is shown of one time: brokers before and after, the moves, and why. */

const ROWS = 200;

/** The table of figures: the best of each row is marked. */
function showFigures(scenario) {
  const strategies = scenario.runs.map((run) => run.strategy);
  const head = made("tr", "", {}, [made("th", "Figure", { scope: "col" }), ...strategies.map((name) => made("th", name, { scope: "col", class: "number wraps" }))]);
  const rows = scenario.figures.map((figure) => made("tr", "", {}, [
    made("th", figure.name, { scope: "row" }),
    ...figure.cells.map((cell, nth) => {
      const margin = cell.margin ? ` ±${short(Number(cell.margin.toPrecision(2)))}` : "";
      const sure = figure.sure[strategies[nth]];
      return made("td", `${short(cell.mean)}${margin}${sure ? ` (beats ${sure})` : ""}`, { class: `number${cell.best ? " best" : ""}` });
    }),
  ]));
  document.getElementById("figures").replaceChildren(made("thead", "", {}, [head]), made("tbody", "", {}, rows));
  const seeds = scenario.seeds.length;
  document.getElementById("figures-note").textContent =
    scenario.times
      ? "One run each, for there is no chance in a replay; smaller is better; ● is the best."
      : `Means over ${seeds} ${seeds === 1 ? "seed" : "seeds, with 95 % intervals"}; smaller is better; ● is the best.` +
        " “beats 2”: better than two others, so clearly that chance gives it in 5 of 100 comparisons at most.";
}

/** Bars of each broker: before the moves of *interval* came, as predicted from them, two intervals later. */
function showBars(scenario, run, interval) {
  const moved = new Map();
  for (const move of run.at.get(interval) || []) {
    moved.set(move.source, (moved.get(move.source) || 0) - move.usage);
    moved.set(move.destination, (moved.get(move.destination) || 0) + move.usage);
  }
  const rows = scenario.brokers.map((name, broker) => {
    const before = usageAt(run, scenario, Math.max(0, interval - 1), broker);
    const after = usageAt(run, scenario, Math.min(scenario.intervals - 1, interval + 1), broker);
    const predicted = before && Math.max(0, before[1] + (moved.get(broker) || 0));
    return { name, broker, before: before && before[1], predicted, after: after && after[1], change: Math.abs(moved.get(broker) || 0) };
  });
  rows.sort((one, other) => other.change - one.change || (other.before ?? -1) - (one.before ?? -1));
  const head = made("tr", "", {}, ["Broker", "", "before", "predicted", "after"].map((text, nth) => made(text ? "th" : "td", text, nth > 1 ? { scope: "col", class: "number" } : {})));
  const body = rows.slice(0, ROWS).map((row) => {
    const values = [row.before, row.predicted, row.after];
    const bars = values.map((value) => made("i", "", { style: `width:${Math.min(100, value ?? 0)}%` }));
    const cells = values.map((value) => made("td", value === null ? "away" : value.toFixed(1), { class: "number" }));
    return made("tr", "", {}, [made("th", row.name, { scope: "row" }), made("td", "", {}, [made("div", "", { class: "bar", "aria-hidden": "true" }, bars)]), ...cells]);
  });
  document.getElementById("bars").replaceChildren(made("thead", "", {}, [head]), made("tbody", "", {}, body));
}

/** The moves around *interval*; a click on one shows why. */
function showMoves(scenario, run, interval, chosen, choose) {
  const near = run.moves.length <= ROWS ? run.moves : around(run.moves, interval).slice(0, ROWS);
  const more = run.more_moves ? ` The page leaves out ${run.more_moves} more.` : "";
  document.getElementById("moves-note").textContent =
    run.moves.length === near.length ? `All ${run.moves.length} moves.${more}` : `${near.length} of ${run.moves.length} moves, those around this time.${more}`;
  const head = made("tr", "", {}, ["Time", "Bundle", "From", "To", "Usage"].map((text) => made("th", text, { scope: "col" })));
  const body = near.map((move) => {
    const button = made("button", move.bundle, { class: "move", type: "button" });
    button.addEventListener("click", () => choose(move));
    return made("tr", "", move === chosen ? { class: "chosen" } : {}, [
      made("td", String(move.interval), { class: "number" }), made("td", "", {}, [button]),
      made("td", scenario.brokers[move.source]), made("td", scenario.brokers[move.destination]),
      made("td", `${short(move.usage)} %`, { class: "number" }),
    ]);
  });
  document.getElementById("moves").replaceChildren(made("thead", "", {}, [head]), made("tbody", "", {}, body));
}

/** Why *move* was made, and what the same decision found about others. */
function showWhy(scenario, run, move, interval) {
  const place = document.getElementById("why");
  const parts = [];
  if (move) {
    parts.push(made("p", `${move.bundle} went from ${scenario.brokers[move.source]} to ${scenario.brokers[move.destination]}, ${timeOf(scenario, move.interval)}.`));
    parts.push(made("p", `Because: ${move.reason}`));
    parts.push(made("p", `It carries ${short(move.usage)} % of the destination's processor, and ${short(move.connections)} clients reconnect.`));
  }
  const at = move ? move.decided : interval;
  const told = run.decided[at];
  if (told) {
    parts.push(made("p", `Decided in interval ${at}: ${told[0]}`));
    if (told.length > 1) parts.push(made("p", "What was found about others:"), made("ul", "", {}, told.slice(1).map((text) => made("li", text))));
  } else {
    parts.push(made("p", move ? "The page does not keep more about that decision; trimtab explain does." : "Nothing was issued at this time. Choose a move."));
  }
  place.replaceChildren(...parts);
}
