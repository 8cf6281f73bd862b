// Explore for those who do not know PromQL: how to send the first sample, the list of metrics, the
// builder and the hints, in a real browser before real servers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, open, reach, run, serious, Server, until, visit } from "./harness.mjs";

let server, browser;

before(async () => {
  server = await Server.start("--demo");
  await until("rates of this machine and buckets are there", async () => {
    const r = await fetch(`${server.url}/api/v1/query?query=${encodeURIComponent("rate(node_cpu_seconds_total[1m]) and on() rate(prometheus_rule_evaluation_duration_histogram_seconds_bucket[1m])")}`).then((x) => x.json());
    return r.data.result.length > 0;
  });
  browser = await open();
});

after(async () => {
  await close(browser);
  await server?.stop();
});

// asked is the expression of a panel in the address.
const asked = (page, i = 0) => new URLSearchParams(page.url().split("?")[1]).get(`g${i}.expr`);
const asks = (page, expr) => until(`the page asks ${expr}`, () => asked(page) === expr);
const explore = (expr, more = "") => `${server.url}/#/explore?range=15m${more}&g0.expr=${encodeURIComponent(expr)}`;
const text = (page) => page.locator(".editor").first().evaluate((e) => e.shadowRoot.querySelector(".cm-content").innerText.trim());
const metrics = (page) => page.getByRole("list", { name: "Metrics" });

// write replaces the query by keys, and runs it.
async function write(page, expr) {
  await page.locator(".editor").first().click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(expr);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  await asks(page, expr);
}

test("a store without data shows what to paste, and its first sample appears by itself", async () => {
  const own = await Server.start();
  try {
    for (const colorScheme of ["light", "dark"]) {
      const page = await visit(browser, `${own.url}/#/explore`, { colorScheme });
      await page.getByRole("heading", { name: "No data yet" }).waitFor();
      assert.deepEqual(await serious(page, "html"), [], colorScheme);
    }
    const page = await visit(browser, own.url);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await reach(page, page.getByRole("link", { name: "How to send some" }), "Enter");
    const block = page.getByRole("tabpanel");
    await block.getByText(`- url: ${own.url}/api/v1/write`).waitFor();
    // The keyboard reaches all senders, and copies their texts.
    await reach(page, page.getByRole("tab", { name: "Prometheus" }));
    for (const [key, name, wanted] of [["ArrowRight", "OpenTelemetry Collector", `endpoint: ${own.url}/otlp`], ["ArrowRight", "Telegraf", `urls = ["${own.url}"]`], ["ArrowRight", "Grafana Alloy", `url = "${own.url}/api/v1/write"`], ["ArrowRight", "Prometheus", "remote_write:"], ["ArrowLeft", "Grafana Alloy", "prometheus.scrape"]]) {
      await page.keyboard.press(key);
      assert.equal(await page.evaluate(() => document.activeElement.textContent), name);
      assert.ok((await block.locator("pre").textContent()).includes(wanted), name);
    }
    await reach(page, block.getByRole("button", { name: "Copy" }), "Enter");
    await block.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await block.locator("pre").textContent());
    // A server that starts anew is no reason to stop waiting. Nobody touches the page.
    await own.down();
    await own.up();
    const now = Date.now();
    const sent = await fetch(`${own.url}/api/v1/import/prometheus`, { method: "POST", body: `# TYPE first_sample gauge\nfirst_sample{job="a"} 1 ${now - 60_000}\nfirst_sample{job="a"} 2 ${now}\n` });
    assert.equal(sent.status, 204);
    await metrics(page).getByRole("button", { name: "first_sample" }).click();
    await asks(page, "first_sample");
    await page.locator("canvas").waitFor();
    assert.equal(await page.getByText("No data yet").count(), 0);
    assert.deepEqual(page.faults, []);
  } finally {
    await own.stop();
  }
});

