// Sharing and saving: files of panels, links, pages that embed a panel, dashboards on the server,
// in a real browser before a real server.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { close, freePort, open, run, serious, Server, settled, until, visit } from "./harness.mjs";

let server, wiki, browser, folder;

const panel = (id, type, title, x, targets, more = {}) => ({ id, type, title, gridPos: { x, y: 0, w: 8, h: 8 }, targets: targets.map((t, i) => ({ refId: "AB"[i], ...t })), ...more });
const dashboard = {
  title: "Shared",
  templating: { list: [{ name: "node", type: "custom", query: "a,b", multi: true, current: { value: ["a", "b"] } }] },
  panels: [
    panel(1, "timeseries", "Lines", 0, [{ expr: "x", legendFormat: "{{i}}" }], { fieldConfig: { defaults: { unit: "bytes" }, overrides: [{ matcher: { id: "byName", options: "1" }, properties: [{ id: "displayName", value: "second" }] }] } }),
    panel(2, "table", "Rows", 8, [{ expr: "x", instant: true, format: "table" }], { options: { sortBy: [{ displayName: "Value", desc: true }] }, transformations: [{ id: "organize", options: { excludeByName: { Time: true } } }] }),
    panel(3, "stat", "Node $node", 16, [{ expr: 'y{node="$node"}', instant: true }], { repeat: "node", maxPerRow: 2 }),
  ],
};

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "promlake-page-share-"));
  await writeFile(join(folder, "shared.json"), JSON.stringify(dashboard));
  const port = await freePort();
  wiki = createServer((request, response) => response.setHeader("Content-Type", "text/html").end(`<!doctype html><title>wiki</title>${wiki.frame}`));
  wiki.url = (host) => `http://${host}:${port}/`;
  await new Promise((done) => wiki.listen(port, "127.0.0.1", done));
  server = await Server.start("--web.dashboards", folder, "--web.frame-ancestors", `http://127.0.0.1:${port}`);
  browser = await open();
});

after(async () => {
  await close(browser);
  await server?.stop();
  await new Promise((done) => wiki?.close(done));
  await rm(folder, { recursive: true, force: true });
});

const at = Math.floor(Date.now() / 60_000) * 60 - 120;
const iso = (seconds) => new Date(seconds * 1000).toISOString();

// answered is a page whose queries have three series: some points, and a value now.
async function answered(options) {
  const page = await visit(browser, "about:blank", options);
  page.asked = [];
  const metric = (i) => ({ __name__: "x", i: String(i), job: "a" });
  await page.context().route(/\/api\/v1\/query_range\?/, (route) => {
    page.asked.push(new URL(route.request().url()).searchParams);
    return route.fulfill({ json: { status: "success", data: { resultType: "matrix", result: [["0.1", "1e+06"], ["2", "+Inf"], ["0.30000000000000004", "NaN"]].map((values, i) => ({ metric: metric(i), values: values.map((v, j) => [at + j * 60, v]) })) } } });
  });
  await page.context().route(/\/api\/v1\/query\?/, (route) => route.fulfill({ json: { status: "success", data: { resultType: "vector", result: ["0.1", "1234567.5", "-3"].map((v, i) => ({ metric: metric(i), value: [at, v] })) } } }));
  return page;
}

const range = `end=${iso(at + 60)}`;
const explore = (expr = "x", more = "") => `${server.url}/#/explore?range=10m&${range}&g0.step_input=1m${more}&g0.expr=${encodeURIComponent(expr)}`;
const shared = () => `${server.url}/#/dashboards?range=10m&${range}&dash=file:shared.json`;
const card = (page, name) => page.getByRole("region", { name, exact: true });

// saved is the file that an entry of a menu makes.
async function saved(page, menu, entry) {
  const [file] = await Promise.all([page.waitForEvent("download"), menu.selectOption(entry)]);
  return { name: file.suggestedFilename(), body: await readFile(await file.path()) };
}
const csv = async (page, menu) => (await saved(page, menu, "csv")).body.toString().split("\r\n");
const menuOf = (page, title) => page.getByLabel(`Save or share ${title}`);

