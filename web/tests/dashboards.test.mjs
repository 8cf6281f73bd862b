// Dashboards of Grafana on the page, in a real browser before a real server that stores this
// machine's metrics and those of a small cluster.
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { exposition } from "./dashboards/series.mjs";
import { cluster, goRuntime, hostile, kubernetes, legacy, nodeExporter, strange } from "./fixtures.mjs";
import { close, open, serious, Server, until, visit } from "./harness.mjs";

// Dashboards that people have from Grafana's collection: their structure, written after the
// documentation of their exporters. What a panel cannot show is named on it.
const collection = new URL("dashboards/", import.meta.url).pathname;
const collected = { alertmanager: [], blackbox: [], cadvisor: [], mysql: [], nginx: [], postgresql: [], prometheus: [], redis: [] };
const largest = 8_000; // bytes of a file

let server, browser, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "promlake-page-dashboards-"));
  await mkdir(join(folder, "team"));
  for (const [name, dashboard] of Object.entries({ node: nodeExporter, "team/kubernetes": kubernetes, go: goRuntime, legacy, strange })) await writeFile(join(folder, `${name}.json`), JSON.stringify(dashboard));
  await writeFile(join(folder, "broken.json"), "{");
  for (const name of Object.keys(collected)) await cp(join(collection, `${name}.json`), join(folder, "collection", `${name}.json`));
  server = await Server.start("--demo", "--demo.interval=1s", "--web.dashboards", folder);
  await until("rates of this machine are there", async () => {
    const r = await fetch(`${server.url}/api/v1/query?query=${encodeURIComponent("rate(node_network_receive_bytes_total[1m]) and on() rate(prometheus_rule_evaluation_duration_histogram_seconds_bucket[1m])")}`).then((x) => x.json());
    return r.data.result.length > 0;
  });
  browser = await open();
});

