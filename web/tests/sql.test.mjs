// SQL on the page, in a real browser before a real server that stores this machine's metrics.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { close, open, Server, until, visit } from "./harness.mjs";

let server, browser;

before(async () => {
  server = await Server.start("--demo");
  browser = await open();
});

after(async () => {
  await close(browser);
  await server?.stop();
});

const sql = (statement, more = "") => `${server.url}/#/sql?range=15m${more}&sql=${encodeURIComponent(statement)}`;
const status = (page, text) => page.locator(".cost", { hasText: text }).waitFor();
const active = (page) => page.getByLabel("Text of the active cell");

test("a statement is written, run, listed, drawn, saved and linked by the keyboard", async () => {
  const page = await visit(browser, `${server.url}/#/explore`);
  await page.getByRole("link", { name: "SQL" }).waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("3");
  await until("the editor has the focus", () => page.evaluate(() => document.activeElement?.classList.contains("editor")));
  await page.keyboard.type("SELECT metric, ts, value FROM samples");
  await page.locator(".cm-tooltip-autocomplete li", { hasText: /^samplestable$/ }).waitFor();
  await page.waitForTimeout(200); // a list takes Enter 75 ms after it has opened
  await page.keyboard.press("Enter"); // the word is complete
  await page.keyboard.type("WHERE metric = 'node_load1' AND ts > now() - INTERVAL 1 DAY ORDER BY ts");
  await until("two samples are stored", async () => {
    await page.keyboard.press("Control+Enter");
    await status(page, /\d rows?/);
    return /^([2-9]|\d\d+) rows · 3 columns · [\d,]+ ms$/.test(await page.locator(".cost").textContent());
  });
  assert.deepEqual(await page.getByRole("columnheader").allTextContents(), ["metricVARCHAR", "tsTIMESTAMP WITH TIME ZONE", "valueDOUBLE"]);
  await page.getByRole("gridcell", { name: "node_load1" }).first().waitFor();

  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as CSV" }).click()]);
  assert.match(await readFile(await file.path(), "utf8"), /^metric,ts,value\r\nnode_load1,20\d\d-[^,]+Z,[\d.]+\r\n/);

  await page.getByLabel("Show as").selectOption("chart");
  await page.locator("canvas").waitFor();
  assert.deepEqual(await page.locator(".key").allTextContents(), ["node_load1"]);

  // The address reproduces the page in a browser that has never seen it.
  const copy = await visit(browser, page.url());
  await copy.locator("canvas").waitFor();
  await copy.getByLabel("Show as").selectOption("table");
  await copy.getByRole("gridcell", { name: "node_load1" }).first().waitFor();
  assert.deepEqual([...page.faults, ...copy.faults], []);
});

