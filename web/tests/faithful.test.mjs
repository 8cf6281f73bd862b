// Panels of dashboards draw the values that Grafana draws, or name what they draw otherwise. Small
// dashboards on constant queries, in a real browser before a real server.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, open, serious, Server, settled, until, visit } from "./harness.mjs";

let server, browser;

before(async () => {
  server = await Server.start();
  browser = await open();
});

after(async () => {
  await close(browser);
  await server?.stop();
});

const target = (refId, expr, legendFormat, more = {}) => ({ refId, expr, legendFormat, ...more });
const fixed = (name, fixedColor, ...more) => ({ matcher: { id: "byName", options: name }, properties: [{ id: "color", value: { mode: "fixed", fixedColor } }, ...more.map(([id, value]) => ({ id, value }))] });
const card = (page, name) => page.getByRole("region", { name, exact: true });
const notes = (page, name) => card(page, name).locator(".card-notes li").allTextContents();
const cells = (page, name) => card(page, name).locator("tbody tr").evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.textContent)));

// show opens a dashboard of panels, and waits until the first one shows something.
async function show(panels, { what = "canvas, tbody tr, .stat-value, [role=meter]", more = {}, wrapped } = {}) {
  const page = await visit(browser, "about:blank");
  page.asked = [];
  page.on("request", (r) => page.asked.push(new URL(r.url())));
  const dashboard = { title: "Faithful", panels: panels.map((p, i) => ({ gridPos: { x: 0, y: i * 8, w: 12, h: 8 }, ...p })), ...more };
  await page.route("**/api/v1/dashboards/x.json", (route) => route.fulfill({ json: { status: "success", data: wrapped ? wrapped(dashboard) : dashboard } }));
  await page.goto(`${server.url}/#/dashboards?range=15m&dash=file%3Ax.json`);
  for (const p of panels) {
    await card(page, p.title).scrollIntoViewIfNeeded();
    await card(page, p.title).locator(what).first().waitFor();
  }
  await settled(page);
  return page;
}

// tops returns, for each colour, the uppermost row of a graph's canvas that has it, in pixels.
async function tops(page, name, colours) {
  const found = await card(page, name).locator("canvas").evaluate((canvas, all) => {
    const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return all.map(([r, g, b]) => {
      for (let i = 0; i < width * height; i++) if (data[4 * i + 3] > 250 && Math.abs(data[4 * i] - r) + Math.abs(data[4 * i + 1] - g) + Math.abs(data[4 * i + 2] - b) < 12) return Math.floor(i / width);
      return undefined;
    });
  }, colours);
  return found;
}
const [red, lime, blue] = [[255, 0, 0], [0, 255, 0], [0, 0, 255]];
const [redHex, limeHex, blueHex] = ["#ff0000", "#00ff00", "#0000ff"];

test("a series that an override takes out of a stack stands alone", async () => {
  const targets = [target("A", "vector(30)", "Total"), target("B", "vector(4)", "used"), target("C", "vector(20)", "free")];
  const defaults = { custom: { lineWidth: 4, stacking: { mode: "normal", group: "A" } } };
  const overrides = [fixed("used", limeHex), fixed("free", blueHex)];
  const page = await show([
    { type: "timeseries", title: "none", targets, fieldConfig: { defaults, overrides: [...overrides, fixed("Total", redHex, ["custom.stacking", { mode: "none", group: false }])] } },
    { type: "timeseries", title: "group", targets, fieldConfig: { defaults, overrides: [...overrides, fixed("Total", redHex, ["custom.stacking", { mode: "normal", group: false }])] } },
  ]);
  for (const name of ["none", "group"]) {
    const [total, used, free] = await tops(page, name, [red, lime, blue]);
    // 30, 24 and 4 from above.
    assert.ok(total < free && free < used, `${name}: ${total} ${free} ${used}`);
    assert.ok(Math.abs((used - total) / (used - free) - 26 / 20) < 0.1, `${name}: ${total} ${free} ${used}`);
    assert.deepEqual(await notes(page, name), []);
  }
  assert.deepEqual(page.faults, []);
});

