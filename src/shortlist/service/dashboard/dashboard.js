"use strict";
// Shows what the API says about a queue, and sends claims and outcomes. Nothing is drawn from text
// that a case brings: every text becomes a text node.
const at = (id) => document.getElementById(id);
const STEP = 200, MOST = 1000;
const shown = { queue: null, cases: [], selected: null, seq: -1, most: STEP };

async function ask(path, method = "GET", body) {
  const headers = {};
  const key = sessionStorage.getItem("key");
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (response.status === 401) at("key-label").hidden = false;
  if (!response.ok) throw new Error(answer.detail || answer.title);
  return answer;
}

const base = () => `v1/queues/${encodeURIComponent(shown.queue)}`;
const amount = (number) => number.toLocaleString("en", { maximumFractionDigits: 1 });
const percent = (share) => `${(100 * share).toFixed(0)} %`;
const say = (text, problem = false) => {
  at("message").textContent = text;
  at("message").className = problem ? "problem" : "";
};

function make(name, text, parts = {}) {
  const element = document.createElement(name);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [key, value] of Object.entries(parts)) element.setAttribute(key, value);
  return element;
}

function draw(svg, shapes) {
  svg.replaceChildren(...shapes.map(([name, parts]) => {
    const shape = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(parts)) shape.setAttribute(key, value);
    return shape;
  }));
}

function showNumbers(status) {
  at("used").textContent = amount(status.used);
  at("capacity").textContent = amount(status.capacity);
  at("unit").textContent = status.unit === "effort" ? `units of work used, by ${status.flags} flags` : "flags used";
  at("used-bar").style.setProperty("width", `${Math.min(100, 100 * status.used / (status.capacity || 1))}%`);
  at("seen").textContent = status.seen.toLocaleString("en");
  const precision = status.precision;
  at("precision").textContent = precision.reviewed ? percent(precision.share) : "–";
  at("precision-note").textContent = precision.reviewed
    ? `of ${precision.reviewed} reviewed in the last 30 periods were rare (95 %: ${percent(precision.low)} to ${percent(precision.high)})`
    : "no outcomes yet";
  const detection = status.detection;
  at("detection").textContent = detection === null || detection.share === null ? "not known"
    : `${percent(detection.low)} to ${percent(detection.high)}`;
  at("detection-note").textContent = `Share of rare cases found. ${status.detection_note}`;
  at("more").textContent = status.more ? `≤ ${percent(status.more.high)}` : "–";
  at("more-note").textContent = status.more
    ? `of more flags would be rare: ${status.more.found} of the ${status.more.reviewed} lowest reviewed were`
    : "more capacity: too few outcomes to tell";
  at("alarms").replaceChildren(...status.alarms.map((alarm) => make("p", `${alarm.kind}: ${alarm.message}`)));
}

function showHistory(status) {
  const top = Math.max(1, ...status.history.map((each) => Math.max(each.used, each.capacity)));
  draw(at("history"), status.history.flatMap((each) => {
    const x = 600 - 20 * (status.number - each.number + 1);
    const height = 110 * each.used / top, limit = 118 - 110 * each.capacity / top;
    return [
      ["rect", { class: "flags", x: x + 3, y: 118 - height, width: 14, height }],
      ["line", { class: "limit", x1: x, x2: x + 20, y1: limit, y2: limit }],
    ];
  }));
}

function cell(name, ...children) {
  const made = make("td", null, { "data-name": name });
  made.append(...children);
  return made;
}

function button(text, title, act) {
  const made = make("button", text, { type: "button", title });
  made.addEventListener("click", (event) => { event.stopPropagation(); act(); });
  return made;
}

function row(each) {
  const made = make("tr", null, { "aria-selected": each.id === shown.selected, "data-id": each.id });
  const reasons = each.reasons.map((reason) => `${reason.column} = ${reason.value}`).join(", ");
  const because = each.probe ? "drawn at random, to learn what is missed" : reasons;
  const told = each.outcome === null ? "" : each.outcome ? "rare" : "not rare";
  const buttons = make("span", null, { class: "buttons" });
  buttons.append(
    button("Rare", "y", () => tell(each.id, true)), button("Not rare", "n", () => tell(each.id, false)));
  made.append(
    cell("", make("span", each.id)),
    cell("Score", each.score.toPrecision(4)),
    cell("Because of", because || "–"),
    cell("Claimed by", each.claimed_by || button("Claim", "c", () => claim(each.id))),
    cell("Outcome", told ? `${told} ` : "", buttons));
  made.addEventListener("click", () => select(each.id));
  return made;
}

