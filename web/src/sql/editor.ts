import { autocompletion, closeCompletion, selectedCompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { insertNewlineAndIndent } from "@codemirror/commands";
import { StreamLanguage } from "@codemirror/language";
import { Prec } from "@codemirror/state";
import { keymap, type EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { spanParams } from "../api";
import { Names } from "../completion";
import { spanOf, type Context } from "../context";
import { mount, type Editor } from "../editor";

const keywords = new Set(
  ("all and as asc between by case cast count cross current date day describe desc distinct else end except exists explain false filter from full group having hour in inner intersect interval is join left like limit minute month " +
    "natural not now null nulls offset on or order outer over partition qualify recursive right row rows second select semi show summarize table tables then true union unnest using values when where window with week year").split(" "),
);

// functions are those that statements about samples often have: the catalog names none.
const functions =
  ("abs any_value approx_count_distinct arg_max arg_min array_agg avg ceil coalesce concat contains corr count count_if date_part date_trunc day dense_rank epoch epoch_ms exp first first_value floor greatest histogram hour " +
    "isnan json_extract lag last last_value lead least length list ln log lower ltrim map_entries map_extract map_keys map_values max mean median min minute mode month now nullif percent_rank power quantile_cont rank regexp_extract " +
    "regexp_matches regexp_replace replace round row_number rtrim skewness split_part sqrt starts_with stddev strftime string_agg strptime strlen substring sum time_bucket trim trunc unnest upper var_samp weekday year " +
    "generate_series json_each promlake_metric promql prom_avg_over_time prom_changes prom_delta prom_deriv prom_histogram_quantile prom_idelta prom_increase prom_irate prom_math prom_predict_linear prom_quantile_over_time prom_rate prom_resets").split(" ");

const offered = 1_000; // names in a text

// completion offers tables, columns, functions and keywords; in a text after labels[ the names of
// labels, in a text beside labels['name'] or metric their values. The server has them all; what it
// does not answer is not offered.
function completion(ctx: Context): (c: CompletionContext) => Promise<CompletionResult | null> {
  const kept = new Map<string, Promise<unknown>>();
  const once = <T>(key: string, ask: () => Promise<T>): Promise<T> => {
    if (!kept.has(key)) kept.set(key, ask().catch((e: unknown) => (kept.delete(key), Promise.reject(e))));
    return kept.get(key) as Promise<T>;
  };
  const catalog = async () => {
    const query = "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY ALL";
    const { rows } = (await ctx.api.get<{ rows: [string, string, string][] }>("sql", { query })).data;
    const tables = [...new Set(rows.map(([table]) => table))].map((label): Completion => ({ label, type: "class", detail: "table", boost: 1 }));
    const columns = new Map(rows.map(([, label, type]): [string, Completion] => [label, { label, type: "property", detail: type.toLowerCase(), info: `in ${rows.filter((r) => r[1] === label).map((r) => r[0]).join(", ")}`, boost: 1 }]));
    return [...tables, ...columns.values()];
  };
  const names = async (path: string) => new Names((await ctx.api.get<string[]>(path, spanParams(spanOf(ctx)))).data);
  const rest: Completion[] = [...functions.map((label) => ({ label, type: "function" })), ...["$start", "$end", ...[...keywords].map((k) => k.toUpperCase())].map((label) => ({ label, type: "keyword" }))];
  return async (c) => {
    const before = c.state.sliceDoc(0, c.pos);
    const open = before.replace(/'[^']*'|"[^"]*"|--.*/g, (t) => " ".repeat(t.length)).lastIndexOf("'");
    if (open >= 0) {
      const compared = String.raw`\s*(?:=|!=|<>|(?:not\s+)?(?:i?like|in\s*\([^)]*))\s*$`;
      const code = before.slice(0, open);
      const label = new RegExp(String.raw`\blabels\s*\[\s*'([^']*)'\s*\]${compared}`, "i").exec(code)?.[1];
      const path = /\blabels\s*\[\s*$/i.test(code) ? "labels" : label ? `label/${encodeURIComponent(label)}/values` : new RegExp(String.raw`\bmetric${compared}|\bpromlake_metric\s*\(\s*$`, "i").test(code) ? "label/__name__/values" : "";
      if (!path) return null;
      const found = (await once(path, () => names(path))).find(before.slice(open + 1), offered);
      return { from: open + 1, options: found.map((l) => ({ label: l, apply: l.replaceAll("'", "''"), type: "constant" })) };
    }
    const word = c.matchBefore(/[$\w]+/);
    if (!word && !c.explicit) return null;
    return { from: word?.from ?? c.pos, options: [...(await once("", catalog)), ...rest], validFor: /^[$\w]*$/ };
  };
}

// sql colours a statement. It needs no grammar: the server judges statements.
const sql = StreamLanguage.define<{ comment: boolean }>({
  name: "sql",
  startState: () => ({ comment: false }),
  token(stream, state) {
    if (state.comment || stream.match("/*")) {
      state.comment = !stream.match(/^.*?\*\//);
      if (state.comment) stream.skipToEnd();
      return "comment";
    }
    if (stream.match("--")) return stream.skipToEnd(), "comment";
    if (stream.match(/^'(?:[^']|'')*'?/)) return "string";
    if (stream.match(/^"(?:[^"]|"")*"?/)) return "labelName";
    if (stream.match(/^\$\w+/)) return "labelName";
    if (stream.match(/^\d[\w.]*/)) return "number";
    const word = stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null;
    if (word) return keywords.has(word[0].toLowerCase()) ? "keyword" : stream.match(/^\s*\(/, false) ? "function" : null;
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "--", block: { open: "/*", close: "*/" } } },
  tokenTable: { labelName: tags.labelName, function: tags.function(tags.variableName) },
});

// lineAfterWord begins a line where the word is complete, which Enter would else accept as it is.
function lineAfterWord(view: EditorView): boolean {
  const chosen = selectedCompletion(view.state)?.label;
  const { head } = view.state.selection.main;
  if (!chosen || /[$\w]*$/.exec(view.state.sliceDoc(Math.max(0, head - chosen.length - 1), head))![0] !== chosen) return false;
  return closeCompletion(view) && insertNewlineAndIndent(view);
}

// sqlEditor makes an editor for a SQL statement with completion. Ctrl+Enter runs it.
export function sqlEditor(ctx: Context, text: string, run: () => void): Editor {
  return mount("SQL statement", "SELECT … FROM samples WHERE metric = '…' AND ts BETWEEN $start AND $end", text, () => (run(), true), [Prec.highest(keymap.of([{ key: "Enter", run: lineAfterWord }])), sql, autocompletion({ override: [completion(ctx)], maxRenderedOptions: 100 })]);
}
