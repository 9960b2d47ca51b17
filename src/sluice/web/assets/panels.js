// What stands below the time lines: decisions, costs, shadow, curves, placement, lines that are no records.
import { byId, clock, el, fill, get, keepFocus, lasting, number, say, share, short, svg } from "./dom.js";
import { nice } from "./chart.js";

const KINDS = { would_scale: "would scale (dry run)", scaled: "scaled", waiting: "requested, not there yet", partly: "partly failed", failed: "failed", unfulfilled: "not fulfilled in time", unreadable: "unreadable" };

export function showFacts({ operators, head, costs }) {
  const total = (key) => (head.shared ? Math.max(0, ...operators.map((one) => one[key] ?? 0)) : operators.reduce((sum, one) => sum + (one[key] ?? 0), 0));
  const [there, wanted] = [total("instances"), total("target")];
  const busiest = operators.filter(({ busy }) => busy !== null).sort((a, b) => b.busy - a.busy)[0];
  say("tight", busiest && operators.length > 1 ? `Busiest: ${busiest.name}, ${Math.round(busiest.busy * 100)} %.` : "");
  const late = costs?.known ? costs.late / costs.known : 0;
  const facts = [
    [head.shared ? "executors" : "slots", wanted && wanted !== there ? `${there} → ${wanted}` : `${there}`],
    ["records waiting", operators.some(({ lag }) => lag !== null) ? short(total("lag")) : "unknown"],
    ["windows too late", !costs ? "being counted" : costs.known ? `${number(costs.late)} of ${number(costs.known)}` : "no objective", late > 0.05],
  ];
  fill(byId("facts"), facts.map(([name, text, bad]) => el("div", {}, el("dt", {}, name), el("dd", { class: bad ? "bad" : null }, text))));
}

const MOVES = { up: "Scaled up", down: "Scaled down", sideways: "Last rescaled" };
export const arrows = (text) => (text ?? "").replaceAll("->", "→");

export function showWhy(data) {
  const last = data.last_decision;
  const kind = last && !["scaled", "would_scale"].includes(last.kind) ? `, ${KINDS[last.kind] ?? last.kind}` : "";
  const move = last?.kind === "would_scale" ? "Would have scaled" : MOVES[last?.direction] ?? "Last scaled";
  const since = last && data.live && data.time_s !== null && last.at_s !== null ? ` (${lasting(Math.max(0, data.time_s - last.at_s))} ago)` : "";
  say("scaled", last ? `${move} at ${clock(last.at_s)}${since}${kind}` : data.reading === null ? "Has not scaled yet" : "Has not scaled lately");
  say("change", arrows(last?.change));
  say("reason", last ? `Why: ${arrows(last.reason)}.${last.notes?.length ? ` Guards: ${last.notes.join("; ")}.` : ""}` : "");
  say("outcome", arrows(last?.outcome));
  say("now", data.recommendation ? `${data.live ? "Now" : "At the end"}: ${arrows(data.recommendation)}` : "");
}

function item(decision, open) {
  const kind = KINDS[decision.kind] ?? decision.kind;
  return el("li", { "data-id": decision.id },
    el("span", { class: "kind", "data-kind": decision.kind }, `${clock(decision.at_s)} · ${kind}`),
    el("button", { type: "button", class: "name", "data-key": decision.id, on: { click: () => open(decision.id) } }, arrows(decision.change ?? "?")),
    el("span", { class: "text" }, arrows(decision.reason)),
    el("span", { class: "soft text outcome" }, arrows(decision.outcome)));
}

export function showDecisions(page, open) {
  const hands = page.interventions.map((one) => [one.at_s ?? 0, el("li", { class: "hand" }, el("span", { class: "kind" }, `${clock(one.at_s)} · by hand`), el("strong", { class: "text" }, one.sentence))]);
  const items = [...page.decisions.map((one) => [one.at_s ?? 0, item(one, open)]), ...hands].sort((a, b) => b[0] - a[0]);
  const host = byId("decisions");
  keepFocus(host, () => fill(host, items.length ? items.map(([, node]) => node) : el("li", {}, el("span", { class: "soft" }, "Nothing was scaled so far."))));
  say("decisions-title", page.total === null ? "Newest decisions" : `Decisions (${number(page.total)})`);
  byId("older").hidden = !page.has_older;
}

export function addOlder(page, open) {
  byId("decisions").append(...page.decisions.map((one) => item(one, open)));
  byId("older").hidden = !page.has_older;
}

