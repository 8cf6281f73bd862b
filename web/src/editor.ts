import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap } from "@codemirror/lint";
import { EditorState, Prec, type Extension } from "@codemirror/state";
import { EditorView, keymap, placeholder, type Command } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { PromQLExtension } from "@prometheus-io/codemirror-promql";
import type { Api } from "./api";
import { completion } from "./completion";
import { pastExpressions } from "./state";

const highlight = HighlightStyle.define([
  { tag: tags.number, color: "var(--syntax-number)" },
  { tag: tags.string, color: "var(--syntax-string)" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--syntax-keyword)" },
  { tag: tags.function(tags.variableName), color: "var(--syntax-function)" },
  { tag: tags.labelName, color: "var(--syntax-label)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--field)", border: "1px solid var(--line)", borderRadius: "4px", fontSize: "14px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-1px" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", padding: "6px 4px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-placeholder": { color: "var(--muted)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": { backgroundColor: "var(--selection)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--line)", maxWidth: "80vw" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  ".cm-completionInfo": { whiteSpace: "pre-wrap", maxWidth: "30rem" },
});

// typedOver handles text that replaces a selection. The browser would give it the colour of the old
// text, by an inline style, which the page's Content-Security-Policy forbids.
const typedOver = EditorView.domEventHandlers({
  beforeinput(e, view) {
    const { from, to, empty } = view.state.selection.main;
    const { data } = e;
    if (e.inputType !== "insertText" || !data || empty || view.composing) return false;
    e.preventDefault();
    const insert = () => view.state.update({ changes: { from, to, insert: data }, selection: { anchor: from + data.length }, userEvent: "input.type", scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert))) view.dispatch(insert());
    return true;
  },
});

export interface Editor {
  readonly dom: HTMLElement;
  text(): string;
  set(text: string): void;
  focus(): void;
  destroy(): void;
}

// mount makes an editor of the given extensions. It lives in a shadow root, where CodeMirror uses
// constructed style sheets, which the page's Content-Security-Policy allows; elsewhere it would
// need style elements.
export function mount(label: string, hint: string, text: string, run: Command, own: Extension): Editor {
  const dom = document.createElement("div");
  dom.className = "editor";
  const root = dom.attachShadow({ mode: "open", delegatesFocus: true });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        theme,
        typedOver,
        history(),
        bracketMatching(),
        closeBrackets(),
        syntaxHighlighting(highlight),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        placeholder(hint),
        Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
        own,
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
      ],
    }),
  });
  return {
    dom,
    text: () => view.state.doc.toString(),
    set: (t) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: t } }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

// editor makes a PromQL editor with completion from the server, linting and help texts. Enter runs
// the query, Shift+Enter starts a line. changed is called after each change of the text.
export function editor(api: Api, text: string, run: () => void, changed: () => void = () => {}): Editor {
  const promql = new PromQLExtension().setComplete({ completeStrategy: completion(api) });
  const submit = () => (run(), true);
  return mount("PromQL expression", "PromQL, for example: sum by (mode) (rate(node_cpu_seconds_total[5m]))", text, submit, [
    autocompletion({ maxRenderedOptions: 100 }),
    promql.asExtension(),
    EditorView.updateListener.of((u) => u.docChanged && changed()),
    EditorState.languageData.of(() => [{ autocomplete: pastQueries }]),
    Prec.high(keymap.of([{ key: "Enter", run: submit }])),
  ]);
}

// pastQueries offers earlier expressions while the editor is empty and the user asks for
// completion.
function pastQueries(context: { state: EditorState; explicit: boolean }) {
  if (!context.explicit || context.state.doc.length > 0) return null;
  return { from: 0, options: pastExpressions().map((label, i) => ({ label, detail: "earlier query", boost: -i / 10, apply: label })), filter: false };
}
