// A link to a form shows the form as a dialog.  Without the script, or where the form does not come, it leads there.
"use strict";

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-dialog]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  let form = null, title = "";
  try {
    const answer = await fetch(link.href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    form = page.querySelector("[data-write] form");
    title = page.querySelector("h1")?.textContent ?? "";
  } catch { /* the server is away: the browser says so */ }
  if (!form) { location.href = link.href; return; }
  const dialog = document.createElement("dialog"), heading = document.createElement("h2");
  heading.textContent = title;
  heading.id = "dialog-title";
  dialog.setAttribute("aria-labelledby", heading.id);
  dialog.append(heading, document.adoptNode(form));
  form.querySelector("[data-close]").addEventListener("click", (click) => { click.preventDefault(); dialog.close(); });
  dialog.addEventListener("close", () => { dialog.remove(); link.focus(); });
  document.body.append(dialog);
  dialog.showModal();
  form.querySelector("textarea, select, input:not([type=hidden])")?.focus();
  form.querySelector("textarea")?.focus();
});
