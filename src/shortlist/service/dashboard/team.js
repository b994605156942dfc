"use strict";
// The page of a lead: what is left, who has what, what is old, precision, the model and its shadow.
const chartHeight = 190;
const SVG = "http://www.w3.org/2000/svg";

function tile(number, words) {
  return make("div", null, { class: "tile" }, make("b", number), make("span", words));
}

function showTiles(status, open, reviewers) {
  const present = status.history.find((each) => each.number === status.number);
  const found = present?.precision ?? { reviewed: 0 };
  const unit = status.unit === "effort" ? "of work" : "flags";
  const ends = status.ends - now() < 1e9 ? `until ${moment(status.ends)}, in ${duration(status.ends - now())}` : "";
  const detection = status.detection;
  const isFound = detection && detection.share !== null && detection.high - detection.low < 0.95;
  const waits = status.pool ? `; ${amount(status.pool)} wait until a reviewer asks` : "";
  at("tiles").replaceChildren(
    tile(amount(status.remaining), `left of ${amount(status.capacity)} ${unit} ${ends}`),
    tile(amount(open), `open cases of all periods; ${amount(status.seen)} cases decided in this one${waits}`),
    tile(found.reviewed ? percent(found.share) : "not known", found.reviewed
      ? `precision: of ${count(found.reviewed, "flag")} by score, reviewed in this period, ${found.found} ${found.found === 1 ? "was" : "were"} rare (95\u00a0%: ${between(found)})`
      : "precision: no flag by score was reviewed in this period yet"),
    tile(isFound ? between(detection) : "not known", `of the rare cases are found${isFound ? "" : ": too few probes yet"}. ${status.detection_note}`),
    oneMore(status, reviewers.length));
}

// More capacity adds cases with lower scores still than the lowest of those that were reviewed.
function oneMore({ more, capacity, unit }, people) {
  if (!more) return tile("not known", "what one more reviewer would find: too few outcomes yet");
  const lowest = `of the ${more.reviewed} lowest reviewed, ${more.found} ${more.found === 1 ? "was" : "were"} rare`;
  if (!people || unit === "effort") return tile(`up to ${percent(more.high)}`, `of what one more reviewer sees would be rare: ${lowest}`);
  const cases = Math.max(Math.round(capacity / people), 1);
  return tile(`up to ${amount(cases * more.high)}`, `more rare cases a period with one more reviewer, who sees ${count(cases, "case")}: ${lowest}`);
}

function showPeople(reviewers, backlog) {
  const held = new Map();
  for (const each of backlog) held.set(each.holder, (held.get(each.holder) ?? 0) + each.open);
  const rows = reviewers.map((each) => {
    const is = each.absent_until && each.absent_until > now() ? `away until ${moment(each.absent_until)}` : "yes";
    const cells = [amount(held.get(each.name) ?? 0), `${amount(each.minutes)} minutes`, each.segments?.join(", ") ?? "everything", is];
    held.delete(each.name);
    return line(each.name, ...cells.map((text, place) => cell(PEOPLE[place], text)));
  });
  for (const [name, open] of held) rows.push(line(name ?? "unassigned", cell(PEOPLE[0], amount(open)), ...PEOPLE.slice(1).map(() => cell("", ""))));
  at("people").replaceChildren(...rows);
}

const PEOPLE = ["open cases", "time in a period", "reviews", "available"];
const cell = (name, text) => make("td", text, name ? { "data-name": name } : { class: "none" });

function line(head, ...cells) {
  return make("tr", null, {}, make("th", head, { scope: "row" }), ...cells);
}

function showBacklog(status, backlog) {
  const words = (each) => {
    if (each.period === status.number) return "in this period";
    return status.ends - now() > 1e9 ? "earlier" : `${day(each.starts)} (${duration(now() - each.starts)} ago)`;
  };
  const periods = [...new Set(backlog.map((each) => each.period))].map((period) => backlog.filter((each) => each.period === period));
  const sum = (part) => part.reduce((total, each) => total + each.open, 0);
  at("backlog").replaceChildren(...(periods.length
    ? periods.map((part) => line(words(part[0]), cell("open", amount(sum(part))),
      cell("unassigned", amount(sum(part.filter((each) => each.holder === null))))))
    : [line("No open cases", cell("", ""), cell("", ""))]));
  return sum(backlog);
}

