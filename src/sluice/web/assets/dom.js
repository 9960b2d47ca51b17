// Elements are made of text only: nothing that a journal says is ever parsed as markup.
const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

export const byId = (id) => document.getElementById(id);
export const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

export function say(id, text) {
  const node = byId(id);
  const said = text ?? "";
  if (node.textContent !== said) node.textContent = said;
}

export function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

// Draw again what may have the focus: it stays on the element with the same data-key.
export function keepFocus(host, draw) {
  const key = host.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  draw();
  if (key === undefined) return;
  for (const node of host.querySelectorAll("[data-key]")) if (node.dataset.key === key) { node.focus({ preventScroll: true }); return; }
}

export function number(value, digits = 0) {
  if (value === null || value === undefined) return "?";
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

const STEPS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function short(value) {
  if (value === null || value === undefined) return "?";
  for (const [step, sign] of STEPS) if (Math.abs(value) >= step) return `${number(value / step, Math.abs(value) < 10 * step ? 1 : 0)}${sign}`;
  return number(value, Math.abs(value) < 10 ? 1 : 0);
}

export function share(value) {
  return value === null || value === undefined ? "?" : `${Math.round(value * 100)} %`;
}

export function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "?";
  if (seconds < 120) return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${number(seconds / 60)} min`;
  return seconds < 172800 ? `${number(seconds / 3600, 1)} h` : `${number(seconds / 86400, 1)} days`;
}

export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "?";
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  return hours ? `${hours}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}` : `${Math.floor(whole / 60)}:${two(whole % 60)}`;
}

export async function get(path) {
  const answer = await fetch(path, { headers: { accept: "application/json" } });
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error ?? `the page answered ${answer.status}`);
  return data;
}
