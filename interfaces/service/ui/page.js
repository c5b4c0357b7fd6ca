"use strict";

// Offsets of the service count code points, those of JavaScript's strings do not: texts are arrays of code points here.

const NARROW = 640; // pixels of a phone, on which the knowledge is folded
const LONG = 50_000; // characters of a text whose Markdown is shown as it is written
const data = JSON.parse(document.getElementById("data").textContent);
const field = (id) => document.getElementById(id);
const result = field("result");
let running = null;

/** An element; children are elements or strings, which never become markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const percent = (share) => `${(100 * share).toFixed(1)}%`;
const digits = (value) => (value === null ? "–" : value.toFixed(2));

/** The parts of a text between all edges, each with the ranges that cover it. */
function split(points, ranges, edges = []) {
  const cuts = new Set([0, points.length, ...edges]);
  for (const range of ranges) cuts.add(range.start).add(range.end);
  const sorted = [...cuts].filter((cut) => cut >= 0 && cut <= points.length).sort((a, b) => a - b);
  const byStart = [...ranges].sort((a, b) => a.start - b.start);
  let next = 0;
  let covering = [];
  return sorted.slice(1).map((end, index) => {
    const start = sorted[index];
    const first = next;
    while (next < byStart.length && byStart[next].start <= start) next += 1;
    covering = [...covering, ...byStart.slice(first, next)].filter((range) => range.end >= end);
    return { start, end, text: points.slice(start, end).join(""), covering };
  });
}

