"use strict";
// The page of a reviewer: open cases in order, one case with all that is known, and its outcome.
// An outcome is sent until the service has answered; the reviewer goes on meanwhile.
const STEP = 200, MOST = 1000;
const list = { cases: [], total: 0, selected: null, last: null, left: null };
const sending = new Map();  // cases whose outcome is on its way
const WORDS = new Map([[true, "rare"], [false, "not rare"], [null, "cannot tell"]]);

// --- the list ---
const isMine = () => at("view").value === "mine";
async function read(before, limit = STEP) {
  const query = new URLSearchParams({ view: at("view").value, limit });
  if (at("segment").value) query.set("segment", at("segment").value);
  if (before) query.set("before", before);
  if (isMine() && !shown.person) {
    const name = at("reviewer").value.trim();
    if (!name) return { cases: [], total: 0 };
    query.set("reviewer", name);
  }
  return ask(`${base()}/cases?${query}`);
}

async function readAgain() {
  const asked = at("view").value + at("segment").value + shown.queue;
  const before = list.cases.length;
  const found = await read(null, Math.min(Math.max(before, STEP), MOST));
  if (asked !== at("view").value + at("segment").value + shown.queue) return;  // no longer wanted
  if (list.cases.length > before) return;  // more rows came meanwhile
  const first = new Set(found.cases.map((each) => each.id));
  const rest = list.cases.length > MOST ? list.cases.slice(MOST).filter((each) => !first.has(each.id)) : [];
  list.total = found.total;
  showCases([...found.cases, ...rest]);
}

function due(each) {
  if (each.outcome) return [WORDS.get(each.outcome.rare), ""];
  if (each.due < now()) return [`${duration(now() - each.due)} late`, "late"];
  return [`until ${moment(each.due)}`, ""];
}

function because(each) {
  const reasons = each.reasons.map((reason) => `${reason.column} = ${plain(reason.value)}`).join(", ");
  return reasons || "no single column raised the score";
}

function row(each, place) {
  const [words, kind] = due(each);
  const side = [each.segment, each.n_events > 1 ? count(each.n_events, "event") : null, isMine() ? null : each.holder, words];
  return make("li", null, { role: "option", id: `case-${place}`, "aria-selected": "false" },
    make("span", side.filter(Boolean).join(" · "), { class: `side ${kind}` }),
    make("span", each.id, { class: "id" }), " ", make("span", because(each), { class: "why" }));
}

function showCases(cases) {
  list.cases = cases.filter((each) => !sending.has(each.id) || at("view").value === "closed");
  const kept = JSON.stringify([list.cases, Math.floor(now() / 60)]);
  if (kept !== list.kept) {  // whoever reads or scrolls is not disturbed
    list.kept = kept;
    at("cases").replaceChildren(...list.cases.map(row));
    mark();
  }
  at("cases").hidden = list.cases.length === 0;
  const left = list.total - list.cases.length;
  const none = { mine: "You have no open cases. Take the next one.", open: "No open cases.", closed: "No closed cases." };
  at("count").textContent = isMine() && !shown.person && !at("reviewer").value.trim() ? "Enter your name to see your cases."
    : list.cases.length ? count(list.total, "case") + (left > 0 ? `, ${amount(list.cases.length)} shown` : "") : none[at("view").value];
  at("show-more").hidden = left <= 0 || sending.size > 0;
  const names = [...new Set(list.cases.map((each) => each.segment).filter(Boolean))].sort();
  if (!at("segment").value && names.join() !== at("segment").dataset.names) {
    at("segment").dataset.names = names.join();
    at("segment").replaceChildren(make("option", "all", { value: "" }), ...names.map((name) => make("option", name)));
    at("segment-label").hidden = names.length === 0;
  }
}

function mark() {
  at("cases").querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
  const active = at(`case-${list.cases.findIndex((each) => each.id === list.selected)}`);
  at("cases").setAttribute("aria-activedescendant", active?.id ?? "");
  active?.setAttribute("aria-selected", "true");
  active?.scrollIntoView({ block: "nearest" });
}

