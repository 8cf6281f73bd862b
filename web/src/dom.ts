// Builds DOM nodes. Everything that comes from data becomes a text node or an attribute value,
// never markup.

export type Child = Node | string | number | null | undefined | false;
type Props = Record<string, unknown>;

// h makes an element. A property that starts with "on" is an event listener; "class" and names with
// a dash become attributes; everything else is set as a property of the element.
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value as EventListener);
    else if (name === "class" || name === "role" || name === "for" || name.includes("-")) e.setAttribute(name, String(value));
    else (e as unknown as Props)[name] = value;
  }
  append(e, children);
  return e;
}

// svg makes an element of a picture.
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>, ...children: Node[]): SVGElementTagNameMap[K] {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, String(value));
  e.append(...children);
  return e;
}

export function append(to: Node, children: Child[]): void {
  for (const c of children) {
    if (c === null || c === undefined || c === false) continue;
    to.appendChild(c instanceof Node ? c : document.createTextNode(String(c)));
  }
}

export function replace(in_: Node, ...children: Child[]): void {
  while (in_.firstChild) in_.removeChild(in_.firstChild);
  append(in_, children);
}

// cut keeps each long word of a text on one line. Where the space is short, page.css hides the
// middle of the word; the whole of it is its title, and what is copied.
export function cut(text: string): (Node | string)[] {
  const parts = text.split(/([^\s\p{Lo}]{17,})([^\s\p{Lo}]{8})(?![^\s\p{Lo}])/u);
  return parts.flatMap((p, i) => (i % 3 === 0 ? p || [] : i % 3 === 1 ? oneLine(p + parts[i + 1]!) : []));
}

// oneLine keeps a text on one line, as cut does a word.
export const oneLine = (text: string) => h("span", { class: "cut", title: text }, h("span", {}, text.slice(0, -8)), text.slice(-8));

// focusIn returns what brings the keyboard's focus back after an element is drawn anew: to what has
// the same label, else to the element.
export function focusIn(in_: HTMLElement): () => void {
  const active = in_.contains(document.activeElement) ? document.activeElement!.getAttribute("aria-label") : null;
  return () => active && (in_.querySelector<HTMLElement>(`[aria-label="${CSS.escape(active)}"]`) ?? in_).focus({ preventScroll: true });
}

// alarm shows an error, in the server's words.
export const alarm = (e: unknown) => h("p", { class: "bad", role: "alert" }, ...cut(e instanceof Error ? e.message : String(e)));

// popup is a box that its summary opens. Escape and leaving it close it.
export function popup(label: string, text: string, ...content: Child[]): HTMLDetailsElement {
  const box = h("details", { class: "several" }, h("summary", { "aria-label": label }, ...cut(text)), h("div", { class: "several-list", role: "group", "aria-label": label }, ...content));
  box.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    box.open = false;
    box.querySelector("summary")?.focus();
  });
  box.addEventListener("focusout", (e) => {
    if (e.relatedTarget instanceof Node && !box.contains(e.relatedTarget)) box.open = false;
  });
  return box;
}

// choice makes a labelled select element.
export function choice(label: string, options: readonly (readonly [value: string, text: string])[], value: string, change: (v: string) => void): HTMLSelectElement {
  const s = h("select", { "aria-label": label, title: label, onchange: () => change(s.value) });
  for (const [v, text] of options) s.appendChild(h("option", { value: v, selected: v === value }, text));
  return s;
}

// copyButton copies the text of an element. Browsers give a page without TLS no clipboard: then the
// text is selected, and copied from there.
export function copyButton(from: HTMLElement): HTMLButtonElement {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(from.textContent ?? "");
    } catch {
      getSelection()?.selectAllChildren(from);
      if (!document.execCommand("copy")) return;
    }
    button.textContent = "Copied";
  };
  const button = h("button", { type: "button", onclick: () => void copy() }, "Copy");
  return button;
}

// fileName makes the name of a file of a title.
export const fileName = (title: string, extension: string) => `${title.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80) || "promlake"}.${extension}`;

// download offers text or a blob as a file.
export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
