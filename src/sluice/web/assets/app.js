// The page: chooses a journal, asks for what is there, then follows what is new.
import { byId, clock, el, fill, get, lasting, say, short } from "./dom.js";
import { Chart } from "./chart.js";
import { drawGraph } from "./graph.js";
import { openControls } from "./controls.js";
import { addOlder, openDecision, showBad, showCosts, showCurves, showDecisions, showFacts, showPlacement, showReading, showShadow, showWhy } from "./panels.js";

const POINTS = 600;
const WORDS = new Map([["keeps up", "Keeps up"], ["catches up", "Catches up"], ["falls behind", "Falls behind"], ["late", "Too late"], ["idle", "Idle"], ["waiting", "Waiting"], ["unknown", "Not known"]]);
const charts = {
  load: new Chart(byId("chart-load"), { title: "Load", format: (value) => `${short(value)}/s`, series: [{ key: "arriving", label: "arrives", colour: "c-arrive" }, { key: "read", label: "is read", colour: "c-read" }] }),
  slots: new Chart(byId("chart-slots"), { title: "Slots", format: (value) => short(value), height: 120, series: [{ key: "slots", label: "there", colour: "c-slots", stepped: true, area: true }, { key: "target", label: "target", colour: "c-soft", stepped: true, dash: true }] }),
  latency: new Chart(byId("chart-latency"), { title: "Latency", format: (value) => lasting(value), series: [{ key: "latency_s", label: "longest in the window", colour: "c-read" }] }),
};
const all = Object.values(charts);
for (const chart of all) chart.onMove = (at) => { for (const other of all) if (other !== chart) { other.at = at; other.tell(); } };

let current = null;
let stream = null;
let rows = null;
let last = null;
let clairvoyant = null;
let oldest = null;

function trouble(text) {
  byId("trouble").hidden = !text;
  say("trouble", text);
}

function guarded(work) {
  return work.catch((error) => trouble(error.message));
}

function draw(data) {
  last = data;
  const { head, verdict } = data;
  byId("verdict").dataset.good = verdict.good === null ? "" : verdict.good ? "yes" : "no";
  say("word", `${verdict.good === null ? "" : verdict.good ? "✓ " : "✗ "}${data.ended || !data.live ? (verdict.good ? "Kept up" : `At the end: ${(WORDS.get(verdict.word) ?? verdict.word).toLowerCase()}`) : WORDS.get(verdict.word) ?? verdict.word}`);
  say("sentence", verdict.sentence);
  const policy = data.control_state?.policy ?? head.policy;
  say("job", `${head.pipeline} on ${head.engine}, policy ${policy}, ${data.cycles.toLocaleString("en")} decisions in ${lasting(data.time_s)}${data.error ? `; ended: ${data.error}` : ""}${data.problem ? `; problem: ${data.problem}` : ""}`);
  const hand = data.control_state;
  const state = hand?.paused ? "paused" : data.live ? "yes" : "no";
  byId("live").dataset.live = state;
  say("live", hand?.paused ? "paused" : hand?.dry_run || head.dry_run ? "dry run" : data.live ? "● live" : data.ended ? "ended" : "not live");
  byId("controls-open").hidden = !data.controls;
  document.title = `${WORDS.get(verdict.word) ?? verdict.word}: ${head.pipeline}`;
  showFacts(data);
  showWhy(data);
  drawGraph(byId("graph"), data.operators, data.edges, head.shared);
  showReading(data.reading);
  showCosts(data.costs, clairvoyant);
  showShadow(data.shadow);
  showCurves(data.curves, data.operators);
  showPlacement(data.placement);
  showBad(data.bad_lines);
}

function drawLines() {
  const marks = (last.marks ?? []);
  charts.load.show(rows, { forecast: last.forecast, marks });
  charts.slots.show(rows, { marks });
  charts.latency.show(rows, { limit: last.head.slo_s, marks });
}

const open = (place) => guarded(openDecision(current, place));

