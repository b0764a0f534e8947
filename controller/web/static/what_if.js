// What if: starts a job, says how far it is, and opens its result.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("[data-what-if]");
  if (!form) return;
  const text = form.querySelector("[data-said]"), buttons = [...form.querySelectorAll("button")];
  const { since, until } = form.dataset;
  async function answerOf(response) {
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.detail || `the server answers ${response.status}`);
    return answer;
  }
  async function start(kind, strategy) {
    const body = kind === "incident"
      ? { around: Math.round((Number(since) + Number(until)) / 2), minutes: Math.max(1, Math.min(720, Math.round((until - since) / 120_000))) }
      : { since: Number(since), until: Number(until), strategies: strategy ? [strategy] : [] };
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
    for (const [key, value] of Object.entries({ since, until, job: id })) url.searchParams.set(key, value);
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
