// The job as a graph: layers from the sources on, left to right, or top to bottom where there is no width.
import { el, number, share, short, svg } from "./dom.js";

const FULL = 0.85;

function layers(operators, edges) {
  const depth = new Map(operators.map(({ name }) => [name, 0]));
  for (let round = 0; round < operators.length; round += 1) {
    let moved = false;
    for (const { from, to } of edges) {
      if (depth.get(to) < depth.get(from) + 1) { depth.set(to, depth.get(from) + 1); moved = true; }
    }
    if (!moved) break;
  }
  const found = [];
  for (const operator of operators) (found[depth.get(operator.name)] ??= []).push(operator);
  return found.filter(Boolean);
}

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

function node(operator, at, size, unit) {
  const [colour, word] = condition(operator);
  const { name, instances, target, busy, backpressure, lag, input_rate: rate } = operator;
  const pad = 10 * unit;
  const row = 17 * unit;
  const inner = size.width - 2 * pad;
  const bar = { x: pad, y: pad + row * 1.55, height: 9 * unit };
  const busyWidth = inner * Math.min(1, busy ?? 0);
  const count = target && target !== instances ? `${instances} → ${target}` : `${instances}`;
  const words = `${name}: ${count} instances, busy ${share(busy)}, held back ${share(backpressure)}, lag ${short(lag)} records, reads ${short(rate)} records/s, ${word}`;
  return svg("g", { transform: `translate(${at.x} ${at.y})`, role: "listitem", "aria-label": words, tabindex: "0" },
    svg("title", {}, words),
    svg("rect", { class: `box ${colour}`, width: size.width, height: size.height, rx: 8 * unit }),
    svg("text", { x: pad, y: pad + row * 0.75, "font-weight": 650 }, fit(name, Math.floor(inner / (7.6 * unit)) - 4)),
    svg("text", { x: size.width - pad, y: pad + row * 0.75, "text-anchor": "end", "font-weight": 650 }, `×${count}`),
    svg("rect", { class: "track", x: bar.x, y: bar.y, width: inner, height: bar.height, rx: 4 * unit }),
    svg("rect", { class: "busy", x: bar.x, y: bar.y, width: busyWidth, height: bar.height, rx: 4 * unit }),
    svg("rect", { class: "held", x: bar.x + busyWidth, y: bar.y, width: inner * Math.min(1 - Math.min(1, busy ?? 0), backpressure ?? 0), height: bar.height }),
    svg("text", { x: pad, y: pad + row * 3.1 }, `busy ${share(busy)}`),
    svg("text", { x: size.width - pad, y: pad + row * 3.1, "text-anchor": "end" }, word),
    svg("text", { class: "faint", x: pad, y: pad + row * 4.1 }, `lag ${short(lag)}`),
    svg("text", { class: "faint", x: size.width - pad, y: pad + row * 4.1, "text-anchor": "end" }, `${short(rate)}/s`));
}

export function drawGraph(host, operators, edges, shared) {
  if (!operators.length) { host.replaceChildren(el("p", { class: "soft" }, "No window has been observed yet.")); return; }
  const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const width = Math.max(260, host.clientWidth);
  const found = layers(operators, edges);
  const size = { width: 172 * unit, height: 90 * unit };
  const gap = 62 * unit;
  const lane = 14 * unit;
  const widest = Math.max(...found.map((layer) => layer.length));
  const across = found.length * size.width + (found.length - 1) * gap <= width && (edges.length > 0 || found.length > 1);
  const places = new Map();
  let high;
  let wide = width;
  if (!edges.length) {
    const perRow = Math.max(1, Math.floor((width + lane) / (size.width + lane)));
    operators.forEach(({ name }, i) => places.set(name, { x: (i % perRow) * (size.width + lane), y: Math.floor(i / perRow) * (size.height + lane) }));
    high = Math.ceil(operators.length / perRow) * (size.height + lane);
  } else if (across) {
    const between = found.length > 1 ? Math.min(gap * 3, (width - found.length * size.width) / (found.length - 1)) : 0;
    high = widest * (size.height + lane) - lane;
    found.forEach((layer, i) => {
      const start = (high - layer.length * (size.height + lane) + lane) / 2;
      layer.forEach(({ name }, j) => places.set(name, { x: i * (size.width + between), y: start + j * (size.height + lane) }));
    });
  } else {
    const down = 40 * unit;
    const perRow = Math.max(1, Math.floor((width + lane) / (size.width + lane)));
    let y = 0;
    for (const layer of found) {
      for (let k = 0; k < layer.length; k += perRow) {
        const row = layer.slice(k, k + perRow);
        const start = (width - row.length * (size.width + lane) + lane) / 2;
        row.forEach(({ name }, j) => places.set(name, { x: start + j * (size.width + lane), y }));
        y += size.height + (k + perRow < layer.length ? lane : down);
      }
    }
    high = y - down;
  }
  const most = Math.max(1, ...edges.map(({ rate }) => rate ?? 0));
  const wires = [];
  const labels = [];
  for (const { from, to, rate } of edges) {
    const a = places.get(from);
    const b = places.get(to);
    if (!a || !b) continue;
    const start = across ? [a.x + size.width, a.y + size.height / 2] : [a.x + size.width / 2, a.y + size.height];
    const end = across ? [b.x, b.y + size.height / 2] : [b.x + size.width / 2, b.y];
    const mid = [(start[0] + end[0]) / 2, (start[1] + end[1]) / 2];
    const d = across ? `M${start}C${mid[0]} ${start[1]} ${mid[0]} ${end[1]} ${end}` : `M${start}C${start[0]} ${mid[1]} ${end[0]} ${mid[1]} ${end}`;
    wires.push(svg("path", { class: "edge", d, "stroke-width": (1 + 5 * Math.sqrt((rate ?? 0) / most)).toFixed(1) }));
    labels.push(svg("text", { class: "halo", x: mid[0], y: mid[1] + 4, "text-anchor": "middle" }, `${short(rate)}/s`));
  }
  const nodes = operators.map((operator) => node(operator, places.get(operator.name), size, unit));
  const view = svg("svg", { viewBox: `-2 -2 ${wide + 4} ${high + 4}`, height: high + 4, role: "list", "aria-label": `${number(operators.length)} operators` }, wires, nodes, labels);
  const note = shared ? [el("p", { class: "soft hint" }, "All queries share the same executors.")] : [];
  host.replaceChildren(view, el("p", { class: "soft hint" }, "Bar: blue is busy, red is held back by the next operator. Edges: records per second."), ...note);
}
