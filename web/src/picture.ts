import { h, svg } from "./dom";

// picture is what the page shows of an element, below a title, as a PNG in the present theme with
// the pixels of the screen. The whole legend is there, even if it scrolls on the page.
export async function picture(title: string, shown: HTMLElement): Promise<Blob | null> {
  const copy = shown.cloneNode(true) as HTMLElement;
  const canvases = [...shown.querySelectorAll("canvas")];
  copy.querySelectorAll("canvas").forEach((c, i) => {
    const { width, height } = canvases[i]!.getBoundingClientRect();
    c.replaceWith(h("img", { src: canvases[i]!.toDataURL(), width, height }));
  });
  for (const e of copy.querySelectorAll("input, .tip, .u-over")) e.remove();
  const { width, height } = shown.getBoundingClientRect();
  copy.style.minHeight = `${height}px`;
  const frame = h("div", { class: "picture" }, h("h2", {}, title), copy);
  frame.style.width = `${width + 24}px`; // with its padding
  // The document measures it.
  document.body.append(frame);
  const size = { width: frame.offsetWidth, height: frame.offsetHeight };
  const back = getComputedStyle(frame).backgroundColor;
  frame.remove();
  const rules = [...document.styleSheets].flatMap((s) => [...s.cssRules].map((r) => r.cssText)).join("\n");
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = `${rules}\n.picture { position: static !important; visibility: visible !important; }`;
  const body = document.createElement("body");
  body.append(frame);
  const drawing = svg("svg", { ...size, "data-theme": document.documentElement.dataset["theme"]! }, style, svg("foreignObject", size, body));
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(drawing))}`;
  await image.decode();
  const canvas = h("canvas", { width: Math.round(size.width * devicePixelRatio), height: Math.round(size.height * devicePixelRatio) });
  const ctx = canvas.getContext("2d")!;
  ctx.fillStyle = back;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}
