import { ApiError, type Api } from "../api";
import type { Saved } from "../dashboards/sources";
import { alarm, download, fileName, h, replace } from "../dom";

// saveDialog asks for a name, and saves Explore's panels as a dashboard on the server or as a file.
// make returns the dashboard; last is the one that was opened or saved last.
export function saveDialog(api: Api, make: (title: string) => unknown, last: Saved | undefined, done: (s: Saved) => void): void {
  const status = h("div", { role: "status" });
  const field = h("input", { class: "wide", "aria-label": "Name of the dashboard", placeholder: "Name", maxLength: 80, value: last?.name ?? "" });
  const write = async (condition: Record<string, string>) => {
    const name = field.value.trim();
    try {
      const { version } = await api.dashboard("PUT", name, condition, JSON.stringify(make(name), null, 1));
      dialog.close();
      done({ name, version });
    } catch (e) {
      refused(e, name);
    }
  };
  const refused = (e: unknown, name: string) => {
    const again = () => void api.dashboard("GET", name).then(({ version }) => write({ "If-Match": version }), (why: unknown) => refused(why, name));
    replace(status, alarm(e), e instanceof ApiError && e.status === 412 && h("button", { type: "button", onclick: again }, "Overwrite it"));
  };
  // Another dashboard of this name, or another version of this one, is not overwritten.
  const save = (e: Event) => {
    e.preventDefault();
    void write(last && field.value.trim() === last.name ? { "If-Match": last.version } : { "If-None-Match": "*" });
  };
  const file = () => {
    const title = field.value.trim() || "Explore";
    download(fileName(title, "json"), new Blob([JSON.stringify(make(title), null, 1)], { type: "application/json" }));
  };
  const dialog = h(
    "dialog",
    { "aria-label": "Dashboard", onclose: () => dialog.remove() },
    h(
      "form",
      { onsubmit: save },
      h("h2", {}, "Dashboard of these panels"),
      h("p", { class: "row" }, field),
      status,
      h("div", { class: "row" }, h("button", { class: "primary" }, "Save"), h("button", { type: "button", onclick: file }, "Export to Grafana"), h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}