function showCases() {
  const focused = document.activeElement?.closest?.("tr")?.dataset.id;
  const label = document.activeElement?.textContent;
  at("cases").replaceChildren(...shown.cases.map(row));
  at("empty").hidden = shown.cases.length > 0;
  if (focused) {
    const again = [...at("cases").children].find((each) => each.dataset.id === focused);
    [...(again?.querySelectorAll("button") ?? [])].find((each) => each.textContent === label)?.focus();
  }
}

function select(id) {
  shown.selected = id;
  for (const each of at("cases").children) {
    each.setAttribute("aria-selected", each.dataset.id === id);
    if (each.dataset.id === id) each.scrollIntoView({ block: "nearest" });
  }
}

async function readCases() {
  const listed = await ask(`${base()}/list?limit=${shown.most}`);
  shown.cases = listed.cases;
  showCases();
  const left = listed.flagged - listed.cases.length;
  at("left").textContent = left > 0 ? `${amount(left)} more with lower scores. ` : "";
  at("show-more").hidden = left <= 0 || shown.most >= MOST;
}

function reviewer() {
  const name = at("reviewer").value.trim();
  if (!name) {
    at("reviewer").focus();
    throw new Error("Enter your name first.");
  }
  return name;
}

async function review(work, words) {
  try {
    await work();
    say(words);
    await readCases();
    refresh();
  } catch (error) {
    say(error.message, true);
  }
}

const claim = (id) => review(
  async () => ask(`${base()}/claims`, "POST", { id, reviewer: reviewer() }), `${id} is yours.`);
const tell = (id, rare) => review(
  async () => ask(`${base()}/outcomes`, "POST", { id, rare, reviewer: reviewer() }),
  `${id}: ${rare ? "rare" : "not rare"}.`);

async function refresh() {
  const status = await ask(`${base()}/status`);
  showNumbers(status);
  showHistory(status);
  return status;
}

async function follow() {
  for (;;) {
    try {
      if (shown.queue === null) await readQueues();
      const status = await refresh();
      if (status.seq !== shown.seq || status.number !== shown.number) {
        shown.seq = status.seq;
        shown.number = status.number;
        await readCases();
      }
      at("state").textContent = status.ready ? `live, ${new Date().toLocaleTimeString()}` : "not ready";
    } catch (error) {
      at("state").textContent = `no data: ${error.message}`;
    }
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
  }
}

async function readQueues() {
  const queues = (await ask("v1/queues")).queues;
  at("queue").replaceChildren(...queues.map((queue) => make("option", queue.name)));
  shown.queue = queues[0].name;
}

at("queue").addEventListener("change", () => {
  Object.assign(shown, { queue: at("queue").value, seq: -1, selected: null, cases: [], most: STEP });
  refresh();
  readCases();
});
at("show-more").addEventListener("click", () => {
  shown.most += STEP;
  readCases();
});
at("key").addEventListener("change", () => {
  sessionStorage.setItem("key", at("key").value.trim());
  at("key").value = "";
  shown.seq = -1;
});
at("reviewer").value = localStorage.getItem("reviewer") || "";
at("reviewer").addEventListener("change", () => localStorage.setItem("reviewer", at("reviewer").value));
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const place = shown.cases.findIndex((each) => each.id === shown.selected);
  const move = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (move && shown.cases.length) {
    const next = Math.min(Math.max(place + move, 0), shown.cases.length - 1);
    select(shown.cases[next].id);
    event.preventDefault();
  } else if (place >= 0) {
    const act = { c: () => claim(shown.selected), y: () => tell(shown.selected, true), n: () => tell(shown.selected, false) };
    act[event.key]?.();
  }
});
follow();
