// Lines over time: drawn as SVG from rows that the server has made few enough.
import { clock, el, svg } from "./dom.js";

const ROOM = { left: 52, right: 12, top: 8, bottom: 22 };

export function nice(most) {
  if (!(most > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * unit).find((step) => step >= most * 0.999);
}

function path(times, values, x, y, stepped) {
  let text = "";
  let pen = false;
  let last = 0;
  for (let i = 0; i < times.length; i += 1) {
    const value = values[i];
    if (value === null || value === undefined) { pen = false; continue; }
    const px = x(times[i]).toFixed(1);
    const py = y(value).toFixed(1);
    if (!pen) text += `M${px} ${py}`;
    else text += stepped ? `L${px} ${last}L${px} ${py}` : `L${px} ${py}`;
    pen = true;
    last = py;
  }
  return text;
}

export class Chart {
  // series: {key, label, colour, stepped, dash, area}; format says a value in words
  constructor(host, { title, series, format, height = 150 }) {
    Object.assign(this, { host, title, series, format, height, rows: { time_s: [] }, extra: {}, at: null });
    this.legend = el("div", { class: "legend", "aria-hidden": "true" });
    this.heading = el("h3", {}, title);
    this.canvas = svg("svg", { tabindex: "0", role: "slider", "aria-label": title, "aria-valuemin": 0 });
    this.figure = el("figure", {}, el("figcaption", {}, this.heading, this.legend), this.canvas);
    host.replaceChildren(this.figure);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.move(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(host);
  }

  show(rows, extra = {}) {
    this.rows = rows;
    if (extra.title && extra.title !== this.title) { this.title = extra.title; this.heading.textContent = extra.title; }
    this.extra = extra;
    this.draw();
  }

  draw() {
    const width = Math.max(240, this.host.clientWidth);
    const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const height = this.height * scale;
    const room = { left: ROOM.left * scale, right: ROOM.right, top: ROOM.top * scale, bottom: ROOM.bottom * scale };
    const times = this.rows.time_s;
    const { forecast, limit, until, marks = [] } = this.extra;
    const first = times.length ? times[0] : 0;
    let last = times.length ? times[times.length - 1] : 1;
    let most = limit ?? 0;
    for (const { key } of this.series) for (const value of this.rows[key] ?? []) if (value > most) most = value;
    if (until > last) last = until;
    const ahead = forecast ? forecast.time_s.map((time, i) => [time, forecast.mean[i], forecast.low[i], forecast.high[i]]).filter(([time]) => time <= last) : [];
    for (const [, , , high] of ahead) most = Math.max(most, high);
    const top = nice(most);
    const x = (time) => room.left + ((time - first) / Math.max(1e-9, last - first)) * (width - room.left - room.right);
    const y = (value) => height - room.bottom - (Math.min(value, top) / top) * (height - room.bottom - room.top);
    this.x = x;
    const parts = [];
    for (const value of [0, top / 2, top]) {
      parts.push(svg("line", { class: "grid", x1: room.left, x2: width - room.right, y1: y(value), y2: y(value) }));
      parts.push(svg("text", { class: "faint", x: room.left - 6, y: y(value) + 4, "text-anchor": "end" }, this.format(value)));
    }
    const ticks = width > 700 * scale ? 8 : width > 400 * scale ? 4 : 2;
    for (let i = 0; i <= ticks; i += 1) {
      const time = first + ((last - first) * i) / ticks;
      const anchor = i === 0 ? "start" : i === ticks ? "end" : "middle";
      parts.push(svg("text", { class: "faint", x: x(time), y: height - 4, "text-anchor": anchor }, clock(time)));
    }
    for (const time of marks) if (time >= first && time <= last) parts.push(svg("line", { class: "mark", x1: x(time), x2: x(time), y1: room.top, y2: height - room.bottom }));
    if (limit) parts.push(svg("g", { class: "c-late" }, svg("path", { class: "line dash", d: `M${room.left} ${y(limit)}H${width - room.right}` })));
    if (ahead.length > 1) {
      const there = ahead.map(([time, , , high]) => `${x(time).toFixed(1)} ${y(high).toFixed(1)}`);
      const back = ahead.map(([time, , low]) => `${x(time).toFixed(1)} ${y(low).toFixed(1)}`).reverse();
      parts.push(svg("g", { class: "c-arrive" }, svg("path", { class: "area", d: `M${[...there, ...back].join("L")}Z` }), svg("path", { class: "line dash", d: path(ahead.map(([time]) => time), ahead.map(([, mean]) => mean), x, y) })));
    }
    for (const { key, colour, stepped, dash, area } of this.series) {
      const d = path(times, this.rows[key] ?? [], x, y, stepped);
      if (!d) continue;
      const group = svg("g", { class: colour });
      if (area && !d.slice(1).includes("M")) group.append(svg("path", { class: "area", d: `${d}L${x(times[times.length - 1])} ${y(0)}L${x(first)} ${y(0)}Z` }));
      group.append(svg("path", { class: dash ? "line dash" : "line", d }));
      parts.push(group);
    }
    this.cursor = svg("line", { class: "cursor", y1: room.top, y2: height - room.bottom, visibility: "hidden" });
    this.canvas.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.canvas.setAttribute("height", height);
    this.canvas.replaceChildren(...parts, this.cursor);
    this.tell();
  }

  tell() {
    const at = this.at === null ? this.rows.time_s.length - 1 : Math.min(this.at, this.rows.time_s.length - 1);
    const said = [];
    this.legend.replaceChildren(...(at < 0 ? [] : [el("span", { class: "soft" }, this.at === null ? "now" : `at ${clock(this.rows.time_s[at])}`)]));
    for (const { key, label, colour } of this.series) {
      const value = at < 0 ? null : this.rows[key]?.[at];
      const text = value === null || value === undefined ? "unknown" : this.format(value);
      said.push(`${label} ${text}`);
      this.legend.append(el("span", {}, el("span", { class: colour }, el("i", { class: "key" })), `${label} `, el("b", {}, text)));
    }
    if (this.extra.limit) this.legend.append(el("span", { class: "c-late" }, `objective ${this.format(this.extra.limit)}`));
    if (this.extra.forecast) this.legend.append(el("span", { class: "c-arrive" }, "dashed: forecast and its band"));
    if (this.extra.limit) said.push(`objective ${this.format(this.extra.limit)}`);
    const values = { label: this.title, valuemax: Math.max(0, this.rows.time_s.length - 1), valuenow: Math.max(0, at), valuetext: `${at < 0 ? "" : `at ${clock(this.rows.time_s[at])}: `}${said.join(", ")}` };
    for (const [key, value] of Object.entries(values)) this.canvas.setAttribute(`aria-${key}`, value);
    if (this.at !== null && at >= 0) {
      this.cursor.setAttribute("x1", this.x(this.rows.time_s[at]));
      this.cursor.setAttribute("x2", this.x(this.rows.time_s[at]));
    }
    this.cursor?.setAttribute("visibility", this.at === null ? "hidden" : "visible");
  }

  move(at) {
    this.at = at;
    this.tell();
    this.onMove?.(at);
  }

  point(event) {
    const times = this.rows.time_s;
    if (!times.length) return;
    const box = this.canvas.getBoundingClientRect();
    const where = ((event.clientX - box.left) / box.width) * this.canvas.viewBox.baseVal.width;
    let low = 0;
    let high = times.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x(times[middle]) < where) low = middle + 1; else high = middle;
    }
    this.move(low);
  }

  key(event) {
    const last = this.rows.time_s.length - 1;
    if (last < 0) return;
    const now = this.at ?? last;
    const step = event.shiftKey ? Math.max(1, Math.round(last / 20)) : 1;
    const to = { ArrowLeft: now - step, ArrowRight: now + step, Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.move(to === null ? null : Math.min(last, Math.max(0, to)));
  }
}
