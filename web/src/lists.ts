import type { Api } from "./api";
import { doctor } from "./doctor";
import { alarm, h, replace } from "./dom";
import { table } from "./table";

// The view of the server itself: build, process, limits, tokens, health and flags.

// List is a table with a title.
interface List {
  title: string;
  note?: string;
  head: string[];
  rows: string[][];
}

interface Tokens {
  required: boolean;
  tokens: { id?: string; principal?: string; tenants: string[]; access: string[]; comment?: string }[];
}

const list = ({ title, note, head, rows }: List) => h("section", { class: "panel" }, h("h2", {}, title), note ? h("p", { class: "muted" }, note) : null, rows.length ? table(title, head, rows) : null);

const named = (o: Record<string, unknown>) =>
  Object.entries(o)
    .map(([name, v]) => [name, typeof v === "object" && v !== null ? Object.entries(v).map(([k, x]) => `${k}: ${String(x)}`).join(", ") : String(v ?? "")])
    .filter(([, v]) => v !== "")
    .sort(([a], [b]) => (a! < b! ? -1 : 1));

// limits are the flags that bound something.
const isLimit = (flag: string) => /(^|[.-])(max|limit|limits|timeout|bytes|retention|concurrency)([.-]|$)/.test(flag);

function tokens(t: Tokens): List {
  const note = !t.required ? "Requests need no token." : t.tokens.length ? "The first digits of a token's SHA-256, or the ARN of a principal, find its entry in the document." : "The document has no entry.";
  return { title: "Tokens", note, head: ["SHA-256 or principal", "Tenants", "Access", "Comment"], rows: t.tokens.map((x) => [x.principal ?? `${x.id}…`, x.tenants.join(", "), x.access.join(", "), x.comment ?? ""]) };
}

// StatusView shows the build, and to operators the process as well.
export class StatusView {
  readonly dom = h("div", { class: "lists" });
  private readonly health: HTMLElement;

  constructor(private readonly api: Api) {
    this.health = doctor(api);
  }

  refresh(): void {
    void this.show();
  }

  destroy(): void {}

  private async show(): Promise<void> {
    try {
      const build = await this.api.get<Record<string, unknown>>("status/buildinfo");
      const [runtime, flags, keys] = await Promise.all([this.api.operator<Record<string, unknown>>("status/runtimeinfo"), this.api.operator<Record<string, unknown>>("status/flags"), this.api.operator<Tokens>("status/tokens")]);
      const all = named(flags ?? {});
      const { promlakeVersion, version, ...rest } = build.data;
      const about: List[] = [{ title: "Build", head: ["Name", "Value"], rows: named({ Promlake: promlakeVersion, "Prometheus API": version, ...rest }) }];
      if (runtime) about.push({ title: "Process", head: ["Name", "Value"], rows: named(runtime) });
      if (keys) about.push(tokens(keys));
      const set: List[] = flags ? [{ title: "Limits", head: ["Flag", "Value"], rows: all.filter(([f]) => isLimit(f!)) }, { title: "Other flags", head: ["Flag", "Value"], rows: all.filter(([f]) => !isLimit(f!)) }] : [];
      replace(this.dom, ...about.map(list), flags ? this.health : null, ...set.map(list), flags ? null : h("p", { class: "muted" }, "The token is not one of an operator: process, limits, tokens and health are not shown."));
    } catch (e) {
      replace(this.dom, alarm(e));
    }
  }
}
