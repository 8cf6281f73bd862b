// The ways through the page as a person goes them, in a real browser before a real server that
// stores this machine's metrics.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { close, open, run, serious, Server, settled, until, visit } from "./harness.mjs";

let server, browser;

before(async () => {
  server = await Server.start("--demo");
  // The steps of graphs are multiples of at most ten seconds: the last one must not be older than
  // the first samples.
  await until("a graph has a sample of this machine", async () => {
    const r = await fetch(`${server.url}/api/v1/query?query=node_load15&time=${Math.floor(Date.now() / 10_000) * 10}`).then((x) => x.json());
    return r.data.result.length > 0;
  });
  browser = await open();
});

after(async () => {
  await close(browser);
  await server?.stop();
});

const explore = (expr, more = "") => `${server.url}/#/explore?range=15m${more}&g0.expr=${encodeURIComponent(expr)}`;
const result = (page) => page.locator(".result").first();

// series is the number of series of the first panel. It asks again until there are some: the steps
// of a graph may be older than the first samples.
async function series(page) {
  const text = await until("an answer has series", async () => {
    const t = await result(page).locator(".cost").allTextContents();
    const found = t.find((x) => /(^|\D)[1-9]\d* series/.test(x));
    if (!found && (await result(page).getAttribute("aria-busy")) === "false") await page.getByRole("button", { name: "Run", exact: true }).first().click();
    return found;
  });
  return Number(/(\d+) series/.exec(text)[1]);
}

test("a query is completed, run, drawn, listed, saved and linked", async () => {
  const page = await visit(browser, `${server.url}/#/explore`);
  await page.locator(".editor").click();
  await until("the metric name is completed", async () => {
    await page.keyboard.press("Control+A");
    await page.keyboard.type("node_lo");
    return page.getByText("node_load15").first().waitFor({ timeout: 5_000 }).then(() => true, () => false);
  });
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+A");
  await page.keyboard.type('{__name__=~"node_load.*"}');
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  assert.equal(await series(page), 3);
  await page.locator("canvas").waitFor();

  // A click on a series of the legend shows it alone, another click shows all.
  const keys = page.locator(".key");
  assert.equal(await keys.count(), 3);
  await keys.nth(1).click();
  assert.deepEqual(await keys.evaluateAll((all) => all.map((k) => k.getAttribute("aria-pressed"))), ["false", "true", "false"]);
  await keys.nth(1).click();
  assert.deepEqual(await keys.evaluateAll((all) => all.map((k) => k.getAttribute("aria-pressed"))), ["true", "true", "true"]);

  for (const [kind, starts] of [["csv", 'time,"node_load'], ["json", '{\n "resultType": "matrix"'], ["png", "\x89PNG"]]) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByLabel("Save or share the answer").selectOption(kind)]);
    const body = await readFile(await file.path(), "latin1");
    assert.ok(body.startsWith(starts), `${kind}: ${body.slice(0, 60)}`);
  }

  await page.getByLabel("Show as").selectOption("table");
  await until("three rows are listed", async () => (await page.locator("main tbody tr").count()) === 3);

  // The address reproduces the page in a browser that has never seen it.
  const copy = await visit(browser, page.url());
  await until("the copy lists three rows", async () => (await copy.locator("main tbody tr").count()) === 3);
  assert.equal(await copy.getByLabel("Show as").inputValue(), "table");
  assert.deepEqual([...page.faults, ...copy.faults], []);
});

test("dragging over a graph zooms, and the browser's back button returns", async () => {
  const page = await visit(browser, explore("node_load1"));
  await page.locator("canvas").waitFor();
  const over = await until("the graph has its width", async () => {
    const box = await page.locator(".u-over").boundingBox();
    return box && box.width > 600 && box;
  });
  await page.mouse.move(over.x + over.width * 0.5, over.y + 40);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * 0.75, over.y + 40, { steps: 5 });
  await page.mouse.up();
  await until("the address has an end", async () => /end=/.test(page.url()));
  const zoomed = /range=(\w+)/.exec(page.url())[1];
  assert.notEqual(zoomed, "15m");
  await page.goBack();
  await until("the range is back", async () => (await page.getByLabel("Length of the time range").inputValue()) === "15m");
  assert.deepEqual(page.faults, []);
});

test("the keyboard alone suffices", async () => {
  const page = await visit(browser, server.url);
  await page.locator(".card canvas").first().waitFor();
  await page.keyboard.press("/");
  await until("the editor has the focus", () => page.evaluate(() => document.activeElement?.classList.contains("editor")));
  await page.keyboard.type("count(up)");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  assert.equal(await series(page), 1);
  await page.evaluate(() => document.activeElement.blur());
  for (const [key, title] of [["3", "SQL"], ["4", "Explain"], ["5", "Lake"], ["6", "Cardinality"], ["7", "Queries"], ["-", "Status"], ["1", "Dashboards"]]) {
    await page.keyboard.press(key);
    await until(`${title} is shown`, async () => (await page.title()).startsWith(title));
    await page.evaluate(() => document.activeElement.blur());
  }
  assert.deepEqual(page.faults, []);
});

test("the keyboard reaches every point of a graph through its table", async () => {
  const page = await visit(browser, "about:blank");
  const now = Math.floor(Date.now() / 60_000) * 60;
  await page.route(/\/query_range(\?|$)/, (route) => {
    const series = (name, ...values) => ({ metric: { __name__: name }, values: values.flatMap((v, i) => (v === null ? [] : [[now - 240 + i * 60, v]])) });
    return route.fulfill({ json: { status: "success", data: { resultType: "matrix", result: [series("first_bytes", "1024", "4096", null, "2048"), series("second_bytes", "1", "2", "3", "4")] } } });
  });
  await page.goto(explore('{__name__=~".+_bytes"}', `&end=${new Date((now - 60) * 1000).toISOString()}&g0.step_input=1m`));
  await page.getByRole("img", { name: "Graph of 2 series" }).waitFor();
  const summary = page.getByText("Table of values");
  const region = page.getByRole("region", { name: "Values of" });
  assert.equal(await region.count(), 0, "a closed table has no rows");
  await summary.focus();
  await page.keyboard.press("Enter");
  const cells = (i) => region.getByRole("row").nth(i).locator("th, td").allTextContents();
  await until("the rows are listed", async () => (await cells(1)).length === 5);
  assert.deepEqual(await cells(1), ["first_bytes", "2 KiB", "1 KiB", "4 KiB", "2 KiB"]);
  assert.deepEqual((await cells(2)).slice(1, 4), ["4 B", "1 B", "4 B"]);
  // The slider moves the last column, and the crosshair of the graph.
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowLeft");
  assert.deepEqual(await cells(1), ["first_bytes", "2 KiB", "1 KiB", "4 KiB", "no sample"]);
  await page.keyboard.press("ArrowLeft");
  assert.deepEqual((await cells(2)).slice(4), ["2 B"]);
  const slider = page.getByRole("slider", { name: "Time of the column of values" });
  assert.equal(await slider.getAttribute("aria-valuetext"), (await cells(0))[4]);
  // A refresh keeps the table, the time and the focus. A series that the legend hides is not
  // listed.
  await Promise.all([page.waitForResponse(/\/query_range(\?|$)/), page.keyboard.press("Escape"), page.getByRole("button", { name: "Run" }).evaluate((b) => b.click())]);
  await until("the answer is there", async () => (await result(page).getAttribute("aria-busy")) === "false");
  assert.deepEqual((await cells(1)).slice(4), ["4 KiB"]);
  assert.equal(await slider.evaluate((s) => s === document.activeElement), true);
  await page.locator(".key").nth(1).click();
  await page.getByText("1 rows, 1 hidden by the legend").waitFor();
  assert.deepEqual((await cells(1)).slice(0, 2), ["second_bytes", "4 B"]);
  assert.deepEqual(await serious(page, "html"), []);
  assert.deepEqual(page.faults, []);
});