test("panels are saved as CSV, with all series and exact values", async () => {
  const page = await answered();
  await page.goto(explore());
  await page.locator("canvas").waitFor();
  await settled(page);
  const menu = page.getByLabel("Save or share the answer");
  const head = [0, 1, 2].map((i) => `"x{i=""${i}"", job=""a""}"`).join(",");
  assert.deepEqual(await csv(page, menu), [`time,${head}`, `${iso(at)},0.1,2,0.30000000000000004`, `${iso(at + 60)},1000000,+Inf,NaN`, ""]);
  await page.getByLabel("Show as").selectOption("table");
  await page.locator("main tbody tr").nth(2).waitFor();
  await page.getByRole("button", { name: "Value", exact: true }).click();
  await until("it is sorted", async () => (await page.locator("[aria-sort]").count()) === 1);
  assert.deepEqual((await csv(page, menu)).map((l) => l.split(",").at(-1)), ["Value", "1234567.5", "0.1", "-3", ""]);

  await page.goto(shared());
  await card(page, "Lines").locator("canvas").waitFor();
  await card(page, "Rows").locator("tbody tr").nth(2).waitFor();
  assert.deepEqual(await csv(page, menuOf(page, "Lines")), ["time,0,second,2", `${iso(at)},0.1,2,0.30000000000000004`, `${iso(at + 60)},1000000,+Inf,NaN`, ""]);
  assert.deepEqual(await csv(page, menuOf(page, "Rows")), ["__name__,i,job,Value", "x,1,a,1234567.5", "x,0,a,0.1", "x,2,a,-3", ""]);
  const stat = await csv(page, menuOf(page, "Node a"));
  assert.deepEqual(stat.slice(1), [`${iso(at)},0.1,1234567.5,-3`, ""]);
  assert.deepEqual(page.faults, []);
});

// pixels decodes a PNG: its size, and how many pixels of its part below have each colour.
const pixels = (page, body) =>
  page.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const { width, height } = image;
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const ctx = canvas.getContext("2d");
    ctx.drawImage(image, 0, 0);
    const counts = (top, bottom) => {
      const out = {};
      const { data } = ctx.getImageData(0, top, width, bottom - top);
      for (let i = 0; i < data.length; i += 4) out[data.slice(i, i + 3).join()] = (out[data.slice(i, i + 3).join()] ?? 0) + 1;
      return out;
    };
    return { width, height, title: counts(0, Math.round(36 * devicePixelRatio)), all: counts(0, height) };
  }, body.toString("base64"));

for (const [colorScheme, deviceScaleFactor, back] of [["light", 1, "255,255,255"], ["dark", 2, "24,32,43"]]) {
  test(`panels are saved as PNG, ${colorScheme}`, async () => {
    const page = await answered({ colorScheme, deviceScaleFactor });
    await page.goto(explore());
    await page.locator(".key").nth(2).waitFor();
    await settled(page);
    const drawn = await page.locator(".plot canvas").evaluate((c) => ({ width: c.width, height: c.height }));
    const png = await saved(page, page.getByLabel("Save or share the answer"), "png");
    assert.equal(png.name, "x.png");
    const p = await pixels(page, png.body);
    assert.ok(p.width > drawn.width && p.height > drawn.height + 60 * deviceScaleFactor, JSON.stringify([p.width, p.height, drawn]));
    assert.ok(p.all[back] > (p.width * p.height) / 2, "the background is that of the theme");
    assert.ok(Object.keys(p.title).length > 1, "it has a title");
    // The legend has the colours of the lines, as squares.
    const swatches = await page.locator(".key .swatch").evaluateAll((all) => all.map((s) => getComputedStyle(s).backgroundColor.replace(/[^\d,]/g, "")));
    for (const colour of swatches) assert.ok(p.all[colour] >= 50 * deviceScaleFactor ** 2, `the legend has ${colour}`);

    await page.goto(shared());
    await card(page, "Rows").locator("tbody tr").nth(2).waitFor();
    await card(page, "Node b").locator(".stat-value").first().waitFor();
    for (const name of ["Rows", "Node b"]) {
      const shown = await pixels(page, (await saved(page, menuOf(page, name), "png")).body);
      assert.ok(shown.all[back] > 1_000 && Object.keys(shown.all).length > 20, `${name} has texts`);
    }
    assert.deepEqual(page.faults, []);
  });
}

