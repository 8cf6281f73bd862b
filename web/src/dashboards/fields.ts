import { isObject, list, number, object, pattern, text, type Json } from "./json";
import { inText, single, type Scope } from "./interpolate";
import { continuous } from "./colours";
import { formatter, type Format } from "./units";
import type { Labels } from "../answer";
import type { Zone } from "../time";
import { flags, reduce, type Values } from "./reduce";

// Field is how the values of one series are shown: the panel's defaults, then its overrides.
export interface Field {
  name: string;
  unit: string;
  format: Format;
  min: number | undefined;
  max: number | undefined;
  colour: string | undefined; // a fixed one
  mode: string; // of its colour
  steps: Step[]; // thresholds, ascending
  percentage: boolean; // thresholds are percentages between min and max
  mappings: Json[];
  noValue: string;
  custom: Json; // how its series or its cells are drawn
  hidden: boolean;
  zeros: boolean; // null is zero
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
  values: Values; // numbers
}

// comparisons are those of the matcher byValue.
export const comparisons: Record<string, (a: number, b: number) => boolean> = { eq: (a, b) => a === b, neq: (a, b) => a !== b, lt: (a, b) => a < b, lte: (a, b) => a <= b, gt: (a, b) => a > b, gte: (a, b) => a >= b };

function matches(matcher: Json, n: Named): boolean {
  const options = matcher["options"];
  switch (text(matcher["id"])) {
    case "byName":
      return text(options) === n.name;
    case "byNames": {
      const o = object(options);
      return (Array.isArray(o["names"]) && o["names"].includes(n.name)) !== (text(o["mode"]) === "exclude");
    }
    case "byRegexp":
      return pattern(text(options))?.test(n.name) ?? false;
    case "byFrameRefID":
      return text(options) === n.refId;
    case "byType":
      return text(options) === "number";
    case "byValue": {
      const { reducer, op, value } = object(options);
      const a = reduce(n.values, text(reducer));
      if (flags.includes(text(reducer))) return a === 1;
      return a !== null && (comparisons[text(op)]?.(a, number(value) ?? 0) ?? false);
    }
    default:
      return false;
  }
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
  const format = formatter(text(o["unit"]), number(o["decimals"]), zone);
  const hideFrom = object(custom["hideFrom"]);
  return {
    name: displayName(text(o["displayName"]), n, scope),
    unit: text(o["unit"]),
    format: (v) => text(custom["prefix"]) + format(v) + text(custom["postfix"]),
    min: number(o["min"]),
    max: number(o["max"]),
    colour: text(colour["mode"]) === "fixed" ? text(colour["fixedColor"]) : undefined,
    mode: text(colour["mode"]),
    steps,
    percentage: text(thresholds["mode"]) === "percentage",
    mappings: list(o["mappings"]),
    noValue: text(o["noValue"], "No data"),
    custom,
    hidden: hideFrom["viz"] === true || custom["hidden"] === true,
    zeros: text(o["nullValueMode"]) === "null as zero",
  };
}

function displayName(own: string, n: Named, scope: Scope): string {
  if (!own) return n.name;
  const labels = own.replace(/\$\{__field\.labels\.(\w+)\}|\$\{__field\.labels\["([^"]*)"\]\}/g, (_, a?: string, b?: string) => n.labels[(a ?? b)!] ?? "");
  return inText(labels, new Map([...scope, ["__series", single(n.name)], ["__field", single(n.name)]]));
}

// colourOf is the colour of a value: the fixed one, that between the limits of the field, or that
// of the threshold that it has passed; "" without any.
export function colourOf(f: Field, v: number | null): string {
  if (f.colour) return f.colour;
  const share = v === null ? -Infinity : (v - (f.min ?? 0)) / ((f.max ?? 100) - (f.min ?? 0));
  if (f.mode.startsWith("continuous-")) return continuous(f.mode.slice(11), share);
  const at = v === null ? -Infinity : f.percentage ? share * 100 : v;
  return f.steps.findLast((s) => s.from <= at)?.colour ?? "";
}

// shown writes a value: the text of its mapping, or the formatted number, or a text as it is.
export function shown(f: Field, v: number | string | null): { text: string; colour: string } {
  const m = mapped(f.mappings, v);
  const own = typeof v === "string" ? v : v === null ? f.noValue : f.format(v);
  return { text: m?.text || own, colour: m?.colour || colourOf(f, typeof v === "number" ? v : null) };
}

// mappedText is the text of the mapping of a value, "" without one.
export const mappedText = (f: Field, v: number): string => mapped(f.mappings, v)?.text ?? "";

// mapped reads value mappings, and those of old Grafana versions. A regular expression holds for
// texts alone, and its result may have the groups of its match.
function mapped(mappings: Json[], v: number | string | null): { text: string; colour: string } | undefined {
  const result = (r: unknown) => (isObject(r) ? { text: text(r["text"]), colour: text(r["color"]) } : undefined);
  const n = typeof v === "number" ? v : v === null || !v.trim() ? NaN : Number(v);
  const within = (from: unknown, to: unknown) => n >= (number(from) ?? -Infinity) && n <= (number(to) ?? Infinity);
  for (const m of mappings) {
    const o = object(m["options"]);
    switch (m["type"]) {
      case "value":
        if (v !== null && isObject(o[String(v)])) return result(o[String(v)]);
        break;
      case "range":
        if (within(o["from"], o["to"])) return result(o["result"]);
        break;
      case "regex": {
        const re = typeof v === "string" ? pattern(text(o["pattern"])) : undefined;
        const r = re?.test(v as string) ? result(o["result"]) : undefined;
        if (r) return { ...r, text: r.text && (v as string).replace(re!, r.text) };
        break;
      }
      case "special": {
        const match = text(o["match"]);
        const nan = typeof v === "number" && Number.isNaN(v);
        if ((match.includes("null") && v === null) || (match.includes("nan") && nan) || (match === "empty" && v === "") || ((match === "true" || match === "false") && v === match)) return result(o["result"]);
        break;
      }
      case 1: // of old versions: a value
        if (v !== null && (String(v) === text(m["value"]) || n === number(m["value"]))) return { text: text(m["text"]), colour: "" };
        break;
      case 2: // of old versions: a range
        if (within(m["from"], m["to"])) return { text: text(m["text"]), colour: "" };
        break;
    }
  }
  return undefined;
}

// opacityOf is that of an area, from 0 to 1.
export const opacityOf = (f: Field, none: number) => Math.min(1, (number(f.custom["fillOpacity"]) ?? none) / 100);
