// What stands below the time lines: decisions, costs, shadow, curves, placement, lines that are no records.
import { byId, clock, el, fill, get, lasting, number, say, short, svg } from "./dom.js";
import { nice } from "./chart.js";

const KINDS = { would_scale: "would scale (dry run)", scaled: "scaled", waiting: "requested, not there yet", partly: "partly failed", failed: "failed", unfulfilled: "not fulfilled in time", unreadable: "unreadable" };

export function showFacts({ operators, head, costs }) {
  const total = (key) => (head.shared ? Math.max(0, ...operators.map((one) => one[key] ?? 0)) : operators.reduce((sum, one) => sum + (one[key] ?? 0), 0));
  const [there, wanted] = [total("instances"), total("target")];
  const busiest = operators.filter(({ busy }) => busy !== null).sort((a, b) => b.busy - a.busy)[0];
  say("tight", busiest && operators.length > 1 ? `Busiest: ${busiest.name}, ${Math.round(busiest.busy * 100)} %.` : "");
  const facts = [[head.shared ? "executors" : "slots", wanted && wanted !== there ? `${there} → ${wanted}` : `${there}`], ["waiting records", operators.some(({ lag }) => lag !== null) ? short(total("lag")) : "unknown"], ["late windows", !costs ? "being counted" : costs.known ? `${number(costs.late)} of ${number(costs.known)}` : "no objective"]];
  fill(byId("facts"), facts.map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))));
}

export function showWhy(data) {
  const last = data.last_decision;
  say("scaled", last ? `${last.kind === "would_scale" ? "Would have scaled" : "Last scaled"} at ${clock(last.time_s)}${last.kind && last.kind !== "scaled" && last.kind !== "would_scale" ? `, ${KINDS[last.kind] ?? last.kind}` : ""}` : "Has not scaled yet");
  say("change", last?.change);
  say("reason", last ? `Why: ${last.reason}.${last.notes?.length ? ` Guards: ${last.notes.join("; ")}.` : ""}` : "");
  say("outcome", last?.outcome);
  say("now", data.recommendation ? `Now: ${data.recommendation}` : "");
}

function item(decision, open) {
  const kind = KINDS[decision.kind] ?? decision.kind;
  return el("li", { "data-id": decision.id },
    el("span", { class: "kind", "data-kind": decision.kind }, `${clock(decision.time_s)} · ${kind}`),
    el("button", { type: "button", class: "name", on: { click: () => open(decision.id) } }, decision.change ?? "?"),
    el("span", { class: "text" }, decision.reason ?? ""),
    el("span", { class: "soft text" }, decision.outcome ?? ""));
}

export function showDecisions(page, open) {
  const hands = page.interventions.map((one) => [one.time_s ?? 0, el("li", { class: "hand" }, el("span", { class: "kind" }, `${clock(one.time_s)} · by hand`), el("strong", { class: "text" }, one.sentence))]);
  const items = [...page.decisions.map((one) => [one.time_s ?? 0, item(one, open)]), ...hands].sort((a, b) => b[0] - a[0]);
  fill(byId("decisions"), items.length ? items.map(([, node]) => node) : el("li", {}, el("span", { class: "soft" }, "Nothing was scaled so far.")));
  say("decisions-title", page.total === null ? "Newest decisions" : `Decisions (${number(page.total)})`);
  byId("older").hidden = !page.has_older;
}

export function addOlder(page, open) {
  byId("decisions").append(...page.decisions.map((one) => item(one, open)));
  byId("older").hidden = !page.has_older;
}