test("a link has what the view shows, in readable characters, and other views stay", async () => {
  const page = await answered();
  await page.goto(`${server.url}/#/explore?range=1h&dash=file%3Ashared.json&var-node=a&sql=SELECT%201&g0.expr=${encodeURIComponent('sum by (i) (rate(x{job="a"}[5m]))')}&g1.expr=y&g1.tab=table`);
  await page.locator("canvas").first().waitFor();
  await page.getByLabel("Show as").first().selectOption("heatmap");
  await until("the address is short", () => page.url().endsWith("#/explore?g0.expr=sum+by+(i)+(rate(x%7Bjob=%22a%22%7D%5B5m%5D))&g0.tab=heatmap&g1.expr=y&g1.tab=table"));
  const copy = await answered();
  await copy.goto(page.url());
  await until("both panels are there", async () => (await copy.getByLabel("Show as").evaluateAll((all) => all.map((s) => s.value))).join() === "heatmap,table");
  await page.getByRole("link", { name: "Dashboards" }).click();
  await card(page, "Node a").waitFor();
  assert.ok(page.url().endsWith("#/dashboards?dash=file:shared.json&var-node=a"), page.url());
  await page.getByRole("link", { name: "SQL" }).click();
  await until("the statement is there", async () => page.url().endsWith("#/sql?sql=SELECT+1"));
  await page.goBack();
  await card(page, "Node a").waitFor();
  assert.equal(await card(page, "Node b").count(), 0);
  await page.getByRole("link", { name: "Explore" }).click();
  await until("the panels are back", async () => (await page.getByLabel("Show as").count()) === 2);
  assert.deepEqual([...page.faults, ...copy.faults], []);
});

// embedding chooses Embed… and returns the text of the frame and the link.
async function embedding(page, menu) {
  await menu.selectOption("embed");
  const dialog = page.getByRole("dialog", { name: "Embed" });
  const text = await dialog.locator("pre").textContent();
  const link = await dialog.getByRole("link").getAttribute("href");
  return { dialog, text, link };
}

