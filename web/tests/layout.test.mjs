// The layout of the views on a phone, a tablet, a laptop and a large screen. A landmark is a panel
// of the page. layout.txt lists the landmarks of each view and width row by row, from left to
// right, each with its sides in 24ths of the width, so the fonts of a machine make no difference.
// UPDATE=1 writes the file. With what the server has, and with nothing, errors and hostile names,
// the texts of every view are readable in both themes.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { contents, long } from "./contents.mjs";
import { close, deadline, open, serious, Server, until, visit } from "./harness.mjs";

const golden = new URL("layout.txt", import.meta.url);
const sizes = [[390, 844], [768, 1024], [1280, 900], [1920, 1080]];
const views = {
  dashboards: "dashboards?range=15m",
  explore: "explore?range=15m&g0.expr=node_load1&g1.expr=node_load5",
  metrics: "explore?range=15m",
  sql: `sql?sql=${encodeURIComponent("SELECT 1 AS a")}`,
  explain: "explain?range=15m&g0.expr=node_load1",
  lake: "lake",
  cardinality: "cardinality?range=15m",
  queries: "queries",
  targets: "targets",
  rules: "rules",
  alerts: "alerts",
  status: "status",
};

let server, browser;

before(async () => {
  server = await Server.start("--demo");
  await until("a rule was evaluated", async () => {
    const r = await fetch(`${server.url}/api/v1/query?query=${encodeURIComponent("node_load1 and on() ALERTS or node_load1")}`).then((x) => x.json());
    return r.data.result.length > 0;
  });
  browser = await open();
});

after(async () => {
  await close(browser);
  await server?.stop();
});

// settle waits until the page has asked for everything, is not busy, and no landmark moves. It
// returns the boxes of the header and of the panels that hold no other panels, in px.
async function settle(page) {
  for (const end = Date.now() + deadline; ; ) {
    const asked = page.asked;
    const found = await page.evaluate(async () => {
      const name = (e) => e.getAttribute("aria-label") || e.querySelector("h2, h3, legend")?.textContent || e.className;
      const landmarks = () =>
        [document.querySelector("header"), ...[...document.querySelectorAll("main .panel")].filter((e) => !e.querySelector(".panel"))]
          .map((e) => ({ name: e.matches("header") ? "header" : name(e).replace(/\(\d+\)/, "").trim(), box: e.getBoundingClientRect() }))
          .filter(({ box }) => box.width > 0 && box.height > 0)
          .map(({ name, box }) => ({ name, left: box.left, right: box.right, top: box.top + scrollY, bottom: box.bottom + scrollY }));
      const before = landmarks();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const now = landmarks();
      const still = JSON.stringify(before) === JSON.stringify(now) && !document.querySelector('[aria-busy="true"]');
      return still && document.querySelector("main :is(.panel, [role=alert])") && !now.some((l) => l.name === "panel") ? now : undefined; // "panel" has no heading yet
    });
    if (found && page.open === 0 && page.asked === asked) return found;
    assert.ok(Date.now() < end, "the page does not settle");
  }
}

// watched is a page that counts its requests.
async function watched() {
  const page = await visit(browser, "about:blank", { colorScheme: "light" });
  Object.assign(page, { asked: 0, open: 0 });
  page.on("request", () => (page.asked++, page.open++));
  for (const event of ["requestfinished", "requestfailed"]) page.on(event, () => page.open--);
  return page;
}

