import type { Answer, Series } from "../answer";
import { rangeParams } from "../api";
import type { Context } from "../context";
import { filled } from "../format";
import type { Mark } from "../graph";
import { bounds, parseDuration, stepFor } from "../time";
import { fill, translucent } from "./colours";
import { inExpression, inText, type Scope } from "./interpolate";
import { object, text, type Json } from "./json";
import { exprOf } from "./model";
import { times } from "./query";

// Events returns the marks of the annotations that a panel shows.
export type Events = (panel: string) => Promise<Mark[]>;

// annotations asks for the events of a dashboard, once for all of its panels and for each minute.
export function annotations(ctx: Context, all: readonly Json[], scope: Scope): Events {
  let asked = "";
  let found: Promise<{ filter: Json; marks: Mark[] }[]>;
  return async (panel) => {
    const { start, end } = bounds(ctx.range(), Date.now());
    const now = [start, end].map((t) => Math.floor(t / 60_000)).join() + String(ctx.asOf());
    if (now !== asked) found = Promise.all(all.map(async (a) => ({ filter: object(a["filter"]), marks: await events(ctx, a, scope, start, end) })));
    asked = now;
    try {
      const shows = ({ ids, exclude }: Json) => !Array.isArray(ids) || !ids.length || ids.some((id) => String(id) === panel) !== (exclude === true);
      return (await found).flatMap(({ filter, marks }) => (shows(filter) ? marks : []));
    } catch (e) {
      asked = "";
      throw e;
    }
  };
}

// events are the times at which the query of an annotation has a value above zero, or its values,
// which are times in ms. Those of one series that are at most a step apart are one event.
async function events(ctx: Context, a: Json, scope: Scope, start: number, end: number): Promise<Mark[]> {
  const least = text(object(a["target"])["interval"]) || text(a["step"]);
  const step = stepFor(end - start, 300, parseDuration(inText(least, scope)) ?? 60_000);
  const inner = new Map([...scope, ...times(ctx.range(), step, step)]);
  const [from, to] = [start, end].map((t) => Math.floor(t / step) * step) as [number, number];
  const { data } = await ctx.api.get<Answer>("query_range", rangeParams(inExpression(exprOf(a), inner), from, to, step, ctx.asOf()));
  const colour = fill(text(a["iconColor"])) ?? "hsl(190 100% 50%)";
  const valued = a["useValueForTime"] === true || a["useValueForTime"] === "on";
  return (data.result as Series[]).flatMap(({ metric, values = [] }) => {
    const at = valued ? values.map(([, v]) => Math.floor(Number(v)) / 1000) : values.filter(([, v]) => Number(v) > 0).map(([t]) => t);
    const spans: [from: number, to: number][] = [];
    for (const t of at) {
      const last = spans.at(-1);
      if (last && (t - last[1]) * 1000 <= step) last[1] = t;
      else spans.push([t, t]);
    }
    const written = ["titleFormat", "textFormat"].map((f) => filled(inText(text(a[f]), scope), metric));
    const tags = text(a["tagKeys"]).split(",").map((l) => metric[l.trim()]);
    const title = [text(a["name"]), ...written, ...tags].filter(Boolean).join(" · ");
    const line = (at: number, more = {}): Mark => ({ at, colour, upright: true, ...more });
    return spans.flatMap(([from, to]) => (from === to ? [line(from, { text: title })] : [line(from, { to, colour: translucent(colour, 0.15).colour, text: title }), line(from), line(to)]));
  });
}
