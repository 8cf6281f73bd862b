// What the benchmarks of the page measure with.
import { until, visit } from "./harness.mjs";

// Watch runs in the page before its script. It records how long keys wait for a reaction, from when
// the browser has them: inputs go before the other work of the page's thread.
function watch() {
  const w = (window.watched = { longest: 0, canvas: 0, keys: 0 });
  const pressed = (e) => {
    w.longest = Math.max(w.longest, performance.now() - e.timeStamp);
    w.keys++;
  };
  addEventListener("keydown", pressed, true);
}

// fresh opens an address in a context of its own.
export async function fresh(browser, url, options = {}) {
  const page = await visit(browser, "about:blank", options);
  await page.addInitScript(watch);
  await page.goto(url);
  return page;
}

// busiest is the longest task of the page's thread in a trace, in ms of processor time: how long an
// input waits on a machine with nothing else to do.
function busiest(trace) {
  const events = JSON.parse(trace.toString()).traceEvents;
  const tasks = events.filter((e) => e.ph === "X" && e.name.endsWith("RunTask") && e.tdur !== undefined);
  const threads = events.filter((e) => e.name === "thread_name" && e.args?.name === "CrRendererMain").map((e) => `${e.pid}.${e.tid}`);
  return Math.max(...tasks.filter((e) => threads.includes(`${e.pid}.${e.tid}`)).map((e) => e.tdur / 1000));
}

// drawing starts the drawing of a range query in a page, waits until ready, a function that runs in
// the page, says that it is on the screen, and returns how long it took in ms. Meanwhile it presses
// a key that means nothing, one time after the other.
export async function drawing(browser, page, start, ready) {
  await browser.startTracing(page, { categories: ["toplevel"] });
  const asked = page.waitForEvent("requestfinished", (r) => r.url().includes("query_range?"));
  const watching = (isReady) => {
    const w = window.watched;
    [w.longest, w.keys] = [0, 0];
    w.begun = performance.now();
    const look = () => {
      if (!isReady()) return requestAnimationFrame(look);
      requestAnimationFrame(() => setTimeout(() => (w.canvas = performance.now())));
    };
    requestAnimationFrame(look);
  };
  await page.evaluate(`(${watching})(${ready})`); // as a text: functions are no arguments
  await start();
  let drawn = false;
  const presses = (async () => {
    for (; !drawn; await new Promise((next) => setTimeout(next, 10))) await page.keyboard.press("Shift");
  })();
  await until("the graph is drawn", () => page.evaluate(() => window.watched.canvas > 0));
  drawn = true;
  await presses;
  const { startTime, responseEnd } = (await asked).timing();
  const w = await page.evaluate(() => ({ ...window.watched, origin: performance.timeOrigin }));
  const task = busiest(await browser.stopTracing());
  return { drawn: w.canvas - (startTime + responseEnd - w.origin), frozen: w.longest, keys: w.keys, task, total: w.canvas - w.begun };
}

// typing types keys into the focused field. It returns for each key how long it took until shown, a
// function that runs in the page, returned a text that contains what was typed so far.
export async function typing(page, begun, keys, shown) {
  const watching = (text, before) => {
    const w = window.watched;
    [w.took, w.typed] = [[], before];
    const pressed = (e) => {
      const at = performance.now();
      const wanted = (w.typed += e.key);
      const look = () => {
        if (!text()?.includes(wanted)) return requestAnimationFrame(look);
        requestAnimationFrame(() => setTimeout(() => w.took.push(performance.now() - at)));
      };
      requestAnimationFrame(look);
    };
    addEventListener("keydown", pressed, true);
  };
  await page.evaluate(`(${watching})(${shown}, ${JSON.stringify(begun)})`);
  for (const [i, key] of [...keys].entries()) {
    await page.keyboard.press(key);
    await until("the list is drawn", () => page.evaluate((n) => window.watched.took.length > n, i));
  }
  return page.evaluate(() => window.watched.took);
}
