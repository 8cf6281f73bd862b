import type { Api } from "../api";
import { alarm, copyButton, cut, h, replace } from "../dom";
import { senders } from "./senders";

// machine is the dashboard that the demo fills.
const machine = "#/dashboards?range=15m&refresh=5s&dash=machine";

// demo says how to see the metrics of the server's own machine: by a button, if the server lets
// this user start the demo, and the tenant is that of the demo.
function demo(api: Api): HTMLElement {
  const dom = h("div", { class: "muted" }, "To see the metrics of the server's own machine, start it with ", h("code", {}, "promlake serve --demo"), ".");
  const begin = async (e: Event) => {
    (e.currentTarget as HTMLButtonElement).disabled = true;
    try {
      await api.act("POST", "demo");
      location.hash = machine;
      location.reload(); // the server has other views now
    } catch (failure) {
      replace(dom, alarm(failure));
    }
  };
  const offer = (d: { running: boolean; tenant: string } | undefined) => {
    if (d?.running === false && d.tenant === (api.tenant || "anonymous")) replace(dom, h("p", {}, "Or look at the metrics of the server's own machine, until the server stops: ", h("button", { type: "button", onclick: (e: Event) => void begin(e) }, "Start the demo")));
  };
  void api.operator<{ running: boolean; tenant: string }>("demo").then(offer, () => {});
  return dom;
}

// start is what a tenant without data shows: how to send some.
export function start(api: Api): HTMLElement {
  const token = "Authorization" in api.headers();
  const all = senders(api.url("").replace(/\/$/, ""), token, api.tenant);
  const panel = h("div", { role: "tabpanel", id: "sender" });
  const tabs = all.map(({ name }, i) => h("button", { type: "button", role: "tab", "aria-controls": "sender", id: `sender-${i}`, onclick: () => show(i) }, name));
  const show = (shown: number) => {
    const { file, text } = all[shown]!;
    tabs.forEach((t, i) => {
      t.setAttribute("aria-selected", String(i === shown));
      t.tabIndex = i === shown ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `sender-${shown}`);
    const block = h("pre", { tabIndex: 0 }, ...cut(text));
    replace(panel, h("p", { class: "muted" }, `For ${file}`), block, copyButton(block));
  };
  const list = h("div", { class: "row tabs", role: "tablist", "aria-label": "Senders" }, ...tabs);
  list.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const next = (tabs.indexOf(document.activeElement as HTMLButtonElement) + step + tabs.length) % tabs.length;
    show(next);
    tabs[next]!.focus();
  });
  show(0);
  return h(
    "section",
    { class: "panel", "aria-label": "Send metrics" },
    h("h2", {}, ...cut(api.tenant ? `No data for tenant ${api.tenant}` : "No data yet")),
    h("p", {}, "Add one of these to the configuration of what collects your metrics. This page shows them when the first sample arrives."),
    list,
    panel,
    token ? h("p", {}, "Replace TOKEN by a token for writing. ", h("code", {}, "promlake token --tenant NAME --access write"), " makes one.") : null,
    demo(api),
  );
}