test("a mistake in a query is named, by the server's own words", async () => {
  const page = await visit(browser, explore("sum(up"));
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /parse error/);
  assert.deepEqual(page.faults, []);
});

test("explain shows the plan, the price and what was measured", async () => {
  const page = await visit(browser, `${server.url}/#/explain?range=15m&g0.expr=${encodeURIComponent("sum by (mode) (rate(node_cpu_seconds_total[1m]))")}`);
  await page.getByText("Estimated cost").waitFor();
  await page.getByRole("rowheader", { name: "node_cpu_seconds_total" }).waitFor();
  await page.getByText("Promlake evaluates the whole query").waitFor();
  await page.locator(".tree").getByText("rate(node_cpu_seconds_total[1m])", { exact: true }).waitFor();
  assert.doesNotMatch(await page.locator(".plan").textContent(), /__promlake|shift=|start=/);
  assert.equal(await page.locator(".advice").count(), 0, "a small query needs no advice");
  await page.getByRole("button", { name: "Run and measure" }).click();
  await page.getByText(/^Where the time went: /).waitFor();
  const parts = page.getByRole("region", { name: "Time" }).locator("tbody tr");
  assert.deepEqual((await parts.locator("th").allTextContents()).sort(), ["Operators over these values", "Read and evaluate rate(node_cpu_seconds_total[1m])"]);
  assert.match((await parts.allTextContents()).join(), /[\d.]+ (µ|m)?s\d+ %/);

  // The advice follows from the numbers. The engine's expression names the parts that it lacks.
  await page.route(/\/explain\?/, async (route) => {
    const reply = await (await route.fetch()).json();
    const { data } = reply;
    Object.assign(data.estimate, { samplesRead: 40_000_000, seriesTouched: 4_000, dollars: 0.05, functionMilliseconds: 12_000 });
    Object.assign(data.cost, { dollars: 0.02 });
    for (const p of data.pushed) {
      let leaf = p.tree;
      while (leaf.children) leaf = leaf.children[0];
      Object.assign(leaf, { series: 4_000, samples: 40_000_000 });
    }
    for (const s of data.selectors) s.series = 4_000;
    await route.fulfill({ json: reply });
  });
  const open = (expr, range) => page.goto(`${server.url}/#/explain?range=${range}&g0.expr=${encodeURIComponent(expr)}&g0.step_input=1s`);
  await open("sum by (mode) (rate(node_cpu_seconds_total[1m]))", "1h");
  await page.getByText("$0.05: $0.02 for the requests, $0.03 for 12 s of a function").waitFor();
  const advice = async (n) => (await until(`${n} sentences`, async () => (await page.locator(".advice").count()) === n), page.locator(".advice").allTextContents());
  assert.deepEqual((await advice(2)).map((t) => t.replace(/make \d+ series/, "make N series").replace(/\d+ % of/, "P % of")), [
    "A recording rule of sum by (mode) (rate(node_cpu_seconds_total[1m])) would make N series of 4,000: a query of its result reads P % of the series.",
    "The step of 1s makes 3,601 values of each series: one of 4s makes a quarter of them.",
  ]);
  await open('sum_over_time(node_load1[1d] offset 5m) + count_values("v", node_load1)', "5m");
  await page.getByText(/part 1 \+ count_values/).waitFor();
  await page.getByRole("heading", { name: "Promlake evaluates part 1" }).waitFor();
  await page.locator(".tree").getByText("sum_over_time(node_load1[1d] offset 5m)", { exact: true }).waitFor();
  assert.match((await advice(2)).join(), /matcher that selects half.*The window of 1d is longer than the time range/);
  assert.deepEqual(page.faults, []);
});