// --- one case ---
async function select(id) {
  if (list.selected !== id) at("note").value = "";
  list.selected = id;
  mark();
  at("case-pane").hidden = id === null;
  at("review").classList.toggle("reading", id !== null);
  if (id === null) return;
  at("case-title").textContent = id;
  at("case-facts").textContent = "";
  at("case-parts").replaceChildren();
  const known = list.cases.find((each) => each.id === id);
  try {
    const found = await ask(`${base()}/decisions/${encodeURIComponent(id)}`);
    if (list.selected === id) showCase(found, known);
  } catch (error) {
    if (list.selected === id) at("case-facts").textContent = error.message;
  }
}

function showCase(found, known) {
  const facts = [`flagged ${moment(found.at)}`];
  if (known && !known.outcome) facts.push(due(known)[0]);
  if (known?.holder) facts.push(`${known.holder} has it${known.assigned ? " (assigned)" : known.expires && !known.outcome ? ` until ${moment(known.expires)}` : ""}`);
  const last = found.outcomes.at(-1);
  if (last) facts.push(`${last.reviewer}: ${WORDS.get(last.rare)}, ${moment(last.at)}`);
  at("case-facts").textContent = facts.join(" · ");
  const reasons = (known?.reasons ?? []).map((reason) => make("li", `${reason.column} = ${plain(reason.value)}`));
  const columns = Object.entries(found.columns ?? {}).map(([name, value]) =>
    make("tr", null, {}, make("th", name, { scope: "row" }), make("td", plain(value))));
  const notes = (found.outcomes ?? []).filter((each) => each.note).map((each) => make("li", `${each.note} (${each.reviewer}, ${moment(each.at)})`));
  at("case-parts").replaceChildren(
    ...part("Reasons", reasons, "ul"), ...part("Columns", columns, "tbody"),
    ...part("Events", eventRows(found.events ?? []), "table"), ...part("Notes", notes, "ul"));
  const isOpen = !known?.outcome && found.outcomes.length === 0;  // only what can be done is offered
  at("actions").querySelector("[data-key=c]").hidden = !isOpen || (known?.holder && (known.assigned || !isMe(known.holder)));
  at("actions").querySelector("[data-key=r]").hidden = !isOpen || !known?.holder;
  at("actions").querySelector("[data-key=d]").hidden = !isOpen || !isMe(known?.holder);
}

const isMe = (name) => Boolean(name) && name === (shown.person ?? at("reviewer").value.trim());

function part(title, children, kind) {
  if (!children.length) return [];
  const body = make(kind, null, {}, ...children);
  return [make("h3", title), kind === "ul" ? body
    : make("div", null, { class: "scroll", tabindex: "0", role: "group", "aria-label": title }, kind === "table" ? body : make("table", null, {}, body))];
}

// The columns in which events differ; what all share is above.
function eventRows(events) {
  if (events.length < 2) return [];
  const value = (event, name) => plain(event.columns?.[name] ?? null);
  const names = [...new Set(events.flatMap((each) => Object.keys(each.columns ?? {})))].filter((name) =>
    new Set(events.map((each) => value(each, name))).size > 1 && events.some((each) => value(each, name) !== each.id));
  const head = ["Time", "Event", ...names].map((name) => make("th", name, { scope: "col" }));
  const rows = events.map((each) => make("tr", null, {}, make("th", moment(each.at), { scope: "row" }),
    make("td", each.id), ...names.map((name) => make("td", value(each, name)))));
  return [make("thead", null, {}, make("tr", null, {}, ...head)), make("tbody", null, { class: "events" }, ...rows)];
}

// --- what a reviewer does ---
function after(id) {
  const place = list.cases.findIndex((each) => each.id === id);
  if (place < 0) return list.left;  // it was gone back to
  return list.cases[place + 1]?.id ?? list.cases[place - 1]?.id ?? null;
}