const MARKDOWN = [
  { kind: "code", pattern: /(?<before>^```(?=[^`\n]*\n)(?:[ \t]*\n)?)(?<inner>[\s\S]*?)(?<after>^```[ \t]*$\n?|(?![\s\S]))/gmu },
  { kind: "code", pattern: /(?<before>`)(?<inner>[^`\n]+)(?<after>`)/gu },
  { kind: "strong", pattern: /(?<before>^#{1,6} +)(?<inner>[^\n]+)(?<after>)/gmu },
  { kind: "strong", pattern: /(?<before>\*\*)(?<inner>[^\s*][^\n]*?)(?<after>\*\*)/gu },
  { kind: "em", pattern: /(?<![\w*])(?<before>\*)(?<inner>[^\s*][^*\n]*?)(?<after>\*)(?![\w*])/gu },
  { kind: "bullet", pattern: /(?<=^[ \t]*)(?<before>[-*+])(?<inner>)(?<after>)(?= )/gmu },
];

/** How many code points precede each unit of a text, and its end. */
function countPoints(text) {
  const offsets = new Uint32Array(text.length + 1);
  let unit = 0;
  let count = 0;
  for (const point of text) {
    offsets.fill(count, unit, unit + point.length);
    unit += point.length;
    count += 1;
  }
  offsets[unit] = count;
  return offsets;
}

/** Ranges of a text that Markdown shows otherwise: the inner parts by their element, and the signs around them. */
function readMarkdown(text) {
  const ranges = [];
  if (text.length > LONG) return ranges;
  const offsets = countPoints(text);
  const inCode = new Uint8Array(text.length);
  for (const { kind, pattern } of MARKDOWN) {
    for (const { 0: whole, index, groups: { before, inner } } of text.matchAll(pattern)) {
      const last = index + whole.length;
      const begin = index + before.length;
      if (inCode.subarray(index, last).includes(1)) continue;
      if (kind === "code") inCode.fill(1, begin, begin + inner.length);
      const [first, start, end, stop] = [index, begin, begin + inner.length, last].map((unit) => offsets[unit]);
      if (kind !== "bullet") ranges.push({ start, end, kind });
      ranges.push({ start: first, end: start, kind: kind === "bullet" ? "bullet" : "sign" });
      ranges.push({ start: end, end: stop, kind: "sign" });
    }
  }
  return ranges.filter((range) => range.start < range.end);
}

/** What is shown of a part of a text; no sign of Markdown becomes markup but these, and no link is made. */
function render(piece) {
  const kinds = new Set(piece.covering.map((range) => range.kind));
  if (kinds.has("sign")) return "";
  if (kinds.has("bullet")) return "•";
  return ["code", "em", "strong"].filter((kind) => kinds.has(kind)).reduce((inner, kind) => make(kind, {}, inner), piece.text);
}

const evidenceKey = (evidence) => `${evidence.passage}:${evidence.start}:${evidence.end}`;

/** The cited sentences of the knowledge, numbered from 1 in its order. */
function numberEvidence(citations) {
  const sorted = citations.map((citation) => citation.evidence)
    .sort((a, b) => a.passage - b.passage || a.start - b.start || a.end - b.end);
  return new Map([...new Set(sorted.map(evidenceKey))].map((key, index) => [key, index + 1]));
}

/** One sentence on the first words that decided against the response, or null. */
function explainVerdict(score) {
  if (score.verdict.label !== "inconsistent" || !score.unsupported.length) return null;
  const span = score.unsupported.find((candidate) => candidate.knowledge_says) || score.unsupported[0];
  if (span.knowledge_says) return `“${span.text}”: the knowledge says “${span.knowledge_says}”.`;
  return `“${span.text}”: the knowledge ${span.knowledge === "contradicts" ? "contradicts" : "does not support"} it.`;
}

const isUnsure = ({ label, sure }) => !sure && (label === "consistent" || label === "inconsistent");
const nameState = (verdict) => (isUnsure(verdict) ? `not sure, rather ${verdict.label}` : verdict.label);

/** The sentence that is least likely to be consistent, of those that state something; null for fewer than two sentences. */
function findWeakest(score) {
  const rated = score.sentences.filter(({ verdict }) => verdict.probability !== null && verdict.label !== "unverifiable");
  if (score.sentences.length < 2 || !rated.length) return null;
  return rated.reduce((weakest, sentence) => (sentence.verdict.probability < weakest.verdict.probability ? sentence : weakest));
}

function showVerdict(score) {
  const { label, probability, threshold, message } = score.verdict;
  const unsure = isUnsure(score.verdict);
  const parts = [make("p", { class: `verdict ${unsure ? "unsure" : label}`, id: "verdict" }, nameState(score.verdict))];
  if (probability !== null) {
    const fill = make("i");
    fill.style.width = percent(probability);
    const meter = make("div", { class: `meter ${unsure ? "unsure" : label}`, role: "img", "aria-label": `probability ${digits(probability)}` }, fill);
    if (threshold !== null) {
      const tick = make("b");
      tick.style.left = percent(threshold);
      meter.append(tick);
    }
    const from = threshold === null ? "" : `; called consistent from ${digits(threshold)}`;
    parts.push(meter, make("p", {}, `Probability that the knowledge supports it: ${digits(probability)}${from}.`));
  }
  const reason = explainVerdict(score);
  if (reason) parts.splice(1, 0, make("p", { class: "reason", id: "reason" }, reason));
  const weakest = findWeakest(score);
  if (weakest) {
    parts.push(make("p", { class: "hint", id: "weakest" }, `Weakest sentence (${digits(weakest.verdict.probability)}): “${weakest.text}”`));
  }
  const lines = [...new Set([message, score.message].filter(Boolean))];
  return [...parts, ...lines.map((line) => make("p", { class: "hint" }, line)),
    ...(score.warnings || []).map((line) => make("p", { class: "warning" }, line))];
}

function showResponse(points, score, numbers) {
  const spans = score.unsupported;
  const ends = new Map();
  for (const citation of score.citations || []) {
    ends.set(citation.end, (ends.get(citation.end) || new Set()).add(numbers.get(evidenceKey(citation.evidence))));
  }
  const box = make("div", { class: "text", id: "response-text", dir: "auto" });
  for (const piece of split(points, [...spans, ...readMarkdown(points.join(""))], ends.keys())) {
    const marks = piece.covering.filter((range) => range.reason);
    const shown = render(piece);
    if (marks.length) {
      const title = marks.map((span) => words(span.reason)).join(", ");
      if (shown) box.append(make("mark", { title }, shown));
      spans.forEach((span, index) => {
        if (span.end === piece.end) box.append(make("sup", {}, String(index + 1)));
      });
    } else {
      box.append(shown);
    }
    for (const number of [...(ends.get(piece.end) || [])].sort((a, b) => a - b)) {
      box.append(make("a", { class: "cite", href: `#evidence-${number}`, "aria-label": `Evidence ${number}` }, `[${number}]`));
    }
  }
  return [make("h2", {}, "Response"), box];
}

/** What the knowledge says in the place of unsupported values, as ranges of its passages. */
function findContradicting(score) {
  const { explanation } = score.metrics.values || {};
  return ((explanation && explanation.values) || [])
    .filter(({ evidence, outcome, start, end }) => evidence && outcome === "contradicted"
      && score.unsupported.some((span) => span.start < end && start < span.end))
    .map(({ evidence, text }) => ({ ...evidence, says: text }));
}

function showKnowledge(passages, score, numbers) {
  const cited = [...numbers].map(([key, number]) => {
    const [passage, start, end] = key.split(":").map(Number);
    return { passage, start, end, number };
  });
  const ranges = [...cited, ...findContradicting(score)];
  const boxes = passages.map((passage, index) => {
    const box = make("div", { class: "text", dir: "auto" });
    const its = ranges.filter((range) => range.passage === index);
    for (const piece of split(Array.from(passage), [...its, ...readMarkdown(passage)])) {
      const begins = piece.covering.filter((range) => range.number && range.start === piece.start);
      for (const { number } of begins) {
        box.append(make("a", { class: "cite", href: "#response-text", id: `evidence-${number}` }, `[${number}]`), " ");
      }
      const shown = render(piece);
      const said = piece.covering.find((range) => range.says);
      if (said && shown) box.append(make("mark", { class: "says", title: `the response says “${said.says}”` }, shown));
      else box.append(piece.covering.some((range) => range.number) ? make("span", { class: "evidence" }, shown) : shown);
    }
    return box;
  });
  return [make("details", { id: "sources", open: innerWidth >= NARROW }, make("summary", {}, "Knowledge"), ...boxes)];
}

/** A table; cells are strings, elements, or numbers, which are aligned. */
function table(title, names, rows) {
  if (!rows.length) return [];
  const kinds = rows[0].map((cell) => (typeof cell === "number" ? "number" : cell instanceof Element ? "wide" : null));
  const head = make("tr", {}, names.map((name, index) => make("th", { scope: "col", class: kinds[index] }, name)));
  const body = rows.map((cells) => make("tr", {}, cells.map((cell) => (
    typeof cell === "number" ? make("td", { class: "number" }, digits(cell))
      : cell instanceof Element ? make("td", { class: "wide" }, cell) : make("td", {}, cell)))));
  return [make("h2", {}, title), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, make("table", {}, make("thead", {}, head), make("tbody", {}, body)))];
}