test("the editor completes tables, columns, functions, metrics, labels and their values", async () => {
  const page = await visit(browser, `${server.url}/#/sql?range=15m`);
  const editor = page.locator(".cm-content");
  const offers = page.locator(".cm-tooltip-autocomplete li");
  const type = async (text, offer) => {
    await page.keyboard.type(text);
    await offers.filter({ hasText: offer }).first().click();
  };
  await until("the demo's labels are stored", async () => (await (await fetch(`${server.url}/api/v1/label/mode/values`)).json()).data.includes("idle"));
  await editor.click();
  await type("SELECT time_b", /^time_bucket$/);
  await page.keyboard.type("(INTERVAL 1 MINUTE, ts) AS minute, avg(value) AS value FROM sampl");
  await type("e", /^samplestable$/);
  await type(" WHERE met", /^metricvarchar$/);
  await type(" = 'cpu_seco", /^node_cpu_seconds_total$/);
  await page.keyboard.press("ArrowRight"); // over the quote
  await type(" AND labels['mo", /^mode$/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await type(" = 'idl", /^idle$/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type(" AND ts BETWEEN ");
  await type("$st", /^\$start$/);
  await page.keyboard.type(" AND $end GROUP BY ALL");
  await page.keyboard.press("Escape");
  assert.equal(await editor.textContent(), "SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS minute, avg(value) AS value FROM samples WHERE metric = 'node_cpu_seconds_total' AND labels['mode'] = 'idle' AND ts BETWEEN $start AND $end GROUP BY ALL");
  await page.keyboard.press("Control+Enter");
  await status(page, /^\d+ rows?/);
  assert.deepEqual(page.faults, []);
});

test("a query of Explore opens as a statement, drawn as a graph", async () => {
  const page = await visit(browser, `${server.url}/#/explore?range=15m&g0.expr=${encodeURIComponent("sum by (mode) (node_cpu_seconds_total)")}`);
  await page.locator("canvas").waitFor();
  await page.locator(".panel").getByRole("button", { name: "SQL", exact: true }).click();
  await page.waitForURL(/#\/sql\?.*sql=WITH/);
  await page.locator("canvas").waitFor();
  assert.equal(await page.getByLabel("Show as").inputValue(), "chart");
  await until("the modes are lines", async () => (await page.locator(".key").allTextContents()).includes('{"mode":"idle"}'));
  await page.goBack();
  // What is no query is named, and stays where it is.
  await page.locator(".cm-content").first().click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" +");
  await page.locator(".panel").getByRole("button", { name: "SQL", exact: true }).click();
  await page.locator(".hints").getByRole("alert").getByText("parse error").waitFor();
  assert.match(page.url(), /#\/explore/);
  assert.deepEqual(page.faults, []);
});

test("every example is answered", async () => {
  const page = await visit(browser, `${server.url}/#/sql?range=15m`);
  for (const name of ["Series by metric", "Last values", "Averages over time", "PromQL in SQL", "Targets that were down", "What a statement reads"]) {
    await page.getByRole("button", { name }).click();
    await until(`${name} is answered`, async () => (await page.locator(".result").getAttribute("aria-busy")) === "false" && (await page.locator(".cost").count()) > 0);
    assert.equal(await page.getByRole("alert").count(), 0, name);
  }
  // A plan is shown in full.
  assert.match(await active(page).textContent(), /PROMLAKE_SCAN[^]*\n/);
  assert.deepEqual(page.faults, []);
});

test("a mistake in a statement is named by the server's own words", async () => {
  const page = await visit(browser, sql("SELEC 1"));
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /syntax error|Parser/i);
  assert.deepEqual(page.faults, []);
});

test("a million rows are at hand, and only the visible ones are in the document", async () => {
  const page = await visit(browser, sql("SELECT i, 9007199254740993 + i AS wide, 'row ' || i AS name, CASE WHEN i % 2 = 0 THEN i END AS even FROM range(1000000) t(i)"));
  await status(page, /^1,000,000 rows · 4 columns/);
  const grid = page.getByRole("grid");
  assert.equal(await grid.getAttribute("aria-rowcount"), "1000001");
  await grid.focus();
  await page.keyboard.press("Control+End");
  await page.getByRole("gridcell", { name: "row 999999" }).waitFor();
  await until("the active cell is the last", async () => (await active(page).textContent()) === "NULL");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  // A number is what the server sent, to the last digit.
  await until("the cell above is active", async () => (await active(page).textContent()) === "9007199255740991");
  assert.ok((await page.locator("tbody tr").count()) < 60);
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("PageDown");
  const second = Number(await until("a page further down", () => active(page).textContent().then((t) => Number(t) > 5 && t)));
  assert.ok(second < 60, `${second}`);

  // The scroll bar reaches the middle, and the wheel goes on from there row by row.
  const scroller = page.locator(".grid-scroll");
  await scroller.evaluate((s) => (s.scrollTop = (s.scrollHeight - s.clientHeight) / 2));
  const top = async () => Number(await page.locator("tbody tr").first().getAttribute("aria-rowindex"));
  await until("the middle is shown", async () => Math.abs((await top()) - 500_000) < 100);
  const before = await top();
  await scroller.hover();
  await page.mouse.wheel(0, 240);
  await until("ten rows further", async () => (await top()) === before + 10);
  assert.deepEqual(page.faults, []);
});

test("a statement is cancelled", async () => {
  const page = await visit(browser, sql("SELECT count(*) FROM range(1000000) a(i), range(1000000) b(j) WHERE (i * j) % 7 = 3"));
  await until("it runs", () => page.getByRole("button", { name: "Cancel" }).isEnabled());
  await page.getByRole("button", { name: "Cancel" }).click();
  await status(page, "until it was cancelled");
  assert.equal(await page.getByRole("button", { name: "Cancel" }).isEnabled(), false);
  assert.deepEqual(page.faults, []);
});

test("an answer that breaks off is reported, with the rows that arrived", async () => {
  const page = await visit(browser, "about:blank");
  await page.route("**/api/v1/sql", (route) => route.fulfill({ contentType: "application/json", body: `{"status":"success","data":{"columns":[{"name":"i","type":"BIGINT"}],"rows":[[1],[2],[` }));
  await page.goto(sql("SELECT i FROM t"));
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /ended early/);
  assert.deepEqual(await page.getByRole("gridcell").allTextContents(), ["1", "2"]);
  assert.deepEqual(page.faults, []);
});

// What came from data is text. Names and values that look like markup stay what they are.
test("hostile names and values are text", async () => {
  const hostile = `<img src=x onerror="window.hit=1">],"rows":[["\\`;
  const quoted = hostile.replaceAll("'", "''");
  const page = await visit(browser, sql(`SELECT now() AS ts, 1 AS "${hostile.replaceAll('"', '""')}", '${quoted}' AS a, '=cmd|calc' AS b, ['${quoted}', NULL] AS c, MAP {'${quoted}': '}'} AS d`));
  await status(page, /^1 row /);
  assert.deepEqual(await page.getByRole("gridcell").evaluateAll((all) => all.slice(1).map((c) => c.textContent)), ["1", hostile, "=cmd|calc", JSON.stringify([hostile, null]), JSON.stringify({ [hostile]: "}" })].map((t) => t.replaceAll("<", "\\u003c").replaceAll(">", "\\u003e")).map((t, i) => (i === 1 ? hostile : t)));
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as CSV" }).click()]);
  assert.ok((await readFile(await file.path(), "utf8")).includes(",'=cmd|calc,"), "a formula is quoted");
  await page.getByLabel("Show as").selectOption("chart");
  await page.locator("canvas").waitFor();
  assert.ok((await page.locator(".key").first().textContent()).includes("<img src=x"));
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("img, main script").count(), 0);
  assert.deepEqual(page.faults, []);
});

test("a server without SQL has no such view", async () => {
  const page = await visit(browser, "about:blank");
  let asked = false;
  await page.route("**/api/v1/features", async (route) => {
    const reply = await (await route.fetch()).json();
    asked = reply.data.api.sql;
    reply.data.api.sql = false;
    await route.fulfill({ json: reply });
  });
  await page.goto(`${server.url}/#/status`);
  await page.getByRole("link", { name: "Targets" }).waitFor();
  await until("the page asked for it", () => asked);
  assert.equal(await page.getByRole("link", { name: "SQL" }).count(), 0);
  assert.deepEqual(page.faults, []);
});