after(async () => {
  await close(browser);
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

// write stores the last minutes of the cluster's metrics. Instant queries find them for five
// minutes.
async function write(text = cluster) {
  const written = await fetch(`${server.url}/api/v1/import/prometheus`, { method: "POST", body: text(Math.floor(Date.now() / 15_000) * 15_000) });
  assert.equal(written.status, 204, await written.text());
}

const link = (dash, more = "") => `${server.url}/#/dashboards?range=15m&dash=${encodeURIComponent(dash)}${more}`;
const card = (page, name) => page.getByRole("region", { name, exact: true });

// drawn scrolls to a panel and waits until it shows something. It refreshes the page, because the
// first steps of a graph may be older than the server.
async function drawn(page, name, what) {
  const c = card(page, name);
  await c.scrollIntoViewIfNeeded();
  await until(`${name} shows ${what}`, async () => {
    if (await c.locator(what).first().isVisible()) return true;
    if ((await page.locator('[aria-busy="true"]').count()) === 0) {
      await page.evaluate(() => document.activeElement?.blur());
      await page.keyboard.press("r");
    }
    return false;
  });
  return c;
}

test("the machine's dashboard is live, and its panels open in Explore", async () => {
  const page = await visit(browser, server.url);
  for (const name of ["CPU in use", "Memory in use"]) await drawn(page, name, "[role=meter]");
  await drawn(page, "Load average", "canvas");
  assert.equal(await page.getByLabel("Refresh", { exact: true }).inputValue(), "5s");
  await card(page, "Load average").hover();
  await page.getByRole("button", { name: "Explore Load average" }).click();
  assert.match(page.url(), /#\/explore\?.*node_load15/);
  assert.deepEqual(page.faults, []);
});

test("/dashboards leads to the operations dashboard", async () => {
  const page = await visit(browser, `${server.url}/dashboards`);
  await drawn(page, "Samples written", "canvas");
  assert.equal(await page.getByLabel("Dashboard", { exact: true }).inputValue(), "promlake-operations");
  assert.equal(await page.locator(".card-notes").count(), 0);
  // Panels out of sight have asked nothing yet.
  assert.equal(await card(page, "Dollars a day by component").locator("canvas").count(), 0);
  await drawn(page, "Dollars a day by component", "canvas");
  await until("all queries are answered", async () => (await page.locator('[aria-busy="true"]').count()) === 0);
  assert.equal(await page.locator("main [role=alert]").count(), 0);
  assert.deepEqual(page.faults, []);
});

test("a dashboard of a machine: chained variables, old graphs, rows", async () => {
  const page = await visit(browser, link("file:node.json"));
  const busy = await drawn(page, "CPU busy", "[role=meter]");
  assert.match(await busy.getByRole("meter").getAttribute("aria-valuetext"), /^[\d.]+ %$/);
  const memory = await drawn(page, "Memory", "[role=meter]");
  assert.deepEqual(await memory.locator(".stat-name").allTextContents(), ["Total", "Available"]);
  assert.match(await memory.locator(".bar-value").first().textContent(), /iB$/);
  const host = await page.getByLabel("Host").inputValue();
  const network = await drawn(page, `Network of ${host}`, ".key");
  assert.deepEqual((await network.locator(".key").allTextContents()).filter((t) => t.startsWith("lo")), ["lo in", "lo out"]);
  // A collapsed row asks when it is opened.
  await page.getByText("Memory details").click();
  await drawn(page, "Cached", "canvas");
  // One device, by the keyboard.
  await page.locator("summary", { hasText: "All" }).focus();
  for (const key of ["Enter", "Tab", "Space", "Tab"]) await page.keyboard.press(key);
  await until("the second box has the focus", () => page.evaluate(() => document.activeElement?.type === "checkbox"));
  await page.keyboard.press("Space");
  await page.keyboard.press("Escape");
  await until("the address has the device", async () => /var-device=/.test(page.url()));
  await until("one device is drawn", async () => (await network.locator(".key").count()) === 2);
  const copy = await visit(browser, page.url());
  await drawn(copy, `Network of ${host}`, ".key");
  assert.equal(await card(copy, `Network of ${host}`).locator(".key").count(), 2);
  assert.deepEqual([...page.faults, ...copy.faults], []);
});

test("a dashboard of a cluster: repeated panels and rows, tables of several queries", async () => {
  await write();
  const page = await visit(browser, link("file:team/kubernetes.json"));
  const pods = await drawn(page, "Pods", "tbody tr");
  assert.deepEqual(await pods.locator("thead th").allTextContents(), ["Pod", "namespace", "Memory"]);
  assert.deepEqual(await pods.locator("tbody tr").evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.textContent).join(" "))), ["web-2 alpha 2 MiB", "web-1 alpha 1 MiB", "db-1 beta 1 MiB"]);
  await pods.getByText("Not as in Grafana").click();
  await pods.getByText("Not drawn as in Grafana: transformation extractFields.").waitFor();
  await page.getByText("Annotations are not drawn: Deployments.").waitFor();
  await page.getByText("The variable search is left out: its type is adhoc.").waitFor();
  // One panel for each namespace, the last by name first.
  assert.equal(await (await drawn(page, "Pods of beta", ".stat-value")).locator(".stat-value").textContent(), "one pod");
  assert.equal(await (await drawn(page, "Pods of alpha", ".stat-value")).locator(".stat-value").textContent(), "2");
  assert.deepEqual(await page.locator(".section h2").allTextContents().then((all) => all.filter((t) => t.startsWith("Namespace"))), ["Namespace beta", "Namespace alpha"]);
  const cpu = page.locator(".section", { hasText: "Namespace alpha" });
  await cpu.scrollIntoViewIfNeeded();
  await until("both pods are drawn", async () => (await cpu.locator(".key").allTextContents()).join(" ") === "web-1 web-2");
  assert.deepEqual(page.faults, []);
});

