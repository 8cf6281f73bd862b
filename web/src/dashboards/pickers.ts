import { choice, cut, h, popup } from "../dom";
import { all, type Variable } from "./variables";

// Controls for the variables of a dashboard. set gets the chosen values.
export function picker(v: Variable, set: (values: string[]) => void): HTMLElement {
  const { spec } = v;
  const dom = h("div", { class: "picker" }, h("span", { class: "muted" }, ...cut(spec.label)), control(v, set), v.problem ? h("span", { class: "bad", role: "alert" }, ...cut(v.problem)) : null);
  dom.dataset["name"] = spec.name;
  return dom;
}

function control(v: Variable, set: (values: string[]) => void): HTMLElement {
  const { spec } = v;
  if (spec.type === "textbox") {
    const f = h("input", { value: v.chosen[0] ?? "", "aria-label": spec.label });
    f.addEventListener("change", () => set([f.value]));
    return f;
  }
  if (spec.multi) return several(v, set);
  const options = [...(spec.includeAll ? [[all, "All"] as const] : []), ...v.options.map((o) => [o.value, o.text] as const)];
  return choice(spec.label, options, v.chosen[0] ?? "", (value) => set([value]));
}

// several is a list of boxes that opens. What was ticked counts when it closes.
function several(v: Variable, set: (values: string[]) => void): HTMLElement {
  const { spec } = v;
  const options = [...(spec.includeAll ? [{ value: all, text: "All" }] : []), ...v.options];
  const chosen = new Set(v.chosen);
  const boxes = options.map((o) => {
    const box = h("input", { type: "checkbox", checked: chosen.has(o.value) });
    box.addEventListener("change", () => {
      // All excludes single values.
      if (box.checked && o.value === all) for (const other of boxes) other.box.checked = other.box === box;
      else if (box.checked) for (const other of boxes) if (other.value === all) other.box.checked = false;
    });
    return { box, value: o.value, row: h("label", {}, box, " ", ...cut(o.text)) };
  });
  const search = h("input", { type: "search", placeholder: "Filter", "aria-label": `Filter values of ${spec.label}`, hidden: options.length < 12 });
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    for (const b of boxes) b.row.hidden = !b.row.textContent!.toLowerCase().includes(wanted);
  });
  const texts = v.chosen.map((c) => options.find((o) => o.value === c)?.text ?? c);
  const details = popup(`${spec.label}: ${texts.join(", ") || "none"}`, texts.length > 2 ? `${texts.length} values` : texts.join(", ") || "none", search, ...boxes.map((b) => b.row));
  details.addEventListener("toggle", () => {
    if (details.open) return;
    const values = boxes.filter((b) => b.box.checked).map((b) => b.value);
    if (values.join("\n") !== v.chosen.join("\n")) set(values);
  });
  return details;
}