test("a heavy query shows its estimate and runs when the user says so", async () => {
  const page = await visit(browser, "about:blank");
  let asked = 0;
  await page.route("**/api/v1/query_range_cost*", async (route) => {
    const reply = await (await route.fetch()).json();
    for (const of of ["seriesTouched", "samplesRead", "bytes", "dollars"]) assert.equal(typeof reply.data.estimate[of], "number");
    Object.assign(reply.data.estimate, { seriesTouched: 12_000, samplesRead: 70_000_000, bytes: 3 * 2 ** 30, dollars: 0.02 });
    await route.fulfill({ json: reply });
  });
  await page.route(/\/query_range(\?|$)/, (route) => (asked++, route.continue()));
  await page.goto(explore("node_load1", "&refresh=1s"));
  const question = page.getByRole("group", { name: "Estimate of a heavy query" });
  await question.getByText("about 70,000,000 samples of 12,000 series, 3 GiB ($0.02)").waitFor();
  // Neither a refresh of the header nor an automatic one decides, or asks again.
  await page.keyboard.press("Escape");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("r");
  await question.waitFor();
  assert.equal(asked, 0);
  await question.getByRole("button", { name: "Run anyway" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await series(page), 1);
  // The decision holds for this query: another one is asked about.
  await page.getByRole("button", { name: "Run" }).click();
  assert.equal(await series(page), 1);
  assert.equal(await question.count(), 0);
  await page.getByLabel("Length of the time range").selectOption("6h");
  await question.waitFor();
  await question.getByRole("button", { name: "Explain it" }).click();
  await until("the query is in Explain", async () => /#\/explain\?.*g0\.expr=node_load1/.test(page.url()));
  assert.deepEqual(page.faults, []);
});

test("exemplars are dots and a list, histograms are heatmaps", async () => {
  const hostile = `<img src=x onerror="window.hit=1">`;
  const page = await visit(browser, "about:blank");
  const now = Math.floor(Date.now() / 1000);
  const points = (v) => Array.from({ length: 10 }, (_, i) => [now - 600 + i * 60, String(v * (i + 1))]);
  await page.route(/\/query_range(\?|$)/, (route) =>
    route.fulfill({ json: { status: "success", data: { resultType: "matrix", result: route.request().url().includes("plain") ? [{ metric: {}, values: points(1) }] : ["0.1", "1", "+Inf"].map((le, i) => ({ metric: { le }, values: points(i + 1) })) } } }),
  );
  let asked;
  await page.route("**/api/v1/query_exemplars*", (route) => {
    asked = new URL(route.request().url()).searchParams;
    return route.fulfill({ json: { status: "success", data: [{ seriesLabels: { __name__: "plain" }, exemplars: [{ labels: { trace_id: hostile }, value: "5", timestamp: now - 300 }, { labels: { trace_id: "far" }, value: "1e9", timestamp: now - 120 }] }] } });
  });
  // An end in the address fixes where points are.
  await page.goto(explore("plain", `&end=${new Date(now * 1000).toISOString()}`));
  await page.locator("canvas").waitFor();
  assert.equal(asked, undefined, "exemplars are asked for only on request");
  await page.getByLabel("Exemplars").check();
  await page.getByText("Exemplars (2)").click();
  await page.getByRole("region", { name: "Exemplars" }).getByText(`{trace_id=${JSON.stringify(hostile)}}`).waitFor();
  assert.equal(asked.get("query"), "plain");
  assert.match(page.url(), /g0.show_exemplars=1/);
  // The dot is at two thirds of the width, 5 of at most 10.5.
  await until("the dot has a tip", async () => {
    const over = await page.locator(".u-over").boundingBox();
    for (let x = over.x + over.width * 0.65; x < over.x + over.width * 0.68; x += 5) {
      for (let y = over.y + over.height * 0.48; y < over.y + over.height * 0.56; y += 5) {
        await page.mouse.move(x, y);
        if ((await page.locator(".tip").textContent()).includes("trace_id=\"<img src=x")) return true;
      }
    }
    return false;
  });

  await page.goto(explore("sum by (le) (rate(x_seconds_bucket[1m]))"));
  await page.locator("canvas").waitFor();
  await page.getByLabel("Show as").selectOption("heatmap");
  await until("the heatmap has no lines", async () => (await page.locator("canvas").count()) === 1 && (await page.locator(".key").count()) === 0);
  await until("the bucket is named", async () => {
    const cells = await page.locator(".u-over").boundingBox();
    await page.mouse.move(0, 0);
    await page.mouse.move(cells.x + cells.width * 0.9, cells.y + cells.height * 0.5);
    return /in \(100 ms, 1 s\]/.test(await page.locator(".tip").textContent());
  });
  await page.goto(explore("plain", "&g0.tab=heatmap"));
  await page.getByText("A heatmap shows the buckets of histograms").waitFor();
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.deepEqual(page.faults, []);
});

test("the lake shows its levels, what it costs and what waits", async () => {
  const page = await visit(browser, `${server.url}/#/lake?tz=utc`);
  const figure = (name) => page.getByRole("region", { name, exact: true });
  // A directory has no price, and the times are those of samples: none lies in the future.
  for (const name of ["Storage", "Running cost"]) assert.match(await figure(name).textContent(), /no list price/);
  assert.equal(await page.getByRole("region", { name: "Dollars a day" }).count(), 0);
  const [first, last] = (await figure("Time range").textContent()).match(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g).map((t) => Date.parse(`${t.replace(" ", "T")}Z`));
  assert.ok(first <= last && last <= Date.now() && first > Date.now() - 3_600_000, `${first} ${last}`);
  await page.route("**/api/v1/status/lake*", async (route) => {
    const reply = await (await route.fetch()).json();
    reply.data.dollarsPerMonth = 0.5;
    await route.fulfill({ json: reply });
  });
  await page.reload();
  await figure("Storage").getByText("$0.50 a month").waitFor();
  assert.match(await figure("Retention").textContent(), /unlimited/);
  assert.match(await figure("Oldest segment").textContent(), /waits to become a block/);
  // The server stores its own metrics, so its rates and its price are known.
  const put = page.getByRole("region", { name: "Requests and samples a second" }).getByRole("row", { name: /Store requests: put/ });
  await until("there are rates and the price", async () => {
    if ((await put.isVisible()) && /\$[\d.e-]+ a day.*last five minutes/.test(await figure("Running cost").textContent())) return true;
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("r");
    return false;
  });
  await page.getByRole("region", { name: "Bytes a second" }).getByRole("row", { name: /Store bytes: put/ }).waitFor();
  await page.getByRole("region", { name: "Dollars a day" }).getByRole("row", { name: /: S3 storage/ }).waitFor();
  await page.getByRole("img", { name: /windows in (Segments|Parts)/ }).waitFor();
  assert.match(await page.locator(".levels rect title").first().textContent(), /^(Segments|Parts), 20\d\d-.*: \d+ objects, /);
  await page.getByText(/^Windows \(\d+\)$/).click();
  await page.getByRole("region", { name: "Windows" }).getByRole("row").nth(1).waitFor();
  assert.deepEqual(page.faults, []);
});

test("a first start is refused nothing, has no targets, and names a tenant without data", async () => {
  const fresh = await Server.start();
  try {
    const page = await visit(browser, "about:blank");
    const refused = [];
    page.on("response", (r) => r.status() >= 400 && refused.push(`${r.status()} ${r.url()}`));
    await page.goto(fresh.url);
    await page.getByRole("region", { name: "Targets that are down", exact: true }).getByText("No targets").waitFor();
    await page.getByRole("link", { name: "SQL" }).waitFor();
    await page.goto(`${fresh.url}/#/explore?tenant=nobody`);
    await page.reload();
    await page.getByText("No data for tenant nobody").waitFor();
    assert.deepEqual(refused, []);
    assert.deepEqual(page.faults, []);
  } finally {
    await fresh.stop();
  }
});

test("an operator lists the tenants of the store, and opens the lake of one", async () => {
  const tokens = `${server.folder}/lake.json`;
  const operator = (await run("token", "--tenant", "*", "--access", "read,write,admin", "--comment", "ops", "--tokens", tokens)).trim();
  const reader = (await run("token", "--tenant", "team-a", "--access", "read", "--tokens", tokens)).trim();
  const guarded = await Server.start("--auth.tokens", `file:${tokens}`);
  try {
    for (const [tenant, text] of [["team-a", "a 1\n"], ["team-b", "b 1\nb2 2\n"]]) {
      const headers = { Authorization: `Bearer ${operator}`, "X-Scope-OrgID": tenant };
      assert.equal((await fetch(`${guarded.url}/api/v1/import/prometheus`, { method: "POST", headers, body: text })).status, 204);
    }
    const page = await visit(browser, `${guarded.url}/#/lake?tenant=team-a`);
    const sign = async (token) => {
      await page.getByLabel("Bearer token").fill(token);
      await page.getByRole("button", { name: "Use" }).click();
    };
    await sign(reader);
    await page.getByRole("region", { name: "Stored" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "List the tenants" }).count(), 0); // not for readers
    await page.locator("summary", { hasText: "☰" }).click();
    await page.getByRole("button", { name: "Token" }).click();
    await sign(operator);
    await page.getByRole("button", { name: "List the tenants" }).click();
    const rows = page.getByRole("region", { name: "Tenants by bytes" }).getByRole("row");
    await until("both tenants are listed", async () => (await rows.count()) === 3);
    assert.deepEqual((await rows.allTextContents()).slice(1).map((t) => /^team-[ab]/.exec(t)[0]).sort(), ["team-a", "team-b"]);
    await page.getByRole("button", { name: "Show the lake of team-b" }).click();
    await until("the header names the tenant", async () => (await page.getByLabel("Tenant (X-Scope-OrgID)").inputValue()) === "team-b");
    assert.match(page.url(), /tenant=team-b/);
    assert.equal(await rows.count(), 3); // the list stays
    // A damaged tenant does not hide the others, and names are text.
    const hostile = [{ tenant: "<b>x</b>", segments: 0, blocks: 0, bytes: 0, samples: 0, start: 0, end: 0, waiting: 0, deletions: 0, dollarsPerMonth: 0, error: "read manifest: <i>damaged</i>" }];
    await page.route("**/api/v1/status/tenants", (route) => route.fulfill({ json: { status: "success", data: { tenants: hostile } } }));
    await page.getByRole("button", { name: "List the tenants" }).click();
    await page.getByText("read manifest: <i>damaged</i>").waitFor();
    assert.deepEqual(page.faults, []);
  } finally {
    await guarded.stop();
  }
});

test("who has set a token is not asked again for requests from before", async () => {
  const page = await visit(browser, "about:blank");
  let release;
  const signed = new Promise((resolve) => (release = resolve));
  await page.route("**/api/v1/**", async (route) => {
    if (route.request().headers()["authorization"]) return route.continue();
    if (route.request().url().includes("status/flags")) await signed;
    await route.fulfill({ status: 401, json: { status: "error", errorType: "unauthorized", error: "no token" } });
  });
  await page.goto(`${server.url}/#/lake`);
  await page.getByLabel("Bearer token").fill("a");
  await page.getByRole("button", { name: "Use" }).click();
  await page.getByRole("region", { name: "Stored" }).waitFor();
  const late = page.waitForResponse((r) => r.status() === 401 && r.url().includes("status/flags"));
  release();
  await (await late).finished();
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
  assert.equal(await page.getByRole("dialog").count(), 0);
});

test("the lake shows what a sample takes in each column", async () => {
  const page = await visit(browser, "about:blank");
  await page.route("**/api/v1/status/lake?*", async (route) => {
    assert.match(route.request().url(), /columns=true/);
    const reply = await (await route.fetch()).json();
    reply.data.columns = { blocks: 2, samples: 1000, bytes: 400, rows: [{ file: "samples", column: "v_int", bytes: 300, bytesPerSample: 0.3 }, { file: "series", bytes: 100, bytesPerSample: 0.1 }] };
    await route.fulfill({ json: reply });
  });
  await page.goto(`${server.url}/#/lake`);
  const rows = page.getByRole("region", { name: "Bytes per sample by column, in the 2 largest blocks" }).getByRole("row");
  await rows.nth(2).waitFor();
  assert.deepEqual(await rows.nth(1).locator("th, td").allTextContents(), ["samples: v_int", "300 B", "0.3", "75 %"]);
  assert.deepEqual(await rows.nth(2).locator("th, td").allTextContents(), ["series: all columns", "100 B", "0.1", "25 %"]);
  assert.deepEqual(page.faults, []);
});

test("cardinality counts the time range, drills down, compares and opens a metric", async () => {
  const page = await visit(browser, `${server.url}/#/cardinality?range=1h`);
  const list = (name) => page.getByRole("region", { name, exact: true });
  await list("Series by metric").getByRole("button", { name: "node_cpu_seconds_total", exact: true }).click();
  await until("the selector is in the address", async () => /filter=%7B__name__=%22node_cpu_seconds_total%22%7D/.test(page.url()));
  await until("one metric is left", async () => (await list("Series by metric").locator("tbody tr").count()) === 1);
  assert.match(await list("Series by metric").locator("tbody td").nth(3).textContent(), /^(\$|< \$)/);
  await list("Series by label").getByRole("button", { name: "mode" }).click();
  await list("Series by mode").getByRole("button", { name: "idle" }).click();
  await until("the selector has both", async () => (await page.getByLabel("Selector of the series that count; empty means all").inputValue()) === '{__name__="node_cpu_seconds_total",mode="idle"}');
  await page.getByLabel("Compare with the range before").check();
  await page.getByText(/series, \+[\d,]+ since the 1h before/).waitFor();
  const copy = await visit(browser, page.url());
  await copy.getByText(/series, \+[\d,]+ since the 1h before/).waitFor();
  await page.getByRole("button", { name: "Explore node_cpu_seconds_total" }).click();
  assert.equal(await series(page), 1);
  // A metric that a query named is not among those that nobody asked for.
  const name = "node_cpu_guest_seconds_total";
  await page.goto(`${server.url}/#/cardinality?range=1h&filter=${encodeURIComponent(`{__name__="${name}"}`)}`);
  const unasked = list("Metrics that nobody asked for");
  await unasked.getByRole("button", { name }).waitFor();
  assert.match(await unasked.textContent(), /No query has named them since 20\d\d-.*: (\$|less|<).* a month/);
  await fetch(`${server.url}/api/v1/query?query=${name}`);
  await until("it is listed no more", async () => {
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("r");
    await settled(page);
    return (await unasked.getByRole("button", { name }).count()) === 0;
  });
  await page.goto(`${server.url}/#/cardinality?filter=%7B`);
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /match\[\]|parse error|selector/);
  assert.deepEqual([...page.faults, ...copy.faults], []);
});