test("a server without data starts the demo when it is asked to", async () => {
  const own = await Server.start("--demo.interval=1s");
  try {
    // Another tenant would get no data of it.
    const other = await visit(browser, "about:blank");
    await Promise.all([other.waitForResponse("**/api/v1/demo"), other.goto(`${own.url}/#/explore?tenant=other`)]);
    await other.getByText("promlake serve --demo").waitFor();
    assert.equal(await other.getByRole("button", { name: "Start the demo" }).count(), 0);
    const page = await visit(browser, `${own.url}/#/explore`);
    await reach(page, page.getByRole("button", { name: "Start the demo" }), "Enter");
    await page.getByRole("region", { name: "Memory in use", exact: true }).getByRole("meter").waitFor();
    await page.getByRole("link", { name: "Targets" }).waitFor();
    // The page asks now and then whether there are samples.
    await page.getByText("No data yet").waitFor({ state: "hidden" });
    assert.deepEqual(page.faults, []);
  } finally {
    await own.stop();
  }
});

test("what to paste has a place for the token and names the tenant", async () => {
  const tokens = `${server.folder}/tokens.json`;
  const token = (await run("token", "--tenant", "team-a,team-b", "--access", "read", "--tokens", tokens)).trim();
  const guarded = await Server.start("--auth.tokens", `file:${tokens}`);
  try {
    const page = await visit(browser, `${guarded.url}/#/explore?tenant=team-b`);
    await page.getByLabel("Bearer token").fill(token);
    await page.getByRole("button", { name: "Use" }).click();
    await page.getByRole("heading", { name: "No data for tenant team-b" }).waitFor();
    for (const [name, ...wanted] of [["Prometheus", "credentials: TOKEN", 'X-Scope-OrgID: "team-b"'], ["OpenTelemetry Collector", "Authorization: Bearer TOKEN", 'X-Scope-OrgID: "team-b"'], ["Telegraf", 'token = "TOKEN"', '{"X-Scope-OrgID" = "team-b"}'], ["Grafana Alloy", 'bearer_token = "TOKEN"', '{ "X-Scope-OrgID" = "team-b" }']]) {
      await page.getByRole("tab", { name }).click();
      const block = await page.getByRole("tabpanel").locator("pre").textContent();
      for (const w of wanted) assert.ok(block.includes(w), `${name}: ${w}`);
    }
    await page.getByText("promlake token --tenant NAME --access write").waitFor();
    assert.equal((await page.content()).includes(token), false);
    assert.deepEqual(page.faults, []);
  } finally {
    await guarded.stop();
  }
});

test("metrics are found by name and help, and one click draws what suits them", async () => {
  const page = await visit(browser, `${server.url}/#/explore?range=15m`);
  const list = metrics(page);
  const field = page.getByLabel("Find metrics by name, help text, unit or labels");
  await until("types and series are there", async () => /gauge · \d+ series · /.test(await list.textContent()));
  const help = await fetch(`${server.url}/api/v1/metadata?metric=node_load15`).then((r) => r.json()).then((r) => r.data.node_load15[0].help);
  await field.fill(help);
  await list.getByRole("button", { name: "node_load15" }).waitFor();
  // Down goes from the field to the rows, Enter takes one; in the field it takes the first.
  await field.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await until("the graph is asked for", () => /^node_load\d+$/.test(asked(page) ?? ""));
  await page.locator("canvas").waitFor();
  await field.fill("node_cpu_seconds_total");
  await field.press("Enter");
  await until("the rate is asked for", () => /^sum\(rate\(node_cpu_seconds_total\[\d+m\]\)\)$/.test(asked(page) ?? ""));
  await field.fill("prometheus_rule_evaluation_duration_histogram_seconds_bucket");
  await list.getByRole("button").first().click();
  await until("the quantile is asked for", () => /^histogram_quantile\(0\.95, sum by \(le\) \(rate\(prometheus_rule_evaluation_duration_histogram_seconds_bucket\[\d+m\]\)\)\)$/.test(asked(page) ?? ""));
  assert.equal(await text(page), asked(page));
  assert.equal(asked(page, 1), null, "a metric takes the place of the one before");
  // Another query stays.
  await write(page, "vector(1)");
  await field.fill("node_load1");
  await field.press("Enter");
  await until("there is a second panel", () => asked(page, 1) === "node_load1");
  assert.equal(asked(page), "vector(1)");
  await field.fill("no such metric anywhere");
  await page.getByText("No metric has these words").waitFor();
  await page.getByLabel("Order of the metrics").selectOption("series");
  await field.fill("");
  const series = async () => (await list.getByRole("button").allTextContents()).map((t) => Number(/ ([\d,]+) series/.exec(` ${t.replaceAll("·", "· ")}`)?.[1].replace(",", "")));
  assert.deepEqual(await series(), (await series()).toSorted((a, b) => b - a));
  assert.deepEqual(await serious(page, "html"), []);
  assert.deepEqual(page.faults, []);
});