// faults lists what is not readable, in the current size and in both themes.
const faults = (page) =>
  page.evaluate(() => {
    const out = new Set();
    const short = (t) => t.trim().slice(0, 40);
    // clip is the part of an element's content that is in sight; hidden is what cuts texts off.
    const clips = new Map();
    const clip = (e) => {
      if (clips.has(e)) return clips.get(e);
      const style = getComputedStyle(e);
      const above = e.parentElement ? clip(e.parentElement) : { left: -1e9, top: -1e9, right: 1e9, bottom: 1e9, hidden: undefined };
      let mine = above;
      if (style.overflowX !== "visible" || style.overflowY !== "visible") {
        const box = e.getBoundingClientRect();
        const hides = style.overflowY === "hidden" && !e.closest(".cut, .grid") && style.textOverflow !== "ellipsis" && style.webkitLineClamp === "none";
        mine = { left: Math.max(above.left, box.left), top: Math.max(above.top, box.top), right: Math.min(above.right, box.right), bottom: Math.min(above.bottom, box.bottom), hidden: hides ? box : style.overflowY === "hidden" ? above.hidden : undefined };
      }
      clips.set(e, mine);
      return mine;
    };
    const look = () => {
      clips.clear();
      if (document.documentElement.scrollWidth > innerWidth) out.add(`the page is ${document.documentElement.scrollWidth} pixels wide`);
      const header = document.querySelector("header").offsetHeight;
      if (innerWidth === 390 && header > 0.15 * innerHeight) out.add(`the header is ${header} pixels high`);
      const boxes = [];
      const range = document.createRange();
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node; (node = walker.nextNode()); ) {
        const e = node.parentElement;
        if (!node.data.trim() || e.closest("option, noscript, .editor, .tip, dialog:not([open])") || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
        range.selectNodeContents(node);
        const lines = [...range.getClientRects()].filter((r) => r.width > 0);
        if (lines.length > 1) {
          for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}_:.]+/gu)) {
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            if (new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top))).size > 1) out.add(`a word is broken: ${short(word)}`);
          }
        }
        const c = clip(e);
        for (const r of lines) {
          if (c.hidden && !e.closest(".cut") && r.width > 1 && (r.right > c.hidden.right + 2 || r.bottom > c.hidden.bottom + 4)) out.add(`a text is cut off: ${short(node.data)}`);
          const box = { left: Math.max(c.left, r.left), right: Math.min(c.right, r.right), top: Math.max(c.top, r.top), bottom: Math.min(c.bottom, r.bottom), node };
          if (box.right - box.left > 2 && box.bottom - box.top > 4) boxes.push(box);
        }
      }
      boxes.sort((a, b) => a.top - b.top);
      for (const [i, a] of boxes.entries()) {
        for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom - 4; j++) {
          const b = boxes[j];
          if (a.node !== b.node && a.left < b.right - 2 && b.left < a.right - 2) out.add(`texts overlap: ${short(a.node.data)} | ${short(b.node.data)}`);
        }
      }
      for (const t of document.querySelectorAll("main table")) {
        const name = t.closest("[aria-label]")?.getAttribute("aria-label");
        if (!t.offsetWidth) continue;
        if (![...t.tHead?.rows[0]?.cells ?? []].every((th, i) => [...t.tBodies[0].rows].every((r) => !r.cells[i]?.matches(".number") || getComputedStyle(th).textAlign === "right"))) out.add(`numbers of ${name} are not under their heads`);
        if (t.matches(".grid")) continue;
        if (getComputedStyle(t.parentElement).overflowX !== "auto") out.add(`${name} does not scroll by itself`);
        if (![...t.querySelectorAll("thead th, tbody tr > :first-child")].every((e) => getComputedStyle(e).position === "sticky")) out.add(`the head and the first column of ${name} scroll away`);
      }
      for (const e of document.querySelectorAll("td .expr, th .expr")) if (e.previousElementSibling && e.getBoundingClientRect().top < e.previousElementSibling.getBoundingClientRect().bottom - 1) out.add(`glued: ${short(e.parentElement.textContent)}`);
    };
    const { dataset } = document.documentElement;
    const theme = dataset.theme;
    for (dataset.theme of ["light", "dark"]) look();
    dataset.theme = theme;
    return [...out];
  });

// rows groups landmarks that stand beside each other.
function rows(all) {
  const out = [];
  for (const l of all.toSorted((a, b) => a.top - b.top || a.left - b.left)) {
    const row = out.at(-1);
    if (row && l.top < row[0].bottom - 1) row.push(l);
    else out.push([l]);
  }
  return out.map((row) => row.toSorted((a, b) => a.left - b.left || a.top - b.top));
}

const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;

// plain names the landmarks that have one colour only in a picture of the page: they show nothing.
async function plain(page, painter, all) {
  const png = (await page.screenshot({ fullPage: true, animations: "disabled" })).toString("base64");
  return painter.evaluate(
    async ([data, all]) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      return all.filter((l) => {
        const pixels = new Uint32Array(context.getImageData(l.left, l.top, l.right - l.left, l.bottom - l.top).data.buffer);
        return pixels.every((p) => p === pixels[0]);
      });
    },
    [png, all],
  );
}