test("running queries are listed and ended, and what queries took is by source, token and tenant", async () => {
  const page = await visit(browser, "about:blank");
  const now = Date.now();
  const source = { kind: "dashboard", name: "promlake-operations", title: "Promlake operations" };
  const query = (id, more) => ({ id, duration: "1.250s", query: `sum by (job) (rate(x_total[5m])) /* ${"long ".repeat(100)}*/`, path: "/api/v1/query_range", start: now - 3_600_000, end: now, step: 15_000, remote_addr: "127.0.0.1:51234", state: "running", bytes_read: 2 ** 20, requests: 3, memory_bytes: 2 ** 21, source, ...more });
  let running = [query("2f"), query("30", { state: "waiting", path: "/api/v1/query", start: now, step: undefined, source: { kind: "client", name: "curl" } }), query("31", { path: "/api/v1/sql", query: "SELECT 1", start: undefined, end: undefined, step: undefined, source: { kind: "rule_group", name: "" } })];
  const took = (seconds, dollars) => ({ queries: 1_000, seconds, bytes: 2 ** 30, requests: 7, dollars });
  let total = took(3, 0.00035);
  const days = [];
  let listed = 0;
  let end = { status: 403, json: { status: "error", errorType: "forbidden", error: 'the token lacks access "admin"' } };
  const ended = [];
  const ok = (route, data) => route.fulfill({ json: { status: "success", data } });
  await page.route("**/api/v1/status/active_queries*", (route) => {
    if (route.request().method() === "GET") return (listed++, ok(route, running));
    ended.push(new URL(route.request().url()).searchParams.get("id"));
    return route.fulfill(end);
  });
  await page.route("**/api/v1/status/spending?*", (route) => {
    const p = new URL(route.request().url()).searchParams;
    days.push((Number(p.get("end")) - Number(p.get("start"))) / 86_400);
    return ok(route, { since: now, start: now, end: now, total, tokens: [], sources: [], ...(total.queries && { sources: [{ ...source, ...took(1, total.dollars / 7) }, { kind: "client", name: "curl", ...took(2, total.dollars / 8) }, { kind: "alert_rule", name: "u", title: "Too hot", ...took(0.5, 0) }], tokens: [{ name: "9f86d081", ...took(3, total.dollars) }] }) });
  });
  await page.route("**/api/v1/status/spending/tenants?*", (route) => ok(route, [{ tenant: "team-a", ...took(3, total.dollars) }, { tenant: "team-b", ...took(30, 10 * total.dollars) }]));
  await page.clock.install();
  await page.goto(`${server.url}/#/queries?range=15m`);
  const region = (name) => page.getByRole("region", { name, exact: true });
  const cells = (name) => region(name).locator("tbody tr").evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent)));
  await until("the queries are listed", async () => (await cells("Table of running queries")).length === 3);
  const rows = await cells("Table of running queries");
  assert.deepEqual(rows.map((r) => r.slice(1)), [
    ["1.25 s", "running", "Promlake operationsdashboard", "1 MiB", "2 MiB", "EndExplore"],
    ["1.25 s", "waiting", "curlclient", "1 MiB", "2 MiB", "EndExplore"],
    ["1.25 s", "running", "othersrule group", "1 MiB", "2 MiB", "End"],
  ]);
  assert.equal(rows[0][0], running[0].query); // also what the short text leaves out
  assert.equal(await page.locator(`[title=${JSON.stringify(running[0].query)}]`).first().evaluate((e) => e.getBoundingClientRect().height < 40), true);

  // What queries took: the dearest first, with dollars where there are some.
  await page.getByText(/^1,000 queries, counted since 20.*: 3 s, 1 GiB, \$0\.00035\.$/).waitFor();
  assert.deepEqual(await cells("What queries took by source"), [["Promlake operations", "dashboard", "1 s", "1,000", "1 GiB", "7", "$0.00005"], ["curl", "client", "2 s", "1,000", "1 GiB", "7", "$0.000044"], ["Too hot", "alert rule", "500 ms", "1,000", "1 GiB", "7", "$0"]]);
  assert.deepEqual((await cells("What queries took by token")).map(([t]) => t), ["9f86d081"]);
  assert.deepEqual((await cells("What queries took by tenant")).map(([t]) => t), ["team-b", "team-a"]);
  for (const theme of ["light", "dark"]) {
    await page.evaluate((t) => (document.documentElement.dataset.theme = t), theme);
    assert.deepEqual(await serious(page), [], theme);
  }
  total = took(3, 0);
  for (const [only, least, most] of [["today", 0, 1], ["7d", 6, 7], ["", 0, 31]]) {
    await page.getByLabel("Days").selectOption(only);
    await until(`the address has ${only}`, async () => (only ? page.url().includes(`state=${only}`) : !page.url().includes("state=")) && (await page.locator('[aria-busy="true"]').count()) === 0);
    assert.ok(days.at(-1) >= least && days.at(-1) <= most, `${only}: ${days.at(-1)} days`);
  }
  assert.deepEqual(await cells("What queries took by source"), [["curl", "client", "2 s", "1,000", "1 GiB", "7"], ["Promlake operations", "dashboard", "1 s", "1,000", "1 GiB", "7"], ["Too hot", "alert rule", "500 ms", "1,000", "1 GiB", "7"]]);
  total = { queries: 0, seconds: 0, bytes: 0, requests: 0, dollars: 0 };
  await page.getByLabel("Days").selectOption("today");
  await page.getByText(/^No query has run in these days/).waitFor();
  assert.equal(await page.getByRole("heading", { name: /By source|By token/ }).count(), 0);
  total = took(3, 0);
  await page.getByLabel("Days").selectOption("");

  // The list is made anew every two seconds while somebody sees it; the keyboard stays where it is.
  const button = page.getByRole("button", { name: "End query 2f" });
  await button.focus();
  const before = listed;
  await until("it was listed again", async () => (await page.clock.runFor(2_000), listed > before + 1));
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "End query 2f");

  // A refusal is told, and stays; somebody who does not confirm ends nothing.
  page.once("dialog", (d) => void d.dismiss());
  await page.keyboard.press("Enter");
  assert.deepEqual(ended, []);
  const accept = (d) => (assert.match(d.message(), /^End this query\?\n\nsum by \(job\)/), void d.accept());
  page.once("dialog", accept);
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText('the token lacks access "admin"').waitFor();
  end = { status: 204 };
  running = running.slice(1);
  page.once("dialog", accept);
  await button.press("Enter");
  await until("it is gone", async () => (await button.count()) === 0);
  assert.deepEqual([ended, await page.getByRole("alert").count()], [["2f", "2f"], 0]);
  running = [];
  await page.getByText("No query is running.").waitFor();
  await settled(page);
  await page.evaluate(() => Object.defineProperty(document, "hidden", { configurable: true, get: () => true }));
  const hidden = listed;
  await page.clock.runFor(60_000);
  assert.equal(listed, hidden);
  await page.evaluate(() => delete document.hidden);

  // Queries open in Explore with their times, dashboards that the page knows on the page.
  running = [query("2f")];
  await page.getByRole("link", { name: "Explore query 2f" }).click();
  await until("Explore shows it", async () => /#\/explore\?end=20.*&g0\.expr=sum\+by.*g0\.step_input=15s/.test(page.url()));
  const left = listed;
  await page.goBack();
  await region("What queries took by source").getByRole("link", { name: "Promlake operations" }).click();
  await until("the dashboard is shown", async () => /#\/dashboards\?.*dash=promlake-operations/.test(page.url()));
  assert.ok(listed > left);
  assert.deepEqual(page.faults, []);
});

