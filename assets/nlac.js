// What a page does beside showing itself: buttons, keys, theme, pictures, and news from the event stream.
import "/assets/filters.js";
import { compare, redraw, refresh } from "/assets/plots.js";
import { timeline } from "/assets/timeline.js";

const $ = (selector) => document.querySelector(selector);

// Buttons that act by the API.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-post]");
  if (!button || (button.dataset.confirm && !confirm(button.dataset.confirm))) return;
  event.preventDefault();
  let body = button.dataset.body;
  if (button.dataset.why) {
    const reason = prompt(button.dataset.why);
    if (reason === null) return;
    body = JSON.stringify(reason.trim() ? { reason: reason.trim() } : {});
  }
  if (button.dataset.number) {
    const answer = prompt(button.dataset.ask);
    if (answer === null) return;
    const number = Number(answer.trim().replace(",", "."));
    if (!answer.trim() || !Number.isFinite(number)) return alert(`“${answer}” is not a number.`);
    body = JSON.stringify({ [button.dataset.number]: number });
  }
  button.disabled = true;
  const from = button.dataset.from;
  if (from) body = $(from).value;
  const headers = body ? { "content-type": from ? "application/yaml" : "application/json" } : {};
  if (button.dataset.key) headers["idempotency-key"] = button.dataset.key;
  const answer = await fetch(button.dataset.post, { method: "POST", headers, body });
  // The session has ended.
  if (answer.status === 401) return location.assign(`/sign-in?return=${encodeURIComponent(location.pathname + location.search)}`);
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    alert([problem.detail ?? `the service answered ${answer.status}`, problem.remedy].filter(Boolean).join("\n"));
    button.disabled = false;
  } else if (from) {
    location.href = answer.headers.get("location")?.replace("/v1", "") ?? `/jobs/${(await answer.json()).id}`;
    return;
  }
  const live = button.closest("[hx-get]") ?? $("#live");
  if (live) htmx.trigger(live, "refresh");
});

// On a narrow screen the header's links scroll: the current one comes into view.
const links = $("header nav");
const current = links?.querySelector("[aria-current]");
if (current) links.scrollLeft = current.offsetLeft - (links.clientWidth - current.offsetWidth) / 2;

// A page that nobody looks at asks for nothing. (A filter in hx-trigger would need eval, which the policy forbids.)
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.getAttribute("hx-trigger")?.startsWith("every")) event.preventDefault();
});

// A click counts only if its element is still there when the button is released: until then no news replaces it.
let pressed = false;
for (const [kind, down] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false], ["dragend", false]]) {
  addEventListener(kind, () => { pressed = down; }, true);
}
document.addEventListener("htmx:beforeSwap", (event) => {
  if (pressed && event.detail.elt.getAttribute("hx-trigger")?.startsWith("every")) event.detail.shouldSwap = false;
});

// What a person opened stays open when its part of the page refreshes.
const opened = new Set();
document.addEventListener("toggle", ({ target }) => {
  if (target.id) opened[target.open ? "add" : "delete"](target.id);
}, true);
const reopen = () => opened.forEach((id) => {
  const details = document.getElementById(id);
  if (details) details.open = true;
});
const swapped = () => { reopen(); timeline(); };
document.addEventListener("htmx:afterSwap", swapped);
document.addEventListener("htmx:oobAfterSwap", swapped);
timeline();

// A column leads to the meaning of its metric.
document.addEventListener("click", ({ target }) => {
  const metric = target.closest('a[href^="#metric-"]');
  const row = metric && document.getElementById(metric.hash.slice(1));
  if (row) row.closest("details").open = true;
});

// Forms that ask first.
document.addEventListener("submit", (event) => {
  const { confirm: question } = event.target.dataset;
  if (question && !confirm(question)) event.preventDefault();
});

// The playground: an action that the policy would take is judged next; what is refused is said where the answer
// would be.
document.addEventListener("click", (event) => {
  const { judge } = event.target.dataset;
  const form = $("#play");
  if (judge === undefined || !form) return;
  form.elements.action.value = judge;
  form.requestSubmit();
});

document.addEventListener("htmx:responseError", (event) => {
  if (event.target.id !== "play") return;
  const { status } = event.detail.xhr;
  $("#answer").textContent = status === 403 ? "Asking needs an API key with the scope submit." : `The service answered ${status}.`;
});

// Dark and light.
$("#theme")?.addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
  redraw();
});

// Keys; none while one types.
const help = $("#help");
$("#keys")?.addEventListener("click", () => help.showModal());
const pages = { j: "/", n: "/jobs/new", e: "/evaluations", d: "/datasets", s: "/search", c: "/compare", f: "/fleet", p: "/playground" };
let going = 0;
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const follow = (name) => $(`[data-key="${name}"]`)?.click();
  if (Date.now() - going < 1200 && pages[event.key]) location.href = pages[event.key];
  going = event.key === "g" ? Date.now() : 0;
  if (event.key === "?") help.showModal();
  if (event.key === "/") {
    event.preventDefault();
    const field = $("input[type=search]");
    field ? field.focus() : (location.href = "/search");
  }
  if (["ArrowLeft", "ArrowRight", "[", "]"].includes(event.key)) follow(event.key);
});

// A job: its pictures, and its events as they happen; where they do not come, it polls.
const section = $("#plots");
if (section) refresh(section);
document.querySelectorAll("[data-compare]").forEach(compare);
const live = $("#live[data-events]");
if (live && live.dataset.over !== "true") {
  const source = new EventSource(`${live.dataset.events}?after=${live.dataset.after}`);
  let waiting;
  const heard = () => {
    waiting ??= setTimeout(() => {
      waiting = undefined;
      htmx.trigger(live, "refresh");
      if (section) refresh(section);
    }, 400);
  };
  for (const kind of ["started", "phase_started", "iteration_finished", "published", "evaluated", "warned", "retried", "waiting", "continued",
    "plan_failed", "extended", "reclaimed", "paused", "resumed", "cancelled", "budget_spent", "guard_tripped", "rolled_back", "promoted", "demoted", "failed", "succeeded"]) {
    source.addEventListener(kind, heard);
  }
  document.addEventListener("htmx:afterSwap", () => {
    if (["succeeded", "failed", "cancelled"].includes($("[data-status]")?.dataset.status)) source.close();
  });
  addEventListener("pagehide", () => source.close());
}
