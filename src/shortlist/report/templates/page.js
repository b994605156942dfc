"use strict";
// Moves the cut. All numbers shown come from the data at the end of the page.
const report = JSON.parse(document.getElementById("report-data").textContent);
if (report.cuts) (() => {
  const { cuts, promise, data } = report;
  const slider = document.getElementById("cut");
  const box = document.getElementById("cut-number");
  const base = promise.n_flagged;

  const whole = (n) => n.toLocaleString("en-US");
  const percent = (share) => {
    if (share === null) return "–";
    if (share > 0 && share < 0.0001) return "below 0.01\u00a0%";
    const digits = share > 0 && share < 0.01 ? 2 : share === 1 ? 0 : 1;
    return (100 * share).toFixed(digits) + "\u00a0%";
  };
  const between = (low, high) => `${percent(low).replace("\u00a0%", "")} to ${percent(high)}`;
  const show = (id, text) => { document.getElementById(id).textContent = text; };
  const plural = (n, one, many) => `${whole(n)} ${n === 1 ? one : many}`;

  function nearest(flags) {
    let best = 0;
    cuts.flags.forEach((each, i) => {
      if (Math.abs(each - flags) < Math.abs(cuts.flags[best] - flags)) best = i;
    });
    return best;
  }

  function moveMarks(i) {
    document.querySelectorAll("svg.detection").forEach((svg) => {
      const at = (name) => Number(svg.dataset[name]);
      const x = at("left") + (at("right") - at("left")) * cuts.flags[i] / at("most");
      const y = at("bottom") - (at("bottom") - at("top")) * cuts.detection[i];
      svg.querySelector(".cut").setAttribute("transform", `translate(${x} 0)`);
      svg.querySelector(".dot").setAttribute("cy", y);
    });
  }

  function compare(cut, found) {
    const before = cuts.found[cuts.flags.indexOf(base)];
    if (cut === base) return report.comparison.rule_is_a_list ?
      "This is the rule in use." : "As many flags as the rule in use.";
    const flags = plural(Math.abs(cut - base), "case", "cases");
    const change = found - before;
    const word = cut > base ? "more" : "fewer";
    return `${flags} ${word} than the rule in use: ` +
      (change === 0 ? "no rare case gained or lost." :
        `${plural(Math.abs(change), "rare case", "rare cases")} ${change > 0 ? "gained" : "lost"}.`);
  }

  function update(i) {
    const cut = cuts.flags[i], found = cuts.found[i];
    slider.value = i;
    slider.setAttribute("aria-valuetext",
      `${plural(cut, "flag", "flags")}, ${whole(found)} found, detection ${percent(cuts.detection[i])}`);
    if (document.activeElement !== box) box.value = cut;
    show("cut-flags", whole(cut));
    show("cut-share", `${percent(cut / data.n_items)} of all cases`);
    show("cut-found", whole(found));
    show("cut-of", `of ${whole(data.n_rare)}`);
    show("cut-detection", percent(cuts.detection[i]));
    show("cut-detection-interval", between(cuts.detection_low[i], cuts.detection_high[i]));
    show("cut-precision", percent(cuts.precision[i]));
    show("cut-precision-interval", cut ? between(cuts.precision_low[i], cuts.precision_high[i]) : "–");
    show("cut-compared", compare(cut, found));
    const over = cut - promise.room;
    show("cut-room", over > 0 ? `${whole(over)} over the capacity` :
      over === 0 ? "exactly the capacity" : `${whole(-over)} below the capacity`);
    document.getElementById("cut-room").classList.toggle("over", over > 0);
    moveMarks(i);
  }

  slider.addEventListener("input", () => update(Number(slider.value)));
  box.addEventListener("change", () => {
    const i = nearest(Number(box.value) || 0);
    box.value = cuts.flags[i];
    update(i);
  });
  document.getElementById("to-rule").addEventListener("click", () => update(nearest(base)));
  document.getElementById("to-room").addEventListener("click", () => update(nearest(promise.room)));

  document.querySelectorAll("svg.detection").forEach((svg) => {
    const drag = (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      const at = (name) => Number(svg.dataset[name]);
      update(nearest((x - at("left")) / (at("right") - at("left")) * at("most")));
    };
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      drag(event);
    });
    svg.addEventListener("pointermove", (event) => { if (event.buttons) drag(event); });
  });

  update(nearest(base));
})();
(() => {
  document.getElementById("save-json").addEventListener("click", () => {
    const blob = new Blob([JSON.stringify(report, null, 1)], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "report.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((each) => { each.open = true; });
  });
  document.documentElement.classList.add("scripted");
})();