test("a slow statement is listed and ended by who may, and what queries took is accounted", async () => {
  const tokens = `${server.folder}/queries.json`;
  const operator = (await run("token", "--tenant", "*", "--access", "read,write,admin", "--tokens", tokens)).trim();
  const reader = (await run("token", "--tenant", "team-a", "--access", "read", "--tokens", tokens)).trim();
  const guarded = await Server.start("--auth.tokens", `file:${tokens}`);
  try {
    const page = await visit(browser, `${guarded.url}/#/queries?tenant=team-a`);
    const sign = async (token) => {
      await page.getByLabel("Bearer token").fill(token);
      await page.getByRole("button", { name: "Use" }).click();
    };
    assert.equal((await fetch(`${guarded.url}/api/v1/import/prometheus`, { method: "POST", headers: { Authorization: `Bearer ${operator}`, "X-Scope-OrgID": "team-a" }, body: "a 1\n" })).status, 204);
    await sign(reader);
    await page.getByText("No query is running.").waitFor();
    assert.equal(await page.getByRole("link", { name: "Queries" }).getAttribute("aria-current"), "page");
    const statement = "SELECT count(*) FROM range(10000000000000)";
    const slow = fetch(`${guarded.url}/api/v1/sql?query=${encodeURIComponent(statement)}`, { headers: { Authorization: `Bearer ${reader}`, "X-Scope-OrgID": "team-a", "User-Agent": "probe/1.0" } });
    const row = page.getByRole("region", { name: "Table of running queries" }).locator("tbody tr", { hasText: statement });
    await row.getByText("probe").waitFor();
    assert.deepEqual(await serious(page), []);
    page.on("dialog", (d) => void d.accept());
    const end = row.getByRole("button", { name: /^End query/ });
    await end.press("Enter");
    await page.getByRole("alert").getByText("admin").waitFor();
    assert.equal(await row.count(), 1);
    await page.locator("summary", { hasText: "☰" }).click();
    await page.getByRole("button", { name: "Token" }).click();
    await sign(operator);
    await end.press("Enter");
    const answer = await slow.then((r) => r.json());
    assert.deepEqual([answer.status, answer.errorType], ["error", "canceled"]);
    await page.getByText("No query is running.").waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
    const table = (of) => page.getByRole("region", { name: `What queries took by ${of}` });
    await until("it is accounted", async () => {
      await page.keyboard.press("r");
      await settled(page);
      return (await table("source").getByText("probe").count()) === 1 && (await table("tenant").getByText("team-a").count()) === 1;
    });
    assert.match(await table("source").locator("tbody tr").first().textContent(), /^probeclient[\d.]+ .?s1/);
    assert.equal(await table("token").locator("tbody tr").count(), 2);
    assert.equal(await page.getByRole("columnheader", { name: "Dollars" }).count(), 0); // the store is a directory
    // The page's own dashboards are sources that it links to.
    await page.keyboard.press("1");
    await page.getByLabel("Dashboard", { exact: true }).selectOption("promlake-operations");
    await settled(page);
    await page.keyboard.press("7");
    const link = table("source").getByRole("link", { name: "Promlake operations" });
    await until("the dashboard is accounted", async () => {
      await page.keyboard.press("r");
      await settled(page);
      return (await link.count()) === 1;
    });
    await link.click();
    await until("the dashboard is shown", async () => /#\/dashboards\?.*dash=promlake-operations/.test(page.url()));
    assert.deepEqual(page.faults, []);
  } finally {
    await guarded.stop();
  }
});

test("a server that does not list its queries has no such view, and a link says so", async () => {
  const page = await visit(browser, "about:blank");
  await page.route("**/api/v1/status/active_queries*", (route) => route.fulfill({ status: 404, json: { status: "error", errorType: "not_found", error: "no such route" } }));
  await page.goto(`${server.url}/#/status`);
  await page.getByRole("link", { name: "Targets" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Queries" }).count(), 0);
  await page.goto(`${server.url}/#/queries`);
  await page.getByText("This server does not list its queries: it is older than this page.").waitFor();
  assert.deepEqual(page.faults, []);
});

// What came from data is text. Names and values that look like markup stay what they are.
test("hostile names and values are text", async () => {
  const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`;
  const page = await visit(browser, "about:blank");
  await page.route("**/api/v1/query*", (route) =>
    route.fulfill({
      json: {
        status: "success",
        warnings: [hostile],
        data: { resultType: "matrix", result: [0, 1].map((i) => ({ metric: { __name__: i ? hostile : "=cmd|' /C calc'!A0", [hostile]: `${hostile}${i}` }, values: [[Date.now() / 1000 - 60, "1"]] })) },
      },
    }),
  );
  await page.goto(explore("up"));
  await page.locator(".key").nth(1).waitFor();
  await page.locator(".key").nth(1).hover();
  assert.ok((await page.locator(".key").first().textContent()).includes("<img src=x"));
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByLabel("Save or share the answer").selectOption("csv")]);
  assert.ok((await readFile(await file.path(), "utf8")).includes(`,"'=cmd`), "a formula is quoted");
  await page.getByLabel("Show as").selectOption("table");
  await page.locator("main tbody tr").first().waitFor();
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("img, main script").count(), 0);
  assert.deepEqual(page.faults, []);
});

test("a server that goes away and returns", async () => {
  const own = await Server.start("--demo");
  try {
    const page = await visit(browser, `${own.url}/#/explore?range=15m&g0.expr=node_load1`);
    await until("the server has samples", async () => {
      await page.getByRole("button", { name: "Run" }).click();
      return (await page.locator("canvas").count()) > 0;
    });
    await own.down();
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("The server did not answer").waitFor();
    await own.up();
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator("canvas").waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.deepEqual(page.faults, []);
  } finally {
    await own.stop();
  }
});

test("a large answer is read as it arrives, drawn in steps, and saved as it was", async () => {
  const page = await visit(browser, "about:blank");
  const now = Math.floor(Date.now() / 60_000) * 60;
  // Texts that look like the end of a series, numbers that JavaScript writes otherwise, histograms.
  const strange = ']},{"metric":{"__name__":"x"},"values":[[1,"1"]]},{"metric":{';
  const values = (i) => Array.from({ length: 20 }, (_, j) => [now - 1200 + j * 60, i === 7 ? ["+Inf", "NaN", "-Inf", "-0", "1e+30", "1000000000000000000000000"][j % 6] : String(i + j / 8)]);
  const all = Array.from({ length: 600 }, (_, i) => ({ metric: { __name__: "many", metric: String(i), i: i === 3 ? strange : String(i) }, ...(i === 9 ? { histograms: [[now - 60, { count: "3", sum: "4", buckets: [[0, "1", "2", "3"]] }]] } : { values: values(i) }) }));
  const data = { resultType: "matrix", result: all };
  await page.route(/\/query_range(\?|$)/, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ status: "success", data, warnings: ["partial"] }) }));
  await page.goto(explore("many", `&end=${new Date((now - 60) * 1000).toISOString()}&g0.step_input=1m`));
  await page.getByText("The 500 largest of 600 series").waitFor();
  await page.getByText("partial").waitFor();
  await settled(page);
  assert.equal(await page.locator(".key").count(), 500);
  // The graph is not empty: some point in its middle has the colour of a line.
  await until("the lines are drawn", () => page.locator("canvas").evaluate((c) => c.getContext("2d").getImageData(c.width / 2, 0, 1, c.height).data.some((v, i) => i % 4 === 3 && v > 200)));
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByLabel("Save or share the answer").selectOption("json")]);
  assert.deepEqual(JSON.parse(await readFile(await file.path(), "utf8")), data);
  assert.deepEqual(page.faults, []);
});

