// The job as a graph: operators with their bars, edges with their rates.
import { el, keepFocus, lasting, number, share, short, svg } from "./dom.js";
import { across, down, grid } from "./layout.js";

const FULL = 0.85;
const BACKLOG_S = 60;

export function condition({ busy, backpressure, lag, lag_rate: growing, instances, target }) {
  if (target && target !== instances) return ["tight", target > instances ? "growing" : "shrinking"];
  if (growing > 0 && lag > 0 && busy !== null && busy >= FULL) return ["over", "falls behind"];
  if (busy !== null && busy >= FULL) return ["tight", "bottleneck"];
  if (backpressure !== null && backpressure > 0.1) return ["tight", "held back"];
  if (busy === null) return ["", "unknown"];
  return ["ok", busy < 0.02 ? "idle" : "has room"];
}

function fit(text, room) {
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}

function node(operator, at, size, unit, most) {
  const [colour, word] = condition(operator);
  const { name, instances, target, busy, backpressure, lag, capacity, input_rate: rate } = operator;
  // how long its backlog takes at the rate it could read
  const backlog = lag && (capacity || rate) ? lag / (capacity || rate) : 0;
  const pad = 10 * unit;
  const row = 17 * unit;
  const inner = size.width - 2 * pad;
  const bar = { x: pad, y: pad + row * 1.4, height: 9 * unit };
  const busyWidth = inner * Math.min(1, busy ?? 0);
  const count = target && target !== instances ? `${instances} → ${target}` : `${instances}`;
  const words = `${name}: ${count} ${count === "1" ? "instance" : "instances"}, busy ${share(busy)}, held back ${share(backpressure)}, lag ${short(lag)} records, reads ${short(rate)} records/s, ${word}`;
  return svg("g", { transform: `translate(${at.x} ${at.y})`, role: "listitem", "aria-label": words, tabindex: "0", "data-key": name },
    svg("title", {}, words),
    svg("rect", { class: `box ${colour}`, width: size.width, height: size.height, rx: 8 * unit }),
    svg("text", { x: pad, y: pad + row * 0.75, "font-weight": 650 }, fit(name, Math.floor(inner / (7.6 * unit)) - 4)),
    svg("text", { x: size.width - pad, y: pad + row * 0.75, "text-anchor": "end", "font-weight": 650 }, `×${count}`),
    svg("rect", { class: "track", x: bar.x, y: bar.y, width: inner, height: bar.height, rx: 4 * unit }),
    svg("rect", { class: "busy", x: bar.x, y: bar.y, width: busyWidth, height: bar.height, rx: 4 * unit }),
    svg("rect", { class: "held", x: bar.x + busyWidth, y: bar.y, width: inner * Math.min(1 - Math.min(1, busy ?? 0), backpressure ?? 0), height: bar.height }),
    svg("rect", { class: "backlog", x: bar.x, y: bar.y + bar.height + 2 * unit, width: inner * Math.min(1, backlog / most), height: 4 * unit, rx: 2 * unit }),
    svg("text", { x: pad, y: pad + row * 3.1 }, `busy ${share(busy)}`),
    svg("text", { x: size.width - pad, y: pad + row * 3.1, "text-anchor": "end" }, word),
    svg("text", { class: "faint", x: pad, y: pad + row * 4.1 }, `lag ${short(lag)}${backlog >= 1 ? ` (${lasting(backlog)})` : ""}`),
    svg("text", { class: "faint", x: size.width - pad, y: pad + row * 4.1, "text-anchor": "end" }, `${short(rate)}/s`));
}

export function drawGraph(host, operators, edges, { shared, slo_s: slo }) {
  if (!operators.length) { host.replaceChildren(el("p", { class: "soft" }, "No window has been observed yet.")); return; }
  const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const width = Math.max(260, host.clientWidth - 4);
  const plan = !edges.length ? grid(operators, width, unit) : width < 640 * unit ? down(operators, edges, width, unit) : across(operators, edges, width, unit);
  const most = Math.max(1, ...edges.map(({ rate }) => rate ?? 0));
  const wires = plan.lines.map(({ edge, d }) => svg("path", { class: "edge", d, "stroke-width": (1 + 5 * Math.sqrt((edge.rate ?? 0) / most)).toFixed(1) }, svg("title", {}, `${edge.from} to ${edge.to}: ${short(edge.rate)} records/s`)));
  const labels = plan.lines.map(({ edge, label: [x, y], anchor }) => svg("text", { class: "halo", x, y: y + 4 * unit, "text-anchor": anchor }, `${short(edge.rate)}/s`));
  const nodes = operators.map((operator) => node(operator, plan.places.get(operator.name), plan.size, unit, slo ?? BACKLOG_S));
  const view = svg("svg", { viewBox: `-2 -2 ${plan.width + 4} ${plan.height + 4}`, width: plan.width + 4, height: plan.height + 4, role: "list", "aria-label": `${number(operators.length)} operators` }, wires, nodes, labels);
  const note = shared ? [el("p", { class: "soft hint" }, "All queries share the same executors.")] : [];
  keepFocus(host, () => host.replaceChildren(el("div", { class: "scroll" }, view), el("p", { class: "soft hint" }, `Bar: blue is busy, red is held back by the next operator; below it the backlog, full at ${lasting(slo ?? BACKLOG_S)}.${edges.length ? " Edges: records per second." : ""}`), ...note));
}
