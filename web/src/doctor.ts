import { ApiError, type Api } from "./api";
import { alarm, cut, h, replace } from "./dom";
import { count, formatValue } from "./format";

// The health of the tenant's objects, as promlake doctor reports it (docs/operations.md). It reads
// every live object, so the user starts it.

interface Report {
  tenants: {
    tenant: string;
    segments: number;
    blocks: number;
    bytes: number;
    error?: string;
    damaged: { object: string; error: string; min_time: string; max_time: string; series?: number; samples?: number }[];
  }[];
}

// onDemand is a section with a button that asks for what it shows: the request takes the server
// something. missing is the text for a server that does not have the path.
export function onDemand<T>(api: Api, path: string, texts: { title: string; note: string; button: string; missing: string }, show: (data: T) => HTMLElement[]): HTMLElement {
  const out = h("div", { role: "status" });
  const button = h("button", { type: "button", onclick: () => void ask() }, texts.button);
  const ask = async () => {
    button.disabled = true;
    replace(out, h("p", { class: "muted" }, "Reading…"));
    try {
      replace(out, ...show((await api.get<T>(path)).data));
    } catch (e) {
      replace(out, alarm(e instanceof ApiError && e.status === 404 ? texts.missing : e));
    } finally {
      button.disabled = false;
    }
  };
  return h("section", { class: "panel", "aria-label": texts.title }, h("h2", {}, texts.title), h("p", { class: "muted" }, texts.note), button, out);
}

// doctor is a section with a button that examines the tenant's objects.
export function doctor(api: Api): HTMLElement {
  const texts = {
    title: "Health of the store",
    note: "Reads the manifest, the live segments and the metadata of the live blocks of this tenant, a request to the store for each. promlake doctor --verify reads every byte.",
    button: "Examine the store",
    missing: "This server does not examine its store. Run promlake doctor.",
  };
  return onDemand<Report>(api, "status/doctor", texts, (r) => r.tenants.flatMap(described));
}

function described(t: Report["tenants"][number]): HTMLElement[] {
  if (t.error) return [alarm(`The manifest of ${t.tenant} cannot be read: ${t.error}`)];
  const read = `${count(t.segments)} segments and ${count(t.blocks)} blocks of ${t.tenant}, ${formatValue(t.bytes, "bytes")} read`;
  if (!t.damaged.length) return [h("p", { class: "good" }, `No object is damaged: ${read}.`)];
  return [
    alarm(`${count(t.damaged.length)} objects are damaged: ${read}. The documentation, "Damaged objects", says what to do.`),
    h("ul", {}, ...t.damaged.map((d) => h("li", {}, h("code", {}, ...cut(d.object)), ...cut(`: ${d.error}. From ${d.min_time} to ${d.max_time}, ${d.samples ? `${count(d.samples)} samples of ${count(d.series ?? 0)} series` : "an unknown number of samples"}.`)))),
  ];
}
