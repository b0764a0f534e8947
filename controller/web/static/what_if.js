// What if: starts a job, says how far it is, and opens its result.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("[data-what-if]");
  if (!form) return;
  const time = (name) => trimtab.timeOf(form.elements[name]), strategy = form.elements.strategy;
  function send(event) {
    const since = time("since"), until = time("until"), half = Math.ceil((until - since) / 120_000);
    const isIncident = event.submitter?.value === "incident";
    if (!(half > 0)) throw new Error("the span ends before it begins");
    if (isIncident && half > 720) throw new Error("an incident file has 24 hours at most: choose a shorter span");
    const body = isIncident
      ? { around: Math.round((since + until) / 2), minutes: half }
      : { since, until, strategies: strategy.value ? [strategy.value] : [] };
    return trimtab.post(isIncident ? form.dataset.incident : form.dataset.whatIf, JSON.stringify(body));
  }
  trimtab.startJobs(form, {
    message: "It is being started.",
    send,
    query: () => ({ since: time("since"), until: time("until"), ...(strategy.value ? { strategy: strategy.value } : {}) }),
  });
});
