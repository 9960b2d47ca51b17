"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8a8a8a", "#b5462f", "#4d7c0f"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon", "pentagon", "triangle-down"];
  const policies = [...new Set(data.groups.map((group) => group.policy))];
  const look = (policy) => {
    const number = policies.indexOf(policy);
    return { color: COLOURS[number % COLOURS.length], symbol: SYMBOLS[number % SYMBOLS.length] };
  };
  const NAMES = {
    avg_slots: "slots (mean)", max_slots: "slots (max)", cost_ratio: "cost against clairvoyant",
    avg_latency_s: "latency mean (s)", p50_latency_s: "latency p50 (s)", p95_latency_s: "latency p95 (s)",
    max_latency_s: "latency max (s)", slo_violation_ratio: "share above objective", rescales: "scaling actions",
    oscillations: "oscillations", parallelism_accuracy: "parallelism accuracy",
    over_provisioned_slots: "slots too many", under_provisioned_slots: "slots too few",
    throughput_ratio: "read of what arrived", avg_cpu: "CPU use", downtime_s: "downtime (s)",
    converge_s: "time to settle (s)", converge_actions: "actions to settle",
  };
  const tables = {};

  const short = (value) => {
    if (value === null || value === undefined) return "-";
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value)) return value.toLocaleString("en");
    const size = Math.abs(value);
    return value.toLocaleString("en", size >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 });
  };
  const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const wrap = (text, width) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      if ((lines.at(-1) + " " + word).length > width) lines.push("");
      lines[lines.length - 1] = (lines.at(-1) + " " + word).trim();
    }
    return lines.map(plain).join("<br>");
  };

  const fill = (id, header, rows) => {
    tables[id] = [header, ...rows.map((row) => row.map((cell) => (cell && cell.raw !== undefined ? cell.raw : cell)))];
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const name of header) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      head.append(cell);
    }
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((value, column) => {
        const cell = column === 0 ? line.appendChild(document.createElement("th")) : line.insertCell();
        if (column === 0) cell.scope = "row";
        const number = value !== null && typeof value === "object" ? value : null;
        cell.textContent = number ? number.shown : short(value);
        if (number || typeof value === "number") cell.className = "number";
      });
    }
    at(id).replaceChildren(table);
  };

  const shown = (estimate) => {
    if (!estimate || estimate.mean === null) return { raw: "", shown: "-" };
    const half = estimate.low === null ? "" : " \u00b1 " + short(Number((estimate.mean - estimate.low).toPrecision(2)));
    return { raw: estimate.mean, shown: short(estimate.mean) + half };
  };

  const options = (select, entries) => {
    select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
  };
  const caseOf = (thing) => [thing.engine, thing.pipeline, thing.workload].join("|");
  const caseName = (thing) => (thing.pipeline === "all" ? "all pipelines and workloads" : `${thing.pipeline}, ${thing.workload}` + (thing.engine === "sim" ? "" : ` on ${thing.engine}`));
  const everything = [...data.overall, ...data.groups];

  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    const line = style.getPropertyValue("--line").trim();
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 13 },
      hoverlabel: { align: "left" },
      axis: { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true },
    };
  };
  const CONFIG = { responsive: true, displaylogo: false, displayModeBar: false };
  const narrow = () => window.innerWidth < 640;

  const drawPareto = () => {
    const groups = everything.filter((group) => caseOf(group) === at("case").value);
    const metric = at("latency").value;
    const { axis, ...rest } = theme();
    const bars = (found) => ({
      type: "data", symmetric: false, thickness: 1.2,
      array: [found.high === null ? 0 : found.high - found.mean], arrayminus: [found.low === null ? 0 : found.mean - found.low],
    });
    const traces = groups.filter((group) => group.estimates[metric].mean !== null).map((group) => {
      const x = group.estimates.avg_slots;
      const y = group.estimates[metric];
      return {
        type: "scatter", mode: "markers", name: group.policy, x: [x.mean], y: [y.mean], error_x: bars(x), error_y: bars(y),
        marker: { ...look(group.policy), size: 11 },
        hovertemplate: `<b>${plain(group.policy)}</b><br>${short(x.mean)} slots<br>${short(y.mean)} ${plain(NAMES[metric])}<extra></extra>`,
      };
    });
    Plotly.react("pareto", traces, {
      ...rest, margin: { t: 10, r: 10, b: 50, l: 60 },
      xaxis: { ...axis, title: { text: "slots (mean)" }, rangemode: "tozero" },
      yaxis: { ...axis, title: { text: NAMES[metric] }, rangemode: "tozero", type: at("log").checked ? "log" : "linear" },
      legend: narrow() ? { orientation: "h", y: -0.25 } : {},
    }, CONFIG);
    const metrics = Object.keys(NAMES).filter((name) => groups.some((group) => group.estimates[name].mean !== null));
    fill("scores", ["policy", ...metrics.map((name) => NAMES[name])],
      groups.map((group) => [group.policy, ...metrics.map((name) => shown(group.estimates[name]))]));
    const compared = data.comparisons.filter((found) => caseOf(found) === at("case").value);
    at("comparison-section").hidden = compared.length === 0;
    at("baseline").textContent = data.baseline ?? "";
    fill("comparisons", ["policy", "metric", "difference", "p (t)", "p (Wilcoxon)"],
      compared.map((found) => [found.policy, NAMES[found.metric] ?? found.metric, shown(found.difference), found.p_value, found.wilcoxon_p]));
    at("status").textContent = `${groups.length} policies shown`;
  };

  const runsOfCase = () => {
    const chosen = at("case").value;
    const found = data.runs.filter((run) => caseOf(run) === chosen);
    return found.length ? found : data.runs;
  };
  const fillRuns = () => {
    const runs = runsOfCase();
    const entries = runs.map((run) => [data.runs.indexOf(run), `${run.policy} - ${caseName(run)}, seed ${run.seed}`]);
    options(at("run"), entries);
    options(at("beside"), [["", "nothing"], ...entries]);
    drawTimeline();
  };

  const drawTimeline = () => {
    const run = data.runs[Number(at("run").value)];
    if (!run) return;
    const other = at("beside").value === "" ? null : data.runs[Number(at("beside").value)];
    const { axis, ...rest } = theme();
    const minutes = (series) => series.time_s.map((time) => time / 60);
    const total = (series) => series.time_s.map((_, number) => Object.values(series.slots).reduce((sum, counts) => sum + counts[number], 0));
    const x = minutes(run.series);
    const traces = [
      { x, y: run.series.arrival_rate, name: "arriving", line: { color: "#8a8a8a", dash: "dot" } },
      { x, y: run.series.throughput, name: "read", line: { color: "#0072b2" } },
    ];
    Object.entries(run.series.slots).forEach(([operator, y], number) => traces.push({
      x, y, name: operator, yaxis: "y2", stackgroup: "slots", line: { shape: "vh", width: 0.5, color: COLOURS[(number + 1) % COLOURS.length] },
    }));
    traces.push({ x, y: run.series.latency_s, name: "latency", yaxis: "y3", line: { color: "#b5462f" } });
    if (run.slo_s !== null) traces.push({ x: [x[0], x.at(-1)], y: [run.slo_s, run.slo_s], name: "objective", yaxis: "y3", line: { color: "#8a8a8a", dash: "dash", width: 1 } });
    if (other) {
      const there = minutes(other.series);
      const name = plain(other.policy);
      traces.push({ x: there, y: other.series.throughput, name: `${name}: read`, line: { color: "#7a5195", width: 1.2 } });
      traces.push({ x: there, y: total(other.series), name: `${name}: slots`, yaxis: "y2", line: { shape: "vh", color: "#7a5195", width: 2 } });
      traces.push({ x: there, y: other.series.latency_s, name: `${name}: latency`, yaxis: "y3", line: { color: "#7a5195", width: 1.2 } });
    }
    const totals = total(run.series);
    const where = run.series.actions.map((action) => run.series.time_s.indexOf(action.time_s));
    traces.push({
      x: run.series.actions.map((action) => action.time_s / 60), y: where.map((number) => totals[number]),
      mode: "markers", name: "decision", yaxis: "y2", marker: { symbol: "diamond", size: 9, color: "#e69f00", line: { width: 1, color: "#1c2430" } },
      hovertext: run.series.actions.map((action) => wrap(action.changes, 60) + "<br>" + wrap(action.reason, 60)), hoverinfo: "text+x",
    });
    for (const trace of traces) { trace.type = "scatter"; trace.mode ??= "lines"; }
    Plotly.react("timeline", traces, {
      ...rest, margin: { t: 10, r: 10, b: 45, l: 60 }, hovermode: "closest",
      xaxis: { ...axis, title: { text: "minutes" }, anchor: "y3" },
      yaxis: { ...axis, domain: [0.7, 1], title: { text: "records/s" }, rangemode: "tozero" },
      yaxis2: { ...axis, domain: [0.36, 0.64], title: { text: "slots" }, rangemode: "tozero" },
      yaxis3: { ...axis, domain: [0, 0.3], title: { text: "latency (s)" }, rangemode: "tozero" },
      legend: narrow() ? { orientation: "h", y: -0.12 } : {},
    }, CONFIG);
    at("decisions-count").textContent = run.series.actions.length;
    fill("decisions", ["minute", "change", "reason"], run.series.actions.map((action) => [Number((action.time_s / 60).toFixed(2)), action.changes, action.reason]));
    at("status").textContent = `time line of ${run.policy}, ${run.series.actions.length} decisions`;
  };

  const save = (name, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const quoted = (value) => (/[",\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  for (const button of document.querySelectorAll("[data-csv]")) {
    button.addEventListener("click", () => save(`${button.dataset.csv}.csv`, tables[button.dataset.csv].map((row) => row.map(quoted).join(",")).join("\n") + "\n"));
  }
  for (const button of document.querySelectorAll("[data-png]")) {
    button.addEventListener("click", () => Plotly.downloadImage(button.dataset.png, { format: "png", filename: button.dataset.png, width: 1200, height: button.dataset.png === "timeline" ? 1000 : 700 }));
  }

  options(at("case"), [...new Map(everything.map((group) => [caseOf(group), caseName(group)]))]);
  at("case").addEventListener("change", () => { drawPareto(); fillRuns(); });
  for (const id of ["latency", "log"]) at(id).addEventListener("change", drawPareto);
  for (const id of ["run", "beside"]) at(id).addEventListener("change", drawTimeline);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawPareto(); drawTimeline(); });
  // one run has nothing to be compared with: what it did comes first
  if (data.runs.length === 1) at("savings").after(at("timeline").closest("section"));
  drawPareto();
  fillRuns();
  document.body.dataset.ready = "yes";
})();
