import { ApiError, type Api } from "./api";
import { h, replace } from "./dom";

// The view of the server itself: build, process and flags.

interface Named {
  name: string;
  value: number | string;
}

const count = (n: number | string) => (typeof n === "number" ? n.toLocaleString("en") : n);

async function show(into: HTMLElement, ask: () => Promise<(HTMLElement | null)[]>): Promise<void> {
  try {
    replace(into, ...(await ask()));
  } catch (e) {
    replace(into, h("p", { class: "bad", role: "alert" }, e instanceof ApiError ? e.message : String(e)));
  }
}

function list(title: string, head: [string, string], rows: Named[]): HTMLElement {
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
        h("tbody", {}, ...rows.map((r) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, r.name)), h("td", { class: "number" }, count(r.value))))),
      ),
    ),
  );
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