test("the views have their layout at four widths", async () => {
  const found = [];
  const painter = await visit(browser, "about:blank"); // a page behind another one of its context gets few frames
  const page = await watched();
  for (const [view, address] of Object.entries(views)) {
    await page.goto(`${server.url}/#/${address}`);
    for (const [width, height] of sizes) {
      await page.setViewportSize({ width, height });
      const all = await settle(page);
      for (const [i, a] of all.entries()) {
        assert.ok(a.left >= 0 && a.right <= width, `${view} at ${width}: ${a.name} is beyond the window`);
        for (const b of all.slice(i + 1)) assert.ok(!overlap(a, b), `${view} at ${width}: ${a.name} and ${b.name} overlap`);
      }
      assert.deepEqual(await faults(page), [], `${view} at ${width}`);
      assert.deepEqual(await plain(page, painter, all), [], `${view} at ${width} shows nothing there`);
      found.push(`${view}, ${width} pixels`, ...rows(all).map((row) => "  " + row.map((l) => `${l.name} ${Math.round((24 * l.left) / width)}-${Math.round((24 * l.right) / width)}`).join(" | ")));
    }
  }
  assert.deepEqual(page.faults, []);
  const text = found.join("\n") + "\n";
  if (process.env.UPDATE) await writeFile(golden, text);
  assert.equal(text, await readFile(golden, "utf8"));
});

for (const [content, answer] of Object.entries(contents)) {
  test(`every view is readable at four widths: ${content}`, async () => {
    const page = await watched();
    await page.route("**/api/v1/**", (route) => route.fulfill(answer(new URL(route.request().url()).pathname.replace("/api/v1/", ""))));
    for (const [view, address] of Object.entries(views)) {
      await page.goto(`${server.url}/#/${address}${content !== "hostile" ? "" : view === "dashboards" ? "&dash=file%3Ax.json" : view === "cardinality" ? `&state=${long}` : ""}`);
      await settle(page);
      if (content === "hostile") {
        for (const name of ["List the tenants", "Examine the store"]) for (const b of await page.getByRole("button", { name }).all()) await b.click();
        await page.evaluate(() => document.querySelectorAll("main details:not(.several)").forEach((d) => (d.open = true)));
      }
      for (const [width, height] of sizes) {
        await page.setViewportSize({ width, height });
        await settle(page);
        assert.deepEqual(await faults(page), [], `${view} at ${width}`);
      }
    }
    assert.deepEqual(page.faults, []);
  });
}

test("a table keeps its head and names in sight, sorts, and has all of a long name", async () => {
  const page = await visit(browser, "about:blank", { viewport: { width: 390, height: 844 } });
  const result = Array.from({ length: 60 }, (_, i) => ({ metric: { __name__: `${long.slice(0, 290)}_${i}`, a: "b" }, value: [1, String((i * 7) % 60)] }));
  await page.route("**/api/v1/query?*", (route) => route.fulfill({ json: { status: "success", data: { resultType: "vector", result } } }));
  await page.goto(`${server.url}/#/explore?g0.tab=table&g0.expr=x`);
  const name = page.locator("tbody th").first();
  await name.waitFor();
  const [whole, selected, cut, title] = await name.evaluate((th) => {
    getSelection().selectAllChildren(th);
    const e = th.querySelector(".cut");
    return [th.textContent, getSelection().toString().trim(), e.firstChild.scrollWidth > e.firstChild.clientWidth, e.title];
  });
  assert.equal(whole, `${result[0].metric.__name__}{a="b"}`);
  assert.deepEqual([selected, cut, title], [whole, true, whole]);
  // The first column and the head stay where they are.
  const sides = () => page.locator("main .scroll").evaluate((s) => [s.querySelector("tbody th").getBoundingClientRect().left, s.querySelector("thead th").getBoundingClientRect().top]);
  await page.locator("main .scroll").evaluate((s) => s.scrollTo(0, 100)); // past the caption
  const before = await sides();
  await page.locator("main .scroll").evaluate((s) => s.scrollTo(100, 300));
  assert.deepEqual(await sides(), before);
  // The keyboard sorts: the largest first, the smallest first, as the server answered.
  const values = () => page.locator("tbody td").allTextContents().then((all) => all.slice(0, 3));
  await page.getByRole("button", { name: "Value", exact: true }).focus();
  for (const [order, wanted] of [["descending", ["59", "58", "57"]], ["ascending", ["0", "1", "2"]], [null, ["0", "7", "14"]]]) {
    await page.keyboard.press("Enter");
    assert.deepEqual(await values(), wanted);
    assert.equal(await page.getByRole("columnheader", { name: "Value" }).getAttribute("aria-sort"), order);
  }
  // A refresh keeps the order and where the table was scrolled to.
  await page.keyboard.press("Enter");
  await page.locator("main .scroll").evaluate((s) => s.scrollTo(0, 200));
  await page.evaluate(() => new Promise(requestAnimationFrame));
  await Promise.all([page.waitForResponse("**/api/v1/query?*"), page.getByRole("button", { name: "Run" }).click()]);
  await until("the table is there", async () => (await page.locator('.result[aria-busy="true"]').count()) === 0);
  assert.deepEqual(await values(), ["59", "58", "57"]);
  assert.equal(await page.locator("main .scroll").evaluate((s) => s.scrollTop), 200);
  assert.deepEqual(page.faults, []);
});

