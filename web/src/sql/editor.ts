import { StreamLanguage } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { mount, type Editor } from "../editor";

const keywords = new Set(
  ("all and as asc between by case cast count cross current date day describe desc distinct else end except exists explain false filter from full group having hour in inner intersect interval is join left like limit minute month " +
    "natural not now null nulls offset on or order outer over partition qualify recursive right row rows second select semi show summarize table tables then true union unnest using values when where window with week year").split(" "),
);

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

// sqlEditor makes an editor for a SQL statement. Ctrl+Enter runs it.
export function sqlEditor(text: string, run: () => void): Editor {
  return mount("SQL statement", "SELECT … FROM samples WHERE metric = '…' AND ts BETWEEN $start AND $end", text, () => (run(), true), sql);
}
