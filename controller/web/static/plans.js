// Plans: uploads a plan's file, says how far the check is, and opens what it found.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("[data-plan]");
  if (!form) return;
  const text = form.querySelector("[data-progress]"), button = form.querySelector("button");
  async function answerOf(response) {
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.detail || `the server answers ${response.status}`);
    return answer;
  }
  async function follow(id) {
    for (;;) {
      const job = await answerOf(await fetch(`${form.dataset.jobs}${encodeURIComponent(id)}`));
      text.textContent = `${job.state}${job.progress ? `: ${job.progress}` : ""}`;
      if (job.state !== "waiting" && job.state !== "running") break;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    const url = new URL(form.dataset.here, location.href);
    url.searchParams.set("job", id);
    location.href = url;
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    text.textContent = "The file is being sent.";
    try {
      const headers = { "Content-Type": "application/json" };
      const job = await answerOf(await fetch(form.dataset.plan, { method: "POST", headers, body: form.elements.file.files[0] }));
      await follow(job.id);
    } catch (error) {
      text.textContent = `Not done: ${error.message}`;
      button.disabled = false;
    }
  });
  if (form.dataset.job && ["waiting", "running"].includes(form.dataset.state)) {
    follow(form.dataset.job).catch((error) => { text.textContent = `Not known: ${error.message}`; });
  }
});