test("what a panel sets and the page does not draw is named, and nothing else", async () => {
  const page = await show([
    {
      type: "timeseries",
      title: "Some",
      pluginVersion: "11.0.0",
      unheardOf: { deep: [1] },
      timeShift: "1d/d",
      options: { legend: { calcs: ["mean", "p99"], showLegend: true, placement: "right" }, tooltip: { mode: "multi" }, xMode: "x" },
      fieldConfig: {
        defaults: { unit: "s", color: { mode: "shades" }, custom: { axisBorderShow: true, insertNulls: 5000, spanNulls: 60000, thresholdsStyle: { mode: "zones" }, cellOptions: { type: "gauge" } } },
        overrides: [
          { matcher: { id: "byName", options: "a" }, properties: [{ id: "custom.lineWidth", value: 3 }, { id: "custom.pointShape", value: "star" }] },
          { matcher: { id: "byValue", options: {} }, properties: [] },
        ],
      },
      transformations: [{ id: "calculateField", options: {} }],
      targets: [target("A", "vector(1)", "a", { editorMode: "code" })],
    },
    { type: "timeseries", title: "Defaults", id: 3, options: { tooltip: { mode: "single", sort: "none" } }, fieldConfig: { defaults: { links: [], custom: { axisCenteredZero: false, insertNulls: false, lineInterpolation: "linear", fillOpacity: 10, hideFrom: { legend: false, tooltip: false, viz: false }, scaleDistribution: { type: "linear" } }, mappings: [], thresholds: { mode: "absolute", steps: [] } }, overrides: [] }, targets: [target("A", "vector(1)", "a", { exemplar: false })] },
  ]);
  assert.deepEqual(await notes(page, "Some"), [
    'Not drawn as in Grafana: unheardOf, timeShift "1d/d", legend.calcs "p99", xMode "x", color.mode "shades", custom.insertNulls 5000, custom.thresholdsStyle.mode "zones", transformation calculateField, override custom.pointShape "star", overrides byValue.',
  ]);
  assert.match(await card(page, "Some").locator("h2").getAttribute("title"), /^Some\nNot drawn as in Grafana: unheardOf/);
  assert.deepEqual(await notes(page, "Defaults"), []);
  assert.deepEqual(page.faults, []);
});

test("a regular expression that JavaScript does not have is named", async () => {
  const targets = [target("A", "vector(1)", "", { format: "table", instant: true })];
  const page = await show([{ type: "table", title: "t", targets, transformations: [{ id: "renameByRegex", options: { regex: "/(?<a>x)(?<a>y/", renamePattern: "b" } }] }]);
  assert.deepEqual(await notes(page, "t"), ['Not drawn as in Grafana: transformation renameByRegex: regex "/(?<a>x)(?<a>y/".']);
  assert.deepEqual(page.faults, []);
});