async function tell(id, rare) {
  const body = { id, rare, reviewer: reviewer(), note: at("note").value.trim() || null };
  const headers = { "Idempotency-Key": crypto.randomUUID?.() ?? `${id} ${now()} ${Math.random()}` };
  sending.set(id, body);
  const next = after(id), path = `${base()}/outcomes`;
  list.last = id;
  if (at("view").value !== "closed") list.total -= list.cases.some((each) => each.id === id) ? 1 : 0;
  const left = list.total;  // lists that are read meanwhile may be from before
  showCases(list.cases);
  select(next);
  try {
    await untilAnswered(() => ask(path, "POST", body, { ...headers }));
    say("message", `${id}: ${WORDS.get(rare)}. ${count(left, "case")} left.`);
  } catch (error) {
    say("message", `${id} was not saved: ${error.message}`, true);
  }
  sending.delete(id);
}

async function untilAnswered(send) {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (error instanceof Refused) throw error;
      say("message", `${count(sending.size, "outcome")} not saved yet: no answer. You can go on; keep this page open.`, true);
      await pause(EVERY);
    }
  }
}

async function change(path, body, words) {
  await ask(`${base()}/${path}`, "POST", { ...body, reviewer: reviewer() });
  say("message", words);
  await readAgain();
}

async function next() {
  const found = await ask(`${base()}/next`, "POST", { reviewer: reviewer() });
  const one = found.case;
  if (!one) { say("message", "There is no case for you now."); return; }
  if (!isMine()) at("view").value = "mine";
  await readAgain();
  await select(one.id);
  say("message", `${one.id} is yours.`);
}

const acts = {
  y: (id) => tell(id, true),
  n: (id) => tell(id, false),
  u: (id) => tell(id, null),
  c: (id) => change("claims", { id }, `${id} is yours.`).then(() => select(id)),
  r: (id) => change("releases", { id, decline: false }, `${id} is free for anybody.`).then(() => select(after(id))),
  d: (id) => change("releases", { id, decline: true }, `${id} goes to someone else.`).then(() => select(after(id))),
};
async function act(key) {
  try {
    if (key === "g") await next();
    else if (key === "z" && list.last) {
      list.left = list.selected;
      await select(list.last);
    }
    else if (acts[key] && list.selected !== null) await acts[key](list.selected);
  } catch (error) {
    say("message", error instanceof Refused ? error.message : "No answer. Try again.", true);
  }
}

function step(move) {
  const place = list.cases.findIndex((each) => each.id === list.selected);
  const wanted = place < 0 ? 0 : Math.min(Math.max(place + move, 0), list.cases.length - 1);
  if (!list.cases.length) return;
  select(list.cases[wanted].id);
  (at("list-pane").offsetParent ? at("cases") : at("case-title")).focus({ preventScroll: true });  // a reader follows
}

parts.review = {
  start() {
    Object.assign(list, { cases: [], total: 0, last: null, kept: null });
    at("cases").replaceChildren();  // nobody opens a row of the view before
    select(null);
    readAgain().catch(() => {});
  },
  follow: () => readAgain(),
};
at("cases").addEventListener("click", (event) => {
  const chosen = event.target.closest("li");
  if (chosen) select(list.cases[[...at("cases").children].indexOf(chosen)].id).then(() => at("case-title").focus());
});
at("actions").addEventListener("click", (event) => {
  const key = event.target.closest("button")?.dataset.key;
  if (key) act(key);
});
at("next").addEventListener("click", () => act("g"));
at("back").addEventListener("click", () => { select(null); at("cases").focus(); });
for (const id of ["view", "segment"]) at(id).addEventListener("change", () => parts.review.start());
at("reviewer").addEventListener("change", () => parts.review.start());
at("show-more").addEventListener("click", async () => {
  const found = await read(list.cases.at(-1).id);
  showCases([...list.cases, ...found.cases]);
});
addEventListener("beforeunload", (event) => { if (sending.size) event.preventDefault(); });
document.addEventListener("keydown", (event) => {
  if (at("review").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === at("note") && event.key === "Escape") { at("note").blur(); return; }
  if (event.target.closest("input, select, textarea")) return;
  const move = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (move && (event.key.length === 1 || event.target === at("cases") || event.target === document.body)) step(move);
  else if (event.key === "m" && list.selected !== null) at("note").focus();
  else if (event.key.length === 1) { act(event.key); return; }
  else return;
  event.preventDefault();
});