const words = (name) => name.replaceAll("_", " ");

function showUnsupported(score) {
  return table("Unsupported words", ["", "words", "why", "the knowledge says", "metrics"],
    score.unsupported.map((span, index) => [
      String(index + 1), span.text, words(span.reason), span.knowledge_says, (span.metrics.length ? span.metrics : [span.metric]).join(", "),
    ]));
}

function showSentences(score) {
  if (score.sentences.length < 2) return [];
  const items = score.sentences.map(({ text, verdict }) => {
    const chance = verdict.probability === null ? "" : ` ${digits(verdict.probability)}`;
    const shade = isUnsure(verdict) ? "unsure" : verdict.label;
    return make("li", {}, make("span", { class: `chip ${shade}` }, nameState(verdict) + chance), ` ${text}`);
  });
  return [make("h2", {}, "Sentences"), make("ol", { id: "sentences" }, items)];
}

function showQuestions(score) {
  const explanation = score.metrics.q2 && score.metrics.q2.explanation;
  if (!explanation) return [];
  return table("Questions", ["about", "question", "the knowledge answers", "agreement"],
    explanation.questions.filter((question) => question.kept).map((question) => [
      question.span.text, question.question, question.knowledge_answer || "– no answer –", question.value]));
}

function showValues(score) {
  const explanation = score.metrics.values && score.metrics.values.explanation;
  if (!explanation) return [];
  return table("Numbers, dates and names", ["stated", "kind", "outcome", "the knowledge says"],
    explanation.values.map((value) => [value.text, words(value.kind), value.outcome, value.knowledge_says]));
}

function showMetrics(score) {
  return table("Metrics", ["metric", "value", "status"], Object.values(score.metrics).map((metric) => [
    metric.name, metric.value === null ? "–" : metric.value, metric.message ? `${words(metric.status)}: ${metric.message}` : words(metric.status)]));
}

