import { ApiError, type Api } from "./api";
import { h, replace } from "./dom";

// Views that list what the server reports: cardinality and status.

interface Named {
  name: string;
  value: number | string;
}

interface TsdbStatus {
  headStats: { numSeries: number; numLabelPairs: number };
  seriesCountByMetricName: Named[];
  labelValueCountByLabelName: Named[];
  seriesCountByLabelValuePair: Named[];
  memoryInBytesByLabelName: Named[];
}

const count = (n: number | string) => (typeof n === "number" ? n.toLocaleString("en") : n);

async function show(into: HTMLElement, ask: () => Promise<(HTMLElement | null)[]>): Promise<void> {
  try {
    replace(into, ...(await ask()));
  } catch (e) {
    replace(into, h("p", { class: "bad", role: "alert" }, e instanceof ApiError ? e.message : String(e)));
  }
}

function list(title: string, head: [string, string], rows: Named[], open?: (name: string) => void): HTMLElement {
  return h(
    "section",
    { class: "panel" },
    h("h2", {}, title),
    h(
      "div",
      { class: "scroll", tabIndex: 0 },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, head[0]), h("th", { scope: "col", class: "number" }, head[1]))),
        h("tbody", {}, ...rows.map((r) => h("tr", {}, h("th", { scope: "row" }, open ? h("button", { type: "button", class: "quiet", onclick: () => open(r.name) }, r.name) : h("code", {}, r.name)), h("td", { class: "number" }, count(r.value))))),
      ),
    ),
  );
}

// cardinality shows what makes most series. A metric opens in Explore.
export function cardinality(api: Api, into: HTMLElement, explore: (expr: string) => void): Promise<void> {
  return show(into, async () => {
    const { data: d } = await api.get<TsdbStatus>("status/tsdb", { limit: "50" });
    const metric = (name: string) => explore(/^[a-zA-Z_:][\w:]*$/.test(name) ? `count(${name})` : `count({${JSON.stringify(name)}})`);
    return [
      h("p", {}, `${count(d.headStats.numSeries)} series, ${count(d.headStats.numLabelPairs)} label pairs`),
      h("div", { class: "lists" }, list("Series by metric", ["Metric", "Series"], d.seriesCountByMetricName, metric), list("Values by label", ["Label", "Values"], d.labelValueCountByLabelName), list("Series by label pair", ["Label pair", "Series"], d.seriesCountByLabelValuePair), list("Bytes by label", ["Label", "Bytes"], d.memoryInBytesByLabelName)),
    ];
  });
}

// status shows the build, the process and its flags.
export function status(api: Api, into: HTMLElement): Promise<void> {
  return show(into, async () => {
    const named = (o: Record<string, unknown>) =>
      Object.entries(o)
        .map(([name, v]) => ({ name, value: String(v) }))
        .filter((r) => r.value !== "")
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    const build = await api.get<Record<string, unknown>>("status/buildinfo");
    // Only an operator's token reads about the process.
    const operator = async (path: string) => {
      try {
        return (await api.get<Record<string, unknown>>(path)).data;
      } catch (e) {
        if (e instanceof ApiError && e.status === 403) return undefined;
        throw e;
      }
    };
    const [runtime, flags] = await Promise.all([operator("status/runtimeinfo"), operator("status/flags")]);
    return [h("div", { class: "lists" }, list("Build", ["Name", "Value"], named(build.data)), runtime ? list("Process", ["Name", "Value"], named(runtime)) : null, flags ? list("Flags", ["Flag", "Value"], named(flags)) : null)];
  });
}