test("tables colour and map cells as their options say", async () => {
  const targets = [target("A", 'label_replace(vector(270),"state","ok-1","","")', "", { format: "table", instant: true })];
  const thresholds = { mode: "absolute", steps: [{ color: "green", value: null }, { color: "red", value: 80 }] };
  const table = (title, custom, more = {}) => ({ type: "table", title, targets, fieldConfig: { defaults: { thresholds, custom, ...more }, overrides: [] } });
  const mappings = [{ type: "value", options: { 270: { text: "many" } } }, { type: "regex", options: { pattern: "^ok-(.*)$", result: { text: "fine $1" } } }];
  const page = await show([table("plain", {}), table("text", { displayMode: "color-text" }), table("behind", { cellOptions: { type: "color-background" } }), table("mapped", {}, { mappings }), table("bar", { cellOptions: { type: "gauge" } }, { min: 0, max: 540 }), table("line", { cellOptions: { type: "sparkline" } })]);
  const style = (name) => card(page, name).locator("tbody td").last().evaluate((td) => [td.style.color !== "", td.style.backgroundColor !== ""]);
  assert.deepEqual(await style("plain"), [false, false]);
  assert.deepEqual(await style("text"), [true, false]);
  assert.deepEqual(await style("behind"), [true, true]);
  assert.deepEqual((await cells(page, "mapped"))[0].slice(1), ["fine 1", "many"]);
  assert.deepEqual(await notes(page, "mapped"), []);
  assert.match(await card(page, "bar").locator("tbody td").last().evaluate((td) => td.style.backgroundImage), /^linear-gradient\(90deg, .* 50%, transparent/);
  assert.deepEqual(await notes(page, "bar"), []);
  assert.deepEqual(await notes(page, "line"), ['Not drawn as in Grafana: custom.cellOptions.type "sparkline".']);
  assert.deepEqual(page.faults, []);
});

test("a least step slows its own query alone", async () => {
  const page = await show([{ type: "timeseries", title: "Steps", targets: [target("A", "vector(1)", "fine"), target("B", "vector(2)", "coarse", { interval: "5m" }), target("C", "vector(3)", "factor", { intervalFactor: 4 })] }], { what: ".key" });
  const steps = new Map(page.asked.filter((u) => u.pathname.endsWith("query_range")).map((u) => [u.searchParams.get("query"), Number(u.searchParams.get("step"))]));
  assert.deepEqual([steps.get("vector(1)"), steps.get("vector(2)"), steps.get("vector(3)")], [15, 300, 60]);
  assert.deepEqual(await card(page, "Steps").locator(".key").allTextContents(), ["fine", "coarse", "factor"]);
  assert.deepEqual(page.faults, []);
});

test("a graph with one sample shows it", async () => {
  const page = await show([{ type: "timeseries", title: "One", interval: "30m", targets: [target("A", "vector(23)", "x")], fieldConfig: { defaults: {}, overrides: [fixed("x", redHex)] } }]);
  assert.ok((await tops(page, "One", [red]))[0] > 0);
});

test("old graphs: a second axis with its unit, colours, bars and stacks of series", async () => {
  const graph = (title, more) => ({ type: "graph", title, linewidth: 4, fill: 0, yaxes: [{ format: "Bps" }, { format: "ms", min: "0", max: "300" }], legend: { values: true, current: true }, targets: [target("A", "vector(5000000)", "read"), target("B", "vector(250)", "io time")], aliasColors: { read: redHex, "io time": blueHex }, ...more });
  const page = await show([
    graph("Axes", { seriesOverrides: [{ alias: "io time", yaxis: 2, zindex: -1 }] }),
    graph("Noted", { seriesOverrides: [{ alias: "/io.*/", fillBelowTo: "read", dashes: true }], thresholds: [{ value: 3, op: "gt", line: true, yaxis: "right" }], nullPointMode: "null as zero", xaxis: { mode: "histogram" } }),
    graph("Stack", { stack: true, targets: [target("A", "vector(30)", "read"), target("B", "vector(10)", "io time")], seriesOverrides: [{ alias: "io time", stack: false }] }),
  ]);
  assert.deepEqual(await cells(page, "Axes"), [["read", "5 MB/s"], ["io time", "250 ms"]]);
  // On its own axis, the small value is above the large one.
  const [read, time] = await tops(page, "Axes", [red, blue]);
  assert.ok(time < read, `${read} ${time}`);
  assert.deepEqual(await notes(page, "Axes"), []);
  assert.deepEqual(await notes(page, "Noted"), ['Not drawn as in Grafana: thresholds[].yaxis "right", xaxis.mode "histogram".']);
  const [below, alone] = await tops(page, "Stack", [red, blue]);
  assert.ok(below < alone, `${below} ${alone}`);
  assert.deepEqual(page.faults, []);
});

test("a graph draws thresholds as areas, null as zero, and short gaps through", async () => {
  // Every second of the steps has a value.
  const gaps = "vector(40) and on() (floor(vector(time()) / 15) % 2 == 0)";
  const graph = (title, targets, more, overrides = [fixed("x", blueHex)]) => ({ type: "timeseries", title, targets, ...more, fieldConfig: { ...more.fieldConfig, overrides } });
  const steps = [{ color: "transparent", value: null }, { color: limeHex, value: 20 }, { color: redHex, value: 30 }];
  const style = (mode) => ({ fieldConfig: { defaults: { min: 0, max: 40, custom: { lineWidth: 3, fillOpacity: 0, thresholdsStyle: { mode } }, thresholds: { mode: "absolute", steps } } } });
  const page = await show([
    graph("Areas", [target("A", "vector(1)", "x")], style("line+area")),
    graph("Old areas", [target("A", "vector(1)", "x")], { type: "graph", yaxes: [{ min: 0, max: 40 }], aliasColors: { x: blueHex }, thresholds: [{ value: 30, op: "gt", fill: true, line: true, colorMode: "critical", yaxis: "left" }] }),
    graph("Centred", [target("A", "vector(40)", "top"), target("B", "vector(0)", "x")], { fieldConfig: { defaults: { custom: { axisCenteredZero: true, lineWidth: 4 } } } }, [fixed("x", blueHex), fixed("top", redHex)]),
    graph("Between", [target("A", "vector(30)", "top"), target("B", "vector(10)", "x")], { fieldConfig: { defaults: { min: 0, max: 40, custom: { lineWidth: 1, fillOpacity: 0 } } } }, [fixed("x", blueHex), fixed("top", redHex, ["custom.fillBelowTo", "x"], ["custom.fillOpacity", 40])]),
    graph("Scheme", [target("A", "vector(time()) % 600 / 15", "x")], { fieldConfig: { defaults: { color: { mode: "thresholds" }, thresholds: { mode: "absolute", steps: [{ color: limeHex, value: null }, { color: redHex, value: 20 }] }, custom: { lineWidth: 4, gradientMode: "scheme" } } } }, []),
    graph("Zeros", [target("A", gaps, "x")], { type: "graph", nullPointMode: "null as zero", legend: { values: true, min: true }, aliasColors: { x: blueHex } }),
    graph("Gaps", [target("A", gaps, "x")], { options: { legend: { calcs: ["min"] } }, fieldConfig: { defaults: { custom: { spanNulls: 30_000, showPoints: "never" } } } }),
  ]);
  // The middle of the plot's rows, from above: the area above 30, the one above 20, and nothing.
  const rows = (name) => card(page, name).locator("canvas").evaluate((canvas) => {
    const at = (share) => [...canvas.getContext("2d").getImageData(Math.floor(canvas.width * 0.7), Math.floor(canvas.height * share), 1, 1).data];
    return [at(0.12), at(0.3), at(0.65)].map(([r, g, , a]) => (a === 0 || a > 250 ? "" : r > g ? "red" : "green"));
  });
  assert.deepEqual(await rows("Areas"), ["red", "green", ""]);
  assert.deepEqual(await rows("Old areas"), ["red", "", ""]);
  assert.deepEqual(await rows("Between"), ["", "red", ""]);
  const [high, low] = await tops(page, "Scheme", [red, lime]);
  assert.ok(high < low, `${high} ${low}`);
  const [top, zero] = await tops(page, "Centred", [red, blue]);
  assert.ok(zero > 3 * top, `${top} ${zero}`);
  assert.deepEqual(await cells(page, "Zeros"), [["x", "0"]]);
  assert.deepEqual(await cells(page, "Gaps"), [["x", "40"]]);
  // A line through the gaps is as wide as the plot.
  const blues = await card(page, "Gaps").locator("canvas").evaluate((canvas) => {
    const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(Array.from({ length: data.length / 4 }, (_, i) => i).filter((i) => data[4 * i + 2] > 200 && data[4 * i] < 60 && data[4 * i + 3] > 200).map((i) => i % width)).size / width;
  });
  assert.ok(blues > 0.5, `${blues}`);
  for (const name of ["Areas", "Old areas", "Centred", "Between", "Scheme", "Zeros", "Gaps"]) assert.deepEqual(await notes(page, name), [], name);
  assert.deepEqual(page.faults, []);
});

test("exemplars, a shifted time, names by a pattern, and series out of the legend", async () => {
  const at = Math.floor(Date.now() / 15_000) * 15_000 - 60_000;
  const points = (more) => Array.from({ length: 40 }, (_, i) => `dotted_total{job="a"} ${i} ${((at - i * 15_000) / 1000).toFixed(3)}${i === 2 ? more : ""}`).reverse();
  const sent = await fetch(`${server.url}/api/v1/import/prometheus`, { method: "POST", headers: { "Content-Type": "application/openmetrics-text" }, body: `# TYPE dotted counter\n${points(` # {trace_id="abc"} 1 ${((at - 30_000) / 1000).toFixed(3)}`).join("\n")}\n# EOF\n` });
  assert.equal(sent.status, 204, await sent.text());
  const hidden = { matcher: { id: "byValue", options: { reducer: "max", op: "gte", value: 9 } }, properties: [{ id: "custom.hideFrom", value: { legend: true, tooltip: false, viz: false } }] };
  const page = await show([
    { type: "timeseries", title: "Dots", targets: [target("A", "dotted_total", "x", { exemplar: true })] },
    { type: "timeseries", title: "Yesterday", timeShift: "1d", targets: [target("A", "vector(1)", "x")] },
    { type: "timeseries", title: "Named", targets: [target("A", "vector(1)", "pod-1"), target("B", "vector(2)", "other"), target("C", "vector(9)", "pod-9")], transformations: [{ id: "filterFieldsByName", options: { include: { pattern: "/^pod/" } } }, { id: "renameByRegex", options: { regex: "pod-(.*)", renamePattern: "number $1" } }], fieldConfig: { defaults: {}, overrides: [hidden] } },
    { type: "stat", title: "Palette", links: [{ title: "Runbook", url: "https://example.org/$__range" }, { title: "Grafana's", url: "/d/x" }], targets: [target("A", "vector(1)", "a"), target("B", "vector(2)", "b")], fieldConfig: { defaults: { color: { mode: "palette-classic" }, links: [{ url: "/d/y?${__url_time_range}" }] }, overrides: [] } },
  ], { more: { links: [{ type: "link", title: "Wiki", url: "https://example.org/wiki" }] } });
  assert.deepEqual(page.asked.filter((u) => u.pathname.endsWith("query_exemplars")).map((u) => u.searchParams.get("query")), ["dotted_total"]);
  await card(page, "Dots").scrollIntoViewIfNeeded();
  // The graph spans the time of its exemplars; that of its samples is on their steps.
  const { start, end } = Object.fromEntries(page.asked.find((u) => u.pathname.endsWith("query_exemplars")).searchParams);
  await until("the pointer meets the exemplar", async () => {
    const box = await card(page, "Dots").locator(".u-over").boundingBox();
    for (let y = 0; y < box.height; y += 6) {
      await page.mouse.move(box.x + (box.width * (at / 1000 - 30 - start)) / (end - start), box.y + y);
      if (/Exemplar.*trace_id="abc"/.test(await card(page, "Dots").locator(".tip").textContent())) return true;
    }
    return false;
  });
  const shifted = page.asked.find((u) => u.pathname.endsWith("query_range") && Number(u.searchParams.get("end")) < Date.now() / 1000 - 86_000);
  assert.equal(shifted.searchParams.get("query"), "vector(1)");
  assert.deepEqual(await card(page, "Named").locator(".key").allTextContents(), ["number 1"]);
  const colours = await card(page, "Palette").locator(".stat-value").evaluateAll((all) => all.map((e) => e.style.color));
  assert.ok(colours[0] && colours[0] !== colours[1], `${colours}`);
  await card(page, "Palette").hover();
  await card(page, "Palette").getByRole("button", { name: "About Palette" }).click();
  assert.deepEqual(await card(page, "Palette").getByRole("link").evaluateAll((all) => all.map((a) => a.textContent)), ["Runbook"]);
  await page.getByRole("link", { name: "Wiki" }).waitFor();
  // A graph without its exemplars says why.
  await page.route("**/api/v1/query_exemplars*", (route) => route.fulfill({ status: 422, json: { status: "error", errorType: "execution", error: "too many" } }));
  await card(page, "Dots").scrollIntoViewIfNeeded();
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("r");
  await card(page, "Dots").getByText("No exemplars: too many").waitFor();
  assert.equal(await card(page, "Dots").locator("canvas").count(), 1);
  for (const name of ["Dots", "Yesterday", "Named", "Palette"]) assert.deepEqual(await notes(page, name), [], name);
  assert.deepEqual(page.faults, []);
});

test("annotations of Prometheus are marks with a text, in the panels that show them", async () => {
  // The first two minutes of five are an event, at whichever minute the graph begins.
  const expr = 'label_replace(vector(1), "version", "v7", "", "") and on() (floor(vector(time()) / 60) % 5 < 2)';
  const list = [
    { builtIn: 1, name: "Annotations & Alerts", enable: true, datasource: { type: "grafana", uid: "-- Grafana --" }, iconColor: "blue", type: "dashboard" },
    { name: "Deploy", enable: true, datasource: { type: "prometheus", uid: "p" }, target: { expr, refId: "Anno" }, iconColor: redHex, titleFormat: "to {{version}}", filter: { exclude: true, ids: [3] }, mappings: {} },
    { name: "Times", enable: true, expr: "vector(1000) * floor(vector(time()) / 300) * 300", useValueForTime: "on", iconColor: limeHex },
    { name: "Off", enable: false, expr: "vector(1)" },
    { name: "Logs", enable: true, datasource: { type: "loki", uid: "l" }, expr: "{}" },
  ];
  const graph = (id) => ({ id, type: "timeseries", title: `Graph ${id}`, targets: [target("A", "vector(1)", "x")], fieldConfig: { defaults: {}, overrides: [fixed("x", blueHex)] } });
  const page = await show([graph(1), graph(2), graph(3)], { more: { annotations: { list } } });
  for (const [name, event] of [["Graph 1", true], ["Graph 2", true], ["Graph 3", false]]) {
    const [deploy, times] = await tops(page, name, [red, lime]);
    assert.deepEqual([deploy !== undefined, times !== undefined], [event, true], name);
    assert.deepEqual(await notes(page, name), []);
  }
  assert.deepEqual(await page.locator("main .dashboards > .status p").allTextContents(), ["Annotations are not drawn: Logs."]);
  assert.ok(page.asked.filter((u) => u.searchParams.get("query") === expr).length <= 2, "the panels share the events of a minute");
  await card(page, "Graph 1").scrollIntoViewIfNeeded();
  await until("the pointer meets an event", async () => {
    const box = await card(page, "Graph 1").locator(".u-over").boundingBox();
    for (let x = 0; x < box.width; x += 4) {
      await page.mouse.move(box.x + x, box.y + box.height / 2);
      if (/1 xDeploy · to v7/.test(await card(page, "Graph 1").locator(".tip").textContent())) return true;
    }
    return false;
  });
  assert.deepEqual(page.faults, []);
});

test("a table has all values over time of a query for a table", async () => {
  const targets = [target("A", 'label_replace(vector(7),"pod","p1","","")', "", { format: "table", interval: "5m" })];
  const page = await show([
    { type: "table", title: "Times", targets },
    { type: "stat", title: "One", targets: [target("A", 'label_replace(vector(7),"pod","p1","","") or label_replace(vector(9),"pod","p2","","")', "", { format: "table", interval: "5m" })], options: { reduceOptions: { calcs: ["sum"] } } },
    { type: "table", title: "Most", targets, transformations: [{ id: "groupBy", options: { fields: { pod: { operation: "groupby" }, Value: { operation: "aggregate", aggregations: ["count", "max"] } } } }] },
  ]);
  const rows = await cells(page, "Times");
  assert.ok(rows.length >= 3, `${rows.length}`);
  assert.deepEqual([new Set(rows.map((r) => r[0])).size, rows[0].slice(1)], [rows.length, ["p1", "7"]]);
  assert.deepEqual(await cells(page, "Most"), [["p1", String(rows.length), "7"]]);
  // A single value is calculated over all rows.
  assert.deepEqual(await card(page, "One").locator(".stat-value").allTextContents(), [String(rows.length * 16)]);
  for (const name of ["Times", "One", "Most"]) assert.deepEqual(await notes(page, name), [], name);
  assert.deepEqual(page.faults, []);
});

test("reduce and labelsToFields make the columns of Grafana", async () => {
  const targets = [target("A", 'label_replace(vector(7),"pod","p1","","")', "a"), target("B", "vector(8)", "b")];
  const page = await show([
    { type: "table", title: "Reduced", targets, transformations: [{ id: "reduce", options: { reducers: ["max", "lastNotNull"] } }, { id: "organize", options: { renameByName: { Max: "Most" } } }] },
    { type: "table", title: "Fields", targets: targets.slice(0, 1), transformations: [{ id: "reduce", options: { mode: "reduceFields", reducers: ["max"] } }] },
    { type: "table", title: "Labels", targets: targets.slice(0, 1), transformations: [{ id: "labelsToFields", options: {} }, { id: "merge", options: {} }] },
  ]);
  assert.deepEqual(await card(page, "Reduced").locator("thead th").allTextContents(), ["Field", "Most", "Last *"]);
  assert.deepEqual(await cells(page, "Reduced"), [["a", "7", "7"], ["b", "8", "8"]]);
  assert.deepEqual(await notes(page, "Reduced"), []);
  assert.deepEqual(await notes(page, "Fields"), ['Not drawn as in Grafana: transformation reduce: mode "reduceFields".']);
  assert.deepEqual(await card(page, "Labels").locator("thead th").allTextContents(), ["pod", "Value"]);
  assert.deepEqual(await cells(page, "Labels"), [["p1", "7"]]);
  assert.deepEqual(await notes(page, "Labels"), ["Of values over time, the last ones are shown."]);
  assert.deepEqual(page.faults, []);
});

test("old single values and old tables", async () => {
  const single = (title, expr, more) => ({ type: "singlestat", title, valueName: "current", targets: [target("A", expr, "x")], ...more });
  const page = await show([
    single("Map", "vector(1)", { valueMaps: [{ op: "=", value: "1", text: "UP" }, { op: "=", value: "0", text: "DOWN" }] }),
    single("Range", "vector(7)", { mappingType: 2, rangeMaps: [{ from: "5", to: "9", text: "some" }] }),
    single("Gauge", "vector(66)", { format: "percent", gauge: { show: true, minValue: 0, maxValue: 200 } }),
    single("Affixes", "vector(3)", { prefix: "v", postfix: " of 9", valueFontSize: "80%" }),
    single("Column", "vector(3)", { tableColumn: "pod", targets: [target("A", 'label_replace(vector(3),"pod","p9","","")', "", { format: "table", instant: true })] }),
    {
      type: "table",
      title: "Styles",
      targets: [target("A", 'label_replace(label_replace(vector(2048),"version","1.2","",""),"job","j","","")', "", { format: "table", instant: true })],
      transform: "table",
      styles: [{ pattern: "Time", type: "hidden" }, { pattern: "version", alias: "Version", type: "string" }, { pattern: "Value", alias: "Size", type: "number", unit: "bytes", decimals: 1, colorMode: "row", thresholds: ["1"], colors: ["green", "red", "red"] }, { pattern: "/.*/", type: "hidden" }],
    },
  ]);
  assert.equal(await card(page, "Map").locator(".stat-value").textContent(), "UP");
  assert.equal(await card(page, "Range").locator(".stat-value").textContent(), "some");
  assert.equal(await card(page, "Gauge").getByRole("meter").getAttribute("aria-valuemax"), "200");
  assert.equal(await card(page, "Affixes").locator(".stat-value").textContent(), "v3 of 9");
  assert.equal(await card(page, "Column").locator(".stat-value").textContent(), "p9");
  for (const name of ["Map", "Range", "Gauge", "Affixes", "Column"]) assert.deepEqual(await notes(page, name), []);
  assert.deepEqual(await card(page, "Styles").locator("thead th").allTextContents(), ["Version", "Size"]);
  assert.deepEqual(await cells(page, "Styles"), [["1.2", "2.0 KiB"]]);
  assert.deepEqual(await notes(page, "Styles"), ['Not drawn as in Grafana: styles[].colorMode "row".']);
  assert.deepEqual(page.faults, []);
});

test("mappings of ranges and special values, and continuous colours", async () => {
  const stat = (title, expr, defaults) => ({ type: "stat", title, targets: [target("A", expr, "x")], options: { colorMode: "value" }, fieldConfig: { defaults, overrides: [] } });
  const mappings = [{ type: "range", options: { from: 5, to: null, result: { text: "much" } } }, { type: "special", options: { match: "null+nan", result: { text: "none" } } }];
  const colours = { min: 0, max: 100, color: { mode: "continuous-GrYlRd" } };
  const page = await show([stat("Much", "vector(7)", { mappings }), stat("None", "vector(1) * NaN", { mappings }), stat("Low", "vector(0)", colours), stat("High", "vector(100)", colours)]);
  const value = (name) => card(page, name).locator(".stat-value");
  assert.equal(await value("Much").textContent(), "much");
  assert.equal(await value("None").textContent(), "none");
  const channels = (name) => value(name).evaluate((e) => getComputedStyle(e).color.match(/\d+/g).map(Number));
  const [low, high] = [await channels("Low"), await channels("High")];
  assert.ok(low[1] > low[0] && high[0] > high[1], `${low} ${high}`);
  assert.deepEqual(await notes(page, "High"), []);
  assert.deepEqual(page.faults, []);
});

test("a classic dashboard that Kubernetes wraps is read", async () => {
  const panels = [{ type: "stat", title: "Wrapped", targets: [target("A", "vector(4)", "x")] }];
  const page = await show(panels, { wrapped: (spec) => ({ apiVersion: "dashboard.grafana.app/v1beta1", kind: "Dashboard", metadata: { name: "x" }, spec }) });
  assert.equal(await card(page, "Wrapped").locator(".stat-value").textContent(), "4");
  const v2 = await visit(browser, "about:blank");
  await v2.route("**/api/v1/dashboards/x.json", (route) => route.fulfill({ json: { status: "success", data: { apiVersion: "dashboard.grafana.app/v2beta1", kind: "Dashboard", spec: { elements: {}, layout: {} } } } }));
  await v2.goto(`${server.url}/#/dashboards?dash=file%3Ax.json`);
  await v2.locator("main [role=alert]", { hasText: "schema v2" }).waitFor();
});

test("variables of other data sources are left out, and gaps between panels close", async () => {
  const list = [
    { name: "logs", type: "query", datasource: { type: "loki", uid: "l" }, query: "label_values(app)" },
    { name: "filter", type: "adhoc" },
    { name: "every", type: "interval", query: "1m,5m", auto: true, auto_count: 30, auto_min: "10s", current: { value: "$__auto_interval_every" } },
  ];
  const panels = [
    { type: "stat", title: "First", gridPos: { x: 0, y: 3, w: 12, h: 4 }, targets: [target("A", "last_over_time(vector(1)[$every:10s])", "x")] },
    { type: "stat", title: "Below", gridPos: { x: 6, y: 30, w: 12, h: 4 }, targets: [target("A", "vector(2)", "x")] },
    { type: "stat", title: "Beside", gridPos: { x: 18, y: 31, w: 6, h: 4 }, targets: [target("A", "vector(3)", "x")] },
  ];
  const page = await show(panels, { more: { templating: { list } } });
  assert.deepEqual(await page.locator("main .dashboards > .status p").allTextContents(), ["The variable logs is left out: its data source is loki, not Prometheus.", "The variable filter is left out: its type is adhoc."]);
  assert.equal(await page.locator("main [role=alert]").count(), 0);
  assert.equal(page.asked.filter((u) => /label\/|\/series/.test(u.pathname)).length, 0);
  // Thirty steps of a quarter of an hour.
  assert.ok(page.asked.some((u) => u.searchParams.get("query") === "last_over_time(vector(1)[30s:10s])"));
  assert.equal(await page.getByLabel("every").inputValue(), "auto");
  const rows = await Promise.all(panels.map((p) => card(page, p.title).evaluate((e) => e.style.gridRowStart)));
  assert.deepEqual(rows, ["1", "5", "1"]);
  assert.deepEqual(page.faults, []);
});

test("a pie shows the shares of values, the largest first", async () => {
  const targets = [target("A", "vector(1)", "small"), target("B", "vector(3)", "large"), target("C", "vector(0)", "none")];
  const page = await show([{ type: "piechart", title: "Pie", targets, options: { pieType: "donut", legend: { values: ["percent"] } }, fieldConfig: { defaults: { unit: "s" }, overrides: [fixed("small", redHex)] } }], { what: ".key" });
  assert.deepEqual(await card(page, "Pie").locator(".key").allTextContents(), ["large 3 s · 75 %", "small 1 s · 25 %"]);
  assert.deepEqual(await card(page, "Pie").locator("circle").evaluateAll((all) => all.map((c) => c.getAttribute("stroke-dasharray"))), ["75 25", "25 75"]);
  assert.deepEqual(await notes(page, "Pie"), []);
  assert.deepEqual(page.faults, []);
});

// values opens the table behind a graph, and returns its rows.
async function values(page, name) {
  await card(page, name).locator(".values summary").press("Enter");
  await card(page, name).locator(".values tbody tr").first().waitFor();
  return cells(page, name);
}

// tip is what a graph says under the pointer, at a part of its width.
async function tip(page, name, part) {
  await card(page, name).scrollIntoViewIfNeeded();
  await until("the graph has a tip", async () => {
    const box = await card(page, name).locator(".u-over").boundingBox();
    await page.mouse.move(0, 0);
    await page.mouse.move(box.x + box.width * part, box.y + box.height / 4);
    return card(page, name).locator(".tip").isVisible();
  });
  return (await card(page, name).locator(".tip").textContent()).trim();
}

test("a state timeline merges equal values, with mappings and brackets of thresholds", async () => {
  // Each half of the hour has one value.
  const changing = "floor(vector(time()) / 1800) % 2";
  const mappings = [{ type: "value", options: { 0: { text: "Down", color: redHex }, 1: { text: "Up", color: blueHex } } }];
  const thresholds = { mode: "absolute", steps: [{ color: limeHex, value: null }, { color: redHex, value: 80 }, { color: blueHex, value: 90 }] };
  const custom = { fillOpacity: 100 };
  const panel = (title, type, expr, defaults, options = {}) => ({ type, title, timeFrom: "2h", targets: [target("A", expr, "first"), target("B", "vector(1)", "second")], options, fieldConfig: { defaults: { custom, ...defaults }, overrides: [] } });
  const page = await show([
    panel("Mapped", "state-timeline", changing, { mappings, color: { mode: "fixed" } }),
    panel("Brackets", "state-timeline", "vector(85)", { thresholds, color: { mode: "thresholds" } }),
    panel("Kept", "state-timeline", "vector(85)", { thresholds, color: { mode: "thresholds" } }, { mergeValues: false, showValue: "never", legend: { showLegend: false }, perPage: 20, alignValue: "top" }),
    panel("History", "status-history", changing, { mappings, color: { mode: "fixed" } }, { colWidth: 1, rowHeight: 0.5, showValue: "always" }),
  ]);
  for (const name of ["Mapped", "History"]) {
    assert.ok((await tops(page, name, [redHex, blueHex].map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16))))).every((y) => y > 0), name);
    assert.deepEqual((await card(page, name).locator(".key").allTextContents()).sort(), ["Down", "Up"]);
    assert.deepEqual(await notes(page, name), []);
  }
  // One tile from one half hour to the next.
  const [, first, second, state] = /^\S+ (\S+) – \S+ (\d\d:\d\d:\d\d)(Down|Up) first$/.exec(await tip(page, "Mapped", 0.5)) ?? [];
  assert.match(first ?? "", /^\d\d:[03]0:00$/);
  assert.match(second, /:[03]0:00$/);
  assert.ok(["Down", "Up"].includes(state));
  assert.match(await tip(page, "History", 0.5), /^\S+ \S+(Down|Up) first$/);
  assert.deepEqual((await values(page, "Mapped")).map((r) => r.slice(0, 4))[1], ["second", "Up", "Up", "Up"]);
  assert.deepEqual((await card(page, "Brackets").locator(".key").allTextContents()).sort(), ["80+", "< 80"]);
  assert.match(await tip(page, "Brackets", 0.5), /80\+ first$/);
  assert.equal(await card(page, "Kept").locator(".key").count(), 0);
  assert.match(await tip(page, "Kept", 0.5), /85 first$/);
  assert.deepEqual(await notes(page, "Kept"), ['Not drawn as in Grafana: alignValue "top".']);
  assert.deepEqual(await serious(page), []);
  assert.deepEqual(page.faults, []);
});