function showTimes(score) {
  const stages = Object.entries(score.timings.stages_ms).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1e-9, ...stages.map(([, ms]) => ms));
  return table(`Times: ${score.timings.total_ms.toFixed(0)} ms in all`, ["model", "milliseconds", ""], stages.map(([name, ms]) => {
    const bar = make("div", { class: "bar" });
    bar.style.width = percent(ms / most);
    return [name, Math.round(ms * 10) / 10, bar];
  }));
}

/** A button that corrects an inconsistent response, and the place of the correction. */
function offerCorrection(score, sent) {
  if (score.verdict.label !== "inconsistent") return [];
  const place = make("div", { id: "correction", role: "status" });
  const button = make("button", { type: "button", id: "correct", class: "second" }, "Correct");
  button.addEventListener("click", () => work(button, "Correcting …", async (signal) => {
    place.replaceChildren(...showCorrection(await send("correct", sent, signal), sent));
  }));
  return [make("p", { class: "row" }, button, make("span", { class: "hint" }, "with words of the knowledge, where they fit")), place];
}

/** What is removed and inserted, and what the verdict on the new response is. */
function showCorrection(correction, sent) {
  if (correction.edits.length === 0) {
    return [make("p", { class: "warning" }, `${words(correction.status)}: ${correction.message || "nothing was changed"}`)];
  }
  const points = Array.from(correction.original);
  const box = make("div", { class: "text", id: "corrected-text", dir: "auto" });
  let at = 0;
  for (const edit of correction.edits) {
    box.append(points.slice(at, edit.start).join(""));
    if (edit.old) box.append(make("del", {}, edit.old));
    if (edit.new) box.append(make("ins", {}, edit.new));
    at = edit.end;
  }
  box.append(points.slice(at).join(""));
  const { label, probability } = correction.after.verdict;
  const use = make("button", { type: "button", class: "second" }, "Check the correction");
  use.addEventListener("click", () => {
    field("response").value = correction.response;
    field("example").value = "";
    field("form").requestSubmit();
  });
  const sources = correction.edits.map((edit) => [
    edit.old || "–", edit.new || "–", words(edit.source), edit.evidence
      ? Array.from(sent.knowledge[edit.evidence.passage]).slice(edit.evidence.start, edit.evidence.end).join("") : "–"]);
  return [make("h2", {}, "Correction"), box,
    make("p", {}, `After it: ${label}, probability ${digits(probability)} (${digits(correction.before.verdict.probability)} before).`),
    ...table("Edits", ["old", "new", "from", "the knowledge says"], sources), make("p", { class: "row" }, use)];
}