test("a dashboard of a Go program: heatmap, names of values, legends", async () => {
  const page = await visit(browser, link("file:go.json"));
  assert.match(await (await drawn(page, "Version", ".stat-value")).locator(".stat-value").textContent(), /^go1/);
  const goroutines = await drawn(page, "Goroutines of Promlake", ".key");
  assert.deepEqual(await goroutines.locator(".keys thead th").allTextContents(), ["Series", "mean", "max"]);
  assert.match(await goroutines.locator(".keys tbody tr").textContent(), /^goroutines[\d.]+$/);
  const heat = await drawn(page, "Rule evaluations", "canvas");
  assert.equal(await heat.locator(".key").count(), 0);
  await drawn(page, "Pauses", "canvas");
  assert.equal(await page.locator("main [role=alert]").count(), 0);
  assert.deepEqual(page.faults, []);
});

for (const [name, unsupported] of Object.entries(collected)) {
  test(`the dashboard ${name} renders`, async () => {
    assert.ok((await stat(join(collection, `${name}.json`))).size <= largest);
    await write(exposition);
    const page = await visit(browser, link(`file:collection/${name}.json`), { viewport: { width: 1280, height: 3000 } });
    await page.locator(".card").first().waitFor();
    for (const row of await page.locator("details.section:not([open]) > summary").all()) await row.click();
    const empty = () => page.locator(".card").evaluateAll((cards) => cards.filter((c) => !c.querySelector("canvas, [role=meter], tbody tr, .stat-value, .stat-name, .words, li button.expr") && !/not supported|No alerts/.test(c.textContent)).map((c) => c.textContent));
    await until("every panel shows something", async () => {
      if ((await page.locator('[aria-busy="true"]').count()) > 0) return false;
      if ((await empty()).length === 0) return true;
      await page.evaluate(() => document.activeElement?.blur());
      await page.keyboard.press("r");
      return false;
    });
    assert.deepEqual(await page.locator("main [role=alert]").allTextContents(), []);
    assert.deepEqual(await page.locator("main .card p.warn").allTextContents(), unsupported);
    // A row or panel of a variable has the name of its value, also if all values are chosen and
    // there is only one.
    assert.deepEqual(await page.locator("main h2").allTextContents().then((all) => all.filter((t) => /^All |\$/.test(t))), []);
    assert.deepEqual(page.faults, []);
  });
}