async function load(id, { keep = false } = {}) {
  stream?.close();
  current = id;
  const span = Number(byId("span").value);
  const data = await get(`/api/journals/${id}?points=${POINTS}&last_s=${span}`);
  if (current !== id) return;
  if (!keep) clairvoyant = null;
  rows = data.rows;
  oldest = data.decisions.at(-1)?.id ?? null;
  data.marks = data.decisions.map(({ time_s: time }) => time);
  draw(data);
  drawLines();
  showDecisions(data, open);
  trouble("");
  document.body.dataset.ready = id;
  document.body.dataset.cycles = data.cycles;
  follow(id, data);
  if (!keep) get(`/api/journals/${id}/clairvoyant`).then(({ slot_hours: hours }) => { if (current === id) { clairvoyant = hours; showCosts(last.costs, hours); } }).catch(() => {});
}

function follow(id, from) {
  let decided = from.decided;
  let intervened = from.intervened;
  let marks = from.marks;
  stream = new EventSource(`/api/journals/${id}/events?edition=${from.edition}&rows=${from.known_rows}`);
  stream.onopen = () => trouble("");
  stream.onerror = () => { if (current === id) trouble("The connection was lost; trying again."); };
  stream.onmessage = (event) => {
    const data = JSON.parse(event.data);
    if (current !== id) return;
    if (data.anew) { guarded(load(id, { keep: true })); return; }
    if (data.reading !== null) { showReading(data.reading); return; }
    if (data.rows.time_s.length) {
      for (const key of Object.keys(rows)) rows[key].push(...data.rows[key]);
    }
    data.marks = marks;
    draw(data);
    document.body.dataset.cycles = data.cycles;
    if (data.decided !== decided || data.intervened !== intervened) {
      decided = data.decided;
      intervened = data.intervened;
      guarded(get(`/api/journals/${id}/decisions`).then((page) => {
        oldest = page.decisions.at(-1)?.id ?? null;
        marks = page.decisions.map(({ time_s: time }) => time);
        last.marks = marks;
        showDecisions(page, open);
        drawLines();
      }));
    } else if (data.last_decision) {
      const shown = byId("decisions").querySelector(`[data-id="${Number(data.last_decision.id)}"] .soft`);
      if (shown) shown.textContent = data.last_decision.outcome ?? "";
    }
    if (rows.time_s.length > 3 * POINTS) guarded(load(id, { keep: true })); else drawLines();
  };
}

async function list() {
  const { journals } = await get("/api/journals");
  const select = byId("journal");
  const chosen = current ?? decodeURIComponent(location.hash.slice(1));
  fill(select, journals.map(({ id, title, live }) => el("option", { value: id }, `${title}${live ? " (live)" : ""}`)));
  const found = journals.find(({ id }) => id === chosen) ?? journals[0];
  if (!found) { trouble("There is no journal here yet; this page looks again every few seconds."); return null; }
  select.value = found.id;
  return found.id;
}

async function start() {
  const id = await list();
  if (id && id !== current) await load(id);
}

byId("journal").addEventListener("change", (event) => { history.replaceState(null, "", `#${event.target.value}`); guarded(load(event.target.value)); });
byId("span").addEventListener("change", () => guarded(load(current, { keep: true })));
byId("older").addEventListener("click", () => guarded(get(`/api/journals/${current}/decisions?before=${oldest}`).then((page) => { oldest = page.decisions.at(-1)?.id ?? oldest; addOlder(page, open); })));
byId("detail-close").addEventListener("click", () => byId("detail").close());
byId("controls-close").addEventListener("click", () => byId("controls").close());
byId("controls-open").addEventListener("click", () => guarded(openControls(current, last)));
byId("theme").addEventListener("change", (event) => {
  if (event.target.value) document.documentElement.dataset.theme = event.target.value; else delete document.documentElement.dataset.theme;
  try { localStorage.setItem("theme", event.target.value); } catch { /* private windows have none */ }
});
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") { document.documentElement.dataset.theme = theme; byId("theme").value = theme; }
} catch { /* private windows have none */ }
let width = innerWidth;
addEventListener("resize", () => { if (last && innerWidth !== width) { width = innerWidth; drawGraph(byId("graph"), last.operators, last.edges, last.head.shared); } });
setInterval(() => { if (!document.hidden) guarded(current ? list() : start()); }, 5000);
guarded(start());
