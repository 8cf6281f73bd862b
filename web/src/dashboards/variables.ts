import type { Answer, Series } from "../answer";
import { spanParams, type Params } from "../api";
import { spanOf, type Context } from "../context";
import { legend } from "../format";
import { inExpression, names, single, type Scope, type Value } from "./interpolate";
import { formatDuration, parseDuration, stepFor } from "../time";
import type { VariableSpec } from "./model";

// Variables of a dashboard
// (https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/).

export interface Option {
  text: string;
  value: string;
}

export interface Variable {
  spec: VariableSpec;
  options: Option[];
  chosen: string[]; // values; all is $__all
  problem: string;
}

export const all = "$__all";
// auto is an interval that follows from the length of the time range.
const auto: Option = { text: "auto", value: "auto" };
// mostOptions bounds the values of a variable.
const mostOptions = 5_000;

// ordered puts variables behind those that they use. A cycle keeps the order of the file.
export function ordered(specs: VariableSpec[]): VariableSpec[] {
  const out: VariableSpec[] = [];
  const visiting = new Set<VariableSpec>();
  const visit = (s: VariableSpec) => {
    if (out.includes(s) || visiting.has(s)) return;
    visiting.add(s);
    for (const n of names(s.query + s.regex)) for (const other of specs) if (other.name === n) visit(other);
    out.push(s);
  };
  for (const s of specs) visit(s);
  return out;
}

// resolve finds the options of a variable and what is chosen: the values of the address, else those
// of the file, else the first.
export async function resolve(spec: VariableSpec, wanted: string[] | undefined, scope: Scope, ctx: Context): Promise<Variable> {
  let options: Option[] = [];
  let problem = "";
  try {
    options = await optionsOf(spec, scope, ctx);
  } catch (e) {
    problem = e instanceof Error ? e.message : String(e);
  }
  if (options.length > mostOptions) {
    problem = `The first ${mostOptions} of ${options.length} values`;
    options = options.slice(0, mostOptions);
  }
  const free = spec.type === "textbox";
  const has = (v: string) => free || (v === all && spec.includeAll) || options.some((o) => o.value === v);
  const candidates = [wanted ?? [], spec.current.map((v) => (v.startsWith("$__auto") ? auto.value : v))];
  let chosen = candidates.map((c) => c.filter(has)).find((c) => c.length) ?? [];
  if (!chosen.length) chosen = spec.includeAll ? [all] : options.slice(0, 1).map((o) => o.value);
  if (chosen.includes(all)) chosen = [all];
  return { spec, options, chosen: spec.multi ? chosen : chosen.slice(0, 1), problem };
}

// valueOf is what expressions get, for a time range of a length in ms.
export function valueOf(v: Variable, length: number): Value {
  const { auto: own } = v.spec;
  if (own && v.chosen[0] === auto.value) return single(formatDuration(stepFor(length, own.count * 3, Math.max(parseDuration(own.least) ?? 0, length / own.count))));
  const several = v.spec.multi || v.spec.includeAll;
  if (v.chosen[0] !== all) {
    const texts = v.chosen.map((c) => v.options.find((o) => o.value === c)?.text ?? c);
    return { values: v.chosen, texts, several, raw: v.spec.type !== "query" && v.spec.type !== "custom" };
  }
  if (v.spec.allValue) return { values: [v.spec.allValue], texts: ["All"], several, raw: true };
  return { values: v.options.map((o) => o.value), texts: ["All"], several, raw: false };
}

