"use strict";
// What both pages share: asking the API, the queue, the person, and words for numbers and dates.
// Nothing is drawn from text that a case brings: every text becomes a text node.
const at = (id) => document.getElementById(id);
const shown = { queue: null, person: null, role: "", status: null };
const EVERY = 2000, PATIENCE = 10000;  // milliseconds
const parts = {};  // each page: follow(status) when numbers have come, start() when the queue changes

class Refused extends Error {}  // the service has answered, and will not do it

async function ask(path, method = "GET", body, headers = {}) {
  const key = sessionStorage.getItem("key");
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE),
  });
  const answer = await response.json();
  at("key-label").hidden = response.status !== 401 && at("key-label").hidden;
  if (response.ok) return answer;
  const error = response.status >= 500 ? Error : Refused;
  throw new error(answer.detail || answer.title);
}

const base = () => `v1/queues/${encodeURIComponent(shown.queue)}`;
const pause = (time) => new Promise((resolve) => { setTimeout(resolve, time); });

// --- words ---
const amount = (number) => number.toLocaleString("en-GB", { maximumFractionDigits: 1 });
const count = (number, one, many = `${one}s`) => `${amount(number)} ${number === 1 ? one : many}`;
const percent = (share) => `${(100 * share).toFixed(0)}\u00a0%`;
const between = (part) => `${percent(part.low)} to ${percent(part.high)}`;
const day = (seconds) => new Date(1000 * seconds).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
const now = () => Date.now() / 1000;
const isToday = (seconds) => new Date(1000 * seconds).toDateString() === new Date().toDateString();
const moment = (seconds) => (isToday(seconds) ? clock(seconds) : `${day(seconds)}, ${clock(seconds)}`);
function duration(seconds) {
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, name] = units.find(([each]) => seconds >= each) ?? units[3];
  return count(Math.max(Math.floor(seconds / size), 0), name);
}
const plain = (value) => (value === null ? "–" : typeof value === "number" && !Number.isInteger(value)
  ? String(Number(value.toPrecision(6))) : typeof value === "object" ? JSON.stringify(value) : String(value));

// --- elements ---
function make(name, text, attributes = {}, ...children) {
  const element = document.createElement(name);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
function say(id, text, problem = false) {
  at(id).textContent = text;
  at(id).classList.toggle("problem", problem);
}

// --- who asks ---
const isLead = () => shown.role !== "review";
function reviewer() {
  if (shown.person) return undefined;  // the service knows who asks
  const name = at("reviewer").value.trim();
  if (name) return name;
  at("reviewer").focus();
  throw new Refused("Enter your name first.");
}

async function begin() {
  const me = await ask("v1/me");
  shown.person = me.name;
  shown.role = me.role;
  at("person").textContent = me.name ?? "";
  at("name-label").hidden = me.name !== null;
  document.querySelector("nav").hidden = !isLead();
  const queues = (await ask("v1/queues")).queues.map((queue) => queue.name);
  at("queue").replaceChildren(...queues.map((name) => make("option", name)));
  choose(queues.includes(shown.queue) ? shown.queue : queues[0]);
}

function choose(queue) {
  shown.queue = at("queue").value = queue;
  for (const part of Object.values(parts)) part.start();
}

// --- which page ---
function turn() {
  const page = location.hash === "#team" && isLead() ? "team" : "review";
  for (const name of ["review", "team"]) {
    at(name).hidden = name !== page;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === page) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  return parts[page];
}

async function refresh() {
  shown.status = await ask(`${base()}/status`);
  const alarms = shown.status.alarms.map((alarm) => `${alarm.kind}: ${alarm.message}`);
  if (alarms.join() !== at("alarms").dataset.shown) {  // a reader would say the same ones again
    at("alarms").dataset.shown = alarms.join();
    at("alarms").replaceChildren(...alarms.map((text) => make("p", text)));
  }
  await turn().follow(shown.status);
}

async function follow() {
  let last = null;
  for (;;) {
    try {
      if (shown.queue === null) await begin();
      await refresh();
      last = now();
      say("state", shown.status.ready ? "live" : "not ready: nothing is decided now", !shown.status.ready);
    } catch (error) {
      if (error instanceof Refused) say("state", error.message, true);
      else say("state", last === null ? "no answer yet; trying again" : `no answer since ${clock(last)}; trying again`, true);
    }
    await pause(document.hidden ? 5 * EVERY : EVERY);
  }
}

at("queue").addEventListener("change", () => { choose(at("queue").value); refresh().catch(() => {}); });
at("key").addEventListener("change", () => {
  sessionStorage.setItem("key", at("key").value.trim());
  at("key").value = "";
  at("key-label").hidden = true;
  shown.queue = null;
});
at("reviewer").value = localStorage.getItem("reviewer") || "";
at("reviewer").addEventListener("change", () => localStorage.setItem("reviewer", at("reviewer").value));
addEventListener("hashchange", () => { turn(); refresh().catch(() => {}); });
addEventListener("DOMContentLoaded", follow);
