// Measures the page in Chromium before a real server with generated data (make bench-web): drawing
// many series, completing among many metric names, the first load, dashboards; and the page of
// Debian's prometheus, where it can do the same (PEER=no leaves it out). It prints a table for
// docs/web.md.
import { gzipSync } from "node:zlib";
import { readFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { measured } from "./bench-peer.mjs";
import { open, Server, until } from "./harness.mjs";
import { drawing, fresh, typing } from "./measure.mjs";

const drawnSeries = 10_000;
const length = 499; // seconds; with a step of one, 500 points
const names = 200_000;
const panels = 30;
const rounds = 5;
const peerRounds = 3; // a drawing takes it half a minute
const keys = "_name_1234";

const written = (n) => n.toLocaleString("en");
const row = (what, values, peer, aim) => {
  const [median, most] = [values, peer ?? []].map((all) => all.map(Math.round).sort((a, b) => a - b)).map((all) => [all[all.length >> 1], all.at(-1)]).map(([m, top]) => (m === undefined ? "–" : `${written(m)} (${written(top)})`));
  return `| ${[what, median, most, aim].join(" | ")} |`;
};

// store writes lines of the text format.
async function store(server, lines) {
  for (let i = 0; i < lines.length; i += 20_000) {
    const r = await fetch(`${server.url}/api/v1/import/prometheus`, { method: "POST", body: lines.slice(i, i + 20_000).join("\n") + "\n" });
    if (r.status !== 204) throw new Error(`import: ${r.status} ${await r.text()}`);
  }
}

async function firstLoad(browser, server) {
  const page = await fresh(browser, `${server.url}/#/explore`);
  await page.locator(".editor").waitFor();
  const ms = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
  await page.context().close();
  return ms;
}

// draw asks for all series, and waits until the graph is on the screen and its legend is there.
async function draw(browser, server, now) {
  const url = `${server.url}/#/explore?range=${length}s&end=${new Date(now).toISOString()}&g0.step_input=1s&g0.expr=bench_value`;
  const page = await fresh(browser, `${server.url}/#/explore?range=${length}s`);
  await page.locator(".editor").waitFor();
  const ready = () => document.querySelector(".graph canvas") && !document.querySelector('.result[aria-busy="true"], .graph[aria-busy="true"]') && document.querySelector(".key");
  const figures = await drawing(browser, page, () => page.evaluate((u) => void (location.href = u), url), ready);
  await page.context().close();
  return figures;
}

// complete types a name, a key at a time, and measures from each key until the list is drawn.
async function complete(browser, server) {
  const page = await fresh(browser, `${server.url}/#/explore?range=1h`);
  await page.locator(".editor").click();
  await page.keyboard.type("bench");
  await page.getByText("bench_name_000").first().waitFor();
  const figures = await typing(page, "bench", keys, () => document.querySelector(".editor").shadowRoot.querySelector(".cm-tooltip-autocomplete [aria-selected]")?.textContent);
  await page.context().close();
  return figures;
}

// refresh opens a dashboard whose panels draw a hundred lines or one, and refreshes it.
async function refresh(browser, server, now) {
  const page = await fresh(browser, "about:blank", { viewport: { width: 1280, height: 2400 } });
  const many = { title: "Many", panels: Array.from({ length: panels }, (_, i) => ({ type: "timeseries", title: `Host ${i}`, gridPos: { x: (i % 6) * 4, y: Math.floor(i / 6) * 7, w: 4, h: 7 }, targets: [{ refId: "A", expr: i % 2 ? `sum by (instance) (rate(bench_value{instance="host-${i}"}[2m]))` : `bench_value{instance="host-${i}"}` }] })) };
  await page.route("**/api/v1/dashboards/many.json", (route) => route.fulfill({ json: { status: "success", data: many } }));
  await page.goto(`${server.url}/#/dashboards?range=15m&end=${new Date(now).toISOString()}&dash=file%3Amany.json`);
  await page.waitForFunction((n) => document.querySelectorAll(".card canvas").length === n, panels);
  await until("nothing is asked", () => page.evaluate(() => !document.querySelector('[aria-busy="true"]')));
  const ms = await page.evaluate(async () => {
    const begun = performance.now();
    document.activeElement?.blur();
    dispatchEvent(new KeyboardEvent("keydown", { key: "r" }));
    while (!document.querySelector('.card[aria-busy="true"]')) await new Promise(requestAnimationFrame); // the variables come first
    while (document.querySelector('[aria-busy="true"]')) await new Promise(requestAnimationFrame);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - begun;
  });
  await page.context().close();
  return ms;
}

// firstView starts a server as make run does, and measures from when it is ready until the first
// dashboard shows this machine.
async function firstView(browser) {
  const server = await Server.start("--demo");
  const begun = performance.now();
  try {
    const page = await fresh(browser, server.url);
    await page.waitForFunction(() => ["[role=meter]", ".card canvas"].every((what) => document.querySelector(what)));
    const ms = performance.now() - begun;
    await page.context().close();
    return ms;
  } finally {
    await server.stop();
  }
}

const repeated = async (n, one) => {
  const out = [];
  for (let i = 0; i < n; i++) out.push(await one());
  return out;
};

const now = Math.floor(Date.now() / 60_000) * 60_000;
const lines = [];
for (let t = now - 540_000; t <= now; t += 60_000) for (let i = 0; i < drawnSeries; i++) lines.push(`bench_value{instance="host-${i % 100}",device="disk-${Math.floor(i / 100)}"} ${((i * 7919) % 1000) + 50 * Math.sin(i + t / 30_000)} ${t}`);
const named = Array.from({ length: names }, (_, i) => `bench_name_${String(i).padStart(6, "0")}_total 1 ${now}`);

const began = loadavg()[0];
const browser = await open();
let loads, drawings, refreshes, typed, views, peer;
try {
  views = await repeated(rounds, () => firstView(browser));
  const server = await Server.start();
  try {
    await store(server, lines);
    loads = await repeated(rounds, () => firstLoad(browser, server));
    drawings = await repeated(rounds, () => draw(browser, server, now));
    refreshes = await repeated(rounds, () => refresh(browser, server, now));
    await store(server, named);
    typed = await repeated(2, () => complete(browser, server));
  } finally {
    await server.stop();
  }
  if (process.env.PEER !== "no") peer = await measured(browser, peerRounds, now, { lines, length, names: named, keys });
} finally {
  await browser.close();
}
let size = 0;
for (const file of ["index.html", "assets/page.js", "assets/page.css", "assets/worker.js"]) size += gzipSync(await readFile(new URL(`../dist/${file}`, import.meta.url))).length;
const of = (name) => [drawings.map((d) => d[name]), peer?.drawings.map((d) => d[name])];
console.log(`${cpus().length} processors, ${cpus()[0].model}, load ${began.toFixed(1)} before and ${loadavg()[0].toFixed(1)} after; page: ${Math.round(size / 1000)} kB compressed\n`);
console.log(`| median of ${rounds}, of Prometheus ${peerRounds} (most), ms | Promlake | Debian's Prometheus | aim |\n|---|---|---|---|`);
console.log(row("First load until the editor is there", loads, peer?.loads, "1,000"));
console.log(row(`${written(drawnSeries)} series × ${length + 1} points: from the last byte until they are drawn`, ...of("drawn"), "1,000"));
console.log(row("the same: the longest task of the page's thread, in processor time", ...of("task"), "100"));
console.log(row("the same: the longest time that a key waited for a reaction", ...of("frozen"), "100"));
console.log(row("the same: from the click until they are drawn, with the server's time", ...of("total"), "–"));
console.log(row(`${written(names)} metric names: from a key until the list is drawn`, typed.flat(), peer?.typed.flat(), "50"));
console.log(row(`Refresh of a dashboard of ${panels} panels`, refreshes, undefined, "2,000"));
console.log(row("`make run`: from the server's readiness until the first dashboard shows this machine", views, undefined, "10,000"));