export async function openDecision(id, key) {
  const found = await get(`/api/journals/${id}/decisions/${key}`);
  say("detail-title", `Decision at ${clock(found.time_s)}`);
  const line = (name, text) => (text ? el("p", {}, el("strong", {}, `${name}: `), el("span", { class: "text" }, text)) : null);
  fill(byId("detail-body"),
    line("Change", found.change), line("Why", found.reason), line("Guards", found.notes?.join("; ")), line("What came of it", found.outcome),
    line("Repaired before", found.events?.join("; ")),
    el("h3", {}, "Records, as they were written"),
    found.records.map((text) => el("pre", { tabindex: "0" }, pretty(text))));
  byId("detail").showModal();
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

export function showReading(part) {
  byId("reading").hidden = part === null;
  say("reading", part === null ? "" : `Reading the whole journal: ${Math.floor(100 * part)} %. Until then the time lines show single windows of the past.`);
}

export function showCosts(costs, clairvoyant) {
  if (!costs) { fill(byId("costs"), el("p", { class: "soft" }, "Counted when the whole journal is read.")); return; }
  const money = (hours) => (costs.price === null ? "" : ` (${number(hours * costs.price, 2)})`);
  const rows = [["used so far", costs.used], [`fixed at ${number(costs.maximum)}, ${costs.maximum_is}`, costs.at_maximum], ["fixed at the fewest there were", costs.at_minimum]];
  if (clairvoyant !== null && clairvoyant !== undefined) rows.push(["clairvoyant planner", clairvoyant]);
  const most = Math.max(...rows.map(([, hours]) => hours ?? 0), 1e-9);
  const saved = costs.at_maximum ? 1 - costs.used / costs.at_maximum : 0;
  fill(byId("costs"),
    el("p", {}, el("span", { class: "big" }, `${number(costs.used, 2)} ${costs.unit}${money(costs.used)}`), ` in ${lasting(costs.duration_s)}`),
    el("p", { class: "soft" }, `${Math.round(saved * 100)} % below the fixed maximum${costs.price === null ? "" : `, ${number((costs.at_maximum - costs.used) * costs.price, 2)} saved`}.`),
    el("div", { class: "bars" }, rows.map(([name, hours]) => meter(name, `${number(hours, 2)}${money(hours)}`, (hours ?? 0) / most))),
    costs.known ? el("p", { class: "soft" }, `Latency was above the objective in ${number(costs.late)} of ${number(costs.known)} windows.`) : null);
}

function meter(name, text, part) {
  const bar = el("span");
  bar.style.width = `${Math.round(100 * Math.min(1, part))}%`;
  return el("div", { class: "bar-row" }, el("div", { class: "row" }, el("span", { class: "name" }, name), el("b", {}, text)), el("div", { class: "meter" }, bar));
}

export function showShadow(opinions) {
  const section = byId("shadow").closest("section");
  section.hidden = !opinions.length;
  fill(byId("shadow"), el("ul", { class: "list" }, opinions.map(({ policy, changes, reason }) => el("li", {},
    el("strong", { class: "name" }, `${policy}: ${changes.length ? changes.map(({ operator, now, would }) => `${operator} ${now ?? "?"} → ${would}`).join(", ") : "would hold"}`),
    el("span", { class: "soft text" }, reason ?? "")))));
}

export function showCurves(curves, operators) {
  byId("curves").closest("section").hidden = !curves.length;
  const present = new Map(operators.map((one) => [one.name, one]));
  fill(byId("curves"), curves.map((curve) => tile(curve, present.get(curve.operator))));
}

function tile({ operator, samples, model }, now) {
  const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const width = 260;
  const height = 130;
  const room = { left: 42, right: 8, top: 8, bottom: 20 };
  const wide = Math.max(2, ...samples.map(([count]) => count), ...(model?.parallelism ?? []).filter((count) => count <= 2 * Math.max(2, ...samples.map(([seen]) => seen))));
  const points = model ? model.parallelism.map((count, i) => [count, model.mean[i], model.low[i], model.high[i]]).filter(([count]) => count <= wide) : [];
  const top = nice(Math.max(1e-9, ...samples.map(([, rate]) => rate ?? 0), ...points.map(([, mean]) => mean * 1.1)));
  const x = (count) => room.left + ((count - 1) / Math.max(1, wide - 1)) * (width - room.left - room.right);
  const y = (rate) => height - room.bottom - (Math.max(0, Math.min(rate, top)) / top) * (height - room.bottom - room.top);
  const band = points.length > 1 ? `M${points.map(([c, , , high]) => `${x(c)} ${y(high)}`).join("L")}L${[...points].reverse().map(([c, , low]) => `${x(c)} ${y(low)}`).join("L")}Z` : null;
  const words = `${operator}: ${samples.length} samples${model ? ", model with band" : ", no model"}`;
  return el("figure", {}, el("figcaption", {}, el("h3", { class: "name" }, operator), el("span", { class: "soft hint" }, `${number(samples.length)} newest samples${model ? ", model and two deviations" : ""}`)),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words, "font-size": 12 * unit },
      [0, top].map((rate) => [svg("line", { class: "grid", x1: room.left, x2: width - room.right, y1: y(rate), y2: y(rate) }), svg("text", { class: "faint", x: room.left - 4, y: y(rate) + 4, "text-anchor": "end" }, short(rate))]).flat(),
      svg("text", { class: "faint", x: room.left, y: height - 4 }, "1"),
      svg("text", { class: "faint", x: width - room.right, y: height - 4, "text-anchor": "end" }, `${number(wide)} instances`),
      band ? svg("g", { class: "c-read" }, svg("path", { class: "area", d: band }), svg("path", { class: "line", d: `M${points.map(([c, mean]) => `${x(c)} ${y(mean)}`).join("L")}` })) : null,
      svg("g", { class: "c-slots" }, samples.map(([count, rate]) => svg("circle", { class: "dot", cx: x(count), cy: y(rate ?? 0), r: 3 }))),
      now ? svg("line", { class: "cursor", x1: x(Math.min(wide, now.instances)), x2: x(Math.min(wide, now.instances)), y1: room.top, y2: height - room.bottom }) : null));
}

export function showPlacement(placement) {
  byId("placement").closest("section").hidden = !placement;
  if (!placement) return;
  const tasks = (list, known) => (known ? list.map(({ operator, tasks: count }) => `${operator} ×${count}`).join(", ") || "nothing" : "unknown");
  const differ = ({ planned, actual }) => placement.knows_actual && placement.knows_planned && JSON.stringify(planned) !== JSON.stringify(actual);
  fill(byId("placement"), el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["worker", "planned", "actual"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, placement.workers.map((worker) => el("tr", {}, el("th", { scope: "row", class: "name" }, worker.name), el("td", {}, tasks(worker.planned, placement.knows_planned)), el("td", {}, `${tasks(worker.actual, placement.knows_actual)}${differ(worker) ? " (differs)" : ""}`)))))));
}

export function showBad({ count, first }) {
  byId("bad").hidden = !count;
  fill(byId("bad-lines"), el("p", {}, `${number(count)} lines could not be read; the first:`), first.map(({ line, problem, text }) => el("div", {}, el("p", { class: "soft text" }, `line ${line}: ${problem}`), el("pre", { tabindex: "0" }, text))));
}