export async function openDecision(id, key) {
  const found = await get(`/api/journals/${id}/decisions/${key}`);
  say("detail-title", `Decision at ${clock(found.at_s)}`);
  const line = (name, text) => (text ? el("p", {}, el("strong", {}, `${name}: `), el("span", { class: "text" }, arrows(text))) : null);
  fill(byId("detail-body"),
    line("Change", found.change), line("Why", found.reason), line("Guards", found.notes?.join("; ")), line("What came of it", found.outcome),
    line("Repaired before", found.events?.join("; ")),
    seen(found.records[0]),
    el("details", {}, el("summary", {}, "Records, as they were written"), found.records.map((text) => el("pre", { tabindex: "0" }, pretty(text)))));
  byId("detail").showModal();
}

// What the policy saw; nothing where the record is not as we write it.
function seen(text) {
  let cycle;
  try { cycle = JSON.parse(text); } catch { return null; }
  const operators = Object.entries(cycle?.observation?.operators ?? {}).slice(0, 200);
  const target = new Map(Object.entries((cycle?.proposed ?? cycle?.target)?.parallelism ?? {}));
  if (!operators.length) return null;
  const figure = (value, say = short) => (typeof value === "number" ? say(value) : "?");
  const rows = operators.map(([name, one]) => el("tr", {}, el("th", { scope: "row", class: "name" }, name),
    [`${figure(one?.parallelism)} → ${figure(target.get(name) ?? one?.parallelism)}`, figure(one?.busy, share), figure(one?.lag), `${figure(one?.input_rate)}/s`, `${figure(one?.true_input_rate)}/s`].map((value) => el("td", {}, value))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What was seen" }, el("table", {},
    el("caption", {}, "What was seen in the window before"),
    el("thead", {}, el("tr", {}, ["operator", "instances", "busy", "lag", "reads", "could read"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows)));
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

export function showReading(part) {
  byId("reading").hidden = part === null;
  say("reading", part === null ? "" : `Reading the whole journal: ${Math.floor(100 * part)} %. Until then the time lines show single windows of the past.`);
}

export function showCosts(costs, clairvoyant, price) {
  if (!costs) { fill(byId("costs"), el("p", { class: "soft" }, "Counted when the whole journal is read.")); return; }
  const unit = costs.unit === "executor-hours" ? "executors" : "slots";
  say("price-of", costs.unit === "executor-hours" ? "Price of an executor-hour" : "Price of a slot-hour");
  byId("price").placeholder = costs.price ?? "";
  const amount = (value) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const money = (hours) => (price === null ? "" : `, costs ${amount(hours * price)}`);
  const rows = [["used so far", costs.used], [`always ${number(costs.maximum)} ${unit}, ${costs.maximum_is}`, costs.at_maximum]];
  if (clairvoyant !== null && clairvoyant !== undefined) rows.push(["planner that knew the load beforehand", clairvoyant]);
  const most = Math.max(...rows.map(([, hours]) => hours ?? 0), 1e-9);
  const against = (other, name) => {
    if (!other) return null;
    const more = costs.used / other - 1;
    return el("li", {}, `${Math.round(Math.abs(more) * 100)} % ${more > 0 ? "more" : "less"} than ${name}${price === null ? "" : `, ${amount(Math.abs(other - costs.used) * price)} ${more > 0 ? "more" : "saved"}`}`);
  };
  fill(byId("costs"),
    el("p", {}, el("span", { class: "big" }, `${number(costs.used, 2)} ${costs.unit}`), `${money(costs.used)} in ${lasting(costs.duration_s)}`),
    el("ul", { class: "plain soft" }, against(costs.at_maximum, "the fixed maximum"), against(clairvoyant, "the clairvoyant planner")),
    el("div", { class: "bars" }, rows.map(([name, hours]) => meter(name, `${number(hours, 2)} h${money(hours)}`, (hours ?? 0) / most))));
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
    el("strong", { class: "name" }, `${policy} ${changes.length ? `would change ${changes.map(({ operator, now, would }) => `${operator} ${now ?? "?"} → ${would}`).join(", ")}` : "would leave it as it is"}`),
    el("span", { class: "soft text" }, arrows(reason))))));
}

export function showCurves(curves, operators) {
  byId("curves").closest("section").hidden = !curves.length;
  const present = new Map(operators.map((one) => [one.name, one]));
  fill(byId("curves"), curves.map((curve) => tile(curve, present.get(curve.operator))));
}