test("a file of an old Grafana is opened from the disk, and kept by the tab", async () => {
  const page = await visit(browser, server.url);
  await page.getByLabel("Dashboard file").setInputFiles({ name: "old.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(legacy)) });
  assert.match(await (await drawn(page, "Targets up", ".stat-value")).locator(".stat-value").textContent(), /^[\d.]+ %$/);
  await drawn(page, "Scrapes", ".key");
  await page.reload();
  await drawn(page, "Scrapes", ".key");
  // Dropped files are opened too; what is wrong with one is named.
  const drop = (name, content) =>
    page.evaluate(([n, c]) => {
      const data = new DataTransfer();
      data.items.add(new File([c], n));
      document.querySelector(".dashboards").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }, [name, content]);
  for (const [content, error] of [["{", "drop.json: The file is not JSON"], ["{}", 'neither "panels" nor "rows"'], ['{"apiVersion":"v2","spec":{"elements":{}}}', "schema v2"]]) {
    await drop("drop.json", content);
    await page.locator("main [role=alert]", { hasText: error }).waitFor();
  }
  await drop("drop.json", JSON.stringify({ title: "x", panels: [{ type: "text", title: "Dropped", gridPos: { x: 0, y: 0, w: 24, h: 4 }, options: { content: "# heading" } }] }));
  await card(page, "Dropped").getByText("# heading").waitFor();
  assert.match(page.url(), /dash=opened:drop/);
  assert.deepEqual(page.faults, []);
});

test("what cannot be shown is named, and what looks like markup is text", async () => {
  const page = await visit(browser, link("file:strange.json"));
  await page.getByText(`${hostile} of node`).waitFor();
  const shares = card(page, "Shares");
  await shares.getByText("Panels of type candlestick are not supported.").waitFor();
  const up = await drawn(page, `${hostile} ${hostile}`, ".key");
  assert.equal(await up.locator(".key").textContent(), `${hostile} node`);
  await up.locator(".card-notes summary").click();
  await up.getByText("Not drawn as in Grafana: overrides byValue.").waitFor();
  await card(page, "Logs").locator(".card-notes summary").click();
  await card(page, "Logs").getByText("its data source is loki").waitFor();
  await card(page, "Broken").scrollIntoViewIfNeeded();
  await card(page, "Broken").getByText("parse error").waitFor();
  await card(page, "Nothing").getByText("No data").waitFor();
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("img, main script").count(), 0);
  await shares.getByRole("button", { name: "sum by (job) (up)" }).click();
  await until("the query is in Explore", async () => /#\/explore\?.*sum\+by/.test(page.url()));
  assert.deepEqual(page.faults, []);

  await page.goto(link("file:broken.json"));
  await page.locator("main [role=alert]", { hasText: 'dashboard "broken.json" is not JSON' }).waitFor();
  await page.goto(link("nothing"));
  await page.locator("main [role=alert]", { hasText: 'There is no dashboard "nothing"' }).waitFor();
});

test("thirty panels ask at most six queries at once", async () => {
  const page = await visit(browser, "about:blank");
  let now = 0;
  let most = 0;
  let all = 0;
  await page.route(/\/query_range(\?|$)/, async (route) => {
    most = Math.max(most, ++now);
    const at = Math.floor(Date.now() / 1000);
    all++;
    await new Promise((done) => setTimeout(done, 20));
    now--;
    await route.fulfill({ json: { status: "success", data: { resultType: "matrix", result: [{ metric: { a: "b" }, values: [[at - 60, "1"], [at - 30, "2"]] }] } } });
  });
  await page.route("**/api/v1/dashboards/many.json", (route) =>
    route.fulfill({ json: { status: "success", data: { title: "Many", panels: Array.from({ length: 30 }, (_, i) => ({ type: "timeseries", title: `Panel ${i}`, gridPos: { x: (i % 6) * 4, y: Math.floor(i / 6) * 3, w: 4, h: 3 }, targets: [{ refId: "A", expr: `x${i}` }] })) } } }),
  );
  await page.goto(link("file:many.json"));
  await until("all are drawn", async () => (await page.locator(".card canvas").count()) === 30);
  assert.equal(all, 30);
  assert.ok(most <= 6, `${most} at once`);
  assert.deepEqual(page.faults, []);
});

test("a heavy panel shows its estimate and asks when the user says so", async () => {
  const page = await visit(browser, "about:blank");
  let weighed = 0;
  let asked = 0;
  await page.route("**/api/v1/query_range_cost*", async (route) => {
    weighed++;
    const reply = await (await route.fetch()).json();
    if (/heavy/.test(route.request().url())) {
      Object.assign(reply.data.estimate, { seriesTouched: 6_000, samplesRead: 30_000_000, bytes: 2 ** 20, dollars: 0.005 });
    }
    await route.fulfill({ json: reply });
  });
  await page.route(/\/query_range(\?|$)/, (route) => (/heavy/.test(route.request().url()) && asked++, route.continue()));
  const panel = (title, x, ...exprs) => ({ type: "timeseries", title, gridPos: { x, y: 0, w: 12, h: 6 }, targets: exprs.map((expr, i) => ({ refId: "AB"[i], expr })) });
  const dashboard = { title: "Weighed", panels: [panel("Light", 0, "node_load1"), panel("Heavy", 12, "node_load1 or heavy", "node_load5 or heavy")] };
  await page.route("**/api/v1/dashboards/weighed.json", (route) => route.fulfill({ json: { status: "success", data: dashboard } }));
  await page.goto(link("file:weighed.json", "&refresh=1s"));
  // Each query is light; together they are heavy. Other panels do not wait.
  const question = card(page, "Heavy").getByRole("group", { name: "Estimate of a heavy query" });
  await question.getByText("about 60,000,000 samples of 12,000 series, 2 MiB ($0.01)").waitFor();
  await drawn(page, "Light", "canvas");
  // Neither automatic refreshes nor one of the header decide, or weigh the same again.
  await page.keyboard.press("r");
  await until("the other panel was refreshed", async () => (await card(page, "Light").getAttribute("aria-busy")) === "false");
  assert.equal(asked, 0);
  assert.equal(weighed, 3);
  await question.getByRole("button", { name: "Run anyway" }).click();
  await card(page, "Heavy").locator("canvas").waitFor();
  assert.equal(await question.count(), 0);
  assert.equal(weighed, 3);
  // The decision holds for this length of the time range.
  await page.getByLabel("Length of the time range").selectOption("6h");
  await question.getByRole("button", { name: "Explain it" }).click();
  await until("the query is in Explain", async () => /#\/explain\?.*g0\.expr=node_load1\+or\+heavy/.test(page.url().replaceAll("%20", "+")));
  assert.deepEqual(page.faults, []);
});

test("requests name the dashboard and the panel as Grafana's do", async () => {
  const panel = (id, type, more) => ({ id, type, title: type, gridPos: { x: 12 * (id - 1), y: 0, w: 12, h: 6 }, targets: [{ refId: "A", expr: "node_load1", ...more }] });
  const dashboard = { uid: "E2KboMgBY", title: "Größe 5 % \ud800+ 文", panels: [panel(1, "timeseries", { exemplar: true }), panel(2, "stat", { instant: true })], templating: { list: [{ name: "v", type: "query", query: "label_values(node_load1, job)" }] }, annotations: { list: [{ name: "a", expr: "node_load1 < 0" }] } };
  const title = "Gr%C3%B6%C3%9Fe 5 %25 %2B %E6%96%87";
  // named opens an address, and returns for each path the names that its requests have.
  const named = async (address, asked) => {
    const page = await visit(browser, "about:blank");
    const seen = {};
    await page.route("**/api/v1/**", (route) => {
      const { pathname } = new URL(route.request().url());
      const [uid, shown, panel] = ["uid", "title", "id"].map((of) => route.request().headers()[of === "id" ? "x-panel-id" : `x-dashboard-${of}`] ?? "");
      (seen[pathname.replace("/api/v1/", "")] ??= new Set()).add([uid, shown, panel].join("|"));
      return /dashboards\/x/.test(pathname) ? route.fulfill({ json: { status: "success", data: dashboard } }) : route.continue();
    });
    await page.goto(`${server.url}/${address}`);
    await until("all is asked", async () => asked.every((path) => seen[path]) && (await page.locator('[aria-busy="true"]').count()) === 0);
    assert.deepEqual(page.faults, []);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.context().close();
    return Object.fromEntries(asked.map((path) => [path, [...seen[path]].sort().join()]));
  };
  const of = (panel) => `E2KboMgBY|${title}|${panel}`;
  assert.deepEqual(await named("#/dashboards?range=15m&dash=file:x.json", ["query_range", "query_range_cost", "query_exemplars", "query", "query_cost", "label/job/values"]), {
    query_range: `${of("")},${of(1)}`, // of the annotation and the graph, which a worker asks
    query_range_cost: of(1),
    query_exemplars: of(1),
    query: of(2),
    query_cost: of(2),
    "label/job/values": of(""),
  });
  assert.deepEqual(await named("?embed#/dashboards?range=15m&dash=file:x.json&panel=2", ["query"]), { query: of(2) });
  // A dashboard without an identity of Grafana's has that of the address; Explore has none.
  Object.assign(dashboard, { uid: undefined });
  assert.deepEqual(await named("#/dashboards?range=15m&dash=file:x%C3%BC", ["query"]), { query: `file:x%C3%BC|${title}|2` });
  assert.deepEqual(await named("?embed#/explore?g0.expr=node_load1&g0.tab=table", ["query"]), { query: "||" });
});

test("accessible and within its width", async () => {
  await write();
  const page = await visit(browser, "about:blank", { colorScheme: "dark" });
  for (const [dash, title] of [["file:node.json", "Load"], ["file:team/kubernetes.json", "Pods"]]) {
    await page.goto(link(dash));
    await drawn(page, title, "canvas, tbody tr");
    await page.evaluate(() => scrollTo(0, 0));
    for (const width of [360, 1280, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      await until(`${dash} fits ${width} pixels`, () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    }
    assert.deepEqual(await serious(page, "html"), [], dash);
  }
  assert.deepEqual(page.faults, []);
});
