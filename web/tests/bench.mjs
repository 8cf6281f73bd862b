// Measures the page in Chromium before a real server with generated data (make bench-web): drawing
// many series, completing among many metric names, the first load. It prints a table for
// docs/web.md.
import { cpus } from "node:os";
import { gzipSync } from "node:zlib";
import { readFile } from "node:fs/promises";
import { open, Server, until, visit } from "./harness.mjs";

const drawnSeries = 10_000;
const points = 500;
const names = 200_000;
const rounds = 5;

const results = [];
const report = (what, values, aim) => {
  const sorted = values.map((v) => Math.round(v)).sort((a, b) => a - b);
  results.push([what, `${sorted[sorted.length >> 1]} ms`, `${sorted.at(-1)} ms`, aim]);
};

// store writes lines of the text format.
async function store(server, lines) {
  for (let i = 0; i < lines.length; i += 20_000) {
    const r = await fetch(`${server.url}/api/v1/import/prometheus`, { method: "POST", body: lines.slice(i, i + 20_000).join("\n") + "\n" });
    if (r.status !== 204) throw new Error(`import: ${r.status} ${await r.text()}`);
  }
}

// Watch runs in the page before its script. It records how long the page's thread was busy at a
// time, that is, how long an input would have waited.
function watch() {
  const w = (window.watched = { longest: 0, lastByte: 0, canvas: 0 });
  let last = performance.now();
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    const now = performance.now();
    w.longest = Math.max(w.longest, now - last);
    last = now;
    setTimeout(() => channel.port2.postMessage(0), 1);
  };
  channel.port2.postMessage(0);
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) if (e.name.includes("query_range")) w.lastByte = e.responseEnd;
  }).observe({ type: "resource", buffered: true });
}

// busiest is the longest task of the page's thread in a trace, in ms of processor time: how long an
// input waits on a machine with nothing else to do.
function busiest(trace) {
  const events = JSON.parse(trace.toString()).traceEvents;
  const tasks = events.filter((e) => e.ph === "X" && e.name.endsWith("RunTask") && e.tdur !== undefined);
  const threads = events.filter((e) => e.name === "thread_name" && e.args?.name === "CrRendererMain").map((e) => `${e.pid}.${e.tid}`);
  return Math.max(...tasks.filter((e) => threads.includes(`${e.pid}.${e.tid}`)).map((e) => e.tdur / 1000));
}

async function fresh(browser, url) {
  const page = await visit(browser, "about:blank");
  await page.addInitScript(watch);
  await page.goto(url);
  return page;
}

// draw asks for all series, and waits until the graph is on the screen and its legend is there.
async function draw(browser, server, now) {
  const url = `${server.url}/#/explore?range=250s&end=${new Date(now).toISOString()}&g0.step_input=500ms&g0.expr=bench_value`;
  const page = await fresh(browser, `${server.url}/#/explore?range=250s`);
  await page.locator(".editor").waitFor();
  await browser.startTracing(page, { categories: ["toplevel"] });
  await page.evaluate(() => (window.watched.longest = 0));
  await page.evaluate((u) => {
    window.begun = performance.now();
    location.href = u;
    const w = window.watched;
    const look = () => {
      if (!document.querySelector(".graph canvas") || document.querySelector('.result[aria-busy="true"], .graph[aria-busy="true"]')) return requestAnimationFrame(look);
      requestAnimationFrame(() => setTimeout(() => (w.canvas = performance.now())));
    };
    look();
  }, url);
  await until("the graph is drawn", () => page.evaluate(() => window.watched.canvas > 0));
  // The figures of the network are reported after the response's end.
  await until("the last byte is known", () => page.evaluate(() => window.watched.lastByte > 0));
  const w = await page.evaluate(() => ({ ...window.watched, begun: window.begun }));
  const task = busiest(await browser.stopTracing());
  await page.context().close();
  return { drawn: w.canvas - w.lastByte, frozen: w.longest, task, total: w.canvas - w.begun };
}

// complete types a name, a key at a time, and measures from each key until the list is drawn.
async function complete(browser, server) {
  const page = await fresh(browser, `${server.url}/#/explore?range=1h`);
  await page.locator(".editor").click();
  await page.keyboard.type("bench");
  await page.getByText("bench_name_000").first().waitFor();
  await page.evaluate(() => {
    window.watched.longest = 0;
    window.keys = [];
    const root = document.querySelector(".editor").shadowRoot;
    addEventListener(
      "keydown",
      () => {
        const at = performance.now();
        const text = () => root.querySelector(".cm-tooltip-autocomplete [aria-selected]")?.textContent;
        const content = () => root.querySelector(".cm-content").textContent;
        const before = content();
        const look = () => {
          const typed = content();
          if (typed === before || !text()?.includes(typed)) return requestAnimationFrame(look);
          requestAnimationFrame(() => setTimeout(() => window.keys.push(performance.now() - at)));
        };
        requestAnimationFrame(look);
      },
      true,
    );
  });
  let n = 0;
  for (const key of "_name_1234") {
    await page.keyboard.press(key);
    n++;
    await until("the list is drawn", () => page.evaluate((m) => window.keys.length >= m, n));
  }
  const w = await page.evaluate(() => ({ keys: window.keys, longest: window.watched.longest }));
  await page.context().close();
  return w;
}

async function firstLoad(browser, server) {
  const page = await fresh(browser, `${server.url}/#/explore`);
  await page.locator(".editor").waitFor();
  const ms = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
  await page.context().close();
  return ms;
}

const server = await Server.start();
const browser = await open();
try {
  const now = Math.floor(Date.now() / 1000) * 1000;
  const lines = [];
  for (let t = now - 270_000; t <= now; t += 30_000) for (let i = 0; i < drawnSeries; i++) lines.push(`bench_value{instance="host-${i % 100}",device="disk-${Math.floor(i / 100)}"} ${((i * 7919) % 1000) + 50 * Math.sin(i + t / 30_000)} ${t}`);
  await store(server, lines);
  const loads = [];
  for (let i = 0; i < rounds; i++) loads.push(await firstLoad(browser, server));
  report("First load until the editor is there", loads, "1,000 ms");
  const drawings = [];
  for (let i = 0; i < rounds; i++) drawings.push(await draw(browser, server, now));
  report(`${drawnSeries} series × ${points} points: from the last byte until they are drawn`, drawings.map((d) => d.drawn), "1,000 ms");
  report("… the longest task, in processor time", drawings.map((d) => d.task), "100 ms");
  report("… the longest time without a reaction to input", drawings.map((d) => d.frozen), "100 ms");
  report("… from the click until they are drawn", drawings.map((d) => d.total), "–");

  await store(server, Array.from({ length: names }, (_, i) => `bench_name_${String(i).padStart(6, "0")}_total 1 ${now}`));
  const typed = [];
  for (let i = 0; i < 2; i++) typed.push(await complete(browser, server));
  report(`${names} metric names: from a key until the list is drawn`, typed.flatMap((t) => t.keys), "50 ms");
  report("… the longest time without a reaction to input", typed.map((t) => t.longest), "100 ms");
} finally {
  await browser.close();
  await server.stop();
}
let size = 0;
for (const file of ["index.html", "assets/page.js", "assets/page.css"]) size += gzipSync(await readFile(new URL(`../dist/${file}`, import.meta.url))).length;
console.log(`${cpus().length} processors, ${cpus()[0].model}; page: ${Math.round(size / 1000)} kB compressed\n`);
for (const row of [["what", "median", "most", "aim"], ["---", "---", "---", "---"], ...results]) console.log(`| ${row.join(" | ")} |`);
