import { ApiError, type Api } from "./api";
import { alarm, cut, h, replace } from "./dom";
import { dollars, formatValue } from "./format";
import { num, table, type Cell } from "./table";
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
      replace(out, listed(data.tenants, zone(), open));
    } catch (e) {
      const missing = e instanceof ApiError && e.status === 404;
      replace(out, alarm(missing ? "This server does not list the tenants of its store." : e));
    } finally {
      button.disabled = false;
    }
  };
  return h("section", { class: "panel", "aria-label": "Tenants" }, h("h2", {}, "Tenants"), h("p", { class: "muted" }, "Lists the segments and reads the manifest of each tenant, two requests to the store for each."), button, out);
}

function listed(all: Stored[], zone: Zone, open: (tenant: string) => void): HTMLElement {
  if (!all.length) return h("p", { class: "muted" }, "The store is empty.");
  const row = (t: Stored): Cell[] => {
    const name = h("button", { type: "button", class: "quiet", "aria-label": `Show the lake of ${t.tenant}`, onclick: () => open(t.tenant) }, ...cut(t.tenant));
    const problem = t.error && h("div", { class: "bad" }, ...cut(t.error));
    const time = (ms: number) => (t.end ? num(ms, formatTime(ms, zone)) : num(NaN, "–"));
    return [{ by: t.tenant, show: [name, problem] }, ...(t.error ? [] : [num(t.bytes, formatValue(t.bytes, "bytes")), num(t.dollarsPerMonth, dollars(t.dollarsPerMonth)), num(t.samples), num(t.segments), num(t.blocks), time(t.start), time(t.end), num(t.waiting), num(t.deletions)])];
  };
  const note = `${n(all.length)} tenants, ${formatValue(all.reduce((sum, t) => sum + t.bytes, 0), "bytes")}`;
  return table("Tenants by bytes", head, all.map(row), note);
}
