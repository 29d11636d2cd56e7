// Fetches the server's figures and draws the sections that changed, so that nothing flashes or
// moves. Names in them come from models and clients: they become text nodes, never markup.
"use strict";

const PERIOD_MS = 2000;
const TIMEOUT_MS = 10000;
const drawn = new Map(); // by section, the figures it shows

// An element with children: elements, and texts.
function element(tag, classes, ...children) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  made.append(...children);
  return made;
}

// `columns` are titles, those of numbers with a # in front and \n for a new line; a row is a list of
// texts, numbers or elements, an element td for a cell of its own form.
function table(columns, rows) {
  const numbers = columns.map((title) => (title.startsWith("#") ? "number" : ""));
  const head = element("tr", "", ...columns.map((title, i) => {
    const lines = title.replace("#", "").split("\n");
    return element("th", numbers[i], ...lines.flatMap((line, n) => (n ? [element("br"), line] : [line])));
  }));
  const body = rows.map((row) => element("tr", "", ...row.map((cell, i) =>
    cell.tagName === "TD" ? cell : element("td", numbers[i], cell))));
  return element("table", "", element("thead", "", head), element("tbody", "", ...body));
}

function wideTable(columns, rows) {
  return element("div", "wide", table(columns, rows));
}

// Requests per second of the last minute, the newest at the right.
function sparkline(rates) {
  const highest = Math.max(1, ...rates);
  const points = rates.map((rate, i) => `${61 - rates.length + i},${20 - (19 * rate) / highest}`);
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const chart = svg("svg", {
    class: "sparkline",
    viewBox: "0 0 60 20",
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": "requests per second in the last minute",
  });
  chart.append(svg("polyline", { points: points.join(" ") }));
  return chart;
}

// "3 busy, 1 queue full"; of counts by reason.
function reasonsText(reasons) {
  const counts = Object.entries(reasons).filter(([, count]) => count > 0);
  return counts.map(([reason, count]) => `${countText(count)} ${reason.replaceAll("_", " ")}`).join(", ");
}

function tiles({ server, recent, queue, total }) {
  const tile = (title, value, note) => element("div", "tile", element("h3", "", title),
    element("p", "value", value), note.tagName ? note : element("p", "faint", note));
  const dropped = reasonsText(queue.dropped);
  return [
    tile("requests per second", countText(recent.requests_per_second_10s), sparkline(recent.requests_per_second)),
    tile("latency, p99", latencyText(recent.latency_micros.p99),
      `p50 ${latencyText(recent.latency_micros.p50)}, last minute`),
    tile("rows per second", countText(recent.rows_per_second_10s), "candidates scored"),
    tile("saved by sending once", `${bytesText(recent.bytes_saved_per_second)}/s`,
      `${bytesText(total.bytes_saved)} since the start`),
    tile("errors", countText(recent.errors), "last minute"),
    tile("waiting", countText(queue.waiting), dropped ? `dropped: ${dropped}` : "none dropped"),
    tile("requests per run", total.runs ? countText(total.run_requests / total.runs) : NOTHING,
      `${countText(total.joined_requests)} joined, ${countText(total.split_requests)} in slices, since the start`),
    tile("wait for a worker, p99", latencyText(queue.wait_micros_p99),
      `long requests ${latencyText(queue.long_wait_micros_p99)}, since the start`),
    tile("CPU cores in use", countText(recent.cpu_cores_10s), `${durationText(server.cpu_seconds)} since the start`),
    tile("memory", bytesText(server.resident_bytes), "resident"),
  ];
}

function traffic(all) {
  if (all.length === 0) return [element("p", "faint", "No request yet.")];
  const columns = ["model", "signature", "API", "#req/s\n10 s", "#req/s\n1 min", "#p50", "#p95", "#p99",
    "#rows per\nrequest", "#saved", "#answered", "#errors"];
  return [wideTable(columns, all.map((one) => [
    one.model || "none: dropped or not found",
    one.signature,
    one.entrypoint === "REST" ? `${one.api}, REST` : one.api,
    countText(one.requests_per_second_10s),
    countText(one.requests_per_second),
    ...["p50", "p95", "p99"].map((share) => latencyText(one.latency_micros[share])),
    one.requests_with_rows ? countText(one.rows / one.requests_with_rows) : NOTHING,
    `${bytesText(one.bytes_saved_per_second)}/s`,
    countText(one.answered),
    countText(one.errors),
  ]))];
}

function callers(all) {
  const columns = ["caller", "#requests", "#rows", "#in the model", "#refused: in flight", "#rows per second", "#burst"];
  return [element("h2", "", "Callers"), wideTable(columns, all.map((one) => [
    one.caller,
    countText(one.requests),
    countText(one.rows),
    durationText(one.run_seconds),
    ...Object.values(one.refused).map(countText),
  ]))];
}

function stateBadge({ state, error_code }) {
  const badge = (kind, text) => element("span", `badge ${kind}`, text);
  if (state === "AVAILABLE") return badge("good", "serving");
  if (state === "END") return error_code === "OK" ? badge("", "unloaded") : badge("bad", "failed");
  return badge("waiting", state === "START" ? "waiting" : state.toLowerCase());
}

