"use strict";
document.documentElement.classList.add("js");

/* Tables: a click on a heading sorts by it, numbers in descending order first; rows without a value stay last. */
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const names = column === 0 || head.classList.contains("word");
      const first = names ? "ascending" : "descending";
      const second = names ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      const sign = order === "ascending" ? 1 : -1;
      const key = (row) => row.cells[column].dataset.value;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        return sign * (names ? x.localeCompare(y) : Number(x) - Number(y));
      });
      table.tBodies[0].append(...rows);
      heads.forEach((each) => each.setAttribute("aria-sort", each === head ? order : "none"));
    });
  });
}

/* Thresholds: what another one would do to the labels of the set. */
for (const part of document.querySelectorAll(".threshold")) {
  const [positive, negative] = ["falsePositive", "falseNegative"].map((name) => part.dataset[name].split(",").map(Number));
  const slider = part.querySelector("input");
  const show = () => {
    const at = slider.value - 1;
    const rates = { "false-positive": positive[at], "false-negative": negative[at] };
    rates.balanced = 1 - (positive[at] + negative[at]) / 2;
    part.querySelector("output").textContent = `${slider.value} %`;
    for (const place of part.querySelectorAll("[data-rate]")) {
      place.textContent = `${(100 * rates[place.dataset.rate]).toFixed(1)} %`;
    }
  };
  slider.addEventListener("input", show);
  show();
}

/* Only regions that can be scrolled are in the tab order. */
const updateTabOrder = () => {
  for (const region of document.querySelectorAll(".scroll")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  }
};
addEventListener("resize", updateTabOrder);
updateTabOrder();

for (const button of document.querySelectorAll("[data-toggle]")) {
  button.addEventListener("click", () => {
    const on = document.documentElement.classList.toggle(button.dataset.toggle);
    button.setAttribute("aria-pressed", String(on));
    updateTabOrder();
  });
}

/* Errors: show those of the chosen kind and part that contain every typed word; at first only some of them. */
const AT_FIRST = 10;
const everything = [];
const plain = (text) => text.normalize("NFKC").toLowerCase();
for (const part of document.querySelectorAll(".errors")) {
  const cards = [...part.querySelectorAll(".error")].map((card) => {
    const copy = card.cloneNode(true);
    copy.querySelectorAll("sup").forEach((number) => number.remove());
    return { card, text: plain(copy.textContent) };
  });
  const filters = part.querySelector(".filters");
  const field = filters.querySelector("input");
  const buttons = [...filters.querySelectorAll("button[data-filter]")];
  const list = filters.querySelector("select");
  const rest = part.querySelector(".rest");
  const chosen = { kind: "", part: "" };
  let most = AT_FIRST;
  const apply = () => {
    const words = plain(field.value).split(/\s+/).filter(Boolean);
    let left = 0;
    for (const { card, text } of cards) {
      const fits =
        (!chosen.kind || card.dataset.kind === chosen.kind) &&
        (!chosen.part || card.dataset.part === chosen.part) &&
        words.every((word) => text.includes(word));
      left += fits;
      card.hidden = !fits || left > most;
    }
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(chosen[button.dataset.filter] === button.dataset.is));
    }
    if (list) list.value = chosen.part;
    filters.querySelector("output").textContent = `${left} of ${cards.length}`;
    part.querySelector(".nothing").hidden = left > 0;
    rest.hidden = left <= most;
    rest.querySelector("button").textContent = `Show ${left - most} more`;
  };
  field.addEventListener("input", apply);
  buttons.forEach((button) =>
    button.addEventListener("click", () => {
      chosen[button.dataset.filter] = button.dataset.is;
      apply();
    }),
  );
  list?.addEventListener("change", () => {
    chosen.part = list.value;
    apply();
  });
  part.querySelector(".reset").addEventListener("click", () => {
    field.value = chosen.kind = chosen.part = "";
    apply();
    field.focus();
  });
  const all = () => {
    most = Infinity;
    apply();
  };
  everything.push(all);
  rest.querySelector("button").addEventListener("click", () => {
    const next = cards.find(({ card }) => card.hidden);
    all();
    next.card.tabIndex = -1;
    next.card.focus();
  });
  filters.hidden = false;
  apply();
}

/* Long texts are shortened on screen, with a button that shows the rest. */
for (const text of document.querySelectorAll(".long")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "more";
  const label = (open) => {
    button.textContent = open ? "Show less" : `Show all ${text.textContent.length.toLocaleString("en")} characters`;
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", () => label(text.classList.toggle("open")));
  label(false);
  text.after(button);
}

/* The link of the section on screen. */
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  },
  { rootMargin: "-30% 0px -65% 0px" },
);
for (const id of links.keys()) watcher.observe(document.getElementById(id));

addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((details) => (details.open = true));
  everything.forEach((show) => show());
});