test("a small screen has one menu, and the past has a colour", async () => {
  const page = await visit(browser, `${server.url}/#/explore`, { viewport: { width: 390, height: 844 } });
  for (const label of ["Length of the time range", "Refresh"]) await page.getByLabel(label, { exact: true }).waitFor();
  const menu = page.locator("summary", { hasText: "☰" });
  await menu.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.type("2026-01-31 14:03");
  await page.keyboard.press("Enter");
  await page.getByText("As of 2026-01-31 14:03:00").waitFor();
  const active = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent);
  assert.match(await active(), /^As of: /);
  for (const wanted of ["Time zone", /^Tenant/, "Token", "Theme", "Keyboard shortcuts"]) {
    await page.keyboard.press("Tab");
    assert.match(await active(), new RegExp(wanted));
  }
  assert.deepEqual(await serious(page, "header"), []);
  assert.ok((await page.locator("header").boundingBox()).height <= 0.15 * 844);
  await page.keyboard.press("Escape");
  assert.match(await active(), /^Menu/);
  assert.equal(await page.getByLabel("Time zone", { exact: true }).isVisible(), false);
  await page.getByRole("button", { name: "Latest data" }).click();
  await until("the address has no as_of", async () => !/as_of/.test(page.url()));
  assert.deepEqual(page.faults, []);
});

test("a legend names what differs, with figures, and sorts by them", async () => {
  const page = await visit(browser, "about:blank");
  const now = Math.floor(Date.now() / 60_000) * 60;
  const result = [[4, 2], [1, 9]].map((v, i) => ({ metric: { __name__: "x", job: "same", mode: "ab"[i] }, values: v.map((n, j) => [now - 120 + j * 60, String(n)]) }));
  await page.route(/\/query_range(\?|$)/, (route) => route.fulfill({ json: { status: "success", data: { resultType: "matrix", result } } }));
  await page.goto(`${server.url}/#/explore?range=15m&end=${new Date((now - 60) * 1000).toISOString()}&g0.step_input=1m&g0.expr=x`);
  const legend = page.getByRole("region", { name: "Legend of" });
  const rows = () => legend.getByRole("row").evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent)));
  await legend.waitFor();
  assert.deepEqual(await rows(), [["Series", "last", "min", "max", "mean"], ['{mode="a"}', "2", "2", "4", "3"], ['{mode="b"}', "9", "1", "9", "5"]]);
  await legend.getByRole("button", { name: "max" }).click();
  assert.deepEqual((await rows())[1][0], '{mode="b"}');
  await legend.locator(".key").first().click();
  assert.deepEqual(await legend.locator(".key").evaluateAll((all) => all.map((k) => k.getAttribute("aria-pressed"))), ["true", "false"]);
  assert.deepEqual(page.faults, []);
});