// --- charts ---
function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function ticks(most) {
  const rough = most / 4, size = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max([1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough), most > 4 ? 1 : 0);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, place) => place * step);
}

function draw(id, history, { most, label, words, bar }) {
  const svg = at(id), width = Math.max(svg.clientWidth, 200);
  const left = 46, right = width - 8, top = 10, bottom = chartHeight - 26;
  const slot = (right - left) / Math.max(history.length, 7);
  const x = (place) => right - slot * (history.length - place);
  const y = (value) => bottom - (bottom - top) * value / most;
  const every = Math.ceil(52 / slot);
  const shapes = ticks(most).flatMap((tick) => [
    shape("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
    shape("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, label(tick)),
  ]);
  history.forEach((each, place) => {
    const middle = x(place) + slot / 2;
    shapes.push(...bar(each, middle, slot, y));
    if ((history.length - 1 - place) % every === 0) {
      shapes.push(shape("text", { x: Math.min(middle, right - 18), y: bottom + 18, "text-anchor": "middle" }, dateOf(each, history)));
    }
  });
  shapes.push(shape("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  svg.setAttribute("viewBox", `0 0 ${width} ${chartHeight}`);
  svg.setAttribute("aria-label", words);
  svg.replaceChildren(...shapes);
}

const dateOf = (each, history) => (history.length > 1 && history[1].starts - history[0].starts < 86400 ? clock(each.starts) : day(each.starts));

function showCharts(status) {
  const { history } = status, last = history.at(-1);
  draw("flags-chart", history, {
    most: Math.max(1, ...history.map((each) => Math.max(each.used, each.capacity))),
    label: amount,
    words: last ? `Used in the latest period: ${amount(last.used)} of ${amount(last.capacity)}.` : "No periods yet.",
    bar: (each, middle, slot, y) => [
      shape("rect", { class: "bar", x: middle - 0.35 * slot, width: 0.7 * slot, y: y(each.used), height: y(0) - y(each.used) }),
      shape("line", { class: "limit", x1: middle - slot / 2, x2: middle + slot / 2, y1: y(each.capacity), y2: y(each.capacity) }),
    ],
  });
  const judged = history.filter((each) => each.precision.reviewed);
  draw("precision-chart", history, {
    most: 1,
    label: percent,
    words: judged.length ? `Precision, from the oldest period: ${judged.map((each) => `${day(each.starts)} ${percent(each.precision.share)}`).join(", ")}.` : "Nothing reviewed yet.",
    bar: ({ precision }, middle, slot, y) => (precision.reviewed ? [
      shape("line", { class: "whisker", x1: middle, x2: middle, y1: y(precision.low), y2: y(precision.high) }),
      shape("circle", { class: "dot", cx: middle, cy: y(precision.share), r: 4 }),
    ] : []),
  });
}

// --- the model ---
async function showModel(status) {
  at("model").textContent = status.model ? `Model ${status.model} is in force.` : "No model is loaded.";
  if (!status.shadow) {
    at("shadow").textContent = "No shadow model is compared with it.";
    return;
  }
  const shadow = await ask(`${base()}/shadow`);
  const [less, more] = [shadow.only_model, shadow.only_shadow].map((range) => range.map(Math.round).join(" to "));
  at("shadow").textContent = `Shadow model ${shadow.shadow}: ${shadow.verdict}. In ${count(shadow.periods, "complete period")} it alone `
    + `would have found ${more} rare cases, and model ${shadow.model} alone ${less}.`;
}

parts.team = {
  start() {},
  async follow(status) {
    const [{ backlog }, { reviewers }] = await Promise.all([ask(`${base()}/backlog`), ask("v1/reviewers")]);
    showTiles(status, showBacklog(status, backlog), reviewers);
    showPeople(reviewers, backlog);
    showCharts(status);
    await showModel(status);
  },
};
at("assign").addEventListener("click", async () => {
  try {
    const done = await ask(`${base()}/assignments`, "POST", {});
    say("team-message", `${count(done.assigned.length, "case")} assigned; ${amount(done.left)} left unassigned.`);
    await refresh();
  } catch (error) {
    say("team-message", error instanceof Refused ? error.message : "No answer. Try again.", true);
  }
});
addEventListener("resize", () => { if (shown.status && !at("team").hidden) showCharts(shown.status); });
