import { isObject, list, number, object, text, type Json } from "./model";
import { inText, single, type Scope } from "./interpolate";
import { formatter, known, type Format } from "./units";
import type { Labels } from "../answer";
import type { Zone } from "../time";

// Field is how the values of one series are shown: the panel's defaults, then its overrides.
export interface Field {
  name: string;
  unit: string;
  format: Format;
  min: number | undefined;
  max: number | undefined;
  colour: string | undefined; // a fixed one
  steps: Step[]; // thresholds, ascending
  percentage: boolean; // thresholds are percentages between min and max
  mappings: Json[];
  noValue: string;
  negative: boolean; // drawn below zero
  hidden: boolean;
}

export interface Step {
  from: number;
  colour: string;
}

// Named is what overrides match.
export interface Named {
  name: string;
  refId: string;
  labels: Labels;
}

function pattern(source: string): RegExp | undefined {
  const m = /^\/(.*)\/([gimsuy]*)$/s.exec(source);
  try {
    return m ? new RegExp(m[1]!, m[2]!.replace("g", "")) : new RegExp(source);
  } catch {
    return undefined;
  }
}

function matches(matcher: Json, n: Named): boolean {
  const options = matcher["options"];
  switch (text(matcher["id"])) {
    case "byName":
      return text(options) === n.name;
    case "byRegexp":
      return pattern(text(options))?.test(n.name) ?? false;
    case "byFrameRefID":
      return text(options) === n.refId;
    case "byType":
      return text(options) === "number";
    default:
      return false;
  }
}

// known properties of overrides, besides those that only change how a series is drawn.
const applied = new Set(["unit", "decimals", "min", "max", "displayName", "color", "thresholds", "mappings", "noValue", "custom.transform", "custom.hideFrom", "custom.hidden", "links", "description"]);

// unsupported names what the page leaves out of a panel's options of fields.
export function unsupported(defaults: Json, overrides: Json[]): string[] {
  const out: string[] = [];
  const unit = text(defaults["unit"]);
  if (!known(unit)) out.push(`The unit ${unit} is written behind the values.`);
  for (const o of overrides) {
    const id = text(object(o["matcher"])["id"]);
    if (!["byName", "byRegexp", "byFrameRefID", "byType"].includes(id)) out.push(`An override for fields ${id} is left out.`);
    for (const p of list(o["properties"])) {
      const name = text(p["id"]);
      if (name === "custom.axisPlacement" && text(p["value"]) === "right") out.push("All series share the left axis.");
      else if (!applied.has(name) && !name.startsWith("custom.")) out.push(`The override of ${name} is left out.`);
    }
  }
  return [...new Set(out)];
}

export function fieldOf(n: Named, defaults: Json, overrides: Json[], zone: Zone, scope: Scope): Field {
  const o: Json = { ...defaults };
  const custom: Json = { ...object(defaults["custom"]) };
  for (const x of overrides) {
    if (!matches(object(x["matcher"]), n)) continue;
    for (const p of list(x["properties"])) {
      const id = text(p["id"]);
      if (id.startsWith("custom.")) custom[id.slice(7)] = p["value"];
      else o[id] = p["value"];
    }
  }
  const thresholds = object(o["thresholds"]);
  const steps = list(thresholds["steps"])
    .map((s): Step => ({ from: number(s["value"]) ?? -Infinity, colour: text(s["color"]) }))
    .sort((a, b) => a.from - b.from);
  const colour = object(o["color"]);
  const hideFrom = object(custom["hideFrom"]);
  return {
    name: displayName(text(o["displayName"]), n, scope),
    unit: text(o["unit"]),
    format: formatter(text(o["unit"]), number(o["decimals"]), zone),
    min: number(o["min"]),
    max: number(o["max"]),
    colour: text(colour["mode"]) === "fixed" ? text(colour["fixedColor"]) : undefined,
    steps,
    percentage: text(thresholds["mode"]) === "percentage",
    mappings: list(o["mappings"]),
    noValue: text(o["noValue"], "No data"),
    negative: text(custom["transform"]) === "negative-Y",
    hidden: hideFrom["viz"] === true || custom["hidden"] === true,
  };
}

function displayName(own: string, n: Named, scope: Scope): string {
  if (!own) return n.name;
  const labels = own.replace(/\$\{__field\.labels\.(\w+)\}|\$\{__field\.labels\["([^"]*)"\]\}/g, (_, a?: string, b?: string) => n.labels[(a ?? b)!] ?? "");
  return inText(labels, new Map([...scope, ["__series", single(n.name)], ["__field", single(n.name)]]));
}

// thresholdColour is the colour of the threshold that a value has passed, "" without thresholds.
export function thresholdColour(f: Field, v: number | null): string {
  if (f.colour) return f.colour;
  const at = v === null ? -Infinity : f.percentage ? ((v - (f.min ?? 0)) / ((f.max ?? 100) - (f.min ?? 0))) * 100 : v;
  return f.steps.findLast((s) => s.from <= at)?.colour ?? "";
}

// shown writes a value: the text of its mapping, or the formatted number.
export function shown(f: Field, v: number | null): { text: string; colour: string } {
  const m = mapped(f.mappings, v);
  return { text: m?.text || (v === null ? f.noValue : f.format(v)), colour: m?.colour || thresholdColour(f, v) };
}

// mapped reads value mappings, and those of old Grafana versions.
function mapped(mappings: Json[], v: number | null): { text: string; colour: string } | undefined {
  const result = (r: unknown) => (isObject(r) ? { text: text(r["text"]), colour: text(r["color"]) } : undefined);
  const within = (from: unknown, to: unknown) => v !== null && v >= (number(from) ?? -Infinity) && v <= (number(to) ?? Infinity);
  for (const m of mappings) {
    const o = object(m["options"]);
    switch (m["type"]) {
      case "value":
        if (v !== null && isObject(o[String(v)])) return result(o[String(v)]);
        break;
      case "range":
        if (within(o["from"], o["to"])) return result(o["result"]);
        break;
      case "special": {
        const match = text(o["match"]);
        const nan = v !== null && Number.isNaN(v);
        if ((match.includes("null") && v === null) || (match.includes("nan") && nan)) return result(o["result"]);
        break;
      }
      case 1: // of old versions: a value
        if (v !== null && number(m["value"]) === v) return { text: text(m["text"]), colour: "" };
        break;
      case 2: // of old versions: a range
        if (within(m["from"], m["to"])) return { text: text(m["text"]), colour: "" };
        break;
    }
  }
  return undefined;
}
