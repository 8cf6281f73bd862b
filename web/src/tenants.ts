import type { Api } from "./api";
import { onDemand } from "./doctor";
import { cut, h } from "./dom";
import { count, dollars, formatValue } from "./format";
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

const head = ["Tenant", "Bytes", "Dollars a month", "Samples in blocks", "Segments", "Blocks", "From", "To", "To be deleted", "Deletions under way"];

// tenants is a section with a button that lists the tenants. open shows another tenant.
export function tenants(api: Api, zone: () => Zone, open: (tenant: string) => void): HTMLElement {
  const texts = {
    title: "Tenants",
    note: "Lists the segments and reads the manifest of each tenant, two requests to the store for each.",
    button: "List the tenants",
    missing: "This server does not list the tenants of its store.",
  };
  return onDemand<{ tenants: Stored[] }>(api, "status/tenants", texts, (r) => [listed(r.tenants, zone(), open)]);
}

function listed(all: Stored[], zone: Zone, open: (tenant: string) => void): HTMLElement {
  if (!all.length) return h("p", { class: "muted" }, "The store is empty.");
  const row = (t: Stored): Cell[] => {
    const name = h("button", { type: "button", class: "quiet", "aria-label": `Show the lake of ${t.tenant}`, onclick: () => open(t.tenant) }, ...cut(t.tenant));
    const problem = t.error && h("div", { class: "bad" }, ...cut(t.error));
    const time = (ms: number) => (t.end ? num(ms, formatTime(ms, zone)) : num(NaN, "–"));
    return [{ by: t.tenant, show: [name, problem] }, ...(t.error ? [] : [num(t.bytes, formatValue(t.bytes, "bytes")), num(t.dollarsPerMonth, dollars(t.dollarsPerMonth)), num(t.samples), num(t.segments), num(t.blocks), time(t.start), time(t.end), num(t.waiting), num(t.deletions)])];
  };
  const note = `${count(all.length)} tenants, ${formatValue(all.reduce((sum, t) => sum + t.bytes, 0), "bytes")}`;
  return table("Tenants by bytes", head, all.map(row), note);
}
