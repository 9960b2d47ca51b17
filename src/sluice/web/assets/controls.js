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
  say("controls-said", answer.ok ? `${control.replace("_", " ")} accepted: it takes effect at the next decision.` : data.error);
}

function button(label, id, control, body, main) {
  const press = () => use(id, control, body?.()).catch((error) => say("controls-said", error.message));
  return el("button", { type: "button", class: main ? "main" : null, "data-control": control, on: { click: press } }, label);
}

// What is in force now, and the buttons that change it; drawn again when it has changed.
export function showInForce(id, state) {
  const host = byId("in-force");
  const now = JSON.stringify([id, state]);
  if (!host || host.dataset.now === now) return;
  host.dataset.now = now;
  const pinned = (state?.pinned ?? []).map(({ operator, parallelism }) => `${operator} to ${parallelism}`).join(", ");
  const held = [state?.paused ? "paused" : "the policy decides", state?.dry_run ? "dry run" : null, pinned ? `pinned: ${pinned}` : null, state?.policy ? `policy ${state.policy}` : null];
  const had = host.contains(document.activeElement);
  fill(host, el("p", {}, `In force: ${held.filter(Boolean).join("; ")}.`),
    el("div", { class: "fields" },
      button(state?.paused ? "Resume" : "Pause", id, state?.paused ? "resume" : "pause", null, true),
      button(state?.dry_run ? "End the dry run" : "Begin a dry run", id, "dry_run", () => ({ on: !state?.dry_run }))));
  if (had) host.querySelector("button").focus();
}

export async function openControls(id, data) {
  const names = await get("/api/policies");
  const input = el("input", { type: "password", autocomplete: "off", id: "token", spellcheck: "false" });
  input.value = token;
  input.addEventListener("input", () => { token = input.value; });
  const operator = el("select", { id: "pin-operator" }, data.operators.map(({ name }) => el("option", { value: name }, name)));
  const count = el("input", { id: "pin-count", type: "number", min: "1", step: "1", inputmode: "numeric" });
  const there = () => { count.value = data.operators.find(({ name }) => name === operator.value)?.instances ?? 1; };
  operator.addEventListener("change", there);
  there();
  const policy = el("select", { id: "policy-name" }, names.policies.map((name) => el("option", { value: name }, name)));
  policy.value = (data.control_state?.policy ?? data.head.policy).split(":")[0];
  fill(byId("controls-body"),
    el("p", { class: "soft" }, "Every use is on record in the journal and takes effect at the next decision."),
    el("form", { class: "fields", on: { submit: (event) => event.preventDefault() } }, el("label", {}, "Token", input)),
    el("div", { id: "in-force" }),
    el("div", { class: "fields" }, el("label", {}, "Operator", operator), el("label", {}, "Instances", count), button("Pin", id, "pin", () => ({ operator: operator.value, parallelism: Number(count.value) })), button("Unpin", id, "unpin", () => ({ operator: operator.value }))),
    el("div", { class: "fields" }, el("label", {}, "Policy", policy), button("Change the policy", id, "policy", () => ({ name: policy.value }))));
  showInForce(id, data.control_state);
  say("controls-said", "");
  byId("controls").showModal();
}