async function optionsOf(spec: VariableSpec, scope: Scope, ctx: Context): Promise<Option[]> {
  const of = (values: string[]) => values.map((v) => ({ text: v, value: v }));
  switch (spec.type) {
    case "query":
      return sorted(extracted(await ask(inExpression(spec.query, scope).trim(), ctx), spec.regex), spec.sort);
    case "custom":
      return split(spec.query).map((part) => {
        const m = /^(.*?)\s+:\s+(.*)$/.exec(part);
        return m ? { text: m[1]!, value: m[2]! } : { text: part, value: part };
      });
    case "interval":
      return [...(spec.auto ? [auto] : []), ...of(split(spec.query).filter((v) => v !== "auto"))];
    case "constant":
      return of([spec.query]);
    case "textbox":
      return of(spec.current.length ? spec.current : [spec.query]);
    default:
      return []; // the model leaves other types out
  }
}

// split divides a list at commas; "\," is a comma.
const split = (list: string) => list.split(/(?<!\\),/).map((s) => s.replaceAll("\\,", ",").trim()).filter(Boolean);

async function ask(query: string, ctx: Context): Promise<string[]> {
  if (!query) return [];
  const params = spanParams(spanOf(ctx));
  const get = async <T>(path: string, more: Params = {}) => (await ctx.api.get<T>(path, { ...params, ...more })).data;
  const call = /^(label_names|label_values|metrics|query_result)\s*\((.*)\)$/s.exec(query);
  const inner = call?.[2]!.trim() ?? "";
  switch (call?.[1]) {
    case "label_names":
      return get<string[]>("labels", { "match[]": inner });
    case "label_values": {
      const m = /^(.*),\s*([\w.:]+|"[^"]*")$/s.exec(inner);
      const label = (m ? m[2]! : inner).replace(/^"(.*)"$/, "$1");
      return get<string[]>(`label/${encodeURIComponent(label)}/values`, { "match[]": m?.[1]!.trim() });
    }
    case "metrics": {
      const wanted = new RegExp(inner);
      return (await get<string[]>("label/__name__/values")).filter((n) => wanted.test(n));
    }
    case "query_result": {
      const r = await get<Answer>("query", { query: inner, time: params["end"] });
      if (!Array.isArray(r.result) || r.resultType === "scalar" || r.resultType === "string") return [String((r.result as unknown[])[1])];
      return (r.result as Series[]).map((s) => `${legend(s.metric)} ${s.value?.[1] ?? ""} ${(s.value?.[0] ?? 0) * 1000}`);
    }
    default:
      return (await get<Record<string, string>[]>("series", { "match[]": query })).map((m) => legend(m));
  }
}

// extracted applies the regular expression of a variable: its first group is the value, or the
// groups that are named text and value.
export function extracted(values: string[], source: string): Option[] {
  const out = new Map<string, Option>();
  const m = /^\/(.*)\/([gimsuy]*)$/s.exec(source);
  const re = source ? new RegExp(m ? m[1]! : `^${source}$`, m ? m[2]!.replace("g", "") : "") : undefined;
  for (const v of values) {
    const found = re?.exec(v);
    if (re && !found) continue;
    const value = found?.groups?.["value"] ?? found?.groups?.["text"] ?? found?.[1] ?? found?.[0] ?? v;
    if (!out.has(value)) out.set(value, { value, text: found?.groups?.["text"] ?? value });
  }
  return [...out.values()];
}

// sorted orders options: 1 and 2 by text, 3 and 4 by number, 5 and 6 by text without case, 7 and 8
// naturally; even orders descend, 0 keeps the server's.
export function sorted(options: Option[], order: number): Option[] {
  if (!order) return options;
  const first = (s: string) => Number(/-?\d+(\.\d+)?/.exec(s)?.[0] ?? -1);
  const compare = [
    (a: Option, b: Option) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0),
    (a: Option, b: Option) => first(a.text) - first(b.text),
    (a: Option, b: Option) => a.text.toLowerCase().localeCompare(b.text.toLowerCase()),
    (a: Option, b: Option) => a.text.localeCompare(b.text, undefined, { numeric: true }),
  ][(order - 1) >> 1];
  if (!compare) return options;
  return [...options].sort((a, b) => (order % 2 ? compare(a, b) : compare(b, a)));
}
