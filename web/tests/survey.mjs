// Says how the page draws the Grafana dashboards of a folder, without a browser: how many panels of
// each type it draws as in Grafana, with a note, or not at all, and the most frequent reasons.
//
//   node tests/survey.mjs FOLDER [REASONS]
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { bundled } from "./bundled.mjs";

const [folder, most = "40"] = process.argv.slice(2);
const { read, asks } = await bundled("dashboards/model.ts");

const counts = () => new Map();
const add = (map, key, n = 1) => map.set(key, (map.get(key) ?? 0) + n);
const ranked = (map) => [...map].sort(([, a], [, b]) => b - a).slice(0, Number(most));
const share = (n, all) => `${((n / all) * 100).toFixed(1)} %`;

// reasons are the keys of a note without what differs between panels.
function reasons(note) {
  const keys = /^Not drawn as in Grafana: (.*)\.$/s.exec(note)?.[1];
  return keys ? keys.split(", ") : [note.replace(/^(Query|The variable) \S+/, "$1")];
}

const states = ["as in Grafana", "with a note", "not drawn"];
const types = counts(); // by type: the number of panels in each state
const found = [counts(), counts(), counts()]; // reasons of panels with a note; types that are not drawn; reasons of dashboards
const files = (await readdir(folder, { recursive: true })).filter((f) => f.endsWith(".json"));
let dashboards = 0;
for (const f of files) {
  let d;
  try {
    d = read(JSON.parse(await readFile(join(folder, f), "utf8")));
  } catch (e) {
    console.error(`${f}: ${e.message}`);
    continue;
  }
  dashboards++;
  for (const r of new Set(d.notes.flatMap(reasons))) add(found[2], r);
  for (const p of d.sections.flatMap((s) => s.panels)) {
    const state = !asks(p.type) && p.type !== "text" ? 2 : p.notes.length ? 1 : 0;
    if (!types.has(p.type)) types.set(p.type, [0, 0, 0]);
    types.get(p.type)[state]++;
    if (state === 2) add(found[1], p.type);
    if (state === 1) for (const r of new Set(p.notes.flatMap(reasons))) add(found[0], r);
  }
}

const totals = states.map((_, i) => [...types.values()].reduce((sum, n) => sum + n[i], 0));
const all = totals.reduce((a, b) => a + b);
console.log(`${dashboards} of ${files.length} dashboards, ${all} panels: ${states.map((s, i) => `${s} ${totals[i]} (${share(totals[i], all)})`).join(", ")}`);
console.log(`\n${["type", ...states].join("\t")}`);
for (const [type, n] of [...types].sort(([, a], [, b]) => b[0] + b[1] + b[2] - a[0] - a[1] - a[2])) console.log([type, ...n].join("\t"));
for (const [i, title] of ["Panels with a note", "Panels that are not drawn", "Notes of dashboards"].entries()) {
  console.log(`\n${title}, by reason`);
  for (const [reason, n] of ranked(found[i])) console.log(`${n}\t${reason}`);
}