test("refreshes of a large answer ask for its end, and keep the rest", async () => {
  const page = await visit(browser, "about:blank");
  const stopped = Math.floor(Date.now() / 1000) - 300;
  const point = (i, t) => [t, String(i * 1e6 + (t % 1000))];
  const asked = [];
  await page.route(/\/query_range(\?|$)/, (route) => {
    const q = new URL(route.request().url()).searchParams;
    const [start, end] = [Number(q.get("start")), Number(q.get("end"))];
    asked.push(end - start);
    const times = Array.from({ length: Math.floor(end - start) + 1 }, (_, i) => start + i);
    const one = (i) => ({ metric: { i: String(i) }, values: times.filter((t) => i > 1 || t <= stopped).map((t) => point(i, t)) });
    const result = Array.from({ length: 5 }, (_, i) => one(i)).filter((s) => s.values.length);
    return route.fulfill({ contentType: "application/json", body: JSON.stringify({ status: "success", data: { resultType: "matrix", result } }) });
  });
  await page.goto(`${server.url}/#/explore?range=15m&refresh=1s&g0.step_input=1s&g0.expr=many`);
  await until("the end was asked for thrice", () => asked.filter((s) => s < 300).length >= 3);
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByLabel("Save or share the answer").selectOption("json")]);
  const { result: series } = JSON.parse(await readFile(await file.path(), "utf8"));
  assert.equal(series.length, 5);
  for (const [i, s] of series.entries()) {
    const first = s.values[0][0];
    assert.deepEqual(s.values, s.values.map((_, j) => point(i, first + j)), `series ${i} has each point once`);
    assert.ok(i > 1 ? s.values.length === 901 : s.values.at(-1)[0] === stopped, `series ${i} has ${s.values.length} points`);
  }
  assert.deepEqual(page.faults, []);
});