test("a gauge of many series is averaged by a label", async () => {
  const page = await visit(browser, "about:blank");
  const reply = (data, more = {}) => (route) => route.fulfill({ json: { status: "success", data, ...more } });
  await page.route("**/api/v1/label/__name__/values*", reply(["pods_ready"]));
  await page.route("**/api/v1/metadata*", reply({ pods_ready: [{ type: "gauge", help: "Pods.", unit: "" }] }));
  await page.route("**/api/v1/status/metric_names_stats*", reply(undefined, { records: [{ metricName: "pods_ready", series: 4_000, queryRequestsCount: 0, lastSampleTimestamp: 0, dollarsPerMonth: 1.5 }] }));
  await page.route("**/api/v1/status/tsdb*", reply({ labelValueCountByLabelName: [{ name: "pod", value: 4_000 }, { name: "zone", value: 3 }, { name: "job", value: 1 }] }));
  await page.goto(`${server.url}/#/explore`);
  await page.getByText("gauge · 4,000 series · never asked · $1.50 a month").waitFor();
  await metrics(page).getByRole("button").click();
  await asks(page, "avg by (zone) (pods_ready)");
});

test("the list says when a metric had its last sample, and which are stale", async () => {
  const now = Math.floor(Date.now() / 1000) * 1000;
  const sent = await fetch(`${server.url}/api/v1/import/prometheus`, { method: "POST", body: `silent_metric 1 ${now - 600_000}\n` });
  assert.equal(sent.status, 204);
  const page = await visit(browser, `${server.url}/#/explore?range=1h&tz=utc`);
  await page.getByLabel("Order of the metrics").selectOption("seen");
  const first = metrics(page).getByRole("listitem").first();
  await until("the oldest is the first", async () => (await first.textContent())?.startsWith("silent_metric stale"));
  assert.match(await first.textContent(), new RegExp(`last sample ${new Date(now - 600_000).toISOString().slice(0, 19).replace("T", " ")} $`));
  await page.getByLabel("Find metrics by name, help text, unit or labels").fill("node_load15");
  await until("a metric that is scraped is fresh", async () => /^node_load15 gauge · .*last sample \d/.test(await first.textContent()));
  assert.deepEqual(page.faults, []);
});

test("a hundred thousand metrics are listed in part and found at once", async () => {
  const page = await visit(browser, "about:blank");
  const names = Array.from({ length: 100_000 }, (_, i) => `metric_${String(i).padStart(6, "0")}`);
  await page.route("**/api/v1/label/__name__/values*", (route) => route.fulfill({ json: { status: "success", data: names } }));
  await page.route("**/api/v1/metadata*", (route) => route.fulfill({ json: { status: "success", data: { metric_077777: [{ type: "counter", help: "The needle in the haystack.", unit: "" }] } } }));
  await page.goto(`${server.url}/#/explore`);
  await page.getByText("The first 100 of 100,000 metrics. Type to narrow. Series and queries are listed for at most 20,000 metrics.").waitFor();
  assert.equal(await metrics(page).getByRole("listitem").count(), 100);
  await page.getByLabel("Find metrics by name, help text, unit or labels").fill("needle HAYSTACK");
  await until("one is found", async () => (await metrics(page).getByRole("listitem").allTextContents()).join() === "metric_077777 counter The needle in the haystack. ");
  assert.deepEqual(page.faults, []);
});

test("metrics are found by their unit and by labels, and new ones come by themselves", async () => {
  const page = await visit(browser, "about:blank");
  const metadata = { a_metric: [{ type: "gauge", help: "Of the first service.", unit: "parsecs" }] };
  let names = ["a_metric", "b_metric"];
  let selector;
  await page.route("**/api/v1/metadata*", (route) => route.fulfill({ json: { status: "success", data: metadata } }));
  await page.route("**/api/v1/label/__name__/values*", (route) => {
    selector = new URL(route.request().url()).searchParams.get("match[]");
    return route.fulfill({ json: { status: "success", data: selector ? ["b_metric"] : names } });
  });
  await page.clock.install();
  await page.goto(`${server.url}/#/explore?refresh=5s`);
  const field = page.getByLabel("Find metrics by name, help text, unit or labels");
  const listed = (...wanted) => until(`${wanted} are listed`, async () => (await metrics(page).locator(".expr").allTextContents()).join() === wanted.join());
  await listed("a_metric", "b_metric");
  await field.fill("PARSECS");
  await listed("a_metric");
  await field.fill('metric {job="b');
  await listed("a_metric", "b_metric");
  assert.equal(selector, null, "a selector that is not finished is not asked for");
  await field.fill('metric {job="b", instance=~"b.*"}');
  await listed("b_metric");
  assert.equal(selector, '{job="b", instance=~"b.*"}');
  await field.fill("");
  await listed("a_metric", "b_metric");
  names = [...names, "c_metric"];
  await page.clock.fastForward(70_000);
  await listed("a_metric", "b_metric", "c_metric");
  assert.deepEqual(page.faults, []);
});

