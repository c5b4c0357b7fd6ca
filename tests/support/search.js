// Asks the search of a built site, as its pages do: node search.js SITE QUERY …
// Prints the locations that are listed for each query, best first, as JSON.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const workers = path.join(site, "assets", "javascripts", "workers");
const code = fs.readFileSync(path.join(workers, fs.readdirSync(workers).find((name) => /^search\..*\.js$/.test(name))), "utf8");
const { config, docs } = JSON.parse(fs.readFileSync(path.join(site, "search", "search_index.json"), "utf8"));

const handlers = [];
const answers = [];
const worker = vm.createContext({
  console, performance, setTimeout, URL,
  location: { href: "file:///" },
  importScripts() {},
  addEventListener(type, handler) { if (type === "message") handlers.push(handler); },
  postMessage(message) { answers.push(message); },
});
worker.self = worker;
vm.runInContext(code, worker);

async function ask(type, data) {
  answers.length = 0;
  for (const handler of handlers) await handler({ data: { type, data } });
  return answers;
}

(async () => {
  const [SETUP, QUERY, RESULT] = [0, 2, 3];
  await ask(SETUP, { config, docs, options: { suggest: false } });
  const listed = {};
  for (const query of queries) {
    const answer = (await ask(QUERY, query)).find((message) => message.type === RESULT);
    listed[query] = answer.data.items.map(([first]) => first.location);
  }
  console.log(JSON.stringify(listed));
})();
