// Builds DOM nodes. Everything that comes from data becomes a text node or an attribute value,
// never markup.

type Child = Node | string | number | null | undefined | false;
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

// choice makes a labelled select element.
export function choice(label: string, options: readonly (readonly [value: string, text: string])[], value: string, change: (v: string) => void): HTMLSelectElement {
  const s = h("select", { "aria-label": label, title: label, onchange: () => change(s.value) });
  for (const [v, text] of options) s.appendChild(h("option", { value: v, selected: v === value }, text));
  return s;
}

// download offers text or a blob as a file.
export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
