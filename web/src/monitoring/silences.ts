import type { Labels } from "../answer";
import { ApiError } from "../api";
import type { Context } from "../context";
import { alarm, h, replace } from "../dom";
import { fits, matchersIn, matchOps, select, type Matcher } from "../explore/syntax";
import { table } from "../table";
import { formatTime, parseDuration } from "../time";
import { link, mark } from "./listing";

// Silence is one of Alertmanager's API, version 2. Times are RFC 3339.
interface Silence {
  id: string;
  matchers: { name: string; value: string; isRegex: boolean; isEqual?: boolean }[]; // without isEqual, it is true
  endsAt: string;
  createdBy: string;
  comment: string;
  status: { state: "active" | "pending" | "expired" };
}

const matchersOf = (s: Silence) => s.matchers.map((m): Matcher => ({ label: m.name, op: matchOps[(m.isRegex ? 2 : 0) + (m.isEqual === false ? 1 : 0)]!, value: m.value }));
const written = (all: readonly Matcher[]) => select("", all).slice(1, -1);

// Silences lists, makes and ends the silences of the Alertmanager that the server notifies. Without
// one it is hidden.
export class Silences {
  readonly dom: HTMLElement;
  private all: Silence[] = [];
  private changed = () => {};
  private readonly status = h("div", { role: "status" });
  private readonly list = h("div");
  private readonly managers = h("span");
  private readonly matchers = h("input", { class: "wide", required: true, placeholder: 'alertname="Down", job=~"node.*"' });
  private readonly duration = h("input", { class: "short", required: true, value: "2h" });
  private readonly author = h("input", { class: "short", required: true });
  private readonly comment = h("input", { class: "wide", required: true });
  private readonly form: HTMLFormElement;

  constructor(private readonly ctx: Context) {
    const field = (name: string, input: HTMLElement) => h("label", {}, `${name} `, input);
    const submit = (e: Event) => (e.preventDefault(), void this.make());
    this.form = h(
      "form",
      { class: "row tools silence", hidden: true, "aria-label": "New silence", onsubmit: submit },
      ...[field("Matchers", this.matchers), field("Duration", this.duration), field("Author", this.author), field("Comment", this.comment)],
      h("button", { class: "primary" }, "Create"),
      h("button", { type: "button", onclick: () => (this.form.hidden = true) }, "Cancel"),
    );
    const open = h("button", { type: "button", onclick: () => this.open({}) }, "New silence");
    this.dom = h("section", { class: "panel", "aria-label": "Silences", hidden: true }, h("div", { class: "row" }, h("h2", {}, "Silences"), this.managers, open), this.form, this.status, this.list);
    this.matchers.addEventListener("input", () => this.matchers.setCustomValidity(matchersIn(this.matchers.value).length ? "" : 'Write matchers such as alertname="Down", job=~"node.*".'));
    this.duration.addEventListener("input", () => this.duration.setCustomValidity(parseDuration(this.duration.value) ? "" : "Write a duration such as 90m or 2h30m."));
  }

  // load asks for the silences. changed is called when the user has changed them.
  async load(changed: () => void): Promise<void> {
    this.changed = changed;
    try {
      const all = await this.ctx.api.alertmanager<Silence[]>("GET", "silences");
      const managers = await this.ctx.api.quiet<{ activeAlertmanagers: { url: string }[] }>("alertmanagers");
      replace(this.managers, ...(managers?.activeAlertmanagers ?? []).flatMap(({ url }) => [link(url.replace(/api\/v2\/alerts$/, ""), "Alertmanager"), " "]));
      this.all = all.filter((s) => s.status.state !== "expired").sort((a, b) => (a.endsAt < b.endsAt ? -1 : 1));
      const row = (s: Silence) => [written(matchersOf(s)), mark(s.status.state), formatTime(Date.parse(s.endsAt), this.ctx.zone()), s.createdBy, s.comment, { by: "", show: [h("button", { type: "button", "aria-label": `Expire the silence ${written(matchersOf(s))}`, onclick: () => void this.change("DELETE", `silence/${s.id}`) }, "Expire")] }];
      replace(this.list, this.all.length > 0 && table("Silences", ["Matchers", "State", "Until", "By", "Comment", ""], this.all.map(row)));
      this.dom.hidden = false;
    } catch (e) {
      this.all = [];
      this.dom.hidden = e instanceof ApiError && e.status === 404; // no Alertmanager
      replace(this.list, alarm(e));
    }
  }

  get there(): boolean {
    return !this.dom.hidden;
  }

  // of returns until when and by whom an alert with these labels is silenced, "" if it is not.
  of(labels: Labels): string {
    const last = this.all.filter((s) => s.status.state === "active" && matchersOf(s).every((m) => fits(m, labels))).at(-1);
    return last ? `silenced until ${formatTime(Date.parse(last.endsAt), this.ctx.zone())} by ${last.createdBy}` : "";
  }

  // open shows the form, filled in for alerts with these labels.
  open(labels: Labels): void {
    this.matchers.value = written(Object.entries(labels).sort().map(([label, value]): Matcher => ({ label, op: "=", value })));
    this.matchers.setCustomValidity("");
    this.form.hidden = false;
    this.form.scrollIntoView({ block: "nearest" });
    (this.matchers.value ? (this.author.value ? this.comment : this.author) : this.matchers).focus();
  }

  private async make(): Promise<void> {
    const now = Date.now();
    const [startsAt, endsAt] = [now, now + parseDuration(this.duration.value)!].map((t) => new Date(t).toISOString());
    const made = await this.change("POST", "silences", { matchers: matchersIn(this.matchers.value).map(({ label, op, value }) => ({ name: label, value, isRegex: op.endsWith("~"), isEqual: !op.startsWith("!") })), startsAt, endsAt, createdBy: this.author.value, comment: this.comment.value });
    if (made) this.form.hidden = true;
  }

  private async change(method: string, path: string, body?: unknown): Promise<boolean> {
    replace(this.status);
    try {
      await this.ctx.api.alertmanager(method, path, body);
    } catch (e) {
      replace(this.status, alarm(e));
      return false;
    }
    await this.load(this.changed);
    this.changed();
    return true;
  }
}