test("the builder and the text follow each other", async () => {
  const page = await visit(browser, explore('sum by (mode) (rate(node_cpu_seconds_total{job="node"}[1m]))'));
  const field = (name) => page.getByLabel(name, { exact: true });
  const values = () => Promise.all(["Metric", "Label 1", "Comparison 1", "Value 1", "Function of a range", "Range of the function", "Aggregation", "Labels that the aggregation keeps"].map((n) => field(n).inputValue()));
  assert.deepEqual(await values(), ["node_cpu_seconds_total", "job", "=", "node", "rate", "1m", "sum", "mode"]);
  // Fields change the text, and run it.
  await field("Range of the function").fill("2m");
  await page.keyboard.press("Tab");
  await asks(page, 'sum by (mode) (rate(node_cpu_seconds_total{job="node"}[2m]))');
  await field("Aggregation").selectOption("avg");
  await field("Labels that the aggregation keeps").fill("mode, cpu");
  await page.keyboard.press("Tab");
  await asks(page, 'avg by (mode, cpu) (rate(node_cpu_seconds_total{job="node"}[2m]))');
  await page.getByRole("button", { name: "Add matcher" }).focus();
  await page.keyboard.press("Enter");
  await until("the new label has the focus", () => page.evaluate(() => document.activeElement.getAttribute("aria-label") === "Label 2"));
  const offers = (name) => page.getByLabel(name, { exact: true }).evaluate((f) => [...f.list.options].map((o) => o.value));
  await until("labels are offered", async () => (await offers("Label 2")).includes("mode"));
  await page.keyboard.type("mode");
  await page.keyboard.press("Tab");
  await field("Comparison 2").selectOption("=~");
  await field("Value 2").focus();
  await until("values are offered", async () => (await offers("Value 2")).includes("idle"));
  await page.keyboard.type("idle|user");
  await page.keyboard.press("Enter");
  await asks(page, 'avg by (mode, cpu) (rate(node_cpu_seconds_total{job="node", mode=~"idle|user"}[2m]))');
  assert.equal(await text(page), asked(page));
  await field("Metric").fill("LOAD1");
  await until("metrics are offered", async () => (await offers("Metric")).includes("node_load15"));
  for (const n of [2, 1]) await page.getByRole("button", { name: `Remove matcher ${n}` }).click();
  await field("Metric").fill("node_load1");
  await field("Function of a range").selectOption("");
  await field("Aggregation").selectOption("");
  await asks(page, "node_load1");
  // A wrong value is refused, and the text stays.
  await field("Quantile of a histogram").fill("95");
  await page.keyboard.press("Enter");
  assert.equal(await field("Quantile of a histogram").evaluate((f) => f.validationMessage), "Write a number from 0 to 1, such as 0.95.");
  assert.equal(asked(page), "node_load1");
  // The text changes the fields. One that the builder cannot express stays.
  await write(page, 'max(node_load5{job="node"})');
  await until("the fields follow", async () => (await field("Metric").inputValue()) === "node_load5" && (await field("Aggregation").inputValue()) === "max" && (await field("Value 1").inputValue()) === "node");
  await write(page, "node_load1 / 2");
  await page.getByText("This query has more than that: edit its text.").waitFor();
  assert.equal(await field("Metric").count(), 0);
  assert.equal(await text(page), "node_load1 / 2");
  // Closed, it stays closed.
  await page.getByText("Builder", { exact: true }).click();
  await page.reload();
  await page.locator(".builder:not([open])").waitFor();
  assert.deepEqual(page.faults, []);
});

