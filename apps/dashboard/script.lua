-- script: the page's script. It keeps five minutes of samples and draws them again with each.

return [==[
const SPAN = 300, GAP = 4; // seconds that are shown; without a sample for longer, a line breaks
const find = id => document.getElementById(id);
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${Number(n.toPrecision(3))} ${units[unit]}`;
}
const count = n => short.format(n);
// The histogram tells nothing apart below LEAST.
const LEAST = 0.1;
function time(n) {
  if (n < LEAST) return `< ${LEAST} ms`;
  return n < 1000 ? `${Number(n.toPrecision(2))} ms` : `${Number((n / 1000).toPrecision(2))} s`;
}

const CHARTS = [
  { title: "Requests", unit: "per second", show: count, lines: [["requests", "answered"], ["failed", "4xx and 5xx"]] },
  { title: "Latency", unit: "of requests", show: time, least: LEAST, lines: [["p99", "p99"], ["p50", "p50"]] },
  { title: "Events", unit: "per second", show: count,
    lines: [["deliveries", "from channels"], ["events", "from streams"]] },
  { title: "Readers", unit: "of events", show: count, lines: [["subscribers", "of channels"], ["streams", "streams"]] },
  { title: "Connections", unit: "open", show: count, lines: [["connections", "connections"]] },
  { title: "Entries into Lua", unit: "per second", show: count, lines: [["lua", "entries"]] },
  { title: "Bytes", unit: "per second", show: bytes, lines: [["bytes_out", "sent"], ["bytes_in", "received"]] },
  { title: "Memory", unit: "in use", show: bytes, lines: [["resident", "resident"], ["heap", "Lua"]] },
];

let samples = [], shown = [];
let is_paused = false, is_due = false;

// Building --------------------------------------------------------------------------------------

function make(parent, name, properties = {}, space = "http://www.w3.org/1999/xhtml") {
  const element = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "text") element.textContent = value;
    else element.setAttribute(key, value);
  }
  parent.append(element);
  return element;
}
const draw = (parent, name, properties) => make(parent, name, properties, "http://www.w3.org/2000/svg");

function build(chart) {
  const card = make(find("charts"), "figure", { class: "card" });
  const caption = make(card, "figcaption");
  make(make(caption, "h2", { text: chart.title + " " }), "small", { text: chart.unit });
  const list = make(caption, "dl");
  const plot = make(card, "div", { class: "plot" });
  chart.svg = draw(plot, "svg", { viewBox: `0 0 ${SPAN} 100`, preserveAspectRatio: "none", role: "img" });
  for (const y of [1, 50, 99]) draw(chart.svg, "line", { x1: 0, x2: SPAN, y1: y, y2: y });
  chart.area = draw(chart.svg, "path", { class: "area" });
  chart.parts = chart.lines.map(([key, label], i) => {
    const color = ["one", "two"][i], pair = make(list, "div"), term = make(pair, "dt");
    make(term, "i", { class: color });
    term.append(label);
    return { key, label, value: make(pair, "dd", { text: "–" }), path: draw(chart.svg, "path", { class: color }) };
  });
  chart.cursor = draw(chart.svg, "line", { class: "cursor", y1: 0, y2: 100, visibility: "hidden" });
  chart.top = make(plot, "span");
  if (chart.least) make(plot, "span", { class: "least", text: `${chart.show(chart.least)}, logarithmic` });
  const axis = make(card, "div", { class: "axis", "aria-hidden": "true" });
  make(axis, "span", { text: "5 min ago" });
  make(axis, "span", { text: "now" });
  plot.addEventListener("pointermove", event => {
    const box = chart.svg.getBoundingClientRect();
    point(Math.round(((event.clientX - box.left) / box.width - 1) * SPAN));
  });
  plot.addEventListener("pointerleave", () => point(0));
}

// Drawing ---------------------------------------------------------------------------------------

// The least of 1, 2, 5, 10, … (with bytes: of 1, 2, 4, …) that is not below.
function ceiling(value, show) {
  if (!(value > 0)) return 1;
  if (show === bytes) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find(step => step * power >= value * 0.9999) * power;
}

// How high a value stands, from 0 to 1.
function height(value, top, least) {
  if (!least) return value / top;
  return Math.max(0, Math.log(value / least) / Math.log(top / least));
}

function trace(key, top, least, end) {
  const runs = [];
  let last = null;
  for (const sample of shown) {
    if (sample[key] === undefined) continue;
    if (!last || sample.at - last.at > GAP) runs.push([]);
    runs.at(-1).push([SPAN - (end - sample.at), 99 - 98 * height(sample[key], top, least)]);
    last = sample;
  }
  return runs;
}

const line = runs => runs.map(run => "M" + run.map(([x, y]) => `${x} ${y.toFixed(2)}`).join("L")
  + (run.length === 1 ? "h.01" : "")).join("");
const under = runs => runs.map(run => `M${run[0][0]} 99L` + run.map(([x, y]) => `${x} ${y.toFixed(2)}`).join("L")
  + `L${run.at(-1)[0]} 99Z`).join("");

function render(chart, end, sample, ago) {
  let top = 0;
  for (const each of shown) {
    for (const { key } of chart.parts) top = Math.max(top, each[key] ?? 0);
  }
  const most = top;
  top = Math.max(ceiling(top, chart.show), 10 * (chart.least ?? 0));
  chart.top.textContent = chart.show(top);
  chart.parts.forEach((part, i) => {
    const runs = trace(part.key, top, chart.least, end);
    part.path.setAttribute("d", line(runs));
    if (i === 0) chart.area.setAttribute("d", under(runs));
    part.value.textContent = sample?.[part.key] === undefined ? "–" : chart.show(sample[part.key]);
  });
  chart.cursor.setAttribute("visibility", ago ? "visible" : "hidden");
  chart.cursor.setAttribute("x1", SPAN - ago);
  chart.cursor.setAttribute("x2", SPAN - ago);
  chart.svg.setAttribute("aria-label", `${chart.title} ${chart.unit}, last five minutes: `
    + chart.parts.map(part => `${part.label} ${part.value.textContent}`).join(", ")
    + `; at most ${chart.show(most)}.`);
}

function render_all() {
  is_due = false;
  if (!is_paused) shown = samples.slice();
  if (!shown.length) return;
  const end = shown.at(-1).at, ago = -find("moment").value;
  const sample = shown.findLast(each => each.at <= end - ago && each.at > end - ago - GAP);
  const clock = new Date((end - ago) * 1000).toLocaleTimeString();
  find("when").textContent = ago ? clock : is_paused ? clock : "now";
  for (const chart of CHARTS) render(chart, end, sample, ago);
}

function render_soon() {
  if (!is_due) requestAnimationFrame(render_all);
  is_due = true;
}

function point(moment) {
  find("moment").value = moment;
  render_soon();
}

function fill(body, rows) {
  body.replaceChildren();
  for (const row of rows) {
    const line = make(body, "tr");
    row.forEach((text, i) => make(line, i ? "td" : "th", i ? { text } : { text, scope: "row" }));
  }
}

function render_state(state) {
  const minutes = Math.floor(state.uptime / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  const age = days ? `${days} d ${hours % 24} h` : hours ? `${hours} h ${minutes % 60} min` : `${minutes} min`;
  find("about").textContent = `Photon ${state.version} · ${state.workers} worker${state.workers > 1 ? "s" : ""} · `
    + `up ${age} · load ${state.generation}`;
  fill(find("routes"), state.routes.map(route =>
    [route.name, count(route.rate), count(route.requests), count(route.failed)]));
  fill(find("troubles"), state.troubles.map(({ name, count: n }) => [name.replaceAll("_", " "), count(n)]));
  find("none").hidden = state.troubles.length > 0;
}

// Receiving -------------------------------------------------------------------------------------

function say(text, is_live) {
  find("status").textContent = text;
  find("status").className = is_live ? "live" : "";
}

CHARTS.forEach(build);
const source = new EventSource("events");
source.addEventListener("open", () => say("Live", true));
source.addEventListener("error", () => say(source.readyState === EventSource.CLOSED
  ? "The server refused: load the page again" : "Connection lost: trying again"));
source.addEventListener("sample", event => {
  const sample = JSON.parse(event.data);
  samples.push(sample);
  samples = samples.filter(each => each.at > sample.at - SPAN);
  render_soon();
});
source.addEventListener("state", event => { if (!is_paused) render_state(JSON.parse(event.data)); });

find("moment").addEventListener("input", render_soon);
find("pause").addEventListener("click", () => {
  is_paused = !is_paused;
  find("pause").setAttribute("aria-pressed", is_paused);
  render_soon();
});
]==]
