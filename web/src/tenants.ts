import { ApiError, type Api } from "./api";
import { h, replace } from "./dom";
import { dollars, formatValue } from "./format";
import { formatTime, type Zone } from "./time";

// What each tenant of the store holds (/api/v1/status/tenants), for operators. It takes requests to
// the store for each tenant, so the user starts it.

interface Stored {
  tenant: string;
  segments: number;
  blocks: number;
  bytes: number;
  samples: number;
  start: number; // ms; 0: no data
  end: number;
  waiting: number;
  deletions: number;
  dollarsPerMonth: number;
  error?: string;
}

const n = (x: number) => x.toLocaleString("en");
const head = ["Tenant", "Bytes", "Dollars a month", "Samples in blocks", "Segments", "Blocks", "From", "To", "To be deleted", "Deletions under way"];

// tenants is a section with a button that lists the tenants. open shows another tenant.
export function tenants(api: Api, zone: () => Zone, open: (tenant: string) => void): HTMLElement {
  const out = h("div", { role: "status" });
  const button = h("button", { type: "button", onclick: () => void list() }, "List the tenants");
  const list = async () => {
    button.disabled = true;
    replace(out, h("p", { class: "muted" }, "Reading…"));
    try {
      const { data } = await api.get<{ tenants: Stored[] }>("status/tenants");
      replace(out, table(data.tenants, zone(), open));
    } catch (e) {
      const missing = e instanceof ApiError && e.status === 404;
      replace(out, h("p", { class: "bad", role: "alert" }, missing ? "This server does not list the tenants of its store." : e instanceof Error ? e.message : String(e)));
    } finally {
      button.disabled = false;
    }
  };
  return h("section", { class: "panel", "aria-label": "Tenants" }, h("h2", {}, "Tenants"), h("p", { class: "muted" }, "Lists the segments and reads the manifest of each tenant, two requests to the store for each."), button, out);
}

function table(all: Stored[], zone: Zone, open: (tenant: string) => void): HTMLElement {
  if (!all.length) return h("p", { class: "muted" }, "The store is empty.");
  const name = (t: Stored) => h("th", { scope: "row" }, h("button", { type: "button", class: "quiet", "aria-label": `Show the lake of ${t.tenant}`, onclick: () => open(t.tenant) }, t.tenant));
  const row = (t: Stored) => {
    if (t.error) return h("tr", {}, name(t), h("td", { colSpan: head.length - 1, class: "bad" }, t.error));
    const time = (ms: number) => (t.end ? formatTime(ms, zone) : "–");
    const cells = [formatValue(t.bytes, "bytes"), dollars(t.dollarsPerMonth), n(t.samples), n(t.segments), n(t.blocks), time(t.start), time(t.end), n(t.waiting), n(t.deletions)];
    return h("tr", {}, name(t), ...cells.map((c) => h("td", { class: "number" }, c)));
  };
  return h(
    "div",
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Tenants by bytes" },
    h("p", { class: "muted" }, `${n(all.length)} tenants, ${formatValue(all.reduce((sum, t) => sum + t.bytes, 0), "bytes")}`),
    h("table", {}, h("thead", {}, h("tr", {}, ...head.map((c, i) => h("th", { scope: "col", class: i ? "number" : "" }, c)))), h("tbody", {}, ...all.map(row))),
  );
}