test("the browser keeps the last two hundred queries", async () => {
  const page = await visit(browser, `${server.url}/#/explore?range=15m&g0.tab=table&g0.expr=vector(0)`);
  await page.getByRole("cell", { name: "0", exact: true }).waitFor();
  await page.evaluate(() => localStorage.setItem("promlake.history", JSON.stringify(Array.from({ length: 200 }, (_, i) => `vector(${200 - i})`))));
  await page.locator(".editor").click();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("vector(201)");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  await page.getByRole("cell", { name: "201", exact: true }).waitFor();
  // Another tab has them too, the newest first; the oldest is gone.
  const other = await page.context().newPage();
  await other.goto(`${server.url}/#/explore`);
  await other.locator(".editor").click();
  await other.keyboard.press("Control+Space");
  const rows = other.locator(".cm-tooltip-autocomplete li");
  await rows.first().waitFor();
  assert.match(await rows.first().textContent(), /^vector\(201\)/);
  const kept = await other.evaluate(() => JSON.parse(localStorage.getItem("promlake.history")));
  assert.deepEqual([kept.length, kept.at(0), kept.at(-1)], [200, "vector(201)", "vector(2)"]);
  assert.deepEqual(page.faults, []);
});

test("many metric names are completed, wherever they have what is typed", async () => {
  const page = await visit(browser, "about:blank");
  const names = Array.from({ length: 20_000 }, (_, i) => `metric_${String(i).padStart(5, "0")}_total`).concat("a_Rare_name_total", "z_last");
  await page.route("**/api/v1/label/__name__/values*", (route) => route.fulfill({ json: { status: "success", data: names } }));
  await page.goto(`${server.url}/#/explore`);
  await page.locator(".editor").click();
  const first = page.locator(".cm-tooltip-autocomplete li").first();
  const type = async (text, wanted) => {
    await page.keyboard.press("Control+A");
    await page.keyboard.type(text, { delay: 30 });
    await until(`${text} finds ${wanted}`, async () => (await first.count()) > 0 && (await first.textContent()).includes(wanted));
    await page.keyboard.press("Escape");
  };
  await type("metric_19999", "metric_19999_total");
  await type("rare_n", "a_Rare_name_total");
  await type("z_las", "z_last");
  await type("rate", "rate");
  assert.deepEqual(page.faults, []);
});

test("a worker that cannot be loaded is reported, and the next query loads it", async () => {
  const page = await visit(browser, "about:blank");
  let lost = true;
  await page.route("**/assets/worker.js", (route) => (lost ? route.abort() : route.continue()));
  await page.goto(explore("node_load1"));
  await page.getByText("The server did not answer (assets/worker.js cannot be loaded)").waitFor();
  lost = false;
  await page.getByRole("button", { name: "Run" }).click();
  await page.locator("canvas").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
});