test("a panel is embedded, alone and live, by the pages that the operator names", async () => {
  const page = await answered();
  await page.goto(`${server.url}/#/explore?range=15m&refresh=1s&g0.stacked=1&g0.expr=${encodeURIComponent('x{a="<b>"}')}&g1.expr=y`);
  await page.locator("canvas").first().waitFor();
  const { dialog, text, link } = await embedding(page, page.getByLabel("Save or share the answer").first());
  assert.equal(await dialog.locator(".warn").count(), 0);
  assert.match(text, /^<iframe src="http:\/\/127\.0\.0\.1:\d+\/\?embed#\/explore\?range=15m&amp;refresh=1s&amp;g0\.expr=x%7Ba=%22%3Cb%3E%22%7D&amp;g0\.stacked=1" title="x\{a=&quot;(<|&lt;)b(>|&gt;)&quot;\}" width="800" height="400" loading="lazy"><\/iframe>$/);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await dialog.getByRole("button", { name: "Copy" }).click();
  await dialog.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  await dialog.getByRole("button", { name: "Close" }).click();
  assert.equal(await page.locator("dialog iframe, main iframe").count(), 0);

  wiki.frame = text;
  const reader = await answered();
  const began = Date.now() / 1000;
  await reader.goto(wiki.url("127.0.0.1"));
  const frame = reader.frameLocator("iframe");
  await frame.locator("canvas").waitFor();
  assert.equal(await frame.getByRole("heading").textContent(), 'x{a="<b>"}');
  assert.equal(await frame.locator("header, nav, main input:visible, main select:visible").count(), 0);
  await until("it was refreshed, for the minutes before now", () => reader.asked.length >= 3);
  const asked = reader.asked.at(0);
  assert.ok(Math.abs(asked.get("end") - asked.get("start") - 900) <= 15 && asked.get("end") > began - 15);
  const before = reader.asked.length;
  const box = await frame.locator(".u-over").boundingBox();
  await reader.mouse.move(box.x + 100, box.y + 40);
  await reader.mouse.down();
  await reader.mouse.move(box.x + 300, box.y + 40, { steps: 3 });
  await reader.mouse.up();
  await until("it is refreshed as before", () => reader.asked.length > before);
  assert.ok(reader.frames()[1].url() === link, "a drag does not change it");
  assert.deepEqual([...page.faults, ...reader.faults], []);

  // Neither another origin nor another address.
  for (const [host, content] of [["localhost", text], ["127.0.0.1", text.replace("?embed", "")]]) {
    wiki.frame = content;
    const refused = await answered();
    await refused.goto(wiki.url(host));
    await until("the browser refuses it", () => refused.faults.some((f) => f.includes("frame-ancestors")));
    assert.equal(await refused.frameLocator("iframe").locator("main").count(), 0);
  }
});

test("an embedded panel of Explore has its exemplars", async () => {
  const page = await answered({ viewport: { width: 800, height: 400 } });
  await page.context().route("**/api/v1/query_exemplars*", (route) => route.fulfill({ json: { status: "success", data: [{ seriesLabels: { __name__: "x" }, exemplars: [{ labels: { trace_id: "abc" }, value: "1000000", timestamp: at }] }] } }));
  await page.goto(explore("x", "&g0.show_exemplars=1").replace("/#/", "/?embed#/"));
  await page.locator("canvas").waitFor();
  await settled(page);
  await until("the pointer meets the exemplar", async () => {
    const box = await page.locator(".u-over").boundingBox();
    const x = box.x + (box.width * 540) / 600;
    for (let y = 0; y < box.height; y += 4) {
      await page.mouse.move(x, box.y + y);
      if (/Exemplar.*trace_id="abc"/.test(await page.locator(".tip").textContent())) return true;
    }
    return false;
  });
  assert.deepEqual(page.faults, []);
});

test("a small screen saves and embeds panels", async () => {
  const page = await answered({ viewport: { width: 390, height: 844 } });
  await page.goto(explore());
  await page.locator(".key").nth(2).waitFor();
  await settled(page);
  const menu = page.getByLabel("Save or share the answer");
  assert.equal((await csv(page, menu)).length, 4);
  const png = await pixels(page, (await saved(page, menu, "png")).body);
  assert.ok(png.width > 300 && png.width <= 390, `${png.width}`);
  const { dialog, link } = await embedding(page, menu);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  const box = await dialog.boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= 390 && box.height <= 844, JSON.stringify(box));
  await page.goto(link);
  await page.locator("canvas").waitFor();
  await settled(page);
  assert.equal(await page.evaluate(() => document.documentElement.scrollHeight <= innerHeight && document.documentElement.scrollWidth <= innerWidth), true);
  await page.goto(shared());
  await card(page, "Rows").locator("tbody tr").nth(2).waitFor();
  assert.equal((await csv(page, menuOf(page, "Rows"))).length, 5);
  assert.deepEqual(page.faults, []);
});