test("the keyboard alone finds, builds, mends, translates, explains, shares and saves", async () => {
  const page = await visit(browser, `${server.url}/#/explore?range=15m`);
  const button = (name) => page.getByRole("button", { name, exact: true });
  await reach(page, page.getByLabel("Find metrics by name, help text, unit or labels"));
  await page.keyboard.type("node_cpu_seconds");
  await metrics(page).getByRole("button", { name: "node_cpu_seconds_total" }).waitFor();
  for (const key of ["ArrowDown", "Enter"]) await page.keyboard.press(key);
  await until("the rate is asked for", () => /^sum\(rate\(node_cpu_seconds_total\[\d+m\]\)\)$/.test(asked(page) ?? ""));
  await reach(page, page.locator(".editor"), "Control+A");
  await page.keyboard.insertText("node_cpu_seconds_total");
  for (const key of ["Escape", "Enter"]) await page.keyboard.press(key);
  await asks(page, "node_cpu_seconds_total");
  await reach(page, page.getByRole("status", { name: "Hints" }).getByRole("button"), "Enter");
  await until("it is mended", () => /^rate\(node_cpu_seconds_total\[\d+m\]\)$/.test(asked(page) ?? ""));
  await reach(page, button("Add matcher"), "Enter");
  await page.keyboard.type("mode");
  await reach(page, page.getByLabel("Value 1", { exact: true }));
  await page.keyboard.type("idle");
  await page.keyboard.press("Enter");
  await reach(page, page.getByLabel("Aggregation", { exact: true }), "ArrowDown");
  await until("the builder's query is asked", () => /^sum\(rate\(node_cpu_seconds_total\{mode="idle"\}\[\d+m\]\)\)$/.test(asked(page) ?? ""));
  await page.locator("canvas").waitFor();

  const menu = page.getByLabel("Save or share the answer");
  const [file] = await Promise.all([page.waitForEvent("download"), reach(page, menu, "ArrowDown")]);
  assert.match(file.suggestedFilename(), /\.csv$/);
  await reach(page, menu, "End");
  const dialog = page.getByRole("dialog", { name: "Embed" });
  await reach(page, dialog.getByRole("button", { name: "Close" }), "Enter");
  await dialog.waitFor({ state: "detached" });
  await reach(page, page.getByText("Table of values"), "Enter");
  await page.getByRole("region", { name: "Values of" }).waitFor();

  await reach(page, button("SQL"), "Enter");
  await page.waitForURL(/#\/sql\?.*sql=WITH/);
  await page.locator("canvas").waitFor();
  await page.keyboard.press("2");
  await reach(page, button("Explain"), "Enter");
  await reach(page, button("Run and measure"), "Enter");
  await page.getByText(/^Where the time went: /).waitFor();
  await page.keyboard.press("2");

  await reach(page, button("Save as dashboard…"), "Enter");
  await page.keyboard.type("By keys");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: /^sum\(rate/ }).locator("canvas").waitFor();
  page.once("dialog", (d) => d.accept());
  await reach(page, button("Delete"), "Enter");
  await until("it is deleted", async () => !(await fetch(`${server.url}/api/v1/dashboards`).then((r) => r.text())).includes("By keys"));
  assert.deepEqual(page.faults, []);
});

