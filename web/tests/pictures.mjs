// Takes the pictures of docs/web.md (make pictures), of a server with made-up machines. It writes
// WebP files of at most 100 kB into a folder.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { open, Server, until, visit } from "./harness.mjs";

const folder = process.argv[2] ?? "../docs/images";
const largest = 100_000;
const minute = 60_000;
const hour = 60 * minute;
const now = Math.floor(Date.now() / minute + 2) * minute; // the pictures show the server's own rates, too

// random is the same sequence in each run.
function random(seed) {
  return () => ((seed = (seed * 48271) % 2147483647) - 1) / 2147483646;
}

// machine is the text exposition of one machine: its load follows the time of day.
function machine(instance, seed, start, end, step) {
  const next = random(seed);
  const lines = [];
  const put = (name, labels, v, t) => lines.push(`${name}{job="node",instance="${instance}"${labels}} ${v} ${t}`);
  const sums = {};
  const add = (key, n) => (sums[key] = (sums[key] ?? 1000 * seed) + n);
  let drift = 0.3;
  for (let t = start; t <= end; t += step) {
    drift = Math.min(0.9, Math.max(0.05, drift + (next() - 0.5) * 0.05));
    const busy = Math.min(0.95, Math.max(0.03, drift * (0.7 + 0.3 * Math.sin(t / (4 * hour) + seed))));
    const seconds = step / 1000;
    for (const [mode, share] of [["user", 0.6 * busy], ["system", 0.25 * busy], ["iowait", 0.1 * busy], ["softirq", 0.05 * busy], ["idle", 1 - busy]]) {
      for (const cpu of [0, 1, 2, 3]) put("node_cpu_seconds_total", `,mode="${mode}",cpu="${cpu}"`, add(mode + cpu, seconds * share * (0.9 + 0.2 * next())).toFixed(2), t);
    }
    for (const [name, smooth] of [["1", 1], ["5", 0.6], ["15", 0.35]]) put(`node_load${name}`, "", (4 * busy * smooth + 0.2 * next()).toFixed(2), t);
    put("node_memory_MemTotal_bytes", "", 16 * 2 ** 30, t);
    put("node_memory_MemAvailable_bytes", "", Math.round(2 ** 30 * (11 - 6 * busy - next() / 4)), t);
    put("node_filesystem_size_bytes", ',mountpoint="/"', 200e9, t);
    put("node_filesystem_avail_bytes", ',mountpoint="/"', Math.round(90e9 - ((t - start) / hour) * 2e8 - seed * 1e9), t);
    for (const [name, factor] of [["network_receive", 4e6], ["network_transmit", 1.5e6]]) put(`node_${name}_bytes_total`, ',device="eth0"', Math.round(add(name, seconds * factor * busy * (0.6 + next()))), t);
    for (const [name, factor] of [["read", 1e6], ["written", 6e6]]) put(`node_disk_${name}_bytes_total`, ',device="nvme0n1"', Math.round(add("disk" + name, seconds * factor * busy * (0.5 + next()))), t);
    put("up", "", 1, t);
  }
  return lines;
}

async function store(server) {
  for (const [i, instance] of ["web-1:9100", "web-2:9100", "db-1:9100"].entries()) {
    for (const [start, end, step] of [[now - 72 * hour, now - 4 * hour - 5 * minute, 5 * minute], [now - 4 * hour, now, 15_000]]) {
      const lines = machine(instance, 7 + i, start, end, step);
      for (let at = 0; at < lines.length; at += 50_000) {
        const r = await fetch(`${server.url}/api/v1/import/prometheus`, { method: "POST", body: lines.slice(at, at + 50_000).join("\n") + "\n" });
        assert.equal(r.status, 204, await r.text());
      }
    }
  }
}

const api = (server, path) => fetch(`${server.url}/api/v1/${path}`).then((r) => r.json());

// take writes what the page shows. Chromium itself encodes the picture.
async function take(page, name) {
  await until(`${name} is complete`, async () => (await page.locator('[aria-busy="true"]').count()) === 0);
  const png = (await page.screenshot({ animations: "disabled" })).toString("base64");
  const other = await page.context().newPage();
  const bytes = await other.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext("2d").drawImage(image, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.8 });
    return [...new Uint8Array(await blob.arrayBuffer())];
  }, png);
  await other.close();
  assert.ok(bytes.length <= largest, `${name}: ${bytes.length} bytes`);
  await writeFile(join(folder, `${name}.webp`), Uint8Array.from(bytes));
  console.log(`${name}.webp: ${Math.round(bytes.length / 1000)} kB`);
}

await mkdir(folder, { recursive: true });
const server = await Server.start("--self.url=here", "--self.tenant=anonymous", "--self.interval=1s", "--compactor.compaction-interval=1s", "--ingest.flush-timeout=2s", "--ingest.settle-delay=3s", "--compactor.settle-delay=3s", "--compactor.late-delay=1s", "--compactor.window-delay=1s");
const browser = await open();
try {
  await store(server);
  await until("the old windows are compacted", async () => {
    const { data } = await api(server, "status/lake");
    // At noon, the windows of 2 h become one of 12 h.
    return [/^24h$/, /^(2|12)h$/].every((level) => data.levels.some((l) => level.test(l.level)));
  });
  await until("the end of the pictures has passed", () => Date.now() > now + 5_000);
  const end = new Date(now).toISOString();
  const expr = encodeURIComponent('sum by (instance, mode) (rate(node_cpu_seconds_total{mode!="idle"}[2m]))');
  const loads = encodeURIComponent("node_load1");
  const views = {
    dashboard: `dashboards?range=3h&end=${end}&tz=utc`,
    explore: `explore?range=3h&end=${end}&tz=utc&g0.expr=${expr}&g0.stacked=1&g1.expr=${loads}`,
    metrics: `explore?range=3h&end=${end}&tz=utc`,
    explain: `explain?range=3h&end=${end}&tz=utc&g0.expr=${expr}`,
    lake: "lake?range=3h&tz=utc",
    cardinality: "cardinality?range=3h&tz=utc",
    queries: "queries?tz=utc",
  };
  const slow = new AbortController(); // ends the statement of the picture of queries
  for (const [name, view] of Object.entries(views)) {
    const page = await visit(browser, `${server.url}/#/${view}`, { viewport: { width: 1280, height: 860 }, colorScheme: "light" });
    if (name === "metrics") {
      await page.getByLabel("Find metrics by name, help text, unit or labels").fill("node_");
      await page.getByRole("button", { name: "node_cpu_seconds_total" }).click();
    }
    if (name === "queries") {
      for (const [program, query] of [["Grafana/12.3.0", "sum by (mode) (rate(node_cpu_seconds_total[5m]))"], ["curl/8.14.1", "node_load1"]]) {
        for (let n = 0; n < 20; n++) await fetch(`${server.url}/api/v1/query?query=${encodeURIComponent(query)}`, { headers: { "User-Agent": program } });
      }
      const statement = "SELECT metric, count(*) FROM samples, range(1000000) GROUP BY ALL";
      fetch(`${server.url}/api/v1/sql?query=${encodeURIComponent(statement)}`, { signal: slow.signal, headers: { "User-Agent": "DBeaver/25.3" } }).catch(() => undefined);
      await page.getByRole("button", { name: /^End query/ }).first().waitFor();
      await page.getByLabel("Days").selectOption("Today"); // which asks anew
    }
    await page.locator("main canvas, main table, main h3").first().waitFor();
    await take(page, name);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
  slow.abort();
} finally {
  await browser.close();
  await server.stop();
}
