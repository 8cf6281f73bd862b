// Starts a real promlake and a real Chromium for the page's tests.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import { chromium } from "playwright-core";

// Every wait has this deadline, in ms. No test passes or fails by how long something takes.
export const deadline = Number(process.env.PROMLAKE_WEB_DEADLINE ?? 180_000);

const program = new URL("../../bin/promlake", import.meta.url).pathname;

// freePort returns a free port below those that the kernel gives to connections, so that none of
// them takes it.
export async function freePort() {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    const s = createServer().listen(port, "127.0.0.1");
    const free = await new Promise((done) => s.once("listening", () => done(true)).once("error", () => done(false)));
    if (!free) continue;
    await new Promise((done) => s.close(done));
    return port;
  }
}

// Server is one `promlake serve` over a directory of its own.
export class Server {
  static async start(...args) {
    const s = new Server();
    s.folder = await mkdtemp(join(tmpdir(), "promlake-page-"));
    s.port = await freePort();
    s.args = args;
    await s.up();
    return s;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  // up starts the process and waits until it answers.
  async up() {
    this.process = spawn(program, ["serve", "--store", `file://${this.folder}/data`, "--listen", `127.0.0.1:${this.port}`, ...this.args], { stdio: ["ignore", "ignore", "pipe"] });
    this.log = "";
    this.process.stderr.on("data", (d) => (this.log += d));
    this.ended = new Promise((done) => this.process.once("exit", done));
    for (const end = Date.now() + deadline; ; ) {
      const ready = await fetch(`${this.url}/-/ready`).then((r) => r.ok, () => false);
      if (ready) return;
      assert.equal(this.process.exitCode, null, `promlake ended: ${this.log}`);
      assert.ok(Date.now() < end, `promlake is not ready: ${this.log}`);
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  // down kills the process; its data stays.
  async down() {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    await this.down();
    await rm(this.folder, { recursive: true, force: true });
  }
}

// run starts a command of promlake and returns what it prints.
export async function run(...args) {
  const p = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  p.stdout.on("data", (d) => (out += d));
  const code = await new Promise((done) => p.once("close", done));
  assert.equal(code, 0, `promlake ${args.join(" ")}`);
  return out;
}

// open starts Debian's Chromium without windows: it takes half the CPU time of the whole browser. It
// looks up no host of its maker.
export function open() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
  });
}

// close ends a browser. What tests answer in the server's place may still wait for the server then:
// it is given up in silence.
export async function close(browser) {
  for (const context of browser?.contexts() ?? []) {
    for (const routed of [context, ...context.pages()]) await routed.unrouteAll({ behavior: "ignoreErrors" });
  }
  await browser?.close();
}

// visit opens a page in a context of its own. Errors of scripts and violations of the
// Content-Security-Policy are collected in page.faults; the browser's lines about refused requests
// are not faults.
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(deadline);
  page.setDefaultNavigationTimeout(deadline);
  page.faults = [];
  page.on("pageerror", (e) => page.faults.push(e.message));
  page.on("console", (m) => {
    if (m.type() === "error" && !m.text().startsWith("Failed to load resource")) page.faults.push(m.text());
  });
  await page.goto(url);
  return page;
}

// reach moves the focus to an element by Tab, and presses keys there.
export async function reach(page, element, ...keys) {
  await element.waitFor();
  for (let i = 0; !(await element.evaluate((e) => e === document.activeElement)); i++) {
    assert.ok(i < 500, "the keyboard does not reach it");
    await page.keyboard.press("Tab");
  }
  for (const key of keys) await page.keyboard.press(key);
}

// settled waits until everything is answered, and until drawings have the size of their boxes.
export async function settled(page) {
  await until("everything is answered", async () => (await page.locator('[aria-busy="true"]').count()) === 0);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

// serious are the faults that axe-core finds in a part of the page. The policy of the page keeps
// scripts out of it, so axe-core runs through the debugger.
export async function serious(page, part = "main") {
  await settled(page);
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate((p) => globalThis.axe.run(p, { resultTypes: ["violations"] }), part);
  return violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" | ")}`);
}

// until waits until a condition holds.
export async function until(what, condition) {
  for (const end = Date.now() + deadline; ; ) {
    const v = await condition();
    if (v) return v;
    assert.ok(Date.now() < end, `waited in vain until ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}