test("a panel of a dashboard is embedded with its variables", async () => {
  const page = await answered();
  await page.goto(shared());
  await card(page, "Node b").locator(".stat-value").first().waitFor();
  const { link } = await embedding(page, menuOf(page, "Node b"));
  assert.match(link, /\?embed#\/dashboards\?.*dash=file:shared\.json&panel=3&var-node=b$/);
  const alone = await answered({ colorScheme: "dark", viewport: { width: 600, height: 300 } });
  await alone.goto(link);
  await card(alone, "Node b").locator(".stat-value").first().waitFor();
  assert.equal(await alone.locator(".card").count(), 1);
  assert.equal(await alone.evaluate(() => document.documentElement.scrollHeight <= innerHeight && document.documentElement.scrollWidth <= innerWidth), true);
  assert.deepEqual(await serious(alone), []);
  await alone.goto(link.replace("panel=3", "panel=9"));
  await alone.locator("[role=alert]", { hasText: 'The dashboard has no panel "9".' }).waitFor();
  assert.deepEqual([...page.faults, ...alone.faults], []);

  const closed = await Server.start("--web.dashboards", folder);
  try {
    const other = await answered();
    await other.goto(shared().replace(server.url, closed.url));
    await card(other, "Rows").locator("tbody tr").first().waitFor();
    const { dialog } = await embedding(other, menuOf(other, "Rows"));
    await dialog.getByText("This server lets no other page show it.").waitFor();
  } finally {
    await closed.stop();
  }
});

const field = (page) => page.getByLabel("Name of the dashboard");
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();

async function saveAs(page, name) {
  await press(page, "Save as dashboard…");
  if (name !== undefined) await field(page).fill(name);
  await press(page, "Save");
}

test("Explore's panels are saved, opened, edited and deleted, and nobody loses a change", async () => {
  const page = await answered();
  await page.goto(explore("x", "&g0.stacked=1&g1.expr=rate(y_bytes_total[5m])&g1.log=1&g1.step_input=30s&g2.expr=sum+by+(le)+(z_seconds_bucket)&g2.tab=heatmap&g3.expr=x&g3.tab=table"));
  await saveAs(page, "../x");
  await page.getByRole("alert").getByText('name of a dashboard "../x"').waitFor();
  await field(page).fill("Über load");
  await press(page, "Save");
  await card(page, "rate(y_bytes_total[5m])").waitFor();
  assert.match(page.url(), /#\/dashboards\?.*dash=file:%C3%9Cber\+load$/);
  await settled(page);
  assert.deepEqual(await page.locator(".card-notes, main [role=alert]").allTextContents(), []);
  assert.equal(await page.locator(".card").count(), 4);

  const other = await answered();
  await other.goto(page.url());
  await press(page, "Edit in Explore");
  await until("all panels are there", async () => (await page.getByLabel("Show as").evaluateAll((all) => all.map((s) => s.value))).join() === "graph,graph,heatmap,table");
  assert.deepEqual(await page.getByLabel("Scale").evaluateAll((all) => all.map((s) => s.value)), ["stacked", "log", "", ""]);
  assert.equal(await page.getByLabel("Step, for example").nth(1).inputValue(), "30s");
  await page.getByRole("button", { name: "Remove this panel" }).nth(3).click();
  await saveAs(page);
  await until("three panels are shown", async () => (await page.locator(".card").count()) === 3);

  // The other one has opened the version before.
  await press(other, "Edit in Explore");
  await until("its panels are there", async () => (await other.getByLabel("Show as").count()) === 4);
  await saveAs(other);
  await other.getByText("somebody else has saved or deleted the dashboard").waitFor();
  await press(other, "Overwrite it");
  await until("it is saved", async () => (await other.locator(".card").count()) === 4);
  // A name that is taken is not overwritten either.
  await page.goto(`${server.url}/#/explore?g0.expr=y`);
  await page.reload();
  await saveAs(page, "Über load");
  await page.getByText("there is a dashboard").waitFor();
  await press(page, "Cancel");
  page.once("dialog", (d) => d.accept());
  await page.goto(other.url());
  await card(page, "x").first().waitFor();
  assert.deepEqual(await serious(page), []);
  await press(page, "Delete");
  await until("it is gone", async () => !(await fetch(`${server.url}/api/v1/dashboards`).then((r) => r.text())).includes("load"));
  await until("another one is shown", async () => (await page.getByLabel("Dashboard", { exact: true }).inputValue()) === "machine");
  assert.deepEqual([...page.faults, ...other.faults], []);
});

test("a dashboard that Explore cannot have written is not edited there", async () => {
  const put = (name, body) => fetch(`${server.url}/api/v1/dashboards/${name}`, { method: "PUT", body: JSON.stringify(body) });
  assert.equal((await put("grafana", dashboard)).status, 200);
  const page = await answered();
  await page.goto(shared().replace("file:shared.json", "file:grafana"));
  await page.getByRole("button", { name: "Delete", exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Edit in Explore" }).count(), 0);
  assert.deepEqual(page.faults, []);
});

test("an exported dashboard has what Grafana imports", async () => {
  const page = await answered();
  await page.goto(explore("x", "&g1.expr=y_bytes&g1.tab=table"));
  await press(page, "Save as dashboard…");
  await field(page).fill("My load");
  const [file] = await Promise.all([page.waitForEvent("download"), press(page, "Export to Grafana")]);
  assert.equal(file.suggestedFilename(), "My-load.json");
  const d = JSON.parse(await readFile(await file.path(), "utf8"));
  const source = { type: "prometheus", uid: "${datasource}" };
  assert.deepEqual([d.title, d.schemaVersion, d.time, d.refresh], ["My load", 39, { from: iso(at - 540), to: iso(at + 60) }, ""]);
  assert.deepEqual(d.templating.list.map((v) => [v.name, v.type, v.query]), [["datasource", "datasource", "prometheus"]]);
  assert.deepEqual(d.panels.map((p) => [p.id, p.type, p.title, p.datasource, p.targets[0].datasource, p.targets[0].expr, p.fieldConfig.defaults.unit]), [[1, "timeseries", "x", source, source, "x", "short"], [2, "table", "y_bytes", source, source, "y_bytes", "bytes"]]);
  assert.deepEqual(d.panels.map((p) => p.gridPos), [{ x: 0, y: 0, w: 12, h: 9 }, { x: 12, y: 0, w: 12, h: 9 }]);
  await page.keyboard.press("Escape");
  // The page reads the file as well.
  await page.getByRole("link", { name: "Dashboards" }).click();
  await page.getByLabel("Dashboard file").setInputFiles(await file.path());
  await card(page, "y_bytes").locator("tbody tr").first().waitFor();
  assert.deepEqual(page.faults, []);
});

test("who may only read cannot save, and an embedded panel asks for a token", async () => {
  const tokens = join(folder, "tokens");
  const token = (await run("token", "--tenant", "a", "--access", "read", "--tokens", tokens)).trim();
  const guarded = await Server.start("--auth.tokens", `file:${tokens}`);
  try {
    const page = await visit(browser, `${guarded.url}/#/explore?g0.expr=vector(1)&g0.tab=table`);
    await page.getByLabel("Bearer token").fill(token);
    await page.getByRole("button", { name: "Use" }).click();
    await page.getByRole("cell", { name: "1", exact: true }).waitFor();
    await saveAs(page, "mine");
    await page.getByRole("dialog", { name: "Dashboard" }).getByRole("alert").waitFor();
    assert.match(await page.getByRole("dialog", { name: "Dashboard" }).getByRole("alert").textContent(), /admin/);
    const alone = await visit(browser, `${guarded.url}/?embed#/explore?g0.expr=vector(1)&g0.tab=table`);
    await alone.getByLabel("Bearer token").fill(token);
    await alone.getByRole("button", { name: "Use" }).click();
    await card(alone, "vector(1)").getByRole("cell", { name: "1", exact: true }).waitFor();
    assert.deepEqual([...page.faults, ...alone.faults], []);
  } finally {
    await guarded.stop();
  }
});
