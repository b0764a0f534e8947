// Plans: uploads a plan's file, says how far the check is, and opens what it found.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("[data-plan]");
  if (!form) return;
  trimtab.startJobs(form, {
    message: "The file is being sent.",
    send: () => trimtab.post(form.dataset.plan, form.elements.file.files[0]),
  });
});
