// What if: starts a job, says how far it is, and opens its result.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("[data-what-if]");
  if (!form) return;
  const text = form.querySelector("[data-said]"), buttons = [...form.querySelectorAll("button")];
  const time = (name) => trimtab.timeOf(form.elements[name]);
  async function answerOf(response) {
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.detail || `the server answers ${response.status}`);
    return answer;
  }
  async function start(kind, strategy) {
    const since = time("since"), until = time("until"), half = Math.ceil((until - since) / 120_000);
    if (!(half > 0)) throw new Error("the span ends before it begins");
    if (kind === "incident" && half > 720) throw new Error("an incident file has 24 hours at most: choose a shorter span");
    const body = kind === "incident"
      ? { around: Math.round((since + until) / 2), minutes: half }
      : { since, until, strategies: strategy ? [strategy] : [] };
    const address = kind === "incident" ? form.dataset.incident : form.dataset.whatIf;
    const response = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    return (await answerOf(response)).id;
  }
  async function follow(id) {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      const job = await answerOf(await fetch(`${form.dataset.jobs}${encodeURIComponent(id)}`));
      text.textContent = `${job.state}${job.progress ? `: ${job.progress}` : ""}`;
      if (job.state !== "waiting" && job.state !== "running") break;
    }
    const url = new URL(form.dataset.here, location.href);
    const strategy = form.elements.strategy.value;
    for (const [key, value] of Object.entries({ since: time("since"), until: time("until"), job: id })) url.searchParams.set(key, value);
    if (strategy) url.searchParams.set("strategy", strategy);
    location.href = url;
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    for (const button of buttons) button.disabled = true;
    text.textContent = "It is being started.";
    try {
      await follow(await start(event.submitter?.value, form.elements.strategy.value));
    } catch (error) {
      text.textContent = `Not done: ${error.message}`;
      for (const button of buttons) button.disabled = false;
    }
  });
  if (form.dataset.job && ["waiting", "running"].includes(form.dataset.state)) {
    follow(form.dataset.job).catch((error) => { text.textContent = `Not known: ${error.message}`; });
  }
});