function tile({ operator, samples, model }, now) {
  const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const width = 260 * unit;
  const height = 130 * unit;
  const room = { left: 48 * unit, right: 8 * unit, top: 8 * unit, bottom: 20 * unit };
  const wide = Math.max(2, ...samples.map(([count]) => count), ...(model?.parallelism ?? []).filter((count) => count <= 2 * Math.max(2, ...samples.map(([seen]) => seen))));
  const points = model ? model.parallelism.map((count, i) => [count, model.mean[i], model.low[i], model.high[i]]).filter(([count]) => count <= wide) : [];
  const top = nice(Math.max(1e-9, ...samples.map(([, rate]) => rate ?? 0), ...points.map(([, mean]) => mean * 1.1)));
  const x = (count) => room.left + ((count - 1) / Math.max(1, wide - 1)) * (width - room.left - room.right);
  const y = (rate) => height - room.bottom - (Math.max(0, Math.min(rate, top)) / top) * (height - room.bottom - room.top);
  const band = points.length > 1 ? `M${points.map(([c, , , high]) => `${x(c)} ${y(high)}`).join("L")}L${[...points].reverse().map(([c, , low]) => `${x(c)} ${y(low)}`).join("L")}Z` : null;
  const words = `${operator}: ${samples.length} samples${model ? ", model with band" : ", no model"}`;
  return el("figure", {}, el("figcaption", {}, el("h3", { class: "name" }, operator), el("span", { class: "soft hint" }, `${number(samples.length)} samples (dots)${model ? ", model ± 2 deviations" : ", no model"}`)),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words },
      [0, top].map((rate) => [svg("line", { class: "grid", x1: room.left, x2: width - room.right, y1: y(rate), y2: y(rate) }), svg("text", { class: "faint", x: room.left - 4 * unit, y: y(rate) + 4 * unit, "text-anchor": "end" }, short(rate))]).flat(),
      svg("text", { class: "faint", x: room.left, y: height - 4 * unit }, "1"),
      svg("text", { class: "faint", x: width - room.right, y: height - 4 * unit, "text-anchor": "end" }, `${number(wide)} instances`),
      band ? svg("g", { class: "c-read" }, svg("path", { class: "area", d: band }), svg("path", { class: "line", d: `M${points.map(([c, mean]) => `${x(c)} ${y(mean)}`).join("L")}` })) : null,
      svg("g", { class: "c-slots" }, samples.map(([count, rate]) => svg("circle", { class: "dot", cx: x(count), cy: y(rate ?? 0), r: 3 * unit }))),
      now ? svg("line", { class: "cursor", x1: x(Math.min(wide, now.instances)), x2: x(Math.min(wide, now.instances)), y1: room.top, y2: height - room.bottom }) : null));
}

export function showPlacement(placement) {
  byId("placement").closest("section").hidden = !placement;
  if (!placement) return;
  const { workers, knows_actual: ran, knows_planned: planned } = placement;
  const tasks = (list, known, other) => (!known ? el("span", { class: "soft" }, "not known") : !list.length ? el("span", { class: "soft" }, "nothing") : list.map(({ operator, tasks: count }) => {
    const same = !other || other.some((one) => one.operator === operator && one.tasks === count);
    return el("span", { class: same ? "task name" : "task name differs" }, `${operator} ×${count}`);
  }));
  const used = workers.filter((worker) => worker.planned.length || worker.actual.length);
  const follows = (worker) => JSON.stringify(worker.planned) === JSON.stringify(worker.actual);
  const kept = used.filter(follows).length;
  const summary = ran && planned ? `${number(kept)} of ${number(used.length)} workers ran what was planned in the last window.` : ran ? "Where instances ran in the last window; nothing was planned." : "Planned; the engine does not say where instances run.";
  keepFocus(byId("placement"), () => fill(byId("placement"), el("p", { class: ran && planned && kept < used.length ? "bad" : "soft" }, summary), el("div", { class: "scroll", tabindex: "0", role: "region", "data-key": "placement", "aria-label": "Placement by worker" }, el("table", {},
    el("thead", {}, el("tr", {}, ["worker", "planned", "actual"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, used.map((worker) => el("tr", {}, el("th", { scope: "row", class: "name" }, worker.name), el("td", {}, tasks(worker.planned, planned)), el("td", {}, tasks(worker.actual, ran, planned ? worker.planned : null), ran && planned && !follows(worker) ? el("span", { class: "bad" }, " differs") : null)))))),
  workers.length > used.length ? el("p", { class: "soft" }, `${number(workers.length - used.length)} more workers have nothing to do.`) : null));
}

export function showBad({ count, first }) {
  byId("bad").hidden = !count;
  fill(byId("bad-lines"), el("p", {}, `${number(count)} lines could not be read; the first:`), first.map(({ line, problem, text }) => el("div", {}, el("p", { class: "soft text" }, `line ${line}: ${problem}`), el("pre", { tabindex: "0" }, text))));
}
