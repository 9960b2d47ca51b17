// Controls: only for who has the token, which lives in this page's memory and nowhere else.
import { byId, el, fill, get, say } from "./dom.js";

let token = "";

async function use(id, control, body) {
  const answer = await fetch(`/api/control/${control}?journal=${encodeURIComponent(id)}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body ?? {}),
  });
  const data = await answer.json();
  say("controls-said", answer.ok ? `${control} accepted: it takes effect at the next decision.` : data.error);
}

export async function openControls(id, data) {
  const names = await get("/api/policies");
  const state = data.control_state ?? {};
  const operators = data.operators.map(({ name }) => name);
  const input = el("input", { type: "password", autocomplete: "off", id: "token", spellcheck: "false" });
  input.value = token;
  input.addEventListener("input", () => { token = input.value; });
  const button = (label, control, body, main) => el("button", { type: "button", class: main ? "main" : null, "data-control": control, on: { click: () => use(id, control, typeof body === "function" ? body() : body).catch((error) => say("controls-said", error.message)) } }, label);
  const operator = el("select", { id: "pin-operator" }, operators.map((name) => el("option", { value: name }, name)));
  const count = el("input", { id: "pin-count", type: "number", min: "1", step: "1", value: "1", inputmode: "numeric" });
  const policy = el("select", { id: "policy-name" }, names.policies.map((name) => el("option", { value: name }, name)));
  fill(byId("controls-body"),
    el("p", { class: "soft" }, "Every use is on record in the journal and takes effect at the next decision."),
    el("form", { class: "fields", on: { submit: (event) => event.preventDefault() } }, el("label", {}, "Token", input)),
    el("div", { class: "fields" }, button(state.paused ? "Resume" : "Pause", state.paused ? "resume" : "pause", {}, true), button(state.dry_run ? "End the dry run" : "Begin a dry run", "dry_run", { on: !state.dry_run })),
    el("div", { class: "fields" }, el("label", {}, "Operator", operator), el("label", {}, "Instances", count), button("Pin", "pin", () => ({ operator: operator.value, parallelism: Number(count.value) })), button("Unpin", "unpin", () => ({ operator: operator.value }))),
    el("div", { class: "fields" }, el("label", {}, "Policy", policy), button("Change the policy", "policy", () => ({ name: policy.value }))));
  say("controls-said", "");
  byId("controls").showModal();
}
