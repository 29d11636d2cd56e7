// Fetches the page again and replaces the parts that changed, so that nothing flashes or moves.
"use strict";

const PERIOD_MS = 2000;
const TIMEOUT_MS = 10000;
const written = new Map(); // each part's HTML as the server wrote it

function parts(page) {
  return page.querySelectorAll("[data-live]");
}

function replace(part, html) {
  const open = [...part.querySelectorAll("details[open]")].map((one) => one.id);
  part.innerHTML = html;
  for (const id of open) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
}

function update(page) {
  for (const fresh of parts(page)) {
    if (written.get(fresh.id) === fresh.innerHTML) continue;
    written.set(fresh.id, fresh.innerHTML);
    replace(document.getElementById(fresh.id), fresh.innerHTML);
  }
}

function tell(text, stale) {
  document.getElementById("refreshed").textContent = text;
  document.body.classList.toggle("stale", stale);
}

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch(location.pathname, {
      cache: "no-store",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    update(new DOMParser().parseFromString(await response.text(), "text/html"));
    tell(`refreshed ${new Date().toLocaleTimeString()}`, false);
  } catch {
    tell("the server does not answer; these are its last figures", true);
  }
}

async function run() {
  await refresh();
  setTimeout(run, PERIOD_MS);
}

for (const part of parts(document)) written.set(part.id, part.innerHTML);
document.addEventListener("visibilitychange", refresh);
setTimeout(run, PERIOD_MS);