function models(all) {
  const rows = all.flatMap((model) => {
    if (model.versions.length > 0) {
      return model.versions.map((one) => [
        model.name,
        one.version,
        stateBadge(one),
        element("td", "", ...one.labels.flatMap((label) => [element("span", "badge label", label), " "])),
        element("td", "path", one.path, ...(one.error ? [element("p", "error", one.error)] : [])),
      ]);
    }
    const none = element("td", "faint", "no version found yet");
    none.colSpan = 3;
    return [[model.name, none, element("td", "path", model.base_path)]];
  });
  return [wideTable(["model", "#version", "state", "labels", "directory"], rows)];
}

function states(all) {
  if (all.length === 0) return [element("p", "faint", "No model has stages to keep states of.")];
  const columns = ["model", "#version", "signature", "store", "#found", "#states found", "#computed",
    "#evicted", "#kept", "#memory"];
  return [wideTable(columns, all.map((one) => {
    const looked = one.found + one.computed;
    return [
      one.model,
      one.version,
      one.signature,
      one.store,
      looked ? `${Math.floor((100 * one.found) / looked)} %` : NOTHING,
      ...[one.found, one.computed, one.evicted, one.states].map(countText),
      bytesText(one.bytes),
    ];
  }))];
}

function itemTables(all) {
  if (all.length === 0) return [];
  const columns = ["model", "key", "#version", "#rows", "#bytes", "#age", "#deltas", "#oldest", "#lookups", "#unknown", ""];
  return [element("h2", "", "Item tables"), wideTable(columns, all.map((one) => [
    one.model,
    one.key,
    one.version,
    countText(one.rows),
    bytesText(one.bytes),
    durationText(one.age_seconds),
    countText(one.deltas),
    one.deltas ? durationText(one.oldest_delta_age_seconds) : NOTHING,
    countText(one.lookups),
    countText(one.unknown_keys),
    one.error,
  ]))];
}

function shadows({ versions, not_run }) {
  const columns = ["model", "#live", "#shadow", "#compared", "#other form", "#failed", "output",
    "#largest difference", "#other top 10", "last error"];
  const rows = versions.flatMap((one) => {
    const row = (...output) => [one.model, one.live, one.shadow, countText(one.compared),
      countText(one.other_form), countText(one.failed), ...output, one.last_error];
    if (one.outputs.length === 0) return [row(NOTHING, NOTHING, NOTHING)];
    return one.outputs.map((output) => row(output.output, differenceText(output.largest_difference),
      shareText(output.other_top_10, output.same_top_10)));
  });
  return [
    element("h2", "", "Shadow versions"),
    element("p", "faint", "Requests that a version answered and another one ran, too, since the start."),
    wideTable(columns, rows),
    ...not_run.map((one) => element("p", "faint", `${one.model}: not run: ${reasonsText(one.reasons)}`)),
  ];
}

function signature(model, version, { name, graphs, inputs, outputs }) {
  const users = inputs.filter(({ shape }) => shape !== null && shape[0] === 1).length;
  const facts = `${model.name} version ${version.version}: ${counted(inputs.length, "input")}` +
    `${users ? `, ${users} of them the user's` : ""}, ${counted(outputs.length, "output")}`;
  const cells = (column) => [column.name, typeText(column.dtype), shapeText(column.shape)];
  const details = element("details", "",
    element("summary", "", element("b", "", name), " ", element("span", "faint", facts)),
    ...graphs.map((why) => element("p", "faint", `Graph: ${why}`)),
    element("div", "columns",
      table(["input", "type", "shape", "rows to send"],
        inputs.map((column) => [...cells(column), rowsText(column.shape)])),
      table(["output", "type", "shape"], outputs.map(cells))));
  details.id = `${model.name}/${version.version}/${name}`;
  return details;
}

function signatures(all) {
  const found = all.flatMap((model) => model.versions.flatMap((version) =>
    version.signatures.map((one) => signature(model, version, one))));
  return found.length > 0 ? found : [element("p", "faint", "No version serves.")];
}

// Replaces what a section shows, if its figures are others; what was open stays so.
function draw(id, figures, section) {
  const text = JSON.stringify(figures);
  if (drawn.get(id) === text) return;
  drawn.set(id, text);
  const place = document.getElementById(id);
  const open = new Set([...place.querySelectorAll("details[open]")].map((one) => one.id));
  place.replaceChildren(...(figures === undefined ? [] : section(figures)));
  for (const one of place.querySelectorAll("details")) one.open = open.has(one.id);
}

function drawAll(status) {
  const { server, recent, queue, total } = status;
  const up = `colcast_model_server ${server.version}, up ${durationText(server.uptime_seconds)}`;
  draw("server", up, (text) => [text]);
  draw("tiles", { server, recent, queue, total }, tiles);
  draw("traffic", status.traffic, traffic);
  draw("callers", status.callers, callers);
  draw("models", status.models, models);
  draw("states", status.states, states);
  draw("items", status.item_tables, itemTables);
  draw("shadows", status.shadows, shadows);
  draw("signatures", status.models, signatures);
}

function tell(text, stale) {
  document.getElementById("refreshed").textContent = text;
  document.body.classList.toggle("stale", stale);
}

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch("status.json", {
      cache: "no-store",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    drawAll(await response.json());
    tell(`refreshed ${new Date().toLocaleTimeString()}`, false);
  } catch {
    tell("the server does not answer; these are its last figures", true);
  }
}

async function run() {
  await refresh();
  setTimeout(run, PERIOD_MS);
}

document.addEventListener("visibilitychange", refresh);
run();