test("answers that take longer than the refresh are shown", async () => {
  const page = await visit(browser, "about:blank");
  await page.route(/\/query_range(\?|$)/, async (route) => {
    await new Promise((done) => setTimeout(done, 2_500));
    const now = Math.floor(Date.now() / 1000);
    await route.fulfill({ json: { status: "success", data: { resultType: "matrix", result: [{ metric: { __name__: "slow" }, values: [[now - 60, "1"], [now - 30, "2"]] }] } } }).catch(() => {});
  });
  await page.goto(explore("slow", "&refresh=1s"));
  await page.locator("canvas").waitFor();
  assert.deepEqual(page.faults, []);
});

test("the page asks for a token when the server requires one", async () => {
  const tokens = `${server.folder}/tokens.json`;
  const token = (await run("token", "--tenant", "team-a", "--access", "read", "--tokens", tokens)).trim();
  const guarded = await Server.start("--auth.tokens", `file:${tokens}`);
  try {
    const page = await visit(browser, `${guarded.url}/#/explore?g0.expr=vector(7)&g0.tab=table`);
    await page.getByRole("dialog").waitFor();
    await page.getByLabel("Bearer token").fill("wrong");
    await page.getByRole("button", { name: "Use" }).click();
    await page.getByText("needs a valid token").waitFor();
    await page.getByLabel("Bearer token").fill(token);
    await page.getByRole("button", { name: "Use" }).click();
    await page.getByRole("cell", { name: "7", exact: true }).waitFor();
    // A token that is no longer valid is asked for again, and what was shown stays in place.
    const next = (await run("token", "--tenant", "team-a", "--access", "read", "--tokens", tokens)).trim();
    const all = JSON.parse(await readFile(tokens, "utf8"));
    await writeFile(tokens, JSON.stringify({ ...all, tokens: all.tokens.slice(1) }));
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("needs a valid token").waitFor();
    await page.getByLabel("Bearer token").fill(next);
    await page.getByRole("button", { name: "Use" }).click();
    await until("the query is answered again", async () => (await page.getByRole("alert").count()) === 0 && (await page.getByRole("cell", { name: "7", exact: true }).count()) === 1);
    // It is kept in memory only.
    assert.equal(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])).then((s) => s.includes("team") || s.length > 2000), false);
    await page.reload();
    await page.getByRole("dialog").waitFor();
    assert.deepEqual(page.faults, []);
  } finally {
    await guarded.stop();
  }
});

test("the status shows limits, tokens without secrets, and the health of the store", async () => {
  const tokens = `${server.folder}/operators.json`;
  const operator = (await run("token", "--tenant", "*", "--access", "read,admin", "--comment", "<b>ops</b>", "--tokens", tokens)).trim();
  await run("token", "--tenant", "team-a", "--access", "read", "--tokens", tokens);
  await run("token", "--principal", "arn:aws:iam::123456789012:role/x", "--tenant", "team-b", "--access", "write", "--tokens", tokens);
  const guarded = await Server.start("--auth.tokens", `file:${tokens}`, "--query.max-series=12345");
  try {
    const page = await visit(browser, `${guarded.url}/#/status`);
    await page.getByLabel("Bearer token").fill(operator);
    await page.getByRole("button", { name: "Use" }).click();
    const rows = page.getByRole("region", { name: "Tokens" }).getByRole("row");
    await until("both tokens and the principal are listed", async () => (await rows.count()) === 4);
    const texts = (await rows.allTextContents()).slice(1);
    assert.deepEqual([...texts.slice(0, 2).map((t) => t.slice(9)), texts[2]], ["*read, admin<b>ops</b>", "team-aread", "arn:aws:iam::123456789012:role/xteam-bwrite"]);
    const { tokens: entries } = JSON.parse(await readFile(tokens, "utf8"));
    const text = await page.locator("main").textContent();
    for (const secret of [operator, ...entries.map((e) => e.sha256)]) assert.equal(text.includes(secret), false);
    assert.match(await page.getByRole("region", { name: "Limits" }).textContent(), /query\.max-series12345/);
    await page.getByRole("button", { name: "Examine the store" }).click();
    await page.getByText("No object is damaged: 0 segments and 0 blocks of anonymous").waitFor();
    assert.deepEqual(page.faults, []);
  } finally {
    await guarded.stop();
  }
  // Without tokens, everybody is an operator. Damage is named.
  const page = await visit(browser, "about:blank");
  const damaged = { object: "v1/a/x", error: "checksum <i>differs</i>", min_time: "2026-01-01T00:00:00Z", max_time: "2026-01-01T01:00:00Z", series: 3, samples: 1200 };
  await page.goto(`${server.url}/#/status`);
  await page.getByText("Requests need no token.").waitFor();
  assert.equal((await page.locator("main").textContent()).includes("[object"), false);
  const build = page.getByRole("region", { name: "Build" }).getByRole("row");
  assert.deepEqual((await build.allTextContents()).filter((t) => /^(Promlake|Prometheus API|version)/.test(t)).map((t) => t.replace(/(dev|\d.*)$/, "")), ["Prometheus API", "Promlake"]);
  await page.getByRole("button", { name: "Examine the store" }).click();
  await page.getByText(/No object is damaged: \d+ segments and \d+ blocks of anonymous, .*B read/).waitFor();
  await page.route("**/api/v1/status/doctor", (route) => route.fulfill({ json: { status: "success", data: { tenants: [{ tenant: "a", segments: 1, blocks: 2, bytes: 10, damaged: [damaged] }] } } }));
  await page.getByRole("button", { name: "Examine the store" }).click();
  await page.getByText("v1/a/x: checksum <i>differs</i>. From 2026-01-01T00:00:00Z to 2026-01-01T01:00:00Z, 1,200 samples of 3 series.").waitFor();
  assert.deepEqual(page.faults, []);
});

for (const theme of ["light", "dark"]) {
  test(`accessible and within its width, ${theme}`, async () => {
    const page = await visit(browser, explore("node_load1"), { colorScheme: theme });
    for (const view of ["dashboards", "explore", "sql", "explain", "lake", "cardinality", "queries", "targets", "rules", "alerts", "status"]) {
      await page.goto(`${server.url}/#/${view}?range=15m&g0.expr=node_load1&sql=${encodeURIComponent("SELECT metric, labels FROM series")}`);
      await page.locator("main canvas, main table, main h3").first().waitFor();
      for (const width of [360, 1280, 2560]) {
        await page.setViewportSize({ width, height: 900 });
        await until(`${view} fits ${width} pixels`, () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      }
      assert.deepEqual(await serious(page, "html"), [], view);
    }
    assert.deepEqual(page.faults, []);
  });
}

test("the first load is small", async () => {
  let sum = 0;
  for (const file of ["index.html", "assets/page.js", "assets/page.css", "assets/worker.js"]) sum += gzipSync(await readFile(new URL(`../dist/${file}`, import.meta.url))).length;
  assert.ok(sum <= 300_000, `${sum} bytes compressed`);
});