test("mistakes are named, and a click mends them", async () => {
  const page = await visit(browser, explore("node_cpu_seconds_total"));
  const hints = page.getByRole("status", { name: "Hints" });
  const bucket = "prometheus_rule_evaluation_duration_histogram_seconds_bucket";
  const mend = async (expr, says, button, mended) => {
    if (expr) await write(page, expr);
    await hints.getByText(says).waitFor();
    await hints.getByRole("button", { name: button }).first().click();
    await until(`${expr} is mended`, () => mended.test(asked(page) ?? ""));
    assert.equal(await text(page), asked(page));
    await until("the hint is gone", async () => !says.test(await hints.textContent()));
  };
  await mend("", /node_cpu_seconds_total counts from the start/, "rate", /^rate\(node_cpu_seconds_total\[\d+m\]\)$/);
  await mend("rate(node_cpu_seconds_total[7s])", /are 5s apart: 7s may hold fewer/, "[1m]", /^rate\(node_cpu_seconds_total\[1m\]\)$/);
  await mend(`avg(histogram_quantile(0.9, sum by (le, job) (rate(${bucket}[1m]))))`, /cannot be averaged/, "Add up the buckets", /^histogram_quantile\(0\.9, sum by \(le\) \(rate/);
  await mend(`histogram_quantile(0.9, sum(rate(${bucket}[1m])))`, /needs the label le/, "by (le)", /^histogram_quantile\(0\.9, sum by \(le\) \(rate/);
  await mend("avg(node_laod1)", /No metric has the name node_laod1/, "node_load1", /^avg\(node_load1\)$/);
  await mend('node_load1{job="nod"}', /No series of node_load1 has job="nod"/, 'job="node"', /^node_load1\{job="node"\}$/);
  await write(page, 'node_load1{no_such_label="a"}');
  await hints.getByText("No series of node_load1 has the label no_such_label").waitFor();
  for (const theme of ["light", "dark"]) {
    await page.evaluate((t) => (document.documentElement.dataset.theme = t), theme);
    assert.deepEqual(await serious(page, "html"), [], theme);
  }
  // What is right has no hint.
  await write(page, "sum(rate(node_cpu_seconds_total[1m]))");
  await page.locator("canvas").waitFor();
  await until("there is no hint", async () => (await hints.textContent()) === "");
  assert.deepEqual(page.faults, []);
});

test("a costly query says what it takes, and becomes cheaper with one click", async () => {
  const page = await visit(browser, "about:blank");
  let estimate = { seriesTouched: 12_000, samplesRead: 7_000_000, bytes: 3 * 2 ** 20, dollars: 0.002, functionMilliseconds: 4_500 };
  await page.route(/\/(query_range_cost|query_cost|explain)\?/, async (route) => {
    const reply = await (await route.fetch()).json();
    Object.assign(reply.data.estimate, estimate);
    await route.fulfill({ json: reply });
  });
  await page.goto(`${server.url}/#/explore?g0.expr=node_load1&g0.step_input=1s`);
  const hints = page.getByRole("status", { name: "Hints" });
  const press = (name) => reach(page, hints.getByRole("button", { name, exact: true }), "Enter");
  await hints.getByText("This query takes about 7,000,000 samples of 12,000 series, 3 MiB, 4.5 s of a function ($0.002). Use Explain").waitFor();
  await hints.getByText("The step of 1s makes 3,601 values of each series: one of 4s makes a quarter of them. Use a step of 4s").waitFor();
  assert.deepEqual(await serious(page), []);
  await press("a step of 4s");
  await until("the step is 4s", async () => /g0\.step_input=4s/.test(page.url()) && (await hints.getByText("The step").count()) === 0);
  assert.equal(await page.getByLabel("Step, for example 30s").inputValue(), "4s");
  await hints.getByText("Half of the time range reads about half of the 7,000,000 samples of 12,000 series. Use a time range of 30m").waitFor();
  await press("a time range of 30m");
  await hints.getByRole("button", { name: "a time range of 15m" }).waitFor();
  assert.match(page.url(), /range=30m/);
  assert.doesNotMatch(page.url(), /end=/); // it still ends now
  // A table has one time: its hint is the price alone.
  await page.getByLabel("Show as").selectOption("table");
  await until("the sentences of graphs are gone", async () => (await hints.locator("p").count()) === 1);
  // The question says what a heavy query takes, the hints make it cheaper.
  estimate = { ...estimate, samplesRead: 70_000_000 };
  await page.getByLabel("Show as").selectOption("graph");
  await page.getByRole("group", { name: "Estimate of a heavy query" }).getByText("it takes about 70,000,000 samples").waitFor();
  await hints.getByRole("button", { name: "a time range of 15m" }).waitFor();
  assert.equal(await hints.getByText("This query takes").count(), 0);
  // What is cheap has no such hint.
  estimate = { ...estimate, samplesRead: 4_000_000, dollars: 0 };
  await hints.getByRole("button", { name: "a time range of 15m" }).click();
  await page.locator("canvas").waitFor();
  await until("there is no hint", async () => (await hints.textContent()) === "");
  estimate = { ...estimate, samplesRead: 6_000_000 };
  await page.getByLabel("Length of the time range").selectOption("1h");
  await press("Explain");
  await until("the query is in Explain", async () => /#\/explain\?.*g0\.expr=node_load1/.test(page.url()));
  assert.deepEqual(page.faults, []);
});
