// The page: chooses a journal, asks for what is there, then follows what is new.
import { byId, clock, el, fill, get, lasting, say, short } from "./dom.js";
import { Chart } from "./chart.js";
import { drawGraph } from "./graph.js";
import { openControls, showInForce } from "./controls.js";
import { addOlder, arrows, openDecision, showBad, showCosts, showCurves, showDecisions, showFacts, showPlacement, showReading, showShadow, showWhy } from "./panels.js";

const POINTS = 600;
const WORDS = new Map([["keeps up", "Keeps up"], ["catches up", "Catches up"], ["falls behind", "Falls behind"], ["late", "Is too late"], ["idle", "Idle"], ["waiting", "Waiting"], ["unknown", "Not known"], ["kept up", "Kept up"], ["fell behind", "Fell behind"], ["was late", "Was too late"], ["failed", "Failed"]]);
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
let listed = "";

function trouble(text) {
  byId("trouble").hidden = !text;
  say("trouble", text);
}

// the one of the command line, until a person writes another
function price() {
  const text = byId("price").value;
  if (text !== "") return Math.max(0, Number(text));
  return last?.costs?.price ?? null;
}

function guarded(work) {
  return work.catch((error) => trouble(error.message));
}

function draw(data) {
  last = data;
  const { head, verdict } = data;
  byId("verdict").dataset.good = verdict.good === null ? "" : verdict.good ? "yes" : "no";
  say("word", `${verdict.good === null ? "" : verdict.good ? "✓ " : "✗ "}${WORDS.get(verdict.word) ?? verdict.word}`);
  say("sentence", verdict.sentence);
  const policy = data.control_state?.policy ?? head.policy;
  say("job", `${head.pipeline} on ${head.engine}, policy ${policy}, ${data.cycles.toLocaleString("en")} decisions in ${lasting(data.time_s)}${data.error ? `; ended: ${data.error}` : ""}${data.problem ? `; problem: ${data.problem}` : ""}`);
  const hand = data.control_state;
  const state = hand?.paused ? "paused" : data.live ? "yes" : "no";
  byId("live").dataset.live = state;
  say("live", hand?.paused ? "paused" : hand?.dry_run || head.dry_run ? "dry run" : data.live ? "● live" : data.ended ? "ended" : "not live");
  byId("controls-open").hidden = !data.controls;
  document.title = `${WORDS.get(verdict.word) ?? verdict.word}: ${head.pipeline}`;
  if (byId("controls").open) showInForce(current, hand);
  showFacts(data);
  showWhy(data);
  say("graph-title", head.shared ? "Queries" : "Operators");
  drawGraph(byId("graph"), data.operators, data.edges, head);
  showReading(data.reading);
  showCosts(data.costs, clairvoyant, price());
  showShadow(data.shadow);
  showCurves(data.curves, data.operators);
  showPlacement(data.placement);
  showBad(data.bad_lines);
}

function drawLines() {
  const marks = last.marks ?? [];
  // all three share one axis of time, which a forecast makes at most a quarter longer
  const [first, now] = [rows.time_s[0] ?? 0, rows.time_s.at(-1) ?? 0];
  const ahead = (last.forecast?.time_s ?? []).filter((time) => time <= now + Math.max(60, (now - first) * 0.25));
  const until = ahead.length > 1 ? ahead.at(-1) : now;
  charts.load.show(rows, { forecast: until > now ? last.forecast : null, marks, until });
  charts.slots.show(rows, { title: last.head.shared ? "Executors" : "Slots", marks, until });
  charts.latency.show(rows, { limit: last.head.slo_s, marks, until });
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
  data.marks = data.decisions.map(({ at_s: time }) => time);
  draw(data);
  drawLines();
  showDecisions(data, open);
  trouble("");
  document.body.dataset.ready = id;
  document.body.dataset.cycles = data.cycles;
  follow(id, data);
  if (!keep) plan(id);
}

function plan(id) {
  get(`/api/journals/${id}/clairvoyant`).then(({ slot_hours: hours }) => { if (current === id) { clairvoyant = hours; showCosts(last.costs, hours, price()); } }).catch(() => {});
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
        marks = page.decisions.map(({ at_s: time }) => time);
        last.marks = marks;
        showDecisions(page, open);
        drawLines();
      }));
    } else if (data.last_decision) {
      const shown = byId("decisions").querySelector(`[data-id="${Number(data.last_decision.id)}"] .outcome`);
      if (shown) shown.textContent = arrows(data.last_decision.outcome);
    }
    if (rows.time_s.length > 3 * POINTS) guarded(load(id, { keep: true })); else drawLines();
  };
}

async function list() {
  const { journals } = await get("/api/journals");
  const select = byId("journal");
  const chosen = current ?? decodeURIComponent(location.hash.slice(1));
  const options = JSON.stringify(journals.map(({ id, title, live }) => [id, title, live]));
  // a list that is open must not be made anew without need
  if (options !== listed) fill(select, journals.map(({ id, title, live }) => el("option", { value: id }, `${title}${live ? " (live)" : ""}`)));
  listed = options;
  const found = journals.find(({ id }) => id === chosen) ?? journals[0];
  if (!found) { trouble("There is no journal here yet; this page looks again every few seconds."); return null; }
  if (select.value !== found.id) select.value = found.id;
  return found.id;
}

async function start() {
  const id = await list();
  if (id && id !== current) await load(id);
}

byId("journal").addEventListener("change", (event) => { history.replaceState(null, "", `#${event.target.value}`); guarded(load(event.target.value)); });
byId("price").addEventListener("input", () => { if (last) showCosts(last.costs, clairvoyant, price()); });
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
addEventListener("resize", () => { if (last && innerWidth !== width) { width = innerWidth; drawGraph(byId("graph"), last.operators, last.edges, last.head); } });
setInterval(() => {
  if (document.hidden) return;
  guarded(current ? list() : start());
  if (clairvoyant !== null && last?.live) plan(current);
}, 5000);
guarded(start());
