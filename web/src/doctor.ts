import { ApiError, type Api } from "./api";
import { alarm, cut, h, replace } from "./dom";
import { formatValue } from "./format";

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

const n = (x: number) => x.toLocaleString("en");

// doctor is a section with a button that examines the tenant's objects.
export function doctor(api: Api): HTMLElement {
  const out = h("div", { role: "status" });
  const button = h("button", { type: "button", onclick: () => void examine() }, "Examine the store");
  const examine = async () => {
    button.disabled = true;
    replace(out, h("p", { class: "muted" }, "Examining…"));
    try {
      const { data } = await api.get<Report>("status/doctor");
      replace(out, ...data.tenants.flatMap(described));
    } catch (e) {
      const missing = e instanceof ApiError && e.status === 404;
      replace(out, alarm(missing ? "This server does not examine its store. Run promlake doctor." : e));
    } finally {
      button.disabled = false;
    }
  };
  return h(
    "section",
    { class: "panel", "aria-label": "Health of the store" },
    h("h2", {}, "Health of the store"),
    h("p", { class: "muted" }, "Reads the manifest, the live segments and the metadata of the live blocks of this tenant, a request to the store for each. promlake doctor --verify reads every byte."),
    button,
    out,
  );
}

function described(t: Report["tenants"][number]): HTMLElement[] {
  if (t.error) return [alarm(`The manifest of ${t.tenant} cannot be read: ${t.error}`)];
  const read = `${n(t.segments)} segments and ${n(t.blocks)} blocks of ${t.tenant}, ${formatValue(t.bytes, "bytes")} read`;
  if (!t.damaged.length) return [h("p", { class: "good" }, `No object is damaged: ${read}.`)];
  return [
    alarm(`${n(t.damaged.length)} objects are damaged: ${read}. The documentation, "Damaged objects", says what to do.`),
    h("ul", {}, ...t.damaged.map((d) => h("li", {}, h("code", {}, ...cut(d.object)), ...cut(`: ${d.error}. From ${d.min_time} to ${d.max_time}, ${d.samples ? `${n(d.samples)} samples of ${n(d.series ?? 0)} series` : "an unknown number of samples"}.`)))),
  ];
}