test("a bar chart has the texts of a table beside each other, grouped or stacked", async () => {
  const row = (refId, value) => target(refId, ["a", "b"].map((pod, i) => `label_replace(vector(${value * (i + 1)}),"pod","${pod}","","")`).join(" or "), "", { format: "table", instant: true });
  const chart = (title, options, more = {}) => ({ type: "barchart", title, targets: [row("A", 30), row("B", 10)], transformations: [{ id: "merge", options: {} }, { id: "organize", options: { excludeByName: { Time: true }, renameByName: { "Value #A": "used", "Value #B": "free" } } }], options, fieldConfig: { defaults: { unit: "s", custom: { fillOpacity: 100 } }, overrides: [fixed("used", redHex), fixed("free", blueHex)] }, ...more });
  const page = await show([
    chart("Grouped", { orientation: "vertical", barRadius: 0.1 }),
    chart("Stacked", { orientation: "vertical", stacking: "normal", showValue: "never" }),
    chart("Lying", { orientation: "horizontal", stacking: "percent", colorByField: "pod" }, { fieldConfig: { defaults: { unit: "s", max: 1, custom: { fillOpacity: 100 } }, overrides: [fixed("used", redHex), fixed("free", blueHex)] } }),
    { type: "barchart", title: "Series", targets: [target("A", "vector(7)", "one", { instant: true }), target("B", "vector(2)", "two", { instant: true })], fieldConfig: { defaults: { custom: { fillOpacity: 100 } }, overrides: [fixed("one", redHex), fixed("two", blueHex)] } },
  ], { what: "canvas" });
  for (const name of ["Grouped", "Stacked", "Lying"]) assert.deepEqual(await card(page, name).locator(".key").allTextContents(), ["used", "free"]);
  assert.deepEqual(await values(page, "Grouped"), [["a", "30 s", "10 s"], ["b", "1 mins", "20 s"]].map((r) => r.map((c) => c.replace("1 mins", "1 min"))));
  assert.equal(await card(page, "Grouped").getByLabel("Time of the column of values").isVisible(), false);
  await card(page, "Grouped").locator(".values summary").press("Enter");
  const topsOf = async (name) => tops(page, name, [red, blue]);
  const [used, free] = await topsOf("Grouped");
  assert.ok(used < free, `${used} ${free}`);
  const [below, above] = await topsOf("Stacked");
  assert.ok(above < below, `${below} ${above}`);
  // The limits of values are not those of percentages.
  assert.ok((await topsOf("Lying")).every((y) => y > 0));
  assert.match(await tip(page, "Lying", 0.5), /^a30 s used10 s free$/);
  const [one, two] = await topsOf("Series");
  assert.ok(one < two, `${one} ${two}`);
  assert.match(await tip(page, "Series", 0.5), /7 one2 two$/);
  assert.deepEqual(await notes(page, "Grouped"), []);
  assert.deepEqual(await notes(page, "Lying"), ['Not drawn as in Grafana: colorByField "pod".']);
  assert.deepEqual(await serious(page), []);
  assert.deepEqual(page.faults, []);
});