/** Buttons that write a link to this check and a labelled row; neither sends anything. */
function offerRecords(score, sent) {
  const link = make("button", { type: "button", id: "link", class: "second" }, "Link to this check");
  link.addEventListener("click", async () => {
    const check = { ...sent, metrics: field("metrics").value };
    history.replaceState(null, "", `#check=${encodeURIComponent(JSON.stringify(check))}`);
    try {
      await navigator.clipboard.writeText(location.href);
      tell("The link is copied. It contains the texts.");
    } catch {
      tell("The link is in the address bar. It contains the texts.");
    }
  });
  const opposite = { consistent: "inconsistent", inconsistent: "consistent" }[score.verdict.label];
  if (!opposite) return [make("p", { class: "row" }, link)];
  const wrong = make("button", { type: "button", id: "wrong", class: "second" }, "This verdict is wrong");
  wrong.addEventListener("click", () => {
    const row = { knowledge: sent.knowledge, history: sent.history, response: sent.response, label: opposite };
    const url = URL.createObjectURL(new Blob([`${JSON.stringify(row)}\n`], { type: "application/jsonl" }));
    make("a", { href: url, download: "labelled.jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
    tell(`labelled.jsonl has this row with the label ${opposite}. Nothing was sent.`);
  });
  return [make("p", { class: "row" }, link, wrong)];
}

function fill({ knowledge, history, response }) {
  field("knowledge").value = knowledge.join("\n\n");
  field("history").value = (history || []).join("\n");
  field("response").value = response;
}

/** Fill the form from a link; the texts stay in the fragment, which a browser does not send. */
function readLink() {
  if (!location.hash.startsWith("#check=")) return;
  try {
    const check = JSON.parse(decodeURIComponent(location.hash.slice("#check=".length)));
    fill(check);
    if (check.metrics in data.metrics) field("metrics").value = check.metrics;
    field("profile").value = check.options.profile || "balanced";
    field("threshold").value = check.options.threshold ?? "";
    field("example").value = "";
    tell("These texts come from the link. Press Check.");
  } catch {
    tell("The link to a check cannot be read: it is cut or changed. Copy the whole link.", true);
  }
}

function showScore(score, sent) {
  const numbers = numberEvidence(score.citations || []);
  result.replaceChildren(
    ...showVerdict(score),
    ...showResponse(Array.from(sent.response), score, numbers),
    ...offerCorrection(score, sent),
    ...offerRecords(score, sent),
    ...showSentences(score),
    ...showKnowledge(sent.knowledge, score, numbers),
    ...showUnsupported(score), ...showQuestions(score), ...showValues(score),
    make("details", {}, make("summary", {}, "Metrics and times"), ...showMetrics(score), ...showTimes(score)),
    make("details", {}, make("summary", {}, "Raw JSON"), make("pre", {}, JSON.stringify(score, null, 2))),
  );
  result.hidden = false;
}

function tell(text, isError = false) {
  field("state").textContent = text;
  field("state").classList.toggle("error", isError);
}

async function send(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (field("token").value) headers.Authorization = `Bearer ${field("token").value}`;
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  const answer = await response.json();
  if (response.ok) return answer;
  if (answer.code === "not_ready") {
    tell("The models are being loaded …");
    await new Promise((resolve) => { setTimeout(resolve, 500); });
    signal.throwIfAborted();
    return send(path, body, signal);
  }
  if (response.status === 401) field("token-field").hidden = false;
  throw new Error([answer.detail, answer.path && `(${answer.path})`].filter(Boolean).join(" "));
}

/** Do something in place of what is running; its button is disabled, and the state says how it went. */
async function work(button, doing, action) {
  if (running) running.controller.abort();
  const mine = running = { controller: new AbortController() };
  for (const other of [field("check"), field("correct")]) if (other) other.disabled = other === button;
  tell(doing);
  try {
    await action(mine.controller.signal);
    tell("Done.");
  } catch (error) {
    if (mine === running) tell(error.message || "The server cannot be reached.", true);
  } finally {
    if (mine === running) {
      running = null;
      button.disabled = false;
    }
  }
}

async function check(event) {
  event.preventDefault();
  if (!field("form").reportValidity()) return;
  const sent = {
    response: field("response").value,
    knowledge: field("knowledge").value.split(/\n\s*\n/).filter((passage) => passage.trim()),
    history: field("history").value.split("\n").filter((turn) => turn.trim()),
    metrics: data.metrics[field("metrics").value],
    options: field("threshold").value ? { threshold: Number(field("threshold").value) } : { profile: field("profile").value },
  };
  await work(field("check"), "Checking …", async (signal) => {
    showScore(await send("score", sent, signal), sent);
    result.focus({ preventScroll: true });
    if (innerWidth < 960) result.scrollIntoView({ block: "start" });
  });
}

for (const [index, example] of data.examples.entries()) field("example").append(make("option", { value: index }, example.title));
for (const name of Object.keys(data.metrics)) field("metrics").append(make("option", { value: name }, name));
field("token-field").hidden = !data.needs_token;
field("example").addEventListener("change", (event) => {
  const example = data.examples[event.target.value];
  if (!example) return;
  fill(example);
  field("form").requestSubmit();
});
for (const name of ["knowledge", "history", "response"]) field(name).addEventListener("input", () => { field("example").value = ""; });
field("form").addEventListener("submit", check);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) field("form").requestSubmit();
});
addEventListener("hashchange", readLink);
result.addEventListener("click", (event) => {
  if (event.target.closest("a.cite")) field("sources").open = true;
});
if (location.hash.startsWith("#check=")) {
  readLink();
} else {
  fill(data.examples[0]);
  field("example").value = 0;
  tell("An example. Press Check, or write texts of your own.");
}
